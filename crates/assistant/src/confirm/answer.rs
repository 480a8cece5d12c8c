//! Reads the answer to a question that asks for a confirmation: an agreement without the phrase, a refusal, a refusal
//! with a new command, or a selection of some of the tasks. Never confirms anything.

use tools::HeldCalls;
use tools::held::HeldVerb;

/// The answer to a question that asks for a confirmation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfirmationAnswer<'m> {
    /// Agrees without the phrase: "yes", "ok do it", "👍".
    Agreement,
    /// Refuses: "no", "nah leave it", "don't".
    Refusal,
    /// Refuses and then says something else. Contains that part of the message.
    RefusalThen(&'m str),
    /// Is about something else, or unclear.
    Other,
}

const YES: &str = "\
    yes, yess, yeah, yep, yup, yea, yh, ya, y, aye, ok, okay, okey, okie, k, kk, sure, confirm, confirmed, \
    affirmative, absolutely, definitely, certainly, correct, right, agreed, agree, approve, approved, accept, \
    proceed, alright, fine, indeed, totally, 👍, ✅, 👌, ✔, ☑, 💯, 🆗, 🙆";
/// Phrases that agree, in words without apostrophes.
const YES_PHRASES: &str = "\
    go ahead, do it, do that, do so, please do, go on, go for it, of course, by all means, why not, thats \
    fine, that is fine, thats right, sounds good, make it so, carry on, im sure, i mean it";
/// Words that may accompany an agreement.
const YES_FILLERS: &str = "\
    delete, complete, change, run, undo, please, pls, plz, it, that, them, those, these, this, all, just, do, \
    go, ahead, on, now, then, the, a, i, said, so, am, really, both, everything, one, ones, task, tasks, my, \
    mate, thanks, thank, you, and, already, want, to, 🙏, 🙂, 😊";
/// Words and phrases that refuse, alone or before something else.
const NO: &str = "\
    no thank you, no thanks, no way, never mind, not now, not yet, on second thoughts, on second thought, ive \
    changed my mind, i have changed my mind, i changed my mind, changed my mind, id rather not, rather not, \
    better not, please dont, no, nope, nah, naw, na, noo, nay, nevermind, nvm, negative, n, nothing, 👎, ❌, 🚫, \
    🙅";
/// Verbs that refuse if only pronouns, words of the question or other refusals follow: "cancel that", "don't delete
/// them".
const NO_VERBS: &str = "\
    cancel, stop, abort, forget, leave, keep, skip, dont, do not, didnt mean, ignore, not";
/// Words that may accompany a refusal.
const NO_FILLERS: &str = "\
    it, that, them, this, these, those, the, a, my, all, both, either, any, one, ones, task, tasks, about, as, \
    is, are, there, here, alone, be, wait, please, pls, thanks, thank, you, now, yet, sorry, actually, i, im, \
    want, need, meant, mean, to, do, still, anymore, of, on, list, mate, hold, must, should, so, everything, \
    changed, ive, problem, worries, idea, mind";
/// Words before an answer.
const LEADS: &str = "\
    hmm, hm, um, uh, oh, ah, er, erm, well, actually, wait, sorry, please, so, but, hey";
/// Words between a refusal and what follows it.
const LINKS: &str = "\
    and, but, then, so, instead, rather";

/// A word of a message, in lower case and without apostrophes.
struct AnswerWord {
    text: String,
    start: usize,
    /// A clause ends before this word.
    begins_clause: bool,
}

/// Reads the answer to the question about these calls. Without calls, words of their titles are unknown.
pub(crate) fn read_answer<'m>(message: &'m str, held: Option<&HeldCalls>) -> ConfirmationAnswer<'m> {
    let words = words(message);
    let question = QuestionWords::new(held);
    if is_agreement(message, &words, &question) {
        return ConfirmationAnswer::Agreement;
    }
    match refusal_end(&words, &question) {
        None => ConfirmationAnswer::Other,
        Some(end) => match words.get(end) {
            None => ConfirmationAnswer::Refusal,
            Some(word) => ConfirmationAnswer::RefusalThen(message[word.start..].trim()),
        },
    }
}

