//! Changes that may complete a recurring task. The next task is created in the same undo step, so that one undo reverts
//! both.

use jiff::tz::TimeZone;
use model::reminder::{Reminder, ReminderStatus};
use model::task::{ChangedTask, Task, TaskChange, TaskStatus};
use model::{Clock, UserId};
use uuid::Uuid;

use crate::conn::{Conn, args};
use crate::quotas::RowQuota;
use crate::undo::UndoStep;
use crate::{Error, Result, due, reminders, tasks};

/// Applies a change like [`tasks::change`]. If it completes a pending task with a recurrence, also creates the next
/// task and carries the reminders over, so that repeating ones go on. `zone` is the time zone of the owner and determines the next due date. An equal
/// pending task is used instead of a new one and gets only reminders with their own rule. `next_task` is `None` if no recurring task was
/// completed, `Some(None)` if the recurrence has ended. `changed` is false if the change had no effect. Fails with
/// [`Error::NotFound`] if the task does not exist.
pub async fn change(
    conn: &mut Conn,
    step: &mut UndoStep,
    id: Uuid,
    change: &TaskChange,
    clock: &Clock,
    zone: &TimeZone,
) -> Result<ChangedTask> {
    let owner = step.owner();
    let before = tasks::select(conn, owner, id, true).await?.ok_or(Error::NotFound)?;
    // Read before the change, because completing the task drops its reminders.
    let reminders = match before.status {
        TaskStatus::Pending if before.recurrence.is_some() => reminders::list_for_task(conn, owner, id).await?,
        _ => Vec::new(),
    };
    let (task, followed) = tasks::change_with_reminders(conn, step, id, change, clock.now()).await?;
    let mut changed = ChangedTask {
        changed: task != before,
        dropped_reminders: followed.dropped,
        moved_reminders: followed.moved,
        next_task: None,
        task,
    };
    let task = &changed.task;
    if task.due_date != before.due_date || task.recurrence != before.recurrence {
        due::set_zone(conn, owner, task, zone).await?;
    }
    let completed = before.status == TaskStatus::Pending && task.status == TaskStatus::Completed;
    if !completed || task.recurrence.is_none() {
        return Ok(changed);
    }
    let Some(next) = task.next_occurrence(clock, zone) else {
        changed.next_task = Some(None);
        return Ok(changed);
    };
    // The next task already exists if the task was reopened and completed again.
    let existing = find_same(conn, owner, &next).await?;
    if existing.is_none() {
        // Completing a task never fails because of a quota.
        conn.quotas().add(owner, RowQuota::Tasks, 1);
        tasks::add(conn, step, &next).await?;
        due::set_zone(conn, owner, &next, zone).await?;
    }
    let is_new = existing.is_none();
    let next = existing.unwrap_or(next);
    for reminder in &reminders {
        carry_reminder(conn, owner, task, reminder, &next, is_new, clock, zone).await?;
    }
    changed.next_task = Some(Some(next));
    Ok(changed)
}

/// Carries a reminder of a completed task over to the next task. One with its own rule moves with its id and count. Of
/// others, a new task gets a copy. If a repeating one cannot be copied, because it does not depend on the due date, it
/// moves too.
#[expect(clippy::too_many_arguments, reason = "called once")]
async fn carry_reminder(
    conn: &mut Conn,
    owner: UserId,
    task: &Task,
    reminder: &Reminder,
    next: &Task,
    is_new: bool,
    clock: &Clock,
    zone: &TimeZone,
) -> Result<()> {
    if reminder.recurrence.is_none()
        && is_new
        && let Some(copy) = task.carry_reminder(reminder, next, clock, zone, conn.reminder_time())
    {
        conn.quotas().add(owner, RowQuota::Reminders, 1);
        reminders::add_if_new(conn, owner, &copy, next.created_at).await?;
        return Ok(());
    }
    let moves = reminder.recurrence.is_some() || (is_new && reminder.repeats());
    if moves && reminder.status == ReminderStatus::Scheduled {
        reminders::put(conn, owner, &Reminder { task_id: next.id, ..reminder.clone() }).await?;
    }
    Ok(())
}

/// Returns the pending task of the owner with exactly the same title, recurrence and due date, or `None`. Of several,
/// returns the one with the lowest id. A task without a due date matches none.
async fn find_same(conn: &mut Conn, owner: UserId, task: &Task) -> Result<Option<Task>> {
    let sql = "SELECT id FROM tasks WHERE owner = $1 AND status = 'pending' AND title = $2 AND recurrence = $3 AND \
               due_date = $4 ORDER BY id LIMIT 1";
    let due = task.due_date.map(|due| due.to_string());
    let values = args![owner, task.title.as_str(), task.recurrence.as_deref(), due];
    match conn.first((sql, values)).await? {
        Some(row) => tasks::select(conn, owner, row.parsed(0, Uuid::try_parse)?, false).await,
        None => Ok(None),
    }
}
