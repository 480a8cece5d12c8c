//! Converts times such as "every Friday at 5pm" to the arguments of a schedule. Times that a schedule cannot represent
//! are refused, never rounded.

pub(super) mod change;

use jiff::Zoned;
use model::recurrence::RecurrenceRule;
use tools::ToolArguments;
use understand::schedule_times::{format_local, recurring_arguments, start_time};
use understand::{DayOrTime, TimeExpression};

/// The times of a new schedule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchedulePlan {
    /// The arguments of the tool.
    pub(super) arguments: ToolArguments,
    /// The text of the user, with the time of day if it was missing.
    pub(super) words: String,
    /// The text without the times.
    pub(super) input: String,
}

/// The times in the input of an agent.
#[derive(Debug, PartialEq)]
pub(super) enum InputTiming {
    /// None: the agent runs now.
    Now,
    Planned(SchedulePlan),
    /// A time that a schedule cannot represent.
    Unsupported,
}

/// Finds the times in `text`. The first recurrence is used, at any position. Without one, the first single time is used
/// that is in the future and at the start or the end of the text. Any other time belongs to the input. Without a time
/// of day, the schedule uses 9:00, which the words then contain. Returns [`InputTiming::Unsupported`] if
/// the recurrence is invalid or a schedule cannot represent it.
pub(super) fn find_timing(text: &str, expressions: &[TimeExpression], now: &Zoned) -> InputTiming {
    let recurring = expressions.iter().find(|found| found.recurrence.is_some());
    let once = || expressions.iter().find(|found| is_at_an_end(text, found) && is_ahead(found, now));
    let Some(found) = recurring.or_else(once) else { return InputTiming::Now };
    let first = found.due.or(found.start);
    let arguments = match &found.recurrence {
        Some(rule) => RecurrenceRule::parse(rule).ok().and_then(|rule| recurring_arguments(&rule, first, now)),
        None => first.map(|first| vec![("at", format_local(start_time(first)))]),
    };
    let Some(arguments) = arguments else { return InputTiming::Unsupported };
    let has_time = matches!(first, Some(DayOrTime::Time(_))) || arguments.iter().any(|(name, _)| *name == "every");
    let words = trim_punctuation(&found.text);
    let words = if has_time { words } else { format!("{words} at 9am") };
    let before = &text[..found.span.start];
    let after = &text[found.span.end..];
    let input = format!("{} {}", trim_punctuation(before), trim_punctuation(after));
    // "tomorrow at 6am to rebuild the docs"
    let input = input.trim();
    let input = input.strip_prefix("to ").or_else(|| input.strip_prefix("and ")).unwrap_or(input).trim().to_owned();
    let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    InputTiming::Planned(SchedulePlan { arguments, words, input })
}

/// Returns `true` if no letters or digits precede or none follow the expression.
fn is_at_an_end(text: &str, found: &TimeExpression) -> bool {
    let is_empty = |text: &str| !text.contains(char::is_alphanumeric);
    is_empty(&text[..found.span.start]) || is_empty(&text[found.span.end..])
}

/// Returns `true` if the time is after now, or the day after today.
fn is_ahead(found: &TimeExpression, now: &Zoned) -> bool {
    match found.due.or(found.start) {
        Some(DayOrTime::Time(time)) => time > now.datetime(),
        Some(DayOrTime::Day(day)) => day > now.date(),
        None => false,
    }
}

fn trim_punctuation(text: &str) -> String {
    text.trim().trim_matches([',', ';', ':', '.', '!']).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses Sunday, December 21, 2025, 12:00 as the current time.
    fn timing(text: &str) -> InputTiming {
        let now = "2025-12-21T12:00:00[UTC]".parse().unwrap();
        find_timing(text, &understand::find_expressions(text, &now), &now)
    }

    #[track_caller]
    fn planned(text: &str) -> (String, String, String) {
        let InputTiming::Planned(plan) = timing(text) else { panic!("{text}: {:?}", timing(text)) };
        let arguments: Vec<_> =
            plan.arguments.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
        (arguments.join(" "), plan.words, plan.input)
    }

    #[test]
    fn recurrences_become_cron_or_every() {
        for (text, arguments) in [
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
            assert_eq!(planned(text).0, arguments, "{text}");
        }
    }

    #[test]
    fn the_input_is_the_text_without_times() {
        let (_, words, input) = planned("tidy the changelog every Friday at 5pm");
        assert_eq!((words.as_str(), input.as_str()), ("every Friday at 5pm", "tidy the changelog"));
        let (_, words, input) = planned("tidy the changelog every Friday.");
        assert_eq!((words.as_str(), input.as_str()), ("every Friday at 9am", "tidy the changelog"));
        let (arguments, words, input) = planned("look at the queue tomorrow at 3pm");
        assert_eq!((arguments.as_str(), input.as_str()), ("at=2025-12-22T15:00:00", "look at the queue"));
        assert_eq!(words, "tomorrow at 3pm");
    }

    #[test]
    fn times_inside_the_input_are_ignored() {
        for text in ["look at the 3pm incident in the log", "tidy the changelog", "summarise what happened today"] {
            assert_eq!(timing(text), InputTiming::Now, "{text}");
        }
    }

    #[test]
    fn unsupported_times_are_refused() {
        for text in ["tidy every other Monday and Thursday", "tidy every 5 months", "tidy every two years on May 5"] {
            assert_eq!(timing(text), InputTiming::Unsupported, "{text}");
        }
    }
}
