//! Sets, lists, moves and cancels reminders, and answers questions about them (TRUST-2). All functions fail with the
//! next tool call if its result is not known yet.

use jiff::civil::{DateTime, Time, time};
use jiff::{Timestamp, ToSpan, Unit, Zoned};
use model::words;
use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};
use understand::{DateShift, DayOrTime, LeadTime, MissingSlot, ParsedCommand, TaskTarget};

use super::commands::{CommandReply, refused, task_of, time_text};
use super::follow_up::ResolvedCommand;
use super::lookup::{LookupResult, StatusPreference, find};
use super::{CallResult, OfflinePolicy, PendingCall, due_times, fragment};
use crate::mentions::TaskMention;
use crate::wording;

/// The time of day of a reminder for a day, if the tool does not know a setting for it.
const DEFAULT_TIME: Time = time(9, 0, 0, 0);
/// The maximum number of reminders in a reply.
const MAX_SHOWN: usize = 20;

/// A scheduled reminder, or the due time of a task that rings.
pub(super) struct Ring {
    /// `None` for the due time of a task.
    pub(super) reminder: Option<Value>,
    pub(super) task: Value,
    pub(super) title: String,
    pub(super) next: Option<Timestamp>,
    words: String,
}

/// Returns the words of the next ring of a reminder: "tomorrow (Wed 18 Nov) at 9am, every day".
pub(super) fn ring_words(reminder: &Value, now: &Zoned) -> Option<String> {
    let next: Timestamp = reminder["next_at"].as_str()?.parse().ok()?;
    let local = next.to_zoned(now.time_zone().clone()).datetime();
    let mut text = wording::on_day(&words::time_words(local, now.date()));
    if let Some(rule) = reminder["recurrence"].as_str() {
        text.push_str(&format!(", {}", words::recurrence_words(rule)));
    } else if let Some(repeats) =
        wording::repeats(reminder["repeat_interval_minutes"].as_i64(), reminder["repeat_count"].as_i64())
    {
        text.push_str(&format!(", {repeats}"));
    }
    Some(text)
}

/// Returns the scheduled reminders, the next one first, and the due times of open tasks that ring.
pub(super) fn rings(policy: &mut OfflinePolicy<'_>) -> Result<Vec<Ring>, PendingCall> {
    let now = policy.prompt.request.now.clone();
    let mut found = Vec::new();
    if let Some(spec) = policy.spec(ToolKind::ListReminders)
        && let CallResult::Done(data) = policy.call(spec, ToolArguments::new())?
    {
        for reminder in data["reminders"].as_array().into_iter().flatten() {
            found.push(Ring {
                title: reminder["title"].as_str().unwrap_or_default().to_owned(),
                task: reminder["task"].clone(),
                next: reminder["next_at"].as_str().and_then(|at| at.parse().ok()),
                words: ring_words(reminder, &now).unwrap_or_default(),
                reminder: Some(reminder.clone()),
            });
        }
    }
    for task in super::lookup::all_tasks(policy)? {
        let due: Option<Timestamp> = task["due_date"].as_str().and_then(|due| due.parse().ok());
        let Some(due) = due.filter(|due| *due > now.timestamp() && task["status"] != "completed") else { continue };
        if found.iter().any(|ring| ring.next == Some(due) && ring.task["id"] == task["id"]) {
            continue;
        }
        let local = due.to_zoned(now.time_zone().clone()).datetime();
        let rule = task["recurrence"].as_str().map(|rule| format!(", {}", words::recurrence_words(rule)));
        found.push(Ring {
            reminder: None,
            title: task["title"].as_str().unwrap_or_default().to_owned(),
            task: task.clone(),
            next: Some(due),
            words: format!("{}{}", wording::on_day(&words::time_words(local, now.date())), rule.unwrap_or_default()),
        });
    }
    found.sort_by_key(|ring| ring.next);
    Ok(found)
}

/// Lists what rings, also the due times of tasks.
pub(super) fn list(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand) -> CommandReply {
    let named = match &command.target {
        Some(TaskTarget::Named(_)) => {
            match find(policy, command.target.as_ref().unwrap_or(&TaskTarget::It), StatusPreference::Open, None)? {
                LookupResult::One(mention) => Some(mention),
                _ => None,
            }
        }
        _ => None,
    };
    let mut rings = rings(policy)?;
    if let Some(mention) = &named {
        rings.retain(|ring| mention.id.as_ref().is_some_and(|id| ring.task["id"] == *id));
    }
    Ok(Some(list_text(&rings, named.as_ref().map(|mention| mention.title.as_str()))))
}

