//! The MCP server over Streamable HTTP. Authentication, origins, hosts and rate limits are checked by the HTTP server
//! before. This module only ensures that a user cannot use the session of another user.

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

use super::sessions::McpSessions;
use super::{ConsentTokens, McpCaller, McpHandler};

const SESSION_HEADER: &str = "mcp-session-id";
/// The time for running calls to end when the server stops.
const CALL_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for an answer to get from the handler into its stream.
const STREAM_FLUSH_DELAY: Duration = Duration::from_millis(100);

/// A response with a complete body or a stream.
pub type McpResponse = Response<BoxBody<Bytes, Infallible>>;

/// Answers MCP requests over HTTP.
pub struct McpService {
    service: StreamableHttpService<McpHandler, McpSessions>,
    sessions: Arc<McpSessions>,
    /// The requests in progress, and the calls without those that wait for the user.
    running_calls: TaskTracker,
    /// Ends all streams when it is cancelled.
    streams: CancellationToken,
}

impl McpService {
    /// Creates the service. Nodes with the same `secret` accept each other's confirmations. Hosts, origins and the size
    /// of requests are not checked here, because the HTTP server has done so. Answers are JSON where possible, not
    /// streams.
    pub fn new(store: Store, secret: Option<&[u8]>) -> Self {
        let running_calls = TaskTracker::new();
        let streams = CancellationToken::new();
        let handler = McpHandler {
            store,
            consents: Arc::new(ConsentTokens::new(secret)),
            running_calls: running_calls.clone(),
            fixed_caller: None,
        };
        // The HTTP server has checked Host and Origin against the configuration.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX)
            .with_json_response(true)
            .with_cancellation_token(streams.clone());
        let sessions = Arc::new(McpSessions::default());
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config);
        Self { service, sessions, running_calls, streams }
    }

    /// Answers one request. The HTTP server has limited the size of the body. If the request names a session, marks it
    /// as used, or returns 404 if it does not exist or belongs to another user. Returns 400 if the body of a POST is
    /// not JSON, or has the content type of JSON but is not one JSON-RPC message.
    pub async fn handle(&self, caller: McpCaller, mut request: Request<Bytes>) -> McpResponse {
        // `close` waits for this request.
        let _running = self.running_calls.token();
        if let Some(session) = request.headers().get(SESSION_HEADER) {
            let session = session.to_str().unwrap_or_default();
            if !self.sessions.is_owned_by(session, caller.user.id) {
                return error_response(StatusCode::NOT_FOUND, -32001, "the session does not exist; open a new one");
            }
        }
        let is_post = request.method() == ::http::Method::POST;
        if is_post && serde_json::from_slice::<IgnoredAny>(request.body()).is_err() {
            return error_response(StatusCode::BAD_REQUEST, -32700, "the body must be JSON");
        }
        request.extensions_mut().insert(Arc::new(caller));
        let is_json = request.headers().get(header::CONTENT_TYPE).is_some_and(is_json);
        let answer = self.service.handle(request.map(Full::new)).await;
        if is_json && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return error_response(StatusCode::BAD_REQUEST, -32600, "the body must be one JSON-RPC message");
        }
        answer
    }

    /// Waits at most 5 seconds for running calls, then ends the streams, which would stay open otherwise. If there are
    /// sessions, waits 100 ms before that, so that the last answers are sent.
    pub async fn close(&self) {
        self.running_calls.close();
        let _ = tokio::time::timeout(CALL_DRAIN_TIMEOUT, self.running_calls.wait()).await;
        if !self.sessions.is_empty() {
            tokio::time::sleep(STREAM_FLUSH_DELAY).await;
        }
        self.streams.cancel();
    }
}

fn is_json(content_type: &HeaderValue) -> bool {
    content_type.as_bytes().starts_with(b"application/json")
}

/// Returns a JSON-RPC error response.
fn error_response(status: StatusCode, code: i32, message: &str) -> McpResponse {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    let mut answer = Response::new(Full::from(body.to_string()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
