//! Times that people name by what they do then: "after lunch", "before bed", "at sunset".
//!
//! Within a sentence most of them belong to what is to be done and stay in the title.

use super::Scan;
use super::clock::{Clock, Half};
use crate::lexicon;

const LUNCH: [i8; 3] = [11, 12, 13];

/// The hour before, at and after it; 0 where that is not said.
fn hours(scan: &Scan, i: usize) -> Option<([i8; 3], usize)> {
    let (hours, name) = match scan.at(i) {
        "breakfast" => ([7, 8, 9], lexicon::habits::BREAKFAST),
        "lunch" | "lunchtime" => (LUNCH, lexicon::habits::LUNCH),
        "dinner" | "supper" | "dinnertime" | "suppertime" => ([17, 18, 19], lexicon::habits::DINNER),
        "work" => ([8, 0, 17], lexicon::habits::WORK),
        "school" => ([8, 0, 15], lexicon::habits::SCHOOL),
        "bed" => ([21, 0, 0], lexicon::habits::BED),
        "bedtime" => ([21, 21, 0], lexicon::habits::BEDTIME),
        "dawn" | "sunrise" => ([6, 6, 6], lexicon::habits::SUNRISE),
        "sunset" | "dusk" | "sundown" => ([18, 18, 18], lexicon::habits::SUNSET),
        _ => return None,
    };
    Some((hours, i + scan.phrase(i, name)?))
}

pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Option<(Clock, usize)> {
    let (hours, end) = hours(scan, i).filter(|_| i > own)?;
    let place = match scan.before(i) {
        "before" => 0,
        "at" | "by" | "around" | "during" | "until" | "till" | "over" => 1,
        "after" => 2,
        _ => return None,
    };
    let hour = hours.get(place).copied().filter(|hour| *hour > 0)?;
    // "buy milk after work" is how people name the errand itself; only an answer, or a time of the sun, says when.
    let sun = hours.first() == hours.last() || place == 1 && hours == LUNCH;
    let closed = scan.closes(end) && !matches!(scan.at(end), "with" | "at" | "in" | "for" | "of" | "and" | "is" | "my");
    (scan.is_whole(own, end) || sun && closed).then_some((Clock { hour, minute: 0, second: 0, half: Half::Exact }, end))
}
