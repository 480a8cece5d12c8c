//! Executions: their record, and while they wait, the queue.

mod events;
mod follow_up;
mod queue;
mod row;

use std::borrow::Cow;

use jiff::Timestamp;
use model::UserId;
use model::execution::{Execution, ExecutionRecord, ExecutionResult, Exit, State, StateName, Status};
use uuid::Uuid;

use crate::conn::{Conn, Row, Statement, args};
use crate::hints::Hint;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

pub(crate) use events::{Dropped, drop_output};
pub use events::{
    Event, FEW, Kind, SAID, append, drop_from, events, events_in_short, last_seq, output, outputs, said, size_of_output,
};
pub use follow_up::{followed_up, to_follow_up};
pub use queue::{
    Abandoned, Claimed, Fence, Left, New, OfTask, abandoned, agents_waiting, any_too_late, any_waiting, cancelled,
    claim, claim_in_session, counts, end_waiting, queue_again, recover, save, submit, submit_to, too_late,
    without_session,
};
pub use row::Stored;

pub use crate::places::give_back;

pub(crate) use row::{COLUMNS, COUNT, read};
use row::{IN_SHORT, PRIVATE, read_in_short, read_private, read_with_position};

/// Whose executions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Users(UserId),
    /// For administrators, and for the supervisor itself.
    Everyones,
}

/// Which executions a list has.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub agent_id: Option<String>,
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub states: Vec<StateName>,
    /// The beginning or the end of an id.
    pub reference: Option<String>,
}

/// How many wait before this one, itself included; only for those that wait. The messages of a session wait for it alone.
const POSITION: &str = "CASE WHEN e.state <> 'idle' THEN NULL WHEN e.session_id IS NULL \
     THEN (SELECT COUNT(*) FROM executions o WHERE o.state = 'idle' AND o.session_id IS NULL \
     AND o.agent_id = e.agent_id AND (o.run_at, o.id) <= (e.run_at, e.id)) \
     ELSE (SELECT COUNT(*) FROM executions o WHERE o.state = 'idle' AND o.session_id = e.session_id \
     AND (o.run_at, o.id) <= (e.run_at, e.id)) END";

pub async fn get(conn: &mut Conn, whose: Whose, id: Uuid) -> Result<Execution> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(", ").push(POSITION).push(" FROM executions e WHERE e.id = ").bind(id);
    belonging(&mut select, whose);
    let row = conn.first(select).await?.ok_or(Error::NotFound)?;
    read_with_position(&row)
}

/// One page, newest first. What is long in them is cut: [`get`] gives the whole.
pub async fn list(
    conn: &mut Conn,
    whose: Whose,
    filter: &Filter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Execution>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(IN_SHORT).push(", ").push(POSITION).push(" FROM executions e WHERE 1 = 1");
    belonging(&mut select, whose);
    if let Some(agent) = &filter.agent_id {
        select.push(" AND e.agent_id = ").bind(agent.as_str());
    }
    if let Some(schedule) = filter.schedule_id {
        select.push(" AND e.schedule_id = ").bind(schedule);
    }
    if let Some(session) = filter.session_id {
        select.push(" AND e.session_id = ").bind(session);
    }
    if !filter.states.is_empty() {
        select.push(" AND e.state IN (");
        for (at, state) in filter.states.iter().enumerate() {
            select.push(if at == 0 { "" } else { ", " }).bind(state.as_str());
        }
        select.push(")");
    }
    if let Some(reference) = &filter.reference {
        let part = crate::tasks::escaped(&reference.to_lowercase());
        select.push(" AND (e.id LIKE ").bind(format!("{part}%")).push(" ESCAPE '\\'");
        select.push(" OR e.id LIKE ").bind(format!("%{part}")).push(" ESCAPE '\\')");
    }
    if let Some(cursor) = after {
        select.push(" AND e.id < ").bind(cursor.id.as_str());
    }
    select.push(" ORDER BY e.id DESC LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?;
    let executions = rows.iter().map(read_in_short).collect::<Result<Vec<_>>>()?;
    let cursor =
        |execution: &Execution| Cursor { sort: execution.created_at.as_microsecond(), id: execution.id.to_string() };
    Ok(Page::cut(executions, limit, cursor))
}

/// What came of an execution that has ended. Its answer is the file that it wrote, or else what it said, as far as that is
/// text.
pub async fn result(conn: &mut Conn, whose: Whose, id: Uuid) -> Result<ExecutionResult> {
    let execution = get(conn, whose, id).await?;
    let end = execution.ended().ok_or(Error::NotEnded)?;
    let status = end.status;
    let execution_time = end.execution_time();
    let extra = conn.first(("SELECT artifacts, truncated FROM executions WHERE id = $1", args![id])).await?;
    let extra = extra.ok_or(Error::NotFound)?;
    let mut answer = output(conn, id, "file").await?;
    if answer.is_empty() {
        answer = output(conn, id, "stdout").await?;
    }
    if answer.is_empty() {
        answer = model::said::as_text(&said(conn, id).await?);
    }
    let execution = ExecutionRecord::from(execution);
    Ok(ExecutionResult {
        status,
        outcome: execution.outcome,
        output: answer,
        truncated: extra.int(1)? != 0,
        artifacts: extra.parsed(0, |json| serde_json::from_str(json))?,
        execution_time,
        id: execution.id,
        agent_id: execution.agent_id,
        schedule_id: execution.schedule_id,
        session_id: execution.session_id,
        start_time: execution.start_time,
        end_time: execution.end_time,
        input: execution.input,
        error: execution.error_message,
        error_category: execution.error_category,
        process_id: execution.process_id,
        exit_code: execution.exit_code,
        previous_retries: execution.previous_retries,
        resource_usage: execution.resource_usage,
        state_transitions: execution.state_transitions,
    })
}

/// An execution that has ended, with what it was asked for, to ask it again.
pub async fn again(conn: &mut Conn, whose: Whose, id: Uuid) -> Result<Stored> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(PRIVATE).push(" FROM executions e WHERE e.id = ").bind(id);
    belonging(&mut select, whose);
    let stored = read_private(&conn.first(select).await?.ok_or(Error::NotFound)?)?;
    if stored.execution.is_ended() { Ok(stored) } else { Err(Error::NotEnded) }
}

