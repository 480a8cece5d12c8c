//! Distinguishes verbs of finished chores from other past tenses: "bought milk" completes "buy milk", "wanted milk"
//! completes no task.

use crate::clause::Clause;
use crate::lexicon;

/// Returns true if the word is the past tense of a chore.
pub(super) fn is_chore(word: &str) -> bool {
    lexicon::complete_task::CHORES_DONE.contains(word)
}

/// Returns true for participles: "the letter is written". Excludes forms that are only past tenses.
pub(super) fn is_participle(word: &str) -> bool {
    is_chore(word) && !lexicon::complete_task::NOT_PARTICIPLES.contains(word)
        || lexicon::complete_task::PARTICIPLES.contains(word)
}

/// Returns true for general verbs, which need a definite object.
pub(super) fn is_plain_past(word: &str) -> bool {
    lexicon::complete_task::PLAIN_PASTS.contains(word)
}

/// Returns true if the word is a past tense after "already" or "just": a known form or any word in "ed".
pub(super) fn is_past(word: &str) -> bool {
    is_chore(word)
        || is_plain_past(word)
        || lexicon::complete_task::SPEECH_PASTS.contains(word)
        || word.ends_with("ed") && word.len() > 3 && word != "need"
}

/// Returns true for words in "ed" that describe a feeling, a thought, a beginning or a change instead of a chore.
fn is_not_deed(word: &str) -> bool {
    lexicon::complete_task::NOT_CHORES.contains(word)
}

/// Returns true for any past tense that can be a chore: "defrosted", "trimmed".
pub(super) fn is_deed(word: &str) -> bool {
    is_chore(word) || word.len() > 4 && word.ends_with("ed") && !is_not_deed(word)
}

/// Returns 1 if the word is a particle after a verb ("picked up the parcel"), else 0.
pub(super) fn particle_length(word: &str) -> usize {
    usize::from(matches!(word, "up" | "off" | "out" | "in" | "to" | "for" | "back" | "away" | "down" | "with"))
}

/// Returns the number of tokens of a word at `i` that means "finished".
pub(super) fn finished_length(clause: &Clause, i: usize) -> Option<usize> {
    clause.phrase(i, lexicon::complete_task::FINISHED)
}

/// Returns true for a past tense of a finished deed: "resolved it", "fixed it". Feelings ("loved it") and changes of a
/// task ("moved it", "deleted it") do not count.
pub(super) fn is_chore_report(word: &str) -> bool {
    let other = matches!(
        word,
        "loved"
            | "liked"
            | "hated"
            | "enjoyed"
            | "wanted"
            | "needed"
            | "missed"
            | "changed"
            | "moved"
            | "deleted"
            | "added"
            | "removed"
            | "cancelled"
            | "canceled"
            | "delayed"
            | "postponed"
            | "renamed"
            | "snoozed"
            | "said"
            | "saw"
            | "read"
            | "put"
            | "cut"
            | "set"
            | "shut"
            | "heard"
            | "found"
            | "left"
            | "told"
            | "had"
            | "forgot"
            | "tried"
            | "started"
            | "lost"
            | "pushed"
            | "tagged"
            | "marked"
            | "reopened"
    );
    !other && !word.ends_with("eed") && crate::tense::base_form(word).is_some_and(|base| base != word)
}
