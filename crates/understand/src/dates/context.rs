//! Looks ahead: decides if a word that can have other meanings is part of a date because of the piece after it.
//!
//! "9" is a time before "tomorrow", "20th" is a day before "8pm", and "christmas eve" is a day before "7pm". The piece
//! after it is parsed without looking ahead again ([`DateParts::looks_ahead`]), so each word is read a fixed number of
//! times.

use super::names::{self, DayPart};
use super::{DateParts, DatePiece, DateScan, Day, day, dispatch, parse_piece, skip_links};
use crate::lexicon;

/// Parses the piece after `end` and after the prepositions and marks there. `parts` are the pieces before it. Returns
/// the piece and its end. Returns `None` while another piece looks ahead.
fn parse_next(scan: &DateScan, end: usize, parts: &DateParts) -> Option<(DatePiece, usize)> {
    if parts.looks_ahead || end >= scan.end {
        return None;
    }
    let ahead = DateParts { looks_ahead: true, ..parts.clone() };
    let i = skip_links(scan, end);
    (end..=i).rev().find_map(|at| parse_piece(scan, at, end, &ahead))
}

/// Returns true if the piece after `end` is a single day or a repetition. Weekdays in the plural do not count, because
/// they may be counted ("3 Fridays").
pub(super) fn precedes_day(scan: &DateScan, end: usize, parts: &DateParts) -> bool {
    // "9 June" is a day.
    if names::month(scan.at(end)).is_some() || parts.names_day() {
        return false;
    }
    match parse_next(scan, end, parts) {
        Some((DatePiece::Day(Day::Fixed(_) | Day::Annual { .. } | Day::Monthly(_)), _)) => true,
        Some((DatePiece::Weekday(..) | DatePiece::PartOf(..), _)) => true,
        Some((DatePiece::Repeat(_), _)) => matches!(scan.at(end), "every" | "each" | "daily" | "weekdays" | "on"),
        _ => false,
    }
}

/// Returns true if a day can end at `end`: no noun follows, or a time does.
pub(super) fn can_day_end_at(scan: &DateScan, end: usize, parts: &DateParts) -> bool {
    scan.can_end_at(end) || precedes_time(scan, end, parts)
}

/// Returns true if a time can end at `end`: no noun follows, or a day does.
pub(super) fn can_time_end_at(scan: &DateScan, end: usize, parts: &DateParts) -> bool {
    if scan.can_end_at(end) || precedes_day(scan, end, parts) {
        return true;
    }
    // "at 9 June 5", "at 5 two weeks from now"
    !parts.names_day()
        && (day::parse_month_day(scan, end).is_some()
            || matches!(parse_next(scan, end, parts), Some((DatePiece::Day(Day::Rough(_)), _))))
}

/// Returns true if the piece after `end` is a clock time. A bare number counts only after "at" and similar words.
pub(super) fn precedes_clock(scan: &DateScan, end: usize, parts: &DateParts) -> bool {
    // A comma and a preposition that leads to no time separate two dates.
    let leads = matches!(scan.at(end), "of" | "for" | "from" | "in" | "on" | "until" | "till" | "the");
    !leads
        && matches!(
            parse_next(scan, end, parts),
            Some((DatePiece::Clock(_) | DatePiece::Shifted(..) | DatePiece::Times(..), _))
        )
}

/// Returns true if the piece after the day that ends at `end` is a clock time, or a part of the day that no noun follows.
pub(super) fn precedes_time(scan: &DateScan, end: usize, parts: &DateParts) -> bool {
    let beside = DateParts { day: Some(Day::Fixed(scan.today())), ..parts.clone() };
    match parse_next(scan, end, &beside) {
        Some((DatePiece::Clock(_) | DatePiece::Shifted(..) | DatePiece::Times(..), _)) => true,
        Some((DatePiece::Part(part), next)) => part != DayPart::Night && next > end + 1 || scan.can_end_at(next),
        _ => false,
    }
}

/// Returns true if the number at `i` can be a time although neither "at" nor "pm" states it. It must not be led by a
/// preposition. It must begin the text, or follow a mark of a sentence or a word that counts nothing: not "chapter",
/// "buy", "for" or "and".
pub(super) fn is_free_number(scan: &DateScan, i: usize, lead_start: usize) -> bool {
    if i > lead_start {
        return false;
    }
    if i == scan.start {
        return true;
    }
    if !scan.words.is_word(i - 1) {
        return matches!(scan.before(i), "," | ":" | "-" | "–" | "—" | "(" | ";" | "." | "!" | "\n");
    }
    let counted = scan.words.is_one_of(i - 1, lexicon::numbers::NUMBERED)
        || scan.words.is_one_of(i - 1, lexicon::numbers::COUNTING_VERBS);
    let function_word = super::is_function_word(scan.before(i)) || names::month(scan.before(i)).is_some();
    !counted && !function_word && !scan.before(i).starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true if a part of the day at `i` stands on its own: at the start of the text, after a mark, or after a
/// preposition. A noun before it can form a name with it: "date night".
pub(super) fn is_free_part(scan: &DateScan, i: usize, lead_start: usize) -> bool {
    i > lead_start || i == scan.start || !scan.words.is_word(i - 1) || matches!(scan.before(i), "me" | "us")
}

/// Returns true if the text begins with a piece or a preposition, and at most four words precede `i`.
pub(super) fn begins_text(scan: &DateScan, i: usize) -> bool {
    let begins =
        dispatch::parsers_for(scan.words, scan.start) != 0 || scan.phrase(scan.start, lexicon::dates::LEADS).is_some();
    begins && i <= scan.start + 4
}

/// Returns true if the piece `lead_start..end` begins the text and a day after it ends the text.
pub(super) fn precedes_last_day(scan: &DateScan, lead_start: usize, end: usize, parts: &DateParts) -> bool {
    lead_start == scan.start
        && precedes_day(scan, end, parts)
        && parse_next(scan, end, parts).is_some_and(|(_, next)| scan.covers_all(scan.start, next))
}

/// Returns true if the number at `i` is a time between the day at the start of the text and a name: "tomorrow 9
/// dentist". `lead_start` is the end of the day. A plural or a word of measure counts things ("Friday 3 eggs").
pub(super) fn precedes_name(scan: &DateScan, i: usize, lead_start: usize) -> bool {
    let next = scan.at(i + 1);
    let leading = i == lead_start && begins_text(scan, i);
    let name = scan.words.is_letters(i + 1) && next.len() > 2 && !next.ends_with('s');
    let name = name && names::month(next).is_none() && dispatch::parsers_for(scan.words, i + 1) == 0;
    leading && name && !scan.words.is_one_of(i + 1, lexicon::numbers::MEASURES)
}
