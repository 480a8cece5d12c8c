//! Parses shifts relative to the current due date: "two days later", "by a week", "forward an hour".
//!
//! `range` are the tokens after the verb.

use std::ops::Range;

use super::UpdateKind;
use crate::clause::Clause;
use crate::dates::{self, DateScan};
use crate::lexicon;
use crate::parsed::DateShift;
use crate::phrases::Phrases;

/// Returns the first distance in the range that is a shift and does not begin with a consumed token, and its tokens.
/// The tokens include the direction word after it, not the one before it. The shift is negative for an earlier date.
/// `change` is the kind that the verb implies: "move … two days" is a shift without a direction. Changes nothing.
/// Returns `None` if there is no shift.
pub(super) fn find(clause: &Clause, range: Range<usize>, change: UpdateKind) -> Option<(DateShift, Range<usize>)> {
    let scan = DateScan { words: clause.words, start: clause.start, end: clause.end, now: clause.now };
    (range.start..range.end).filter(|i| !clause.is_consumed(*i)).find_map(|i| {
        let (shift, end) = dates::parse_shift(&scan, i)?;
        let (sign, end) = direction(clause, range.start, i, end, change)?;
        let turned = DateShift {
            months: shift.months * sign,
            days: shift.days * sign,
            minutes: shift.minutes * i64::from(sign),
        };
        Some((turned, i..end))
    })
}

/// Returns the sign of the shift and the end of its direction word: 1 for later, -1 for earlier. `from` is the position
/// after the verb, and `at..end` is the distance. Needs "later", "back" or "earlier", "up" and similar words after it,
/// or "by", "back", "out", "forward", "up" or "ahead" before it. "push" and similar verbs without a lead
/// ([`leading_word`]) or with "for" need none of them. Neither does [`UpdateKind::Due`] without a lead, except for
/// "snooze", "reschedule" and "reset". It is earlier for "earlier" and "sooner", and for "forward", "up" and "ahead"
/// without a verb such as "push". Returns `None` after "in", "within", "after", "every", "each" or "of", or if other
/// words follow in the clause.
fn direction(clause: &Clause, from: usize, at: usize, end: usize, change: UpdateKind) -> Option<(i32, usize)> {
    let verb = |words: Phrases| (from.saturating_sub(2)..from).any(|i| words.contains(clause.at(i)));
    let later = clause.phrase(end, lexicon::shifts::LATER);
    let earlier = clause.phrase(end, lexicon::shifts::EARLIER);
    let close = end + later.or(earlier).unwrap_or(0);
    let close = close + clause.phrase(close, lexicon::shifts::TAILS).unwrap_or(0);
    let lead = leading_word(clause, from, at);
    if !clause.is_exhausted(close..clause.end)
        || matches!(lead, Some("in" | "within" | "after" | "every" | "each" | "of"))
    {
        return None;
    }
    let pushed = verb(lexicon::shifts::POSTPONE_VERBS);
    let ahead = matches!(lead, Some("forward" | "up" | "ahead")) || matches!(clause.before(from), "up" | "forward");
    let led = matches!(lead, Some("by" | "back" | "out")) || ahead;
    let plain = change == UpdateKind::Due && lead != Some("to") && !verb(lexicon::shifts::SNOOZE_VERBS);
    let stretched = pushed && (lead.is_none() || lead == Some("for"));
    if later.is_none() && earlier.is_none() && !led && !stretched && !(plain && lead.is_none()) {
        return None;
    }
    let back = earlier.is_some_and(|_| !pushed || matches!(clause.at(end), "earlier" | "sooner"));
    Some((if back || later.is_none() && ahead && !pushed { -1 } else { 1 }, close))
}

/// Returns the word that introduces the distance at `at`, such as "by", "to" or "forward". Skips fillers such as
/// "another". In "forward by two days", it is "forward". Returns `None` if the word is not a known lead, or if no word
/// from `from` on precedes the distance.
fn leading_word<'a>(clause: &Clause<'a>, from: usize, at: usize) -> Option<&'a str> {
    let small =
        |i: &usize| matches!(clause.at(*i), "another" | "about" | "be" | "an" | "additional" | "extra" | "like");
    let before = (from..at).rev().find(|i| !small(i))?;
    // In "forward by two days", the direction counts.
    let by = matches!(clause.at(before), "by" | "for") && before > from;
    let word = if by && matches!(clause.at(before - 1), "forward" | "up" | "ahead") { before - 1 } else { before };
    Some(clause.at(word)).filter(|word| lexicon::shifts::LEADS.contains(word))
}
