//! A TCP proxy that can be interrupted, that delays, and that counts round trips.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const BUFFER_BYTES: usize = 64 * 1024;

/// Forwards TCP connections to a target.
pub struct TcpProxy {
    /// The `host:port` to use in place of the target.
    pub address: String,
    open: Arc<watch::Sender<bool>>,
    round_trips: Arc<AtomicU64>,
}

impl TcpProxy {
    /// Starts a proxy for the `host:port` of a target.
    pub async fn start(target: &str) -> Self {
        Self::start_delayed(target, Duration::ZERO).await
    }

    /// Starts a proxy that forwards everything later, in each direction.
    pub async fn start_delayed(target: &str, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = Arc::new(watch::Sender::new(true));
        let round_trips = Arc::new(AtomicU64::new(0));
        let gate = open.clone();
        let counter = round_trips.clone();
        let target = target.to_owned();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut cut = gate.subscribe();
                let target = target.clone();
                let counter = counter.clone();
                tokio::spawn(async move {
                    if !*cut.borrow_and_update() {
                        return;
                    }
                    let Ok(server) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        () = forward_both(client, server, delay, &counter) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, open, round_trips }
    }

    /// Closes all connections and rejects new ones.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Accepts connections again.
    pub fn restore(&self) {
        self.open.send_replace(true);
    }

    /// Returns how often a client has sent something after an answer of the server, on all connections.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::SeqCst)
    }
}

/// Forwards both directions until both have ended.
async fn forward_both(client: TcpStream, server: TcpStream, delay: Duration, round_trips: &AtomicU64) {
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (client_read, client_write) = client.into_split();
    let (server_read, server_write) = server.into_split();
    let has_answered = AtomicBool::new(true);
    let requests = forward(client_read, server_write, delay, || {
        if has_answered.swap(false, Ordering::SeqCst) {
            round_trips.fetch_add(1, Ordering::SeqCst);
        }
    });
    let answers = forward(server_read, client_write, delay, || has_answered.store(true, Ordering::SeqCst));
    tokio::join!(requests, answers);
}

/// Forwards one direction until its end or a failure.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
    on_data: impl Fn(),
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        on_data();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let Some(data) = buffer.get(..read) else { return };
        if to.write_all(data).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
