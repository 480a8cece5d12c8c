//! A scripted provider of language models. It speaks three wire protocols over real sockets and sends the replies and
//! failures that a test defines. It records all requests. It rejects a request only if the test configures that.
//!
//! ```no_run
//! # async fn example() {
//! use serde_json::json;
//! use testkit::llm::{LlmFailure, Llm, Reply};
//!
//! let llm = Llm::start().await;
//! llm.script([Reply::call("add_task", json!({"title": "milk"})), Reply::text("Added.")]);
//! llm.always(Reply::failure(LlmFailure::CutMidway));
//! // … point a client at llm.url(), then:
//! assert_eq!(llm.requests()[1].tool_results(), ["…"]);
//! # }
//! ```

mod anthropic;
mod errors;
mod events;
mod gemini;
mod openai;
mod reply;
mod request;
mod response;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http;
use axum::http::request::Parts;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use reply::{Call, LlmFailure, Part, Reply, RetryAfter, StopReason, Usage, invalid_tool_names};
pub use request::{Request, TranscriptEntry, Wire};
use response::ConnectionClosed;

/// The timeout for conditions that a test waits for.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A running provider. It stops when dropped.
pub struct Llm {
    address: SocketAddr,
    state: Arc<LlmState>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

type ReplyRule = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

struct LlmState {
    script: Mutex<VecDeque<Reply>>,
    rule: Mutex<ReplyRule>,
    rejections: Mutex<Vec<LlmFailure>>,
    recorded: Mutex<Vec<Arc<Request>>>,
    is_recording: AtomicBool,
    next_number: AtomicUsize,
    request_count: watch::Sender<usize>,
    open_replies: watch::Sender<usize>,
}

impl Llm {
    /// Starts a provider on a free port.
    pub async fn start() -> Self {
        Self::start_on("127.0.0.1:0").await
    }

    /// Starts a provider on this address.
    pub async fn start_on(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(LlmState {
            script: Mutex::default(),
            rule: Mutex::new(Arc::new(|_| Reply::text("Hello."))),
            rejections: Mutex::default(),
            recorded: Mutex::default(),
            is_recording: AtomicBool::new(true),
            next_number: AtomicUsize::new(1),
            request_count: watch::Sender::new(0),
            open_replies: watch::Sender::new(0),
        });
        let serving = Mutex::new(Some(tokio::spawn(serve(listener, state.clone()))));
        Self { address, state, serving }
    }

    /// Returns `http://127.0.0.1:port`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds replies to the script. Each request uses one, in order, for all wires.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.script.lock().unwrap().extend(replies);
    }

    /// Sets the reply to all requests after the end of the script.
    pub fn always(&self, reply: Reply) {
        self.reply_with(move |_| reply.clone());
    }

    /// Sets the function that computes the replies after the end of the script.
    pub fn reply_with(&self, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.state.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Rejects every request that offers this tool, without using the script.
    pub fn reject_tool(&self, name: &str) {
        self.state.rejections.lock().unwrap().push(LlmFailure::RejectTool(name.to_owned()));
    }

    /// Rejects every request with a temperature, without using the script.
    pub fn reject_temperature(&self) {
        self.state.rejections.lock().unwrap().push(LlmFailure::RejectTemperature);
    }

    /// Returns all requests in order, including rejected ones.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.state.recorded.lock().unwrap().clone()
    }

    /// Stops recording requests and removes the recorded ones. Used for load tests.
    pub fn stop_recording(&self) {
        self.state.is_recording.store(false, Ordering::Relaxed);
        self.state.recorded.lock().unwrap().clear();
    }

    /// Waits until this number of requests has arrived since the start.
    pub async fn wait_for_requests(&self, count: usize) {
        wait_for_count(&self.state.request_count, "requests", |requests| requests >= count).await;
    }

    /// Waits until no reply is in progress: all were sent, or their clients have disconnected.
    pub async fn wait_until_idle(&self) {
        wait_for_count(&self.state.open_replies, "open replies", |open| open == 0).await;
    }

    /// Ends every connection and refuses new ones.
    pub async fn stop(&self) {
        let serving = self.serving.lock().unwrap().take();
        if let Some(serving) = serving {
            serving.abort();
            let _ = serving.await;
        }
    }

    /// Listens again on the same address after [`Llm::stop`].
    pub async fn restart(&self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let serving = tokio::spawn(serve(listener, self.state.clone()));
        *self.serving.lock().unwrap() = Some(serving);
    }
}

impl Drop for Llm {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.get_mut().unwrap_or_else(PoisonError::into_inner) {
            serving.abort();
        }
    }
}

async fn wait_for_count(count: &watch::Sender<usize>, name: &str, is_reached: impl Fn(usize) -> bool) {
    let mut count = count.subscribe();
    if tokio::time::timeout(WAIT_TIMEOUT, count.wait_for(|count| is_reached(*count))).await.is_err() {
        panic!("timed out with {} {name}", *count.borrow());
    }
}

/// Counts a reply as open until it is dropped.
struct OpenReply(Arc<LlmState>);

impl OpenReply {
    fn new(state: Arc<LlmState>) -> Self {
        state.open_replies.send_modify(|open| *open += 1);
        Self(state)
    }
}

impl Drop for OpenReply {
    fn drop(&mut self) {
        self.0.open_replies.send_modify(|open| *open -= 1);
    }
}

/// Accepts connections. They belong to this task and end with it.
async fn serve(listener: TcpListener, state: Arc<LlmState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(serve_connection(stream, state.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, state: Arc<LlmState>) {
    let _ = stream.set_nodelay(true);
    let service = tower::service_fn(move |request: http::Request<_>| {
        let (parts, body) = request.into_parts();
        handle(state.clone(), parts, Body::new(body))
    });
    let builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    let _ = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
}

/// Handles a request. An error closes the connection without a response.
async fn handle(state: Arc<LlmState>, parts: Parts, body: Body) -> Result<http::Response<Body>, ConnectionClosed> {
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|_| ConnectionClosed)?;
    let number = state.next_number.fetch_add(1, Ordering::Relaxed);
    let request = match Request::read(number, parts, body) {
        Ok(request) => Arc::new(request),
        Err(status) => return Ok(response::invalid_request(status)),
    };
    let open = OpenReply::new(state.clone());
    if state.is_recording.load(Ordering::Relaxed) {
        state.recorded.lock().unwrap().push(request.clone());
    }
    let reply = state.reply(&request);
    state.request_count.send_modify(|count| *count += 1);
    response::respond(&request, reply, open).await
}

impl LlmState {
    fn reply(&self, request: &Request) -> Reply {
        let rejection = self.rejections.lock().unwrap().iter().find(|failure| failure.applies_to(request)).cloned();
        if let Some(failure) = rejection {
            return Reply::failure(failure);
        }
        let scripted = self.script.lock().unwrap().pop_front();
        let rule = || self.rule.lock().unwrap().clone();
        scripted.unwrap_or_else(|| rule()(request))
    }
}
