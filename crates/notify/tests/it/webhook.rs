//! Webhooks against a real server: signed, tried again, never sent elsewhere.

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
use hmac::{Hmac, KeyInit, Mac};
use notify::{Way, Webhook};
use sha2::Sha256;

use crate::{Bench, a_while, until};

/// What a receiver got, and what it answers.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    pub(crate) got: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    status: Arc<AtomicU16>,
    retry_after: Arc<Mutex<Option<String>>>,
}

impl Receiver {
    /// Its port.
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

    pub(crate) fn ask_for_patience(&self, retry_after: &str) {
        *self.retry_after.lock().unwrap() = Some(retry_after.to_owned());
    }

    pub(crate) fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    receiver.got.lock().unwrap().push((headers, body));
    let status = StatusCode::from_u16(receiver.status.load(Ordering::Relaxed)).unwrap_or(StatusCode::OK);
    if status == StatusCode::IM_A_TEAPOT {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let mut headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("/hook"))]);
    if let Some(patience) = receiver.retry_after.lock().unwrap().as_ref() {
        headers.insert(RETRY_AFTER, patience.parse().unwrap());
    }
    (status, headers)
}

pub(crate) fn to(port: u16, secret: Option<&str>) -> Way {
    let url = format!("http://127.0.0.1:{port}/hook");
    Way::Webhook(Webhook::new(&url, secret.map(Into::into), true).unwrap())
}

#[tokio::test]
async fn it_arrives_signed() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.with([("hook", to(receiver.start().await, Some("s3cret")))]);
    bench.run();
    let note = bench.tell("Done: ünïcode").await;
    until("it arrives", async || receiver.count() == 1).await;
    let (headers, body) = receiver.got.lock().unwrap()[0].clone();
    assert_eq!(serde_json::from_slice::<model::notification::Notification>(&body).unwrap(), note);
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").unwrap();
    mac.update(format!("{}.", header("x-adjutant-timestamp")).as_bytes());
    mac.update(&body);
    assert_eq!(header("x-adjutant-signature"), format!("sha256={}", model::text::hex(&mac.finalize().into_bytes())));
    assert_eq!(header("x-adjutant-timestamp"), bench.clock.now().as_second().to_string());
    assert_eq!(header("content-type"), "application/json");
    until("it is noted", async || bench.standing("hook").await == (0, 0)).await;
    bench.advance(Duration::from_secs(7200));
    a_while().await;
    assert_eq!(receiver.count(), 1, "once is enough");
}

#[tokio::test]
async fn what_fails_is_tried_again_and_given_up_in_the_end() {
    // TASK-4: after 1, 2, 4 … seconds, under the same id, twelve times
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.with([("hook", to(receiver.start().await, None))]);
    receiver.answer(503);
    bench.run();
    bench.tell("first").await;
    for attempt in 1..=12_usize {
        until("the next attempt", async || receiver.count() == attempt).await;
        until("it is noted", async || bench.counts("hook").failed == attempt as u64).await;
        a_while().await;
        assert_eq!(receiver.count(), attempt, "not before its time");
        let pause = 1_u64 << (attempt - 1).min(20);
        bench.advance(Duration::from_millis(pause * 1000 - 1));
        if attempt < 3 {
            a_while().await;
            assert_eq!(receiver.count(), attempt, "not before its time");
        }
        bench.advance(Duration::from_millis(1));
    }
    until("it is given up", async || bench.standing("hook").await == (0, 1)).await;
    let counts = bench.counts("hook");
    assert_eq!((counts.delivered, counts.failed, counts.dead), (0, 12, 1));
    let ids: Vec<_> =
        receiver.got.lock().unwrap().iter().map(|(headers, _)| headers["x-adjutant-delivery"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "receivers know doubles by it");
    assert!(!receiver.got.lock().unwrap()[0].0.contains_key("x-adjutant-signature"), "without a secret there is none");

    // It comes back to life.
    receiver.answer(200);
    bench.tell("second").await;
    until("it arrives", async || bench.counts("hook").delivered == 1).await;
}

#[tokio::test]
async fn what_cannot_help_is_not_tried_again() {
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.with([("hook", to(receiver.start().await, None))]);
    bench.run();
    for (dead, status) in [(1, 307), (2, 410)] {
        receiver.answer(status);
        bench.tell("x").await;
        until("it is given up", async || bench.standing("hook").await == (0, dead)).await;
        assert_eq!(receiver.count() as i64, dead, "a redirect is not followed");
    }
}

#[tokio::test]
async fn a_name_of_this_machine_is_refused() {
    // The name resolves to an address of this machine, which is where the receiver is.
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    let port = receiver.start().await;
    let url = format!("http://localhost:{port}/hook");
    let inside = Way::Webhook(Webhook::new(&url, None, false).unwrap());
    let allowed = Way::Webhook(Webhook::new(&url, None, true).unwrap());
    bench.with([("inside", inside), ("allowed", allowed)]);
    bench.run();
    bench.tell("x").await;
    until("the other arrives", async || receiver.count() == 1).await;
    until("it is given up", async || bench.standing("inside").await == (0, 1)).await;
    a_while().await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn one_that_hangs_holds_up_nobody() {
    let bench = Bench::sqlite().await;
    let slow = Receiver::default();
    let quick = Receiver::default();
    slow.answer(418);
    bench.with([("slow", to(slow.start().await, None)), ("quick", to(quick.start().await, None))]);
    bench.run();
    for n in 0..20 {
        bench.tell(&n.to_string()).await;
    }
    until("the others arrive", async || quick.count() == 20).await;
    assert_eq!(slow.count(), 4, "a few at once, not all");
    until("it is given up for now", async || bench.counts("slow").failed >= 4).await;
}

#[tokio::test]
async fn whoever_asks_for_patience_gets_it() {
    // TASK-4: in seconds or until a date, but never earlier than it would be tried anyway
    let bench = Bench::sqlite().await;
    let receiver = Receiver::default();
    bench.with([("hook", to(receiver.start().await, None))]);
    receiver.answer(429);
    receiver.ask_for_patience("120");
    bench.run();
    bench.tell("x").await;
    for (attempt, pause, patience) in [(1, 120, "Sat, 10 Jan 2026 12:05:00 GMT"), (2, 180, "1"), (3, 4, "0")] {
        until("an attempt", async || bench.counts("hook").failed == attempt).await;
        receiver.ask_for_patience(patience);
        bench.advance(Duration::from_millis(pause * 1000 - 1));
        a_while().await;
        assert_eq!(receiver.count() as u64, attempt, "not before its time");
        bench.advance(Duration::from_millis(1));
    }
    until("the last attempt", async || bench.counts("hook").failed == 4).await;
}
