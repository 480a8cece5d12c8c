//! The queue of executions: enqueue, claim with a slot, save under a fence, recover. These functions work on the rows
//! of all users, for the supervisor.

use std::collections::HashSet;

use jiff::Timestamp;
use model::UserId;
use model::execution::{
    Artifact, AttemptExit, ErrorCategory, Execution, ExecutionOutcome, ExecutionRecord, ExecutionStatus, FollowUp,
    StateName,
};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::events::{ExecutionEvent, ExecutionEventKind, append_events, last_seq};
use super::replace_nul;
use super::row::{COLUMNS, ExecutionRow, INTERNAL_COLUMNS, read_row};
use crate::conn::{Conn, DbRow, Statement, args};
use crate::hints::Hint;
use crate::stop_state::{IS_STOPPED, SHARED_LOCK};
use crate::{Error, Result, nodes, quotas, slots};

/// Selects executions that a node holds, also between two attempts. The condition equals that of the index.
const IS_HELD: &str = " AND ended_at IS NULL AND state <> 'idle'";

/// An execution that is not stored yet.
#[derive(Clone, Debug)]
pub struct NewExecution {
    pub execution: Execution,
    pub owner: UserId,
    /// The request as JSON. Empty if it contains secrets and is in a spool.
    pub request: String,
    pub spool: Option<String>,
    pub follow_up: Option<FollowUp>,
    /// The A2A message that requested the execution, redacted.
    pub message: Option<Value>,
    /// The A2A task of the execution.
    pub task: Option<A2aTaskRef>,
    /// The time at which the queue timeout ends the execution if it is still queued.
    pub wait_until: Timestamp,
    /// The number of slots of the agent.
    pub slots: i64,
    /// The number of executions that may wait for a slot, or of messages that may wait for the session.
    pub queue_depth: i64,
}

/// The A2A task of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aTaskRef {
    /// The id of the first execution of the task.
    pub id: Uuid,
    pub context_id: String,
}

/// Proves that a node holds an execution. Only the holder may write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub id: Uuid,
    pub node: Uuid,
    pub token: i64,
}

/// An execution that this node may run now.
#[derive(Clone, Debug)]
pub struct ClaimedExecution {
    pub row: ExecutionRow,
    pub fence: Fence,
    /// The number of the last event.
    pub seq: i64,
}

/// The artifacts and the output size of a run.
#[derive(Clone, Debug, Default)]
pub struct OutputSummary {
    pub artifacts: Vec<Artifact>,
    pub truncated: bool,
    pub output_bytes: i64,
}

/// Adds an execution to the queue. Fails with [`Error::QueueFull`] if the queue is full.
pub async fn enqueue(conn: &mut Conn, new: &NewExecution) -> Result<()> {
    enqueue_or_claim(conn, new, None).await.map(drop)
}

/// Adds an execution with its first events and sends a hint. Claims it for `node` if the queue of the agent is empty, a
/// slot is free, and the node was not declared dead. Returns the claim, or `None` if the execution was queued. Always
/// queues it without a `node`, or if it is a message of a session. Fails with [`Error::QueueFull`] if the number of
/// queued executions has reached `queue_depth` plus the free slots. For a message, the limit is `queue_depth` queued
/// messages of the session. Fails with [`Error::QuotaReached`] if the owner has too many executions of this day or
/// holds their share of the queue, and with [`Error::Stopped`] while everything is stopped. All failures leave the
/// database unchanged.
pub async fn enqueue_or_claim(
    conn: &mut Conn,
    new: &NewExecution,
    node: Option<Uuid>,
) -> Result<Option<ClaimedExecution>> {
    let execution = &new.execution;
    quotas::check_new_run(conn, new.owner, execution.created_at).await?;
    let claimed = match execution.session_id {
        None => {
            lock_queue(conn, &execution.agent_id).await?;
            let (waiting, taken) = waiting_and_taken(conn, &execution.agent_id).await?;
            let (free_count, mut free) = slots::free_besides(taken, new.slots);
            check_queue_depth(new, waiting, free_count)?;
            let free_slots = i64::try_from(free_count).unwrap_or(i64::MAX);
            let agent = &execution.agent_id;
            quotas::check_queue_share(conn, new.owner, agent, new.queue_depth, free_slots, waiting).await?;
            match node.filter(|_| waiting == 0) {
                Some(node) => claim_new(conn, new, node, &mut free).await?,
                None => None,
            }
        }
        Some(session) => {
            lock_queue(conn, &session.to_string()).await?;
            let sql = "SELECT (SELECT COUNT(*) FROM executions WHERE session_id = $1 AND state = 'idle'), \
                       st.stopped_at, st.reason FROM (SELECT 1) one LEFT JOIN stop_state st ON st.resumed_at IS NULL";
            let row = conn.first((sql, args![session])).await?;
            let waiting = row.map_or(Ok(0), |row| check_not_stopped(&row, 1).and_then(|()| row.int(0)))?;
            check_queue_depth(new, waiting, 0)?;
            None
        }
    };
    insert(conn, new, claimed.as_ref()).await?;
    let mut events = vec![state_event(1, execution)];
    match &claimed {
        Some(claimed) => {
            events.push(state_event(claimed.seq, &claimed.row.execution));
            add_execution_hint(conn, &claimed.row.execution);
        }
        None => conn.add_hint(match execution.session_id {
            None => Hint::Queue(execution.agent_id.clone()),
            Some(session) => Hint::Session(session),
        }),
    }
    append_events(conn, execution.id, &events).await?;
    Ok(claimed)
}

