//! A2A tasks. A task is one execution, or a sequence of executions if the agent has requested input. The id of the task
//! is the id of its first execution. Besides the executions, this module stores the messages of the tasks, the contexts
//! and the push configurations.

pub mod contexts;
pub mod pushes;

use jiff::Timestamp;
use model::UserId;
use model::execution::{Artifact, Execution, PublicStatus};
use serde_json::Value;
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::executions::{self, A2aTaskRef, COLUMN_COUNT, COLUMNS, ClaimedExecution, NewExecution, read};
use crate::hints::Hint;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

/// The columns of the task. They follow the columns of the execution.
const TASK_COLUMNS: &str = ", e.task_id, e.context_id, e.artifacts, e.truncated";

/// One execution of an A2A task. The last one determines the status of the task.
#[derive(Clone, Debug, PartialEq)]
pub struct A2aRun {
    pub task: A2aTaskRef,
    pub execution: Execution,
    /// The files that the execution has produced.
    pub artifacts: Vec<Artifact>,
    /// True if a part of the output is not stored.
    pub truncated: bool,
}

impl A2aRun {
    /// Returns the status of the task if this is its last execution. A task that has received its input counts as
    /// working, also while it waits in the queue.
    pub fn public_status(&self) -> PublicStatus {
        match self.execution.public_status() {
            PublicStatus::Waiting if self.execution.id != self.task.id => PublicStatus::Working,
            status => status,
        }
    }
}

/// The filter of a list of A2A tasks.
#[derive(Clone, Debug, Default)]
pub struct A2aTaskFilter {
    pub context_id: Option<String>,
    /// Empty selects all.
    pub statuses: Vec<PublicStatus>,
    /// Selects tasks with a status change at this time or later.
    pub changed_since: Option<Timestamp>,
}

/// A message that was sent to a task.
#[derive(Clone, Debug, PartialEq)]
pub struct A2aTaskMessage {
    /// The execution that answers the message.
    pub execution_id: Uuid,
    /// The message in its A2A form.
    pub message: Value,
    pub at: Timestamp,
}

/// Like [`executions::enqueue_or_claim`], and also handles the A2A task of the execution, if it has one. If the id of
/// the task differs from that of the execution, the execution continues the task, and the previous one is superseded.
/// Stores the message of the task, if there is one. Fails with [`Error::QueueFull`], and with [`Error::NotFound`] if
/// the user and the agent have no such task to continue. If the continued task has not requested input, fails with
/// [`Error::NotEnded`] while it is working, with [`Error::AlreadyEnded`] after its end.
pub async fn enqueue_or_claim(
    conn: &mut Conn,
    new: &NewExecution,
    node: Option<Uuid>,
) -> Result<Option<ClaimedExecution>> {
    let Some(task) = &new.task else { return executions::enqueue_or_claim(conn, new, node).await };
    let first = task.id == new.execution.id;
    if !first {
        supersede(conn, new, task).await?;
    }
    let claimed = executions::enqueue_or_claim(conn, new, node).await?;
    let Some(message) = &new.message else { return Ok(claimed) };
    let sql = "INSERT INTO a2a_messages (task_id, seq, execution_id, message, at) \
               VALUES ($1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM a2a_messages WHERE task_id = $1), $2, $3, $4)";
    let values = args![task.id, new.execution.id, message.to_string(), new.execution.created_at];
    conn.run((sql, values)).await?;
    Ok(claimed)
}

/// Marks the last execution of the task as superseded, sends a hint about it, and makes the push configurations of the
/// task due. The execution must have completed with a request for input or access. Otherwise fails with
/// [`Error::AlreadyEnded`] if it has ended, with [`Error::NotEnded`] if not. Of two concurrent answers only the first
/// succeeds. Fails with [`Error::NotFound`] if the user and the agent have no such task.
async fn supersede(conn: &mut Conn, new: &NewExecution, task: &A2aTaskRef) -> Result<()> {
    let sql = "UPDATE executions SET superseded = 1 WHERE task_id = $1 AND owner = $2 AND agent_id = $3 \
               AND superseded = 0 AND state = 'completed' AND outcome IN ('asks', 'needs_access') RETURNING id";
    let agent = new.execution.agent_id.as_str();
    let asked = conn.first((sql, args![task.id, new.owner, agent])).await?;
    let Some(asked) = asked else {
        let run = current_run(conn, new.owner, agent, task.id).await?;
        return Err(if run.execution.is_ended() { Error::AlreadyEnded } else { Error::NotEnded });
    };
    conn.add_hint(Hint::Execution(asked.parsed(0, Uuid::try_parse)?));
    pushes::reopen(conn, task.id).await
}

