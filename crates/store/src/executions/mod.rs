//! Executions: their records, their events and the queue.

mod cancel;
mod events;
mod follow_up;
mod pieces;
mod queue;
mod row;

use std::borrow::Cow;

use jiff::Timestamp;
use model::UserId;
use model::execution::{
    AttemptExit, Execution, ExecutionRecord, ExecutionResult, ExecutionState, ExecutionStatus, StateName,
};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::hints::Hint;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

pub use cancel::{CancelRequest, cancel_requests};
pub(crate) use events::{DroppedOutput, drop_output};
pub use events::{
    ExecutionEvent, ExecutionEventKind, MAX_INLINE_EVENTS, RICH_OUTPUT_STREAM, append_events, events, gap_mark,
    last_seq, output, outputs_by_stream, rich_output, status_events, total_output_bytes, truncate_stream,
};
pub use follow_up::{mark_followed_up, pending_follow_ups};
pub use pieces::{
    EventPage, EventPiece, OutputPlace, PageLimits, event_bytes, event_page, event_piece, output_end, output_page,
};
pub use queue::{
    A2aTaskRef, ClaimedExecution, Fence, NewExecution, OutputSummary, agents_with_queued, claim, claim_in_session,
    claimed_by, end_queued, end_without_session, enqueue, enqueue_or_claim, expire_queued, has_abandoned, has_expired,
    has_queued, lock_abandoned, queue_counts, recover, requeue, save,
};
pub use row::ExecutionRow;

pub use crate::slots::release_slot;

pub(crate) use row::{COLUMN_COUNT, COLUMNS, read};
use row::{INTERNAL_COLUMNS, SUMMARY_COLUMNS, read_row, read_summary, read_with_position};

/// Restricts a query to the rows of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerScope {
    /// The rows of this user.
    User(UserId),
    /// The rows of all users, for administrators and background work.
    AllUsers,
}

/// The filter of a list of executions.
#[derive(Clone, Debug, Default)]
pub struct ExecutionFilter {
    pub agent_id: Option<String>,
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    /// Empty selects all.
    pub states: Vec<StateName>,
    /// A prefix or a suffix of an id.
    pub reference: Option<String>,
}

/// The position in the queue, beginning with 1, or NULL if the execution is not queued. The messages of a session have
/// their own queue.
const POSITION: &str = "CASE WHEN e.state <> 'idle' THEN NULL WHEN e.session_id IS NULL \
     THEN (SELECT COUNT(*) FROM executions o WHERE o.state = 'idle' AND o.session_id IS NULL \
     AND o.agent_id = e.agent_id AND (o.run_at, o.id) <= (e.run_at, e.id)) \
     ELSE (SELECT COUNT(*) FROM executions o WHERE o.state = 'idle' AND o.session_id = e.session_id \
     AND (o.run_at, o.id) <= (e.run_at, e.id)) END";

/// Returns an execution with its queue position. Fails with [`Error::NotFound`] if it does not exist in the scope.
pub async fn get(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<Execution> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(", ").push(POSITION).push(" FROM executions e WHERE e.id = ").bind(id);
    restrict_to_scope(&mut select, scope);
    let row = conn.first(select).await?.ok_or(Error::NotFound)?;
    read_with_position(&row)
}

/// Returns one page of the executions in the scope, ordered by descending id, so newest first, with their queue
/// positions. An execution must match all conditions of the filter, and one of its states if it has any. The reference
/// matches a prefix or a suffix of the id, ignoring case. Inputs and context values of more than 1000 characters are
/// shortened; [`get`] returns them completely.
pub async fn list(
    conn: &mut Conn,
    scope: OwnerScope,
    filter: &ExecutionFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Execution>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(SUMMARY_COLUMNS).push(", ").push(POSITION).push(" FROM executions e WHERE 1 = 1");
    restrict_to_scope(&mut select, scope);
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
        let part = crate::tasks::escape_like(&reference.to_lowercase());
        select.push(" AND (e.id LIKE ").bind(format!("{part}%")).push(" ESCAPE '\\'");
        select.push(" OR e.id LIKE ").bind(format!("%{part}")).push(" ESCAPE '\\')");
    }
    if let Some(cursor) = after {
        select.push(" AND e.id < ").bind(cursor.id.as_str());
    }
    select.push(" ORDER BY e.id DESC LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?;
    let executions = rows.iter().map(read_summary).collect::<Result<Vec<_>>>()?;
    let cursor =
        |execution: &Execution| Cursor { sort: execution.created_at.as_microsecond(), id: execution.id.to_string() };
    Ok(Page::from_rows(executions, limit, cursor))
}

