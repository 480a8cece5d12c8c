//! Tasks whose due moment has come: each moment is told once. Works on everyone's rows, for who tells them.

use jiff::Timestamp;
use model::UserId;
use model::task::Task;
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::conn::{Conn, Row, args};
use crate::{Result, tasks};

/// A task that is due, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub owner: UserId,
    pub task_id: Uuid,
    pub at: Timestamp,
}

impl Due {
    /// The id of what is told of it: the same for the same moment, also when the task was deleted and brought back.
    pub fn notification_id(&self) -> Uuid {
        let mut digest = Sha256::new();
        digest.update(self.task_id.as_bytes());
        digest.update(self.at.as_microsecond().to_be_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.finalize()[..16]);
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// Whose moment has come, the oldest first.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Due>> {
    let sql = "SELECT owner, id, due_at FROM tasks WHERE status = 'pending' AND due_at IS NOT NULL \
               AND due_told IS NULL AND due_at <= $1 ORDER BY due_at LIMIT $2";
    let read = |row: &Row| {
        let owner = row.parsed(0, str::parse)?;
        let task_id = row.parsed(1, Uuid::try_parse)?;
        Ok(Due { owner, task_id, at: row.time(2)? })
    };
    conn.all((sql, args![now, limit])).await?.iter().map(read).collect()
}

/// When the next moment comes.
pub async fn next(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(due_at) FROM tasks WHERE status = 'pending' AND due_at IS NOT NULL AND due_told IS NULL";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Takes the telling for the caller, whose transaction tells the user. `None`: there is nothing to tell, because somebody
/// else has it, it was moved or completed, or a reminder says the same at the same moment.
pub async fn take(conn: &mut Conn, due: &Due) -> Result<Option<Task>> {
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

/// The owner is not told when this one is due.
pub(crate) async fn pass_over(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    conn.run(("UPDATE tasks SET due_told = due_at WHERE owner = $1 AND id = $2", args![owner, task])).await.map(drop)
}

/// Nobody is told any more of what was due before the last change: for rows of a schema that did not know.
pub(crate) async fn forget(conn: &mut Conn) -> Result<()> {
    let sql = "UPDATE tasks SET due_told = due_at WHERE due_at <= (SELECT MAX(updated_at) FROM tasks)";
    conn.run((sql, [])).await.map(drop)
}
