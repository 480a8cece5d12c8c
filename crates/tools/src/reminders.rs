//! The handlers of the tools for reminders. Each change is one undo step. Like all handlers, they fail with a message for
//! the caller, or if the database fails.

use jiff::Timestamp;
use model::Invalid;
use model::invalid::Checks;
use model::reminder::{Reminder, ReminderDraft, ReminderPatch, ReminderStatus, SnoozeRequest, parse_future};
use model::task::Task;
use serde::Deserialize;
use serde_json::{Value, json};
use store::Conn;
use store::reminders::ReminderFilter;
use store::undo::UndoStep;
use uuid::Uuid;

use crate::answer::{Error, NOT_FOUND, ToolFailure, VALIDATION_ERROR};
use crate::{BuiltInCall, ToolAnswer, ToolOutcome};

/// The maximum number of reminders in a list.
const MAX_REMINDERS: i64 = 200;

/// Schedules a reminder for a task. The answer contains the reminder and the task. Fails with `VALIDATION_ERROR` if the
/// reminder is invalid or the task is completed, and with `NOT_FOUND` if the task does not exist.
pub(crate) async fn schedule(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let draft: ReminderDraft = call.parse_arguments()?;
    let reminder = draft.check(&call.tools.clock, &call.user, conn.reminder_time())?;
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    let created = store::reminders::create(conn, &mut step, &reminder, call.tools.clock.now()).await;
    let (reminder, task) = created.map_err(|error| refusal(error, "task"))?;
    Ok(outcome(&reminder, Some(&task)))
}

