//! The locks of conversations. A node holds the lock while it answers a message. The lock expires, because the node may
//! crash.

use jiff::Timestamp;
use model::conversation::ConversationId;
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, args};

/// Acquires the lock of a conversation until `expires_at`. Returns false if a lock exists that has not expired at
/// `now`, also one of the same holder.
pub async fn acquire(
    conn: &mut Conn,
    id: &ConversationId,
    holder: Uuid,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<bool> {
    let sql = "INSERT INTO turns (conversation_id, holder, expires_at) VALUES ($1, $2, $3) \
               ON CONFLICT (conversation_id) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at \
               WHERE turns.expires_at <= $4";
    Ok(conn.run((sql, args![id, holder, expires_at, now])).await? == 1)
}

/// Releases the lock of a conversation if `holder` still has it.
pub async fn release(conn: &mut Conn, id: &ConversationId, holder: Uuid) -> Result<()> {
    let sql = "DELETE FROM turns WHERE conversation_id = $1 AND holder = $2";
    conn.run((sql, args![id, holder])).await.map(drop)
}
