//! A receiver of push notifications.

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(super) struct PushRequest {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Starts a receiver. Returns its URL and the received requests.
pub(super) async fn listen() -> (String, UnboundedReceiver<PushRequest>) {
    let (sender, receiver) = unbounded_channel();
    let receive = move |headers: HeaderMap, body: Bytes| async move {
        let _ = sender.send(PushRequest { headers, body });
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    let router = Router::new().route("/webhook", post(receive));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, receiver)
}
