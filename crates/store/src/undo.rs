//! Undo of changes to tasks: one step at a time, newest first, up to [`MAX_STEPS`] steps for each user.

use model::UserId;
use model::reminder::Reminder;
use model::task::{Task, TaskChangeKind, TaskStatus, UndoneChange};
use serde::Deserialize;
use uuid::Uuid;

use crate::conn::{Conn, args};
use crate::{Error, Result, quotas, reminders, tasks};

/// The number of undo steps of a user (TASK-1).
pub const MAX_STEPS: i64 = 50;

/// A change in progress. One undo reverts all tasks that it has changed.
#[derive(Debug)]
pub struct UndoStep {
    owner: UserId,
    /// True once a change is recorded. The step is the last one of the owner then.
    has_number: bool,
}

impl UndoStep {
    /// Begins a change and locks the tasks of the owner until the transaction ends. The lock makes the step numbers
    /// follow the order of commits, so the caller must call this first. SQLite has only one writer and needs no lock.
    pub async fn begin(conn: &mut Conn, owner: UserId) -> Result<Self> {
        quotas::lock_owner(conn, owner).await?;
        Ok(Self { owner, has_number: false })
    }

    /// Returns the owner of the tasks.
    pub(crate) fn owner(&self) -> UserId {
        self.owner
    }

    /// Records the previous state of a task, `None` if it is new, and the previous states of its changed reminders. Of
    /// several changes to a task in one step, the first state is kept. The first change of a step removes the steps
    /// beyond [`MAX_STEPS`].
    pub(crate) async fn record(
        &mut self,
        conn: &mut Conn,
        kind: TaskChangeKind,
        task: Uuid,
        before: Option<&Task>,
        reminders: &[Reminder],
    ) -> Result<()> {
        let corrupt = |error: serde_json::Error| Error::Corrupt(error.to_string());
        let before = before.map(serde_json::to_string).transpose().map_err(corrupt)?;
        let reminders =
            (!reminders.is_empty()).then(|| serde_json::to_string(reminders)).transpose().map_err(corrupt)?;
        self.insert(conn, kind, task, before, reminders).await
    }

    /// Records a change of a reminder with its previous state.
    pub(crate) async fn record_reminder_change(&mut self, conn: &mut Conn, before: &Reminder) -> Result<()> {
        self.record(conn, TaskChangeKind::ReminderChanged, before.task_id, None, std::slice::from_ref(before)).await
    }

    /// Records the creation of a reminder.
    pub(crate) async fn record_reminder(&mut self, conn: &mut Conn, reminder: &Reminder) -> Result<()> {
        self.insert(conn, TaskChangeKind::Reminded, reminder.task_id, Some(reminder.id.to_string()), None).await
    }

    /// Inserts a row. The first row of a step gives it its number, one more than the last step of the owner, and removes the
    /// steps beyond [`MAX_STEPS`]. `before` is the previous task as JSON, or the id of a reminder. A second row for the
    /// task in this step changes only the kind, and the reminders if there were none. The lock of the owner keeps
    /// the number of the last step unchanged.
    async fn insert(
        &mut self,
        conn: &mut Conn,
        kind: TaskChangeKind,
        task: Uuid,
        before: Option<String>,
        reminders: Option<String>,
    ) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.has_number, true);
        let insert = "INSERT INTO task_changes (owner, step, task_id, kind, before, reminders) VALUES ($1, \
                      COALESCE((SELECT MAX(step) FROM task_changes WHERE owner = $1), 0) + $2, $3, $4, $5, $6) \
                      ON CONFLICT (owner, step, task_id) DO UPDATE SET kind = excluded.kind, \
                      reminders = COALESCE(task_changes.reminders, excluded.reminders)";
        conn.run_later((insert, args![self.owner, i64::from(is_first), task, kind.as_str(), before, reminders]))
            .await?;
        if is_first {
            let forget = "DELETE FROM task_changes WHERE owner = $1 AND step <= \
                          (SELECT MAX(step) FROM task_changes WHERE owner = $1) - $2";
            conn.run_later((forget, args![self.owner, MAX_STEPS])).await?;
        }
        Ok(())
    }
}