/// Asks an execution to stop. One that waits ends here and now; one at work is told by its node.
pub async fn cancel(conn: &mut Conn, whose: Whose, id: Uuid, now: Timestamp) -> Result<Execution> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM executions e WHERE e.id = ").bind(id);
    belonging(&mut select, whose);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE");
    }
    let mut execution = read(&conn.first(select).await?.ok_or(Error::NotFound)?)?;
    if execution.is_ended() {
        return Err(Error::Ended);
    }
    if let State::Idle { .. } = execution.state() {
        execution.end(Status::Cancelled, Exit::with_error("cancelled while it waited", None), now)?;
        queue::settle(conn, &execution, None).await?;
    } else {
        let sql = "UPDATE executions SET cancel_asked = COALESCE(cancel_asked, $2) WHERE id = $1 AND ended_at IS NULL";
        conn.run((sql, args![id, now])).await?;
        conn.hint(Hint::Cancel(id));
    }
    Ok(execution)
}

/// How often any execution was claimed, at most.
pub(crate) async fn last_claim(conn: &mut Conn) -> Result<i64> {
    let row = conn.first(("SELECT COALESCE(MAX(lease_token), 0) FROM executions", [])).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

/// After a restore nobody holds anything: what was at work in the backup is abandoned, and whoever is at work now, after
/// `claims` claims, can write to none of these rows.
pub(crate) async fn disown(conn: &mut Conn, claims: i64) -> Result<()> {
    conn.run(("DELETE FROM places", [])).await?;
    let sql = "UPDATE executions SET lease_token = lease_token + $1 + 1, \
               node = CASE WHEN state = 'idle' THEN NULL ELSE '' END WHERE ended_at IS NULL";
    conn.run((sql, args![claims])).await.map(drop)
}

/// Removes what belongs to executions whose rows are gone: ids, and the tasks that they were part of. In this order nobody
/// can add more in between.
pub(crate) async fn remove_traces(conn: &mut Conn, gone: &[Row]) -> Result<()> {
    for row in gone {
        let id = row.text(0)?;
        conn.run(("DELETE FROM execution_events WHERE execution_id = $1", args![id.as_str()])).await?;
        if let Some(task) = row.maybe_text(1)? {
            crate::a2a::remove_traces(conn, &task, &id).await?;
        }
    }
    Ok(())
}

/// PostgreSQL has no place for a NUL in a text.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

fn belonging(select: &mut Statement<'_>, whose: Whose) {
    if let Whose::Users(owner) = whose {
        select.push(" AND e.owner = ").bind(owner);
    }
}