/// Lists reminders with their tasks, scheduled ones first, in the order of their next times. Without a status, only
/// scheduled ones are listed, at most [`MAX_REMINDERS`].
pub(crate) async fn list(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ReminderListArguments {
        task_id: Option<String>,
        status: Option<String>,
    }
    let ReminderListArguments { task_id, status } = call.parse_arguments()?;
    let mut checks = Checks::default();
    let task_id = task_id.and_then(|id| checks.take(parse_id("task_id", &id)));
    let status = match status.as_deref().map(str::trim) {
        None | Some("") => Some(ReminderStatus::Scheduled),
        Some("all") => None,
        Some(word) => checks.take(ReminderStatus::parse("status", word)),
    };
    let filter = checks.finish(Some(ReminderFilter { status, task_id }))?;
    let found = store::reminders::list_with_tasks(conn, call.user.id, &filter, MAX_REMINDERS).await?;
    let reminders: Vec<_> = found
        .iter()
        .map(|(reminder, task)| {
            let mut entry = json!(reminder);
            entry["title"] = json!(task.as_ref().map(|task| &task.title));
            entry["task"] = json!(task);
            entry
        })
        .collect();
    let data = json!({"success": true, "count": reminders.len(), "reminders": reminders});
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Changes the time or the repetition of a reminder and schedules it. An empty recurrence ends every repetition. The
/// answer has `changed`. Fails with `NOT_FOUND` if the reminder does not exist, and with `VALIDATION_ERROR` if a value is
/// invalid or the task is completed.
pub(crate) async fn update(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ReminderUpdateArguments {
        reminder_id: String,
        remind_at: Option<String>,
        before_minutes: Option<i64>,
        recurrence: Option<String>,
        repeat_interval_minutes: Option<i64>,
        repeat_count: Option<i64>,
    }
    let arguments: ReminderUpdateArguments = call.parse_arguments()?;
    let id = parse_id("reminder_id", &arguments.reminder_id)?;
    let ends_repetition = arguments.recurrence.as_deref().is_some_and(|rule| rule.trim().is_empty());
    let patch = ReminderPatch {
        remind_at: arguments.remind_at,
        before_minutes: arguments.before_minutes,
        recurrence: arguments.recurrence.map(|rule| Some(rule).filter(|_| !ends_repetition)),
        repeat_interval_minutes: match arguments.repeat_interval_minutes {
            Some(minutes) => Some(Some(minutes)),
            None => ends_repetition.then_some(None),
        },
        repeat_count: arguments.repeat_count.map(Some),
    };
    let clock = &call.tools.clock;
    let user = &call.user;
    let default_time = conn.reminder_time();
    let mut step = UndoStep::begin(conn, user.id).await?;
    let mut changed = true;
    let apply = |before: &Reminder, task: &Task| {
        let after = patch.apply(before, task.due_date, clock, user, default_time)?;
        changed = after != *before;
        Ok(after)
    };
    let updated = store::reminders::change(conn, &mut step, id, apply).await;
    let (reminder, task) = updated.map_err(|error| refusal(error, "reminder"))?;
    Ok(outcome_with(&reminder, Some(&task), &[("changed", json!(changed))]))
}

/// Ends a reminder. `changed` is false in the answer if it had already ended. Fails with `NOT_FOUND` if it does not exist.
pub(crate) async fn cancel(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct CancelArguments {
        reminder_id: String,
    }
    let CancelArguments { reminder_id } = call.parse_arguments()?;
    let id = parse_id("reminder_id", &reminder_id)?;
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    let cancelled = store::reminders::cancel(conn, &mut step, id).await;
    let (reminder, task, changed) = cancelled.map_err(|error| refusal(error, "reminder"))?;
    Ok(outcome_with(&reminder, task.as_ref(), &[("changed", json!(changed))]))
}

/// Moves the next notification of a reminder, or of a task, to a later time. A task without a suitable reminder gets a
/// new one, and `created` is true in the answer. Fails with `VALIDATION_ERROR` if not exactly one of `reminder_id` and
/// `task_id` is given, the time is not in the future, or the task is completed.
pub(crate) async fn snooze(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SnoozeArguments {
        reminder_id: Option<String>,
        task_id: Option<String>,
        until: String,
    }
    let SnoozeArguments { reminder_id, task_id, until } = call.parse_arguments()?;
    let default_time = conn.reminder_time();
    let clock = &call.tools.clock;
    let (reminder, task, created) = match (reminder_id, task_id) {
        (Some(id), None) => {
            let id = parse_id("reminder_id", &id)?;
            let until: Timestamp = SnoozeRequest { until }.check(clock, &call.user, default_time)?;
            let mut step = UndoStep::begin(conn, call.user.id).await?;
            let snoozed = store::reminders::snooze(conn, &mut step, id, until).await;
            let (reminder, task) = snoozed.map_err(|error| refusal(error, "reminder"))?;
            (reminder, task, false)
        }
        (None, Some(task_id)) => {
            let until = parse_future("until", &until, clock.now(), &call.user.time_zone, default_time)?;
            let draft = ReminderDraft { task_id, remind_at: Some(until.to_string()), ..ReminderDraft::default() };
            let new = draft.check(clock, &call.user, default_time)?;
            let mut step = UndoStep::begin(conn, call.user.id).await?;
            let snoozed = store::reminders::snooze_task(conn, &mut step, &new, clock.now()).await;
            snoozed.map_err(|error| refusal(error, "task"))?
        }
        _ => {
            let message = "must be given, or else task_id, but not both";
            return Err(Invalid::one("reminder_id", "required", message).into());
        }
    };
    Ok(outcome_with(&reminder, Some(&task), &[("created", json!(created))]))
}

/// Converts an error of the store. `noun` names the object that does not exist.
fn refusal(error: store::Error, noun: &str) -> Error {
    match error {
        store::Error::NotFound => Error::Failure(ToolFailure::new(NOT_FOUND, format!("There is no such {noun}."))),
        store::Error::AlreadyEnded => {
            let message = "task_id must be a task that is not completed";
            Error::Failure(ToolFailure::new(VALIDATION_ERROR, message))
        }
        other => other.into(),
    }
}

fn parse_id(field: &str, text: &str) -> Result<Uuid, Invalid> {
    Uuid::try_parse(text.trim()).map_err(|_| Invalid::one(field, "uuid", "must be a UUID"))
}

fn outcome(reminder: &Reminder, task: Option<&Task>) -> ToolOutcome {
    outcome_with(reminder, task, &[])
}

/// Returns the successful answer about one reminder: the main fields at the top level, then the reminder and its task.
fn outcome_with(reminder: &Reminder, task: Option<&Task>, more: &[(&str, Value)]) -> ToolOutcome {
    let mut data = json!({
        "success": true,
        "reminder_id": reminder.id,
        "task_id": reminder.task_id,
        "title": task.map(|task| &task.title),
        "remind_at": reminder.remind_at,
        "next_at": reminder.next_at,
        "reminder": reminder,
        "task": task,
    });
    for (name, value) in more {
        data[*name] = value.clone();
    }
    ToolOutcome::Done(ToolAnswer::success(data))
}