/// Fails with [`Error::QueueFull`] if no further execution may wait. Executions that will use a free slot do not count.
fn check_queue_depth(new: &NewExecution, waiting: i64, free_slots: usize) -> Result<()> {
    let depth = new.queue_depth;
    let limit = depth.saturating_add(i64::try_from(free_slots).unwrap_or(i64::MAX));
    if waiting < limit { Ok(()) } else { Err(Error::QueueFull { waiting, depth }) }
}

/// Takes a slot for an execution that is not stored yet, and returns its claim in the state `Starting`. Does not store
/// the execution or its events. `free` are the slots to try. Returns `None` if no slot is free or the node was declared
/// dead. Fails with [`Error::IllegalTransition`] if the execution is not idle.
async fn claim_new(
    conn: &mut Conn,
    new: &NewExecution,
    node: Uuid,
    free: &mut (impl Iterator<Item = i64> + Send),
) -> Result<Option<ClaimedExecution>> {
    let mut execution = new.execution.clone();
    if !nodes::is_alive(conn, node).await? || !slots::take(conn, &execution.agent_id, free, execution.id, node).await? {
        return Ok(None);
    }
    execution.claim(execution.created_at)?;
    let fence = Fence { id: execution.id, node, token: 1 };
    let row = ExecutionRow {
        execution,
        owner: new.owner,
        request: new.spool.is_none().then(|| new.request.clone()),
        spool: new.spool.clone(),
        lease_token: fence.token,
        cancel_requested_at: None,
        cancel_reason: None,
        node: Some(node.to_string()),
    };
    Ok(Some(ClaimedExecution { row, fence, seq: 2 }))
}

/// Inserts the row of an execution, as claimed if `claimed` is given and as queued otherwise. It can run from its
/// creation time. NUL characters in the input are replaced by U+FFFD. Fails with [`Error::Corrupt`] if a value cannot
/// be encoded, and with [`Error::Database`] if the id exists.
async fn insert(conn: &mut Conn, new: &NewExecution, claimed: Option<&ClaimedExecution>) -> Result<()> {
    let execution = claimed.map_or(&new.execution, |claimed| &claimed.row.execution);
    let execution = ExecutionRecord::from(execution.clone());
    let sql = "INSERT INTO executions (id, owner, agent_id, schedule_id, session_id, state, input, request, spool, run_at, \
               wait_until, created_at, changed_at, max_retries, timeout_ms, context, follow_up, task_id, context_id, \
               previous_state, node, lease_token, transitions, retry_count, artifacts, truncated, output_bytes, \
               earlier_bytes, previous) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $10, $10, $12, $13, $14, \
               $15, $16, $17, $18, $19, $20, $21, 0, '[]', 0, 0, 0, '[]')";
    let values = args![
        execution.id,
        new.owner,
        execution.agent_id.as_str(),
        execution.schedule_id.map(|id| id.to_string()),
        execution.session_id.map(|id| id.to_string()),
        execution.state.as_str(),
        replace_nul(&execution.input),
        new.request.as_str(),
        new.spool.as_deref(),
        execution.created_at,
        new.wait_until,
        execution.max_retries,
        execution.timeout.as_millis(),
        json(&execution.context)?,
        new.follow_up.map(FollowUp::as_str),
        new.task.as_ref().map(|task| task.id.to_string()),
        new.task.as_ref().map(|task| task.context_id.as_str()),
        execution.previous_state.map(StateName::as_str),
        claimed.map(|claimed| claimed.fence.node.to_string()),
        claimed.map_or(0, |claimed| claimed.fence.token),
        json(&execution.state_transitions)?,
    ];
    conn.run((sql, values)).await.map(drop)
}

