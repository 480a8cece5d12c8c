//! Feasts that people put into lists. They are dates only after "on", "by" and their like: a Christmas tree is none.
//!
//! Only feasts that a rule finds; those of the moon's calendars are not known here.

use jiff::civil::{Date, Weekday};

use super::{Scan, calendar, day};
use crate::phrases::{Phrases, phrases};

type Rule = fn(i16) -> Option<Date>;

/// Feasts on the same day of every year.
const FIXED: &[(Phrases, i8, i8)] = &[
    (phrases!("new year's day | new years day | new year's | new years | new year"), 1, 1),
    (phrases!("epiphany | three kings day | three kings' day"), 1, 6),
    (phrases!("burns night"), 1, 25),
    (phrases!("australia day"), 1, 26),
    (phrases!("groundhog day"), 2, 2),
    (phrases!("valentine's day | valentines day | valentine's | valentines | valentine ' s day"), 2, 14),
    (phrases!("leap day"), 2, 29),
    (phrases!("international women's day | women's day"), 3, 8),
    (phrases!("pi day"), 3, 14),
    (phrases!("ides of march"), 3, 15),
    (
        phrases!(
            "st patrick's day | st . patrick's day | st patricks day | saint patrick's day | saint patricks day | \
             st . patricks day | st paddy's day | paddy's day | st patrick's | st patricks"
        ),
        3,
        17,
    ),
    (phrases!("april fools day | april fool's day | april fools ' day | april fools | april fool's"), 4, 1),
    (phrases!("tax day"), 4, 15),
    (phrases!("earth day"), 4, 22),
    (phrases!("st george's day | st . george's day"), 4, 23),
    (phrases!("anzac day"), 4, 25),
    (phrases!("star wars day"), 5, 4),
    (phrases!("cinco de mayo"), 5, 5),
    (phrases!("flag day"), 6, 14),
    (phrases!("juneteenth"), 6, 19),
    (phrases!("canada day"), 7, 1),
    (phrases!("independence day"), 7, 4),
    (phrases!("bastille day"), 7, 14),
    (phrases!("halloween | hallowe'en"), 10, 31),
    (phrases!("all saints day | all saints ' day | all saint's day"), 11, 1),
    (phrases!("all souls day | all souls ' day"), 11, 2),
    (phrases!("guy fawkes night | guy fawkes day | guy fawkes | bonfire night"), 11, 5),
    (phrases!("veterans day | veteran's day | veterans ' day | remembrance day | armistice day"), 11, 11),
    (phrases!("st andrew's day | st . andrew's day"), 11, 30),
    (phrases!("st nicholas day | saint nicholas day"), 12, 6),
    (phrases!("christmas eve | xmas eve"), 12, 24),
    (phrases!("christmas day | christmas | xmas | xmas day"), 12, 25),
    (phrases!("boxing day"), 12, 26),
    (phrases!("kwanzaa"), 12, 26),
    (phrases!("new year's eve | new years eve | nye"), 12, 31),
];

/// Feasts on a day that a rule gives.
const MOVING: &[(Phrases, Rule)] = &[
    (phrases!("mlk day | martin luther king day | martin luther king jr day"), |y| nth(y, 1, 3, Weekday::Monday)),
    (phrases!("super bowl sunday | super bowl"), |y| nth(y, 2, 2, Weekday::Sunday)),
    (phrases!("presidents day | president's day | presidents ' day"), |y| nth(y, 2, 3, Weekday::Monday)),
    (phrases!("shrove tuesday | pancake day | pancake tuesday | mardi gras | fat tuesday"), |y| from_easter(y, -47)),
    (phrases!("ash wednesday"), |y| from_easter(y, -46)),
    (phrases!("palm sunday"), |y| from_easter(y, -7)),
    (phrases!("maundy thursday"), |y| from_easter(y, -3)),
    (phrases!("good friday"), |y| from_easter(y, -2)),
    (phrases!("easter sunday | easter day | easter"), |y| from_easter(y, 0)),
    (phrases!("easter monday"), |y| from_easter(y, 1)),
    (phrases!("ascension day"), |y| from_easter(y, 39)),
    (phrases!("pentecost | whit sunday | whitsun"), |y| from_easter(y, 49)),
    (phrases!("whit monday"), |y| from_easter(y, 50)),
    (phrases!("mother's day | mothers day | mothers ' day"), |y| nth(y, 5, 2, Weekday::Sunday)),
    (phrases!("victoria day"), |y| Date::new(y, 5, 25).ok()?.nth_weekday(-1, Weekday::Monday).ok()),
    (phrases!("memorial day"), |y| nth(y, 5, -1, Weekday::Monday)),
    (phrases!("father's day | fathers day | fathers ' day"), |y| nth(y, 6, 3, Weekday::Sunday)),
    (phrases!("labor day | labour day"), |y| nth(y, 9, 1, Weekday::Monday)),
    (phrases!("columbus day | indigenous peoples day | indigenous peoples ' day | indigenous people's day"), |y| {
        nth(y, 10, 2, Weekday::Monday)
    }),
    (phrases!("election day"), |y| calendar::plus_days(nth(y, 11, 1, Weekday::Monday)?, 1)),
    (phrases!("thanksgiving day | thanksgiving | turkey day"), |y| nth(y, 11, 4, Weekday::Thursday)),
    (phrases!("black friday"), |y| calendar::plus_days(nth(y, 11, 4, Weekday::Thursday)?, 1)),
    (phrases!("cyber monday"), |y| calendar::plus_days(nth(y, 11, 4, Weekday::Thursday)?, 4)),
    (phrases!("giving tuesday"), |y| calendar::plus_days(nth(y, 11, 4, Weekday::Thursday)?, 5)),
];

