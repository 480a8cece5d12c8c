//! Tokens that were revoked before they expired.

use jiff::Timestamp;

use crate::Result;
use crate::conn::{Conn, args};

/// Revokes a token. `id` is its `jti`, or a digest of a token without one. A revoked token stays unchanged.
/// Returns false if it was revoked before.
pub async fn revoke(conn: &mut Conn, id: &str, expires_at: Timestamp, now: Timestamp) -> Result<bool> {
    let sql = "INSERT INTO revoked_tokens (id, revoked_at, expires_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING";
    Ok(conn.run((sql, args![id, now, expires_at])).await? == 1)
}

/// Writes a meaningless row to test that the database accepts writes. Housekeeping removes the row.
pub(crate) async fn write_probe(conn: &mut Conn) -> Result<()> {
    let sql = "INSERT INTO revoked_tokens (id, revoked_at, expires_at) VALUES ('probe', 0, 0) \
               ON CONFLICT (id) DO UPDATE SET revoked_at = revoked_tokens.revoked_at + 1";
    conn.run((sql, [])).await.map(drop)
}

/// Returns the ids of all revoked tokens that have not expired.
pub async fn revoked(conn: &mut Conn, now: Timestamp) -> Result<Vec<String>> {
    let rows = conn.all(("SELECT id FROM revoked_tokens WHERE expires_at > $1", args![now])).await?;
    rows.iter().map(|row| row.text(0)).collect()
}
