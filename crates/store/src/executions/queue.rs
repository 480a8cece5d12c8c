//! The queue: submitted, claimed with a place, at work under a fence, ended. Works on everyone's rows, for the supervisor.

use std::collections::HashSet;

use jiff::Timestamp;
use model::UserId;
use model::execution::{Artifact, Category, Execution, ExecutionRecord, Exit, FollowUp, Outcome, StateName, Status};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::events::{Event, Kind, append, last_seq};
use super::row::{COLUMNS, PRIVATE, Stored, read_private};
use super::without_nul;
use crate::conn::{Conn, Row, Statement, args};
use crate::hints::Hint;
use crate::{Error, Result, nodes, places};

/// Selects executions that a node holds, also between two attempts. Same wording as the index.
const AT_WORK: &str = " AND ended_at IS NULL AND state <> 'idle'";

/// An execution to be.
#[derive(Clone, Debug)]
pub struct New {
    pub execution: Execution,
    pub owner: UserId,
    /// What the run is given, as JSON; empty where it has secrets and is in a spool.
    pub request: String,
    pub spool: Option<String>,
    pub follow_up: Option<FollowUp>,
    /// The message in which it was asked for, as A2A writes it, without what must not be kept.
    pub message: Option<Value>,
    /// The task that it is part of, where it is one of A2A.
    pub task: Option<OfTask>,
    pub wait_until: Timestamp,
    /// How many of the agent's may run at once, and how many may wait; of a session's messages, how many may wait for it.
    pub places: i64,
    pub depth: i64,
}

/// Where an execution belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfTask {
    /// That of its first execution.
    pub id: Uuid,
    pub context_id: String,
}

/// Who holds an execution: nobody else may write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    pub id: Uuid,
    pub node: Uuid,
    pub token: i64,
}

/// An execution that this node may run now.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub stored: Stored,
    pub fence: Fence,
    /// The number of its last event.
    pub seq: i64,
}

/// What a run leaves besides its record.
#[derive(Clone, Debug, Default)]
pub struct Left {
    pub artifacts: Vec<Artifact>,
    pub truncated: bool,
    pub output_bytes: i64,
}

/// An execution whose node is dead.
pub type Abandoned = Stored;

/// Puts an execution into the queue, unless that is full.
pub async fn submit(conn: &mut Conn, new: &New) -> Result<()> {
    submit_to(conn, new, None).await.map(drop)
}

/// The same; where nothing waits and a place is free it is this node's at once, as if it had been claimed.
pub async fn submit_to(conn: &mut Conn, new: &New, node: Option<Uuid>) -> Result<Option<Claimed>> {
    let execution = &new.execution;
    let claimed = match execution.session_id {
        None => {
            alone(conn, &execution.agent_id).await?;
            let (waiting, taken) = waiting_and_taken(conn, &execution.agent_id).await?;
            let (room, mut free) = places::besides(taken, new.places);
            not_full(new, waiting, room)?;
            match node.filter(|_| waiting == 0) {
                Some(node) => claim_new(conn, new, node, &mut free).await?,
                None => None,
            }
        }
        Some(session) => {
            alone(conn, &session.to_string()).await?;
            let sql = "SELECT COUNT(*) FROM executions WHERE session_id = $1 AND state = 'idle'";
            let waiting = conn.first((sql, args![session])).await?.map_or(Ok(0), |row| row.int(0))?;
            not_full(new, waiting, 0)?;
            None
        }
    };
    insert(conn, new, claimed.as_ref()).await?;
    let mut events = vec![state_event(1, execution)];
    match &claimed {
        Some(claimed) => {
            events.push(state_event(claimed.seq, &claimed.stored.execution));
            hint(conn, &claimed.stored.execution);
        }
        None => conn.hint(match execution.session_id {
            None => Hint::Queue(execution.agent_id.clone()),
            Some(session) => Hint::Session(session),
        }),
    }
    append(conn, execution.id, &events).await?;
    Ok(claimed)
}

/// Whether one more may wait, besides those for whom there is room.
fn not_full(new: &New, waiting: i64, room: usize) -> Result<()> {
    let depth = new.depth;
    let most = depth.saturating_add(i64::try_from(room).unwrap_or(i64::MAX));
    if waiting < most { Ok(()) } else { Err(Error::QueueFull { waiting, depth }) }
}

