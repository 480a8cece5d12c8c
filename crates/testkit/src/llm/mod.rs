//! A double of the providers of language models: answers over real sockets what a test tells it to, on three wires,
//! well or badly. It never judges what it is asked, except where a test makes it; what it was asked is kept for the test.
//!
//! ```no_run
//! # async fn example() {
//! use serde_json::json;
//! use testkit::llm::{Fault, Llm, Reply};
//!
//! let llm = Llm::start().await;
//! llm.script([Reply::call("add_task", json!({"title": "milk"})), Reply::text("Added.")]);
//! llm.always(Reply::fault(Fault::CutMidway));
//! // … point a client at llm.url(), then:
//! assert_eq!(llm.requests()[1].tool_results(), ["…"]);
//! # }
//! ```

mod answer;
mod anthropic;
mod errors;
mod events;
mod gemini;
mod openai;
mod reply;
mod request;

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

pub use reply::{Call, Fault, Part, Reply, RetryAfter, Stop, Usage, bad_tool_names};
pub use request::{Entry, Request, Wire};

/// How long a test waits for something that should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running provider; it stops when dropped.
pub struct Llm {
    address: SocketAddr,
    state: Arc<State>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

type Rule = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

struct State {
    script: Mutex<VecDeque<Reply>>,
    rule: Mutex<Rule>,
    rejections: Mutex<Vec<Fault>>,
    kept: Mutex<Vec<Arc<Request>>>,
    keep: AtomicBool,
    next: AtomicUsize,
    asked: watch::Sender<usize>,
    open: watch::Sender<usize>,
}

impl Llm {
    pub async fn start() -> Self {
        Self::start_on("127.0.0.1:0").await
    }

    pub async fn start_on(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            script: Mutex::default(),
            rule: Mutex::new(Arc::new(|_| Reply::text("Hello."))),
            rejections: Mutex::default(),
            kept: Mutex::default(),
            keep: AtomicBool::new(true),
            next: AtomicUsize::new(1),
            asked: watch::Sender::new(0),
            open: watch::Sender::new(0),
        });
        let serving = Mutex::new(Some(tokio::spawn(serve(listener, state.clone()))));
        Self { address, state, serving }
    }

    /// `http://127.0.0.1:port`, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replies to come, one a request, in order, whatever the wire.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.script.lock().unwrap().extend(replies);
    }

    /// The reply when the script has ended.
    pub fn always(&self, reply: Reply) {
        self.decide(move |_| reply.clone());
    }

    /// The same, by what is asked.
    pub fn decide(&self, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        *self.state.rule.lock().unwrap() = Arc::new(rule);
    }

    /// Refuses every request that offers this tool, without using up the script.
    pub fn reject_tool(&self, name: &str) {
        self.state.rejections.lock().unwrap().push(Fault::RejectTool(name.to_owned()));
    }

    /// Refuses every request that sends a temperature, without using up the script.
    pub fn reject_temperature(&self) {
        self.state.rejections.lock().unwrap().push(Fault::RejectTemperature);
    }

    /// What was asked, in order, including what was refused.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.state.kept.lock().unwrap().clone()
    }

    /// Keeps no requests from now on, for millions of them.
    pub fn forget(&self) {
        self.state.keep.store(false, Ordering::Relaxed);
        self.state.kept.lock().unwrap().clear();
    }

    /// Waits until so many requests have come, since the start.
    pub async fn asked(&self, times: usize) {
        reach(&self.state.asked, "requests", |asked| asked >= times).await;
    }

    /// Waits until no answer is under way: all were sent, or nobody listens any more.
    pub async fn idle(&self) {
        reach(&self.state.open, "open answers", |open| open == 0).await;
    }

    /// Ends every connection and refuses new ones.
    pub async fn stop(&self) {
        let serving = self.serving.lock().unwrap().take();
        if let Some(serving) = serving {
            serving.abort();
            let _ = serving.await;
        }
    }

    /// Listens again where it did before it was stopped.
    pub async fn resume(&self) {
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

async fn reach(count: &watch::Sender<usize>, what: &str, wanted: impl Fn(usize) -> bool) {
    let mut count = count.subscribe();
    if tokio::time::timeout(PATIENCE, count.wait_for(|count| wanted(*count))).await.is_err() {
        panic!("waited in vain: {} {what}", *count.borrow());
    }
}

/// An answer under way.
struct Open(Arc<State>);

impl Open {
    fn new(state: Arc<State>) -> Self {
        state.open.send_modify(|open| *open += 1);
        Self(state)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

/// The connections live in this task, so that they end with it.
async fn serve(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(converse(stream, state.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, state: Arc<State>) {
    let _ = stream.set_nodelay(true);
    let service = tower::service_fn(move |request: http::Request<_>| {
        let (parts, body) = request.into_parts();
        handle(state.clone(), parts, Body::new(body))
    });
    let builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    let _ = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
}

/// An error here closes the connection without a word.
async fn handle(state: Arc<State>, parts: Parts, body: Body) -> Result<http::Response<Body>, answer::Closed> {
    let body = axum::body::to_bytes(body, usize::MAX).await.map_err(|_| answer::Closed)?;
    let number = state.next.fetch_add(1, Ordering::Relaxed);
    let request = match Request::read(number, parts, body) {
        Ok(request) => Arc::new(request),
        Err(status) => return Ok(answer::misdirected(status)),
    };
    let open = Open::new(state.clone());
    if state.keep.load(Ordering::Relaxed) {
        state.kept.lock().unwrap().push(request.clone());
    }
    let reply = state.reply(&request);
    state.asked.send_modify(|asked| *asked += 1);
    answer::answer(&request, reply, open).await
}

impl State {
    fn reply(&self, request: &Request) -> Reply {
        let rejection = self.rejections.lock().unwrap().iter().find(|fault| fault.applies(request)).cloned();
        if let Some(fault) = rejection {
            return Reply::fault(fault);
        }
        let scripted = self.script.lock().unwrap().pop_front();
        let rule = || self.rule.lock().unwrap().clone();
        scripted.unwrap_or_else(|| rule()(request))
    }
}
