//! One connection to a server. It is opened in the protocol era of the server, used for requests, and closed together
//! with the child process.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use background::backoff::BackoffPolicy;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ElicitRequestParams,
    ElicitResult, ErrorData, Implementation, ListToolsRequest, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestContext, RequestHandle, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::IntoTransport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::{ClientHandler, Peer, RoleClient};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::guard::{CONNECTION_CLOSED, ConnectionSignals, EXITED, GuardedTransport};
use super::listing::{MAX_TOOLS, ToolListing};
use super::process::ServerProcess;
use super::stdio::StdioTransport;
use super::{McpServerSettings, McpTransport, ProtocolEra, http, quote};
use crate::ToolArguments;

/// The maximum duration of a call, even if it reports progress.
const MAX_CALL_DURATION: Duration = Duration::from_secs(600);
/// The time between two reports of a running call.
const REPORT_INTERVAL: Duration = Duration::from_secs(3);
/// The maximum number of pages of a list of tools.
const MAX_PAGES: usize = 100;
/// The delays between two subscriptions to tool changes.
const SUBSCRIPTION_DELAYS: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(300));
/// The timeout for closing a connection, and for cancelling a request.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const INPUT_REQUIRED: &str = "requires user input, which this client does not support";

/// Our side of the connection. It offers no capabilities to the server.
struct ClientIdentity;

impl ClientHandler for ClientIdentity {
    fn get_info(&self) -> ClientConfig {
        let implementation = Implementation::new("adjutant", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), implementation)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::invalid_request(INPUT_REQUIRED, None))
    }
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(super) enum RequestFailure {
    /// The connection is lost.
    Lost(String),
    TimedOut,
    /// The server rejected the request.
    Refused(String),
}

/// An open connection to a server.
pub(super) struct McpConnection {
    service: RunningService<RoleClient, ClientIdentity>,
    process: Option<ServerProcess>,
    pub(super) peer: McpPeer,
    pub(super) era: ProtocolEra,
}

/// Sends requests over a connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct McpPeer {
    peer: Peer<RoleClient>,
    pub(super) signals: Arc<ConnectionSignals>,
}

impl McpConnection {
    /// Opens a connection. The era comes from the settings, else from `known_era`. An unknown era is detected. Over
    /// HTTP, this happens on one connection. A child is started for the newer era and, if that fails, again for the
    /// older one, each with the full start timeout.
    ///
    /// Fails with a redacted message if the URL or a header is invalid, or if the child cannot be started or exits.
    /// Also fails if the server rejects the handshake or does not answer in time, or if `stop` is cancelled.
    pub(super) async fn open(
        server: &Arc<str>,
        settings: &McpServerSettings,
        known_era: Option<ProtocolEra>,
        stop: &CancellationToken,
    ) -> Result<Self, String> {
        let redactor = settings.redactor();
        let deadline = Instant::now() + settings.start_timeout;
        let era = settings.era.or(known_era);
        if let McpTransport::Http { url, headers } = &settings.transport {
            let signals = Arc::new(ConnectionSignals::default());
            let transport = GuardedTransport::new(http::transport(url, headers, &signals)?, signals.clone());
            return match connect(transport, mode(era, true), deadline, stop).await {
                Ok(service) => Ok(Self::new(service, None, signals)),
                Err(OpenError::Lost(error) | OpenError::Rejected(error)) => {
                    signals.close_with_reason(error);
                    Err(quote(&redactor, signals.reason().unwrap_or_default()))
                }
            };
        }
        // A server that does not support the newer era may exit, or send a late answer to the unknown request. It is
        // therefore restarted for the older era.
        let mut eras = match era {
            Some(era) => vec![era],
            None => vec![ProtocolEra::Legacy, ProtocolEra::Modern],
        };
        let mut last_error = String::new();
        while let (false, Some(era)) = (stop.is_cancelled(), eras.pop()) {
            let signals = Arc::new(ConnectionSignals::default());
            let (pipes, process) = ServerProcess::start(server, &settings.transport, &redactor, &signals)?;
            let transport = StdioTransport::new(server.clone(), redactor.clone(), signals.clone(), pipes);
            let deadline = Instant::now() + settings.start_timeout;
            match connect(GuardedTransport::new(transport, signals.clone()), mode(Some(era), false), deadline, stop)
                .await
            {
                Ok(service) => return Ok(Self::new(service, Some(process), signals)),
                Err(error) => {
                    let exit = process.end().await;
                    let specific = signals.reason().filter(|reason| !matches!(*reason, EXITED | CONNECTION_CLOSED));
                    last_error = match (specific, exit, error) {
                        (Some(reason), ..) => reason.to_owned(),
                        (None, Some(exit), OpenError::Lost(_)) => exit,
                        (None, _, OpenError::Lost(error) | OpenError::Rejected(error)) => error,
                    };
                    if era == ProtocolEra::Modern && !eras.is_empty() {
                        let error = quote(&redactor, &last_error);
                        tracing::debug!(
                            server = &**server,
                            fault = error,
                            "the server does not support the newer protocol; trying the older one"
                        );
                    }
                }
            }
        }
        Err(quote(&redactor, &last_error))
    }

