//! Export, import and deletion of all data of a user (OPS-7).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::UserId;
use model::conversation::{Conversation, Message};
use model::execution::Execution;
use model::output::RichOutput;
use model::reminder::{Reminder, ReminderStatus};
use model::task::Task;
use serde::Serialize;
use serde_json::Value;

use crate::conn::{Conn, args};
use crate::executions::OwnerScope;
use crate::page::{Cursor, Page};
use crate::quotas::{self, RowQuota};
use crate::undo::UndoStep;
use crate::{Result, Transaction, a2a, conversations, due, executions, reminders, task_index, tasks};

/// A conversation with all its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct FullConversation {
    pub conversation: Conversation,
    pub messages: Vec<Message>,
}

/// The number of imported items, and of items that existed already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportCounts {
    pub added: usize,
    pub skipped: usize,
}

/// Adds tasks with their ids and times to those of the owner of `step`, and records them in the step. Skips tasks with
/// an id that the owner already has, also within `list`. Due times at `now` or before cause no notification. Returns
/// the counts. Fails with [`crate::Error::QuotaReached`] if the owner has too many tasks then; the caller must roll back.
pub async fn import_tasks(conn: &mut Conn, step: &mut UndoStep, list: &[Task], now: Timestamp) -> Result<ImportCounts> {
    let mut imported = ImportCounts::default();
    for task in list {
        let added = tasks::add_if_new(conn, step, task).await?;
        imported.count(added);
        if added && task.due_date.and_then(|due| due.timestamp()).is_some_and(|at| at <= now) {
            due::mark_notified(conn, step.owner(), task.id).await?;
        }
    }
    quotas::check_added(conn, step.owner(), RowQuota::Tasks, imported.added).await?;
    Ok(imported)
}

/// Adds reminders. Reminders with an existing id are skipped. Afterwards, drops all scheduled reminders of the user
/// without a pending task; imported ones still count as added. Returns the counts. Fails with
/// [`crate::Error::QuotaReached`] if the user or a task has too many then; the caller must roll back.
pub async fn import_reminders(
    conn: &mut Conn,
    owner: UserId,
    list: &[Reminder],
    now: Timestamp,
) -> Result<ImportCounts> {
    let mut imported = ImportCounts::default();
    let mut tasks = BTreeSet::new();
    for reminder in list {
        let added = reminders::add_if_new(conn, owner, reminder, now).await?;
        imported.count(added);
        if added && reminder.status == ReminderStatus::Scheduled {
            tasks.insert(reminder.task_id);
        }
    }
    reminders::drop_orphaned(conn, owner).await?;
    for task in tasks {
        quotas::check_reminders_of_task(conn, owner, task, 0).await?;
    }
    quotas::check_added(conn, owner, RowQuota::Reminders, imported.added).await?;
    Ok(imported)
}

/// Adds conversations. Conversations with an id that any user has are skipped. Returns the counts. Fails with
/// [`crate::Error::QuotaReached`] if the user has too many then; the caller must roll back.
pub async fn import_conversations(conn: &mut Conn, owner: UserId, list: &[FullConversation]) -> Result<ImportCounts> {
    let mut imported = ImportCounts::default();
    for FullConversation { conversation, messages } in list {
        imported.count(conversations::add_if_new(conn, owner, conversation, messages).await?);
    }
    quotas::check_added(conn, owner, RowQuota::Conversations, imported.added).await?;
    Ok(imported)
}

/// Deletes all data of the user: tasks with undo steps and reminders, permissions, notifications and their deliveries,
/// conversations, idempotency keys, sessions, A2A contexts and push configurations, schedules and executions. Running
/// executions and sessions are deleted too, and their nodes cancel them then. Schedules of the configuration file stay,
/// but lose their decisions. Revoked tokens stay. SQLite overwrites the data on disk soon after the commit. This cannot
/// be undone. Has no effect if the user has no data.
pub async fn erase(tx: &mut Transaction, owner: UserId) -> Result<()> {
    tx.erase_from_disk();
    for sql in [
        "DELETE FROM tasks WHERE owner = $1",
        "DELETE FROM task_changes WHERE owner = $1",
        "DELETE FROM reminders WHERE owner = $1",
        "DELETE FROM permissions WHERE owner = $1",
        "DELETE FROM notifications WHERE owner = $1",
        "DELETE FROM deliveries WHERE owner = $1",
        "DELETE FROM messages WHERE owner = $1",
        "DELETE FROM conversations WHERE owner = $1",
        "DELETE FROM idempotency_keys WHERE owner = $1",
        // A running process notices the deletion: the holder of its slot no longer exists.
        "DELETE FROM sessions WHERE owner = $1",
        "DELETE FROM a2a_contexts WHERE owner = $1",
        "DELETE FROM a2a_pushes WHERE owner = $1",
        "DELETE FROM decisions WHERE schedule_id IN (SELECT id FROM schedules WHERE owner = $1)",
        // Schedules of the configuration file belong to the operator.
        "DELETE FROM schedules WHERE owner = $1 AND source <> 'file'",
    ] {
        tx.run((sql, args![owner])).await?;
    }
    task_index::rebuild(tx).await?;
    let deleted = tx.all(("DELETE FROM executions WHERE owner = $1 RETURNING id, task_id", args![owner])).await?;
    executions::remove_dependents(tx, &deleted).await
}

/// An execution with its output by stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportedExecution {
    #[serde(flatten)]
    pub execution: Execution,
    pub output: BTreeMap<String, String>,
    /// The structured output.
    #[serde(rename = "said", skip_serializing_if = "Vec::is_empty")]
    pub rich_output: Vec<RichOutput>,
    /// The A2A message that requested the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// Returns one page of the user's executions for an export, newest first, each with the output of its last attempt and
/// its A2A message. Long inputs and context values are shortened as in [`executions::list`]. Executions are never
/// imported, because they did not run on the importing system.
pub async fn export_executions(
    conn: &mut Conn,
    owner: UserId,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<ExportedExecution>> {
    let page =
        executions::list(conn, OwnerScope::User(owner), &executions::ExecutionFilter::default(), after, limit).await?;
    let mut rows = Vec::with_capacity(page.rows.len());
    for execution in page.rows {
        let output = executions::outputs_by_stream(conn, execution.id).await?;
        let rich_output = executions::rich_output(conn, execution.id).await?;
        let message = a2a::message_for(conn, owner, execution.id).await?;
        rows.push(ExportedExecution { execution, output, rich_output, message });
    }
    Ok(Page { rows, next: page.next })
}

impl ImportCounts {
    /// Counts one item: as added, or else as skipped.
    fn count(&mut self, added: bool) {
        if added {
            self.added += 1;
        } else {
            self.skipped += 1;
        }
    }
}
