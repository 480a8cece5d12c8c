//! Sentences about schedules. The times come from the stored schedule, never from an utterance.

use jiff::Zoned;
use jiff::civil::Time;
use model::words::{clock_words, recurrence_words};
use serde_json::Value;

use super::super::{MAX_LISTED, MAX_OPTIONS};
use super::{local_minute, local_time, shortened, text};

/// Confirms a new schedule: "Scheduled 'check the build' with codex: every weekday at 7:30am, next tomorrow (Wed 25 Nov)
/// at 7:30am." `data` is the answer of the tool.
pub(crate) fn scheduled(data: &Value, now: &Zoned) -> String {
    let agent = data["agent"].as_str().unwrap_or(text(data, "agent_id"));
    format!("Scheduled '{}' with {agent}: {}.", text(data, "name"), times_with_next(&data["schedule"], now))
}

/// Returns "every weekday at 7:30am, next tomorrow (Wed 25 Nov) at 7:30am", or only the time of a single run.
fn times_with_next(schedule: &Value, now: &Zoned) -> String {
    let times = schedule_times(schedule, now);
    match local_time(&schedule["next_execution"], now) {
        Some(next) if schedule["at"].is_null() => format!("{times}, next {next}"),
        _ => times,
    }
}

/// Describes the times of a schedule: "every Friday at 5pm", "every 90 minutes", "tomorrow (Wed 25 Nov) at 6am". Names
/// the time zone of the schedule if it is not that of the user. A cron expression without words is quoted.
pub(crate) fn schedule_times(schedule: &Value, now: &Zoned) -> String {
    if let Some(at) = local_time(&schedule["at"], now) {
        return at;
    }
    if let Some(every) = schedule["every"].as_str() {
        return interval_words(every);
    }
    let cron = text(schedule, "cron_expression");
    let words = cron_words(cron).unwrap_or_else(|| format!("at the times '{cron}'"));
    let zone = text(schedule, "time_zone");
    let is_same_zone = zone.is_empty() || now.time_zone().iana_name().is_none_or(|known| known == zone);
    if is_same_zone { words } else { format!("{words} ({zone})") }
}

/// Describes an interval such as `1h30m`: "every 90 minutes".
fn interval_words(every: &str) -> String {
    let mut minutes = 0i64;
    let mut number = String::new();
    for character in every.chars() {
        if character.is_ascii_digit() {
            number.push(character);
            continue;
        }
        let unit = match character {
            'w' => 7 * 24 * 60,
            'd' => 24 * 60,
            'h' => 60,
            'm' => 1,
            _ => return format!("every {every}"),
        };
        minutes += number.parse::<i64>().unwrap_or_default() * unit;
        number.clear();
    }
    let (count, unit) = match minutes {
        0 => return format!("every {every}"),
        _ if minutes % (7 * 24 * 60) == 0 => (minutes / (7 * 24 * 60), "week"),
        _ if minutes % (24 * 60) == 0 => (minutes / (24 * 60), "day"),
        _ if minutes % 60 == 0 => (minutes / 60, "hour"),
        _ => (minutes, "minute"),
    };
    if count == 1 { format!("every {unit}") } else { format!("every {count} {unit}s") }
}