/// Returns the positions of the targets that a message selects out of several, such as "only the first", "no, just the
/// hallway then". The targets of all calls are counted in their order, each task once. Returns `None` unless the
/// message has "only" or "just" and nothing but a selection.
pub(crate) fn selected_targets(message: &str, held: &HeldCalls) -> Option<Vec<usize>> {
    let titles = target_titles(held);
    let words = words(message);
    let question = QuestionWords::new(Some(held));
    let start = words.iter().position(|word| matches!(word.text.as_str(), "only" | "just"))?;
    let is_lead = |word: &AnswerWord| {
        let text = word.text.as_str();
        [LEADS, LINKS, NO, YES].iter().any(|list| has(list, text))
    };
    let is_ignored = |text: &str| {
        let fillers =
            ["the", "one", "ones", "task", "tasks", "please", "then", "instead", "thanks", "of", "them", "my"];
        fillers.contains(&text) || question.verbs.contains(&text) || matches!(text, "only" | "just")
    };
    if titles.len() < 2 || !words[..start].iter().all(is_lead) {
        return None;
    }
    let words: Vec<&str> =
        words[start..].iter().map(|word| word.text.as_str()).filter(|text| !is_ignored(text)).collect();
    let mut selected = Vec::new();
    for part in words.split(|word| *word == "and").filter(|part| !part.is_empty()) {
        selected.extend(select(part, &titles)?);
    }
    selected.sort_unstable();
    selected.dedup();
    Some(selected).filter(|selected| !selected.is_empty() && selected.len() < titles.len())
}

/// Returns the positions that a part of a selection means: "first", "2", "last", "first two", or words of one title.
/// Returns `None` if it means none, or more than one title.
fn select(part: &[&str], titles: &[(String, &str)]) -> Option<Vec<usize>> {
    let count = titles.len();
    let in_range = |position: usize| (position < count).then(|| vec![position]);
    match part {
        ["last"] => return in_range(count - 1),
        [word] => {
            if let Some(position) = position(word) {
                return in_range(position);
            }
        }
        ["first", number] => {
            if let Some(last) = position(number) {
                return Some((0..=last.min(count - 1)).collect());
            }
        }
        _ => {}
    }
    let matches = |title: &str| {
        let title = words(title);
        part.iter().all(|word| title.iter().any(|known| known.text == *word))
    };
    let found: Vec<usize> = (0..count).filter(|at| matches(titles[*at].1)).collect();
    (found.len() == 1).then_some(found)
}

/// Returns the position that a word names, counted from 0: "first", "2", "2nd", "two".
fn position(word: &str) -> Option<usize> {
    const NUMBERS: [[&str; 2]; 10] = [
        ["first", "one"],
        ["second", "two"],
        ["third", "three"],
        ["fourth", "four"],
        ["fifth", "five"],
        ["sixth", "six"],
        ["seventh", "seven"],
        ["eighth", "eight"],
        ["ninth", "nine"],
        ["tenth", "ten"],
    ];
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    number.or_else(|| NUMBERS.iter().position(|names| names.contains(&word)))
}

/// Returns the ids and titles of all targets, each task once.
pub(crate) fn target_titles(held: &HeldCalls) -> Vec<(String, &str)> {
    let mut titles: Vec<(String, &str)> = Vec::new();
    for target in held.calls.iter().flat_map(|call| &call.targets) {
        let id = target.id.to_string();
        if !titles.iter().any(|(known, _)| *known == id) {
            titles.push((id, &target.title));
        }
    }
    titles
}

/// The words that the question uses.
struct QuestionWords {
    verbs: Vec<&'static str>,
    titles: Vec<String>,
}

impl QuestionWords {
    fn new(held: Option<&HeldCalls>) -> Self {
        let calls = held.map(|held| held.calls.as_slice()).unwrap_or_default();
        let titles = calls.iter().flat_map(|call| &call.targets).flat_map(|target| words(&target.title));
        let mut verbs = Vec::new();
        for call in calls {
            verbs.extend_from_slice(match call.verb() {
                _ if call.is_opaque() => &["run", "start", "undo", "schedule", "resume", "send"],
                HeldVerb::Delete => &["delete", "remove", "erase", "bin", "drop", "trash", "scrap"],
                HeldVerb::Complete => &["complete", "finish", "done", "mark", "tick", "check", "off"],
                HeldVerb::Change => &["change", "update", "move", "set", "make", "edit"],
            });
        }
        Self { verbs, titles: titles.map(|word| word.text).collect() }
    }

    fn has_title_word(&self, word: &str) -> bool {
        self.titles.iter().any(|known| known == word)
    }
}

