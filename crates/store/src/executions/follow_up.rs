//! Executions that have ended and upon whose end somebody is yet to act. The row says so: whatever ended it, and whoever
//! died meanwhile, it is acted upon once. Works on everyone's rows, for those who act.

use model::execution::FollowUp;
use uuid::Uuid;

use super::row::{COLUMNS, PRIVATE, Stored, read_private};
use crate::Result;
use crate::conn::{Conn, Statement, args};

/// The oldest first. Only a look: whoever acts says so with [`followed_up`] in the transaction of what it does.
pub async fn to_follow_up(conn: &mut Conn, who: FollowUp, limit: i64) -> Result<Vec<Stored>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(PRIVATE).push(" FROM executions e WHERE e.ended_at IS NOT NULL");
    select.push(" AND e.follow_up = ").bind(who.as_str()).push(" ORDER BY e.ended_at LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read_private).collect()
}

/// `false`: somebody else has acted upon it.
pub async fn followed_up(conn: &mut Conn, id: Uuid) -> Result<bool> {
    let sql = "UPDATE executions SET follow_up = NULL WHERE id = $1 AND follow_up IS NOT NULL";
    Ok(conn.run((sql, args![id])).await? == 1)
}
