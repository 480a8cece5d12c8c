//! Servers over HTTP: rmcp's own in both eras, and some that only pretend to be one.

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
use tools::foreign::{CallError, Era, Phase, Servers, Settings, Transport};

use crate::{arguments, find, memory, names, start, state, until, until_ready};

const TOKEN: &str = "Bearer tok-4f9a8b7c6d5e";

#[derive(Clone, Default)]
struct Notebook {
    has_grown: Arc<AtomicBool>,
    grown: Arc<Notify>,
    given_up: Arc<AtomicBool>,
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
                self.given_up.store(true, Ordering::SeqCst);
                "nobody listens".to_owned()
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// A server, and what it was sent.
struct Place {
    address: SocketAddr,
    /// Its own, so that nothing is left of it when it goes.
    runtime: Option<Runtime>,
    authorizations: Arc<Mutex<Vec<Option<String>>>>,
}

impl Place {
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

    async fn odd<F: Future<Output = Response> + Send + 'static>(
        answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::open(Router::new().route("/mcp", any(answer)), None).await
    }

    fn settings(&self, era: Option<Era>) -> Settings {
        let url = format!("http://{}/mcp", self.address);
        let headers = vec![("Authorization".to_owned(), TOKEN.into())];
        let mut settings = Settings::new("notes", Transport::Http { url, headers });
        (settings.era, settings.start_timeout) = (era, Duration::from_secs(20));
        settings
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

async fn ready(place: &Place, era: Option<Era>) -> Servers {
    let servers = start([place.settings(era)]);
    servers.settled(Duration::from_secs(20)).await;
    assert_eq!(state(&servers, "notes").phase, Phase::Ready, "{:?}", state(&servers, "notes"));
    servers
}

#[tokio::test]
async fn both_eras_are_spoken_and_every_request_is_authorized() {
    for (era, spoken) in [(None, Era::Modern), (Some(Era::Legacy), Era::Legacy)] {
        let place = Place::notebook(&Notebook::default(), None).await;
        let servers = ready(&place, era).await;
        let state = state(&servers, "notes");
        assert_eq!((state.era, state.implementation.as_deref()), (Some(spoken), Some("notebook 3")));
        let called = servers.call(&find(&servers, "write"), arguments(json!({"a": 1}))).await.unwrap();
        assert_eq!(called.text, r#"{"a":1}"#);
        servers.stop().await;
        let seen = place.authorizations.lock().unwrap();
        assert!(seen.len() >= 3 && seen.iter().all(|given| given.as_deref() == Some(TOKEN)), "{seen:?}");
    }
}

#[tokio::test]
async fn changes_and_cancellation_reach_the_other_side() {
    for era in [Era::Modern, Era::Legacy] {
        let notebook = Notebook::default();
        let place = Place::notebook(&notebook, None).await;
        let servers = ready(&place, Some(era)).await;
        // A subscription takes a moment.
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.call(&find(&servers, "grow"), arguments(json!({}))).await.unwrap();
        until("it has grown", || names(&servers).contains(&"grown".to_owned())).await;
        let wait = find(&servers, "wait");
        let call = servers.call(&wait, arguments(json!({})));
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
        until("it is cancelled there", || notebook.given_up.load(Ordering::SeqCst)).await;
        servers.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_goes_away_is_noticed_and_found_again() {
    for era in [Era::Modern, Era::Legacy] {
        let place = Place::notebook(&Notebook::default(), None).await;
        let address = place.address;
        let servers = ready(&place, Some(era)).await;
        let write = find(&servers, "write");
        drop(place);
        // Nobody has to call to find out: a stream was open.
        until("it is missed", || servers.tools().is_empty()).await;
        let lost = servers.call(&write, arguments(json!({}))).await;
        assert!(matches!(lost, Err(CallError::Unavailable(_))), "{lost:?}");
        let place = Place::notebook(&Notebook::default(), Some(address)).await;
        until_ready(&servers, "notes").await;
        let called = servers.call(&write, arguments(json!({"b": 2}))).await;
        assert_eq!(called.map(|called| called.text), Ok(r#"{"b":2}"#.to_owned()), "{era:?}");
        servers.stop().await;
        drop(place);
    }
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_begun_anew() {
    let notebook = Notebook::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let kept = sessions.clone();
    let made = notebook.clone();
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(made.clone()), sessions, config);
    let place = Place::open(Router::new().nest_service("/mcp", service), None).await;
    let servers = ready(&place, Some(Era::Legacy)).await;
    kept.sessions.write().await.clear();
    let called = servers.call(&find(&servers, "write"), arguments(json!({"c": 3}))).await;
    assert_eq!(called.map(|called| called.text), Ok(r#"{"c":3}"#.to_owned()));
    assert_eq!(state(&servers, "notes").breaker.failure_count, 0);
    servers.stop().await;
}

#[tokio::test]
async fn nobody_at_the_address_is_a_clear_error() {
    let place = Place::notebook(&Notebook::default(), None).await;
    let mut settings = place.settings(None);
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nowhere}/mcp?api_key=tok-4f9a8b7c6d5e");
    settings.transport = Transport::Http { url, headers: Vec::new() };
    let servers = start([settings]);
    servers.settled(Duration::from_secs(20)).await;
    let error = state(&servers, "notes").last_error.unwrap();
    assert!(error.contains("refused") && !error.contains("4f9a"), "{error}");
    servers.stop().await;
}

#[tokio::test]
async fn headers_do_not_follow_to_another_place() {
    let other = Place::notebook(&Notebook::default(), None).await;
    let target = format!("http://{}/mcp", other.address);
    for status in [StatusCode::TEMPORARY_REDIRECT, StatusCode::FOUND] {
        let target = target.clone();
        let place = Place::odd(move |_| {
            let answer = (status, [("location", target.clone())]).into_response();
            async { answer }
        })
        .await;
        let servers = start([place.settings(None)]);
        servers.settled(Duration::from_secs(20)).await;
        assert_eq!(state(&servers, "notes").phase, Phase::Down);
        servers.stop().await;
    }
    assert!(other.authorizations.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_to_the_same_place_is_followed() {
    let notebook = Notebook::default();
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(move || Ok(notebook.clone()), sessions, StreamableHttpServerConfig::default());
    let moved = || async { (StatusCode::PERMANENT_REDIRECT, [("location", "/there")]) };
    let place = Place::open(Router::new().nest_service("/there", service).route("/mcp", any(moved)), None).await;
    let servers = ready(&place, None).await;
    assert!(servers.call(&find(&servers, "write"), arguments(json!({}))).await.is_ok());
    servers.stop().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let place = Place::odd(|_| std::future::pending()).await;
    let mut settings = place.settings(None);
    settings.start_timeout = Duration::from_secs(1);
    let servers = start([settings]);
    let began = Instant::now();
    servers.settled(Duration::from_secs(20)).await;
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(state(&servers, "notes").last_error.as_deref(), Some("did not answer in the time it has to start"));
    servers.stop().await;
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn what_a_page_says_is_not_repeated() {
    for status in [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::BAD_GATEWAY, StatusCode::OK] {
        let place = Place::odd(move |request: Request| async move {
            let given = request.headers()["authorization"].to_str().unwrap().to_owned();
            (status, [("content-type", "text/html")], format!("<html>you sent {given}")).into_response()
        })
        .await;
        let servers = start([place.settings(None)]);
        servers.settled(Duration::from_secs(20)).await;
        let error = state(&servers, "notes").last_error.unwrap();
        let wanted = if status == StatusCode::OK { "content type" } else { status.as_str() };
        assert!(error.contains(wanted) && !error.contains("4f9a"), "{error}");
        servers.stop().await;
    }
}

/// Answers like a server of the newer era, but with this to every call.
async fn answering(call: impl Fn(&Value) -> Response + Clone + Send + Sync + 'static) -> Place {
    Place::odd(move |request: Request| {
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
async fn an_answer_without_end_costs_the_connection_and_nothing_else() {
    for kind in ["application/json", "text/event-stream"] {
        let place = answering(move |_| {
            let start = if kind == "application/json" { "{\"a\":\"" } else { "data: " };
            let chunks = futures::stream::repeat("x".repeat(1 << 20)).map(Ok::<_, std::io::Error>);
            let start = futures::stream::iter([Ok(start.to_owned())]);
            let mut headers = HeaderMap::new();
            headers.insert("content-type", kind.parse().unwrap());
            (headers, Body::from_stream(start.chain(chunks))).into_response()
        })
        .await;
        let servers = ready(&place, None).await;
        assert_eq!(state(&servers, "notes").left_out.len(), 1);
        let before = memory();
        let endless = servers.call(&find(&servers, "write"), arguments(json!({}))).await;
        assert_eq!(endless, Err(CallError::Unavailable("sent a message of more than 16 MiB".to_owned())), "{kind}");
        assert!(memory() < before + 300, "{before} MB before, {} MB after", memory());
        until_ready(&servers, "notes").await;
        servers.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_fails_at_the_door_is_told_apart() {
    let faults = [
        (StatusCode::INTERNAL_SERVER_ERROR, "", false),
        (StatusCode::TOO_MANY_REQUESTS, "", false),
        (StatusCode::UNAUTHORIZED, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"who?"}}"#, false),
        (StatusCode::BAD_REQUEST, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}"#, true),
        (StatusCode::OK, "{}", false),
    ];
    for (status, body, is_refusal) in faults {
        let place = answering(move |_| (status, [("content-type", "application/json")], body).into_response()).await;
        let servers = ready(&place, None).await;
        let called = servers.call(&find(&servers, "write"), arguments(json!({}))).await;
        match &called {
            Err(CallError::Refused(why)) => assert!(is_refusal && why.contains("bad"), "{status}: {called:?}"),
            Err(CallError::Unavailable(_)) => assert!(!is_refusal, "{status}: {called:?}"),
            _ => panic!("{status}: {called:?}"),
        }
        assert_eq!(state(&servers, "notes").breaker.failure_count, u32::from(!is_refusal), "{status}");
        assert_eq!(state(&servers, "notes").phase, Phase::Ready, "it still answers otherwise");
        servers.stop().await;
    }
}
