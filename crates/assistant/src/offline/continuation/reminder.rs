//! Reads values that change, repeat or move the reminder of the last exchange: "no, wednesday", "and the day before too",
//! "another 20 minutes" (TRUST-3).

use jiff::Timestamp;
use jiff::civil::Time;
use serde_json::Value;
use tools::ToolKind;
use understand::{DayOrTime, Intent, LeadTime, ParsedCommand, TaskTarget};

use super::ContinuationResult;
use super::values::position_target;
use crate::mentions::TaskMention;
use crate::offline::dialogue::{LastAct, LastExchange};
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::fragment::{self, Fragment};
use crate::offline::framing::Framing;
use crate::offline::lookup::named_task;
use crate::offline::matching::normalize;
use crate::offline::{OfflinePolicy, PendingCall};

/// Reads a message about the reminder of the last exchange.
pub(super) fn about_reminder(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> ContinuationResult {
    let text = normalize(&framing.body);
    // "another 10 minutes on the lamb"
    if let Some((amount, name)) = text.split_once(" on the ")
        && let Some(mut commands) = snoozed_again(policy, amount)
        && let Some(mention) = named_task(policy, name)?
    {
        for resolved in &mut commands {
            resolved.command.target = Some(TaskTarget::Named(mention.title.clone()));
        }
        return Ok(Some(commands));
    }
    if let Some(commands) = snoozed_again(policy, &text).or_else(|| several_reminders(policy, &text)) {
        return Ok(Some(commands));
    }
    if let Some(commands) = further_reminder(policy, framing, last, &text)? {
        return Ok(Some(commands));
    }
    moved_reminder(policy, framing, last, &text)
}

/// Reads another delay: "another 20 minutes", "5 more minutes", "tell me again tonight".
fn snoozed_again(policy: &OfflinePolicy<'_>, text: &str) -> Option<Vec<ResolvedCommand>> {
    const AGAIN: [&str; 5] =
        ["tell me again ", "remind me again ", "ping me again ", "nudge me again ", "ask me again "];
    const BESIDE_AMOUNT: [&str; 10] = ["another", "more", "gimme", "give", "me", "bit", "a", "an", "just", "extra"];
    let request = policy.prompt.request;
    let parse = |text: String| request.parser.parse(&text, &request.now).commands.into_iter().next();
    let words: Vec<&str> = text.split(' ').collect();
    let when = AGAIN.iter().find_map(|start| text.find(start).map(|at| &text[at + start.len()..]));
    let asks_more = words.iter().any(|word| matches!(*word, "another" | "more" | "extra")) && words.len() <= 6;
    let command = match (when, asks_more) {
        (Some(when), _) => parse(format!("snooze it until {when}")).or_else(|| parse(format!("snooze it {when}"))),
        (None, true) => {
            let amount: Vec<&str> = words.into_iter().filter(|word| !BESIDE_AMOUNT.contains(word)).collect();
            let amount = amount.join(" ");
            let amount = if amount.starts_with("half hour") { "half an hour" } else { &amount };
            let unit = if amount.parse::<u32>().is_ok() { " minutes" } else { "" };
            parse(format!("snooze it for {amount}{unit}"))
        }
        (None, false) => None,
    };
    let command = command.filter(|command| {
        command.intent == Intent::SnoozeReminder && (command.when.is_some() || command.shift.is_some())
    })?;
    Some(vec![ResolvedCommand::new(ParsedCommand { target: Some(TaskTarget::It), ..command })])
}

/// Reads "remind me an hour before and a day before".
fn several_reminders(policy: &OfflinePolicy<'_>, text: &str) -> Option<Vec<ResolvedCommand>> {
    let distances = text.strip_prefix("remind me").filter(|rest| rest.contains(" before and "))?;
    let commands = distances.split(" and ").map(|part| {
        let before = lead_time(policy, part.trim())?;
        Some(ResolvedCommand::new(ParsedCommand { before: Some(before), ..reminder(Intent::ScheduleReminder) }))
    });
    commands.collect()
}

/// Reads one more reminder for the task of the last exchange: "plus a nudge 1h before".
fn further_reminder(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    text: &str,
) -> ContinuationResult {
    const NOUNS: [&str; 9] =
        ["nudge", "reminder", "heads", "ping", "alert", "notification", "remind", "warning", "shout"];
    let words: Vec<&str> = text.split(' ').collect();
    let is_further = framing.continues || words.iter().any(|word| NOUNS.contains(word));
    let is_other_command = policy.prompt.request.utterance.commands.iter().any(|command| {
        let is_distance_only = command.title.as_deref().is_none_or(|title| title == "before");
        command.asks_reminder && !is_distance_only
            || !matches!(command.intent, Intent::CreateTask | Intent::Unknown | Intent::ScheduleReminder)
    });
    let has_focus = policy.last.is_some()
        && matches!(
            last.act,
            LastAct::Changed(ToolKind::Add | ToolKind::Update | ToolKind::Remind | ToolKind::UpdateReminder, _)
                | LastAct::Answered
        );
    // "make that reminder 2 hours before" moves the one that was set.
    let moves = matches!(words[0], "make" | "change" | "move" | "set")
        && match last.act {
            LastAct::Changed(_, call) => call.result["reminder"].is_object(),
            _ => false,
        };
    if moves || !is_further || is_other_command || words.len() > 12 || !has_focus {
        return Ok(None);
    }
    let Some(before) = lead_time(policy, text) else { return Ok(None) };
    if subject_before(policy, text)?.is_some() {
        return Ok(None);
    }
    let command = ParsedCommand { before: Some(before), ..reminder(Intent::ScheduleReminder) };
    Ok(Some(vec![ResolvedCommand::new(command)]))
}

/// Reads another time for the reminder that was set or moved last: "no, wednesday", "and the first one tomorrow at 1pm".
fn moved_reminder(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    text: &str,
) -> ContinuationResult {
    let LastAct::Changed(kind, call) = last.act else { return Ok(None) };
    let is_reminder_act = matches!(kind, ToolKind::Remind | ToolKind::UpdateReminder | ToolKind::SnoozeReminder);
    let names_reminder = text.contains("reminder") && call.result["reminder"].is_object();
    if !is_reminder_act && !names_reminder {
        return Ok(None);
    }
    let request = policy.prompt.request;
    let fragment = fragment::read(&framing.body, request);
    let old = &call.result["reminder"];
    let old_before = old["before_minutes"].as_i64();
    // The task moves, and with it a reminder before its due date.
    let moves_task = old_before.is_some()
        && !framing.continues
        && !text.contains("before")
        && !text.contains("remind")
        && fragment.number.is_none()
        && fragment.command.shift.is_none()
        && fragment.is_pure()
        && fragment.states;
    if framing.is_question || moves_task {
        return Ok(None);
    }
    let intent = if framing.continues { Intent::ScheduleReminder } else { Intent::UpdateReminder };
    if let Some(before) = other_lead_time(policy, &fragment, old_before, text) {
        // "and leo's an hour before": the other words name another task.
        let mention = subject_before(policy, text)?;
        let intent = if mention.is_some() { Intent::ScheduleReminder } else { intent };
        let command = ParsedCommand { before: Some(before), ..reminder(intent) };
        return Ok(Some(vec![ResolvedCommand { mention, ..ResolvedCommand::new(command) }]));
    }
    let Some(mut command) = other_time(policy, &fragment, old, text) else { return Ok(None) };
    command.intent = intent;
    if fragment.rest.is_empty() {
        let is_meant = kind == ToolKind::SnoozeReminder
            || !fragment.states
            || framing.continues
            || framing.replaces()
            || text.split(' ').next() == Some("make");
        return Ok(is_meant.then(|| vec![ResolvedCommand::new(command)]));
    }
    if !framing.continues {
        return Ok(None);
    }
    if let Some(target) = position_target(&fragment.rest) {
        command.target = Some(target);
        return Ok(Some(vec![ResolvedCommand::new(command)]));
    }
    let Some(mention) = named_task(policy, &fragment.rest)? else { return Ok(None) };
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(command) }]))
}