fn list_text(rings: &[Ring], title: Option<&str>) -> String {
    if rings.is_empty() {
        return match title {
            Some(title) => format!("No, there's no reminder for '{title}'."),
            None => "You have no reminders.".to_owned(),
        };
    }
    let noun = if rings.len() == 1 { "reminder" } else { "reminders" };
    let mut text = format!("You have {} {noun}:", rings.len());
    for (n, ring) in rings.iter().take(MAX_SHOWN).enumerate() {
        text.push_str(&format!("\n{}. ☐ {} (rings {})", n + 1, ring.title, ring.words));
    }
    if rings.len() > MAX_SHOWN {
        text.push_str(&format!("\nand {} more", rings.len() - MAX_SHOWN));
    }
    text
}

/// Answers when reminders ring: those of the given tasks, or all.
pub(super) fn answer(
    policy: &mut OfflinePolicy<'_>,
    tasks: &[Value],
    is_general: bool,
) -> Result<Option<String>, PendingCall> {
    let all = rings(policy)?;
    let text = policy.prompt.request.message.to_lowercase();
    let asks_all = ["reminders", "any reminder", "anything"].iter().any(|word| text.contains(word));
    if tasks.is_empty() {
        return Ok(is_general
            .then(|| list_text(&all.iter().collect::<Vec<_>>().into_iter().map(copy).collect::<Vec<_>>(), None)));
    }
    if is_general && asks_all {
        return Ok(Some(list_text(&all, None)));
    }
    let lines = tasks.iter().map(|task| {
        let own: Vec<&Ring> = all.iter().filter(|ring| ring.task["id"] == task["id"]).collect();
        let title = task["title"].as_str().unwrap_or_default();
        match own.as_slice() {
            [] => format!("No, nothing rings for '{title}'."),
            rings => {
                let times: Vec<_> = rings.iter().map(|ring| ring.words.as_str()).collect();
                format!("I'll remind you about '{title}' {}.", words::join_with_and(&times))
            }
        }
    });
    Ok(Some(lines.collect::<Vec<_>>().join("\n")))
}

fn copy(ring: &Ring) -> Ring {
    Ring {
        reminder: ring.reminder.clone(),
        task: ring.task.clone(),
        title: ring.title.clone(),
        next: ring.next,
        words: ring.words.clone(),
    }
}

/// Schedules a reminder for one task: at a time, on a day, repeatedly, or before the due date.
pub(super) fn schedule(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand, mention: &TaskMention) -> CommandReply {
    let Some(spec) = policy.spec(ToolKind::Remind) else { return Ok(Some(wording::system_error().to_owned())) };
    let now = policy.prompt.request.now.clone();
    let mut arguments =
        ToolArguments::from_iter([(spec.task_id_argument().to_owned(), mention.id.clone().unwrap_or_default())]);
    if let Some(before) = command.before {
        let Some(value) = before_argument(policy, &before, mention)? else {
            return Ok(Some(wording::no_due_date_for_reminder(&mention.title)));
        };
        arguments.extend(value);
    } else {
        let repeats = command.recurrence.is_some() || command.repeat_interval_minutes.is_some();
        let at = match command.when {
            Some(DayOrTime::Time(at)) => Some(time_text(at.round(Unit::Second).unwrap_or(at), &now)),
            Some(DayOrTime::Day(day)) => Some(day.to_string()),
            None => None,
        };
        let interval_start = command.repeat_interval_minutes.map(|minutes| {
            let start = now.saturating_add(minutes.minutes()).datetime();
            let minute = jiff::civil::DateTimeRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Trunc);
            time_text(start.round(minute).unwrap_or(start), &now)
        });
        match at.or(interval_start) {
            Some(at) => drop(arguments.insert("remind_at".to_owned(), at.into())),
            None if repeats => {}
            None => return Ok(Some(wording::missing(MissingSlot::Time))),
        }
        // An interval says the same as its rule.
        let rule = command.recurrence.as_ref().filter(|_| command.repeat_interval_minutes.is_none());
        arguments.extend(rule.map(|rule| ("recurrence".to_owned(), rule.as_str().into())));
        let numbers =
            [("repeat_interval_minutes", command.repeat_interval_minutes), ("repeat_count", command.repeat_count)];
        for (name, number) in numbers {
            arguments.extend(number.map(|number| (name.to_owned(), number.into())));
        }
    }
    let outcome = policy.call(spec, arguments)?;
    policy.last = Some(mention.clone());
    Ok(confirmed(policy, outcome, &mention.title, &now))
}