/// Returns true if the message only agrees: with a word such as "yes", a phrase such as "do it", or the verb of the
/// question alone. All other words must be fillers, numbers, or after a "yes" words of the titles.
fn is_agreement(message: &str, words: &[AnswerWord], question: &QuestionWords) -> bool {
    if words.is_empty() || message.trim_end().ends_with('?') {
        return false;
    }
    let mut agrees = false;
    let mut has_yes = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        let phrase = YES_PHRASES.split(", ").find_map(|phrase| match_phrase(&words[at..], phrase));
        if let Some(length) = phrase {
            agrees = true;
            at += length;
            continue;
        }
        let is_verb = question.verbs.contains(&text);
        let is_yes = has(YES, text);
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        agrees |= is_yes || is_verb;
        has_yes |= is_yes;
        let is_known = is_yes || is_verb || is_number || has(YES_FILLERS, text);
        let is_title_word = has_yes && question.has_title_word(text);
        if !is_known && !is_title_word {
            return false;
        }
        at += 1;
    }
    agrees
}

/// Returns the position of the first word after a refusal, or `None` if the message does not begin with one. Clauses
/// that only repeat the refusal belong to it.
fn refusal_end(words: &[AnswerWord], question: &QuestionWords) -> Option<usize> {
    let is_tail = |word: &AnswerWord| {
        let text = word.text.as_str();
        [NO_FILLERS, NO, NO_VERBS, LEADS].iter().any(|list| has(list, text))
            || question.verbs.contains(&text)
            || question.has_title_word(text)
    };
    let mut at = words.iter().take_while(|word| has(LEADS, &word.text)).count();
    if let Some(length) = NO.split(", ").find_map(|phrase| match_phrase(&words[at..], phrase)) {
        at += length;
    } else {
        let subject = words[at..].iter().take_while(|word| matches!(word.text.as_str(), "i" | "id" | "lets")).count();
        at += subject;
        at += NO_VERBS.split(", ").find_map(|phrase| match_phrase(&words[at..], phrase))?;
        let end = clause_end(words, at);
        if !words[at..end].iter().all(is_tail) {
            return None;
        }
        at = end;
    }
    while at < words.len() {
        let end = clause_end(words, at);
        let is_selection = words[at..end].iter().any(|word| matches!(word.text.as_str(), "only" | "just"));
        if is_selection || !words[at..end].iter().all(is_tail) {
            break;
        }
        at = end;
    }
    let links = words[at..].iter().take_while(|word| has(LINKS, &word.text)).count();
    Some(if at + links == words.len() { words.len() } else { at + links })
}

/// Returns true if the list of words contains this word.
fn has(list: &str, word: &str) -> bool {
    list.split(", ").any(|known| known == word)
}

/// Returns the position after the clause that contains this word.
fn clause_end(words: &[AnswerWord], at: usize) -> usize {
    let next = words.iter().skip(at + 1).position(|word| word.begins_clause);
    next.map_or(words.len(), |offset| at + 1 + offset)
}

/// Returns the number of words of the phrase if the words begin with it.
fn match_phrase(words: &[AnswerWord], phrase: &str) -> Option<usize> {
    let mut length = 0;
    for part in phrase.split(' ') {
        if words.get(length)?.text != part {
            return None;
        }
        length += 1;
    }
    Some(length)
}

/// Splits a message into words. A symbol such as an emoji is a word of its own.
fn words(message: &str) -> Vec<AnswerWord> {
    let mut words: Vec<AnswerWord> = Vec::new();
    let mut begins_clause = true;
    let mut is_open = false;
    for (at, c) in message.char_indices() {
        let is_apostrophe = matches!(c, '\'' | '’' | '‘' | '`');
        if c.is_alphanumeric() {
            match words.last_mut().filter(|_| is_open) {
                Some(word) => word.text.extend(c.to_lowercase()),
                None => words.push(AnswerWord { text: c.to_lowercase().collect(), start: at, begins_clause }),
            }
            (is_open, begins_clause) = (true, false);
        } else if is_symbol(c) {
            words.push(AnswerWord { text: c.to_string(), start: at, begins_clause });
            (is_open, begins_clause) = (false, false);
        } else if !is_apostrophe {
            is_open = false;
            begins_clause |= matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | '\n' | '–' | '—' | '…');
        }
    }
    words
}

