//! Ended executions with a pending follow-up. The row records the follow-up, so that it happens once, even after a
//! crash. These functions work on the rows of all users.

use model::execution::FollowUp;
use uuid::Uuid;

use super::row::{COLUMNS, ExecutionRow, INTERNAL_COLUMNS, read_row};
use crate::Result;
use crate::conn::{Conn, Statement, args};

/// Returns up to `limit` ended executions that wait for the given follow-up, the oldest first. The rows are not locked:
/// the caller calls [`mark_followed_up`] in the transaction of its follow-up.
pub async fn pending_follow_ups(conn: &mut Conn, follow_up: FollowUp, limit: i64) -> Result<Vec<ExecutionRow>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(INTERNAL_COLUMNS).push(" FROM executions e WHERE e.ended_at IS NOT NULL");
    select.push(" AND e.follow_up = ").bind(follow_up.as_str()).push(" ORDER BY e.ended_at LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read_row).collect()
}

/// Marks the follow-up as done. Returns false if another node has done it.
pub async fn mark_followed_up(conn: &mut Conn, id: Uuid) -> Result<bool> {
    let sql = "UPDATE executions SET follow_up = NULL WHERE id = $1 AND follow_up IS NOT NULL";
    Ok(conn.run((sql, args![id])).await? == 1)
}
