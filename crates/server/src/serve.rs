//! Accepts connections, passes them to the router, and shuts down gracefully.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Request, Version};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tower::ServiceExt;

use crate::connections::{Connection, Connections};
use crate::local_peer::{LocalClient, UnixPeer};
use crate::local_socket::LocalSocket;
use crate::peer::PeerAddress;
use crate::peer_stream::{GatedStream, PeerStream};
use crate::slow_body::TimedBody;
use crate::stalled::FlushGate;
use crate::{App, a2a, follow_up, health_router, housekeeping, router, router_with};

/// The time in which a client must send its headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which requests may finish after the server was asked to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a failed accept. The usual reason is a lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The maximum size of the headers of a request over HTTP/1, and the size of written data from which no more is accepted
/// until the client has read some of it.
const MAX_BUFFER_BYTES: usize = 16 << 10;
/// The same size of written data for a stream of HTTP/2.
const MAX_SEND_BUFFER_BYTES: usize = 8 << 10;
/// The response to a connection that exceeds a limit.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
/// The time between two checks for the rest of the HTTP/2 preface.
const PREFACE_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The sockets on which a process accepts connections.
#[derive(Debug)]
pub struct Listeners {
    pub tcp: Option<TcpListener>,
    /// The socket of the data directory.
    pub local: Option<LocalSocket>,
}

impl From<TcpListener> for Listeners {
    fn from(listener: TcpListener) -> Self {
        Self { tcp: Some(listener), local: None }
    }
}

impl From<LocalSocket> for Listeners {
    fn from(socket: LocalSocket) -> Self {
        Self { tcp: None, local: Some(socket) }
    }
}

