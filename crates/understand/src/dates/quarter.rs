//! Parses quarters and seasons: "Q3", "in the fall", "next summer". Seasons are those of the northern hemisphere. `i`
//! is the position of the name.

use jiff::civil::Date;

use super::{DateScan, calendar, day};

/// Parses a quarter or a season at `i`, possibly with a year after it ("Q3 2027", "summer next year"). Both last three
/// months. Seasons begin on March 20, June 21, September 23 and December 21. Returns the first day, the exclusive end,
/// and the next position. `by` is -1 for the last one that has ended, 1 for the next one that has not begun. Any other
/// value selects the current or coming one. A year takes precedence over `by`. Does not check the context.
pub(super) fn parse(scan: &DateScan, i: usize, by: i64) -> Option<(Date, Date, usize)> {
    let (month, first) = match scan.at(i) {
        "q1" => (1, 1),
        "q2" => (4, 1),
        "q3" => (7, 1),
        "q4" => (10, 1),
        "spring" => (3, 20),
        "summer" => (6, 21),
        "autumn" | "fall" => (9, 23),
        "winter" => (12, 21),
        _ => return None,
    };
    let (year, end) = day::parse_year(scan, i + 1);
    let bounds = |year: i16| {
        let start = Date::new(year, month, first).ok()?;
        Some((start, calendar::plus_months(start, 3)?))
    };
    let this = scan.today().year();
    let (start, last) = match year {
        Some(year) => bounds(year)?,
        None => {
            let years = [this.checked_sub(2)?, this.checked_sub(1)?, this, this.checked_add(1)?, this.checked_add(2)?];
            let mut all = years.into_iter().filter_map(bounds);
            match by {
                -1 => all.rfind(|(_, end)| *end <= scan.today())?,
                1 => all.find(|(start, _)| *start > scan.today())?,
                _ => all.find(|(_, end)| *end > scan.today())?,
            }
        }
    };
    Some((start, last, end))
}

/// Returns true if the word is a season. Some have other meanings: "fall", "spring".
pub(super) fn is_season(word: &str) -> bool {
    matches!(word, "spring" | "summer" | "autumn" | "fall" | "winter")
}
