//! Changes to tasks that may complete a recurring one: the task that follows it is added in the same step, so that both
//! are there or neither is, and one undo takes both back.

use jiff::tz::TimeZone;
use model::task::{Change, Changed, Status, Task};
use model::{Clock, UserId};
use uuid::Uuid;

use crate::conn::{Conn, args};
use crate::undo::Step;
use crate::{Error, Result, reminders, tasks};

/// Applies a change; `zone` is the owner's, whose calendar decides when the next task is due.
pub async fn change(
    conn: &mut Conn,
    step: &mut Step,
    id: Uuid,
    change: &Change,
    clock: &Clock,
    zone: &TimeZone,
) -> Result<Changed> {
    let owner = step.owner();
    let before = tasks::select(conn, owner, id, true).await?.ok_or(Error::NotFound)?;
    // As they are before the change: a task that is done has none to come.
    let reminders = match before.status {
        Status::Pending if before.recurrence.is_some() => reminders::of_task(conn, owner, id).await?,
        _ => Vec::new(),
    };
    let task = tasks::change(conn, step, id, change, clock.now()).await?;
    let changed = task != before;
    let completed = before.status == Status::Pending && task.status == Status::Completed;
    if !completed || task.recurrence.is_none() {
        return Ok(Changed { task, next_task: None, changed });
    }
    let Some(next) = task.next(clock, zone) else { return Ok(Changed { task, next_task: Some(None), changed }) };
    // A task that was opened again and completed again has been followed already.
    if let Some(there) = same(conn, owner, &next).await? {
        return Ok(Changed { task, next_task: Some(Some(there)), changed });
    }
    tasks::create(conn, step, &next).await?;
    for reminder in reminders.iter().filter_map(|reminder| task.carried(reminder, &next, clock, zone)) {
        reminders::add_if_new(conn, owner, &reminder, next.created_at).await?;
    }
    Ok(Changed { task, next_task: Some(Some(next)), changed })
}

/// An open task that is due then by the same rule, under the same title.
async fn same(conn: &mut Conn, owner: UserId, task: &Task) -> Result<Option<Task>> {
    let sql = "SELECT id FROM tasks WHERE owner = $1 AND status = 'pending' AND title = $2 AND recurrence = $3 AND \
               due_date = $4 ORDER BY id LIMIT 1";
    let due = task.due_date.map(|due| due.to_string());
    let values = args![owner, task.title.as_str(), task.recurrence.as_deref(), due];
    match conn.first((sql, values)).await? {
        Some(row) => tasks::select(conn, owner, row.parsed(0, Uuid::try_parse)?, false).await,
        None => Ok(None),
    }
}
