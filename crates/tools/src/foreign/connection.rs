//! One connection to a server: begun in the era that the server speaks, used for one request after the other, and
//! closed with everything that belongs to it.

use std::collections::HashSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use background::backoff::Doubling;
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

use super::guard::{Guarded, Signals};
use super::pipes::Pipes;
use super::process::Process;
use super::tool::{Listed, MOST_TOOLS};
use super::{Era, Settings, Transport, http, outside};
use crate::Arguments;

/// No call takes longer, whatever progress it makes.
const LONGEST_CALL: Duration = Duration::from_secs(600);
const MOST_PAGES: usize = 100;
/// The delays between two subscriptions to changes.
const SUBSCRIPTION_DELAYS: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(300));
/// How long closing may take before everything is dropped.
const CLOSING: Duration = Duration::from_secs(1);
const ASKS: &str = "asks for input that cannot be given here";

/// What we are to a server: somebody who can do nothing for it.
struct Host;

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("adjutant", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::invalid_request(ASKS, None))
    }
}

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server is not there any more.
    Lost(String),
    TimedOut,
    /// The server says no.
    Refused(String),
}

pub(super) struct Connection {
    service: RunningService<RoleClient, Host>,
    process: Option<Process>,
    pub(super) line: Line,
    pub(super) era: Era,
}

/// What is needed to ask something over a connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct Line {
    peer: Peer<RoleClient>,
    pub(super) signals: Arc<Signals>,
}

impl Connection {
    /// Finds out which era the server speaks, unless that is known.
    pub(super) async fn open(
        server: &Arc<str>,
        settings: &Settings,
        known: Option<Era>,
        stop: &CancellationToken,
    ) -> Result<Self, String> {
        let redactor = settings.redactor();
        let deadline = Instant::now() + settings.start_timeout;
        let era = settings.era.or(known);
        if let Transport::Http { url, headers } = &settings.transport {
            let signals = Arc::new(Signals::default());
            let transport = Guarded::new(http::transport(url, headers, &signals)?, signals.clone());
            return match begin(transport, mode(era, true), deadline, stop).await {
                Ok(service) => Ok(Self::new(service, None, signals)),
                Err(Fault::Gone(error) | Fault::Said(error)) => {
                    signals.lose(error);
                    Err(outside(&redactor, signals.reason().unwrap_or_default()))
                }
            };
        }
        // A server that does not know the newer era may leave, or answer later to what it has not understood: it
        // begins anew for the older one.
        let mut eras = match era {
            Some(era) => vec![era],
            None => vec![Era::Legacy, Era::Modern],
        };
        let mut fault = String::new();
        while let (false, Some(era)) = (stop.is_cancelled(), eras.pop()) {
            let signals = Arc::new(Signals::default());
            let (pipes, process) = Process::start(server, &settings.transport, &redactor, &signals)?;
            let pipes = Pipes::new(server.clone(), redactor.clone(), signals.clone(), pipes);
            let deadline = Instant::now() + settings.start_timeout;
            match begin(Guarded::new(pipes, signals.clone()), mode(Some(era), false), deadline, stop).await {
                Ok(service) => return Ok(Self::new(service, Some(process), signals)),
                Err(error) => {
                    let ended = process.end().await;
                    let own = signals.reason().filter(|reason| !matches!(*reason, "ended" | "closed the connection"));
                    fault = match (own, ended, error) {
                        (Some(own), ..) => own.to_owned(),
                        (None, Some(ended), Fault::Gone(_)) => ended,
                        (None, _, Fault::Gone(error) | Fault::Said(error)) => error,
                    };
                    if era == Era::Modern && !eras.is_empty() {
                        let fault = outside(&redactor, &fault);
                        tracing::debug!(
                            server = &**server,
                            fault,
                            "does not speak the newer protocol; trying the older"
                        );
                    }
                }
            }
        }
        Err(outside(&redactor, &fault))
    }

    fn new(service: RunningService<RoleClient, Host>, process: Option<Process>, signals: Arc<Signals>) -> Self {
        let line = Line { peer: service.peer().clone(), signals };
        let is_old = line.about().is_none_or(|about| about.protocol_version.has_initialize());
        Self { service, process, line, era: if is_old { Era::Legacy } else { Era::Modern } }
    }

    /// Closes it. Says how the child ended if it did so by itself.
    pub(super) async fn close(mut self) -> Option<String> {
        self.line.signals.lose("was closed");
        let _ = self.service.close_with_timeout(CLOSING).await;
        drop(self.service);
        match self.process {
            Some(process) => process.end().await,
            None => None,
        }
    }
}

/// Why a connection could not be begun.
enum Fault {
    /// Nobody is there; how a child ended says more.
    Gone(String),
    Said(String),
}

fn mode(era: Option<Era>, both: bool) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Some(Era::Legacy) => ClientLifecycleMode::Initialize,
        None if both => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        _ => ClientLifecycleMode::Discover { preferred_versions },
    }
}

async fn begin<T, E, A>(
    transport: T,
    mode: ClientLifecycleMode,
    deadline: Instant,
    stop: &CancellationToken,
) -> Result<RunningService<RoleClient, Host>, Fault>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    let begun = tokio::select! {
        begun = timeout_at(deadline, serve_client_with_lifecycle(Host, transport, mode)) => begun,
        () = stop.cancelled() => return Err(Fault::Said("was stopped".to_owned())),
    };
    match begun {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(fault(&error)),
        Err(_) => Err(Fault::Said("did not answer in the time it has to start".to_owned())),
    }
}