/// Returns the sentence about a reminder from the answer of its tool.
fn confirmed(policy: &mut OfflinePolicy<'_>, outcome: CallResult<'_>, title: &str, now: &Zoned) -> Option<String> {
    match outcome {
        CallResult::Done(data) => {
            policy.last = TaskMention::from_task(task_of(data)).or(policy.last.take());
            let title = data["title"].as_str().or(data["task"]["title"].as_str()).unwrap_or(title);
            let reminder = if data["reminder"].is_object() { &data["reminder"] } else { data };
            let when = ring_words(reminder, now).unwrap_or_else(|| "at that time".to_owned());
            Some(with_server_notice(policy, wording::reminder_set(title, &when)))
        }
        other => refused(other, title),
    }
}

/// Adds that nothing rings without a server.
pub(super) fn with_server_notice(policy: &OfflinePolicy<'_>, sentence: String) -> String {
    if policy.prompt.has_worker { sentence } else { format!("{sentence} {}", wording::no_server_rings()) }
}

/// Returns the argument for a reminder before the due date of a task: the minutes, or a time for "the evening before".
/// Returns `None` if the task has no due date.
fn before_argument(
    policy: &mut OfflinePolicy<'_>,
    before: &LeadTime,
    mention: &TaskMention,
) -> Result<Option<ToolArguments>, PendingCall> {
    let mention = super::lookup::current(policy, mention.clone())?;
    let zone = policy.prompt.request.now.time_zone().clone();
    let Some((day, _)) = mention.due.as_deref().and_then(|due| due_times::due_parts(due, &zone)) else {
        return Ok(None);
    };
    Ok(Some(match before.time_of_day {
        Some(clock) => {
            let date = day.checked_sub(before.days.days()).unwrap_or(day);
            ToolArguments::from_iter([("remind_at".to_owned(), date.to_datetime(clock).to_string().into())])
        }
        None => {
            let minutes = i64::from(before.days) * 1440 + before.minutes;
            ToolArguments::from_iter([("before_minutes".to_owned(), json!(minutes))])
        }
    }))
}

/// Returns the time of a reminder before the due date of another task: "wax the skis two days before the ski trip".
pub(super) fn time_before(before: &LeadTime, due: &str, now: &Zoned) -> Option<DayOrTime> {
    let (day, clock) = due_times::due_parts(due, now.time_zone())?;
    let date = day.checked_sub(before.days.days()).ok()?;
    if let Some(clock) = before.time_of_day {
        return Some(DayOrTime::Time(date.to_datetime(clock)));
    }
    match clock {
        Some(clock) => Some(DayOrTime::Time(date.to_datetime(clock).checked_sub(before.minutes.minutes()).ok()?)),
        None if before.minutes == 0 => Some(DayOrTime::Day(date)),
        None => Some(DayOrTime::Time(date.to_datetime(DEFAULT_TIME).checked_sub(before.minutes.minutes()).ok()?)),
    }
}

/// Returns the reminder that a message refers to: that of a named task, of the last task, or the one that rang last.
fn referred(
    policy: &mut OfflinePolicy<'_>,
    target: Option<&TaskTarget>,
) -> Result<Option<(Option<Value>, TaskMention)>, PendingCall> {
    let named = match target {
        Some(TaskTarget::It) | None => None,
        Some(target) => match find(policy, target, StatusPreference::Open, None)? {
            LookupResult::One(mention) => Some(mention),
            _ => return Ok(None),
        },
    };
    let Some(spec) = policy.spec(ToolKind::ListReminders) else { return Ok(None) };
    let arguments = ToolArguments::from_iter([("status".to_owned(), json!("all"))]);
    let all: Vec<Value> = match policy.call(spec, arguments)? {
        CallResult::Done(data) => data["reminders"].as_array().cloned().unwrap_or_default(),
        CallResult::Refused(..) | CallResult::Held => Vec::new(),
    };
    let now = policy.prompt.request.now.timestamp();
    let time = |value: &Value, key: &str| value[key].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let is_open = |task: &Value| task["status"] == "pending";
    if named.is_none() {
        // The one that rang within the last hour, else that of the task that was mentioned last.
        let rang = |reminder: &&Value| {
            is_open(&reminder["task"])
                && rung_at(reminder).is_some_and(|at| at <= now && now.duration_since(at).as_mins() <= 60)
        };
        let reminder = all.iter().filter(rang).max_by_key(|reminder| rung_at(reminder)).cloned();
        let tasks = super::lookup::all_tasks(policy)?;
        let due = tasks.iter().filter(|task| is_open(task)).filter_map(|task| Some((last_due(task, now)?, task)));
        let due = due.filter(|(at, _)| now.duration_since(*at).as_mins() <= 60).max_by_key(|(at, _)| *at);
        match (&reminder, due) {
            (Some(found), Some((at, task))) if rung_at(found) < Some(at) => {
                return Ok(TaskMention::from_task(task).map(|mention| (None, mention)));
            }
            (Some(found), _) => {
                let mention = TaskMention::from_task(&found["task"]);
                return Ok(mention.map(|mention| (Some(found.clone()), mention)));
            }
            (None, Some((_, task))) => return Ok(TaskMention::from_task(task).map(|mention| (None, mention))),
            (None, None) => {}
        }
    }
    let mention = match named.or_else(|| policy.last.clone()) {
        Some(mention) => mention,
        None => return Ok(None),
    };
    let own = |reminder: &&Value| mention.id.as_ref().is_some_and(|id| reminder["task_id"] == *id);
    let scheduled = all.iter().filter(own).filter(|reminder| reminder["status"] == "scheduled");
    let scheduled = scheduled.min_by_key(|reminder| time(reminder, "next_at"));
    let last = all.iter().filter(own).max_by_key(|reminder| rung_at(reminder));
    Ok(Some((scheduled.or(last).cloned(), mention)))
}

