//! The MCP server on standard input and output, for one user. No other code may write to standard output while it runs.

use std::sync::Arc;

use rmcp::{ServiceExt, transport};
use store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{ConsentTokens, McpCaller, McpHandler};

/// Serves until the client closes its end or `stop` is cancelled, then waits for running calls without a time limit. A
/// client that disconnects before the handshake is not an error. It is only logged. Confirmations are valid in this
/// process only.
pub async fn serve(caller: McpCaller, store: Store, stop: CancellationToken) {
    let handler = McpHandler {
        store,
        consents: Arc::new(ConsentTokens::new(None)),
        running_calls: TaskTracker::new(),
        fixed_caller: Some(Arc::new(caller)),
    };
    let running_calls = handler.running_calls.clone();
    match handler.serve_with_ct(transport::stdio_pipes(), stop).await {
        Ok(service) => drop(service.waiting().await),
        Err(error) => tracing::debug!(error = %error, "the client disconnected before the handshake"),
    }
    // Running calls are completed, even if the client has disconnected.
    running_calls.close();
    running_calls.wait().await;
}