/// Describes a cron expression with one time of day, or with steps of minutes or hours. Returns `None` for others.
fn cron_words(cron: &str) -> Option<String> {
    let cron = match cron {
        "@hourly" => return Some("every hour".to_owned()),
        "@daily" | "@midnight" => "0 0 * * *",
        "@weekly" => "0 0 * * SUN",
        "@monthly" => "0 0 1 * *",
        "@yearly" | "@annually" => "0 0 1 1 *",
        cron => cron,
    };
    let fields: Vec<&str> = cron.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else { return None };
    if [day, month, weekday].iter().all(|field| **field == "*") {
        let step = |field: &str| field.strip_prefix("*/").and_then(|step| step.parse::<i64>().ok());
        match (step(minute), step(hour), minute.parse::<i64>().ok()) {
            (Some(step), _, _) if *hour == "*" => return Some(format!("every {step} minutes")),
            (_, Some(step), Some(0)) => return Some(format!("every {step} hours")),
            (_, _, Some(0)) if *hour == "*" => return Some("every hour".to_owned()),
            (_, _, Some(minute)) if *hour == "*" => return Some(format!("every hour at {minute} minutes past")),
            _ => {}
        }
    }
    let clock = Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    let months = if *month == "*" { String::new() } else { format!(";BYMONTH={}", numbers(month)?) };
    let rule = match (*day, *weekday) {
        ("*", "*") => format!("FREQ=DAILY{months}"),
        ("*", days) if days.contains('#') || days.ends_with('L') => {
            let days: Option<Vec<String>> = days.split(',').map(numbered_day).collect();
            format!("FREQ=MONTHLY{months};BYDAY={}", days?.join(","))
        }
        ("*", days) => format!("FREQ=WEEKLY{months};BYDAY={}", weekdays(days)?.join(",")),
        ("L", "*") => format!("FREQ=MONTHLY{months};BYMONTHDAY=-1"),
        (day, "*") if *month != "*" => format!("FREQ=YEARLY{months};BYMONTHDAY={}", numbers(day)?),
        (day, "*") => format!("FREQ=MONTHLY;BYMONTHDAY={}", numbers(day)?),
        _ => return None,
    };
    let words = recurrence_words(&rule);
    (!words.starts_with("by the rule")).then(|| format!("{words} at {}", clock_words(clock)))
}

/// Returns a list of numbers, or `None` if a part is a range, a step or a name.
fn numbers(field: &str) -> Option<&str> {
    field.chars().all(|c| c.is_ascii_digit() || c == ',').then_some(field)
}

const WEEKDAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/// Returns the weekdays of a cron field in the form of a recurrence rule. Returns `None` for steps.
fn weekdays(field: &str) -> Option<Vec<String>> {
    let mut days = Vec::new();
    for part in field.split(',') {
        match part.split_once('-') {
            None => days.push(WEEKDAYS[weekday(part)?].to_owned()),
            Some((from, to)) => {
                let (from, to) = (weekday(from)?, weekday(to)?);
                let to = if to < from { to + 7 } else { to };
                days.extend((from..=to).map(|day| WEEKDAYS[day % 7].to_owned()));
            }
        }
    }
    Some(days)
}

/// Returns the number of a weekday, 0 for Sunday.
fn weekday(name: &str) -> Option<usize> {
    let number = name.parse::<usize>().ok().filter(|number| *number <= 7).map(|number| number % 7);
    let upper = name.to_uppercase();
    number.or_else(|| WEEKDAYS.iter().position(|known| upper.len() >= 3 && upper.starts_with(known)))
}

/// Returns `2FR` for `FRI#2`, and `-1FR` for `FRIL`.
fn numbered_day(day: &str) -> Option<String> {
    match (day.split_once('#'), day.strip_suffix('L')) {
        (Some((name, position)), _) => Some(format!("{}{}", position.parse::<i64>().ok()?, WEEKDAYS[weekday(name)?])),
        (None, Some(name)) => Some(format!("-1{}", WEEKDAYS[weekday(name)?])),
        (None, None) => None,
    }
}

/// Formats a timestamp in the time zone of `now`. Returns `None` if it is missing or invalid.
pub(crate) fn schedule_time(time: &Value, now: &Zoned) -> Option<String> {
    let time = local_minute(time, now)?;
    let day = model::words::short_day_words(time.date(), now.date());
    Some(format!("{day} at {}", clock_words(time.time())))
}

