//! Tasks of A2A: what was asked of an agent by another. A task is one execution, or several one after the other where the
//! agent asked something and was answered; its id is that of the first. What stands here beside the executions is what
//! they were asked, and what the tasks of a context have in common.

pub mod contexts;
pub mod pushes;

use jiff::Timestamp;
use model::UserId;
use model::execution::{Artifact, Execution, Standing};
use serde_json::Value;
use uuid::Uuid;

use crate::conn::{Conn, Row, Statement, args};
use crate::executions::{self, COLUMNS, COUNT, Claimed, New, OfTask, read};
use crate::hints::Hint;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

/// What stands behind the columns of the execution.
const OF_TASK: &str = ", e.task_id, e.context_id, e.artifacts, e.truncated";

/// One execution of a task. The last one says how the task stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub task: OfTask,
    pub execution: Execution,
    /// The files that it left.
    pub artifacts: Vec<Artifact>,
    /// Whether not all that it said was kept.
    pub truncated: bool,
}

impl Run {
    /// How the task stands, where this is its last execution. One that was answered is at work all the time.
    pub fn standing(&self) -> Standing {
        match self.execution.standing() {
            Standing::Waiting if self.execution.id != self.task.id => Standing::Working,
            standing => standing,
        }
    }
}

/// Which tasks a list has.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub context_id: Option<String>,
    /// Any, where there are none.
    pub standings: Vec<Standing>,
    /// Whose standing has changed then or later.
    pub changed_since: Option<Timestamp>,
}

/// What a task was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The execution that was to answer it.
    pub execution_id: Uuid,
    /// As A2A writes it.
    pub message: Value,
    pub at: Timestamp,
}

/// What [`executions::submit_to`] does, also for an execution that is part of a task: its first, or one that goes on where
/// the one before asked. [`Error::Ended`], [`Error::NotEnded`]: the task has asked nothing.
pub async fn submit_to(conn: &mut Conn, new: &New, node: Option<Uuid>) -> Result<Option<Claimed>> {
    let Some(task) = &new.task else { return executions::submit_to(conn, new, node).await };
    let first = task.id == new.execution.id;
    if !first {
        supersede(conn, new, task).await?;
    }
    let claimed = executions::submit_to(conn, new, node).await?;
    let Some(message) = &new.message else { return Ok(claimed) };
    let sql = "INSERT INTO a2a_messages (task_id, seq, execution_id, message, at) \
               VALUES ($1, (SELECT COALESCE(MAX(seq), 0) + 1 FROM a2a_messages WHERE task_id = $1), $2, $3, $4)";
    let values = args![task.id, new.execution.id, message.to_string(), new.execution.created_at];
    conn.run((sql, values)).await?;
    Ok(claimed)
}

/// Of two who answer the same question one is the first; the other finds that nothing is asked any more.
async fn supersede(conn: &mut Conn, new: &New, of: &OfTask) -> Result<()> {
    let sql = "UPDATE executions SET superseded = 1 WHERE task_id = $1 AND owner = $2 AND agent_id = $3 \
               AND superseded = 0 AND state = 'completed' AND outcome IN ('asks', 'needs_access') RETURNING id";
    let agent = new.execution.agent_id.as_str();
    let asked = conn.first((sql, args![of.id, new.owner, agent])).await?;
    let Some(asked) = asked else {
        let run = task(conn, new.owner, agent, of.id).await?;
        return Err(if run.execution.is_ended() { Error::Ended } else { Error::NotEnded });
    };
    conn.hint(Hint::Execution(asked.parsed(0, Uuid::try_parse)?));
    pushes::reopen(conn, of.id).await
}

