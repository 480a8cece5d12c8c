//! Listens, hands connections to the router, and stops in an orderly way.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::{App, housekeeping, router};

/// How long a client may take to send its headers.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// How long requests may go on after the server was asked to stop.
const GRACE: Duration = Duration::from_secs(10);
/// After a failed accept, usually for want of file descriptors.
const BREATH: Duration = Duration::from_millis(50);

/// Serves until [`App::stopping`] is cancelled, then finishes what is under way.
pub async fn serve(app: App, listener: TcpListener) -> io::Result<()> {
    app.revocations().refresh(&app).await.map_err(io::Error::other)?;
    let housekeeping = tokio::spawn(housekeeping::run(app.clone()));
    let router = router(app.clone());
    let connections = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    while let Some(accepted) = app.stopping().run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => handle(stream, &builder, &router, &connections),
            Err(error) => {
                tracing::warn!(error = %error, "a connection was not accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(GRACE, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests were still under way and are cut off");
    }
    let _ = housekeeping.await;
    Ok(())
}

fn handle(stream: TcpStream, builder: &auto::Builder<TokioExecutor>, router: &Router, connections: &GracefulShutdown) {
    // Answers are small and streams must not wait for more.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router.clone());
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    let watched = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = watched.await {
            tracing::debug!(error = %error, "a connection ended early");
        }
    });
}
