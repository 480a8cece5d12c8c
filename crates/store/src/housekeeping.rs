//! What keeps the database from growing without bound (OPS-7). Works on all users' rows, by age, and where there is more
//! output than may be kept, by size.

use jiff::{SignedDuration, Timestamp};

use crate::conn::args;
use crate::executions::{self, Dropped};
use crate::{Error, Job, Result, Store, Transaction, idempotency};

/// Rows removed in one transaction: others get their turn in between.
const BATCH: i64 = 500;
/// Executions, whose output may be long.
const FEW: i64 = 25;
/// A node that was not heard of for so long is not only slow.
const SILENCE: SignedDuration = SignedDuration::from_hours(24);
/// What is not delivered by then is of no interest any more: its channel has not been there for all that time.
const STALE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Since a conversation was used last; `None` keeps all.
    pub conversations: Option<SignedDuration>,
    /// Since an execution, or a session, has ended, a context was used, or a schedule's time was decided upon; `None` keeps all.
    pub executions: Option<SignedDuration>,
    /// How much output of all executions is kept, in bytes: of those that ended first only the record stays. `None` keeps
    /// all.
    pub output_bytes: Option<i64>,
    /// Since a notification was made, or its delivery has ended; `None` keeps all.
    pub notifications: Option<SignedDuration>,
}

impl Default for Retention {
    /// What the ledger promises: 30 days, 5 GB.
    fn default() -> Self {
        let days = Some(SignedDuration::from_hours(30 * 24));
        Self { conversations: days, executions: days, output_bytes: Some(5_000_000_000), notifications: days }
    }
}

/// How many rows were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub conversations: u64,
    pub idempotency_keys: u64,
    pub revoked_tokens: u64,
    pub executions: u64,
    /// Executions whose output was given up for the sake of the size.
    pub outputs: u64,
    pub sessions: u64,
    /// Of A2A, that nobody has used.
    pub contexts: u64,
    /// What became of the times of schedules.
    pub decisions: u64,
    pub notifications: u64,
    pub deliveries: u64,
    /// Deliveries that nobody has made for so long that they are given up.
    pub given_up: u64,
}

/// Removes what is past its time.
pub async fn sweep(store: &Store, retention: Retention, now: Timestamp) -> Result<Removed> {
    let mut removed = Removed::default();
    if let Some(age) = retention.conversations {
        removed.conversations = conversations_unused_since(store, now - age).await?;
    }
    let keys = "DELETE FROM idempotency_keys WHERE (owner, key) IN \
                (SELECT owner, key FROM idempotency_keys WHERE created_at <= $1 ORDER BY created_at LIMIT $2)";
    removed.idempotency_keys = in_batches(store, keys, now - idempotency::KEPT).await?;
    let tokens = "DELETE FROM revoked_tokens WHERE id IN \
                  (SELECT id FROM revoked_tokens WHERE expires_at <= $1 LIMIT $2)";
    removed.revoked_tokens = in_batches(store, tokens, now).await?;
    let turns = "DELETE FROM turns WHERE conversation_id IN \
                 (SELECT conversation_id FROM turns WHERE expires_at <= $1 LIMIT $2)";
    in_batches(store, turns, now).await?;
    if let Some(age) = retention.executions {
        removed.executions = executions_ended_before(store, now - age).await?;
        let sessions = "DELETE FROM sessions WHERE id IN \
                        (SELECT id FROM sessions WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2)";
        removed.sessions = in_batches(store, sessions, now - age).await?;
        let contexts = "DELETE FROM a2a_contexts WHERE used_at <= $1 AND (owner, agent_id, id) IN (SELECT owner, agent_id, \
                        id FROM a2a_contexts WHERE used_at <= $1 ORDER BY used_at LIMIT $2)";
        removed.contexts = in_batches(store, contexts, now - age).await?;
        let decisions = "DELETE FROM decisions WHERE kind <> 'queued' AND (schedule_id, due_at) IN (SELECT schedule_id, \
                         due_at FROM decisions WHERE decided_at <= $1 AND kind <> 'queued' ORDER BY decided_at LIMIT $2)";
        removed.decisions = in_batches(store, decisions, now - age).await?;
    }
    if let Some(most) = retention.output_bytes {
        removed.outputs = output_beyond(store, most, now).await?;
    }
    let stale = "UPDATE deliveries SET ended_at = $3, dead = 1, last_error = COALESCE(last_error, 'it has waited too \
                 long') WHERE ended_at IS NULL AND id IN \
                 (SELECT id FROM deliveries WHERE ended_at IS NULL AND created_at <= $1 LIMIT $2)";
    removed.given_up = repeat(store, async move |tx| tx.run((stale, args![now - STALE, BATCH, now])).await).await?;
    if let Some(age) = retention.notifications {
        let notifications = "DELETE FROM notifications WHERE (owner, id) IN \
                             (SELECT owner, id FROM notifications WHERE created_at <= $1 ORDER BY created_at LIMIT $2)";
        removed.notifications = in_batches(store, notifications, now - age).await?;
        let deliveries = "DELETE FROM deliveries WHERE id IN \
                          (SELECT id FROM deliveries WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2)";
        removed.deliveries = in_batches(store, deliveries, now - age).await?;
    }
    // Where nobody works, nobody misses those that have ended without a word.
    let nodes = "DELETE FROM nodes WHERE lease_until <= $1 AND id IN \
                 (SELECT id FROM nodes WHERE lease_until <= $1 LIMIT $2)";
    in_batches(store, nodes, now - SILENCE).await?;
    Ok(removed)
}

