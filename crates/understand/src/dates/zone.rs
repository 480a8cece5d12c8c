//! Parses time zones after a clock time: "EST", "Pacific time", "Europe/Berlin", "London time".
//!
//! An abbreviation names a region, not an offset: people write "9am EST" in summer, too, and mean 9 in New York.

use jiff::tz::TimeZone;

use super::DateScan;
use crate::lexicon;
use crate::phrases::{PhraseMap, Phrases, phrase_map};

const NAMES: &[(&str, Phrases)] = &[
    ("UTC", lexicon::zones::UTC),
    ("America/New_York", lexicon::zones::EASTERN),
    ("America/Chicago", lexicon::zones::CENTRAL),
    ("America/Denver", lexicon::zones::MOUNTAIN),
    ("America/Los_Angeles", lexicon::zones::PACIFIC),
    ("America/Anchorage", lexicon::zones::ALASKA),
    ("Pacific/Honolulu", lexicon::zones::HAWAII),
    ("Europe/London", lexicon::zones::BRITISH),
    ("Europe/Berlin", lexicon::zones::CENTRAL_EUROPEAN),
    ("Europe/Athens", lexicon::zones::EASTERN_EUROPEAN),
    ("Europe/Moscow", lexicon::zones::MOSCOW),
    ("Asia/Kolkata", lexicon::zones::INDIAN),
    ("Asia/Tokyo", lexicon::zones::JAPANESE),
    ("Asia/Singapore", lexicon::zones::SINGAPORE),
    ("Asia/Hong_Kong", lexicon::zones::HONG_KONG),
    ("Australia/Sydney", lexicon::zones::EASTERN_AUSTRALIAN),
    ("Australia/Perth", lexicon::zones::WESTERN_AUSTRALIAN),
    ("Pacific/Auckland", lexicon::zones::NEW_ZEALAND),
];

const ZONES: PhraseMap<&'static str> = phrase_map!(&'static str, NAMES);

/// Returns true if a zone begins at `i`. Does not look it up.
pub(super) fn is_zone(scan: &DateScan, i: usize) -> bool {
    find_name(scan, i).is_some() || region_end(scan, i).is_some_and(|end| region(scan, i, end).is_some())
}

/// Parses a zone at `i`, possibly in parentheses. Returns it and the next position. Returns `None` for other words and
/// for a region that the time zone database does not have.
pub(super) fn parse(scan: &DateScan, i: usize) -> Option<(TimeZone, usize)> {
    let at = i + usize::from(scan.at(i) == "(");
    let (zone, end) = match find_name(scan, at) {
        Some((name, end)) => (TimeZone::get(name).ok()?, end),
        None => {
            let end = region_end(scan, at)?;
            (region(scan, at, end)?, end)
        }
    };
    match at > i {
        true => Some((zone, end + usize::from(scan.at(end) == ")"))),
        false => Some((zone, end)),
    }
}

/// Returns the zone that an abbreviation or a name at `i` stands for, and the next position. Returns `None` for an
/// abbreviation of two letters before a noun.
fn find_name(scan: &DateScan, i: usize) -> Option<(&'static str, usize)> {
    let (name, len) = ZONES.phrase(scan.words, i).filter(|(_, len)| i + len <= scan.end)?;
    // "9am PT session"
    let is_clear = scan.at(i).len() > 2 || scan.can_end_at(i + len);
    is_clear.then_some((name, i + len))
}

/// Returns the end of a name such as "Europe/Berlin" or "America/Argentina/Salta": words and slashes without spaces.
fn region_end(scan: &DateScan, i: usize) -> Option<usize> {
    let mut end = i + 1;
    while scan.words.is_adjacent_to_next(end - 1)
        && scan.at(end) == "/"
        && scan.words.is_adjacent_to_next(end)
        && scan.words.is_word(end + 1)
        && end + 1 < scan.end
        && end < i + 5
    {
        end += 2;
    }
    (end > i + 1).then_some(end)
}

/// Looks up the name of the tokens `i..end` in the time zone database. Ignores case.
fn region(scan: &DateScan, i: usize, end: usize) -> Option<TimeZone> {
    TimeZone::get(scan.words.text(i..end)).ok()
}
