//! Webhooks against a real server: signatures, retries and address checks.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use base64::Engine;
use hmac::{Hmac, KeyInit, Mac};
use notify::{ChannelTransport, Webhook};
use sha2::Sha256;

use crate::{Bench, settle, until};

/// A webhook receiver with a configurable response.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    pub(crate) requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    status: Arc<AtomicU16>,
    retry_after: Arc<Mutex<Option<String>>>,
}

impl Receiver {
    /// Starts the server and returns its port.
    pub(crate) async fn start(&self) -> u16 {
        let router = Router::new().route("/hook", post(receive)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        port
    }

    pub(crate) fn answer(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    pub(crate) fn set_retry_after(&self, retry_after: &str) {
        *self.retry_after.lock().unwrap() = Some(retry_after.to_owned());
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    receiver.requests.lock().unwrap().push((headers, body));
    let status = StatusCode::from_u16(receiver.status.load(Ordering::Relaxed)).unwrap_or(StatusCode::OK);
    if status == StatusCode::IM_A_TEAPOT {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("/hook"))]);
    if let Some(value) = receiver.retry_after.lock().unwrap().as_ref() {
        headers.insert(RETRY_AFTER, value.parse().unwrap());
    }
    (status, headers)
}

pub(crate) fn to(port: u16, secret: Option<&str>) -> ChannelTransport {
    let url = format!("http://127.0.0.1:{port}/hook");
    ChannelTransport::Webhook(Webhook::new(&url, secret.map(Into::into), true).unwrap())
}

#[tokio::test]
async fn a_webhook_is_signed() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.set_channels([("hook", to(receiver.start().await, Some("s3cret")))]);
    bench.run();
    let note = bench.notify("Done: ünïcode").await;
    until("the delivery arrives", async || receiver.count() == 1).await;
    let (headers, body) = receiver.requests.lock().unwrap()[0].clone();
    assert_eq!(serde_json::from_slice::<model::notification::Notification>(&body).unwrap(), note);
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").unwrap();
    mac.update(format!("{}.", header("x-adjutant-timestamp")).as_bytes());
    mac.update(&body);
    assert_eq!(header("x-adjutant-signature"), format!("sha256={}", model::text::hex(&mac.finalize().into_bytes())));
    assert_eq!(header("webhook-id"), header("x-adjutant-delivery"));
    assert_eq!(header("webhook-timestamp"), header("x-adjutant-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").unwrap();
    mac.update(format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).as_bytes());
    mac.update(&body);
    let signature = base64::engine::general_purpose::STANDARD.encode(mac.finalize().into_bytes());
    assert_eq!(header("webhook-signature"), format!("v1,{signature}"), "the signature covers the id");
    assert_eq!(header("x-adjutant-timestamp"), bench.clock.now().as_second().to_string());
    assert_eq!(header("content-type"), "application/json");
    until("the outcome is recorded", async || bench.backlog("hook").await == (0, 0)).await;
    bench.advance(Duration::from_secs(7200));
    settle().await;
    assert_eq!(receiver.count(), 1, "a delivery is sent once");
}

#[tokio::test]
async fn failures_are_retried_and_given_up_after_12_attempts() {
    // TASK-4: after 1, 2, 4 … seconds, under the same id, twelve times
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.set_channels([("hook", to(receiver.start().await, None))]);
    receiver.answer(503);
    bench.run();
    bench.notify("first").await;
    for attempt in 1..=12_usize {
        until("the next attempt", async || receiver.count() == attempt).await;
        until("the outcome is recorded", async || bench.counts("hook").failed == attempt as u64).await;
        settle().await;
        assert_eq!(receiver.count(), attempt, "the retry is not early");
        let pause = 1_u64 << (attempt - 1).min(20);
        bench.advance(Duration::from_millis(pause * 1000 - 1));
        if attempt < 3 {
            settle().await;
            assert_eq!(receiver.count(), attempt, "the retry is not early");
        }
        bench.advance(Duration::from_millis(1));
    }
    until("the delivery is given up", async || bench.backlog("hook").await == (0, 1)).await;
    let counts = bench.counts("hook");
    assert_eq!((counts.delivered, counts.failed, counts.dead), (0, 12, 1));
    let ids: Vec<_> =
        receiver.requests.lock().unwrap().iter().map(|(headers, _)| headers["x-adjutant-delivery"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "all attempts have the same id");
    assert!(
        !receiver.requests.lock().unwrap()[0].0.contains_key("x-adjutant-signature"),
        "no signature without a secret"
    );

    // The receiver recovers.
    receiver.answer(200);
    bench.notify("second").await;
    until("the delivery arrives", async || bench.counts("hook").delivered == 1).await;
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.set_channels([("hook", to(receiver.start().await, None))]);
    bench.run();
    for (dead, status) in [(1, 307), (2, 410)] {
        receiver.answer(status);
        bench.notify("x").await;
        until("the delivery is given up", async || bench.backlog("hook").await == (0, dead)).await;
        assert_eq!(receiver.count() as i64, dead, "a redirect is not followed");
    }
}

#[tokio::test]
async fn a_name_with_a_private_address_is_rejected() {
    // TASK-4
    // The name resolves to the loopback address of the receiver.
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    let url = format!("http://localhost:{port}/hook");
    let inside = ChannelTransport::Webhook(Webhook::new(&url, None, false).unwrap());
    let allowed = ChannelTransport::Webhook(Webhook::new(&url, None, true).unwrap());
    bench.set_channels([("inside", inside), ("allowed", allowed)]);
    bench.run();
    bench.notify("x").await;
    until("the allowed one arrives", async || receiver.count() == 1).await;
    until("the delivery is given up", async || bench.backlog("inside").await == (0, 1)).await;
    settle().await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn a_hanging_webhook_does_not_delay_other_channels() {
    let bench = Bench::sqlite().await;
    let slow = Receiver::default();
    let quick = Receiver::default();
    slow.answer(418);
    bench.set_channels([("slow", to(slow.start().await, None)), ("quick", to(quick.start().await, None))]);
    bench.run();
    for n in 0..20 {
        bench.notify(&n.to_string()).await;
    }
    until("the other channel gets all", async || quick.count() == 20).await;
    assert_eq!(slow.count(), 4, "the concurrency is limited");
    until("the attempts time out", async || bench.counts("slow").failed >= 4).await;
}

#[tokio::test]
async fn retry_after_is_respected() {
    // TASK-4: in seconds or as a date, but never earlier than the backoff
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.set_channels([("hook", to(receiver.start().await, None))]);
    receiver.answer(429);
    receiver.set_retry_after("120");
    bench.run();
    bench.notify("x").await;
    for (attempt, pause, next_value) in [(1, 120, "Sat, 10 Jan 2026 12:05:00 GMT"), (2, 180, "1"), (3, 4, "0")] {
        until("an attempt", async || bench.counts("hook").failed == attempt).await;
        receiver.set_retry_after(next_value);
        bench.advance(Duration::from_millis(pause * 1000 - 1));
        settle().await;
        assert_eq!(receiver.count() as u64, attempt, "the retry is not early");
        bench.advance(Duration::from_millis(1));
    }
    until("the last attempt", async || bench.counts("hook").failed == 4).await;
}