/// Returns the result of an ended execution. Its output is that of the last attempt: the output file, or if that is
/// empty the standard output, or if that is empty the text of the structured output. Fails with [`Error::NotFound`] if
/// it does not exist in the scope, and with [`Error::NotEnded`] if it has not ended.
pub async fn result(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<ExecutionResult> {
    let mut result = result_without_output(conn, scope, id).await?;
    result.output = output(conn, id, "file").await?;
    if result.output.is_empty() {
        result.output = output(conn, id, "stdout").await?;
    }
    if result.output.is_empty() {
        result.output = model::output::output_to_text(&rich_output(conn, id).await?);
    }
    Ok(result)
}

/// Like [`result`] with an empty output.
pub async fn result_without_output(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<ExecutionResult> {
    let execution = get(conn, scope, id).await?;
    let end = execution.ended().ok_or(Error::NotEnded)?;
    let status = end.status;
    let execution_time = end.execution_time();
    let extra = conn.first(("SELECT artifacts, truncated FROM executions WHERE id = $1", args![id])).await?;
    let extra = extra.ok_or(Error::NotFound)?;
    let execution = ExecutionRecord::from(execution);
    Ok(ExecutionResult {
        status,
        outcome: execution.outcome,
        output: String::new(),
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

/// Returns an ended execution with its request, to run it again. Fails with [`Error::NotFound`] or [`Error::NotEnded`].
pub async fn get_for_rerun(conn: &mut Conn, scope: OwnerScope, id: Uuid) -> Result<ExecutionRow> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(INTERNAL_COLUMNS).push(" FROM executions e WHERE e.id = ").bind(id);
    restrict_to_scope(&mut select, scope);
    let row = read_row(&conn.first(select).await?.ok_or(Error::NotFound)?)?;
    if row.execution.is_ended() { Ok(row) } else { Err(Error::NotEnded) }
}

/// Cancels an execution. A queued execution ends immediately as cancelled, also one that waits for a retry. For a
/// running one the request is recorded for its node and sent as a hint; the time of the first request is kept. Returns
/// the execution, which still runs in that case. Fails with [`Error::NotFound`] if it does not exist in the scope, and
/// with [`Error::AlreadyEnded`] if it has ended.
pub async fn cancel(conn: &mut Conn, scope: OwnerScope, id: Uuid, now: Timestamp) -> Result<Execution> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM executions e WHERE e.id = ").bind(id);
    restrict_to_scope(&mut select, scope);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE");
    }
    let mut execution = read(&conn.first(select).await?.ok_or(Error::NotFound)?)?;
    if execution.is_ended() {
        return Err(Error::AlreadyEnded);
    }
    if let ExecutionState::Idle { .. } = execution.state() {
        let exit = AttemptExit::with_error("cancelled while it was queued", None);
        execution.end(ExecutionStatus::Cancelled, exit, now)?;
        queue::save_unclaimed(conn, &execution, None).await?;
    } else {
        let sql = "UPDATE executions SET cancel_asked = COALESCE(cancel_asked, $2) WHERE id = $1 AND ended_at IS NULL";
        conn.run((sql, args![id, now])).await?;
        conn.add_hint(Hint::Cancel(id));
    }
    Ok(execution)
}

/// Returns the highest lease token of all executions, or 0 if there are none.
pub(crate) async fn max_lease_token(conn: &mut Conn) -> Result<i64> {
    let row = conn.first(("SELECT COALESCE(MAX(lease_token), 0) FROM executions", [])).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

/// Invalidates all claims after a restore. Executions that were running in the backup become abandoned. The new lease
/// tokens exceed `max_token`, so that current claims cannot write to the restored rows.
pub(crate) async fn invalidate_claims(conn: &mut Conn, max_token: i64) -> Result<()> {
    conn.run(("DELETE FROM places", [])).await?;
    let sql = "UPDATE executions SET lease_token = lease_token + $1 + 1, \
               node = CASE WHEN state = 'idle' THEN NULL ELSE '' END WHERE ended_at IS NULL";
    conn.run((sql, args![max_token])).await.map(drop)
}

/// Removes the events and the A2A messages of deleted executions. With the last execution of an A2A task, also removes
/// its push configurations. The columns of `deleted` are the id and the id of the A2A task, which may be NULL. The
/// executions are deleted first, so that no new dependent rows can appear.
pub(crate) async fn remove_dependents(conn: &mut Conn, deleted: &[DbRow]) -> Result<()> {
    for row in deleted {
        let id = row.text(0)?;
        conn.run(("DELETE FROM execution_events WHERE execution_id = $1", args![id.as_str()])).await?;
        if let Some(task) = row.maybe_text(1)? {
            crate::a2a::remove_dependents(conn, &task, &id).await?;
        }
    }
    Ok(())
}

/// Replaces NUL characters by U+FFFD, because PostgreSQL cannot store them in text.
pub(crate) fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Adds a condition that restricts the rows to the scope.
fn restrict_to_scope(select: &mut Statement<'_>, scope: OwnerScope) {
    if let OwnerScope::User(owner) = scope {
        select.push(" AND e.owner = ").bind(owner);
    }
}