/// The last execution of a task.
pub async fn task(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid) -> Result<Run> {
    let mut select = select(owner, agent_id);
    select.push(" AND e.task_id = ").bind(id).push(" AND e.superseded = 0");
    read_run(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// One execution of a task, by its own id.
pub async fn run(conn: &mut Conn, owner: UserId, agent_id: &str, execution: Uuid) -> Result<Run> {
    let mut select = select(owner, agent_id);
    select.push(" AND e.id = ").bind(execution).push(" AND e.task_id IS NOT NULL");
    read_run(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// All executions of a task that are kept, in their order.
pub async fn runs(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid) -> Result<Vec<Run>> {
    let mut select = select(owner, agent_id);
    // Ids of two nodes do not ascend together; the numbers of their messages do.
    select.push(" AND e.task_id = ").bind(id).push(
        " ORDER BY e.superseded DESC, (SELECT MIN(m.seq) FROM a2a_messages m WHERE m.task_id = e.task_id \
         AND m.execution_id = e.id), e.id",
    );
    let runs = conn.few(select).await?.iter().map(read_run).collect::<Result<Vec<_>>>()?;
    if runs.is_empty() { Err(Error::NotFound) } else { Ok(runs) }
}

/// One page of the last executions of tasks, whose standing has changed last first, and how many tasks there are.
pub async fn tasks(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    filter: &Filter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<(Page<Run>, i64)> {
    let mut count = Statement::default();
    count.push("SELECT COUNT(*)");
    matching(&mut count, owner, agent_id, filter);
    let total = conn.first(count).await?.map_or(Ok(0), |row| row.int(0))?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(OF_TASK);
    matching(&mut select, owner, agent_id, filter);
    if let Some(cursor) = after {
        select.push(" AND (e.changed_at, e.id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY e.changed_at DESC, e.id DESC LIMIT ").bind(limit + 1);
    let runs = conn.all(select).await?.iter().map(read_run).collect::<Result<Vec<_>>>()?;
    let cursor = |run: &Run| Cursor {
        sort: run.execution.last_state_change().as_microsecond(),
        id: run.execution.id.to_string(),
    };
    Ok((Page::cut(runs, limit, cursor), total))
}

/// What a task was asked, in its order.
pub async fn messages(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid) -> Result<Vec<Message>> {
    let sql = "SELECT m.execution_id, m.message, m.at FROM a2a_messages m JOIN executions e ON e.id = m.execution_id \
               WHERE m.task_id = $1 AND e.owner = $2 AND e.agent_id = $3 ORDER BY m.seq";
    let read = |row: &Row| {
        Ok(Message {
            execution_id: row.parsed(0, Uuid::try_parse)?,
            message: row.parsed(1, |json| serde_json::from_str(json))?,
            at: row.time(2)?,
        })
    };
    conn.few((sql, args![id, owner, agent_id])).await?.iter().map(read).collect()
}

/// What one execution was asked.
pub(crate) async fn message_of(conn: &mut Conn, owner: UserId, execution: Uuid) -> Result<Option<Value>> {
    let sql = "SELECT m.message FROM a2a_messages m JOIN executions e ON e.task_id = m.task_id AND e.id = m.execution_id \
               WHERE e.id = $1 AND e.owner = $2";
    let row = conn.first((sql, args![execution, owner])).await?;
    row.map(|row| row.parsed(0, |json| serde_json::from_str(json))).transpose()
}

/// Whoever was asked does not want to go on. [`Error::Ended`], [`Error::NotEnded`]: the task has asked nothing.
pub async fn withdraw(conn: &mut Conn, owner: UserId, agent_id: &str, id: Uuid, now: Timestamp) -> Result<Run> {
    let sql = "UPDATE executions SET outcome = 'withdrawn', changed_at = $4 WHERE task_id = $1 AND owner = $2 \
               AND agent_id = $3 AND superseded = 0 AND state = 'completed' AND outcome IN ('asks', 'needs_access')";
    let withdrawn = conn.run((sql, args![id, owner, agent_id, now])).await? == 1;
    let run = task(conn, owner, agent_id, id).await?;
    match withdrawn {
        true => {
            conn.hint(Hint::Execution(run.execution.id));
            pushes::reopen(conn, id).await?;
            Ok(run)
        }
        false if run.execution.is_ended() => Err(Error::Ended),
        false => Err(Error::NotEnded),
    }
}

/// Removes what belongs to an execution of a task, and with the last one what belongs to the task.
pub(crate) async fn remove_traces(conn: &mut Conn, task: &str, execution: &str) -> Result<()> {
    let sql = "DELETE FROM a2a_messages WHERE task_id = $1 AND execution_id = $2";
    conn.run((sql, args![task, execution])).await?;
    let sql = "DELETE FROM a2a_pushes WHERE task_id = $1 AND NOT EXISTS (SELECT 1 FROM executions WHERE task_id = $1)";
    conn.run((sql, args![task])).await.map(drop)
}

fn select<'a>(owner: UserId, agent_id: &'a str) -> Statement<'a> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(OF_TASK).push(" FROM executions e WHERE e.owner = ").bind(owner);
    select.push(" AND e.agent_id = ").bind(agent_id);
    select
}

fn matching<'a>(select: &mut Statement<'a>, owner: UserId, agent_id: &'a str, filter: &'a Filter) {
    select.push(" FROM executions e WHERE e.owner = ").bind(owner).push(" AND e.agent_id = ").bind(agent_id);
    select.push(" AND e.task_id IS NOT NULL AND e.superseded = 0");
    if let Some(context) = &filter.context_id {
        select.push(" AND e.context_id = ").bind(context.as_str());
    }
    if let Some(since) = filter.changed_since {
        select.push(" AND e.changed_at >= ").bind(since);
    }
    for (at, standing) in filter.standings.iter().enumerate() {
        select.push(if at == 0 { " AND (" } else { " OR " }).push(condition(*standing));
    }
    select.push(if filter.standings.is_empty() { "" } else { ")" });
}

/// What [`Run::standing`] says, in SQL.
fn condition(standing: Standing) -> &'static str {
    match standing {
        Standing::Waiting => "(e.ended_at IS NULL AND e.state = 'idle' AND e.retry_count = 0 AND e.id = e.task_id)",
        Standing::Working => {
            "(e.ended_at IS NULL AND NOT (e.state = 'idle' AND e.retry_count = 0 AND e.id = e.task_id))"
        }
        Standing::Asks => "(e.ended_at IS NOT NULL AND e.state = 'completed' AND e.outcome = 'asks')",
        Standing::NeedsAccess => "(e.ended_at IS NOT NULL AND e.state = 'completed' AND e.outcome = 'needs_access')",
        Standing::Completed => {
            "(e.ended_at IS NOT NULL AND e.state = 'completed' \
             AND COALESCE(e.outcome, '') NOT IN ('asks', 'needs_access', 'withdrawn'))"
        }
        Standing::Cancelled => {
            "(e.ended_at IS NOT NULL AND (e.state = 'cancelled' OR e.state = 'completed' AND e.outcome = 'withdrawn'))"
        }
        Standing::Rejected => {
            "(e.ended_at IS NOT NULL AND e.state NOT IN ('completed', 'cancelled') AND e.outcome = 'rejected')"
        }
        Standing::Failed => {
            "(e.ended_at IS NOT NULL AND e.state NOT IN ('completed', 'cancelled') \
             AND COALESCE(e.outcome, '') <> 'rejected')"
        }
    }
}

fn read_run(row: &Row) -> Result<Run> {
    Ok(Run {
        execution: read(row)?,
        task: OfTask { id: row.parsed(COUNT, Uuid::try_parse)?, context_id: row.text(COUNT + 1)? },
        artifacts: row.parsed(COUNT + 2, |json| serde_json::from_str(json))?,
        truncated: row.int(COUNT + 3)? != 0,
    })
}
