//! Repeats the last change or the last command for another task: "same for the report" (TRUST-3).

use jiff::Timestamp;
use jiff::civil::Date;
use model::task::{Priority, TaskStatus};
use tools::ToolKind;
use understand::{DayOrTime, Intent, LeadTime, MissingSlot, ParsedCommand, TagOperation, TaskTarget};

use super::ContinuationResult;
use crate::offline::OfflinePolicy;
use crate::offline::dialogue::{LastAct, LastExchange};
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::fragment;
use crate::offline::framing::Framing;
use crate::offline::lookup::named_task;

/// Repeats the last change for another task: "do the same for parents evening", "same for the report".
pub(super) fn same_for(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> ContinuationResult {
    let LastAct::Changed(kind, call) = last.act else { return Ok(None) };
    let lower = framing.body.to_lowercase();
    let starts = [
        "do the same for ",
        "do the same with ",
        "do the same thing for ",
        "do that for ",
        "same for ",
        "same with ",
        "the same for ",
        "the same with ",
        "same thing for ",
        "ditto for ",
    ];
    let Some(name) = starts.iter().find_map(|start| lower.strip_prefix(start)) else { return Ok(None) };
    let (Some(mut again), Some(mention)) = (same_change(policy, kind, call), named_task(policy, name)?) else {
        return Ok(None);
    };
    if let Some(minutes) = call.parameters["before_minutes"].as_i64() {
        again.before = Some(LeadTime { minutes, ..LeadTime::default() });
        again.when = None;
    }
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(again) }]))
}

/// Repeats the command of the last exchange, which lacked its task, with this name.
pub(super) fn repeat_with_target(
    policy: &mut OfflinePolicy<'_>,
    last: &LastExchange<'_>,
    name: &str,
) -> ContinuationResult {
    let request = policy.prompt.request;
    let Some(mention) = named_task(policy, name)? else { return Ok(None) };
    let framing = Framing::read(last.user);
    let values = fragment::read(&framing.body, request);
    if values.is_pure() {
        let command = ParsedCommand { target: Some(TaskTarget::It), ..values.command };
        let resolved = ResolvedCommand { drops_time: values.drops_time, ..ResolvedCommand::new(command) };
        return Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..resolved }]));
    }
    let earlier = request.parser.parse(last.user, &request.now).commands;
    let is_repeatable = |command: &ParsedCommand| {
        command.intent != Intent::Unknown
            && (command.target.is_some() || command.asks_reminder || command.missing == Some(MissingSlot::Target))
    };
    let Some(mut earlier) = earlier.into_iter().find(is_repeatable) else { return Ok(None) };
    if earlier.intent == Intent::CreateTask {
        earlier.intent = Intent::ScheduleReminder;
    }
    let command = ParsedCommand { target: Some(TaskTarget::It), title: None, missing: None, ..earlier };
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(command) }]))
}

/// Returns the command that repeats a change for the task in `mention`. Returns `None` for changes that cannot be
/// repeated, such as a new task.
pub(super) fn same_change(
    policy: &OfflinePolicy<'_>,
    kind: ToolKind,
    call: &model::conversation::ToolCall,
) -> Option<ParsedCommand> {
    let text = |key: &str| call.parameters[key].as_str();
    let zone = policy.prompt.request.now.time_zone();
    let when = |key: &str| {
        let text = text(key)?;
        if let Ok(day) = text.parse::<Date>().and_then(|day| if text.len() == 10 { Ok(day) } else { text.parse() })
            && text.len() == 10
        {
            return Some(DayOrTime::Day(day));
        }
        let local = text.parse().ok().or_else(|| {
            let at: Timestamp = text.parse().ok()?;
            Some(at.to_zoned(zone.clone()).datetime())
        });
        local.map(DayOrTime::Time)
    };
    let mut again = match kind {
        ToolKind::Complete | ToolKind::CompleteSeveral => ParsedCommand::new(Intent::CompleteTask, 0.9),
        ToolKind::Delete | ToolKind::DeleteSeveral => ParsedCommand::new(Intent::DeleteTask, 0.9),
        ToolKind::Update => ParsedCommand::new(Intent::UpdateTask, 0.9),
        ToolKind::Remind => ParsedCommand::new(Intent::ScheduleReminder, 0.9),
        _ => return None,
    };
    again.target = Some(TaskTarget::It);
    if kind == ToolKind::Update {
        again.when = when("due_date");
        again.recurrence = text("recurrence").map(str::to_owned);
        again.priority = text("priority").and_then(|word| Priority::parse("priority", word).ok());
        again.status = text("status").and_then(|word| TaskStatus::parse("status", word).ok());
        if again.status == Some(TaskStatus::Completed) {
            again = ParsedCommand { target: again.target, ..ParsedCommand::new(Intent::CompleteTask, 0.9) };
        }
        let tags = call.parameters["tags"].as_array().into_iter().flatten();
        again.tags = tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        again.tag_operation = TagOperation::Add;
        let changes =
            again.when.is_some() || again.recurrence.is_some() || again.priority.is_some() || !again.tags.is_empty();
        if again.intent == Intent::UpdateTask && !changes {
            return None;
        }
    }
    if kind == ToolKind::Remind {
        again.when = when("remind_at");
    }
    Some(again)
}
