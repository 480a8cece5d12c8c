//! What keeps the database from growing without bound (OPS-7). Works on all users' rows, by age alone.

use jiff::{SignedDuration, Timestamp};

use crate::conn::args;
use crate::{Result, Store, idempotency};

/// Rows removed in one transaction: others get their turn in between.
const BATCH: i64 = 500;

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Since a conversation was used last; `None` keeps all.
    pub conversations: Option<SignedDuration>,
}

/// How many rows were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub conversations: u64,
    pub idempotency_keys: u64,
    pub revoked_tokens: u64,
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
    Ok(removed)
}

async fn conversations_unused_since(store: &Store, time: Timestamp) -> Result<u64> {
    let mut total = 0;
    loop {
        let removed = store
            .write(move |conn| {
                Box::pin(async move {
                    // Said twice: between finding a conversation and removing it somebody may have used it.
                    let sql = "DELETE FROM conversations WHERE updated_at <= $1 AND id IN \
                               (SELECT id FROM conversations WHERE updated_at <= $1 ORDER BY updated_at LIMIT $2) \
                               RETURNING owner, id";
                    let rows = conn.all((sql, args![time, BATCH])).await?;
                    for row in &rows {
                        let sql = "DELETE FROM messages WHERE owner = $1 AND conversation_id = $2";
                        conn.run((sql, args![row.text(0)?, row.text(1)?])).await?;
                    }
                    Ok(rows.len() as u64)
                })
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
    let mut total = 0;
    loop {
        let removed =
            store.write(move |conn| Box::pin(async move { conn.run((sql, args![before, BATCH])).await })).await?;
        total += removed;
        if removed < BATCH.unsigned_abs() {
            return Ok(total);
        }
    }
}
