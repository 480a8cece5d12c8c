//! The nodes that are at work, and the leases by which the others know that they live.

use jiff::Timestamp;
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, Statement, args};

/// Says that the node lives, and until when it may be believed. `false`: it was taken for dead meanwhile.
pub async fn renew(conn: &mut Conn, node: Uuid, lease_until: Timestamp) -> Result<bool> {
    let sql = "UPDATE nodes SET lease_until = $2 WHERE id = $1";
    Ok(conn.run((sql, args![node, lease_until])).await? == 1)
}

/// A node begins its work.
pub async fn join(conn: &mut Conn, node: Uuid, now: Timestamp, lease_until: Timestamp) -> Result<()> {
    let sql = "INSERT INTO nodes (id, started_at, lease_until) VALUES ($1, $2, $3)";
    conn.run((sql, args![node, now, lease_until])).await.map(drop)
}

/// Whether the node was not taken for dead. It is not, either, until this transaction ends.
pub(crate) async fn is_alive(conn: &mut Conn, node: Uuid) -> Result<bool> {
    let mut select = Statement::default();
    select.push("SELECT started_at FROM nodes WHERE id = ").bind(node);
    if !conn.is_sqlite() {
        select.push(" FOR KEY SHARE");
    }
    Ok(conn.first(select).await?.is_some())
}

/// A node has ended its work. Whatever it still held is for the others.
pub async fn leave(conn: &mut Conn, node: Uuid) -> Result<()> {
    conn.run(("DELETE FROM nodes WHERE id = $1", args![node])).await.map(drop)
}

/// Strikes off the nodes whose lease has run out; what they held belongs to nobody then.
pub async fn bury(conn: &mut Conn, now: Timestamp) -> Result<u64> {
    conn.run(("DELETE FROM nodes WHERE lease_until < $1", args![now])).await
}

/// Strikes off all nodes but this one: nobody else can be at work.
pub async fn bury_others(conn: &mut Conn, node: Uuid) -> Result<u64> {
    conn.run(("DELETE FROM nodes WHERE id <> $1", args![node])).await
}

/// The time by which leases are judged: the database's where several machines share it, since their clocks differ.
pub async fn judge(conn: &mut Conn, now: Timestamp) -> Result<Timestamp> {
    if conn.is_sqlite() {
        return Ok(now);
    }
    let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
    conn.first((sql, [])).await?.map_or(Ok(now), |row| row.time(0))
}