/// Returns true if an undo of the newest step would remove tasks that the step created or imported.
pub async fn would_remove_tasks(conn: &mut Conn, owner: UserId) -> Result<bool> {
    let newest = "SELECT 1 FROM task_changes WHERE owner = $1 AND kind = 'created' AND step = \
                  (SELECT MAX(step) FROM task_changes WHERE owner = $1) LIMIT 1";
    Ok(conn.first((newest, args![owner])).await?.is_some())
}

/// An entry of the reminders of an undo step.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RecordedReminder {
    /// The id of a dropped reminder. Versions before 0.2 have written it.
    Dropped(String),
    /// The state before the change.
    State(Box<Reminder>),
}

/// Returns recorded reminders to their states. Does nothing if none are recorded.
async fn restore_reminders(conn: &mut Conn, owner: UserId, recorded: Option<String>) -> Result<()> {
    let Some(recorded) = recorded else { return Ok(()) };
    let recorded: Vec<RecordedReminder> =
        serde_json::from_str(&recorded).map_err(|error| Error::Corrupt(error.to_string()))?;
    for reminder in recorded {
        match reminder {
            RecordedReminder::Dropped(id) => reminders::restore_dropped(conn, owner, &id).await?,
            RecordedReminder::State(reminder) => reminders::restore(conn, owner, *reminder).await?,
        }
    }
    reminders::drop_orphaned(conn, owner).await
}

/// Reverts the newest step of the user and removes it. Restores each previous task and its changed reminders; if the
/// previous task was completed, drops its reminders instead. Removes created tasks with their reminders,
/// and created reminders. Skips created tasks and tasks of created reminders that no longer exist. Returns `Created`
/// and the removed tasks if the step only created tasks. Otherwise returns another kind of the step, and only the tasks
/// that still exist. May exceed the quotas of the user. Fails with [`Error::NotFound`] if no step exists.
pub async fn undo(conn: &mut Conn, owner: UserId) -> Result<UndoneChange> {
    UndoStep::begin(conn, owner).await?;
    conn.quotas().forget(owner);
    let newest = "DELETE FROM task_changes WHERE owner = $1 AND step = \
                  (SELECT MAX(step) FROM task_changes WHERE owner = $1) RETURNING task_id, kind, before, reminders";
    let rows = conn.all((newest, args![owner])).await?;
    if rows.is_empty() {
        return Err(Error::NotFound);
    }
    let changes = rows.iter().map(|row| {
        Ok((row.parsed(0, Uuid::try_parse)?, row.parsed(1, |word| TaskChangeKind::parse("kind", word))?, row))
    });
    let mut changes = changes.collect::<Result<Vec<_>>>()?;
    // A reminder that has moved to a created task must move back before the task is removed.
    changes.sort_by_key(|(_, kind, _)| *kind == TaskChangeKind::Created);
    let main = changes
        .iter()
        .map(|(_, kind, _)| *kind)
        .find(|kind| *kind != TaskChangeKind::Created)
        .unwrap_or(TaskChangeKind::Created);
    let mut undone = UndoneChange { undone: main, tasks: Vec::new(), count: 0 };
    for (task_id, kind, row) in changes {
        let task = match row.maybe_text(2)? {
            Some(reminder) if kind == TaskChangeKind::Reminded => {
                reminders::remove(conn, owner, &reminder).await?;
                let Some(task) = tasks::select(conn, owner, task_id, false).await? else { continue };
                task
            }
            Some(before) => {
                let before: Task = serde_json::from_str(&before).map_err(|error| Error::Corrupt(error.to_string()))?;
                tasks::put(conn, owner, &before).await?;
                if before.status == TaskStatus::Completed {
                    reminders::drop_for_task(conn, owner, task_id).await?;
                } else {
                    restore_reminders(conn, owner, row.maybe_text(3)?).await?;
                }
                before
            }
            None if kind == TaskChangeKind::ReminderChanged => {
                restore_reminders(conn, owner, row.maybe_text(3)?).await?;
                let Some(task) = tasks::select(conn, owner, task_id, false).await? else { continue };
                task
            }
            None => {
                // A task that was deleted meanwhile needs no undo.
                let Some(task) = tasks::select(conn, owner, task_id, false).await? else { continue };
                tasks::remove(conn, owner, task_id).await?;
                reminders::remove_for_task(conn, owner, task_id).await?;
                // The next task of a recurring one is not reported, because the user did not create it.
                if main != TaskChangeKind::Created {
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
