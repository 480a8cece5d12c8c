//! The running nodes and their leases. A node with a valid lease counts as alive.

use jiff::Timestamp;
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, Statement, args};
use crate::stop_state::SHARED_LOCK;

/// Renews the lease of a node. Returns false if the node was declared dead meanwhile.
pub async fn renew_lease(conn: &mut Conn, node: Uuid, lease_until: Timestamp) -> Result<bool> {
    let sql = "UPDATE nodes SET lease_until = $2 WHERE id = $1";
    Ok(conn.run((sql, args![node, lease_until])).await? == 1)
}

/// Adds a node with its first lease.
pub async fn join(conn: &mut Conn, node: Uuid, now: Timestamp, lease_until: Timestamp) -> Result<()> {
    let sql = "INSERT INTO nodes (id, started_at, lease_until) VALUES ($1, $2, $3)";
    conn.run((sql, args![node, now, lease_until])).await.map(drop)
}

/// Returns true if the node was not declared dead. It cannot be declared dead until this transaction ends. On
/// PostgreSQL, also takes the shared lock of [`crate::stop_state`] in the same statement.
pub(crate) async fn is_alive(conn: &mut Conn, node: Uuid) -> Result<bool> {
    let mut select = Statement::default();
    if conn.is_sqlite() {
        select.push("SELECT started_at FROM nodes WHERE id = ").bind(node);
    } else {
        select.push("SELECT ").push(SHARED_LOCK).push(" FROM nodes WHERE id = ").bind(node).push(" FOR KEY SHARE");
    }
    Ok(conn.first(select).await?.is_some())
}

/// Removes a node. Its executions become abandoned.
pub async fn leave(conn: &mut Conn, node: Uuid) -> Result<()> {
    conn.run(("DELETE FROM nodes WHERE id = $1", args![node])).await.map(drop)
}

/// Sets leases that end after `too_late` to `lease_until`: the clock of the database was ahead. A node that is alive
/// renews its lease before that. Returns the number of changed leases.
pub async fn limit_leases(conn: &mut Conn, lease_until: Timestamp, too_late: Timestamp) -> Result<u64> {
    conn.run(("UPDATE nodes SET lease_until = $1 WHERE lease_until > $2", args![lease_until, too_late])).await
}

/// Removes the nodes with an expired lease. Their executions become abandoned. Returns the number of removed nodes.
pub async fn remove_expired(conn: &mut Conn, now: Timestamp) -> Result<u64> {
    conn.run(("DELETE FROM nodes WHERE lease_until < $1", args![now])).await
}

/// Removes all nodes except this one. Only for SQLite, which has a single node. Returns the number of removed nodes.
pub async fn remove_others(conn: &mut Conn, node: Uuid) -> Result<u64> {
    conn.run(("DELETE FROM nodes WHERE id <> $1", args![node])).await
}

/// Returns the time for checks of leases. With PostgreSQL this is the time of the database, because the clocks of nodes
/// differ. With SQLite it is `now`.
pub async fn lease_time(conn: &mut Conn, now: Timestamp) -> Result<Timestamp> {
    if conn.is_sqlite() {
        return Ok(now);
    }
    let sql = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)";
    conn.first((sql, [])).await?.map_or(Ok(now), |row| row.time(0))
}