/// The words that a name of a feast begins with.
pub(super) const FIRST: Phrases = phrases!(
    "new | epiphany | three | burns | australia | groundhog | valentine's | valentines | valentine | leap | \
     international | women's | pi | ides | st | saint | paddy's | april | tax | earth | anzac | star | cinco | flag | \
     juneteenth | canada | independence | bastille | halloween | hallowe'en | all | guy | bonfire | veterans | \
     veteran's | remembrance | armistice | christmas | xmas | boxing | kwanzaa | nye | mlk | martin | super | \
     presidents | president's | shrove | pancake | mardi | fat | ash | palm | maundy | good | easter | ascension | \
     pentecost | whit | whitsun | mother's | mothers | victoria | memorial | father's | fathers | labor | labour | \
     columbus | indigenous | election | thanksgiving | turkey | black | cyber | giving"
);

fn nth(year: i16, month: i8, n: i8, day: Weekday) -> Option<Date> {
    Date::new(year, month, 1).ok()?.nth_weekday_of_month(n, day).ok()
}

fn from_easter(year: i16, days: i64) -> Option<Date> {
    calendar::plus_days(easter(year)?, days)
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

/// A feast beside words that make a date of it.
pub(crate) fn read(scan: &Scan, i: usize, own: usize) -> Option<(Date, usize)> {
    let at = i + usize::from(matches!(scan.at(i), "next" | "this") && !scan.words.is_one_of(i, FIRST));
    let (date, end) = named(scan, at)?;
    let led = i > own && !matches!(scan.before(i), "for" | "the" | "of") || at > i;
    // "call mom Easter Monday": what is named so can only be a day.
    const LAST: Phrases =
        phrases!("day | eve | night | sunday | monday | tuesday | wednesday | thursday | friday | nye");
    let told = LAST.contains(scan.before(end)) || scan.before(end).starts_with("20") || scan.before(end) == "year";
    let day = told && end == scan.end && scan.before(i) != "for" && i == own;
    (led && scan.closes(end) || day || scan.is_whole(i, end)).then_some((date, end))
}

/// The next day of the feast whose name stands at `i`, or that of the year behind it.
pub(crate) fn named(scan: &Scan, i: usize) -> Option<(Date, usize)> {
    if !scan.words.is_one_of(i, FIRST) {
        return None;
    }
    let fixed = FIXED.iter().enumerate().filter_map(|(n, (names, ..))| Some((scan.phrase(i, *names)?, n)));
    let moving =
        MOVING.iter().enumerate().filter_map(|(n, (names, _))| Some((scan.phrase(i, *names)?, FIXED.len() + n)));
    let (len, n) = fixed.chain(moving).max_by_key(|(len, _)| *len)?;
    let (year, end) = day::year(scan, i + len);
    let date = match year {
        Some(year) => on(n, year)?,
        None => (0..9)
            .filter_map(|more| on(n, scan.today().year().checked_add(more)?))
            .find(|date| *date >= scan.today())?,
    };
    Some((date, end))
}

/// The day of the n-th feast in a year.
fn on(n: usize, year: i16) -> Option<Date> {
    match FIXED.get(n) {
        Some((_, month, day)) => Date::new(year, *month, *day).ok(),
        None => MOVING.get(n.checked_sub(FIXED.len())?).and_then(|(_, rule)| rule(year)),
    }
}
