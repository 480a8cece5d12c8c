//! "every Friday at 5pm": when an agent shall run, as a schedule takes it. What a schedule cannot keep is refused, never
//! rounded.

use jiff::Zoned;
use jiff::civil::{DateTime, Time, Weekday, time};
use model::recurrence::{Frequency, Rule, Until};
use tools::Arguments;
use understand::{Expression, When};

/// When nobody says at what time of the day.
const MORNING: Time = time(9, 0, 0, 0);

/// When an agent shall run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// As the tool takes it.
    pub(super) arguments: Arguments,
    /// In the user's own words, and the time of day where they left it out.
    pub(super) words: String,
    /// What is left when the times are taken out of the text.
    pub(super) input: String,
}

/// What is said about times in what an agent shall do.
#[derive(Debug, PartialEq)]
pub(super) enum Timing {
    /// Nothing: it shall run now.
    Now,
    Planned(Plan),
    /// Something that no schedule can keep.
    TooHard,
}

/// Reads when `text` shall be done. A repetition is meant wherever it stands; a single time only at one of the ends, where
/// it is not a part of what shall be done.
pub(super) fn read(text: &str, expressions: &[Expression], now: &Zoned) -> Timing {
    let repeats = expressions.iter().find(|found| found.recurrence.is_some());
    let once = || expressions.iter().find(|found| is_at_an_end(text, found) && is_ahead(found, now));
    let Some(found) = repeats.or_else(once) else { return Timing::Now };
    let first = found.due.or(found.start);
    let arguments = match &found.recurrence {
        Some(rule) => Rule::read(rule).ok().and_then(|rule| repeated(&rule, first, now)),
        None => first.map(|first| vec![("at", local(moment(first)))]),
    };
    let Some(arguments) = arguments else { return Timing::TooHard };
    let timed = matches!(first, Some(When::Time(_))) || arguments.iter().any(|(name, _)| *name == "every");
    let words = tidy(&found.text);
    let words = if timed { words } else { format!("{words} at 9am") };
    let before = &text[..found.span.start];
    let after = &text[found.span.end..];
    let input = format!("{} {}", tidy(before), tidy(after)).trim().to_owned();
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    Timing::Planned(Plan { arguments, words, input })
}

fn is_at_an_end(text: &str, found: &Expression) -> bool {
    let is_nothing = |text: &str| !text.contains(char::is_alphanumeric);
    is_nothing(&text[..found.span.start]) || is_nothing(&text[found.span.end..])
}

fn is_ahead(found: &Expression, now: &Zoned) -> bool {
    match found.due.or(found.start) {
        Some(When::Time(time)) => time > now.datetime(),
        Some(When::Day(day)) => day > now.date(),
        None => false,
    }
}

fn tidy(text: &str) -> String {
    text.trim().trim_matches([',', ';', ':', '.', '!']).trim().to_owned()
}

fn moment(when: When) -> DateTime {
    match when {
        When::Time(time) => time,
        When::Day(day) => day.to_datetime(MORNING),
    }
}