/// Returns a command about the reminder of the task that was mentioned last.
fn reminder(intent: Intent) -> ParsedCommand {
    ParsedCommand { target: Some(TaskTarget::It), asks_reminder: true, ..ParsedCommand::new(intent, 0.9) }
}

/// Returns the new distance to the due date. `old` is the distance of the reminder that a number changes.
fn other_lead_time(policy: &OfflinePolicy<'_>, fragment: &Fragment, old: Option<i64>, text: &str) -> Option<LeadTime> {
    lead_time(policy, text.trim_start_matches("about ")).or_else(|| {
        let minutes = old?;
        match fragment.number.filter(|_| fragment.rest.is_empty()) {
            Some(number) => Some(same_unit(minutes, i64::from(number))),
            None => lead_time(policy, &format!("{} before", text.split(" would").next().unwrap_or_default())),
        }
    })
}

/// Returns a command with the new time of a reminder. `old` is the stored reminder.
fn other_time(policy: &OfflinePolicy<'_>, fragment: &Fragment, old: &Value, text: &str) -> Option<ParsedCommand> {
    let values = &fragment.command;
    if !fragment.has_values() || values.priority.is_some() || !values.tags.is_empty() {
        return None;
    }
    let now = &policy.prompt.request.now;
    let mut command = ParsedCommand {
        when: values.when,
        time_of_day: values.time_of_day,
        shift: values.shift,
        recurrence: values.recurrence.clone(),
        ..reminder(Intent::UpdateReminder)
    };
    if let Some(number) = fragment.number {
        let clock = Time::new(number, 0, 0, 0).ok()?;
        command.time_of_day = Some(clock);
        command.when = Some(DayOrTime::Time(now.date().to_datetime(clock)));
    }
    // "and one more on thursday, same hour"
    if let (true, Some(DayOrTime::Day(day))) = (text.split(' ').any(|word| word == "same"), command.when) {
        let at: Option<Timestamp> =
            old["next_at"].as_str().or(old["remind_at"].as_str()).and_then(|at| at.parse().ok());
        let clock = at.map(|at| at.to_zoned(now.time_zone().clone()).time());
        command.when = clock.map(|clock| DayOrTime::Time(day.to_datetime(clock))).or(command.when);
    }
    Some(command)
}