/// Takes a place for an execution that is not there yet.
async fn claim_new(
    conn: &mut Conn,
    new: &New,
    node: Uuid,
    free: &mut (impl Iterator<Item = i64> + Send),
) -> Result<Option<Claimed>> {
    let mut execution = new.execution.clone();
    if !nodes::is_alive(conn, node).await? || !places::take(conn, &execution.agent_id, free, execution.id, node).await?
    {
        return Ok(None);
    }
    execution.claim(execution.created_at)?;
    let fence = Fence { id: execution.id, node, token: 1 };
    let stored = Stored {
        execution,
        owner: new.owner,
        request: new.spool.is_none().then(|| new.request.clone()),
        spool: new.spool.clone(),
        lease_token: fence.token,
        cancel_asked: None,
        node: Some(node.to_string()),
    };
    Ok(Some(Claimed { stored, fence, seq: 2 }))
}

async fn insert(conn: &mut Conn, new: &New, claimed: Option<&Claimed>) -> Result<()> {
    let execution = claimed.map_or(&new.execution, |claimed| &claimed.stored.execution);
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
        without_nul(&execution.input),
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

/// Those who follow it elsewhere may look.
fn hint(conn: &mut Conn, execution: &Execution) {
    conn.hint(if execution.is_ended() { Hint::Ended(execution.id) } else { Hint::Execution(execution.id) });
}

/// Until the transaction ends nobody else puts anything into this queue: two who see its last free place would both take
/// it. SQLite has one writer anyway.
async fn alone(conn: &mut Conn, queue: &str) -> Result<()> {
    if !conn.is_sqlite() {
        // The second number keeps these locks apart from those of users.
        conn.first(("SELECT pg_advisory_xact_lock(hashtextextended($1, 4))", args![queue])).await?;
    }
    Ok(())
}

/// How many of an agent's wait, and how many of its places are taken.
pub async fn counts(conn: &mut Conn, agent_id: &str) -> Result<(i64, i64)> {
    // At one moment: what goes from one to the other is not missed.
    let sql = "SELECT (SELECT COUNT(*) FROM executions WHERE state = 'idle' AND agent_id = $1 AND session_id IS NULL), \
               (SELECT COUNT(*) FROM places WHERE agent_id = $1)";
    let row = conn.first((sql, args![agent_id])).await?;
    row.map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
}

/// The same, with the numbers of the places.
async fn waiting_and_taken(conn: &mut Conn, agent_id: &str) -> Result<(i64, HashSet<i64>)> {
    let sql = "SELECT (SELECT COUNT(*) FROM executions WHERE state = 'idle' AND agent_id = $1 AND session_id IS NULL), \
               p.slot FROM (SELECT 1) one LEFT JOIN places p ON p.agent_id = $1";
    let rows = conn.all((sql, args![agent_id])).await?;
    let waiting = rows.first().map_or(Ok(0), |row| row.int(0))?;
    let taken = rows.iter().filter_map(|row| row.maybe_int(1).transpose()).collect::<Result<_>>()?;
    Ok((waiting, taken))
}

/// The agents for which something waits that may run now, in the order of their ids.
pub async fn agents_waiting(conn: &mut Conn, now: Timestamp) -> Result<Vec<String>> {
    // From agent to agent along the index: DISTINCT would look at everything that waits.
    let sql = "WITH RECURSIVE waiting (agent_id) AS (\
               SELECT MIN(e.agent_id) FROM executions e \
               WHERE e.state = 'idle' AND e.session_id IS NULL AND e.run_at <= $1 \
               UNION ALL SELECT (SELECT MIN(e.agent_id) FROM executions e WHERE e.state = 'idle' \
               AND e.session_id IS NULL AND e.run_at <= $1 AND e.agent_id > w.agent_id) \
               FROM waiting w WHERE w.agent_id IS NOT NULL) \
               SELECT agent_id FROM waiting WHERE agent_id IS NOT NULL";
    conn.all((sql, args![now])).await?.iter().map(|row| row.text(0)).collect()
}

/// Whether anything waits for the agent that may run now.
pub async fn any_waiting(conn: &mut Conn, agent_id: &str, now: Timestamp) -> Result<bool> {
    let sql = "SELECT 1 FROM executions e WHERE e.state = 'idle' AND e.session_id IS NULL AND e.agent_id = $1 \
               AND e.run_at <= $2 LIMIT 1";
    Ok(conn.first((sql, args![agent_id, now])).await?.is_some())
}

/// Takes the agent's next executions, as many as there are places, at most `limit`. `spool` is the one that this node
/// can read. A node that was taken for dead gets none.
pub async fn claim(
    conn: &mut Conn,
    node: Uuid,
    spool: &str,
    agent_id: &str,
    places: i64,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Claimed>> {
    let (room, mut free) = places::free(conn, agent_id, places).await?;
    let room = i64::try_from(room).unwrap_or(i64::MAX).min(limit);
    if room <= 0 || !nodes::is_alive(conn, node).await? {
        return Ok(Vec::new());
    }
    let mut select = waiting();
    select.push(" AND e.session_id IS NULL AND e.agent_id = ").bind(agent_id).push(" AND e.run_at <= ").bind(now);
    select.push(" AND (e.spool IS NULL OR e.spool = ").bind(spool).push(")");
    // Its last place may not have been given back yet.
    select.push(" AND NOT EXISTS (SELECT 1 FROM places p WHERE p.holder = e.id)");
    select.push(" ORDER BY e.run_at, e.id LIMIT ").bind(room);
    lock(&mut select, conn);
    let rows = conn.all(select).await?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: Uuid = row.parsed(0, Uuid::try_parse)?;
        if !places::take(conn, agent_id, &mut free, id, node).await? {
            break;
        }
        claimed.push(take(conn, row, node, now).await?);
    }
    Ok(claimed)
}

/// Takes the next message of a session that this node holds.
pub async fn claim_in_session(conn: &mut Conn, node: Uuid, session: Uuid, now: Timestamp) -> Result<Option<Claimed>> {
    let mut select = waiting();
    select.push(" AND e.session_id = ").bind(session).push(" AND e.run_at <= ").bind(now);
    select.push(" AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session_id AND s.ended_at IS NULL AND s.node = ");
    select.bind(node).push(") ORDER BY e.run_at, e.id LIMIT ").bind(1);
    lock(&mut select, conn);
    match conn.first(select).await? {
        Some(row) => take(conn, &row, node, now).await.map(Some),
        None => Ok(None),
    }
}

fn waiting() -> Statement<'static> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(PRIVATE).push(" FROM executions e WHERE e.state = 'idle'");
    select
}

