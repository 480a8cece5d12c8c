//! Due tasks. The owner is notified once for each due time. These functions work on the rows of all users, for the
//! notifier.

use jiff::Timestamp;
use model::UserId;
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

/// Returns up to `limit` tasks of all users that are due at `now` or before, the earliest first. Skips tasks that were
/// notified of this due time. Only pending tasks with a time of day are due.
pub async fn due_tasks(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<DueTask>> {
    let sql = "SELECT owner, id, due_at FROM tasks WHERE status = 'pending' AND due_at IS NOT NULL \
               AND due_told IS NULL AND due_at <= $1 ORDER BY due_at LIMIT $2";
    let read = |row: &DbRow| {
        let owner = row.parsed(0, str::parse)?;
        let task_id = row.parsed(1, Uuid::try_parse)?;
        Ok(DueTask { owner, task_id, at: row.time(2)? })
    };
    conn.all((sql, args![now, limit])).await?.iter().map(read).collect()
}

/// Returns the earliest due time without a notification, or `None` if there is none.
pub async fn next_due_at(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(due_at) FROM tasks WHERE status = 'pending' AND due_at IS NOT NULL AND due_told IS NULL";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Claims the notification of a due task and returns the task. The caller notifies the user in the same transaction.
/// Returns `None` if another node has claimed it, or if the task was moved, completed or deleted. Also returns `None`
/// if the task has a reminder for the same time that was not dropped. In this case the task counts as notified.
pub async fn claim(conn: &mut Conn, due: &DueTask) -> Result<Option<Task>> {
    let sql = "UPDATE tasks SET due_told = due_at WHERE owner = $1 AND id = $2 AND due_at = $3 \
               AND status = 'pending' AND due_told IS NULL";
    if conn.run((sql, args![due.owner, due.task_id, due.at])).await? == 0 {
        return Ok(None);
    }
    let sql = "SELECT 1 FROM reminders WHERE owner = $1 AND task_id = $2 AND remind_at = $3 AND status <> 'dropped'";
    if conn.first((sql, args![due.owner, due.task_id, due.at])).await?.is_some() {
        return Ok(None);
    }
    tasks::select(conn, due.owner, due.task_id, false).await
}

/// Marks the task as notified, so that its due time causes no notification.
pub(crate) async fn mark_notified(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    conn.run(("UPDATE tasks SET due_told = due_at WHERE owner = $1 AND id = $2", args![owner, task])).await.map(drop)
}

/// Marks all tasks as notified that were due when any task was last changed. Used after a restore from a schema without
/// notifications.
pub(crate) async fn mark_past_notified(conn: &mut Conn) -> Result<()> {
    let sql = "UPDATE tasks SET due_told = due_at WHERE due_at <= (SELECT MAX(updated_at) FROM tasks)";
    conn.run((sql, [])).await.map(drop)
}
