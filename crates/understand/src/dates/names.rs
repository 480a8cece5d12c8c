//! Names of days, months and parts of the day, with their short forms and usual slips.

use jiff::civil::Weekday;

use crate::lexicon;
use crate::spelling::{distance, resembles};

/// A day of the week as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    /// "mon", "thurs"
    Short,
    /// "Mondays"
    Plural,
}

pub(crate) fn weekday(word: &str) -> Option<(Weekday, Form)> {
    if word.len() < 3 || !matches!(word.as_bytes().first(), Some(b'm' | b't' | b'w' | b'f' | b's')) {
        return None;
    }
    let short = match word {
        "mon" => Some(Weekday::Monday),
        "tue" | "tues" => Some(Weekday::Tuesday),
        "wed" | "weds" => Some(Weekday::Wednesday),
        "thu" | "thur" | "thurs" => Some(Weekday::Thursday),
        "fri" => Some(Weekday::Friday),
        "sat" => Some(Weekday::Saturday),
        "sun" => Some(Weekday::Sunday),
        _ => None,
    };
    if let Some(day) = short {
        return Some((day, Form::Short));
    }
    if word.len() < 6 {
        return None;
    }
    let (stem, form) = match word.strip_suffix("'s") {
        Some(stem) => (stem, Form::Full),
        None if word.ends_with("days") => (word.strip_suffix('s').unwrap_or(word), Form::Plural),
        None => (word, Form::Full),
    };
    let place = lexicon::dates::WEEKDAYS
        .place(stem)
        .or_else(|| lexicon::dates::WEEKDAYS.iter().position(|name| slipped(stem, name)))?;
    let day = Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()?;
    Some((day, form))
}

fn slipped(word: &str, name: &str) -> bool {
    word.len() >= 6 && !matches!(word, "sundae" | "sundry" | "sunny" | "fridge") && resembles(word, name)
}

/// The number of the month.
pub(crate) fn month(word: &str) -> Option<i8> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let first = word.as_bytes().first();
    if word.len() < 3 || !matches!(first, Some(b'j' | b'f' | b'm' | b'a' | b's' | b'o' | b'n' | b'd')) {
        return None;
    }
    let place = lexicon::dates::MONTHS
        .place(word)
        .or_else(|| lexicon::dates::SHORT_MONTHS.place(word))
        .or((word == "sept").then_some(8));
    let place = place.or_else(|| {
        let long = |name: &str| name.len() >= 7 && resembles(word, name);
        if word.len() >= 6 { lexicon::dates::MONTHS.iter().position(long) } else { None }
    });
    let place = place.or(match word {
        "aprl" | "apirl" | "arpil" | "aprill" | "april's" => Some(3),
        "jully" | "juli" => Some(6),
        "agust" | "augst" | "augest" | "aug's" => Some(7),
        _ => None,
    });
    place.and_then(|n| i8::try_from(n + 1).ok())
}

/// Words that are a month or a day only where something near them says so.
pub(crate) fn is_doubtful(word: &str) -> bool {
    matches!(word, "may" | "march" | "mar" | "sun" | "sat" | "wed" | "mon" | "dec" | "jan" | "jun" | "august")
}

pub(crate) fn is_today(word: &str) -> bool {
    matches!(word, "today" | "today's" | "todays" | "2day" | "todya" | "tday" | "tody" | "todayy")
}

pub(crate) fn is_tomorrow(word: &str) -> bool {
    let word = word.strip_suffix("'s").unwrap_or(word);
    lexicon::dates::TOMORROW.contains(word)
        || word.starts_with("to") && word.len() >= 6 && distance(word, "tomorrow", 2).is_some()
}

/// A part of the day; its hours are in [`Part::hour`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// "first thing"
    First,
    Morning,
    Midday,
    Afternoon,
    Evening,
    Night,
    End,
}

impl Part {
    /// The hour that stands for the part when no time is given.
    pub(crate) fn hour(self) -> i8 {
        match self {
            Self::First | Self::Morning => 9,
            Self::Midday => 12,
            Self::Afternoon => 15,
            Self::Evening => 18,
            Self::Night => 20,
            Self::End => 17,
        }
    }

    /// When it is over.
    pub(crate) fn end(self) -> i8 {
        match self {
            Self::First => 9,
            Self::Morning => 12,
            Self::Midday => 13,
            Self::Afternoon => 18,
            Self::Evening | Self::Night | Self::End => 23,
        }
    }
}

/// The part that a word names, and whether it names it in the plural ("mornings").
pub(crate) fn part(word: &str) -> Option<(Part, bool)> {
    Some(match word {
        "morning" | "mornin" | "morn" | "morning's" => (Part::Morning, false),
        "afternoon" | "afternon" | "aftenoon" | "arvo" | "afternoon's" => (Part::Afternoon, false),
        "evening" | "evenin" | "eve" | "evening's" => (Part::Evening, false),
        "night" | "nite" | "night's" => (Part::Night, false),
        "lunchtime" => (Part::Midday, false),
        "mornings" => (Part::Morning, true),
        "afternoons" => (Part::Afternoon, true),
        "evenings" => (Part::Evening, true),
        "nights" => (Part::Night, true),
        _ => return None,
    })
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Fortnight,
    Month,
    Quarter,
    Year,
    Decade,
}

pub(crate) fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "second" | "seconds" | "sec" | "secs" => Unit::Second,
        "minute" | "minutes" | "min" | "mins" | "minuets" | "minuts" | "minutes'" => Unit::Minute,
        "hour" | "hours" | "hr" | "hrs" | "h" | "hour's" => Unit::Hour,
        "day" | "days" | "day's" => Unit::Day,
        "week" | "weeks" | "wk" | "wks" | "week's" => Unit::Week,
        "fortnight" | "fortnights" => Unit::Fortnight,
        "month" | "months" | "mth" | "mths" | "mo" | "mos" | "month's" => Unit::Month,
        "quarter" | "quarters" => Unit::Quarter,
        "year" | "years" | "yr" | "yrs" | "year's" => Unit::Year,
        "decade" | "decades" => Unit::Decade,
        _ => return None,
    })
}
