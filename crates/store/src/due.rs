//! Due tasks. The owner is notified once for each due time, and of each occurrence of the rule of a task. These functions work on the rows of all users, for the
//! notifier.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::UserId;
use model::reminder::{parse_zone, zone_text};
use model::task::Task;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::conn::{Conn, DbRow, args};
use crate::{Result, tasks};

/// A due task and its due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueTask {
    pub owner: UserId,
    pub task_id: Uuid,
    pub at: Timestamp,
}

impl DueTask {
    /// Returns the id of the notification. It depends only on the task and the due time, so that a deleted and restored
    /// task does not cause a second notification.
    pub fn notification_id(&self) -> Uuid {
        let mut digest = Sha256::new();
        digest.update(self.task_id.as_bytes());
        digest.update(self.at.as_microsecond().to_be_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.finalize()[..16]);
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// Returns up to `limit` tasks of all users that are due at `now` or before, the earliest first. A task with a rule is due
/// again at each of its later occurrences. Skips tasks that were notified of their last occurrence. Only pending tasks
/// with a time of day are due.
pub async fn due_tasks(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<DueTask>> {
    let sql = "SELECT owner, id, due_next FROM tasks WHERE status = 'pending' AND due_next IS NOT NULL \
               AND due_next <= $1 ORDER BY due_next LIMIT $2";
    let read = |row: &DbRow| {
        let owner = row.parsed(0, str::parse)?;
        let task_id = row.parsed(1, Uuid::try_parse)?;
        Ok(DueTask { owner, task_id, at: row.time(2)? })
    };
    conn.all((sql, args![now, limit])).await?.iter().map(read).collect()
}

/// Returns the earliest due time without a notification, or `None` if there is none.
pub async fn next_due_at(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(due_next) FROM tasks WHERE status = 'pending' AND due_next IS NOT NULL";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Claims the notification of a due task and returns the task. The caller notifies the user in the same transaction. The
/// next notification of a task with a rule is at its first occurrence after `now`, so that missed ones are skipped. A
/// task without a stored time zone uses `default_zone`.
///
/// Returns `None` if another node has claimed it, or if the task was moved, completed or deleted. Also returns `None` if
/// this time counts as notified, or if a reminder for the task that was not dropped has fired or will fire at this time.
pub async fn claim(conn: &mut Conn, due: &DueTask, now: Timestamp, default_zone: &TimeZone) -> Result<Option<Task>> {
    let Some(task) = tasks::select(conn, due.owner, due.task_id, true).await? else { return Ok(None) };
    let sql = "SELECT due_told, time_zone FROM tasks WHERE owner = $1 AND id = $2";
    let Some(row) = conn.first((sql, args![due.owner, due.task_id])).await? else { return Ok(None) };
    let is_notified = row.maybe_time(0)?.is_some_and(|told| told >= due.at);
    let zone = row.maybe_text(1)?.as_deref().and_then(parse_zone);
    let next = task.next_due_time(now, zone.as_ref().unwrap_or(default_zone));
    let sql = "UPDATE tasks SET due_told = CASE WHEN due_told > $3 THEN due_told ELSE $3 END, due_next = $4 \
               WHERE owner = $1 AND id = $2 AND due_next = $3 AND status = 'pending'";
    if conn.run((sql, args![due.owner, due.task_id, due.at, next])).await? == 0 || is_notified {
        return Ok(None);
    }
    let sql = "SELECT 1 FROM reminders WHERE owner = $1 AND task_id = $2 AND status <> 'dropped' \
               AND (remind_at = $3 OR last_at = $3 OR (status = 'scheduled' AND next_at = $3))";
    if conn.first((sql, args![due.owner, due.task_id, due.at])).await?.is_some() {
        return Ok(None);
    }
    Ok(Some(task))
}

/// Stores the time zone of the owner for the rule of a task. Does nothing if the task has no rule.
pub(crate) async fn set_zone(conn: &mut Conn, owner: UserId, task: &Task, zone: &TimeZone) -> Result<()> {
    if task.recurrence.is_none() {
        return Ok(());
    }
    let sql = "UPDATE tasks SET time_zone = $3 WHERE owner = $1 AND id = $2";
    conn.run_later((sql, args![owner, task.id, zone_text(zone)])).await
}

/// Marks the task as notified, so that its due time causes no notification. Later occurrences of its rule do.
pub(crate) async fn mark_notified(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    let sql = "UPDATE tasks SET due_told = due_at, due_next = CASE WHEN recurrence IS NULL THEN NULL ELSE due_at END \
               WHERE owner = $1 AND id = $2";
    conn.run((sql, args![owner, task])).await.map(drop)
}

/// Marks all tasks as notified that were due when any task was last changed. Used after a restore from a schema without
/// notifications.
pub(crate) async fn mark_past_notified(conn: &mut Conn) -> Result<()> {
    let sql = "UPDATE tasks SET due_told = due_at WHERE due_at <= (SELECT MAX(updated_at) FROM tasks)";
    conn.run((sql, [])).await.map(drop)
}

/// Sets the next notification of tasks from an older schema.
pub(crate) async fn fill_missing_times(conn: &mut Conn) -> Result<()> {
    let sql =
        "UPDATE tasks SET due_next = due_at WHERE due_at IS NOT NULL AND (due_told IS NULL OR recurrence IS NOT NULL)";
    conn.run((sql, [])).await.map(drop)
}

/// Corrects tasks with a rule whose notification was sent while the clock was ahead. Occurrences after `now` cause
/// notifications again.
pub(crate) async fn correct_times(conn: &mut Conn, now: Timestamp, ahead: Timestamp) -> Result<()> {
    let sql = "UPDATE tasks SET due_told = $1, due_next = due_at WHERE recurrence IS NOT NULL AND due_told > $2";
    conn.run((sql, args![now, ahead])).await.map(drop)
}