/// Returns the distance that a text names, which must end with "before": "an hour before", "the day before".
fn lead_time(policy: &OfflinePolicy<'_>, text: &str) -> Option<LeadTime> {
    if !text.contains("before") {
        return None;
    }
    let request = policy.prompt.request;
    // The distance begins at an article, a number or "half".
    let words: Vec<&str> = text.split_whitespace().collect();
    let start = words.iter().position(|word| {
        matches!(*word, "a" | "an" | "the" | "half" | "one" | "couple")
            || fragment::number(word).is_some()
            || word.parse::<u32>().is_ok()
    })?;
    let text = words[start..].join(" ");
    let commands = request.parser.parse(&format!("remind me about it {text}"), &request.now).commands;
    commands.into_iter().find_map(|command| command.before)
}

/// Returns the task that the words before a distance name: "leo's an hour before".
fn subject_before(policy: &mut OfflinePolicy<'_>, text: &str) -> Result<Option<TaskMention>, PendingCall> {
    let words: Vec<&str> = text.split(' ').collect();
    let end = words.iter().position(|word| {
        matches!(*word, "a" | "an" | "the" | "half" | "one" | "couple")
            || fragment::number(word).is_some()
            || word.parse::<u32>().is_ok()
    });
    match end {
        Some(end) if end > 0 => named_task(policy, &words[..end].join(" ")),
        _ => Ok(None),
    }
}

/// Returns a distance of `number` in the largest unit that divides `minutes`.
fn same_unit(minutes: i64, number: i64) -> LeadTime {
    let unit = [10080, 1440, 60, 1].into_iter().find(|unit| minutes % unit == 0).unwrap_or(1);
    let total = unit * number;
    let days = i32::try_from(total / 1440).unwrap_or_default();
    if unit >= 1440 {
        LeadTime { days, ..LeadTime::default() }
    } else {
        LeadTime { minutes: total, ..LeadTime::default() }
    }
}