/// Lists the schedules, numbered, with their agent and state: paused, running, the next execution, or no more runs.
/// `format_time` formats the time of the next execution. Shows at most [`MAX_LISTED`] and the number of the rest.
/// Returns "Nothing is scheduled." if there are none.
pub(crate) fn schedules(schedules: &[Value], format_time: impl Fn(&Value) -> Option<String>) -> String {
    if schedules.is_empty() {
        return "Nothing is scheduled.".to_owned();
    }
    let line = |(n, schedule): (usize, &Value)| {
        let state = match (text(schedule, "state"), format_time(&schedule["next_execution"])) {
            ("paused", _) => "paused".to_owned(),
            ("executing", Some(next)) => format!("running, next {next}"),
            ("executing", None) => "running".to_owned(),
            (_, Some(next)) => format!("next {next}"),
            (_, None) => "no more runs".to_owned(),
        };
        format!("{}. {} ({}, {state})", n + 1, text(schedule, "name"), text(schedule, "agent_id"))
    };
    let lines: Vec<_> = schedules.iter().take(MAX_LISTED).enumerate().map(line).collect();
    let more = schedules.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let count = schedules.len();
    let noun = if count == 1 { "schedule" } else { "schedules" };
    format!("You have {count} {noun}:\n{}{more}", lines.join("\n"))
}

/// Lists the paused schedules of all `total` ones.
pub(crate) fn paused_schedules(paused: &[Value], total: usize, now: &Zoned) -> String {
    match paused {
        [] if total == 0 => "Nothing is scheduled.".to_owned(),
        [] => "None of your schedules is paused.".to_owned(),
        [one] => format!("'{}' is paused.", text(one, "name")),
        several => schedules(several, |time| schedule_time(time, now)),
    }
}

/// Reports that no schedule runs in the period that the user named.
pub(crate) fn nothing_scheduled_then(period: &str) -> String {
    format!("No schedule runs {}.", period.trim_start_matches("for ").trim_start_matches("on "))
}

/// Confirms a pause. `data` is the answer of the tool. `has_until` is set if the user named an end of the pause.
pub(crate) fn pause_done(data: &Value, has_until: bool) -> String {
    let name = text(data, "name");
    match (data["changed"] == false, has_until) {
        (true, _) => schedule_already(name, "paused"),
        (false, false) => format!("Okay! '{name}' is paused."),
        (false, true) => format!("Okay! '{name}' is paused. It stays paused until you say 'resume {name}'."),
    }
}

/// Confirms that a schedule was resumed. `data` is the answer of the tool.
pub(crate) fn resume_done(data: &Value, now: &Zoned) -> String {
    let name = text(data, "name");
    match data["changed"] == false {
        true => schedule_already(name, "active"),
        false => schedule_resumed(name, local_time(&data["next_execution"], now).as_deref()),
    }
}

pub(crate) fn schedule_resumed(name: &str, next: Option<&str>) -> String {
    match next {
        Some(next) => format!("Okay! '{name}' is active again. The next run is {next}."),
        None => format!("Okay! '{name}' is active again."),
    }
}

fn schedule_already(name: &str, state: &str) -> String {
    format!("'{name}' is {state} already.")
}

/// Confirms that a schedule was started outside of its times.
pub(crate) fn schedule_started(data: &Value) -> String {
    let agent = data["agent"].as_str().unwrap_or(text(data, "agent_id"));
    format!("Okay! I've started '{}' with {agent}.", text(data, "name"))
}

/// Confirms a change with the new values.
pub(crate) fn schedule_changed(data: &Value, now: &Zoned) -> String {
    let name = text(data, "name");
    if data["changed"] == false {
        return format!("'{name}' is like that already.");
    }
    let schedule = &data["schedule"];
    let paused = if text(schedule, "state") == "paused" { " It is still paused." } else { "" };
    let input = shortened(text(schedule, "input"));
    let input = if input.is_empty() || input == name { String::new() } else { format!(" '{input}'") };
    format!("Updated! '{name}' runs {}{input}: {}.{paused}", text(schedule, "agent_id"), times_with_next(schedule, now))
}

/// Confirms the deletion of a schedule.
pub(crate) fn schedule_deleted(name: &str) -> String {
    format!("I've deleted the schedule '{name}' and its history.")
}

