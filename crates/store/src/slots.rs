//! The execution slots of an agent. Each used slot is a row, and its primary key prevents a second holder on any node.

use std::collections::HashSet;

use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, args};

/// Returns the number of free slots of an agent, and their indexes in ascending order.
pub(crate) async fn free(
    conn: &mut Conn,
    agent_id: &str,
    slots: i64,
) -> Result<(usize, impl Iterator<Item = i64> + Send + use<>)> {
    let taken = conn.all(("SELECT slot FROM places WHERE agent_id = $1", args![agent_id])).await?;
    Ok(free_besides(taken.iter().map(|row| row.int(0)).collect::<Result<_>>()?, slots))
}

/// Like [`free`], with the used slots as an argument. After a configuration change more slots may be in use than the
/// agent has. Then no slot is free until enough are released.
pub(crate) fn free_besides(taken: HashSet<i64>, slots: i64) -> (usize, impl Iterator<Item = i64> + Send + use<>) {
    let count = usize::try_from(slots).unwrap_or_default().saturating_sub(taken.len());
    (count, (0..slots).filter(move |slot| !taken.contains(slot)).take(count))
}

/// Takes the first slot of `free` that is still free, for the execution or session `holder`. Returns false if none is.
/// Removes the slots that it tries from `free`.
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

/// Releases the slot of an execution or a session. Does nothing if the node does not hold it.
pub async fn release_slot(conn: &mut Conn, holder: Uuid, node: Uuid) -> Result<()> {
    conn.run(("DELETE FROM places WHERE holder = $1 AND node = $2", args![holder, node])).await.map(drop)
}
