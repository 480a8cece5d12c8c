//! Feasts that people put into lists. They are dates only after "on", "by" and their like: a Christmas tree is none.

use jiff::civil::{Date, Weekday};

use super::{Scan, calendar};
use crate::phrases::{Phrases, phrases};

type Rule = fn(i16) -> Option<Date>;

const FEASTS: &[(Phrases, Rule)] = &[
    (phrases!("christmas eve"), |y| Date::new(y, 12, 24).ok()),
    (phrases!("christmas day | christmas | xmas"), |y| Date::new(y, 12, 25).ok()),
    (phrases!("boxing day"), |y| Date::new(y, 12, 26).ok()),
    (phrases!("new year's eve | new years eve"), |y| Date::new(y, 12, 31).ok()),
    (phrases!("new year's day | new years day | new year's | new years | new year"), |y| Date::new(y, 1, 1).ok()),
    (phrases!("halloween"), |y| Date::new(y, 10, 31).ok()),
    (phrases!("valentine's day | valentines day"), |y| Date::new(y, 2, 14).ok()),
    (phrases!("st patrick's day | st . patrick's day"), |y| Date::new(y, 3, 17).ok()),
    (phrases!("independence day"), |y| Date::new(y, 7, 4).ok()),
    (phrases!("veterans day"), |y| Date::new(y, 11, 11).ok()),
    (phrases!("thanksgiving day | thanksgiving"), |y| nth(y, 11, 4, Weekday::Thursday)),
    (phrases!("black friday"), |y| calendar::plus_days(nth(y, 11, 4, Weekday::Thursday)?, 1)),
    (phrases!("labor day"), |y| nth(y, 9, 1, Weekday::Monday)),
    (phrases!("memorial day"), |y| nth(y, 5, -1, Weekday::Monday)),
    (phrases!("mother's day | mothers day"), |y| nth(y, 5, 2, Weekday::Sunday)),
    (phrases!("father's day | fathers day"), |y| nth(y, 6, 3, Weekday::Sunday)),
    (phrases!("good friday"), |y| calendar::plus_days(easter(y)?, -2)),
    (phrases!("easter monday"), |y| calendar::plus_days(easter(y)?, 1)),
    (phrases!("easter sunday | easter"), easter),
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
    let named = FEASTS.iter().filter_map(|(names, rule)| scan.phrase(i, *names).map(|n| (rule, n)));
    let (rule, len) = named.max_by_key(|(_, n)| *n)?;
    if !(led && scan.closes(i + len) || scan.is_whole(i, i + len)) {
        return None;
    }
    let year = scan.today().year();
    let date = rule(year).filter(|date| *date >= scan.today()).or_else(|| rule(year.checked_add(1)?))?;
    Some((date, i + len))
}
