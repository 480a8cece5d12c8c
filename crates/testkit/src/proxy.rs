//! A TCP proxy that can be interrupted, to simulate network failures.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Forwards TCP connections to a target.
pub struct TcpProxy {
    /// The `host:port` to use in place of the target.
    pub address: String,
    open: Arc<watch::Sender<bool>>,
}

impl TcpProxy {
    /// Starts a proxy for the `host:port` of a target.
    pub async fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open = Arc::new(watch::Sender::new(true));
        let gate = open.clone();
        let target = target.to_owned();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut cut = gate.subscribe();
                let target = target.clone();
                tokio::spawn(async move {
                    if !*cut.borrow_and_update() {
                        return;
                    }
                    let Ok(mut server) = TcpStream::connect(target).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, open }
    }

    /// Closes all connections and rejects new ones.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    /// Accepts connections again.
    pub fn restore(&self) {
        self.open.send_replace(true);
    }
}