async fn executions_ended_before(store: &Store, time: Timestamp) -> Result<u64> {
    let mut total = 0;
    loop {
        let removed = store
            .transaction(async move |tx| -> Result<u64> {
                let sql = "DELETE FROM executions WHERE id IN \
                               (SELECT id FROM executions WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
                               RETURNING id, task_id";
                let gone = tx.all((sql, args![time, FEW])).await?;
                executions::remove_traces(tx, &gone).await?;
                Ok(gone.len() as u64)
            })
            .await?;
        total += removed;
        if removed < FEW.unsigned_abs() {
            return Ok(total);
        }
    }
}

/// Gives up output until no more than `most` bytes are left; says of how many executions.
async fn output_beyond(store: &Store, most: i64, now: Timestamp) -> Result<u64> {
    let mut total = 0;
    let mut excess = executions::size_of_output(&mut store.reader().await?).await? - most;
    while excess > 0 {
        let dropped = store.transaction(async move |tx| executions::drop_output(tx, excess, FEW, now).await);
        let Dropped { executions, bytes } = dropped.await?;
        if executions == 0 {
            // The rest belongs to those that have not ended.
            break;
        }
        total += executions;
        excess -= bytes;
    }
    Ok(total)
}

async fn conversations_unused_since(store: &Store, time: Timestamp) -> Result<u64> {
    let mut total = 0;
    loop {
        let removed = store
            .transaction(async move |tx| -> Result<u64> {
                // The condition is repeated: a conversation may be used between finding and removing it.
                let sql = "DELETE FROM conversations WHERE updated_at <= $1 AND id IN \
                               (SELECT id FROM conversations WHERE updated_at <= $1 ORDER BY updated_at LIMIT $2) \
                               RETURNING owner, id";
                let rows = tx.all((sql, args![time, BATCH])).await?;
                for row in &rows {
                    let sql = "DELETE FROM messages WHERE owner = $1 AND conversation_id = $2";
                    tx.run((sql, args![row.text(0)?, row.text(1)?])).await?;
                }
                Ok(rows.len() as u64)
            })
            .await?;
        total += removed;
        if removed < BATCH.unsigned_abs() {
            return Ok(total);
        }
    }
}

/// Repeats a DELETE of the rows before `$1`, `$2` at a time, until none is left.
async fn in_batches(store: &Store, sql: &'static str, before: Timestamp) -> Result<u64> {
    repeat(store, async move |tx| tx.run((sql, args![before, BATCH])).await).await
}

/// Repeats what touches a batch of rows, until there is less than a batch.
async fn repeat<F>(store: &Store, work: F) -> Result<u64>
where
    F: AsyncFnOnce(&mut Transaction) -> Result<u64> + for<'t> Job<'t, u64, Error> + Copy + 'static,
{
    let mut total = 0;
    loop {
        let touched = store.transaction(work).await?;
        total += touched;
        if touched < BATCH.unsigned_abs() {
            return Ok(total);
        }
    }
}