/// What another node looks at meanwhile is left to it.
fn lock(select: &mut Statement<'_>, conn: &Conn) {
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE SKIP LOCKED");
    }
}

async fn take(conn: &mut Conn, row: &Row, node: Uuid, now: Timestamp) -> Result<Claimed> {
    let mut stored = read_private(row)?;
    let execution = &mut stored.execution;
    execution.claim(now)?;
    stored.lease_token += 1;
    let sql = "UPDATE executions SET state = 'starting', previous_state = 'idle', changed_at = $2, node = $3, \
               lease_token = $4, transitions = $5 WHERE id = $1 AND state = 'idle'";
    let values = args![execution.id, now, node, stored.lease_token, json(execution.state_transitions())?];
    if conn.run((sql, values)).await? != 1 {
        return Err(Error::Database("an execution was claimed twice".to_owned()));
    }
    hint(conn, execution);
    let seq = last_seq(conn, execution.id).await? + 1;
    append(conn, execution.id, &[state_event(seq, execution)]).await?;
    let fence = Fence { id: execution.id, node, token: stored.lease_token };
    Ok(Claimed { stored, fence, seq })
}

/// Writes down how far an execution at work has come. `false`: it is somebody else's by now. Until the transaction ends
/// it stays the caller's, and events can be written.
pub async fn save(conn: &mut Conn, fence: Fence, execution: &Execution, left: Option<&Left>) -> Result<bool> {
    let mut update = changes(execution)?;
    if let Some(left) = left {
        update.push(", artifacts = ").bind(json(&left.artifacts)?);
        update.push(", truncated = ").bind(i64::from(left.truncated)).push(", output_bytes = earlier_bytes + ");
        update.bind(left.output_bytes);
    }
    update.push(" WHERE id = ").bind(fence.id).push(" AND node = ").bind(fence.node);
    update.push(" AND lease_token = ").bind(fence.token).push(AT_WORK);
    hint(conn, execution);
    Ok(conn.run(update).await? == 1)
}

