//! The words of the command language: verbs, names for tasks and lists, and what is said for politeness.
//!
//! Only words in the place of a command are matched here, with small slips forgiven; titles never are.

use crate::phrases::{Phrases, phrases};
use crate::spelling::resembles;
use crate::tokens::Words;

/// What a verb asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// "add", "append": what follows is the title.
    Add,
    /// "put … on the list".
    Put,
    /// "create", "set", "make", "give": only with a word for a task.
    Make,
    /// "remind", "alert", "notify".
    Remind,
    /// "show", "list", "read".
    Show,
    /// "delete", "remove", "cancel".
    Delete,
    /// "take … off".
    Take,
    /// "complete", "finish".
    Complete,
    /// "mark … as done", "check off", "cross out".
    Mark,
    /// "change", "update".
    Change,
    /// "rename".
    Rename,
    /// "move", "postpone", "reschedule".
    Move,
    /// "tag", "label".
    Tag,
    /// "reopen".
    Reopen,
}

const VERBS: &[(Verb, Phrases)] = &[
    (Verb::Add, phrases!("add | append | insert | include | adding")),
    (Verb::Put, phrases!("put | place | stick | throw | write | jot | note")),
    (
        Verb::Make,
        phrases!(
            "create | make | set | setup | schedule | new | establish | build | start | give | send | \
             enter | log | record | save | need | want | generate | program | do"
        ),
    ),
    (Verb::Remind, phrases!("remind | alert | notify | reming | remid")),
    (
        Verb::Show,
        phrases!(
            "show | list | display | view | see | read | tell | find | get | pull | open | bring | search | \
             look | review | hear | know | access | repeat | describe | recite | print | fetch | retrieve"
        ),
    ),
    (
        Verb::Delete,
        phrases!(
            "delete | remove | cancel | erase | clear | drop | discard | trash | eliminate | wipe | \
             dismiss | scrap | purge | empty | deactivate | disable | deleting | removing | canceling | \
             nix | stop | undo | void | silence"
        ),
    ),
    (Verb::Take, phrases!("take")),
    (Verb::Complete, phrases!("complete | finish | close")),
    (Verb::Mark, phrases!("mark | check | tick | cross | scratch | strike")),
    (
        Verb::Change,
        phrases!(
            "change | update | modify | edit | alter | adjust | revise | replace | switch | correct | fix | \
             swap | amend | prioritize | prioritise | changing | updating | extend | convert"
        ),
    ),
    (Verb::Rename, phrases!("rename | retitle | reword")),
    (
        Verb::Move,
        phrases!(
            "move | postpone | reschedule | push | delay | shift | bump | snooze | defer | moving | reset | \
             rescheduled | transfer"
        ),
    ),
    (Verb::Tag, phrases!("tag | label")),
    (Verb::Reopen, phrases!("reopen | uncheck | unmark | uncomplete | restore")),
];

/// Verbs that are recognised when misspelled.
const FORGIVEN: Phrases = phrases!(
    "create | remind | show | list | display | delete | remove | cancel | erase | clear | complete | \
     finish | mark | change | update | modify | rename | move | postpone | reschedule | schedule | append | \
     reopen"
);

/// Words that differ by one letter from a command and are no slip.
const REAL: Phrases = phrases!(
    "clean | shop | snow | slow | shot | shoe | lost | last | lift | left | most | mode | made | more | \
     love | chance | charge | make | market | mask | live | life | like | line | shower | listen | behind | \
     removed | canceled | cancelled | completed | finished | changed | lists | shows | marks | moves | \
     changes | updates | reminds | listed | marked | updated | moved | created | deleted | completes | \
     cleared | learn | cancer | channel | phase | movie | mint | lit | lisp | stow | post | park | dark | \
     work | mars | math | rewind | remodel | refund | repay | bread"
);

pub(crate) fn verb(word: &str) -> Option<Verb> {
    if let Some(verb) = exact_verb(word) {
        return Some(verb);
    }
    if word == "ad" || word == "addd" || word == "aad" {
        return Some(Verb::Add);
    }
    if word.len() < 4 || !FORGIVEN.may_begin(word) || REAL.contains(word) {
        return None;
    }
    exact_verb(FORGIVEN.iter().find(|known| resembles(word, known))?)
}

fn exact_verb(word: &str) -> Option<Verb> {
    VERBS.iter().find(|(_, words)| words.contains(word)).map(|(verb, _)| *verb)
}

/// What a noun stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Task,
    Reminder,
    List,
}

