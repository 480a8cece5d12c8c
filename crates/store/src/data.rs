//! All that belongs to one user: given out, taken in, or erased (OPS-7).

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::UserId;
use model::conversation::{Conversation, Message};
use model::execution::Execution;
use model::reminder::Reminder;
use model::said::Said;
use model::task::Task;
use serde::Serialize;
use serde_json::Value;

use crate::conn::{Conn, args};
use crate::executions::Whose;
use crate::page::{Cursor, Page};
use crate::undo::Step;
use crate::{Result, a2a, conversations, due, executions, reminders, tasks};

/// A conversation with everything said in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialogue {
    pub conversation: Conversation,
    pub messages: Vec<Message>,
}

/// How many things came in, and how many were there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    pub added: usize,
    pub skipped: usize,
}

/// Adds tasks with their ids and times; one whose id the user has already is left alone. Nobody is told that one of them
/// was due once.
pub async fn import_tasks(conn: &mut Conn, step: &mut Step, list: &[Task], now: Timestamp) -> Result<Imported> {
    let mut imported = Imported::default();
    for task in list {
        let added = tasks::add_if_new(conn, step, task).await?;
        imported.count(added);
        if added && task.due_date.and_then(|due| due.moment()).is_some_and(|at| at <= now) {
            due::pass_over(conn, step.owner(), task.id).await?;
        }
    }
    Ok(imported)
}

/// Adds reminders; one whose id the user has already is left alone, and one without a task to be done is dropped.
pub async fn import_reminders(conn: &mut Conn, owner: UserId, list: &[Reminder], now: Timestamp) -> Result<Imported> {
    let mut imported = Imported::default();
    for reminder in list {
        imported.count(reminders::add_if_new(conn, owner, reminder, now).await?);
    }
    reminders::drop_strays(conn, owner).await?;
    Ok(imported)
}

/// Adds conversations; one whose id is taken is left alone.
pub async fn import_conversations(conn: &mut Conn, owner: UserId, list: &[Dialogue]) -> Result<Imported> {
    let mut imported = Imported::default();
    for Dialogue { conversation, messages } in list {
        imported.count(conversations::add_if_new(conn, owner, conversation, messages).await?);
    }
    Ok(imported)
}

/// Removes everything the user has, for good: this cannot be undone.
pub async fn erase(conn: &mut Conn, owner: UserId) -> Result<()> {
    for sql in [
        "DELETE FROM tasks WHERE owner = $1",
        "DELETE FROM task_changes WHERE owner = $1",
        "DELETE FROM reminders WHERE owner = $1",
        "DELETE FROM notifications WHERE owner = $1",
        "DELETE FROM deliveries WHERE owner = $1",
        "DELETE FROM messages WHERE owner = $1",
        "DELETE FROM conversations WHERE owner = $1",
        "DELETE FROM idempotency_keys WHERE owner = $1",
        // A process that is still at it notices: its place has a holder that is not there.
        "DELETE FROM sessions WHERE owner = $1",
        "DELETE FROM a2a_contexts WHERE owner = $1",
        "DELETE FROM a2a_pushes WHERE owner = $1",
        "DELETE FROM decisions WHERE schedule_id IN (SELECT id FROM schedules WHERE owner = $1)",
        // Those of the configuration file are the operator's: they go with the file.
        "DELETE FROM schedules WHERE owner = $1 AND source <> 'file'",
    ] {
        conn.run((sql, args![owner])).await?;
    }
    let gone = conn.all(("DELETE FROM executions WHERE owner = $1 RETURNING id, task_id", args![owner])).await?;
    executions::remove_traces(conn, &gone).await
}

/// An execution with what it said, by stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ran {
    #[serde(flatten)]
    pub execution: Execution,
    pub output: BTreeMap<String, String>,
    /// What it said that is more than text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Said>,
    /// The message in which it was asked for, where that came from another agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// One page of the user's executions for an export, newest first. They are given out but never taken in: nothing of them
/// happened where they would be imported.
pub async fn executions(conn: &mut Conn, owner: UserId, after: Option<&Cursor>, limit: i64) -> Result<Page<Ran>> {
    let page = executions::list(conn, Whose::Users(owner), &executions::Filter::default(), after, limit).await?;
    let mut rows = Vec::with_capacity(page.rows.len());
    for execution in page.rows {
        let output = executions::outputs(conn, execution.id).await?;
        let said = executions::said(conn, execution.id).await?;
        let message = a2a::message_of(conn, owner, execution.id).await?;
        rows.push(Ran { execution, output, said, message });
    }
    Ok(Page { rows, next: page.next })
}

impl Imported {
    fn count(&mut self, added: bool) {
        if added {
            self.added += 1;
        } else {
            self.skipped += 1;
        }
    }
}