fn fault(error: &ClientInitializeError) -> Fault {
    Fault::Said(match error {
        ClientInitializeError::ConnectionClosed(_) => {
            return Fault::Gone("closed the connection while it was begun".to_owned());
        }
        ClientInitializeError::TransportError { error, .. } => return Fault::Gone(cause(&*error.error)),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => return fault(fallback),
        ClientInitializeError::JsonRpcError(error) => format!("refused to begin: {}", error.message),
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            "answered with something else than was asked for".to_owned()
        }
        other => format!("could not be begun with: {other}"),
    })
}

/// What is at the bottom of an error of the connection.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    let what = loop {
        last = match last.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(error)) => error,
            Some(StreamableHttpError::UnexpectedServerResponse(what)) => break what.to_string(),
            _ => match last.source() {
                Some(source) => source,
                None => break last.to_string(),
            },
        };
    };
    format!("cannot be reached ({what})")
}

impl Line {
    pub(super) fn about(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// All tools, and for how long the list holds if the server says so.
    pub(super) async fn list(
        &self,
        server: &Arc<str>,
        settings: &Settings,
        deadline: Instant,
    ) -> Result<(Listed, Option<Duration>), Failure> {
        let mut listed = Listed::default();
        let mut cursors = HashSet::new();
        let mut holds = None;
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let left = deadline.saturating_duration_since(Instant::now());
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.ask(request, left, left).await {
                Ok(ServerResult::ListToolsResult(page)) => page,
                Ok(_) => return Err(Failure::Refused("answered something else than a list of tools".to_owned())),
                Err(Failure::Refused(_)) if !self.has_tools() => ListToolsResult::default(),
                Err(failure) => return Err(failure),
            };
            holds = page.ttl_ms.map(Duration::from_millis).or(holds);
            for tool in page.tools {
                if listed.is_full() {
                    listed.leave_out(&tool.name, format!("comes after the first {MOST_TOOLS}; so do all that follow"));
                    return Ok((listed, holds));
                }
                listed.add(settings, server, tool);
            }
            let Some(next) = page.next_cursor else { return Ok((listed, holds)) };
            if !cursors.insert(next.clone()) {
                listed.leave_out("", "the server's list goes round in circles");
                return Ok((listed, holds));
            }
            cursor = Some(next);
        }
        listed.leave_out("", format!("the server's list has more than {MOST_PAGES} pages"));
        Ok((listed, holds))
    }

    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        idle: Duration,
        most: Duration,
    ) -> Result<ServerResult, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        match self.ask(request, idle.min(most), LONGEST_CALL.min(most)).await? {
            ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_) => {
                Err(Failure::Refused(ASKS.to_owned()))
            }
            result => Ok(result),
        }
    }

    /// Hears of changes for as long as it is polled. Only the newer era has to ask for them.
    pub(super) async fn listen(&self, era: Era) -> ! {
        let tells = self.about().and_then(|about| about.capabilities.tools.as_ref()?.list_changed) == Some(true);
        let mut backoff = SUBSCRIPTION_DELAYS.start();
        if era == Era::Legacy || !tells {
            std::future::pending::<()>().await;
        }
        loop {
            let wanted = SubscriptionFilter::builder().tools_list_changed().build();
            if let Ok(Ok(mut subscription)) = timeout(Duration::from_secs(30), self.peer.listen(wanted)).await {
                let since = Instant::now();
                while let Ok(Some(_)) = subscription.next().await {}
                // What changed between two subscriptions was not heard of.
                self.signals.changed.notify_one();
                if since.elapsed() > Duration::from_secs(60) {
                    backoff.reset();
                }
            }
            sleep(backoff.next_delay()).await;
        }
    }

    fn has_tools(&self) -> bool {
        self.about().is_some_and(|about| about.capabilities.tools.is_some())
    }

    /// One request. Who stops waiting for it has it cancelled at the server.
    async fn ask(&self, request: ClientRequest, idle: Duration, most: Duration) -> Result<ServerResult, Failure> {
        let lost = || Failure::Lost(self.signals.reason().unwrap_or("closed the connection").to_owned());
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let sent = tokio::select! {
            sent = sent => sent.map_err(|_| lost())?,
            () = self.signals.lost() => return Err(lost()),
        };
        let progress = self.signals.progress(sent.progress_token.clone());
        let mut pending = Pending(Some(sent));
        let last = Instant::now() + most;
        let mut until = (Instant::now() + idle).min(last);
        loop {
            tokio::select! {
                biased;
                answer = pending.answer() => return match answer {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(ServiceError::McpError(error))) if !is_ours(&error) => {
                        Err(Failure::Refused(format!("refused the request: {}", error.message)))
                    }
                    Ok(Err(ServiceError::TransportSend(error))) => Err(Failure::Lost(cause(&*error.error))),
                    Ok(Err(_)) | Err(()) => Err(lost()),
                },
                () = self.signals.lost() => {
                    pending.forget();
                    return Err(lost());
                }
                () = progress.told.notified() => until = (Instant::now() + idle).min(last),
                () = sleep_until(until) => return Err(Failure::TimedOut),
            }
        }
    }
}

/// rmcp reports so what was under way when it had to begin a new session.
fn is_ours(error: &ErrorData) -> bool {
    error.message == "streamable HTTP session was re-initialized before the response arrived"
}

/// A request without an answer.
struct Pending(Option<RequestHandle<RoleClient>>);

impl Pending {
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

impl Drop for Pending {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(timeout(CLOSING, handle.cancel(Some("nobody waits for it any more".to_owned()))));
        }
    }
}
