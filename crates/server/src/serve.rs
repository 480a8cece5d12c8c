//! Accepts connections, passes them to the router, and shuts down gracefully.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use crate::peer::PeerAddress;
use crate::{App, a2a, follow_up, health_router, housekeeping, router};

/// The time in which a client must send its headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which requests may finish after the server was asked to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// The most open connections. Further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 10_000;
/// The pause after a failed accept. The usual reason is a lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The time between two checks for the rest of the HTTP/2 preface.
const PREFACE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Serves until [`App::stopping`] is cancelled, then lets requests in progress finish. Returns when all work has ended.
pub async fn serve(app: App, listener: TcpListener) {
    let router = router(app.clone());
    tokio::join!(accept_connections(&app, listener, router), run_background(app.clone()));
}

/// Serves only the health endpoints, for a node that only runs agents. Otherwise like [`serve`].
pub async fn serve_health(app: App, listener: TcpListener) {
    let router = health_router(app.clone());
    tokio::join!(accept_connections(&app, listener, router), run_background(app.clone()));
}

/// Runs the background loops of the node until [`App::stopping`] is cancelled: housekeeping, follow-ups and push
/// notifications.
pub async fn run_background(app: App) {
    let housekeeping = tokio::spawn(housekeeping::run(app.clone()));
    let follow_up = tokio::spawn(follow_up::run(app.clone()));
    let pushes = tokio::spawn(a2a::push_loop::run(app));
    let _ = tokio::join!(housekeeping, follow_up, pushes);
}

/// Accepts connections until the server stops, at most 10,000 at a time. A failed accept is logged and repeated after
/// 50 ms. Then the listener and the MCP service are closed. Requests and afterwards background tasks have ten seconds
/// each to finish. Work that takes longer is cut off and logged.
async fn accept_connections(app: &App, listener: TcpListener, router: Router) {
    let connections = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // A client that has closed its sending side still gets its response.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).half_close(true);
    // Responses and events are small. One flat buffer takes less memory for each open connection.
    builder.http1().writev(false);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let settings = Arc::new(ConnectionSettings { builder, router });
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accept = async || (slots.clone().acquire_owned().await.ok(), listener.accept().await);
    while let Some((slot, accepted)) = app.stopping().run_until_cancelled(accept()).await {
        match accepted {
            Ok((stream, from)) => {
                let peer = PeerAddress(from.ip().to_canonical());
                handle_connection(stream, peer, settings.clone(), connections.watcher(), slot);
            }
            Err(error) => {
                tracing::warn!(error = %error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    let ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, connections.shutdown());
    let (ended, ()) = tokio::join!(ended, app.mcp_endpoint().close());
    if ended.is_err() {
        tracing::warn!("requests did not finish in time and were cut off");
    }
    app.background_tasks().close();
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, app.background_tasks().wait()).await.is_err() {
        tracing::warn!("turns did not finish in time and were cut off");
    }
}

/// The settings and the router that all connections share.
struct ConnectionSettings {
    builder: auto::Builder<TokioExecutor>,
    router: Router,
}

/// Serves one connection in a new task. `slot` is released at its end. `peer` is attached to every request. A client
/// that does not start a request within ten seconds is disconnected. Errors of the connection are logged at debug
/// level.
fn handle_connection(
    stream: TcpStream,
    peer: PeerAddress,
    settings: Arc<ConnectionSettings>,
    watcher: Watcher,
    slot: Option<OwnedSemaphorePermit>,
) {
    // Responses are small, and events must be sent without delay.
    let _ = stream.set_nodelay(true);
    tokio::spawn(async move {
        let _slot = slot;
        // hyper's timeout starts with the first line. It does not limit the detection of HTTP/1 or HTTP/2.
        if !matches!(tokio::time::timeout(HEADER_TIMEOUT, wait_for_protocol(&stream)).await, Ok(true)) {
            return;
        }
        let service = settings.router.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = settings.builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        // Boxed, so that thousands of waiting connections do not also hold the state of their setup.
        if let Err(error) = Box::pin(watcher.watch(connection)).await {
            tracing::debug!(error = %error, "a connection ended early");
        }
    });
}

/// Waits without a time limit until the client has sent enough to distinguish HTTP/1 and HTTP/2. Nothing is consumed.
/// Returns `false` if the client disconnected or the connection failed.
async fn wait_for_protocol(stream: &TcpStream) -> bool {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut start = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut start).await {
            Ok(0) | Err(_) => return false,
            Ok(n) if n == PREFACE.len() || !PREFACE.starts_with(&start[..n]) => return true,
            // `peek` returns at once while the rest of the preface is missing, so this polls.
            Ok(_) => tokio::time::sleep(PREFACE_POLL_INTERVAL).await,
        }
    }
}