/// Sends a hint about the execution to its followers on all nodes.
fn add_execution_hint(conn: &mut Conn, execution: &Execution) {
    conn.add_hint(if execution.is_ended() { Hint::Ended(execution.id) } else { Hint::Execution(execution.id) });
}

/// Locks a queue until the transaction ends, so that two transactions cannot use the same last free slot. Also takes the
/// shared lock of [`crate::stop_state`], before the queue. SQLite has only one writer and needs no lock.
async fn lock_queue(conn: &mut Conn, queue: &str) -> Result<()> {
    if !conn.is_sqlite() {
        // The second number separates these locks from other advisory locks.
        let mut select = Statement::default();
        select.push("SELECT ").push(SHARED_LOCK).push(", pg_advisory_xact_lock(hashtextextended(");
        select.bind(queue).push(", 4))");
        conn.first(select).await?;
    }
    Ok(())
}

/// Fails with [`Error::Stopped`] if the row has the time of a stop in `column`. The reason is in the next column.
fn check_not_stopped(row: &DbRow, column: usize) -> Result<()> {
    match row.maybe_int(column)? {
        Some(_) => Err(Error::Stopped { reason: row.maybe_text(column + 1)? }),
        None => Ok(()),
    }
}

/// Returns the number of queued executions of an agent and the number of its slots in use.
pub async fn queue_counts(conn: &mut Conn, agent_id: &str) -> Result<(i64, i64)> {
    // One statement, so that an execution that is claimed meanwhile is counted exactly once.
    let sql = "SELECT (SELECT COUNT(*) FROM executions WHERE state = 'idle' AND agent_id = $1 AND session_id IS NULL), \
               (SELECT COUNT(*) FROM places WHERE agent_id = $1)";
    let row = conn.first((sql, args![agent_id])).await?;
    row.map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
}

/// Like [`queue_counts`], with the numbers of the slots in use. Fails with [`Error::Stopped`] while everything is
/// stopped.
async fn waiting_and_taken(conn: &mut Conn, agent_id: &str) -> Result<(i64, HashSet<i64>)> {
    let sql = "SELECT (SELECT COUNT(*) FROM executions WHERE state = 'idle' AND agent_id = $1 AND session_id IS NULL), \
               p.slot, st.stopped_at, st.reason FROM (SELECT 1) one LEFT JOIN places p ON p.agent_id = $1 \
               LEFT JOIN stop_state st ON st.resumed_at IS NULL";
    let rows = conn.all((sql, args![agent_id])).await?;
    rows.first().map_or(Ok(()), |row| check_not_stopped(row, 2))?;
    let waiting = rows.first().map_or(Ok(0), |row| row.int(0))?;
    let taken = rows.iter().filter_map(|row| row.maybe_int(1).transpose()).collect::<Result<_>>()?;
    Ok((waiting, taken))
}

/// Returns the ids of the agents with queued executions that may run at `now`, in alphabetical order. Messages of
/// sessions do not count. Returns none while everything is stopped.
pub async fn agents_with_queued(conn: &mut Conn, now: Timestamp) -> Result<Vec<String>> {
    // Skips from agent to agent on the index. DISTINCT would read all queued rows.
    let mut select = Statement::default();
    select.push(
        "WITH RECURSIVE waiting (agent_id) AS (\
               SELECT MIN(e.agent_id) FROM executions e \
               WHERE e.state = 'idle' AND e.session_id IS NULL AND e.run_at <= ",
    );
    select.bind(now).push(" AND NOT ").push(IS_STOPPED);
    select.push(
        " UNION ALL SELECT (SELECT MIN(e.agent_id) FROM executions e WHERE e.state = 'idle' \
               AND e.session_id IS NULL AND e.run_at <= ",
    );
    select.bind(now).push(
        " AND e.agent_id > w.agent_id) FROM waiting w WHERE w.agent_id IS NOT NULL) \
               SELECT agent_id FROM waiting WHERE agent_id IS NOT NULL",
    );
    conn.all(select).await?.iter().map(|row| row.text(0)).collect()
}