/// Returns the time at which a reminder rang last, as far as its fields tell.
fn rung_at(reminder: &Value) -> Option<Timestamp> {
    if reminder["fired_count"].as_i64().unwrap_or_default() == 0 {
        return None;
    }
    let key = ["last_fired_at", "snoozed_until", "remind_at"].into_iter().find(|key| reminder[*key].is_string())?;
    reminder[key].as_str()?.parse().ok()
}

/// Returns the last time before now at which a task was due.
fn last_due(task: &Value, now: Timestamp) -> Option<Timestamp> {
    let due: Timestamp = task["due_date"].as_str()?.parse().ok()?;
    (due <= now).then_some(due)
}

/// A snooze of fewer minutes is not rounded to minutes.
const SHORT_SNOOZE_MINUTES: i64 = 5;

/// Moves a reminder from the time at which it rang, or from its next time if that is in the future.
pub(super) fn snooze(policy: &mut OfflinePolicy<'_>, resolved: &ResolvedCommand) -> CommandReply {
    let command = &resolved.command;
    let Some((reminder, mention)) = referred(policy, command.target.as_ref())? else {
        return Ok(Some(wording::missing(MissingSlot::Target)));
    };
    let Some(spec) = policy.spec(ToolKind::SnoozeReminder) else { return Ok(Some(wording::system_error().to_owned())) };
    let now = policy.prompt.request.now.clone();
    let zone = now.time_zone().clone();
    let next = reminder.as_ref().and_then(|reminder| reminder["next_at"].as_str()?.parse::<Timestamp>().ok());
    let due = mention.due.as_deref().and_then(|due| due.parse::<Timestamp>().ok());
    let rang = reminder.as_ref().and_then(rung_at);
    let future = |at: &Timestamp| *at > now.timestamp();
    // From its due time when that is in the future, else from when it rang.
    let base = next.filter(future).or(due.filter(future)).or(rang).or(due).unwrap_or(now.timestamp());
    let base_local = base.to_zoned(zone.clone()).datetime();
    let minute = jiff::civil::DateTimeRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Trunc);
    // A short snooze keeps the seconds. Otherwise up to a minute of it would be missing.
    let is_short = |shift: DateShift| shift.months == 0 && shift.days == 0 && shift.minutes < SHORT_SNOOZE_MINUTES;
    let now_local = match command.shift.is_some_and(is_short) {
        true => now.datetime(),
        false => now.datetime().round(minute).unwrap_or(now.datetime()),
    };
    let until = match (command.shift, command.when) {
        (Some(shift), _) => {
            shifted(base_local, &shift).filter(|at| *at > now_local).or_else(|| shifted(now_local, &shift))
        }
        (None, Some(DayOrTime::Time(at))) => Some(at),
        (None, Some(DayOrTime::Day(day))) => Some(day.to_datetime(DEFAULT_TIME)),
        (None, None) => Some(base_local.max(now_local).saturating_add(10.minutes())),
    };
    let Some(until) = until else { return Ok(Some(wording::missing(MissingSlot::Time))) };
    let is_soon = until <= now.datetime().saturating_add(SHORT_SNOOZE_MINUTES.minutes());
    let rounding = if is_soon { minute.smallest(Unit::Second) } else { minute };
    let until = until.round(rounding).unwrap_or(until);
    let until = match command.time_of_day {
        Some(clock) if !fragment::states_half_of_day(&policy.prompt.request.message) && command.shift.is_none() => {
            let kept = due_times::keep_half_of_day(clock, Some(base_local.time()));
            let same_day = until.date().to_datetime(kept);
            if same_day > now_local { same_day } else { until }
        }
        _ => until,
    };
    let mut arguments = ToolArguments::new();
    match &reminder {
        Some(reminder) => arguments.insert("reminder_id".to_owned(), reminder["id"].clone()),
        None => arguments.insert("task_id".to_owned(), mention.id.clone().unwrap_or_default()),
    };
    arguments.insert("until".to_owned(), time_text(until, &now).into());
    let outcome = policy.call(spec, arguments)?;
    policy.last = Some(mention.clone());
    Ok(confirmed(policy, outcome, &mention.title, &now))
}

