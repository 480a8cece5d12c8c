//! The handler of the tool for reminders.

use model::Invalid;
use model::reminder::ReminderDraft;
use model::task::TaskStatus;
use serde_json::json;
use store::Conn;
use store::undo::UndoStep;

use crate::answer::Error;
use crate::{BuiltInCall, ToolAnswer, ToolOutcome};

/// Schedules a reminder for a task. It can be undone. The answer contains the reminder and the task. Fails with
/// `VALIDATION_ERROR` if the reminder is invalid or the task is completed, with `NOT_FOUND` if the task does not exist,
/// and if the database fails.
pub(crate) async fn schedule(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let draft: ReminderDraft = call.parse_arguments()?;
    let reminder = draft.check(&call.tools.clock, &call.user)?;
    let task = store::tasks::get(conn, call.user.id, reminder.task_id).await?;
    if task.status == TaskStatus::Completed {
        return Err(Invalid::one("task_id", "pending", "must be a task that is not completed").into());
    }
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    store::reminders::create(conn, &mut step, &reminder, call.tools.clock.now()).await?;
    let data = json!({
        "success": true,
        "reminder_id": reminder.id,
        "task_id": task.id,
        "title": task.title,
        "remind_at": reminder.remind_at,
        "reminder": reminder,
        "task": task,
    });
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}