impl Listeners {
    /// Waits for the next connection of any socket. Fails if the system cannot accept it. Cancel safe.
    async fn accept(&self) -> io::Result<(PeerStream, Peer)> {
        let tcp = async {
            match &self.tcp {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        let local = async {
            match &self.local {
                Some(socket) => socket.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = tcp => accepted.map(|(stream, from)| {
                let peer = Peer::of_tcp(&stream, from);
                (PeerStream::Tcp(stream), peer)
            }),
            accepted = local => accepted.map(|stream| {
                let peer = Peer::of_unix(&stream);
                (PeerStream::Unix(stream), peer)
            }),
        }
    }
}

/// Serves until [`App::stopping`] is cancelled, then lets requests in progress finish. Returns when all work has ended.
pub async fn serve(app: App, listeners: impl Into<Listeners>) {
    let router = router(app.clone());
    tokio::join!(accept_connections(&app, listeners.into(), router), run_background(app.clone()));
}

/// Serves only the health endpoints, for a node that only runs agents. Otherwise like [`serve`].
pub async fn serve_health(app: App, listener: TcpListener) {
    let router = health_router(app.clone());
    tokio::join!(accept_connections(&app, listener.into(), router), run_background(app.clone()));
}

/// Serves other commands over the socket of the data directory until [`App::stopping`] is cancelled, without the
/// background loops of a node. `extra` are further routes, only for local users. Otherwise like [`serve`].
pub async fn serve_commands(app: App, socket: LocalSocket, extra: Router<App>) {
    let router = router_with(app.clone(), extra);
    accept_connections(&app, socket.into(), router).await;
}

/// Runs the background loops of the node until [`App::stopping`] is cancelled: housekeeping, follow-ups and push
/// notifications. Seals push configurations with the current key once.
pub async fn run_background(app: App) {
    app.background_tasks().spawn(a2a::push::reseal_all(app.clone()));
    let housekeeping = tokio::spawn(housekeeping::run(app.clone()));
    let follow_up = tokio::spawn(follow_up::run(app.clone()));
    let pushes = tokio::spawn(a2a::push_loop::run(app));
    let _ = tokio::join!(housekeeping, follow_up, pushes);
}

/// Accepts connections until the server stops, within the limits of [`Connections`]. A connection beyond them is
/// refused. A failed accept is logged and repeated after 50 ms. Then the listener and the MCP service are closed.
/// Requests and afterwards background tasks have ten seconds each to finish. Work that takes longer is cut off and
/// logged.
async fn accept_connections(app: &App, listeners: Listeners, router: Router) {
    let connections = GracefulShutdown::new();
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // A client that has closed its sending side still gets its response.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).half_close(true);
    // Responses and events are small. One flat buffer takes less memory for each open connection.
    builder.http1().writev(false).max_buf_size(MAX_BUFFER_BYTES);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    builder.http2().max_send_buf_size(MAX_SEND_BUFFER_BYTES);
    let settings = Arc::new(ConnectionSettings { builder, router });
    let open = Arc::new(Connections::new(app.active_config().settings.stall_timeout));
    let closing_idle = tokio::spawn({
        let (open, app) = (open.clone(), app.clone());
        async move { open.close_idle(app.stopping()).await }
    });
    while let Some(accepted) = app.stopping().run_until_cancelled(listeners.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                let PeerAddress(address) = peer.address;
                match open.register(address, &app.active_config().settings.trusted_proxies) {
                    Some(connection) => {
                        handle_connection(stream, peer, settings.clone(), connections.watcher(), connection);
                    }
                    None => refuse_connection(&stream, address),
                }
            }
            Err(error) => {
                tracing::warn!(error = %error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listeners);
    let _ = closing_idle.await;
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

/// The other end of a connection.
#[derive(Clone, Copy)]
struct Peer {
    address: PeerAddress,
    /// Set for a connection over loopback or the Unix socket, and for agents.
    local_client: Option<LocalClient>,
    is_unix: bool,
}

impl Peer {
    /// Returns the peer of a TCP connection. Its client is known if it comes from loopback. Over other addresses, only
    /// agents of this machine are identified: an agent can connect to any address of its machine.
    fn of_tcp(stream: &TcpStream, from: SocketAddr) -> Self {
        let address = from.ip().to_canonical();
        let client = stream.local_addr().ok().map(|server| LocalClient::find(from, server));
        let is_local = address.is_loopback() || matches!(client, Some(LocalClient::Agent(_)));
        Self { address: PeerAddress(address), local_client: client.filter(|_| is_local), is_unix: false }
    }

    /// Returns the peer of a connection over the Unix socket. It has the address of this host.
    fn of_unix(stream: &UnixStream) -> Self {
        let address = PeerAddress(Ipv4Addr::LOCALHOST.into());
        Self { address, local_client: Some(LocalClient::of_unix_stream(stream)), is_unix: true }
    }
}

/// Logs a connection that exceeds a limit, and answers it with 503 if the socket accepts that at once.
fn refuse_connection(stream: &PeerStream, address: IpAddr) {
    tracing::debug!(%address, "a connection was refused because of too many open connections");
    let _ = stream.try_write(TOO_MANY_CONNECTIONS);
}

/// Serves one connection in a new task. The address and the local client of `peer` are attached to every request. A
/// client that does not start a request within ten seconds is disconnected. The connection is dropped when `connection`
/// must be closed. Errors of the connection are logged at debug level.
fn handle_connection(
    stream: PeerStream,
    peer: Peer,
    settings: Arc<ConnectionSettings>,
    watcher: Watcher,
    connection: Connection,
) {
    // Responses are small, and events must be sent without delay.
    stream.set_options();
    tokio::spawn(async move {
        // hyper's timeout starts with the first line. It does not limit the detection of HTTP/1 or HTTP/2.
        let is_ready = tokio::select! {
            ready = tokio::time::timeout(HEADER_TIMEOUT, wait_for_protocol(&stream)) => matches!(ready, Ok(true)),
            () = connection.closed() => false,
        };
        if !is_ready {
            return;
        }
        let gate = Arc::new(FlushGate::default());
        let service_gate = gate.clone();
        let stream = GatedStream { stream, gate };
        let begin_request = connection.request_counter();
        let router = settings.router.clone();
        let service = tower::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.address);
            if let Some(client) = peer.local_client {
                request.extensions_mut().insert(client);
            }
            if peer.is_unix {
                request.extensions_mut().insert(UnixPeer);
            }
            let active = begin_request();
            // Streams of HTTP/2 have their own flow control.
            let gate = (request.version() < Version::HTTP_2).then(|| service_gate.clone());
            let response = router.clone().oneshot(request.map(TimedBody::new));
            async move { response.await.map(|response| active.until_read(response, gate)) }
        });
        let service = TowerToHyperService::new(service);
        let serving = settings.builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
        // Boxed, so that thousands of waiting connections do not also hold the state of their setup.
        let serving = Box::pin(watcher.watch(serving));
        tokio::select! {
            served = serving => if let Err(error) = served {
                tracing::debug!(error = %error, "a connection ended early");
            },
            () = connection.closed() => {}
        }
    });
}

/// Waits without a time limit until the client has sent enough to distinguish HTTP/1 and HTTP/2. Nothing is consumed.
/// Returns `false` if the client disconnected or the connection failed.
async fn wait_for_protocol(stream: &PeerStream) -> bool {
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