fn local(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

type Said = Vec<(&'static str, String)>;

/// A repetition as `cron_expression` or `every`, with its start and its end; nothing where neither can say it.
fn repeated(rule: &Rule, first: Option<When>, now: &Zoned) -> Option<Said> {
    if rule.count.is_some() || ![&rule.positions, &rule.weeks, &rule.year_days].iter().all(|list| list.is_empty()) {
        return None;
    }
    let mut said = match rule.frequency {
        Frequency::Minutely | Frequency::Hourly => by_the_clock(rule, first)?,
        Frequency::Daily | Frequency::Weekly if rule.interval > 1 => every_so_many_days(rule, first, now)?,
        _ => vec![("cron_expression", cron(rule, first, now)?)],
    };
    said.extend(rule.until.map(|until| {
        let last = match until {
            Until::Day(day) => day.at(23, 59, 59, 0),
            Until::Local(time) => time,
            Until::Instant(last) => last.to_zoned(now.time_zone().clone()).datetime(),
        };
        ("end_at", local(last))
    }));
    Some(said)
}

/// Every so many hours or minutes, from now or from a time that is named.
fn by_the_clock(rule: &Rule, first: Option<When>) -> Option<Said> {
    let is_plain = rule.weekdays.is_empty() && rule.months.is_empty() && rule.month_days.is_empty();
    let minutes = if rule.frequency == Frequency::Hourly { rule.interval * 60 } else { rule.interval };
    if !is_plain || !rule.hours.is_empty() || !rule.minutes.is_empty() {
        return None;
    }
    let mut said = vec![("every", length(minutes))];
    if let Some(When::Time(first)) = first {
        said.push(("start_at", local(first)));
    }
    Some(said)
}

/// "every other Tuesday": cron has no word for it, so it is counted in days from the first one on.
fn every_so_many_days(rule: &Rule, first: Option<When>, now: &Zoned) -> Option<Said> {
    let days = match (rule.frequency, rule.weekdays.as_slice()) {
        (Frequency::Daily, []) => rule.interval,
        (Frequency::Weekly, [] | [_]) => rule.interval * 7,
        _ => return None,
    };
    let first = match first {
        Some(first) => moment(first),
        None => {
            let today = now.date().to_datetime(MORNING);
            if today > now.datetime() { today } else { now.date().tomorrow().ok()?.to_datetime(MORNING) }
        }
    };
    Some(vec![("every", length(days * 24 * 60)), ("start_at", local(first))])
}

fn length(minutes: i64) -> String {
    match minutes {
        _ if minutes % (24 * 60) == 0 => format!("{}d", minutes / (24 * 60)),
        _ if minutes % 60 == 0 => format!("{}h", minutes / 60),
        _ => format!("{minutes}m"),
    }
}

fn cron(rule: &Rule, first: Option<When>, now: &Zoned) -> Option<String> {
    let first = first.map_or_else(|| now.date().to_datetime(MORNING), moment);
    let or = |list: &[i64], usual: i64| if list.is_empty() { usual.to_string() } else { joined(list) };
    let minutes = or(&rule.minutes, i64::from(first.minute()));
    let hours = or(&rule.hours, i64::from(first.hour()));
    let mut days = "*".to_owned();
    let mut months = "*".to_owned();
    let mut weekdays = "*".to_owned();
    if !rule.months.is_empty() {
        months = joined(&rule.months);
    }
    match rule.frequency {
        Frequency::Daily => {}
        Frequency::Weekly if rule.weekdays.is_empty() => weekdays = name(first.weekday()).to_owned(),
        Frequency::Weekly => {}
        Frequency::Monthly => months = months_of(rule, first, months)?,
        Frequency::Yearly if rule.interval > 1 => return None,
        Frequency::Yearly if rule.months.is_empty() => months = first.month().to_string(),
        Frequency::Yearly => {}
        Frequency::Hourly | Frequency::Minutely => return None,
    }
    let of_month = matches!(rule.frequency, Frequency::Monthly | Frequency::Yearly);
    match (rule.month_days.as_slice(), rule.weekdays.as_slice()) {
        ([], []) if of_month => days = first.day().to_string(),
        ([], []) => {}
        ([-1], []) => days = "L".to_owned(),
        (list, []) if list.iter().all(|day| *day > 0) => days = joined(list),
        // Both at once are either of them to cron.
        ([], list) => {
            let named = list.iter().map(|(nth, day)| match nth {
                0 => Some(name(*day).to_owned()),
                -1 if of_month => Some(format!("{}L", name(*day))),
                1..=5 if of_month => Some(format!("{}#{nth}", name(*day))),
                _ => None,
            });
            weekdays = named.collect::<Option<Vec<_>>>()?.join(",");
        }
        _ => return None,
    }
    Some(format!("{minutes} {hours} {days} {months} {weekdays}"))
}

/// The months of a rule that leaves some out, which must come round to the same ones every year.
fn months_of(rule: &Rule, first: DateTime, named: String) -> Option<String> {
    match rule.interval {
        1 => Some(named),
        every @ (2 | 3 | 4 | 6) if rule.months.is_empty() => {
            let from = i64::from(first.month()) - 1;
            let mut months: Vec<_> = (0..12 / every).map(|n| (from + n * every) % 12 + 1).collect();
            months.sort_unstable();
            Some(joined(&months))
        }
        _ => None,
    }
}

fn joined(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

fn name(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "MON",
        Weekday::Tuesday => "TUE",
        Weekday::Wednesday => "WED",
        Weekday::Thursday => "THU",
        Weekday::Friday => "FRI",
        Weekday::Saturday => "SAT",
        Weekday::Sunday => "SUN",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On Sunday, December 21, 2025, at noon.
    fn timing(text: &str) -> Timing {
        let now = "2025-12-21T12:00:00[UTC]".parse().unwrap();
        read(text, &understand::expressions(text, &now), &now)
    }

    #[track_caller]
    fn planned(text: &str) -> (String, String, String) {
        let Timing::Planned(plan) = timing(text) else { panic!("{text}: {:?}", timing(text)) };
        let said: Vec<_> =
            plan.arguments.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
        (said.join(" "), plan.words, plan.input)
    }

    #[test]
    fn repetitions_become_cron_or_every() {
        for (text, said) in [
            ("tidy the changelog every Friday at 5pm", "cron_expression=0 17 * * FRI"),
            ("every Friday at 5pm", "cron_expression=0 17 * * FRI"),
            ("check every weekday at 8:30am", "cron_expression=30 8 * * MON,TUE,WED,THU,FRI"),
            ("sync every day at 8pm", "cron_expression=0 20 * * *"),
            ("sync daily", "cron_expression=0 9 * * *"),
            ("report on the 1st of every month", "cron_expression=0 9 1 * *"),
            ("report the first Monday of every month", "cron_expression=0 9 * * MON#1"),
            ("report the last Friday of every month at 4pm", "cron_expression=0 16 * * FRIL"),
            ("rotate the keys every 3 months", "cron_expression=0 9 21 3,6,9,12 *"),
            ("every 90 minutes", "every=90m"),
            ("look every hour", "every=1h"),
            ("look every other day", "every=2d start_at=2025-12-22T09:00:00"),
            ("look every other Tuesday at 9am", "every=14d start_at=2025-12-23T09:00:00"),
            ("wish a happy new year every year on January 1", "cron_expression=0 9 1 1 *"),
        ] {
            assert_eq!(planned(text).0, said, "{text}");
        }
    }

    #[test]
    fn what_is_left_is_what_shall_be_done() {
        let (_, words, input) = planned("tidy the changelog every Friday at 5pm");
        assert_eq!((words.as_str(), input.as_str()), ("every Friday at 5pm", "tidy the changelog"));
        let (_, words, input) = planned("tidy the changelog every Friday.");
        assert_eq!((words.as_str(), input.as_str()), ("every Friday at 9am", "tidy the changelog"));
        let (said, words, input) = planned("look at the queue tomorrow at 3pm");
        assert_eq!((said.as_str(), input.as_str()), ("at=2025-12-22T15:00:00", "look at the queue"));
        assert_eq!(words, "tomorrow at 3pm");
    }

    #[test]
    fn times_that_belong_to_the_work_stay_there() {
        for text in ["look at the 3pm incident in the log", "tidy the changelog", "summarise what happened today"] {
            assert_eq!(timing(text), Timing::Now, "{text}");
        }
    }

    #[test]
    fn what_no_schedule_can_keep_is_refused() {
        for text in ["tidy every other Monday and Thursday", "tidy every 5 months", "tidy every two years on May 5"] {
            assert_eq!(timing(text), Timing::TooHard, "{text}");
        }
    }
}
