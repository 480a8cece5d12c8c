//! Feasts that people put into lists. They are dates only after "on", "by" and their like: "buy a Christmas tree" is not.

use jiff::civil::{Date, Weekday};

use super::{Scan, calendar};

type Rule = fn(i16) -> Option<Date>;

const FEASTS: &[(&str, Rule)] = &[
    ("christmas eve", |y| Date::new(y, 12, 24).ok()),
    ("christmas day", |y| Date::new(y, 12, 25).ok()),
    ("christmas", |y| Date::new(y, 12, 25).ok()),
    ("xmas", |y| Date::new(y, 12, 25).ok()),
    ("boxing day", |y| Date::new(y, 12, 26).ok()),
    ("new year's eve", |y| Date::new(y, 12, 31).ok()),
    ("new years eve", |y| Date::new(y, 12, 31).ok()),
    ("new year's day", |y| Date::new(y, 1, 1).ok()),
    ("new years day", |y| Date::new(y, 1, 1).ok()),
    ("new year's", |y| Date::new(y, 1, 1).ok()),
    ("new year", |y| Date::new(y, 1, 1).ok()),
    ("halloween", |y| Date::new(y, 10, 31).ok()),
    ("valentine's day", |y| Date::new(y, 2, 14).ok()),
    ("valentines day", |y| Date::new(y, 2, 14).ok()),
    ("st patrick's day", |y| Date::new(y, 3, 17).ok()),
    ("independence day", |y| Date::new(y, 7, 4).ok()),
    ("veterans day", |y| Date::new(y, 11, 11).ok()),
    ("thanksgiving day", |y| nth(y, 11, 4, Weekday::Thursday)),
    ("thanksgiving", |y| nth(y, 11, 4, Weekday::Thursday)),
    ("black friday", |y| calendar::plus_days(nth(y, 11, 4, Weekday::Thursday)?, 1)),
    ("labor day", |y| nth(y, 9, 1, Weekday::Monday)),
    ("memorial day", |y| nth(y, 5, -1, Weekday::Monday)),
    ("mother's day", |y| nth(y, 5, 2, Weekday::Sunday)),
    ("mothers day", |y| nth(y, 5, 2, Weekday::Sunday)),
    ("father's day", |y| nth(y, 6, 3, Weekday::Sunday)),
    ("fathers day", |y| nth(y, 6, 3, Weekday::Sunday)),
    ("good friday", |y| calendar::plus_days(easter(y)?, -2)),
    ("easter monday", |y| calendar::plus_days(easter(y)?, 1)),
    ("easter sunday", easter),
    ("easter", easter),
];

fn nth(year: i16, month: i8, n: i8, day: Weekday) -> Option<Date> {
    Date::new(year, month, 1).ok()?.nth_weekday_of_month(n, day).ok()
}

/// Easter Sunday of the Gregorian calendar, by the rule of Gauss.
fn easter(year: i16) -> Option<Date> {
    let y = i32::from(year);
    let (golden, century) = (y % 19, y / 100);
    let moon = (century - century / 4 - (8 * century + 13) / 25 + 19 * golden + 15) % 30;
    let full = moon - (moon / 28) * (1 - (29 / (moon + 1)) * ((21 - golden) / 11));
    let weekday = (y + y / 4 + full + 2 - century + century / 4) % 7;
    let offset = full - weekday;
    let month = 3 + (offset + 40) / 44;
    let day = offset + 28 - 31 * (month / 4);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Option<(Date, usize)> {
    let led = i > own && !matches!(scan.before(i), "for" | "the" | "of");
    let (rule, len) = FEASTS.iter().find_map(|(name, rule)| scan.words.spells(i, name).map(|n| (rule, n)))?;
    if !(led && scan.closes(i + len) || scan.is_whole(i, i + len)) {
        return None;
    }
    let year = scan.today().year();
    let date = rule(year).filter(|date| *date >= scan.today()).or_else(|| rule(year.checked_add(1)?))?;
    Some((date, i + len))
}