/// Answers when a schedule runs next.
pub(crate) fn next_run(schedule: &Value, now: &Zoned) -> String {
    let name = text(schedule, "name");
    match (text(schedule, "state"), local_time(&schedule["next_execution"], now)) {
        ("paused", _) => format!("'{name}' is paused, so it does not run. Say 'resume {name}' to resume it."),
        (_, Some(next)) if !schedule["at"].is_null() => format!("'{name}' runs {next}."),
        (_, Some(next)) => format!("'{name}' runs next {next} ({}).", schedule_times(schedule, now)),
        (_, None) => format!("'{name}' has no more runs."),
    }
}

/// Describes the state of a schedule: if it is active, its last run and its next run.
pub(crate) fn schedule_state(schedule: &Value, now: &Zoned) -> String {
    let name = text(schedule, "name");
    let state = match text(schedule, "state") {
        "paused" => match local_time(&schedule["paused_at"], now) {
            Some(since) => format!("'{name}' is paused since {since}."),
            None => format!("'{name}' is paused."),
        },
        "executing" => format!("'{name}' is active and running now."),
        "created" => format!("'{name}' has not started yet."),
        _ => format!("'{name}' is active: {}.", schedule_times(schedule, now)),
    };
    let last = match (local_time(&schedule["last_execution"], now), text(schedule, "last_status")) {
        (None, _) => "It has not run yet.".to_owned(),
        (Some(last), "success") => format!("It ran last {last} and succeeded."),
        (Some(last), "failure") => format!("It ran last {last} and failed."),
        (Some(last), "timeout") => format!("It ran last {last} and took too long."),
        (Some(last), "cancelled") => format!("It ran last {last} and was cancelled."),
        (Some(last), _) => format!("It ran last {last}."),
    };
    let next = match (text(schedule, "state"), local_time(&schedule["next_execution"], now)) {
        ("paused", _) | (_, None) => String::new(),
        (_, Some(next)) => format!(" The next run is {next}."),
    };
    format!("{state} {last}{next}")
}

/// Explains why a schedule ran or did not run. `data` is the answer of the tool.
pub(crate) fn schedule_explanation(data: &Value, now: &Zoned) -> String {
    let name = text(data, "name");
    let time = |key: &str| local_time(&data[key], now);
    let reason = data["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
    let due = time("due_at");
    let is_paused = text(data, "state") == "paused";
    let decided = match (due, text(data, "decision")) {
        (Some(due), "fired" | "run") => Some(format!("'{name}' was due {due} and ran{reason}.")),
        (Some(due), "caught_up") => Some(format!("'{name}' was due {due} but ran late{reason}.")),
        (Some(due), "skipped") => Some(format!("'{name}' was due {due} but was skipped{reason}.")),
        (Some(due), "missed") => Some(format!("'{name}' was due {due} but was missed{reason}.")),
        (Some(due), "paused") => Some(format!("'{name}' was due {due} but was paused{reason}.")),
        (Some(due), "refused") => Some(format!("'{name}' was due {due} but could not start{reason}.")),
        (Some(due), "queued") => Some(format!("'{name}' was due {due} and waits for its previous run.")),
        (Some(due), _) if !is_paused => Some(format!("'{name}' was due {due}, but no run is recorded.")),
        _ => None,
    };
    let manual = time("manual_run").map(|at| format!(" It was started by hand {at}.")).unwrap_or_default();
    let outlook = match (is_paused, decided.is_some(), time("paused_at"), time("next_execution")) {
        (true, true, Some(since), _) => format!("It is paused since {since}."),
        (true, true, None, _) => "It is paused.".to_owned(),
        (true, false, Some(since), _) => format!("'{name}' did not run because it is paused since {since}."),
        (true, false, None, _) => format!("'{name}' did not run because it is paused."),
        (false, true, _, Some(next)) => format!("The next run is {next}."),
        (false, false, _, Some(next)) => format!("'{name}' had no time to run until then. The next run is {next}."),
        (false, _, _, None) => format!("'{name}' has no more runs."),
    };
    match decided {
        Some(decided) => format!("{decided}{manual} {outlook}"),
        None => format!("{outlook}{manual}"),
    }
}

pub(crate) fn no_schedule(name: &str) -> String {
    format!("I couldn't find a schedule about '{name}'.")
}

/// Asks which schedule is meant, or reports that nothing is scheduled. Names at most [`MAX_OPTIONS`] schedules.
pub(crate) fn which_schedule<'a>(options: impl IntoIterator<Item = &'a Value>) -> String {
    let names: Vec<_> = options.into_iter().filter_map(|schedule| schedule["name"].as_str()).collect();
    let names: Vec<_> = names.iter().take(MAX_OPTIONS).map(|name| format!("'{name}'")).collect();
    if names.is_empty() { "Nothing is scheduled.".to_owned() } else { format!("Which schedule: {}?", names.join(", ")) }
}

