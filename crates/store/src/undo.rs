//! Undoing changes to tasks: one step at a time, newest first, at most [`DEPTH`] steps a user.

use model::UserId;
use model::reminder::Reminder;
use model::task::{ChangeKind, Status, Task, Undone};
use uuid::Uuid;

use crate::conn::{Conn, args};
use crate::{Error, Result, reminders, tasks};

/// How far back a user can go (TASK-1).
pub const DEPTH: i64 = 50;

/// A change being made: all tasks it touches are undone together.
#[derive(Debug)]
pub struct Step {
    owner: UserId,
    /// Known once something was recorded.
    number: Option<i64>,
}

impl Step {
    /// To be called before anything else of the change: until the transaction ends nobody else changes this owner's
    /// tasks, so that steps are numbered in the order of their commits. SQLite has one writer anyway.
    pub async fn begin(conn: &mut Conn, owner: UserId) -> Result<Self> {
        if !conn.is_sqlite() {
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
            conn.first((lock, args![owner])).await?;
        }
        Ok(Self { owner, number: None })
    }

    pub(crate) fn owner(&self) -> UserId {
        self.owner
    }

    /// Notes how a task was before and which of its reminders were dropped; what is more than [`DEPTH`] steps back is
    /// forgotten.
    pub(crate) async fn record(
        &mut self,
        conn: &mut Conn,
        kind: ChangeKind,
        task: Uuid,
        before: Option<&Task>,
        dropped: &[String],
    ) -> Result<()> {
        let corrupt = |error: serde_json::Error| Error::Corrupt(error.to_string());
        let before = before.map(serde_json::to_string).transpose().map_err(corrupt)?;
        let dropped = (!dropped.is_empty()).then(|| serde_json::to_string(dropped)).transpose().map_err(corrupt)?;
        self.note(conn, kind, task, before, dropped).await
    }

    /// Notes that a reminder was set.
    pub(crate) async fn record_reminder(&mut self, conn: &mut Conn, reminder: &Reminder) -> Result<()> {
        self.note(conn, ChangeKind::Reminded, reminder.task_id, Some(reminder.id.to_string()), None).await
    }

    /// `before` is a task as it was, or the id of a reminder.
    async fn note(
        &mut self,
        conn: &mut Conn,
        kind: ChangeKind,
        task: Uuid,
        before: Option<String>,
        dropped: Option<String>,
    ) -> Result<()> {
        let insert = "INSERT INTO task_changes (owner, step, task_id, kind, before, reminders) VALUES ($1, \
                      COALESCE($2, (SELECT MAX(step) + 1 FROM task_changes WHERE owner = $1), 1), $3, $4, $5, $6) \
                      ON CONFLICT (owner, step, task_id) DO UPDATE SET kind = excluded.kind, \
                      reminders = COALESCE(task_changes.reminders, excluded.reminders) RETURNING step";
        let values = args![self.owner, self.number, task, kind.as_str(), before, dropped];
        let step = conn.first((insert, values)).await?.ok_or(Error::NotFound)?.int(0)?;
        if self.number.replace(step).is_none() {
            let forget = "DELETE FROM task_changes WHERE owner = $1 AND step <= $2";
            conn.run((forget, args![self.owner, step - DEPTH])).await?;
        }
        Ok(())
    }
}

/// Takes the newest step back; [`Error::NotFound`] when there is none.
pub async fn undo(conn: &mut Conn, owner: UserId) -> Result<Undone> {
    Step::begin(conn, owner).await?;
    let newest = "DELETE FROM task_changes WHERE owner = $1 AND step = \
                  (SELECT MAX(step) FROM task_changes WHERE owner = $1) RETURNING task_id, kind, before, reminders";
    let rows = conn.all((newest, args![owner])).await?;
    if rows.is_empty() {
        return Err(Error::NotFound);
    }
    let changes = rows
        .iter()
        .map(|row| Ok((row.parsed(0, Uuid::try_parse)?, row.parsed(1, |word| ChangeKind::parse("kind", word))?, row)));
    let changes = changes.collect::<Result<Vec<_>>>()?;
    let main = changes
        .iter()
        .map(|(_, kind, _)| *kind)
        .find(|kind| *kind != ChangeKind::Created)
        .unwrap_or(ChangeKind::Created);
    let mut undone = Undone { undone: main, tasks: Vec::new(), count: 0 };
    for (task_id, kind, row) in changes {
        let task = match row.maybe_text(2)? {
            Some(reminder) if kind == ChangeKind::Reminded => {
                reminders::remove(conn, owner, &reminder).await?;
                let Some(task) = tasks::select(conn, owner, task_id, false).await? else { continue };
                task
            }
            Some(before) => {
                let before: Task = serde_json::from_str(&before).map_err(|error| Error::Corrupt(error.to_string()))?;
                tasks::put(conn, owner, &before).await?;
                if before.status == Status::Completed {
                    reminders::drop_of_task(conn, owner, task_id).await?;
                } else if let Some(dropped) = row.maybe_text(3)? {
                    let dropped: Vec<_> =
                        serde_json::from_str(&dropped).map_err(|error| Error::Corrupt(error.to_string()))?;
                    reminders::take_up(conn, owner, &dropped).await?;
                }
                before
            }
            None => {
                // One that is gone already needs no undoing.
                let Some(task) = tasks::select(conn, owner, task_id, false).await? else { continue };
                tasks::remove(conn, owner, task_id).await?;
                reminders::remove_of_task(conn, owner, task_id).await?;
                // It only followed one that was completed: nobody asked for it by name.
                if main != ChangeKind::Created {
                    continue;
                }
                task
            }
        };
        undone.tasks.push(task);
    }
    undone.count = undone.tasks.len();
    Ok(undone)
}
