//! The places of an agent. Each is a row whose key itself refuses a second holder, on one node or many.

use std::collections::HashSet;

use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, args};

/// How many places may be taken now, and their numbers, lowest first.
pub(crate) async fn free(
    conn: &mut Conn,
    agent_id: &str,
    places: i64,
) -> Result<(usize, impl Iterator<Item = i64> + Send + use<>)> {
    let taken = conn.all(("SELECT slot FROM places WHERE agent_id = $1", args![agent_id])).await?;
    Ok(besides(taken.iter().map(|row| row.int(0)).collect::<Result<_>>()?, places))
}

/// The same where it is known which are taken. After a change of the configuration more may be taken than there are: then
/// none is free until so many were given back.
pub(crate) fn besides(taken: HashSet<i64>, places: i64) -> (usize, impl Iterator<Item = i64> + Send + use<>) {
    let room = usize::try_from(places).unwrap_or_default().saturating_sub(taken.len());
    (room, (0..places).filter(move |slot| !taken.contains(slot)).take(room))
}

/// Takes the first of `free` that nobody else has taken meanwhile.
pub(crate) async fn take(
    conn: &mut Conn,
    agent_id: &str,
    free: &mut impl Iterator<Item = i64>,
    holder: Uuid,
    node: Uuid,
) -> Result<bool> {
    for slot in free {
        let sql = "INSERT INTO places (agent_id, slot, holder, node) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
        if conn.run((sql, args![agent_id, slot, holder, node])).await? == 1 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives the place of an execution or a session back.
pub async fn give_back(conn: &mut Conn, holder: Uuid, node: Uuid) -> Result<()> {
    conn.run(("DELETE FROM places WHERE holder = $1 AND node = $2", args![holder, node])).await.map(drop)
}
