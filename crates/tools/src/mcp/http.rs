//! MCP over Streamable HTTP. Who may come in, from which pages and how often is the server's to decide before; this
//! door only keeps one user out of another's session.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use serde_json::json;
use store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::sessions::Sessions;
use super::{Asker, Consents, Handler};

const SESSION: &str = "mcp-session-id";
/// How long calls under way may take when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// What an answer needs from the handler into its stream.
const BREATH: Duration = Duration::from_millis(100);

/// An answer, whole or as a stream.
pub type Answered = Response<BoxBody<Bytes, Infallible>>;

pub struct Door {
    service: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
    busy: TaskTracker,
    streams: CancellationToken,
}

impl Door {
    /// Nodes that have the same `secret` honour one another's questions.
    pub fn new(store: Store, secret: Option<&[u8]>) -> Self {
        let busy = TaskTracker::new();
        let streams = CancellationToken::new();
        let handler = Handler { store, consents: Arc::new(Consents::new(secret)), busy: busy.clone(), always: None };
        // Host and Origin were checked before, by rules that know the configuration.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX)
            .with_json_response(true)
            .with_cancellation_token(streams.clone());
        let sessions = Arc::new(Sessions::default());
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config);
        Self { service, sessions, busy, streams }
    }

    /// Answers one request. How large its body may be was seen to before.
    pub async fn handle(&self, asker: Asker, mut request: Request<Bytes>) -> Answered {
        // An answer is not lost to a stop: see `close`.
        let _busy = self.busy.token();
        if let Some(session) = request.headers().get(SESSION) {
            let session = session.to_str().unwrap_or_default();
            if !self.sessions.admits(session, asker.user.id) {
                return refuse(StatusCode::NOT_FOUND, -32001, "there is no such session; begin a new one");
            }
        }
        let is_post = request.method() == ::http::Method::POST;
        if is_post && serde_json::from_slice::<IgnoredAny>(request.body()).is_err() {
            return refuse(StatusCode::BAD_REQUEST, -32700, "the body must be JSON");
        }
        request.extensions_mut().insert(Arc::new(asker));
        let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(is_json);
        let answer = self.service.handle(request.map(Full::new)).await;
        if is_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return refuse(StatusCode::BAD_REQUEST, -32600, "the body must be one JSON-RPC message");
        }
        answer
    }

    /// Lets calls under way end, then ends the streams: they would go on for ever.
    pub async fn close(&self) {
        self.busy.close();
        let _ = tokio::time::timeout(GRACE, self.busy.wait()).await;
        if !self.sessions.are_none() {
            tokio::time::sleep(BREATH).await;
        }
        self.streams.cancel();
    }
}

fn is_json(kind: &HeaderValue) -> bool {
    kind.as_bytes().starts_with(b"application/json")
}

/// A refusal in the protocol's own form.
fn refuse(status: StatusCode, code: i32, message: &str) -> Answered {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    let mut answer = Response::new(Full::from(body.to_string()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