    /// Wraps an established connection. The era follows from the negotiated version, and is the older one if that is
    /// unknown.
    fn new(
        service: RunningService<RoleClient, ClientIdentity>,
        process: Option<ServerProcess>,
        signals: Arc<ConnectionSignals>,
    ) -> Self {
        let peer = McpPeer { peer: service.peer().clone(), signals };
        let is_legacy = peer.server_info().is_none_or(|about| about.protocol_version.has_initialize());
        Self { service, process, peer, era: if is_legacy { ProtocolEra::Legacy } else { ProtocolEra::Modern } }
    }

    /// Closes the connection and ends the child. Waits at most [`CLOSE_TIMEOUT`] for the connection. Returns a
    /// description of the exit if the child exited without a signal from us, and `None` over HTTP.
    pub(super) async fn close(mut self) -> Option<String> {
        self.peer.signals.close_with_reason("was closed");
        let _ = self.service.close_with_timeout(CLOSE_TIMEOUT).await;
        drop(self.service);
        match self.process {
            Some(process) => process.end().await,
            None => None,
        }
    }
}

/// The reason why a connection could not be opened.
enum OpenError {
    /// The server closed the connection or cannot be reached. The exit status of a child is more specific.
    Lost(String),
    /// The server rejected the connection or did not answer.
    Rejected(String),
}

/// Returns the handshake for an era. With `can_fall_back`, an unknown era is detected on one connection. Without it, an
/// unknown era is treated as the newer one.
fn mode(era: Option<ProtocolEra>, can_fall_back: bool) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Some(ProtocolEra::Legacy) => ClientLifecycleMode::Initialize,
        None if can_fall_back => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        _ => ClientLifecycleMode::Discover { preferred_versions },
    }
}

/// Establishes a connection with the given handshake. Fails with `Rejected` if the server rejects it, the deadline
/// passes or `stop` is cancelled. Fails with `Lost` if the server closes the connection or cannot be reached.
async fn connect<T, E, A>(
    transport: T,
    mode: ClientLifecycleMode,
    deadline: Instant,
    stop: &CancellationToken,
) -> Result<RunningService<RoleClient, ClientIdentity>, OpenError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let connected = tokio::select! {
        connected = timeout_at(deadline, serve_client_with_lifecycle(ClientIdentity, transport, mode)) => connected,
        () = stop.cancelled() => return Err(OpenError::Rejected("was stopped".to_owned())),
    };
    match connected {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(open_error(&error)),
        Err(_) => Err(OpenError::Rejected("did not answer within the start timeout".to_owned())),
    }
}

