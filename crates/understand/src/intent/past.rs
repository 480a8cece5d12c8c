//! Verbs of chores in the past tense: "bought milk" says that buying milk is done.

use crate::phrases::{Phrases, phrases};

/// Whether the word says that a chore was done.
pub(super) fn is_chore(word: &str) -> bool {
    const CHORES: Phrases = phrases!(
        "bought | paid | sent | made | took | wrote | fed | cut | called | phoned | emailed | mailed | texted | \
         cleaned | washed | watered | walked | mowed | booked | ordered | picked | dropped | returned | renewed | \
         submitted | signed | printed | filed | fixed | repaired | packed | shipped | cooked | baked | ironed | \
         folded | vacuumed | swept | dusted | scheduled | visited | reviewed | prepared | ran | fetched | collected | delivered | replaced | installed | painted | cleared | emptied | \
         refilled | organized | organised | sorted | registered | wrapped | sold | donated | charged"
    );
    CHORES.contains(word)
}

/// Whether the word is a past tense, after "already" or "just".
pub(super) fn is_past(word: &str) -> bool {
    is_chore(word)
        || phrases!("got | went | read | met | saw | gave | had | told | spoke").contains(word)
        || word.ends_with("ed") && word.len() > 3 && word != "need"
}

/// How many tokens a particle after the verb takes: "picked up the parcel".
pub(super) fn particle(word: &str) -> usize {
    usize::from(matches!(word, "up" | "off" | "out" | "in" | "to" | "for" | "back"))
}
