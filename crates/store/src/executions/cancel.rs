//! Requests to end running executions. The node that holds an execution reads them.

use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, args};

/// A request to end an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    pub id: Uuid,
    /// The error of the execution after its end. `None` for a request of a user.
    pub reason: Option<String>,
}

/// Returns the executions of this node with a cancellation request. Also returns the holders of slots of this node that
/// no longer exist because their user has erased them.
pub async fn cancel_requests(conn: &mut Conn, node: Uuid) -> Result<Vec<CancelRequest>> {
    let sql = "SELECT id, cancel_reason FROM executions WHERE node = $1 AND ended_at IS NULL AND state <> 'idle' \
               AND cancel_asked IS NOT NULL \
               UNION ALL SELECT p.holder, NULL FROM places p WHERE p.node = $1 \
               AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = p.holder) \
               AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = p.holder)";
    let rows = conn.all((sql, args![node])).await?;
    rows.iter()
        .map(|row| Ok(CancelRequest { id: row.parsed(0, Uuid::try_parse)?, reason: row.maybe_text(1)? }))
        .collect()
}