/// Returns true for emoji and similar symbols, but not for their modifiers.
fn is_symbol(c: char) -> bool {
    let code = u32::from(c);
    (0x2190..0x3000).contains(&code) || (0x1F000..0x1F3FB).contains(&code) || (0x1F400..0x1FB00).contains(&code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tools::held::CallTarget;
    use tools::{HeldCall, ToolArguments};

    use super::*;

    fn held(titles: &[&str]) -> HeldCalls {
        let targets: Vec<_> =
            titles.iter().map(|title| CallTarget { id: json!(title), title: (*title).to_owned() }).collect();
        let ids: Vec<_> = targets.iter().map(|target| target.id.clone()).collect();
        let arguments = ToolArguments::from_iter([("task_ids".to_owned(), json!(ids))]);
        HeldCalls::new(vec![HeldCall::with_targets("delete_tasks", arguments, targets, true)]).unwrap()
    }

    #[test]
    fn agreements_have_no_phrase_and_nothing_else() {
        // AGENT-7
        let held = held(&["buy milk"]);
        for message in [
            "yes",
            "OK",
            "do it",
            "Yes please!",
            "sure",
            "yep",
            "confirm",
            "go ahead",
            "please do",
            "yes delete it",
            "ok delete",
            "yes please delete it",
            "y",
            "👍",
            "👍🏽",
            "yeah go on",
            "yes I said",
            "ok do it",
            "yes pls",
            "yes, delete the milk",
            "delete it",
            "that's fine",
            "yes delete 2 tasks please",
            "of course",
        ] {
            assert_eq!(read_answer(message, Some(&held)), ConfirmationAnswer::Agreement, "{message}");
        }
        for message in [
            "yes delete?",
            "ok show the list pls",
            "add milk",
            "the milk",
            "yes but add bread too",
            "thanks",
            "why?",
            "show my tasks",
            "delete bread",
            "is it done",
            "what",
            "ok and complete the report",
            "the second one",
            "",
        ] {
            assert_eq!(read_answer(message, Some(&held)), ConfirmationAnswer::Other, "{message}");
        }
    }

    #[test]
    fn refusals_cancel() {
        // AGENT-7
        let held = held(&["feed the hamster", "buy milk"]);
        for message in [
            "no",
            "No.",
            "nah leave it",
            "no, keep it",
            "never mind",
            "cancel that",
            "nope, not the hamster",
            "don't",
            "no wait keep them",
            "no wait, leave it",
            "don't delete them!",
            "leave it",
            "keep it",
            "hmm no",
            "actually, no thanks",
            "stop",
            "forget about it",
            "I don't want to delete the milk",
            "not the hamster",
            "👎",
            "no, I changed my mind",
            "Please don't",
            "NVM",
            "no, I still need the milk",
            "not now",
            "cancel",
        ] {
            assert_eq!(read_answer(message, Some(&held)), ConfirmationAnswer::Refusal, "{message}");
        }
        for message in ["not sure", "cancel the dentist", "don't forget to buy bread", "keep me posted", "stop codex"] {
            assert_eq!(read_answer(message, Some(&held)), ConfirmationAnswer::Other, "{message}");
        }
    }

    #[test]
    fn a_command_may_follow_a_refusal() {
        // AGENT-7
        let held = held(&["buy milk", "call mom"]);
        for (message, rest) in [
            ("no, add buy Bread", "add buy Bread"),
            ("nah leave it. show my tasks", "show my tasks"),
            ("don't delete it, complete the milk instead", "complete the milk instead"),
            ("no wait, keep them and then add eggs", "keep them and then add eggs"),
            ("nope, but mark the bread as done", "mark the bread as done"),
            ("no, only delete the first", "only delete the first"),
            ("nope, just the hallway then", "just the hallway then"),
        ] {
            assert_eq!(read_answer(message, Some(&held)), ConfirmationAnswer::RefusalThen(rest), "{message}");
        }
    }

    #[test]
    fn some_of_the_tasks_can_be_selected() {
        // AGENT-7
        let held = held(&["sweep the hallway", "mop the kitchen", "air the attic"]);
        for (message, positions) in [
            ("no, only delete the first", Some(vec![0])),
            ("nope, just the hallway then", Some(vec![0])),
            ("just the kitchen and the attic", Some(vec![1, 2])),
            ("only the last one", Some(vec![2])),
            ("no, just the first two please", Some(vec![0, 1])),
            ("only 1 and 3", Some(vec![0, 2])),
            ("no, only the garage", None),
            ("just move the attic to monday", None),
            ("the first", None),
            ("please show only the first", None),
        ] {
            assert_eq!(selected_targets(message, &held), positions, "{message}");
        }
    }
}