/// A word for a task, a reminder or a list at `i`, how many tokens it takes and whether it is a plural.
pub(crate) fn noun(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    if let Some(len) = words.phrase(
        i,
        phrases!(
            "to do list | to-do list | todo list | task list | to do lists | to-do lists | todo lists | \
             things to do list"
        ),
    ) {
        return Some((Noun::List, len, true));
    }
    if words.spells(i, "to do").is_some()
        && !matches!(
            words.before(i),
            "need" | "have" | "has" | "how" | "want" | "going" | "supposed" | "things" | "what" | "me"
        )
    {
        return to_do(words, i);
    }
    if words.phrase(i, phrases!("to dos | to do's")).is_some() {
        return Some((Noun::Task, 2, true));
    }
    let word = words.at(i);
    Some(match word {
        "task" | "todo" | "to-do" | "item" | "chore" | "errand" | "taks" | "tsk" => (Noun::Task, 1, false),
        "tasks" | "todos" | "to-dos" | "items" | "chores" | "errands" | "todo's" | "task's" => (Noun::Task, 1, true),
        "list" | "lists" | "agenda" | "checklist" => (Noun::List, 1, word.ends_with('s')),
        "alert" | "notification" => (Noun::Reminder, 1, false),
        "alerts" | "notifications" | "reminders" => (Noun::Reminder, 1, true),
        "remind" | "reminding" | "reminded" => return None,
        _ if is_reminder(word) => (Noun::Reminder, 1, word.ends_with('s')),
        _ => return None,
    })
}

fn is_reminder(word: &str) -> bool {
    word.starts_with("re")
        && word.len() >= 6
        && word != "remainder"
        && word != "remainders"
        && (resembles(word, "reminder") || resembles(word, "reminders"))
        && word != "remind"
        && word != "reminded"
}

/// "to do" is a noun where an article or its like stands before it or nothing that can be done follows.
fn to_do(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    let article = phrases!(
        "a | an | the | my | new | this | that |  | add | create | delete | remove | complete | our | current | \
         whole | entire"
    )
    .contains(words.before(i));
    article.then_some((Noun::Task, 2, false))
}

/// Whether the stretch names tasks, reminders or lists.
pub(crate) fn has_noun(words: &Words, start: usize, end: usize) -> bool {
    (start..end).any(|i| noun(words, i).is_some())
}

pub(crate) fn is_article(word: &str) -> bool {
    phrases!("a | an | the | my | our | this | that | these | those | your | his | her | their | some | any | another")
        .contains(word)
}

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

pub(crate) fn is_please(word: &str) -> bool {
    matches!(word, "pls" | "plz" | "kindly" | "plese" | "pleas" | "plase")
        || word.starts_with("pl") && collapsed_is(word, "please")
}

const OPENINGS: Phrases = phrases!(
    "i would really like you to | i would like for you to | i'd like for you to | i would like you to | \
     i'd like you to | i want you to | i need you to | i would like to | i'd like to | i wish to | \
     i want to | i need to | i have to | i gotta | i got to | i've got to | id like you to | id like to | \
     would you mind | would you be able to | are you able to | would it be possible to | is it possible to | \
     is there a way to | could you | can you | would you | will you | can u | could u | can we | could we | \
     can i | could i | may i | do me a favor and | do me a favour and | go ahead and | hurry up and | \
     i need | help me | be sure to | make sure to | make sure that you | let's | lets | let us | let me | \
     try to | you need to | you should | you can | you may | hey there | ok google | hey google | hey siri | \
     hey | hi | hello | yo | ok | okay | alright | well | so | um | uh | just | also | and | then | now | \
     yes | yeah | oh | next | first | finally | actually | alexa | siri | google | olly | cortana | \
     assistant | adjutant | computer | bot | to"
);

/// The first token of `start..end` that is not a mark, a greeting or a courtesy.
pub(crate) fn after_courtesy(words: &Words, start: usize, end: usize) -> usize {
    let mut i = start;
    // Nobody is as polite as that; the limit keeps the time linear where this is asked at every word.
    for _ in 0..12 {
        if i >= end {
            break;
        }
        if !words.is_word(i) && !words.is_quoted(i) || is_please(words.at(i)) {
            i += 1;
        } else if let Some(n) =
            words.phrase(i, OPENINGS).filter(|n| i + n <= end && !opening_is_content(words, i, *n, end))
        {
            i += n;
        } else {
            break;
        }
    }
    i
}

/// Openings that mean something by themselves: "I need a reminder", "next task", "list to …".
fn opening_is_content(words: &Words, i: usize, n: usize, end: usize) -> bool {
    match words.at(i) {
        "i" if n == 2 && words.at(i + 1) == "need" => !is_please(words.at(i + 2)),
        "next" | "first" | "finally" | "yes" | "now" => words.at(i + 1) != ",",
        "to" => verb(words.at(i + 1)).is_none(),
        _ => i + n >= end,
    }
}

const CLOSINGS: Phrases = phrases!(
    "thank you so much | thank you very much | thanks so much | thanks a lot | thank you | thanks | thx | \
     ty | cheers | for me please | for me | if you can | if possible | right away | right now | ok | okay | \
     olly | alexa | would you | will you | can you | asap please"
);

/// Where `start..end` ends when courtesies and marks at its end are left out.
pub(crate) fn before_courtesy(words: &Words, start: usize, end: usize) -> usize {
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
    phrases!(". | , | ! | ? | ; | : | - | – | — | … | \n | 🙏 | 🙂 | 😊 | 👍 | ❤ | \u{fe0f} | * | ~ | ) | ]")
        .contains(mark)
}