/// Lets an execution that was saved as idle wait again until `run_at`, and for its place as long as the first time. To be
/// called behind [`save`], in its transaction. `false`: it is somebody else's by now.
pub async fn queue_again(conn: &mut Conn, fence: Fence, run_at: Timestamp) -> Result<bool> {
    let sql = "UPDATE executions SET node = NULL, run_at = $4, wait_until = $4 + (wait_until - run_at), \
               earlier_bytes = output_bytes WHERE id = $1 AND node = $2 AND lease_token = $3 AND state = 'idle'";
    Ok(conn.run((sql, args![fence.id, fence.node, fence.token, run_at])).await? == 1)
}

/// Writes down what became of one that waits, or of one at work that has lost its holder, and tells those who follow it.
/// [`Error::Ended`]: somebody else did so before.
pub(super) async fn settle(conn: &mut Conn, execution: &Execution, token: Option<i64>) -> Result<()> {
    let mut update = changes(execution)?;
    update.push(", node = NULL WHERE id = ").bind(execution.id);
    match token {
        None => update.push(" AND state = 'idle'"),
        Some(token) => update.push(" AND lease_token = ").bind(token).push(AT_WORK),
    };
    if conn.run(update).await? != 1 {
        return Err(Error::Ended);
    }
    hint(conn, execution);
    let seq = last_seq(conn, execution.id).await? + 1;
    append(conn, execution.id, &[state_event(seq, execution)]).await
}

/// Returns the beginning of a statement that writes the state of an execution.
fn changes(execution: &Execution) -> Result<Statement<'static>> {
    let execution = ExecutionRecord::from(execution.clone());
    let mut update = Statement::default();
    update.push("UPDATE executions SET state = ").bind(execution.state.as_str());
    update.push(", previous_state = ").bind(execution.previous_state.map(StateName::as_str));
    update.push(", started_at = ").bind(execution.start_time).push(", ended_at = ").bind(execution.end_time);
    update.push(", changed_at = ").bind(execution.last_state_change);
    update.push(", process_id = ").bind(execution.process_id).push(", exit_code = ").bind(execution.exit_code);
    update
        .push(", error_message = ")
        .bind(execution.error_message.as_deref().map(|text| without_nul(text).into_owned()));
    update.push(", error_category = ").bind(execution.error_category.map(Category::as_str));
    update.push(", outcome = ").bind(execution.outcome.map(Outcome::as_str));
    update.push(", retry_count = ").bind(execution.retry_count);
    update.push(", resource_usage = ").bind(execution.resource_usage.as_ref().map(json).transpose()?);
    update.push(", transitions = ").bind(json(&execution.state_transitions)?);
    update.push(", previous = ").bind(json(&execution.previous_retries)?);
    Ok(update)
}

/// Those at work on this node that somebody wants cancelled, and whatever holds a place of this node and is not there any
/// more, because its user has erased it.
pub async fn cancelled(conn: &mut Conn, node: Uuid) -> Result<Vec<Uuid>> {
    let sql = "SELECT id FROM executions WHERE node = $1 AND ended_at IS NULL AND state <> 'idle' \
               AND cancel_asked IS NOT NULL \
               UNION ALL SELECT p.holder FROM places p WHERE p.node = $1 \
               AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = p.holder) \
               AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = p.holder)";
    conn.all((sql, args![node])).await?.iter().map(|row| row.parsed(0, Uuid::try_parse)).collect()
}

