//! The verbs of commands and the nouns for tasks, reminders and lists.
//!
//! Small misspellings are accepted, because only words in the place of a command are looked up; titles never are.

use crate::lexicon;
use crate::phrases::{self, Bits, Meanings, Phrases, meanings};
use crate::spelling::resembles;
use crate::tokens::Words;

/// The kind of command that a verb gives.
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
    (Verb::Add, lexicon::verbs::ADD),
    (Verb::Put, lexicon::verbs::PUT),
    (Verb::Make, lexicon::verbs::MAKE),
    (Verb::Remind, lexicon::verbs::REMIND),
    (Verb::Show, lexicon::verbs::SHOW),
    (Verb::Delete, lexicon::verbs::DELETE),
    (Verb::Take, lexicon::verbs::TAKE),
    (Verb::Complete, lexicon::verbs::COMPLETE),
    (Verb::Mark, lexicon::verbs::MARK),
    (Verb::Change, lexicon::verbs::CHANGE),
    (Verb::Rename, lexicon::verbs::RENAME),
    (Verb::Move, lexicon::verbs::MOVE),
    (Verb::Tag, lexicon::verbs::TAG),
    (Verb::Reopen, lexicon::verbs::REOPEN),
];

const VERB_WORDS: Meanings<Verb> = meanings!(Verb, VERBS);

pub(crate) fn verb(word: &str) -> Option<Verb> {
    if let Some(verb) = exact_verb(word) {
        return Some(verb);
    }
    if word == "ad" || word == "addd" || word == "aad" {
        return Some(Verb::Add);
    }
    if word.len() < 4 || lexicon::verbs::REAL_WORDS.contains(word) {
        return None;
    }
    exact_verb(lexicon::verbs::FORGIVEN.iter().find(|known| resembles(word, known))?)
}

fn exact_verb(word: &str) -> Option<Verb> {
    VERB_WORDS.get(word)
}

/// The kind of thing that a noun names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Task,
    Reminder,
    List,
}

/// Each with whether it is a plural.
const NOUNS: &[((Noun, bool), Phrases)] = &[
    ((Noun::Task, false), lexicon::nouns::TASK),
    ((Noun::Task, true), lexicon::nouns::TASKS),
    ((Noun::List, false), lexicon::nouns::LIST),
    ((Noun::List, true), lexicon::nouns::LISTS),
    ((Noun::Reminder, false), lexicon::nouns::REMINDER),
    ((Noun::Reminder, true), lexicon::nouns::REMINDERS),
];

const NOUN_WORDS: Meanings<(Noun, bool)> = meanings!((Noun, bool), NOUNS);

/// First words of all nouns; most words are refused by it.
const NOUN_STARTS: Bits = phrases::all_firsts(&[
    NOUN_WORDS.phrases,
    lexicon::nouns::TASK_LIST,
    lexicon::nouns::TO_DO,
    lexicon::nouns::TO_DOS,
    lexicon::nouns::ACTION_ITEM,
]);

/// A word for a task, a reminder or a list at `i`, how many tokens it takes and whether it is a plural.
pub(crate) fn noun(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    if !words.may_begin_with(i, &NOUN_STARTS) && !words.at(i).starts_with("re") {
        return None;
    }
    if let Some(len) = words.phrase(i, lexicon::nouns::TASK_LIST) {
        return Some((Noun::List, len, true));
    }
    if words.phrase(i, lexicon::nouns::TO_DO).is_some()
        && !matches!(
            words.before(i),
            "need" | "have" | "has" | "how" | "want" | "going" | "supposed" | "things" | "what" | "me"
        )
    {
        return to_do(words, i);
    }
    if words.phrase(i, lexicon::nouns::TO_DOS).is_some() {
        return Some((Noun::Task, 2, true));
    }
    if let Some((noun, plural)) = NOUN_WORDS.at(words, i) {
        return Some((noun, 1, plural));
    }
    if words.phrase(i, lexicon::nouns::ACTION_ITEM).is_some() {
        return Some((Noun::Task, 2, words.at(i + 1).ends_with('s')));
    }
    let word = words.at(i);
    is_reminder(word).then(|| (Noun::Reminder, 1, word.ends_with('s')))
}

fn is_reminder(word: &str) -> bool {
    word.starts_with("re")
        && word.len() >= 6
        && word != "remainder"
        && word != "remainders"
        && (resembles(word, "reminder") || resembles(word, "reminders"))
        && !matches!(word, "remind" | "reminded" | "reminds" | "rename" | "render" | "reminding")
}

/// "to do" is a noun where an article or its like stands before it or nothing that can be done follows.
fn to_do(words: &Words, i: usize) -> Option<(Noun, usize, bool)> {
    let before = words.before(i);
    (before.is_empty() || lexicon::nouns::TO_DO_LEADS.contains(before)).then_some((Noun::Task, 2, false))
}

pub(crate) fn is_article(word: &str) -> bool {
    lexicon::grammar::ARTICLES.contains(word)
}
