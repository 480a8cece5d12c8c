//! MCP on standard input and output, for one user. Nothing else may write to standard output meanwhile.

use std::sync::Arc;

use rmcp::{ServiceExt, transport};
use store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Asker, Consents, Handler};

/// Serves until the client closes its end or `stop` is cancelled. A client that leaves before it said anything is no
/// failure.
pub async fn serve(asker: Asker, store: Store, stop: CancellationToken) {
    let handler = Handler {
        store,
        consents: Arc::new(Consents::new(None)),
        busy: TaskTracker::new(),
        always: Some(Arc::new(asker)),
    };
    let busy = handler.busy.clone();
    match handler.serve_with_ct(transport::stdio_pipes(), stop).await {
        Ok(service) => drop(service.waiting().await),
        Err(error) => tracing::debug!(error = %error, "the client went away before it began"),
    }
    // What was begun is carried out, whether or not anybody still listens.
    busy.close();
    busy.wait().await;
}
