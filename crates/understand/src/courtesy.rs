//! What is said for politeness before and after a command: "hey, could you please …", "… thanks".

use crate::lexicon;
use crate::phrases::{Phrases, phrases};
use crate::tokens::Words;

/// The word with letters that are held ("pleeease") written once.
fn collapsed_is(word: &str, wanted: &str) -> bool {
    let mut rest = wanted.chars().peekable();
    let mut last = '\0';
    for c in word.chars() {
        if rest.peek() == Some(&c) {
            rest.next();
            last = c;
        } else if c != last {
            return false;
        }
    }
    rest.peek().is_none()
}

#[inline]
pub(crate) fn is_please(word: &str) -> bool {
    matches!(word.as_bytes(), [b'p', b'l', ..] | [b'k', ..]) && asks(word)
}

fn asks(word: &str) -> bool {
    matches!(word, "pls" | "plz" | "kindly" | "plese" | "pleas" | "plase") || collapsed_is(word, "please")
}

const OPENINGS: Phrases = phrases!(
    "need to | want to | would like to | i said | i said to | i am going to need to | i'm trying to | in order to | \
     it's time to | time to | i think i need to | i think you should | you must | i'll need you to | \
     i really need to | i also need to | i just want to | i just need to | i would really like you to | \
     i would like for you to | i'd like for you to | i would like you to | i'd like you to | i want you to | \
     i need you to | i would like to | i'd like to | i wish to | i want to | i need to | i have to | we need to | \
     we have to | oops | i mean | i meant | sorry | i gotta | i got to | i've got to | id like you to | \
     id like to | would you mind | would you be able to | are you able to | would it be possible to | \
     is it possible to | is there a way to | could you | can you | would you | will you | can u | could u | \
     can we | could we | can i | could i | may i | do me a favor and | do me a favour and | go ahead and | \
     hurry up and | i need | help me | be sure to | make sure to | make sure that you | let's | lets | let us | \
     let me | try to | you need to | you should | you can | you may | hey there | ok google | hey google | \
     hey siri | hey | hi | hello | yo | ok | okay | alright | well | so | um | uh | just | also | and | then | \
     now | yes | yeah | oh | next | first | finally | actually | alexa | siri | google | olly | cortana | \
     assistant | adjutant | computer | bot | to | no | nope | second | third | lastly | secondly | thirdly | \
     firstly | last | if it's not too much trouble | if it is not too much trouble | if it isn't too much trouble | \
     if you don't mind | if you wouldn't mind | if possible | if it's possible | if you could | if you would | \
     when you get a chance | when you have a moment | when you have time | if that's ok | if that's okay | \
     if it's ok"
);

/// The first token of `start..end` that is not a mark, a greeting or a courtesy.
pub(crate) fn after(words: &Words, start: usize, end: usize) -> usize {
    let mut i = start;
    // Nobody is as polite as that; the limit keeps the time linear where this is asked at every word.
    for _ in 0..12 {
        if i >= end {
            break;
        }
        if !words.is_word(i) && !words.is_quoted(i) || is_please(words.at(i)) {
            i += 1;
        } else if let Some(n) = opening(words, i).filter(|n| i + n <= end && !opening_is_content(words, i, *n, end)) {
            i += n;
        } else {
            break;
        }
    }
    i
}

fn opening(words: &Words, i: usize) -> Option<usize> {
    words.phrase(i, OPENINGS).max(words.phrase(i, lexicon::SOFTENERS))
}

/// Openings that mean something by themselves: "I need a reminder", "next task", "list to …".
fn opening_is_content(words: &Words, i: usize, n: usize, end: usize) -> bool {
    match words.at(i) {
        "i" if n == 2 && words.at(i + 1) == "need" => !is_please(words.at(i + 2)),
        "yes" | "no" | "nope" => words.at(i + 1) != "," && (i + 2 >= end || !is_reply(words.at(i + 1))),
        "now" => words.at(i + 1) != ",",
        "next" | "first" | "finally" | "second" | "third" | "last" | "lastly" | "secondly" | "thirdly" | "firstly" => {
            words.at(i + 1) != "," && !is_command(words.at(i + 1))
        }
        "mind" | "why" => !words.at(i + n).ends_with("ing") && words.at(i) == "mind",
        "if" | "when" => i + n >= end || words.at(i + n) != "," && words.at(i) == "when",
        "to" => lexicon::verb(words.at(i + 1)).is_none(),
        _ => i + n >= end,
    }
}

/// Verbs that open a command after "yes" or "no".
fn is_reply(word: &str) -> bool {
    phrases!("cancel | change | push | put | make | set | postpone | reschedule").contains(word) || is_command(word)
}

/// Verbs that open a command after "first", "second", "finally".
fn is_command(word: &str) -> bool {
    phrases!("add | delete | remove | mark | complete | show | list | remind | create | rename | move").contains(word)
}

const CLOSINGS: Phrases = phrases!(
    "thank you so much | thank you very much | thanks so much | thanks a lot | thank you | thanks | thx | ty | \
     cheers | for me please | for me | if you can | if possible | right away | right now | ok | okay | olly | \
     alexa | would you | will you | can you | asap please | lol | haha | hehe | lmao | ffs | omg | btw | tho | \
     i guess | i suppose | i think | or something | or whatever | would ya | will ya | too | as well | at all | \
     if you would | if you could | when you can | when you get a chance | ok ? | cheers | ta"
);

/// Where `start..end` ends when courtesies and marks at its end are left out.
pub(crate) fn before(words: &Words, start: usize, end: usize) -> usize {
    let mut end = end;
    while end > start {
        let last = end - 1;
        if !words.is_word(last) && !words.is_quoted(last) && is_closing_mark(words.at(last))
            || is_please(words.at(last))
        {
            end = last;
            continue;
        }
        let longest = (1..=4).rev().filter_map(|n| end.checked_sub(n)).filter(|from| *from > start);
        let cut = longest.into_iter().find(|from| words.phrase(*from, CLOSINGS) == Some(end - from));
        match cut {
            Some(from) => end = from,
            None => break,
        }
    }
    end
}

fn is_closing_mark(mark: &str) -> bool {
    phrases!(". | , | ! | ? | ; | : | - | – | — | … | \n | 🙏 | 🙂 | 😊 | 👍 | ❤ | 😂 | 😅 | 🙄 | 😭 | 🎉 | ✅ | ✔ | \u{fe0f} | * | ~ | ) | ]")
        .contains(mark)
}
