//! Somebody who wants to be called back.

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(super) struct Call {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Where it is, and what it hears.
pub(super) async fn listen() -> (String, UnboundedReceiver<Call>) {
    let (sender, receiver) = unbounded_channel();
    let hear = move |headers: HeaderMap, body: Bytes| async move {
        let _ = sender.send(Call { headers, body });
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    let router = Router::new().route("/webhook", post(hear));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, receiver)
}
