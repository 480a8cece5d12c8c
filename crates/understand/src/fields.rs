//! Values of fields in words: "tomorrow 9am", "every friday at 5pm", "next week".
//!
//! Replaces words by the exact form that a field stores. An exact form (ISO 8601, RRULE, cron) keeps its meaning. A text
//! that is neither stays as it is, so that the check of the field refuses it and names the field.

mod drafts;

#[cfg(test)]
mod tests;

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use model::due::{DueDate, DuePeriod};
use model::recurrence::{self, RecurrenceRule};
use model::schedule::ScheduleDraft;

use crate::parsed::DayOrTime;
use crate::parser::UtteranceParser;
use crate::schedule_times::{format_local, recurring_arguments, start_time};
use crate::when::{When, parse_when};

/// Longer texts are not parsed as words.
const MAX_WORDS_CHARS: usize = 200;

/// An input with fields that may contain words.
pub trait WordFields {
    /// Replaces words by exact values.
    fn resolve_words(&mut self, reader: &FieldReader);
}

/// Parses words in fields at one time, in one time zone and with one order of numeric dates.
#[derive(Clone, Debug)]
pub struct FieldReader {
    now: Zoned,
    parser: UtteranceParser,
}

impl FieldReader {
    /// Returns a reader for the time zone of `now`.
    pub fn new(now: Zoned, parser: UtteranceParser) -> Self {
        Self { now, parser }
    }

    /// Returns the same reader for another time zone.
    #[must_use]
    pub fn in_zone(&self, zone: TimeZone) -> Self {
        Self { now: self.now.with_time_zone(zone), parser: self.parser }
    }

    /// Returns the input with exact values.
    pub fn resolve<T: WordFields>(&self, mut input: T) -> T {
        input.resolve_words(self);
        input
    }

    /// Replaces a day or a time in words. A repetition is not replaced.
    pub fn resolve_time(&self, field: &mut Option<String>) {
        if let Some(when) = field.as_deref().and_then(|text| self.time_words(text))
            && when.recurrence.is_none()
            && let Some(due) = when.due.and_then(|due| self.exact(due))
        {
            *field = Some(due);
        }
    }

    /// Replaces a time and a recurrence in words. A time that repeats ("every friday at 5pm") also sets the recurrence if
    /// none is given. A recurrence with a first day or time also sets the time if none is given, and its time of day
    /// completes a day. `keeps_day` is true for changes of something that has a time: only a time of day replaces it.
    pub fn resolve_recurring(&self, time: &mut Option<String>, recurrence: &mut Option<String>, keeps_day: bool) {
        let rule = recurrence.as_deref().and_then(|text| self.rule_words(text));
        if recurrence.is_none()
            && let Some(when) = time.as_deref().and_then(|text| self.time_words(text))
            && let (Some(rule), Some(due)) = (&when.recurrence, when.due.and_then(|due| self.exact(due)))
        {
            *recurrence = Some(rule.clone());
            *time = Some(due);
            return;
        }
        self.resolve_time(time);
        let Some(When { due, recurrence: Some(rule), .. }) = rule else { return };
        *recurrence = Some(rule);
        match (&time, due) {
            (None, Some(first @ DayOrTime::Time(_))) => *time = self.exact(first),
            (None, Some(first @ DayOrTime::Day(_))) if !keeps_day => *time = self.exact(first),
            (Some(day), Some(DayOrTime::Time(first))) => {
                if let Ok(day) = day.trim().parse::<Date>()
                    && !day_has_time(time.as_deref())
                {
                    *time = self.exact(DayOrTime::Time(day.to_datetime(first.time()))).or_else(|| time.take());
                }
            }
            _ => {}
        }
    }