/// Asks for the new times of a schedule.
pub(crate) fn which_times(schedule: &Value, now: &Zoned) -> String {
    format!("'{}' runs {}. When should it run?", text(schedule, "name"), schedule_times(schedule, now))
}

/// Asks for complete times, because those of the message do not fit the old ones.
pub(crate) fn unclear_times(schedule: &Value, now: &Zoned) -> String {
    format!(
        "I can't change '{}' like that: it runs {}. Name all its times, such as 'every Friday at 5pm'. When should it run?",
        text(schedule, "name"),
        schedule_times(schedule, now)
    )
}

pub(crate) fn more_schedules(count: usize) -> String {
    format!("{count} more were not changed. Ask again to change them too.")
}

pub(crate) fn unsupported_times() -> String {
    "I can't schedule that: such times can't be kept. Try something like 'every Friday at 5pm' or 'every 90 minutes'."
        .to_owned()
}

pub(crate) fn may_not_schedule() -> String {
    "I can't schedule agents for you: that takes an administrator. I can have it done now.".to_owned()
}

/// Reports the refusal of the tool that creates schedules.
pub(crate) fn refused_schedule(message: &str) -> String {
    format!("I couldn't schedule that: {}.", plain_fields(message))
}

/// Reports the refusal of a tool that changes schedules.
pub(crate) fn refused_change(message: &str) -> String {
    format!("That didn't work: {}.", plain_fields(message))
}

/// Replaces the names of fields by readable ones.
fn plain_fields(message: &str) -> String {
    let plain = message.replace("cron_expression", "time").replace("end_at", "end").replace("agent_id", "agent");
    plain.trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_of_schedules_have_words() {
        // TRUST-1
        let now: Zoned = "2026-11-24T16:30:00[Europe/Berlin]".parse().unwrap();
        for (schedule, words) in [
            (json!({"cron_expression": "30 7 * * MON,TUE,WED,THU,FRI"}), "every weekday at 7:30am"),
            (json!({"cron_expression": "0 17 * * 5"}), "every Friday at 5pm"),
            (json!({"cron_expression": "0 9 * * 1-5"}), "every weekday at 9am"),
            (json!({"cron_expression": "0 2 * * *"}), "every day at 2am"),
            (json!({"cron_expression": "@daily"}), "every day at 12am"),
            (json!({"cron_expression": "0 9 1 * *"}), "every month on the 1st at 9am"),
            (json!({"cron_expression": "0 16 * * FRIL"}), "on the last Friday of every month at 4pm"),
            (json!({"cron_expression": "*/15 * * * *"}), "every 15 minutes"),
            (json!({"cron_expression": "0 9,17 * * *"}), "at the times '0 9,17 * * *'"),
            (json!({"cron_expression": "0 9 * * *", "time_zone": "Asia/Tokyo"}), "every day at 9am (Asia/Tokyo)"),
            (json!({"every": "1h30m"}), "every 90 minutes"),
            (json!({"every": "2d"}), "every 2 days"),
            (json!({"every": "14d"}), "every 2 weeks"),
            (json!({"at": "2026-11-25T05:00:00Z"}), "tomorrow (Wed 25 Nov) at 6am"),
        ] {
            assert_eq!(schedule_times(&schedule, &now), words, "{schedule}");
        }
    }
}
