//! Moves that start from the date a task has: "two days later", "by a week", "forward an hour".

use std::ops::Range;

use super::Change;
use crate::clause::Clause;
use crate::dates::{self, Scan};
use crate::lexicon;
use crate::phrases::Phrases;
use crate::reading::Shift;

/// The move said in the stretch, and its tokens.
pub(super) fn find(clause: &Clause, range: Range<usize>, change: Change) -> Option<(Shift, Range<usize>)> {
    let scan = Scan { words: clause.words, start: clause.start, end: clause.end, now: clause.now };
    (range.start..range.end).filter(|i| !clause.is_taken(*i)).find_map(|i| {
        let (shift, end) = dates::distance(&scan, i)?;
        let (sign, end) = direction(clause, range.start, i, end, change)?;
        let turned =
            Shift { months: shift.months * sign, days: shift.days * sign, minutes: shift.minutes * i64::from(sign) };
        Some((turned, i..end))
    })
}

/// Whether the distance at `at..end` is a move: 1 for later, -1 for earlier, and where what says so ends.
fn direction(clause: &Clause, from: usize, at: usize, end: usize, change: Change) -> Option<(i32, usize)> {
    let verb = |words: Phrases| (from.saturating_sub(2)..from).any(|i| words.contains(clause.at(i)));
    let later = clause.phrase(end, lexicon::shifts::LATER);
    let earlier = clause.phrase(end, lexicon::shifts::EARLIER);
    let close = end + later.or(earlier).unwrap_or(0);
    let close = close + clause.phrase(close, lexicon::shifts::TAILS).unwrap_or(0);
    let lead = lead(clause, from, at);
    if !clause.is_spent(close..clause.end) || matches!(lead, Some("in" | "within" | "after" | "every" | "each" | "of"))
    {
        return None;
    }
    let pushed = verb(lexicon::shifts::POSTPONE_VERBS);
    let ahead = matches!(lead, Some("forward" | "up" | "ahead")) || matches!(clause.before(from), "up" | "forward");
    let led = matches!(lead, Some("by" | "back" | "out")) || ahead;
    let plain = change == Change::Due && lead != Some("to") && !verb(lexicon::shifts::SNOOZE_VERBS);
    let stretched = pushed && (lead.is_none() || lead == Some("for"));
    if later.is_none() && earlier.is_none() && !led && !stretched && !(plain && lead.is_none()) {
        return None;
    }
    let back = earlier.is_some_and(|_| !pushed || matches!(clause.at(end), "earlier" | "sooner"));
    Some((if back || later.is_none() && ahead && !pushed { -1 } else { 1 }, close))
}

/// The small word that leads to the distance.
fn lead<'a>(clause: &Clause<'a>, from: usize, at: usize) -> Option<&'a str> {
    let small =
        |i: &usize| matches!(clause.at(*i), "another" | "about" | "be" | "an" | "additional" | "extra" | "like");
    let before = (from..at).rev().find(|i| !small(i))?;
    // "forward by two days": the direction counts.
    let by = matches!(clause.at(before), "by" | "for") && before > from;
    let word = if by && matches!(clause.at(before - 1), "forward" | "up" | "ahead") { before - 1 } else { before };
    Some(clause.at(word)).filter(|word| lexicon::shifts::LEADS.contains(word))
}
