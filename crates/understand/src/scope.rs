//! Words of other trades (weather, music, money, travel, messages …): with no word for a task near, a sentence that
//! holds one of them is not about tasks.

use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::{self, Noun};

/// Whether what is to be added or created at `i` can be no task: "this song", "alarm for 7", "milk to my cart".
pub(crate) fn is_elsewhere(clause: &Clause, i: usize) -> bool {
    if clause.has_noun() {
        return false;
    }
    let heard = |k: usize| matches!(clause.before(k), "listen" | "reply" | "respond" | "subscribe" | "go");
    let place = (i + 1..clause.end).rev().find(|k| matches!(clause.at(*k), "to" | "on" | "in" | "into") && !heard(*k));
    let placed = place.is_some_and(|to| {
        (to + 1..clause.end.min(to + 5)).any(|k| lexicon::scope::MEDIA_PLACES.contains(clause.at(k)))
    });
    let start = (i..clause.end.min(i + 3))
        .find(|k| !vocabulary::is_article(clause.at(*k)) && clause.at(*k) != "new")
        .unwrap_or(clause.end);
    // "email" alone before a name is what is to be done: "email Bob".
    let ends = |at: usize| start > i || !clause.words.is_word(at) || at >= clause.end || is_joint(clause.at(at));
    placed || clause.phrase(start, lexicon::scope::MEDIA).is_some_and(|n| ends(start + n))
}

fn is_joint(word: &str) -> bool {
    matches!(word, "for" | "to" | "at" | "on" | "called" | "named" | "by" | "from" | "in")
}

/// Whether what is named at `i` is a thing of a computer, a shop or a phone and no task: "the photo", "my cart",
/// "this file".
pub(crate) fn is_thing(clause: &Clause, i: usize) -> bool {
    if clause.words.of_tasks {
        return false;
    }
    let joint = |k: &usize| {
        !clause.words.is_word(*k)
            || matches!(
                clause.at(*k),
                "to" | "from" | "with" | "for" | "on" | "in" | "as" | "off" | "into" | "and" | "at" | "so" | "please"
            )
            || clause.date_at(*k).is_some()
    };
    let end = (i..clause.end).find(joint).unwrap_or(clause.end);
    let head = clause.at(end.saturating_sub(1));
    let named = end > i
        && end - i <= 4
        && lexicon::scope::OTHER_THINGS.contains(head)
        && !clause.words.is_quoted(i)
        && !clause.has_noun();
    let verbless = end == i || vocabulary::is_article(clause.at(i)) || end - i <= 2;
    let place = (end..clause.end).rev().find(|k| matches!(clause.at(*k), "to" | "from" | "in" | "as" | "into"));
    let placed = place.is_some_and(|at| {
        let own = vocabulary::is_article(clause.at(at + 1));
        own && (at + 2..clause.end.min(at + 6))
            .any(|k| clause.phrase(k, lexicon::scope::OTHER_PLACES).is_some_and(|n| clause.is_spent(k + n..clause.end)))
    });
    named && verbless || placed
}

/// Whether it is written for a machine: a query, a line of a program.
pub(crate) fn is_code(clause: &Clause) -> bool {
    if !clause.has(lexicon::scope::CODE_SIGNS) {
        return false;
    }
    let assigns = clause.has(lexicon::scope::CODE_ASSIGNMENT);
    let marks = clause.has(lexicon::scope::CODE_PUNCTUATION) || clause.words.at(clause.end) == ";";
    clause.has(lexicon::scope::CODE_OPERATORS) && marks
        || assigns && marks && !clause.has(lexicon::scope::CODE_ARROW)
        || clause.has(lexicon::scope::CODE_OPEN_BRACE) && clause.has(lexicon::scope::CODE_CLOSE_BRACE)
}

/// Whether the word belongs to another trade.
pub(crate) fn is_foreign(word: &str) -> bool {
    lexicon::scope::FOREIGN.contains(word) || lexicon::scope::PLANS.contains(word)
}

/// Whether a "list" in the clause is one of songs or of names.
pub(crate) fn is_media(clause: &Clause) -> bool {
    clause.has(lexicon::scope::OTHER_LISTS)
}

/// Whether what stands on a list is to be bought at once.
pub(crate) fn is_order(clause: &Clause) -> bool {
    clause.has(lexicon::scope::ORDERS)
        && clause.noun_in(clause.start..clause.end).is_some_and(|noun| noun.noun != Noun::Reminder)
}

/// Whether an "alert" in the clause is a warning about the world and not a reminder.
pub(crate) fn is_warning(clause: &Clause) -> bool {
    clause.has(lexicon::scope::WARNING_TOPICS)
}
