//! Removes old rows of all users, so that the database does not grow without limit (OPS-7). Output is also limited by
//! its total size.

use jiff::{SignedDuration, Timestamp};

use crate::conn::args;
use crate::executions::{self, DroppedOutput};
use crate::{Error, Job, Result, Store, Transaction, idempotency};

/// The number of rows that one transaction removes. Other writes run between the transactions.
const BATCH_SIZE: i64 = 500;
/// The batch size for executions, because their output may be large.
const EXECUTION_BATCH_SIZE: i64 = 25;
/// The time after which a node with an expired lease is removed.
const NODE_RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// The age at which a pending delivery is given up. Its channel was unavailable for the whole time.
const MAX_DELIVERY_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The retention periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The time since the last use of a conversation. `None` keeps all.
    pub conversations: Option<SignedDuration>,
    /// The time since the end of an execution or a session, the last use of an A2A context, or a decision of a
    /// schedule. `None` keeps all.
    pub executions: Option<SignedDuration>,
    /// The total size of the output of all executions, in bytes. The executions that ended first lose their output, but
    /// keep their record. `None` keeps all.
    pub output_bytes: Option<i64>,
    /// The time since the creation of a notification or the end of a delivery. `None` keeps all.
    pub notifications: Option<SignedDuration>,
    /// The age of a record in the audit log. `None` keeps all.
    pub audit: Option<SignedDuration>,
}

impl Default for Retention {
    /// Returns the documented defaults: 30 days and 5 GB, and 365 days for the audit log.
    fn default() -> Self {
        let days = Some(SignedDuration::from_hours(30 * 24));
        Self {
            conversations: days,
            executions: days,
            output_bytes: Some(5_000_000_000),
            notifications: days,
            audit: Some(SignedDuration::from_hours(365 * 24)),
        }
    }
}

/// The number of removed rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedRows {
    pub conversations: u64,
    pub idempotency_keys: u64,
    pub revoked_tokens: u64,
    pub executions: u64,
    /// The number of executions that lost their output because of the size limit.
    pub outputs: u64,
    pub sessions: u64,
    /// The number of unused A2A contexts.
    pub contexts: u64,
    /// The number of schedule decisions.
    pub decisions: u64,
    pub notifications: u64,
    pub deliveries: u64,
    /// The number of deliveries that were given up because of their age.
    pub stale_deliveries: u64,
    pub audit_records: u64,
}