/// Returns true if the agent has a queued execution that may run now.
pub async fn has_queued(conn: &mut Conn, agent_id: &str, now: Timestamp) -> Result<bool> {
    let sql = "SELECT 1 FROM executions e WHERE e.state = 'idle' AND e.session_id IS NULL AND e.agent_id = $1 \
               AND e.run_at <= $2 LIMIT 1";
    Ok(conn.first((sql, args![agent_id, now])).await?.is_some())
}

/// Claims the next executions of an agent, up to the number of free slots and `limit`, in the order in which they may
/// run. Takes a slot for each. Skips messages of sessions and requests in a spool other than `spool`. Skips executions
/// that wait for the time of a retry, still hold a slot, or are locked by another transaction. Returns no claims if the
/// node was declared dead, and while everything is stopped. `slots` is the number of slots of the agent.
pub async fn claim(
    conn: &mut Conn,
    node: Uuid,
    spool: &str,
    agent_id: &str,
    slots: i64,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<ClaimedExecution>> {
    let (free_count, mut free) = slots::free(conn, agent_id, slots).await?;
    let count = i64::try_from(free_count).unwrap_or(i64::MAX).min(limit);
    if count <= 0 || !nodes::is_alive(conn, node).await? {
        return Ok(Vec::new());
    }
    let mut select = select_queued();
    select.push(" AND e.session_id IS NULL AND e.agent_id = ").bind(agent_id).push(" AND e.run_at <= ").bind(now);
    select.push(" AND (e.spool IS NULL OR e.spool = ").bind(spool).push(")");
    // The slot of the previous attempt may not be released yet.
    select.push(" AND NOT EXISTS (SELECT 1 FROM places p WHERE p.holder = e.id) AND NOT ").push(IS_STOPPED);
    select.push(" ORDER BY e.run_at, e.id LIMIT ").bind(count);
    skip_locked(&mut select, conn);
    let rows = conn.all(select).await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: Uuid = row.parsed(0, Uuid::try_parse)?;
        if !slots::take(conn, agent_id, &mut free, id, node).await? {
            break;
        }
        claimed.push(claim_row(conn, row, node, now).await?);
    }
    Ok(claimed)
}

/// Claims the next message of a session, without a slot. Returns `None` if no message may run at `now`, or if another
/// transaction has locked it. Also returns `None` if the session has ended, does not exist or belongs to another node,
/// and while everything is stopped. The caller calls [`crate::sessions::get_for_claim`] first.
pub async fn claim_in_session(
    conn: &mut Conn,
    node: Uuid,
    session: Uuid,
    now: Timestamp,
) -> Result<Option<ClaimedExecution>> {
    let mut select = select_queued();
    select.push(" AND e.session_id = ").bind(session).push(" AND e.run_at <= ").bind(now);
    select.push(" AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session_id AND s.ended_at IS NULL AND s.node = ");
    select.bind(node).push(") AND NOT ").push(IS_STOPPED).push(" ORDER BY e.run_at, e.id LIMIT ").bind(1);
    skip_locked(&mut select, conn);
    match conn.first(select).await? {
        Some(row) => claim_row(conn, &row, node, now).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the beginning of a query for queued executions.
fn select_queued() -> Statement<'static> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(INTERNAL_COLUMNS).push(" FROM executions e WHERE e.state = 'idle'");
    select
}

/// Skips rows that another transaction has locked.
fn skip_locked(select: &mut Statement<'_>, conn: &Conn) {
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE SKIP LOCKED");
    }
}