/// Ends those that have waited too long.
pub async fn too_late(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Execution>> {
    let mut select = waiting();
    select.push(" AND e.wait_until <= ").bind(now).push(" ORDER BY e.wait_until LIMIT ").bind(limit);
    lock(&mut select, conn);
    end_all(conn, select, Status::Timeout, "waited longer for its place than queue_timeout allows", now).await
}

/// Ends messages that wait for a session that is over.
pub async fn without_session(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Execution>> {
    let mut select = waiting();
    select.push(" AND e.session_id IS NOT NULL AND NOT EXISTS ");
    select.push("(SELECT 1 FROM sessions s WHERE s.id = e.session_id AND s.ended_at IS NULL) ");
    select.push("ORDER BY e.session_id, e.run_at, e.id LIMIT ").bind(limit);
    lock(&mut select, conn);
    end_all(conn, select, Status::Failure, "its session has ended", now).await
}

async fn end_all(
    conn: &mut Conn,
    select: Statement<'_>,
    status: Status,
    why: &str,
    now: Timestamp,
) -> Result<Vec<Execution>> {
    let mut ended = Vec::new();
    for row in conn.all(select).await? {
        let mut execution = read_private(&row)?.execution;
        execution.end(status, Exit::with_error(why, None), now)?;
        settle(conn, &execution, None).await?;
        ended.push(execution);
    }
    Ok(ended)
}

/// Whether there are such.
pub async fn any_too_late(conn: &mut Conn, now: Timestamp) -> Result<bool> {
    let sql = "SELECT 1 FROM executions WHERE state = 'idle' AND wait_until <= $1 LIMIT 1";
    Ok(conn.first((sql, args![now])).await?.is_some())
}

/// Ends those that wait for an agent that is no more.
pub async fn end_waiting(
    conn: &mut Conn,
    agent_id: &str,
    why: &str,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Execution>> {
    let mut select = waiting();
    select.push(" AND e.agent_id = ").bind(agent_id).push(" LIMIT ").bind(limit);
    lock(&mut select, conn);
    end_all(conn, select, Status::Failure, why, now).await
}

/// Frees the places of nodes that are no more, and finds what was at work there: for [`recover`], in this transaction, so
/// that no other node finds it too.
pub async fn abandoned(conn: &mut Conn, limit: i64) -> Result<Vec<Abandoned>> {
    conn.run(("DELETE FROM places WHERE node NOT IN (SELECT id FROM nodes)", [])).await?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(PRIVATE).push(" FROM executions e WHERE e.ended_at IS NULL");
    select.push(" AND e.state <> 'idle' AND e.node NOT IN (SELECT id FROM nodes) LIMIT ").bind(limit);
    lock(&mut select, conn);
    let mut found = conn.all(select).await?.iter().map(read_private).collect::<Result<Vec<_>>>()?;
    // PostgreSQL gives a row as it is once it is locked, but the nodes as they were before: one that has come since may
    // have it.
    let nodes = conn.all(("SELECT id FROM nodes", [])).await?;
    let nodes = nodes.iter().map(|row| row.text(0)).collect::<Result<Vec<_>>>()?;
    found.retain(|stored| stored.node.as_ref().is_some_and(|node| !nodes.contains(node)));
    Ok(found)
}

/// Ends an execution that was interrupted, or lets it wait again until `retry_at`. Not where somebody wants it cancelled,
/// nor where its session is gone. [`Error::Ended`]: somebody else has dealt with it.
pub async fn recover(
    conn: &mut Conn,
    mut stored: Stored,
    why: &str,
    retry_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Execution> {
    let token = stored.lease_token;
    let execution = &mut stored.execution;
    if stored.cancel_asked.is_some() {
        execution.end(Status::Cancelled, Exit::with_error("cancelled", None), now)?;
        settle(conn, execution, Some(token)).await?;
        return Ok(stored.execution);
    }
    let exit = Exit::with_error(why, Some(Category::SystemError));
    match retry_at.filter(|_| execution.session_id.is_none()) {
        None => {
            execution.end(Status::Failure, exit, now)?;
            settle(conn, execution, Some(token)).await?;
        }
        Some(retry_at) => {
            execution.queue_again(exit, now)?;
            settle(conn, execution, Some(token)).await?;
            let sql = "UPDATE executions SET run_at = $2, wait_until = $2 + (wait_until - run_at), \
                       earlier_bytes = output_bytes WHERE id = $1";
            conn.run((sql, args![execution.id, retry_at])).await?;
            conn.hint(Hint::Queue(execution.agent_id.clone()));
        }
    }
    Ok(stored.execution)
}

fn state_event(seq: i64, execution: &Execution) -> Event {
    Event {
        seq,
        kind: Kind::State,
        stream: String::new(),
        start: 0,
        at: execution.last_state_change(),
        text: execution.state_name().as_str().to_owned(),
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Corrupt(error.to_string()))
}
