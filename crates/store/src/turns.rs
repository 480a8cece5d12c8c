//! Whose turn it is in a conversation, where several nodes could answer at once. A turn ends by itself after a while: the
//! node that held it may be gone.

use jiff::Timestamp;
use model::conversation::Id;
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, args};

/// Takes the turn, unless somebody else has it.
pub async fn take(conn: &mut Conn, id: &Id, holder: Uuid, now: Timestamp, expires_at: Timestamp) -> Result<bool> {
    let sql = "INSERT INTO turns (conversation_id, holder, expires_at) VALUES ($1, $2, $3) \
               ON CONFLICT (conversation_id) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at \
               WHERE turns.expires_at <= $4";
    Ok(conn.run((sql, args![id, holder, expires_at, now])).await? == 1)
}

/// Ends a turn; one that is somebody else's by now goes on.
pub async fn give_back(conn: &mut Conn, id: &Id, holder: Uuid) -> Result<()> {
    let sql = "DELETE FROM turns WHERE conversation_id = $1 AND holder = $2";
    conn.run((sql, args![id, holder])).await.map(drop)
}
