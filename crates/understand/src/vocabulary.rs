//! The verbs of commands and the nouns for tasks, reminders and lists.
//!
//! Small misspellings are accepted. Only words in the position of a command are looked up, never titles.

use crate::lexicon;
use crate::phrases::{self, PhraseMap, Phrases, WordBits, phrase_map};
use crate::spelling::resembles;
use crate::tokens::TokenizedText;

/// The kind of command that a verb introduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// "add", "append": the title follows.
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

const VERB_WORDS: PhraseMap<Verb> = phrase_map!(Verb, VERBS);

/// Returns the kind of a command verb in lower case, or `None` for other words. Accepts "ad", "addd" and "aad" for
/// "add". Accepts misspellings of certain verbs in words of at least four bytes, with one edit, or two for long verbs.
/// Known words such as "clean" and "shop" are no misspellings.
pub(crate) fn verb(word: &str) -> Option<Verb> {
    if let Some(verb) = exact_verb(word) {
        return Some(verb);
    }
    if word == "ad" || word == "addd" || word == "aad" {
        return Some(Verb::Add);
    }
    if word.len() < 4 || lexicon::verbs::NOT_MISSPELLINGS.contains(word) {
        return None;
    }
    exact_verb(lexicon::verbs::MISSPELLABLE.iter().find(|known| resembles(word, known))?)
}

fn exact_verb(word: &str) -> Option<Verb> {
    VERB_WORDS.get(word)
}

/// The kind of object that a noun names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Task,
    Reminder,
    List,
}

/// Each entry contains the noun and true for a plural.
const NOUNS: &[((Noun, bool), Phrases)] = &[
    ((Noun::Task, false), lexicon::nouns::TASK),
    ((Noun::Task, true), lexicon::nouns::TASKS),
    ((Noun::List, false), lexicon::nouns::LIST),
    ((Noun::List, true), lexicon::nouns::LISTS),
    ((Noun::Reminder, false), lexicon::nouns::REMINDER),
    ((Noun::Reminder, true), lexicon::nouns::REMINDERS),
];

const NOUN_WORDS: PhraseMap<(Noun, bool)> = phrase_map!((Noun, bool), NOUNS);

/// The first words of all nouns. Rejects most words without a search.
const NOUN_STARTS: WordBits = phrases::all_firsts(&[
    NOUN_WORDS.phrases,
    lexicon::nouns::TASK_LIST,
    lexicon::nouns::TO_DO,
    lexicon::nouns::TO_DOS,
    lexicon::nouns::ACTION_ITEM,
]);

/// Returns the noun at `i`, its number of tokens, and true if it is a plural. "to do list" and similar phrases are one
/// list and count as a plural. "action item" is a task. Accepts misspellings of "reminder". "to do" counts only at the
/// start of the text or after "a", "my", "add" or a similar word. Returns `None` for other words.
pub(crate) fn noun(words: &TokenizedText, i: usize) -> Option<(Noun, usize, bool)> {
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

/// Returns true for "reminder", "reminders" and their misspellings with up to two edits. The word has at least six
/// bytes and begins with "re". "remainder", "reminded", "remind", "rename" and similar words do not count.
fn is_reminder(word: &str) -> bool {
    word.starts_with("re")
        && word.len() >= 6
        && word != "remainder"
        && word != "remainders"
        && (resembles(word, "reminder") || resembles(word, "reminders"))
        && !matches!(word, "remind" | "reminded" | "reminds" | "rename" | "render" | "reminding")
}

/// Returns "to do" as a noun if it opens the text or follows an article or a similar word.
fn to_do(words: &TokenizedText, i: usize) -> Option<(Noun, usize, bool)> {
    let before = words.before(i);
    (before.is_empty() || lexicon::nouns::TO_DO_LEADS.contains(before)).then_some((Noun::Task, 2, false))
}

/// Returns true for articles and possessives.
pub(crate) fn is_article(word: &str) -> bool {
    lexicon::grammar::ARTICLES.contains(word)
}