/// Converts the failure of a handshake. A closed connection and an error of the transport become `Lost`, any other
/// failure `Rejected`. After a fallback to the older era, the failure of that counts.
fn open_error(error: &ClientInitializeError) -> OpenError {
    OpenError::Rejected(match error {
        ClientInitializeError::ConnectionClosed(_) => {
            return OpenError::Lost("closed the connection during the handshake".to_owned());
        }
        ClientInitializeError::TransportError { error, .. } => return OpenError::Lost(root_cause(&*error.error)),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return open_error(fallback),
        ClientInitializeError::JsonRpcError(error) => format!("rejected the handshake: {}", error.message),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "sent an unexpected response to the handshake".to_owned()
        }
        other => format!("failed the handshake: {other}"),
    })
}

/// Returns the message of the innermost cause of a transport error: "cannot be reached (…)". An unexpected response of
/// an HTTP server counts as the innermost cause.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    let message = loop {
        last = match last.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(error)) => error,
            Some(StreamableHttpError::UnexpectedServerResponse(message)) => break message.to_string(),
            _ => match last.source() {
                Some(source) => source,
                None => break last.to_string(),
            },
        };
    };
    format!("cannot be reached ({message})")
}

impl McpPeer {
    /// Returns the information that the server sent in the handshake.
    pub(super) fn server_info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Returns all tools, and the last lifetime that the server sent, if any. A list with more than [`MAX_TOOLS`]
    /// tools, more than [`MAX_PAGES`] pages or repeating pages ends early with a rejected entry. If a server without
    /// the capability for tools refuses the request, the list is empty. Fails if the connection is lost, the server
    /// refuses the request or sends an unexpected response, or the deadline passes.
    pub(super) async fn list(
        &self,
        server: &Arc<str>,
        settings: &McpServerSettings,
        deadline: Instant,
    ) -> Result<(ToolListing, Option<Duration>), RequestFailure> {
        let mut listing = ToolListing::default();
        let mut cursors = HashSet::new();
        let mut lifetime = None;
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.request(request, remaining, remaining, &|_| ()).await {
                Ok(ServerResult::ListToolsResult(page)) => page,
                Ok(_) => {
                    return Err(RequestFailure::Refused("sent an unexpected response to the list of tools".to_owned()));
                }
                Err(RequestFailure::Refused(_)) if !self.has_tools() => ListToolsResult::default(),
                Err(failure) => return Err(failure),
            };
            lifetime = page.ttl_ms.map(Duration::from_millis).or(lifetime);
            for tool in page.tools {
                if listing.is_full() {
                    let reason =
                        format!("the server has more than {MAX_TOOLS} tools; this one and all after it are ignored");
                    listing.reject(&tool.name, reason);
                    return Ok((listing, lifetime));
                }
                listing.add(settings, server, tool);
            }
            let Some(next) = page.next_cursor else { return Ok((listing, lifetime)) };
            if !cursors.insert(next.clone()) {
                listing.reject("", "the pages of the tool list repeat");
                return Ok((listing, lifetime));
            }
            cursor = Some(next);
        }
        listing.reject("", format!("the tool list has more than {MAX_PAGES} pages"));
        Ok((listing, lifetime))
    }

    /// Calls a tool. `idle_timeout` is the time without progress, `max_wait` the total time, limited to
    /// [`MAX_CALL_DURATION`]. `report` gets the progress. Fails as [`Self::request`] does. Also fails with `Refused` if the server requires user
    /// input or answers with a task.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: ToolArguments,
        idle_timeout: Duration,
        max_wait: Duration,
        report: &(dyn Fn(String) + Sync),
    ) -> Result<ServerResult, RequestFailure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.request(request, idle_timeout.min(max_wait), MAX_CALL_DURATION.min(max_wait), report).await? {
            ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_) => {
                Err(RequestFailure::Refused(INPUT_REQUIRED.to_owned()))
            }
            result => Ok(result),
        }
    }

    /// Keeps a subscription to tool changes open while it is polled. When it ends, requests a new list and subscribes
    /// again with an increasing delay. Failures are not reported. Only waits if the server sends no changes, or is of
    /// the older era, in which changes need no subscription.
    pub(super) async fn subscribe_to_changes(&self, era: ProtocolEra) -> ! {
        let sends_changes =
            self.server_info().and_then(|about| about.capabilities.tools.as_ref()?.list_changed) == Some(true);
        let mut backoff = SUBSCRIPTION_DELAYS.start();
        if era == ProtocolEra::Legacy || !sends_changes {
            std::future::pending::<()>().await;
        }
        loop {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            if let Ok(Ok(mut subscription)) = timeout(Duration::from_secs(30), self.peer.listen(filter)).await {
                let since = Instant::now();
                while let Ok(Some(_)) = subscription.next().await {}
                // Changes between two subscriptions are not reported, so the tools are listed again.
                self.signals.tools_changed.notify_one();
                if since.elapsed() > Duration::from_secs(60) {
                    backoff.reset();
                }
            }
            sleep(backoff.next_delay()).await;
        }
    }

    fn has_tools(&self) -> bool {
        self.server_info().is_some_and(|about| about.capabilities.tools.is_some())
    }

    /// Sends a request and waits for the result. Fails with `Lost` if the connection is lost or rmcp opens a new
    /// session. Fails with `Refused` if the server answers with an error. Fails with `TimedOut` if neither a result nor
    /// progress arrives within `idle_timeout`, or no result within `max_wait`. A timeout, or dropping the future,
    /// cancels the request at the server. `report` gets the progress as text, at most once in [`REPORT_INTERVAL`].
    async fn request(
        &self,
        request: ClientRequest,
        idle_timeout: Duration,
        max_wait: Duration,
        report: &(dyn Fn(String) + Sync),
    ) -> Result<ServerResult, RequestFailure> {
        let lost = || RequestFailure::Lost(self.signals.reason().unwrap_or(CONNECTION_CLOSED).to_owned());
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let sent = tokio::select! {
            sent = sent => sent.map_err(|_| lost())?,
            () = self.signals.lost() => return Err(lost()),
        };
        let progress = self.signals.progress(sent.progress_token.clone());
        let mut pending = PendingRequest(Some(sent));
        let deadline = Instant::now() + max_wait;
        let mut idle_deadline = (Instant::now() + idle_timeout).min(deadline);
        let started = Instant::now();
        let mut next_report = started + REPORT_INTERVAL;
        loop {
            tokio::select! {
                biased;
                answer = pending.answer() => return match answer {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(ServiceError::McpError(error))) if !is_session_restart(&error) => {
                        Err(RequestFailure::Refused(format!("rejected the request: {}", error.message)))
                    }
                    Ok(Err(ServiceError::TransportSend(error))) => Err(RequestFailure::Lost(root_cause(&*error.error))),
                    Ok(Err(_)) | Err(()) => Err(lost()),
                },
                () = self.signals.lost() => {
                    pending.forget();
                    return Err(lost());
                }
                () = progress.changed() => idle_deadline = (Instant::now() + idle_timeout).min(deadline),
                () = sleep_until(next_report) => {
                    let seconds = started.elapsed().as_secs();
                    let words = progress.words().map(|words| format!(", {words}")).unwrap_or_default();
                    report(format!("still running after {seconds} s{words}"));
                    next_report = Instant::now() + REPORT_INTERVAL;
                }
                () = sleep_until(idle_deadline) => return Err(RequestFailure::TimedOut),
            }
        }
    }
}

/// Returns true for the error with which rmcp ends pending requests when it opens a new session.
fn is_session_restart(error: &ErrorData) -> bool {
    error.message == "streamable HTTP session was re-initialized before the response arrived"
}

/// A request without a response. Dropping it cancels the request at the server.
struct PendingRequest(Option<RequestHandle<RoleClient>>);

impl PendingRequest {
    /// Waits for the response. Fails with `()` if the connection has ended without one.
    async fn answer(&mut self) -> Result<Result<ServerResult, ServiceError>, ()> {
        let Some(handle) = &mut self.0 else { return Err(()) };
        let answer = (&mut handle.rx).await.map_err(drop);
        self.0 = None;
        answer
    }

    fn forget(&mut self) {
        self.0 = None;
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(timeout(CLOSE_TIMEOUT, handle.cancel(Some("the caller stopped waiting".to_owned()))));
        }
    }
}
