//! Names of days, months and parts of the day, with short forms and common misspellings.

use jiff::civil::Weekday;

use crate::lexicon;
use crate::spelling::{edit_distance, resembles};

/// The spelling of a weekday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeekdayForm {
    Full,
    /// "mon", "thurs"
    Short,
    /// "Mondays"
    Plural,
}

/// Parses a weekday in lower case and its form. Accepts short forms ("tues") and, from six letters on, misspellings
/// with the right first letter. A word in "…days" is a plural. The possessive "Monday's" counts as the full form.
/// Returns `None` for other words, also for "sundae" and "fridge".
pub(crate) fn weekday(word: &str) -> Option<(Weekday, WeekdayForm)> {
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
        return Some((day, WeekdayForm::Short));
    }
    if word.len() < 6 {
        return None;
    }
    let (stem, form) = match word.strip_suffix("'s") {
        Some(stem) => (stem, WeekdayForm::Full),
        None if word.ends_with("days") => (word.strip_suffix('s').unwrap_or(word), WeekdayForm::Plural),
        None => (word, WeekdayForm::Full),
    };
    let index = lexicon::dates::WEEKDAYS
        .index_of(stem)
        .or_else(|| lexicon::dates::WEEKDAYS.iter().position(|name| is_misspelled(stem, name)))?;
    let day = Weekday::from_monday_zero_offset(i8::try_from(index).ok()?).ok()?;
    Some((day, form))
}

/// Returns true if a word of at least six bytes resembles the name. Similar words such as "sundae" do not count.
fn is_misspelled(word: &str, name: &str) -> bool {
    word.len() >= 6 && !matches!(word, "sundae" | "sundry" | "sunny" | "fridge") && resembles(word, name)
}

/// Parses a month in lower case. Returns its number, 1 to 12. Accepts short forms, "sept", and a possessive "'s".
/// Accepts misspellings of at least six letters for names of at least seven, and a few of April, July and August.
/// Returns `None` for any other word.
pub(crate) fn month(word: &str) -> Option<i8> {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let first = word.as_bytes().first();
    if word.len() < 3 || !matches!(first, Some(b'j' | b'f' | b'm' | b'a' | b's' | b'o' | b'n' | b'd')) {
        return None;
    }
    let index = lexicon::dates::MONTHS
        .index_of(word)
        .or_else(|| lexicon::dates::SHORT_MONTHS.index_of(word))
        .or((word == "sept").then_some(8));
    let index = index.or_else(|| {
        let long = |name: &str| name.len() >= 7 && resembles(word, name);
        if word.len() >= 6 { lexicon::dates::MONTHS.iter().position(long) } else { None }
    });
    let index = index.or(match word {
        "aprl" | "apirl" | "arpil" | "aprill" | "april's" => Some(3),
        "jully" | "juli" => Some(6),
        "agust" | "augst" | "augest" | "aug's" => Some(7),
        _ => None,
    });
    index.and_then(|n| i8::try_from(n + 1).ok())
}

/// Returns true for words that are a month or a day only in some contexts.
pub(crate) fn is_ambiguous(word: &str) -> bool {
    matches!(word, "may" | "march" | "mar" | "sun" | "sat" | "wed" | "mon" | "dec" | "jan" | "jun" | "august")
}

/// Returns true for spellings of "today".
pub(crate) fn is_today(word: &str) -> bool {
    matches!(word, "today" | "today's" | "todays" | "2day" | "todya" | "tday" | "tody" | "todayy")
}

/// Returns true for spellings of "tomorrow", including words in "to…" with up to two wrong letters.
pub(crate) fn is_tomorrow(word: &str) -> bool {
    let word = word.strip_suffix("'s").unwrap_or(word);
    lexicon::dates::TOMORROW.contains(word)
        || word.starts_with("to") && word.len() >= 6 && edit_distance(word, "tomorrow", 2).is_some()
}

/// A part of the day. [`DayPart::hour`] returns its hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DayPart {
    /// "first thing"
    First,
    Morning,
    Midday,
    Afternoon,
    Evening,
    Night,
    /// The end of the working day.
    End,
    /// "last thing at night"
    Last,
}

impl DayPart {
    /// Returns the hour that stands for the part if no clock time is given. "First thing" and the morning are 9, midday
    /// is 12, the afternoon 15. The evening is 18, the night 20, the end of the working day 17,
    /// "last thing" 22.
    pub(crate) fn hour(self) -> i8 {
        match self {
            Self::First | Self::Morning => 9,
            Self::Midday => 12,
            Self::Afternoon => 15,
            Self::Evening => 18,
            Self::Night => 20,
            Self::End => 17,
            Self::Last => 22,
        }
    }

    /// Returns the hour at which the part ends. It is 9 for "first thing", 12 for the morning, 13 for midday and 18 for
    /// the afternoon. All other parts end at 23.
    pub(crate) fn end(self) -> i8 {
        match self {
            Self::First => 9,
            Self::Morning => 12,
            Self::Midday => 13,
            Self::Afternoon => 18,
            Self::Evening | Self::Night | Self::End | Self::Last => 23,
        }
    }
}

/// Parses a part of the day from one word, possibly with "'s" or a common misspelling. The second value is true for a
/// plural ("mornings"). "eve" is the evening, "lunchtime" is midday. Never returns [`DayPart::First`],
/// [`DayPart::End`] and [`DayPart::Last`]. Returns `None` for any other word.
pub(crate) fn day_part(word: &str) -> Option<(DayPart, bool)> {
    let word = word.strip_suffix("ish").map_or(word, |word| word.trim_end_matches('-'));
    Some(match word {
        "morning" | "mornin" | "morn" | "morning's" => (DayPart::Morning, false),
        "afternoon" | "afternon" | "aftenoon" | "aft" | "arvo" | "afternoon's" => (DayPart::Afternoon, false),
        "evening" | "evenin" | "eve" | "evening's" => (DayPart::Evening, false),
        "night" | "nite" | "night's" => (DayPart::Night, false),
        "lunchtime" => (DayPart::Midday, false),
        "mornings" => (DayPart::Morning, true),
        "afternoons" => (DayPart::Afternoon, true),
        "evenings" => (DayPart::Evening, true),
        "nights" => (DayPart::Night, true),
        _ => return None,
    })
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
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

/// Parses a unit of time from second to decade, singular or plural, some also with "'s". Accepts short forms such as
/// "hr", "wk", "mo", "h" and a few misspellings of minutes. Returns `None` for any other word, also for "m" and "d".
pub(crate) fn time_unit(word: &str) -> Option<TimeUnit> {
    Some(match word {
        "second" | "seconds" | "sec" | "secs" => TimeUnit::Second,
        "minute" | "minutes" | "min" | "mins" | "minuets" | "minuts" | "minutes'" => TimeUnit::Minute,
        "hour" | "hours" | "hr" | "hrs" | "h" | "hour's" => TimeUnit::Hour,
        "day" | "days" | "day's" => TimeUnit::Day,
        "week" | "weeks" | "wk" | "wks" | "week's" => TimeUnit::Week,
        "fortnight" | "fortnights" => TimeUnit::Fortnight,
        "month" | "months" | "mth" | "mths" | "mo" | "mos" | "month's" => TimeUnit::Month,
        "quarter" | "quarters" => TimeUnit::Quarter,
        "year" | "years" | "yr" | "yrs" | "year's" => TimeUnit::Year,
        "decade" | "decades" => TimeUnit::Decade,
        _ => return None,
    })
}
