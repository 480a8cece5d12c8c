//! A wire that can be cut: forwards TCP connections to an address until it is told not to.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Proxy {
    /// `host:port` to use instead of the real one.
    pub address: String,
    open: Arc<watch::Sender<bool>>,
}

impl Proxy {
    pub async fn to(target: &str) -> Self {
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

    /// Ends every connection and lets none through.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    pub fn mend(&self) {
        self.open.send_replace(true);
    }
}