/// Returns the last execution of a task. Fails with [`Error::NotFound`] if the task does not exist.
pub async fn current_run(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid) -> Result<A2aRun> {
    let mut select = select(owner, agent_id);
    select.push(" AND e.task_id = ").bind(id).push(" AND e.superseded = 0");
    read_run(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// Returns one execution of a task by the id of the execution. Fails with [`Error::NotFound`] if it does not exist.
pub async fn run_by_execution(conn: &mut Conn, owner: UserId, agent_id: &str, execution: Uuid) -> Result<A2aRun> {
    let mut select = select(owner, agent_id);
    select.push(" AND e.id = ").bind(execution).push(" AND e.task_id IS NOT NULL");
    read_run(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// Returns all stored executions of a task in the order of their messages, the current one last. Fails with
/// [`Error::NotFound`] if the user and the agent have no such task.
pub async fn runs(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid) -> Result<Vec<A2aRun>> {
    let mut select = select(owner, agent_id);
    // The ids of different nodes are not ordered, but the numbers of the messages are.
    select.push(" AND e.task_id = ").bind(id).push(
        " ORDER BY e.superseded DESC, (SELECT MIN(m.seq) FROM a2a_messages m WHERE m.task_id = e.task_id \
         AND m.execution_id = e.id), e.id",
    );
    let runs = conn.all_inline(select).await?.iter().map(read_run).collect::<Result<Vec<_>>>()?;
    if runs.is_empty() { Err(Error::NotFound) } else { Ok(runs) }
}

/// Returns one page of the tasks of the user and the agent, represented by their last executions. The task with the
/// latest status change comes first. Also returns the total number of tasks that the filter selects, on all pages.
pub async fn list_tasks(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    filter: &A2aTaskFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<(Page<A2aRun>, i64)> {
    let mut count = Statement::default();
    count.push("SELECT COUNT(*)");
    push_filter(&mut count, owner, agent_id, filter);
    let total = conn.first(count).await?.map_or(Ok(0), |row| row.int(0))?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(TASK_COLUMNS);
    push_filter(&mut select, owner, agent_id, filter);
    if let Some(cursor) = after {
        select.push(" AND (e.changed_at, e.id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY e.changed_at DESC, e.id DESC LIMIT ").bind(limit + 1);
    let runs = conn.all(select).await?.iter().map(read_run).collect::<Result<Vec<_>>>()?;
    let cursor = |run: &A2aRun| Cursor {
        sort: run.execution.last_state_change().as_microsecond(),
        id: run.execution.id.to_string(),
    };
    Ok((Page::from_rows(runs, limit, cursor), total))
}

/// Returns the messages of a task in order, or none if the user and the agent have no such task. Messages of deleted
/// executions are missing. Fails with [`Error::Corrupt`] if a message is not JSON.
pub async fn messages(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid) -> Result<Vec<A2aTaskMessage>> {
    let sql = "SELECT m.execution_id, m.message, m.at FROM a2a_messages m JOIN executions e ON e.id = m.execution_id \
               WHERE m.task_id = $1 AND e.owner = $2 AND e.agent_id = $3 ORDER BY m.seq";
    let read = |row: &DbRow| {
        Ok(A2aTaskMessage {
            execution_id: row.parsed(0, Uuid::try_parse)?,
            message: row.parsed(1, |json| serde_json::from_str(json))?,
            at: row.time(2)?,
        })
    };
    conn.all_inline((sql, args![id, owner, agent_id])).await?.iter().map(read).collect()
}

/// Returns the message that requested the execution. Returns `None` if it did not come over A2A, or if the execution
/// does not exist.
pub(crate) async fn message_for(conn: &mut Conn, owner: UserId, execution: Uuid) -> Result<Option<Value>> {
    let sql = "SELECT m.message FROM a2a_messages m JOIN executions e ON e.task_id = m.task_id AND e.id = m.execution_id \
               WHERE e.id = $1 AND e.owner = $2";
    let row = conn.first((sql, args![execution, owner])).await?;
    row.map(|row| row.parsed(0, |json| serde_json::from_str(json))).transpose()
}

/// Cancels a task that requests input or access. Sets its outcome and the time of its status change, sends a hint, and
/// makes its push configurations due. Returns its last execution. Fails with [`Error::NotFound`] if the user and the
/// agent have no such task. Without such a request, fails with [`Error::NotEnded`] while it is working, and with
/// [`Error::AlreadyEnded`] after its end.
pub async fn withdraw(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid, now: Timestamp) -> Result<A2aRun> {
    let sql = "UPDATE executions SET outcome = 'withdrawn', changed_at = $4 WHERE task_id = $1 AND owner = $2 \
               AND agent_id = $3 AND superseded = 0 AND state = 'completed' AND outcome IN ('asks', 'needs_access')";
    let withdrawn = conn.run((sql, args![id, owner, agent_id, now])).await? == 1;
    let run = current_run(conn, owner, agent_id, id).await?;
    match withdrawn {
        true => {
            conn.add_hint(Hint::Execution(run.execution.id));
            pushes::reopen(conn, id).await?;
            Ok(run)
        }
        false if run.execution.is_ended() => Err(Error::AlreadyEnded),
        false => Err(Error::NotEnded),
    }
}

/// Removes the messages of a deleted execution. With the last execution of the task, also removes its push
/// configurations.
pub(crate) async fn remove_dependents(conn: &mut Conn, task: &str, execution: &str) -> Result<()> {
    let sql = "DELETE FROM a2a_messages WHERE task_id = $1 AND execution_id = $2";
    conn.run((sql, args![task, execution])).await?;
    let sql = "DELETE FROM a2a_pushes WHERE task_id = $1 AND NOT EXISTS (SELECT 1 FROM executions WHERE task_id = $1)";
    conn.run((sql, args![task])).await.map(drop)
}

/// Returns the beginning of a query for executions of an agent and a user. The caller adds the condition for the task.
fn select<'a>(owner: UserId, agent_id: &'a str) -> Statement<'a> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(TASK_COLUMNS).push(" FROM executions e WHERE e.owner = ").bind(owner);
    select.push(" AND e.agent_id = ").bind(agent_id);
    select
}

/// Appends FROM and WHERE of a query for the last executions of the tasks of a user and an agent. A task must match one
/// of the statuses, if there are any, and all other conditions. `changed_since` includes its own time.
fn push_filter<'a>(select: &mut Statement<'a>, owner: UserId, agent_id: &'a str, filter: &'a A2aTaskFilter) {
    select.push(" FROM executions e WHERE e.owner = ").bind(owner).push(" AND e.agent_id = ").bind(agent_id);
    select.push(" AND e.task_id IS NOT NULL AND e.superseded = 0");
    if let Some(context) = &filter.context_id {
        select.push(" AND e.context_id = ").bind(context.as_str());
    }
    if let Some(since) = filter.changed_since {
        select.push(" AND e.changed_at >= ").bind(since);
    }
    for (at, status) in filter.statuses.iter().enumerate() {
        select.push(if at == 0 { " AND (" } else { " OR " }).push(status_condition(*status));
    }
    select.push(if filter.statuses.is_empty() { "" } else { ")" });
}

/// Returns the SQL condition for a result of [`A2aRun::public_status`], for the table alias `e`. `Waiting` is the first
/// execution of a task that is queued and was never retried. `Working` is any other that has not ended. The rest
/// depends on the state and the outcome of an ended execution.
fn status_condition(status: PublicStatus) -> &'static str {
    match status {
        PublicStatus::Waiting => "(e.ended_at IS NULL AND e.state = 'idle' AND e.retry_count = 0 AND e.id = e.task_id)",
        PublicStatus::Working => {
            "(e.ended_at IS NULL AND NOT (e.state = 'idle' AND e.retry_count = 0 AND e.id = e.task_id))"
        }
        PublicStatus::InputRequired => "(e.ended_at IS NOT NULL AND e.state = 'completed' AND e.outcome = 'asks')",
        PublicStatus::AuthRequired => {
            "(e.ended_at IS NOT NULL AND e.state = 'completed' AND e.outcome = 'needs_access')"
        }
        PublicStatus::Completed => {
            "(e.ended_at IS NOT NULL AND e.state = 'completed' \
             AND COALESCE(e.outcome, '') NOT IN ('asks', 'needs_access', 'withdrawn'))"
        }
        PublicStatus::Cancelled => {
            "(e.ended_at IS NOT NULL AND (e.state = 'cancelled' OR e.state = 'completed' AND e.outcome = 'withdrawn'))"
        }
        PublicStatus::Rejected => {
            "(e.ended_at IS NOT NULL AND e.state NOT IN ('completed', 'cancelled') AND e.outcome = 'rejected')"
        }
        PublicStatus::Failed => {
            "(e.ended_at IS NOT NULL AND e.state NOT IN ('completed', 'cancelled') \
             AND COALESCE(e.outcome, '') <> 'rejected')"
        }
    }
}

/// Reads [`COLUMNS`] and [`TASK_COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read_run(row: &DbRow) -> Result<A2aRun> {
    Ok(A2aRun {
        execution: read(row)?,
        task: A2aTaskRef { id: row.parsed(COLUMN_COUNT, Uuid::try_parse)?, context_id: row.text(COLUMN_COUNT + 1)? },
        artifacts: row.parsed(COLUMN_COUNT + 2, |json| serde_json::from_str(json))?,
        truncated: row.int(COLUMN_COUNT + 3)? != 0,
    })
}
