//! External servers over HTTP: the server of rmcp in both eras, and servers that misbehave.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::StreamExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tools::mcp_client::{ExternalCallError, McpServerPhase, McpServerSettings, McpServers, McpTransport, ProtocolEra};

use crate::{arguments, find, memory_mb, names, start, state, until, until_ready};

const TOKEN: &str = "Bearer tok-4f9a8b7c6d5e";

/// An MCP server with a tool that adds another tool, and a tool that waits until it is cancelled.
#[derive(Clone, Default)]
struct Notebook {
    has_grown: Arc<AtomicBool>,
    grown: Arc<Notify>,
    was_cancelled: Arc<AtomicBool>,
}

impl ServerHandler for Notebook {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("notebook", "3"))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = self.grown.notified() => drop(context.sink().notify_tool_list_changed().await),
            () = context.cancelled() => return Ok(()),
        }
        context.cancelled().await;
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(arguments(json!({"type": "object"})));
        let names = ["write", "grow", "wait", "grown"];
        let count = if self.has_grown.load(Ordering::SeqCst) { 4 } else { 3 };
        let tools = names[..count].iter().map(|&name| Tool::new(name, name, schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = match &*request.name {
            "write" => Value::from(request.arguments.unwrap_or_default()).to_string(),
            "grow" => {
                self.has_grown.store(true, Ordering::SeqCst);
                self.grown.notify_waiters();
                let _ = context.peer.notify_tool_list_changed().await;
                "grown".to_owned()
            }
            _ => {
                context.ct.cancelled().await;
                self.was_cancelled.store(true, Ordering::SeqCst);
                "cancelled".to_owned()
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// An HTTP server that records the `Authorization` headers it gets.
struct TestServer {
    address: SocketAddr,
    /// Its own runtime, so that dropping the server closes all its connections.
    runtime: Option<Runtime>,
    authorizations: Arc<Mutex<Vec<Option<String>>>>,
}

impl TestServer {
    async fn open(router: Router, at: Option<SocketAddr>) -> Self {
        let authorizations = Arc::new(Mutex::new(Vec::new()));
        let seen = authorizations.clone();
        let router = router.layer(from_fn(move |request: Request, next: Next| {
            let given = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
            seen.lock().unwrap().push(given);
            next.run(request)
        }));
        let address = at.unwrap_or_else(|| "127.0.0.1:0".parse().unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listening = runtime.spawn(TcpListener::bind(address));
        let listener = listening.await.unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, runtime: Some(runtime), authorizations }
    }

    async fn notebook(notebook: &Notebook, at: Option<SocketAddr>) -> Self {
        let notebook = notebook.clone();
        let sessions = Arc::new(LocalSessionManager::default());
        let config = StreamableHttpServerConfig::default();
        let service = StreamableHttpService::new(move || Ok(notebook.clone()), sessions, config);
        Self::open(Router::new().nest_service("/mcp", service), at).await
    }

    async fn with_handler<F: Future<Output = Response> + Send + 'static>(
        answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::open(Router::new().route("/mcp", any(answer)), None).await
    }

    fn settings(&self, era: Option<ProtocolEra>) -> McpServerSettings {
        let url = format!("http://{}/mcp", self.address);
        let headers = vec![("Authorization".to_owned(), TOKEN.into())];
        let mut settings = McpServerSettings::new("notes", McpTransport::Http { url, headers });
        (settings.era, settings.start_timeout) = (era, Duration::from_secs(20));
        settings
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

async fn ready(server: &TestServer, era: Option<ProtocolEra>) -> McpServers {
    let servers = start([server.settings(era)]);
    servers.wait_until_settled(Duration::from_secs(20)).await;
    assert_eq!(state(&servers, "notes").phase, McpServerPhase::Ready, "{:?}", state(&servers, "notes"));
    servers
}

#[tokio::test]
async fn both_eras_are_supported_and_every_request_is_authorized() {
    for (era, expected) in [(None, ProtocolEra::Modern), (Some(ProtocolEra::Legacy), ProtocolEra::Legacy)] {
        let server = TestServer::notebook(&Notebook::default(), None).await;
        let servers = ready(&server, era).await;
        let state = state(&servers, "notes");
        assert_eq!((state.era, state.implementation.as_deref()), (Some(expected), Some("notebook 3")));
        let result = servers.call(&find(&servers, "write"), arguments(json!({"a": 1}))).await.unwrap();
        assert_eq!(result.text, r#"{"a":1}"#);
        servers.stop().await;
        let seen = server.authorizations.lock().unwrap();
        assert!(seen.len() >= 3 && seen.iter().all(|given| given.as_deref() == Some(TOKEN)), "{seen:?}");
    }
}

#[tokio::test]
async fn tool_changes_and_cancellations_are_transmitted() {
    for era in [ProtocolEra::Modern, ProtocolEra::Legacy] {
        let notebook = Notebook::default();
        let server = TestServer::notebook(&notebook, None).await;
        let servers = ready(&server, Some(era)).await;
        // Wait for the subscription.
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.call(&find(&servers, "grow"), arguments(json!({}))).await.unwrap();
        until("the new tool is listed", || names(&servers).contains(&"grown".to_owned())).await;
        let wait = find(&servers, "wait");
        let call = servers.call(&wait, arguments(json!({})));
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
        until("the call is cancelled at the server", || notebook.was_cancelled.load(Ordering::SeqCst)).await;
        servers.stop().await;
    }
}

#[tokio::test]
async fn a_lost_server_is_detected_and_reconnected() {
    for era in [ProtocolEra::Modern, ProtocolEra::Legacy] {
        let server = TestServer::notebook(&Notebook::default(), None).await;
        let address = server.address;
        let servers = ready(&server, Some(era)).await;
        let write = find(&servers, "write");
        drop(server);
        // The open stream ends, so no call is needed to detect the loss.
        until("the loss is detected", || servers.tools().is_empty()).await;
        let lost = servers.call(&write, arguments(json!({}))).await;
        assert!(matches!(lost, Err(ExternalCallError::Unavailable(_))), "{lost:?}");
        let server = TestServer::notebook(&Notebook::default(), Some(address)).await;
        until_ready(&servers, "notes").await;
        let result = servers.call(&write, arguments(json!({"b": 2}))).await;
        assert_eq!(result.map(|result| result.text), Ok(r#"{"b":2}"#.to_owned()), "{era:?}");
        servers.stop().await;
        drop(server);
    }
}

#[tokio::test]
async fn an_expired_session_is_reopened() {
    let notebook = Notebook::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let all_sessions = sessions.clone();
    let made = notebook.clone();
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(made.clone()), sessions, config);
    let server = TestServer::open(Router::new().nest_service("/mcp", service), None).await;
    let servers = ready(&server, Some(ProtocolEra::Legacy)).await;
    all_sessions.sessions.write().await.clear();
    let result = servers.call(&find(&servers, "write"), arguments(json!({"c": 3}))).await;
    assert_eq!(result.map(|result| result.text), Ok(r#"{"c":3}"#.to_owned()));
    assert_eq!(state(&servers, "notes").breaker.failure_count, 0);
    servers.stop().await;
}

#[tokio::test]
async fn an_unreachable_address_is_reported() {
    let server = TestServer::notebook(&Notebook::default(), None).await;
    let mut settings = server.settings(None);
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nowhere}/mcp?api_key=tok-4f9a8b7c6d5e");
    settings.transport = McpTransport::Http { url, headers: Vec::new() };
    let servers = start([settings]);
    servers.wait_until_settled(Duration::from_secs(20)).await;
    let error = state(&servers, "notes").last_error.unwrap();
    assert!(error.contains("refused") && !error.contains("4f9a"), "{error}");
    servers.stop().await;
}

#[tokio::test]
async fn headers_are_not_sent_to_another_origin() {
    let other = TestServer::notebook(&Notebook::default(), None).await;
    let target = format!("http://{}/mcp", other.address);
    for status in [StatusCode::TEMPORARY_REDIRECT, StatusCode::FOUND] {
        let target = target.clone();
        let server = TestServer::with_handler(move |_| {
            let answer = (status, [("location", target.clone())]).into_response();
            async { answer }
        })
        .await;
        let servers = start([server.settings(None)]);
        servers.wait_until_settled(Duration::from_secs(20)).await;
        assert_eq!(state(&servers, "notes").phase, McpServerPhase::Down);
        servers.stop().await;
    }
    assert!(other.authorizations.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_to_the_same_origin_is_followed() {
    let notebook = Notebook::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(move || Ok(notebook.clone()), sessions, StreamableHttpServerConfig::default());
    let moved = || async { (StatusCode::PERMANENT_REDIRECT, [("location", "/there")]) };
    let server = TestServer::open(Router::new().nest_service("/there", service).route("/mcp", any(moved)), None).await;
    let servers = ready(&server, None).await;
    assert!(servers.call(&find(&servers, "write"), arguments(json!({}))).await.is_ok());
    servers.stop().await;
}

#[tokio::test]
async fn a_server_that_never_answers_times_out() {
    let server = TestServer::with_handler(|_| std::future::pending()).await;
    let mut settings = server.settings(None);
    settings.start_timeout = Duration::from_secs(1);
    let servers = start([settings]);
    let began = Instant::now();
    servers.wait_until_settled(Duration::from_secs(20)).await;
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(state(&servers, "notes").last_error.as_deref(), Some("did not answer within the start timeout"));
    servers.stop().await;
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn error_pages_are_not_quoted_in_errors() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::BAD_GATEWAY, StatusCode::OK] {
        let server = TestServer::with_handler(move |request: Request| async move {
            let given = request.headers()["authorization"].to_str().unwrap().to_owned();
            (status, [("content-type", "text/html")], format!("<html>you sent {given}")).into_response()
        })
        .await;
        let servers = start([server.settings(None)]);
        servers.wait_until_settled(Duration::from_secs(20)).await;
        let error = state(&servers, "notes").last_error.unwrap();
        let expected = if status == StatusCode::OK { "content type" } else { status.as_str() };
        assert!(error.contains(expected) && !error.contains("4f9a"), "{error}");
        servers.stop().await;
    }
}

/// Starts a server of the newer era that answers every call with the given response.
async fn server_with_call_response(call: impl Fn(&Value) -> Response + Clone + Send + Sync + 'static) -> TestServer {
    TestServer::with_handler(move |request: Request| {
        let call = call.clone();
        async move {
            let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let result = match message["method"].as_str().unwrap_or_default() {
                "server/discover" => json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0,
                    "cacheScope": "private", "capabilities": {"tools": {}},
                }),
                "tools/list" => json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [
                    {"name": "write", "inputSchema": {"type": "object"}}, {"name": "bad", "inputSchema": 1},
                ]}),
                "tools/call" => return call(&message["id"]),
                _ => return StatusCode::ACCEPTED.into_response(),
            };
            axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
        }
    })
    .await
}

#[tokio::test]
async fn an_oversized_response_closes_only_the_connection() {
    for kind in ["application/json", "text/event-stream"] {
        let server = server_with_call_response(move |_| {
            let start = if kind == "application/json" { "{\"a\":\"" } else { "data: " };
            let chunks = futures::stream::repeat("x".repeat(1 << 20)).map(Ok::<_, std::io::Error>);
            let start = futures::stream::iter([Ok(start.to_owned())]);
            let mut headers = HeaderMap::new();
            headers.insert("content-type", kind.parse().unwrap());
            (headers, Body::from_stream(start.chain(chunks))).into_response()
        })
        .await;
        let servers = ready(&server, None).await;
        assert_eq!(state(&servers, "notes").rejected_tools.len(), 1);
        let before = memory_mb();
        let endless = servers.call(&find(&servers, "write"), arguments(json!({}))).await;
        assert_eq!(
            endless,
            Err(ExternalCallError::Unavailable("sent a message of more than 16 MiB".to_owned())),
            "{kind}"
        );
        assert!(memory_mb() < before + 300, "{before} MB before, {} MB after", memory_mb());
        until_ready(&servers, "notes").await;
        servers.stop().await;
    }
}

#[tokio::test]
async fn http_errors_of_a_call_are_distinguished() {
    let responses = [
        (StatusCode::INTERNAL_SERVER_ERROR, "", false),
        (StatusCode::TOO_MANY_REQUESTS, "", false),
        (StatusCode::UNAUTHORIZED, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"who?"}}"#, false),
        (StatusCode::BAD_REQUEST, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}"#, true),
        (StatusCode::OK, "{}", false),
    ];
    for (status, body, is_refusal) in responses {
        let server =
            server_with_call_response(move |_| (status, [("content-type", "application/json")], body).into_response())
                .await;
        let servers = ready(&server, None).await;
        let result = servers.call(&find(&servers, "write"), arguments(json!({}))).await;
        match &result {
            Err(ExternalCallError::Refused(why)) => assert!(is_refusal && why.contains("bad"), "{status}: {result:?}"),
            Err(ExternalCallError::Unavailable(_)) => assert!(!is_refusal, "{status}: {result:?}"),
            _ => panic!("{status}: {result:?}"),
        }
        assert_eq!(state(&servers, "notes").breaker.failure_count, u32::from(!is_refusal), "{status}");
        assert_eq!(state(&servers, "notes").phase, McpServerPhase::Ready, "the server still answers other requests");
        servers.stop().await;
    }
}
