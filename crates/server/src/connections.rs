//! The open connections of the server and their limits (SEC-5).
//!
//! Connections are limited in total and, for clients that are not local and not trusted proxies, per client. If the
//! total is reached, the connection that has been idle for the longest time is closed, first those that never had a
//! request. Connections without a request for [`IDLE_TIMEOUT`] are closed.
//!
//! A response whose client reads nothing for the stall timeout ends ([`stalled`]). If the client does not read the rest
//! within the same time again, the connection is closed.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use http_body_util::BodyExt;
use ipnet::IpNet;
use tokio_util::sync::CancellationToken;

use crate::peer;
use crate::stalled::{self, FlushGate, ReadProgress};

/// The most open connections, if the process may open enough files.
const MAX_CONNECTIONS: usize = 10_000;
/// The number of descriptors that are reserved for the database, log files and pipes of agents.
const RESERVED_DESCRIPTORS: usize = 256;
/// The most connections of one client.
const MAX_PER_CLIENT: usize = 256;
/// The time without a request after which a connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time between two searches for idle connections and stalled clients, at most.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// The time between two searches, at least.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(50);
/// Larger responses and streams keep their connection active until the client has read them.
const SMALL_BODY_BYTES: u64 = 64 << 10;

/// All open connections.
pub(crate) struct Connections {
    max: usize,
    /// The time without reading after which a response ends.
    stall_timeout: Duration,
    started: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    by_id: HashMap<u64, Arc<ConnectionActivity>>,
    /// The number of connections of each client that has a limit.
    per_client: HashMap<IpAddr, usize>,
    last_id: u64,
}

/// The state of one connection.
struct ConnectionActivity {
    /// Set if the number of connections of this client is limited.
    client: Option<IpAddr>,
    /// The number of requests in progress.
    requests: AtomicUsize,
    /// The end of the last request, or the start of the connection. In milliseconds since the start of the server.
    idle_since: AtomicU64,
    /// Set once a request has arrived.
    is_used: AtomicBool,
    /// The clients of long responses.
    readers: Mutex<Vec<Weak<ReadProgress>>>,
    close: CancellationToken,
}

impl ConnectionActivity {
    /// Ends responses whose clients have read nothing for `limit` milliseconds at the time `now`. Closes the connection
    /// after twice that time.
    fn end_stalled(&self, now: u64, limit: u64) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|reader| reader.strong_count() > 0);
        let open: Vec<_> = readers.iter().filter_map(Weak::upgrade).collect();
        drop(readers);
        for reader in open {
            let blocked = reader.blocked_for(now);
            if blocked >= limit.saturating_mul(2) {
                self.close.cancel();
            }
            if blocked >= limit && reader.end() {
                tracing::info!(event = "stalled_stream_ended", "a response has ended because nothing was read");
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }
}

/// A registered connection. Dropping it removes the connection from the list.
pub(crate) struct Connection {
    id: u64,
    state: Arc<ConnectionActivity>,
    all: Arc<Connections>,
}

/// A request in progress. Its connection counts as active until this is dropped.
pub(crate) struct ActiveRequest {
    state: Arc<ConnectionActivity>,
    all: Arc<Connections>,
}

impl Connections {
    /// Creates an empty list. The total is limited by the number of files that this process may open: half of them are
    /// left for work that the connections cause.
    pub(crate) fn new(stall_timeout: Duration) -> Self {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = files.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
        let max = MAX_CONNECTIONS.min(files.saturating_sub(RESERVED_DESCRIPTORS) / 2).max(1);
        Self::with_limit(max, stall_timeout)
    }

    fn with_limit(max: usize, stall_timeout: Duration) -> Self {
        Self { max, stall_timeout, started: Instant::now(), open: Mutex::default() }
    }

