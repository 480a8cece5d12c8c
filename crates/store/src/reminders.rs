//! Reminders of users, each for a task of the same user. [`due_reminders`], [`next_due_at`] and [`fire`] work for all
//! users.

use jiff::Timestamp;
use model::UserId;
use model::reminder::{Reminder, ReminderStatus};
use model::task::{self, Task};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::page::{Cursor, Page};
use crate::quotas::{self, RowQuota};
use crate::undo::UndoStep;
use crate::{Error, Result, tasks};

const COLUMNS: &str = "id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, status";

/// Selects reminders of pending tasks. A reminder without a pending task must not fire.
const HAS_PENDING_TASK: &str = "EXISTS (SELECT 1 FROM tasks WHERE tasks.owner = reminders.owner \
     AND tasks.id = reminders.task_id AND tasks.status = 'pending')";

/// A due reminder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueReminder {
    pub owner: UserId,
    pub reminder: Reminder,
    /// The time at which it is due.
    pub at: Timestamp,
}

/// Adds a reminder for its task, records it in the undo step, and returns the task. Fails with [`Error::NotFound`] if
/// the owner of the step has no such task, and with [`Error::AlreadyEnded`] if it is completed. Fails without a change
/// with [`Error::QuotaReached`] if the owner or the task has too many. A time in the past is accepted.
pub async fn create(conn: &mut Conn, step: &mut UndoStep, reminder: &Reminder, now: Timestamp) -> Result<Task> {
    let owner = step.owner();
    let task = tasks::select(conn, owner, reminder.task_id, true).await?.ok_or(Error::NotFound)?;
    if task.status == task::TaskStatus::Completed {
        return Err(Error::AlreadyEnded);
    }
    quotas::check_reminders_of_task(conn, owner, reminder.task_id, 1).await?;
    quotas::check_new(conn, owner, RowQuota::Reminders).await?;
    add_if_new(conn, owner, reminder, now).await?;
    step.record_reminder(conn, reminder).await?;
    Ok(task)
}

/// Returns a reminder. Fails with [`Error::NotFound`] if it does not exist.
pub async fn get(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Reminder> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner).push(" AND id = ").bind(id);
    conn.first(select).await?.as_ref().map(read).transpose()?.ok_or(Error::NotFound)
}

/// Deletes a reminder. Fails with [`Error::NotFound`] if it does not exist.
pub async fn delete(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<()> {
    match remove(conn, owner, &id.to_string()).await? {
        true => Ok(()),
        false => Err(Error::NotFound),
    }
}

/// Deletes a reminder. Returns false if it does not exist.
pub(crate) async fn remove(conn: &mut Conn, owner: UserId, id: &str) -> Result<bool> {
    Ok(conn.run(("DELETE FROM reminders WHERE owner = $1 AND id = $2", args![owner, id])).await? == 1)
}

/// The filter of a list of reminders.
#[derive(Clone, Debug, Default)]
pub struct ReminderFilter {
    /// `None` selects all.
    pub status: Option<ReminderStatus>,
    pub task_id: Option<Uuid>,
}

/// Deletes all reminders of a task.
pub(crate) async fn remove_for_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    conn.run(("DELETE FROM reminders WHERE owner = $1 AND task_id = $2", args![owner, task])).await.map(drop)
}

/// Returns all reminders of a task, oldest first.
pub(crate) async fn list_for_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<Vec<Reminder>> {
    let sql = "SELECT id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, status \
               FROM reminders WHERE owner = $1 AND task_id = $2 ORDER BY id";
    conn.all((sql, args![owner, task])).await?.iter().map(read).collect()
}

/// Returns one page of the reminders that match both conditions of the filter, ordered by id, so oldest first.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    filter: &ReminderFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Reminder>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner);
    if let Some(status) = filter.status {
        select.push(" AND status = ").bind(status.as_str());
    }
    if let Some(task) = filter.task_id {
        select.push(" AND task_id = ").bind(task);
    }
    if let Some(cursor) = after {
        select.push(" AND id > ").bind(cursor.id.as_str());
    }
    select.push(" ORDER BY id LIMIT ").bind(limit + 1);
    let reminders = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(reminders, limit, |reminder| Cursor { sort: 0, id: reminder.id.to_string() }))
}