fn shifted(base: DateTime, shift: &DateShift) -> Option<DateTime> {
    base.checked_add(shift.months.months().days(shift.days).minutes(shift.minutes)).ok()
}

/// Gives a reminder another time.
pub(super) fn change(policy: &mut OfflinePolicy<'_>, resolved: &ResolvedCommand) -> CommandReply {
    let command = &resolved.command;
    let Some((reminder, mention)) = referred(policy, command.target.as_ref())? else {
        return Ok(Some(wording::missing(MissingSlot::Target)));
    };
    let Some(reminder) = reminder.filter(|reminder| reminder["status"] == "scheduled") else {
        return schedule(policy, command, &mention);
    };
    let Some(spec) = policy.spec(ToolKind::UpdateReminder) else { return Ok(Some(wording::system_error().to_owned())) };
    let now = policy.prompt.request.now.clone();
    let old = reminder["next_at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let old = old.map(|at| at.to_zoned(now.time_zone().clone()).datetime());
    let mut arguments = ToolArguments::from_iter([("reminder_id".to_owned(), reminder["id"].clone())]);
    if let Some(before) = command.before {
        let Some(value) = before_argument(policy, &before, &mention)? else {
            return Ok(Some(wording::no_due_date_for_reminder(&mention.title)));
        };
        arguments.extend(value);
    } else {
        let at = match (command.shift, command.time_of_day, command.when, old) {
            (Some(shift), _, _, Some(old)) => shifted(old, &shift),
            (None, Some(clock), _, Some(old)) => {
                let is_stated = fragment::states_half_of_day(&policy.prompt.request.message);
                let clock = if is_stated { clock } else { due_times::keep_half_of_day(clock, Some(old.time())) };
                Some(old.date().to_datetime(clock))
            }
            (None, _, Some(DayOrTime::Day(day)), Some(old)) => Some(day.to_datetime(old.time())),
            (None, _, Some(DayOrTime::Day(day)), None) => Some(day.to_datetime(DEFAULT_TIME)),
            (None, _, Some(DayOrTime::Time(at)), _) => Some(at),
            _ => None,
        };
        // A time that has passed is in the other half of the day.
        let at = at.map(|at| match at.checked_add(12.hours()) {
            Ok(later) if at <= now.datetime() && later > now.datetime() && at.hour() < 12 => later,
            _ => at,
        });
        arguments.extend(at.map(|at| ("remind_at".to_owned(), time_text(at, &now).into())));
        arguments.extend(command.recurrence.as_ref().map(|rule| ("recurrence".to_owned(), rule.as_str().into())));
    }
    if arguments.len() == 1 {
        return Ok(Some(wording::missing(MissingSlot::Time)));
    }
    let outcome = policy.call(spec, arguments)?;
    policy.last = Some(mention.clone());
    Ok(confirmed(policy, outcome, &mention.title, &now))
}

/// Cancels the reminder of a task. A task that only rings when it is due has no reminder to cancel.
pub(super) fn cancel(policy: &mut OfflinePolicy<'_>, resolved: &ResolvedCommand) -> CommandReply {
    let Some((reminder, mention)) = referred(policy, resolved.command.target.as_ref())? else {
        return Ok(Some(wording::missing(MissingSlot::Target)));
    };
    let reminder = reminder.filter(|reminder| reminder["status"] == "scheduled");
    let (Some(reminder), Some(spec)) = (reminder, policy.spec(ToolKind::CancelReminder)) else {
        return Ok(Some(wording::no_reminder(
            &mention.title,
            mention.due.as_deref().is_some_and(|due| due.len() > 10),
        )));
    };
    let arguments = ToolArguments::from_iter([("reminder_id".to_owned(), reminder["id"].clone())]);
    let outcome = policy.call(spec, arguments)?;
    policy.last = Some(mention.clone());
    Ok(match outcome {
        CallResult::Done(_) => Some(wording::reminder_cancelled(&mention.title)),
        other => refused(other, &mention.title),
    })
}