    /// Registers a connection. Returns `None` if its client has too many, or if the total is reached and no connection
    /// is idle: the caller must close it. Closes the longest idle connection if the total is reached.
    pub(crate) fn register(self: &Arc<Self>, address: IpAddr, trusted: &[IpNet]) -> Option<Connection> {
        let is_limited = !address.is_loopback() && !trusted.iter().any(|network| network.contains(&address));
        let client = is_limited.then(|| peer::client_network(address));
        let state = Arc::new(ConnectionActivity {
            client,
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.now()),
            is_used: AtomicBool::new(false),
            readers: Mutex::default(),
            close: CancellationToken::new(),
        });
        let mut open = self.open();
        if let Some(client) = client {
            let count = open.per_client.entry(client).or_default();
            if *count >= MAX_PER_CLIENT {
                return None;
            }
            *count += 1;
        }
        if open.by_id.len() >= self.max && !open.close_longest_idle() {
            open.forget_client(client);
            return None;
        }
        open.last_id += 1;
        let id = open.last_id;
        open.by_id.insert(id, state.clone());
        Some(Connection { id, state, all: self.clone() })
    }

    /// Closes idle connections and ends stalled responses until `stopping` is cancelled.
    pub(crate) async fn close_idle(&self, stopping: &CancellationToken) {
        let interval = SWEEP_INTERVAL.min(self.stall_timeout / 4).max(MIN_SWEEP_INTERVAL);
        while stopping.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
            self.sweep(self.now());
        }
    }

    /// Closes all connections that have been idle for [`IDLE_TIMEOUT`] at the time `now`. Ends the responses of clients
    /// that read nothing.
    fn sweep(&self, now: u64) {
        let limit = IDLE_TIMEOUT.as_millis() as u64;
        let stall_limit = u64::try_from(self.stall_timeout.as_millis()).unwrap_or(u64::MAX);
        // Collected first, because the sources of responses may take other locks.
        let connections: Vec<_> = self.open().by_id.values().cloned().collect();
        for state in connections {
            state.end_stalled(now, stall_limit);
            if state.is_idle() && now.saturating_sub(state.idle_since.load(Ordering::Relaxed)) >= limit {
                state.close.cancel();
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    /// Closes the connection that has been idle for the longest time, if possible one that never had a request. Returns
    /// false if none is idle.
    fn close_longest_idle(&mut self) -> bool {
        let idle = self.by_id.iter().filter(|(_, state)| state.is_idle() && !state.close.is_cancelled());
        let order = |state: &ConnectionActivity| {
            (state.is_used.load(Ordering::Relaxed), state.idle_since.load(Ordering::Relaxed))
        };
        let longest = idle.min_by_key(|(_, state)| order(state)).map(|(id, _)| *id);
        let Some(id) = longest else { return false };
        self.remove(id);
        true
    }

    /// Closes a connection and removes it from the list. Has no effect if it was removed before.
    fn remove(&mut self, id: u64) {
        if let Some(state) = self.by_id.remove(&id) {
            state.close.cancel();
            self.forget_client(state.client);
        }
    }

    /// Subtracts one connection of a client.
    fn forget_client(&mut self, client: Option<IpAddr>) {
        let Some(client) = client else { return };
        if let Some(count) = self.per_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&client);
            }
        }
    }
}

impl Connection {
    /// Waits until the connection must be closed.
    pub(crate) async fn closed(&self) {
        self.state.close.cancelled().await;
    }