/// Claims a queued execution: sets the state `Starting`, the node and a new lease token, appends the event and sends a
/// hint. The columns of `row` are [`COLUMNS`] and [`INTERNAL_COLUMNS`]. Fails with [`Error::Database`] if the execution
/// is no longer queued.
async fn claim_row(conn: &mut Conn, row: &DbRow, node: Uuid, now: Timestamp) -> Result<ClaimedExecution> {
    let mut row = read_row(row)?;
    let execution = &mut row.execution;
    execution.claim(now)?;
    row.lease_token += 1;
    let sql = "UPDATE executions SET state = 'starting', previous_state = 'idle', changed_at = $2, node = $3, \
               lease_token = $4, transitions = $5 WHERE id = $1 AND state = 'idle'";
    let values = args![execution.id, now, node, row.lease_token, json(execution.state_transitions())?];
    if conn.run((sql, values)).await? != 1 {
        return Err(Error::Database("an execution was claimed twice".to_owned()));
    }
    add_execution_hint(conn, execution);
    let seq = last_seq(conn, execution.id).await? + 1;
    append_events(conn, execution.id, &[state_event(seq, execution)]).await?;
    let fence = Fence { id: execution.id, node, token: row.lease_token };
    Ok(ClaimedExecution { row, fence, seq })
}

/// Saves the state of a running execution. `None` for `output` keeps the stored summary; otherwise its size is added to
/// that of earlier attempts. Returns false, without a change, if the fence is no longer valid or the execution has
/// ended or was requeued. Otherwise the fence stays valid until the transaction ends, and the caller can append events.
/// Sends a hint in both cases. Does not append events itself, and does not release the slot.
pub async fn save(
    conn: &mut Conn,
    fence: Fence,
    execution: &Execution,
    output: Option<&OutputSummary>,
) -> Result<bool> {
    let mut update = update_state(execution)?;
    if let Some(output) = output {
        update.push(", artifacts = ").bind(json(&output.artifacts)?);
        update.push(", truncated = ").bind(i64::from(output.truncated)).push(", output_bytes = earlier_bytes + ");
        update.bind(output.output_bytes);
    }
    update.push(" WHERE id = ").bind(fence.id).push(" AND node = ").bind(fence.node);
    update.push(" AND lease_token = ").bind(fence.token).push(IS_HELD);
    add_execution_hint(conn, execution);
    Ok(conn.run(update).await? == 1)
}

/// Returns an execution to the queue until `run_at`. Its queue timeout starts again. The caller saves it as idle with
/// [`save`] first, in the same transaction. Returns false if the fence is no longer valid.
pub async fn requeue(conn: &mut Conn, fence: Fence, run_at: Timestamp) -> Result<bool> {
    let sql = "UPDATE executions SET node = NULL, run_at = $4, wait_until = $4 + (wait_until - run_at), \
               earlier_bytes = output_bytes WHERE id = $1 AND node = $2 AND lease_token = $3 AND state = 'idle'";
    Ok(conn.run((sql, args![fence.id, fence.node, fence.token, run_at])).await? == 1)
}

/// Saves an execution that no node holds: a queued one, or with `token` an abandoned one with this lease token. Removes
/// its node, appends its state as an event and sends a hint. Fails with [`Error::AlreadyEnded`] if another transaction
/// has changed it, also if it has not ended.
pub(super) async fn save_unclaimed(conn: &mut Conn, execution: &Execution, token: Option<i64>) -> Result<()> {
    let mut update = update_state(execution)?;
    update.push(", node = NULL WHERE id = ").bind(execution.id);
    match token {
        None => update.push(" AND state = 'idle'"),
        Some(token) => update.push(" AND lease_token = ").bind(token).push(IS_HELD),
    };
    if conn.run(update).await? != 1 {
        return Err(Error::AlreadyEnded);
    }
    add_execution_hint(conn, execution);
    let seq = last_seq(conn, execution.id).await? + 1;
    append_events(conn, execution.id, &[state_event(seq, execution)]).await
}

/// Returns the beginning of an UPDATE that writes the state, times, process, error, outcome, retries and transitions of
/// an execution. The caller adds the WHERE clause. NUL characters in the error message are replaced by U+FFFD. Fails
/// with [`Error::Corrupt`] if a value cannot be encoded.
fn update_state(execution: &Execution) -> Result<Statement<'static>> {
    let execution = ExecutionRecord::from(execution.clone());
    let mut update = Statement::default();
    update.push("UPDATE executions SET state = ").bind(execution.state.as_str());
    update.push(", previous_state = ").bind(execution.previous_state.map(StateName::as_str));
    update.push(", started_at = ").bind(execution.start_time).push(", ended_at = ").bind(execution.end_time);
    update.push(", changed_at = ").bind(execution.last_state_change);
    update.push(", process_id = ").bind(execution.process_id).push(", exit_code = ").bind(execution.exit_code);
    update
        .push(", error_message = ")
        .bind(execution.error_message.as_deref().map(|text| replace_nul(text).into_owned()));
    update.push(", error_category = ").bind(execution.error_category.map(ErrorCategory::as_str));
    update.push(", outcome = ").bind(execution.outcome.map(ExecutionOutcome::as_str));
    update.push(", retry_count = ").bind(execution.retry_count);
    update.push(", resource_usage = ").bind(execution.resource_usage.as_ref().map(json).transpose()?);
    update.push(", transitions = ").bind(json(&execution.state_transitions)?);
    update.push(", previous = ").bind(json(&execution.previous_retries)?);
    Ok(update)
}

