//! Listens, hands connections to the router, and stops in an orderly way.

use std::io;
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

use crate::peer::Peer;
use crate::{App, a2a, health_router, housekeeping, results, router};

/// How long a client may take to send its headers.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// How long requests may go on after the server was asked to stop.
const GRACE: Duration = Duration::from_secs(10);
/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 10_000;
/// After a failed accept, usually for want of file descriptors.
const BREATH: Duration = Duration::from_millis(50);

/// Serves until [`App::stopping`] is cancelled, then finishes what is under way.
pub async fn serve(app: App, listener: TcpListener) -> io::Result<()> {
    let router = router(app.clone());
    let (served, worked) = tokio::join!(answer(&app, listener, router), work(app.clone()));
    served.and(worked)
}

/// For a node that only runs agents: answers nothing but how it is.
pub async fn tell_health(app: App, listener: TcpListener) -> io::Result<()> {
    let router = health_router(app.clone());
    let (served, worked) = tokio::join!(answer(&app, listener, router), work(app.clone()));
    served.and(worked)
}

/// What a node does besides answering, until [`App::stopping`] is cancelled.
pub async fn work(app: App) -> io::Result<()> {
    let housekeeping = tokio::spawn(housekeeping::run(app.clone()));
    let results = tokio::spawn(results::run(app.clone()));
    let pushes = tokio::spawn(a2a::pump::run(app));
    let _ = tokio::join!(housekeeping, results, pushes);
    Ok(())
}

async fn answer(app: &App, listener: TcpListener, router: Router) -> io::Result<()> {
    let connections = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // A client that has said all it has to say still gets its answer.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE).half_close(true);
    // Answers and events are small: one buffer for all of them is less to keep for each connection that waits.
    builder.http1().writev(false);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let door = Arc::new(Door { builder, router });
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let accept = async || (places.clone().acquire_owned().await.ok(), listener.accept().await);
    while let Some((place, accepted)) = app.stopping().run_until_cancelled(accept()).await {
        match accepted {
            Ok((stream, from)) => {
                handle(stream, Peer(from.ip().to_canonical()), door.clone(), connections.watcher(), place);
            }
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    let ended = tokio::time::timeout(GRACE, connections.shutdown());
    let (ended, ()) = tokio::join!(ended, app.mcp().close());
    if ended.is_err() {
        tracing::warn!("some requests were still under way and are cut off");
    }
    app.tasks().close();
    if tokio::time::timeout(GRACE, app.tasks().wait()).await.is_err() {
        tracing::warn!("some turns were still under way and are cut off");
    }
    Ok(())
}

/// What every connection needs to begin.
struct Door {
    builder: auto::Builder<TokioExecutor>,
    router: Router,
}

fn handle(stream: TcpStream, peer: Peer, door: Arc<Door>, watcher: Watcher, place: Option<OwnedSemaphorePermit>) {
    // Answers are small and streams must not wait for more.
    let _ = stream.set_nodelay(true);
    tokio::spawn(async move {
        let _place = place;
        // hyper's own limit begins with the first line; it takes its time to tell HTTP/1 from HTTP/2.
        if !matches!(tokio::time::timeout(HEADER_PATIENCE, has_begun(&stream)).await, Ok(true)) {
            return;
        }
        let service = door.router.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer);
            request
        });
        let service = TowerToHyperService::new(service);
        let connection = door.builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        // Thousands may wait at once: they carry nothing along that was only needed to begin.
        if let Err(error) = Box::pin(watcher.watch(connection)).await {
            tracing::debug!(error = %error, "a connection ended early");
        }
    });
}

/// Waits until the client has sent enough to tell which protocol it speaks; false if it went away.
async fn has_begun(stream: &TcpStream) -> bool {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut start = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut start).await {
            Ok(0) | Err(_) => return false,
            Ok(n) if n == PREFACE.len() || !PREFACE.starts_with(&start[..n]) => return true,
            // More of the preface must come; nothing tells when.
            Ok(_) => tokio::time::sleep(BREATH).await,
        }
    }
}