/// Removes all rows after their retention period, in small transactions. A period of `None` removes none of its rows.
/// The period of executions also applies to sessions, A2A contexts and decisions, and that of notifications also to
/// ended deliveries. Queued decisions and executions that have not ended stay. Always removes idempotency keys after 24
/// hours, revoked tokens and turns after they expire, and nodes 24 hours after their lease. Always gives up deliveries
/// that are pending for a week. Returns the numbers of removed rows, without turns and nodes. After a failure, stops;
/// the completed transactions stay.
pub async fn sweep(store: &Store, retention: Retention, now: Timestamp) -> Result<RemovedRows> {
    let mut removed = RemovedRows::default();
    if let Some(age) = retention.conversations {
        removed.conversations = remove_conversations_unused_since(store, now - age).await?;
    }
    let keys = "DELETE FROM idempotency_keys WHERE (owner, key) IN \
                (SELECT owner, key FROM idempotency_keys WHERE created_at <= $1 ORDER BY created_at LIMIT $2)";
    removed.idempotency_keys = in_batches(store, keys, now - idempotency::RETENTION).await?;
    let tokens = "DELETE FROM revoked_tokens WHERE id IN \
                  (SELECT id FROM revoked_tokens WHERE expires_at <= $1 LIMIT $2)";
    removed.revoked_tokens = in_batches(store, tokens, now).await?;
    let turns = "DELETE FROM turns WHERE conversation_id IN \
                 (SELECT conversation_id FROM turns WHERE expires_at <= $1 LIMIT $2)";
    in_batches(store, turns, now).await?;
    if let Some(age) = retention.executions {
        removed.executions = remove_executions_ended_before(store, now - age).await?;
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
    if let Some(max_bytes) = retention.output_bytes {
        removed.outputs = drop_output_beyond(store, max_bytes, now).await?;
    }
    let stale = "UPDATE deliveries SET ended_at = $3, dead = 1, last_error = COALESCE(last_error, 'the delivery has \
                 expired') WHERE ended_at IS NULL AND id IN \
                 (SELECT id FROM deliveries WHERE ended_at IS NULL AND created_at <= $1 AND not_before <= $1 LIMIT $2)";
    removed.stale_deliveries =
        repeat_batches(store, async move |tx| tx.run((stale, args![now - MAX_DELIVERY_AGE, BATCH_SIZE, now])).await)
            .await?;
    if let Some(age) = retention.notifications {
        let notifications = "DELETE FROM notifications WHERE (owner, id) IN \
                             (SELECT owner, id FROM notifications WHERE created_at <= $1 ORDER BY created_at LIMIT $2)";
        removed.notifications = in_batches(store, notifications, now - age).await?;
        let deliveries = "DELETE FROM deliveries WHERE id IN \
                          (SELECT id FROM deliveries WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2)";
        removed.deliveries = in_batches(store, deliveries, now - age).await?;
    }
    if let Some(age) = retention.audit {
        let records = "DELETE FROM audit_records WHERE id IN \
                       (SELECT id FROM audit_records WHERE at <= $1 ORDER BY at LIMIT $2)";
        removed.audit_records = in_batches(store, records, now - age).await?;
    }
    // If no supervisor runs, nothing else removes the nodes that have crashed.
    let nodes = "DELETE FROM nodes WHERE lease_until <= $1 AND id IN \
                 (SELECT id FROM nodes WHERE lease_until <= $1 LIMIT $2)";
    in_batches(store, nodes, now - NODE_RETENTION).await?;
    Ok(removed)
}

/// Removes executions that ended at `time` or before, with their events and A2A messages, also if a follow-up is
/// pending. Each transaction removes up to [`EXECUTION_BATCH_SIZE`], the ones that ended first before the rest. Returns
/// their number.
async fn remove_executions_ended_before(store: &Store, time: Timestamp) -> Result<u64> {
    let mut total = 0;
    loop {
        let removed = store
            .transaction(async move |tx| -> Result<u64> {
                let sql = "DELETE FROM executions WHERE id IN \
                               (SELECT id FROM executions WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
                               RETURNING id, task_id";
                let deleted = tx.all((sql, args![time, EXECUTION_BATCH_SIZE])).await?;
                executions::remove_dependents(tx, &deleted).await?;
                Ok(deleted.len() as u64)
            })
            .await?;
        total += removed;
        if removed < EXECUTION_BATCH_SIZE.unsigned_abs() {
            return Ok(total);
        }
    }
}

/// Drops the output of the executions that ended first, until at most `max_bytes` are stored in total. Stops earlier if
/// the rest belongs to executions that have not ended or are locked. Their records stay. `now` is the time of the gap
/// events. Returns the number of executions that lost their output.
async fn drop_output_beyond(store: &Store, max_bytes: i64, now: Timestamp) -> Result<u64> {
    let mut total = 0;
    let mut excess = executions::total_output_bytes(&mut store.reader().await?).await? - max_bytes;
    while excess > 0 {
        let dropped =
            store.transaction(async move |tx| executions::drop_output(tx, excess, EXECUTION_BATCH_SIZE, now).await);
        let DroppedOutput { executions, bytes } = dropped.await?;
        if executions == 0 {
            // The rest belongs to executions that have not ended.
            break;
        }
        total += executions;
        excess -= bytes;
    }
    Ok(total)
}

/// Removes conversations that were last used at `time` or before, with their messages, the longest unused ones first.
/// Each transaction removes up to [`BATCH_SIZE`] of them. Returns their number.
async fn remove_conversations_unused_since(store: &Store, time: Timestamp) -> Result<u64> {
    let mut total = 0;
    loop {
        let removed = store
            .transaction(async move |tx| -> Result<u64> {
                // The condition is repeated, because a conversation may be used between the SELECT and the DELETE.
                let sql = "DELETE FROM conversations WHERE updated_at <= $1 AND id IN \
                               (SELECT id FROM conversations WHERE updated_at <= $1 ORDER BY updated_at LIMIT $2) \
                               RETURNING owner, id";
                let rows = tx.all((sql, args![time, BATCH_SIZE])).await?;
                for row in &rows {
                    let sql = "DELETE FROM messages WHERE owner = $1 AND conversation_id = $2";
                    tx.run((sql, args![row.text(0)?, row.text(1)?])).await?;
                }
                Ok(rows.len() as u64)
            })
            .await?;
        total += removed;
        if removed < BATCH_SIZE.unsigned_abs() {
            return Ok(total);
        }
    }
}

/// Repeats a DELETE of up to `$2` rows that are not after the time `$1`, until it removes less than a full batch.
/// Returns the number of rows.
async fn in_batches(store: &Store, sql: &'static str, before: Timestamp) -> Result<u64> {
    repeat_batches(store, async move |tx| tx.run((sql, args![before, BATCH_SIZE])).await).await
}

/// Runs `work` in one transaction after the other, until it affects fewer than [`BATCH_SIZE`] rows. Returns the total
/// number of affected rows. After a failure, the completed transactions stay.
async fn repeat_batches<F>(store: &Store, work: F) -> Result<u64>
where
    F: AsyncFnOnce(&mut Transaction) -> Result<u64> + for<'t> Job<'t, u64, Error> + Copy + 'static,
{
    let mut total = 0;
    loop {
        let affected = store.transaction(work).await?;
        total += affected;
        if affected < BATCH_SIZE.unsigned_abs() {
            return Ok(total);
        }
    }
}
