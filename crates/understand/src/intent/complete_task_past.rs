//! Tells verbs of finished chores from other verbs in the past tense: "bought milk" completes "buy milk", "wanted milk"
//! completes nothing.

use crate::clause::Clause;
use crate::lexicon;

/// Whether the word says that a chore was done.
pub(super) fn is_chore(word: &str) -> bool {
    lexicon::complete_task::CHORES_DONE.contains(word)
}

/// Participles that are not the past tense: "the letter is written".
pub(super) fn is_participle(word: &str) -> bool {
    is_chore(word) && !lexicon::complete_task::NOT_PARTICIPLES.contains(word)
        || lexicon::complete_task::PARTICIPLES.contains(word)
}

/// Verbs that say little by themselves: only with the thing they were done to.
pub(super) fn is_plain_past(word: &str) -> bool {
    lexicon::complete_task::PLAIN_PASTS.contains(word)
}

/// Whether the word is a past tense, after "already" or "just".
pub(super) fn is_past(word: &str) -> bool {
    is_chore(word)
        || is_plain_past(word)
        || lexicon::complete_task::SPEECH_PASTS.contains(word)
        || word.ends_with("ed") && word.len() > 3 && word != "need"
}

/// Words that end in "ed" and speak of what somebody felt, knew or began, or of a change and not of a chore.
fn is_no_deed(word: &str) -> bool {
    lexicon::complete_task::NO_DEEDS.contains(word)
}

/// "defrosted", "trimmed": any verb in the past that can be a chore.
pub(super) fn is_deed(word: &str) -> bool {
    is_chore(word) || word.len() > 4 && word.ends_with("ed") && !is_no_deed(word)
}

/// How many tokens a particle after the verb takes: "picked up the parcel".
pub(super) fn particle_length(word: &str) -> usize {
    usize::from(matches!(word, "up" | "off" | "out" | "in" | "to" | "for" | "back" | "away" | "down" | "with"))
}

/// Words that say by themselves that something is finished; how many tokens they take at `i`.
pub(super) fn finished_length(clause: &Clause, i: usize) -> Option<usize> {
    clause.phrase(i, lexicon::complete_task::FINISHED)
}