    /// Returns a function that marks the start of a request.
    pub(crate) fn request_counter(&self) -> impl Fn() -> ActiveRequest + Clone + Send + use<> {
        let state = self.state.clone();
        let all = self.all.clone();
        move || {
            state.requests.fetch_add(1, Ordering::Relaxed);
            state.is_used.store(true, Ordering::Relaxed);
            ActiveRequest { state: state.clone(), all: all.clone() }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.open().remove(self.id);
    }
}

impl ActiveRequest {
    /// Keeps the request active until the client has read the response or is ended because it reads nothing. A small
    /// response ends it at once. `gate` is that of the connection, if it has one.
    pub(crate) fn until_read(self, response: Response, gate: Option<Arc<FlushGate>>) -> Response {
        let is_small = response.body().size_hint().upper().is_some_and(|size| size <= SMALL_BODY_BYTES);
        if is_small {
            return response;
        }
        let all = self.all.clone();
        let (response, reader) = stalled::watch(response, gate, move || all.now());
        self.state.readers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&reader));
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _keep_active = &self;
                frame
            }))
        })
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.state.idle_since.store(self.all.now(), Ordering::Relaxed);
        self.state.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL_TIMEOUT: Duration = Duration::from_secs(60);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn each_client_has_a_limit_except_local_ones_and_proxies() {
        // SEC-5
        let connections = Arc::new(Connections::with_limit(10_000, STALL_TIMEOUT));
        let proxies = ["10.0.0.0/8".parse().unwrap()];
        let open = |from: &str| connections.register(address(from), &proxies);
        let held: Vec<_> = (0..MAX_PER_CLIENT).map(|_| open("198.51.100.1").unwrap()).collect();
        assert!(open("198.51.100.1").is_none());
        assert!(open("198.51.100.2").is_some(), "other clients are not affected");
        for unlimited in ["127.0.0.1", "::1", "10.1.2.3"] {
            let held: Vec<_> = (0..=MAX_PER_CLIENT).filter_map(|_| open(unlimited)).collect();
            assert_eq!(held.len(), MAX_PER_CLIENT + 1, "{unlimited}");
        }
        drop(held);
        assert!(open("198.51.100.1").is_some());
        assert!(connections.open().by_id.is_empty() && connections.open().per_client.is_empty());
    }

    #[test]
    fn the_longest_idle_connection_makes_room() {
        // SEC-5
        let connections = Arc::new(Connections::with_limit(2, STALL_TIMEOUT));
        let local = address("127.0.0.1");
        let busy = connections.register(local, &[]).unwrap();
        let request = busy.request_counter()();
        let idle = connections.register(local, &[]).unwrap();
        let third = connections.register(local, &[]).unwrap();
        assert!(idle.state.close.is_cancelled() && !busy.state.close.is_cancelled());
        drop(idle);
        let _second_request = third.request_counter()();
        assert!(connections.register(local, &[]).is_none(), "active connections are not closed");
        drop(request);
        assert!(connections.register(local, &[]).is_some());
        assert!(busy.state.close.is_cancelled());
    }

    #[test]
    fn connections_without_a_request_are_closed_first() {
        // SEC-5
        let connections = Arc::new(Connections::with_limit(2, STALL_TIMEOUT));
        let local = address("127.0.0.1");
        let used = connections.register(local, &[]).unwrap();
        drop(used.request_counter()());
        let silent = connections.register(local, &[]).unwrap();
        let _third = connections.register(local, &[]).unwrap();
        assert!(silent.state.close.is_cancelled() && !used.state.close.is_cancelled());
    }

    #[test]
    fn idle_connections_are_closed_after_a_minute() {
        // SEC-5
        let connections = Arc::new(Connections::with_limit(10, STALL_TIMEOUT));
        let connection = connections.register(address("127.0.0.1"), &[]).unwrap();
        let request = connection.request_counter()();
        connections.sweep(connections.now() + 120_000);
        assert!(!connection.state.close.is_cancelled());
        drop(request);
        connections.sweep(connections.now() + 59_000);
        assert!(!connection.state.close.is_cancelled());
        connections.sweep(connections.now() + 61_000);
        assert!(connection.state.close.is_cancelled());
    }

    #[tokio::test]
    async fn a_response_that_is_not_read_ends_with_a_notice() {
        // SEC-5
        let connections = Arc::new(Connections::with_limit(10, STALL_TIMEOUT));
        let connection = connections.register(address("127.0.0.1"), &[]).unwrap();
        let source = Arc::new(());
        let held = source.clone();
        let parts = futures::stream::repeat_with(move || {
            let _held = &held;
            Ok::<_, std::convert::Infallible>("data: x\n\n")
        });
        let mut response = Response::new(Body::from_stream(parts));
        response.extensions_mut().insert(stalled::StallNotice::new(|| "last".into()));
        let mut body = connection.request_counter()().until_read(response, None).into_body();
        let mut next = async || body.frame().await.map(|frame| frame.unwrap().into_data().unwrap());
        assert_eq!(next().await.unwrap(), "data: x\n\n");
        connections.sweep(connections.now() + 59_000);
        assert_eq!(next().await.unwrap(), "data: x\n\n", "the client has read something");
        connections.sweep(connections.now() + 61_000);
        assert_eq!(Arc::strong_count(&source), 1, "the source is released before the client continues");
        assert!(!connection.state.close.is_cancelled(), "the client can still read the end");
        assert_eq!(next().await.unwrap(), "last");
        assert!(next().await.is_none());
        connections.sweep(connections.now() + 121_000);
        assert!(connection.state.close.is_cancelled(), "the client reads nothing at all");
    }

    #[tokio::test]
    async fn an_idle_stream_is_not_stalled() {
        // SEC-5
        let connections = Arc::new(Connections::with_limit(10, STALL_TIMEOUT));
        let connection = connections.register(address("127.0.0.1"), &[]).unwrap();
        let parts = futures::stream::pending::<Result<String, std::convert::Infallible>>();
        let mut body =
            connection.request_counter()().until_read(Response::new(Body::from_stream(parts)), None).into_body();
        assert!(futures::poll!(body.frame()).is_pending());
        connections.sweep(connections.now() + 600_000);
        assert!(futures::poll!(body.frame()).is_pending() && !connection.state.close.is_cancelled());
    }
}