/// Adds a reminder with its status and count of firings. `now` is its creation time and determines its next firing.
/// Returns false and changes nothing if the owner already has one with this id. Does not check that the task exists.
pub(crate) async fn add_if_new(conn: &mut Conn, owner: UserId, reminder: &Reminder, now: Timestamp) -> Result<bool> {
    let insert = "INSERT INTO reminders (owner, id, task_id, remind_at, repeat_interval_minutes, repeat_count, \
                  fired_count, status, created_at, next_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                  ON CONFLICT (owner, id) DO NOTHING";
    let values = args![
        owner,
        reminder.id,
        reminder.task_id,
        reminder.remind_at,
        reminder.repeat_interval_minutes,
        reminder.repeat_count,
        reminder.fired_count,
        reminder.status.as_str(),
        now,
        reminder.next_firing(now),
    ];
    Ok(conn.run((insert, values)).await? == 1)
}

/// Drops the scheduled reminders of a task. Returns their ids.
pub(crate) async fn drop_for_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<Vec<String>> {
    let sql = "UPDATE reminders SET status = 'dropped' WHERE owner = $1 AND task_id = $2 AND status = 'scheduled' \
               RETURNING id";
    conn.all((sql, args![owner, task])).await?.iter().map(|row| row.text(0)).collect()
}

/// Drops all scheduled reminders without a pending task. An import can contain them.
pub(crate) async fn drop_orphaned(conn: &mut Conn, owner: UserId) -> Result<()> {
    let mut update = Statement::default();
    update.push("UPDATE reminders SET status = 'dropped' WHERE owner = ").bind(owner);
    update.push(" AND status = 'scheduled' AND NOT ").push(HAS_PENDING_TASK);
    conn.run(update).await.map(drop)
}

/// Schedules dropped reminders again, with their old firing times. They fire late if their time has passed. Skips
/// unknown ids and reminders that are not dropped or have no pending task.
pub(crate) async fn restore_dropped(conn: &mut Conn, owner: UserId, ids: &[String]) -> Result<()> {
    for id in ids {
        let mut update = Statement::default();
        update.push("UPDATE reminders SET status = 'scheduled' WHERE owner = ").bind(owner).push(" AND id = ");
        update.bind(id.as_str()).push(" AND status = 'dropped' AND ").push(HAS_PENDING_TASK);
        conn.run(update).await?;
    }
    Ok(())
}

/// Sets the next firing time of reminders from an older schema.
pub(crate) async fn fill_missing_times(conn: &mut Conn) -> Result<()> {
    conn.run(("UPDATE reminders SET next_at = remind_at WHERE next_at IS NULL", [])).await.map(drop)
}

/// Returns up to `limit` scheduled reminders of all users that fire at `now` or before, the earliest first. Locks
/// nothing; [`fire`] claims them.
pub async fn due_reminders(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<DueReminder>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(", owner, next_at FROM reminders WHERE status = 'scheduled'");
    select.push(" AND next_at <= ").bind(now).push(" ORDER BY next_at LIMIT ").bind(limit);
    let rows = conn.all(select).await?;
    rows.iter()
        .map(|row| Ok(DueReminder { owner: row.parsed(7, str::parse)?, reminder: read(row)?, at: row.time(8)? }))
        .collect()
}

/// Returns the earliest firing time of all scheduled reminders, or `None` if there are none.
pub async fn next_due_at(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(next_at) FROM reminders WHERE status = 'scheduled'";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Claims one firing of a reminder: counts it and sets its next time, or ends it after the last one. The caller
/// notifies the user in the same transaction. Returns the updated reminder and its task. Returns `None` if another node
/// has claimed it, or if it was moved, deleted or dropped meanwhile. Also returns `None` if its task does not exist;
/// the firing is counted then.
pub async fn fire(conn: &mut Conn, due: &DueReminder, now: Timestamp) -> Result<Option<(Reminder, Task)>> {
    let mut reminder = due.reminder.clone();
    let next = reminder.fire(now).unwrap_or(due.at);
    let sql = "UPDATE reminders SET fired_count = $5, status = $6, next_at = $7 WHERE owner = $1 AND id = $2 \
               AND next_at = $3 AND fired_count = $4 AND status = 'scheduled'";
    let fired = due.reminder.fired_count;
    let values = args![due.owner, reminder.id, due.at, fired, reminder.fired_count, reminder.status.as_str(), next];
    if conn.run((sql, values)).await? == 0 {
        return Ok(None);
    }
    let task = tasks::select(conn, due.owner, reminder.task_id, false).await?;
    Ok(task.map(|task| (reminder, task)))
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<Reminder> {
    Ok(Reminder {
        id: row.parsed(0, Uuid::try_parse)?,
        task_id: row.parsed(1, Uuid::try_parse)?,
        remind_at: row.time(2)?,
        repeat_interval_minutes: row.maybe_int(3)?,
        repeat_count: row.maybe_int(4)?,
        fired_count: row.int(5)?,
        status: row.parsed(6, |word| ReminderStatus::parse("status", word))?,
    })
}