    /// Replaces a period of days in words: "friday", "next week", "friday..sunday", "this week".
    pub fn resolve_period(&self, field: &mut Option<String>) {
        let Some(text) = field.as_deref() else { return };
        let is_exact = |text: &str| DuePeriod::parse("due", text, self.now.timestamp(), self.now.time_zone()).is_ok();
        let keyword = text.trim().replace([' ', '-'], "_");
        if is_exact(text) || text.chars().count() > MAX_WORDS_CHARS {
            return;
        }
        let resolved = match text.split_once("..") {
            _ if is_exact(&keyword) => Some(keyword),
            Some((first, last)) => self.range(first, last),
            None => self.days(text).map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}..{last}"),
            }),
        };
        *field = resolved.filter(|resolved| is_exact(resolved)).or_else(|| field.take());
    }

    /// Replaces the times of a schedule in words. `when` becomes `cron_expression`, `every` or `at`, unless one of them is
    /// given too, or a schedule cannot represent it. Times are in the zone of the schedule.
    pub(crate) fn resolve_schedule(&self, draft: &mut ScheduleDraft) {
        let zone = draft.time_zone.as_deref().and_then(|name| TimeZone::get(name.trim()).ok());
        let reader = zone.map_or_else(|| self.clone(), |zone| self.in_zone(zone));
        for field in [&mut draft.at, &mut draft.start_at, &mut draft.end_at] {
            reader.resolve_moment(field);
        }
        let is_given = draft.cron_expression.is_some() || draft.every.is_some() || draft.at.is_some();
        let Some(times) = draft.when.as_deref().filter(|_| !is_given).and_then(|when| reader.schedule_words(when))
        else {
            return;
        };
        draft.when = None;
        for (name, value) in times {
            match name {
                "cron_expression" => draft.cron_expression = Some(value),
                "every" => draft.every = Some(value),
                "at" => draft.at = Some(value),
                "start_at" => draft.start_at = draft.start_at.take().or(Some(value)),
                _ => draft.end_at = draft.end_at.take().or(Some(value)),
            }
        }
    }

    /// Replaces a time of day in words. A day without a time is not replaced.
    fn resolve_moment(&self, field: &mut Option<String>) {
        let text = field.clone();
        self.resolve_time(field);
        if field != &text && field.as_deref().is_some_and(|value| value.parse::<Date>().is_ok() && !value.contains('T'))
        {
            *field = text;
        }
    }

    /// Returns the arguments of a schedule for its times in words. A day without a time means 9am.
    fn schedule_words(&self, text: &str) -> Option<Vec<(&'static str, String)>> {
        let when = self.parse(text)?;
        match &when.recurrence {
            Some(rule) => recurring_arguments(&RecurrenceRule::parse(rule).ok()?, when.due, &self.now),
            None => when.due.map(|due| vec![("at", format_local(start_time(due)))]),
        }
    }

    /// Returns the inclusive days from `first` to `last`. An empty text is no limit.
    fn range(&self, first: &str, last: &str) -> Option<String> {
        let day = |text: &str, last: bool| match text.trim() {
            "" => Some(String::new()),
            text => {
                let days = text.parse().map(|day| (day, day)).ok().or_else(|| self.days(text))?;
                Some(if last { days.1 } else { days.0 }.to_string())
            }
        };
        Some(format!("{}..{}", day(first, false)?, day(last, true)?))
    }

    /// Returns the first and the last day of a period in words, without times and repetitions.
    fn days(&self, text: &str) -> Option<(Date, Date)> {
        let when = self.parse(&text.replace('_', " "))?;
        match (when.due?, when.end) {
            (DayOrTime::Day(first), None) => Some((first, first)),
            (DayOrTime::Day(first), Some(DayOrTime::Day(end))) => Some((first, end.yesterday().ok()?.max(first))),
            _ => None,
        }
        .filter(|_| when.recurrence.is_none())
    }

    /// Returns the value of a time in words, or `None` if the text is exact or no time.
    fn time_words(&self, text: &str) -> Option<When> {
        let is_exact = DueDate::parse("time", text, self.now.time_zone());
        let is_malformed = is_exact.is_err_and(|invalid| invalid.violations.iter().all(|it| it.rule == "date"));
        if is_malformed && !begins_as_iso(text) { self.parse(text) } else { None }
    }

    /// Returns the value of a repetition in words, or `None` if the text is an RRULE or no repetition.
    fn rule_words(&self, text: &str) -> Option<When> {
        if recurrence::normalize("recurrence", text).is_ok() {
            return None;
        }
        self.parse(text).filter(|when| when.recurrence.is_some())
    }

    fn parse(&self, text: &str) -> Option<When> {
        let is_short = text.chars().count() <= MAX_WORDS_CHARS;
        is_short.then(|| parse_when(text, &self.now, self.parser)).flatten()
    }

    /// Returns the stored form of a day, or of a local time with its offset.
    fn exact(&self, due: DayOrTime) -> Option<String> {
        match due {
            DayOrTime::Day(day) => Some(day.to_string()),
            DayOrTime::Time(time) => {
                let time = time.to_zoned(self.now.time_zone().clone()).ok()?;
                Some(DueDate::from_zoned(&time).to_string())
            }
        }
    }
}

/// Returns true if the text is a date with a time.
fn day_has_time(text: Option<&str>) -> bool {
    text.is_some_and(|text| text.contains(['T', 't', ':', ' ']))
}

/// Returns true if the text begins like an ISO 8601 date with a time. A malformed one is a mistake and no words.
fn begins_as_iso(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    digits(0..4)
        && bytes.get(4) == Some(&b'-')
        && digits(5..7)
        && bytes.get(7) == Some(&b'-')
        && digits(8..10)
        && bytes.get(10).is_none_or(|byte| byte.eq_ignore_ascii_case(&b't'))
}