/// Ends up to `limit` queued executions that have exceeded the queue timeout, as timed out. Returns them. Ends none while
/// everything is stopped.
pub async fn expire_queued(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Execution>> {
    let mut select = select_queued();
    select.push(" AND e.wait_until <= ").bind(now).push(" AND NOT ").push(IS_STOPPED);
    select.push(" ORDER BY e.wait_until LIMIT ").bind(limit);
    skip_locked(&mut select, conn);
    end_all(conn, select, ExecutionStatus::Timeout, "the execution waited in the queue longer than queue_timeout", now)
        .await
}

/// Ends up to `limit` queued messages as failed if their session has ended or does not exist. Returns them.
pub async fn end_without_session(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Execution>> {
    let mut select = select_queued();
    select.push(" AND e.session_id IS NOT NULL AND NOT EXISTS ");
    select.push("(SELECT 1 FROM sessions s WHERE s.id = e.session_id AND s.ended_at IS NULL) ");
    select.push("ORDER BY e.session_id, e.run_at, e.id LIMIT ").bind(limit);
    skip_locked(&mut select, conn);
    end_all(conn, select, ExecutionStatus::Failure, "the session has ended", now).await
}

/// Ends all selected executions with `status` and `reason`, saves them, and returns them in order. The query must
/// select queued executions with [`COLUMNS`] and [`INTERNAL_COLUMNS`]. Fails if one of them cannot end or is no longer
/// queued.
async fn end_all(
    conn: &mut Conn,
    select: Statement<'_>,
    status: ExecutionStatus,
    reason: &str,
    now: Timestamp,
) -> Result<Vec<Execution>> {
    let mut ended = Vec::new();
    for row in conn.all(select).await? {
        let mut execution = read_row(&row)?.execution;
        execution.end(status, AttemptExit::with_error(reason, None), now)?;
        save_unclaimed(conn, &execution, None).await?;
        ended.push(execution);
    }
    Ok(ended)
}

/// Returns true if a queued execution has exceeded the queue timeout, and not everything is stopped.
pub async fn has_expired(conn: &mut Conn, now: Timestamp) -> Result<bool> {
    let mut select = Statement::default();
    select.push("SELECT 1 FROM executions WHERE state = 'idle' AND wait_until <= ").bind(now);
    select.push(" AND NOT ").push(IS_STOPPED).push(" LIMIT 1");
    Ok(conn.first(select).await?.is_some())
}

/// Ends up to `limit` queued executions of a removed agent as failed with `reason`, also messages of sessions. Returns
/// them.
pub async fn end_queued(
    conn: &mut Conn,
    agent_id: &str,
    reason: &str,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Execution>> {
    let mut select = select_queued();
    select.push(" AND e.agent_id = ").bind(agent_id).push(" LIMIT ").bind(limit);
    skip_locked(&mut select, conn);
    end_all(conn, select, ExecutionStatus::Failure, reason, now).await
}

/// Returns true if an execution, a slot or a session belongs to a removed node.
pub async fn has_abandoned(conn: &mut Conn) -> Result<bool> {
    let sql = "SELECT 1 WHERE EXISTS (SELECT 1 FROM executions e WHERE e.ended_at IS NULL AND e.state <> 'idle' \
               AND e.node NOT IN (SELECT id FROM nodes)) \
               OR EXISTS (SELECT 1 FROM places p WHERE p.node NOT IN (SELECT id FROM nodes)) \
               OR EXISTS (SELECT 1 FROM sessions s WHERE s.ended_at IS NULL AND s.node NOT IN (SELECT id FROM nodes))";
    Ok(conn.first((sql, [])).await?.is_some())
}

/// Returns the executions that a node has claimed and not reported as running, without messages of sessions. If the
/// connection was lost during the commit of a claim, the node does not know that it has claimed the execution.
pub async fn claimed_by(conn: &mut Conn, node: Uuid) -> Result<Vec<ClaimedExecution>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(INTERNAL_COLUMNS).push(" FROM executions e WHERE e.ended_at IS NULL");
    select.push(" AND e.state <> 'idle' AND e.state = 'starting' AND e.session_id IS NULL AND e.node = ").bind(node);
    let rows = conn.all(select).await?.iter().map(read_row).collect::<Result<Vec<_>>>()?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        let id = row.execution.id;
        let fence = Fence { id, node, token: row.lease_token };
        claimed.push(ClaimedExecution { seq: last_seq(conn, id).await?, row, fence });
    }
    Ok(claimed)
}

/// Releases all slots of removed nodes. Also locks and returns up to `limit` executions that these nodes hold, in any
/// order. May return fewer, because it skips executions that another transaction has locked or a new node has claimed.
/// The caller passes them to [`recover`] in the same transaction.
pub async fn lock_abandoned(conn: &mut Conn, limit: i64) -> Result<Vec<ExecutionRow>> {
    conn.run(("DELETE FROM places WHERE node NOT IN (SELECT id FROM nodes)", [])).await?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(INTERNAL_COLUMNS).push(" FROM executions e WHERE e.ended_at IS NULL");
    select.push(" AND e.state <> 'idle' AND e.node NOT IN (SELECT id FROM nodes) LIMIT ").bind(limit);
    skip_locked(&mut select, conn);
    let mut found = conn.all(select).await?.iter().map(read_row).collect::<Result<Vec<_>>>()?;
    // PostgreSQL returns the row as of the lock, but evaluates the subquery on an older snapshot. A node that joined
    // meanwhile may hold the execution.
    let nodes = conn.all(("SELECT id FROM nodes", [])).await?;
    let nodes = nodes.iter().map(|row| row.text(0)).collect::<Result<Vec<_>>>()?;
    found.retain(|row| row.node.as_ref().is_some_and(|node| !nodes.contains(node)));
    Ok(found)
}

/// Ends an interrupted execution as failed with `reason` and the category system error. If `retry_at` is given, returns
/// it to the queue until then instead, and its queue timeout starts again. An execution with a cancellation request is
/// always cancelled. A message of a session is never retried. Returns the execution. Fails with [`Error::AlreadyEnded`]
/// if another node has recovered it.
pub async fn recover(
    conn: &mut Conn,
    mut row: ExecutionRow,
    reason: &str,
    retry_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Execution> {
    let token = row.lease_token;
    let execution = &mut row.execution;
    if row.cancel_requested_at.is_some() {
        let reason = row.cancel_reason.as_deref().unwrap_or("cancelled");
        execution.end(ExecutionStatus::Cancelled, AttemptExit::with_error(reason, None), now)?;
        save_unclaimed(conn, execution, Some(token)).await?;
        return Ok(row.execution);
    }
    let exit = AttemptExit::with_error(reason, Some(ErrorCategory::SystemError));
    match retry_at.filter(|_| execution.session_id.is_none()) {
        None => {
            execution.end(ExecutionStatus::Failure, exit, now)?;
            save_unclaimed(conn, execution, Some(token)).await?;
        }
        Some(retry_at) => {
            execution.requeue(exit, now)?;
            save_unclaimed(conn, execution, Some(token)).await?;
            let sql = "UPDATE executions SET run_at = $2, wait_until = $2 + (wait_until - run_at), \
                       earlier_bytes = output_bytes WHERE id = $1";
            conn.run((sql, args![execution.id, retry_at])).await?;
            conn.add_hint(Hint::Queue(execution.agent_id.clone()));
        }
    }
    Ok(row.execution)
}

/// Returns the event with the number `seq` for the current state of an execution, at the time of its last change.
fn state_event(seq: i64, execution: &Execution) -> ExecutionEvent {
    ExecutionEvent {
        seq,
        kind: ExecutionEventKind::State,
        stream: String::new(),
        start: 0,
        at: execution.last_state_change(),
        text: execution.state_name().as_str().to_owned(),
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Corrupt(error.to_string()))
}
