//! One external server. A task connects to it, lists its tools, detects a lost connection and reconnects with an
//! increasing delay. The current state can be read at any time.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use background::backoff::BackoffPolicy;
use model::breaker::{Breaker, BreakerSnapshot};
use redact::{RedactOptions, Redactor};
use rmcp::model::ServerResult;
use serde::Serialize;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::connection::{McpConnection, McpPeer, RequestFailure};
use super::guard::{CONNECTION_CLOSED, EXITED};
use super::{DiscoveredTool, ExternalCallError, ExternalResult, McpServerSettings, ProtocolEra, RejectedTool, quote};
use crate::ToolArguments;

/// The delays between two connection attempts.
const RECONNECT_DELAYS: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));
/// A connection that lasted this long resets the delay.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// The default lifetime of a list of tools.
const DEFAULT_LIST_LIFETIME: Duration = Duration::from_secs(300);
/// The limits of the lifetime that a server may set.
const MIN_LIST_LIFETIME: Duration = Duration::from_secs(10);
const MAX_LIST_LIFETIME: Duration = Duration::from_secs(3600);
/// The timeout of a list after the start, and the delay after a failed list.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// A timeout of a call with less time than this says nothing about the server.
const MIN_FAIR_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum time between two lists, even if the server reports more changes.
const MIN_LIST_INTERVAL: Duration = Duration::from_secs(1);

/// An external server and its connection.
pub(super) struct ManagedServer {
    pub(super) name: Arc<str>,
    pub(super) settings: McpServerSettings,
    redactor: Redactor,
    /// Redacts only the secrets of the configuration.
    secret_redactor: Redactor,
    breaker: Arc<Breaker>,
    status: Mutex<ServerStatus>,
    /// Counts the changes of all servers.
    changes: watch::Sender<u64>,
    /// Stops the server.
    pub(super) stop: CancellationToken,
    /// Cancelled when the server has stopped and its connection is closed.
    ended: CancellationToken,
}

/// The mutable state of a server.
#[derive(Default)]
struct ServerStatus {
    phase: McpServerPhase,
    peer: Option<McpPeer>,
    /// Set once a connection attempt has failed or the server was stopped.
    has_failed: bool,
    era: Option<ProtocolEra>,
    protocol: Option<String>,
    implementation: Option<String>,
    tools: Arc<[DiscoveredTool]>,
    rejected_tools: Vec<RejectedTool>,
    last_error: Option<String>,
    /// `None` unless the server waits for its next connection attempt.
    next_attempt: Option<Instant>,
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum McpServerPhase {
    /// A connection is being opened.
    #[default]
    Starting,
    /// Connected, and the tools were listed.
    Ready,
    /// Not connected: waits for the next attempt, or was stopped.
    Down,
}

/// The current state of a server.
#[derive(Clone, Debug, Serialize)]
pub struct McpServerState {
    pub name: String,
    pub phase: McpServerPhase,
    pub era: Option<ProtocolEra>,
    /// The negotiated protocol version.
    pub protocol: Option<String>,
    /// The name and the version that the server reports.
    pub implementation: Option<String>,
    pub tools: usize,
    #[serde(rename = "left_out")]
    pub rejected_tools: Vec<RejectedTool>,
    /// The last error. It is kept after a successful reconnect.
    pub last_error: Option<String>,
    /// The seconds until the next connection attempt.
    pub next_try_in: Option<u64>,
    pub breaker: BreakerSnapshot,
}

/// The reason why a connection ended.
enum ConnectionEnd {
    Stopped,
    Lost(String),
}

impl ManagedServer {
    /// Creates a server. It is not connected until [`ManagedServer::run`] is polled. `changes` counts the changes of
    /// all servers.
    pub(super) fn new(settings: McpServerSettings, breaker: Arc<Breaker>, changes: watch::Sender<u64>) -> Arc<Self> {
        Arc::new(Self {
            name: settings.name.as_str().into(),
            redactor: settings.redactor(),
            secret_redactor: Redactor::new(RedactOptions { secrets: false, emails: false })
                .with_known(settings.secrets()),
            settings,
            breaker,
            status: Mutex::default(),
            changes,
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Keeps the server connected until it is stopped. Waits for the end of the predecessor first, so that both never
    /// run at the same time. Reconnects with an increasing delay, which a connection of [`STABLE_AFTER`] resets. While
    /// it is down, it has no tools. The era of the last connection is used again, unless an attempt with it failed. At
    /// the end, resets the status and cancels `ended`.
    pub(super) async fn run(self: Arc<Self>, predecessor: Option<Arc<Self>>) {
        if let Some(predecessor) = predecessor {
            predecessor.ended.cancelled().await;
        }
        let mut backoff = RECONNECT_DELAYS.start();
        while !self.stop.is_cancelled() {
            let era = self.status().era;
            let opened = McpConnection::open(&self.name, &self.settings, era, &self.stop).await;
            let error = match opened {
                Ok(connection) => {
                    let connected_at = Instant::now();
                    let era = connection.era;
                    let end = self.serve(&connection, era).await;
                    self.update(|status| {
                        (status.phase, status.peer, status.tools) = (McpServerPhase::Down, None, Arc::default());
                    });
                    let exit = connection.close().await;
                    if connected_at.elapsed() >= STABLE_AFTER {
                        backoff.reset();
                    }
                    match (end, exit) {
                        (ConnectionEnd::Stopped, _) => break,
                        (ConnectionEnd::Lost(why), Some(exit)) if why == EXITED || why == CONNECTION_CLOSED => exit,
                        (ConnectionEnd::Lost(why), _) => why,
                    }
                }
                Err(_) if self.stop.is_cancelled() => break,
                Err(error) => {
                    // The server may have been replaced by one of the other era.
                    self.status().era = None;
                    error
                }
            };
            self.wait_after_failure(&error, backoff.next_delay()).await;
        }
        self.update(|status| {
            *status = ServerStatus { phase: McpServerPhase::Down, has_failed: true, ..ServerStatus::default() }
        });
        self.ended.cancel();
    }

    /// Logs and records a failure, then waits until the next attempt or until the server is stopped. The wait is 75 to
    /// 125 % of `delay`. Sets the phase to `Down`, and after the wait to `Starting`.
    async fn wait_after_failure(&self, error: &str, delay: Duration) {
        let error = quote(&self.redactor, error);
        // The random part prevents servers that failed together from reconnecting at the same time.
        let wait = delay.mul_f64(0.75 + fastrand::f64() * 0.5);
        let next_attempt = Instant::now() + wait;
        let retry_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(event = "mcp_server_down", server = &*self.name, error, retry_ms);
        self.update(|status| {
            (status.phase, status.has_failed) = (McpServerPhase::Down, true);
            (status.last_error, status.next_attempt) = (Some(error), Some(next_attempt));
        });
        tokio::select! {
            () = sleep_until(next_attempt) => {
                self.update(|status| (status.phase, status.next_attempt) = (McpServerPhase::Starting, None));
            }
            () = self.stop.cancelled() => {}
        }
    }

    /// Uses a connection until it is lost or the server is stopped. Lists the tools again when they change or expire,
    /// but not more often than [`MIN_LIST_INTERVAL`]. The server is ready after the first list.
    ///
    /// The connection also ends if the first list fails. Later, a list that the server refuses is only logged. It ends
    /// after two lists in a row that time out, or one if the server may be down.
    async fn serve(&self, connection: &McpConnection, era: ProtocolEra) -> ConnectionEnd {
        let peer = &connection.peer;
        let signals = &peer.signals;
        let mut next_list = tokio::select! {
            () = self.stop.cancelled() => return ConnectionEnd::Stopped,
            listed = self.list(peer, Instant::now() + self.settings.start_timeout) => match listed {
                Ok(lifetime) => Instant::now() + lifetime,
                Err(RequestFailure::TimedOut) => return ConnectionEnd::Lost("did not list its tools in time".to_owned()),
                Err(RequestFailure::Refused(why) | RequestFailure::Lost(why)) => return ConnectionEnd::Lost(why),
            },
        };
        self.set_ready(peer, era);
        let mut subscription = std::pin::pin!(peer.subscribe_to_changes(era));
        let mut last_list = Instant::now().checked_sub(MIN_LIST_INTERVAL).unwrap_or_else(Instant::now);
        // True if the connection is closed unless the server answers the next list.
        let mut must_answer = false;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return ConnectionEnd::Stopped,
                () = signals.lost() => return ConnectionEnd::Lost(signals.reason().unwrap_or_default().to_owned()),
                _ = &mut subscription => {}
                () = signals.tools_changed.notified() => {}
                () = signals.check_needed.notified() => must_answer = true,
                () = sleep_until(next_list) => {}
            }
            let listed = async {
                sleep_until(last_list + MIN_LIST_INTERVAL).await;
                self.list(peer, Instant::now() + LIST_TIMEOUT.min(self.settings.start_timeout)).await
            };
            let listed = tokio::select! {
                () = self.stop.cancelled() => return ConnectionEnd::Stopped,
                () = signals.lost() => continue,
                listed = listed => listed,
            };
            last_list = Instant::now();
            next_list = last_list + LIST_TIMEOUT;
            match listed {
                Ok(lifetime) => (next_list, must_answer) = (last_list + lifetime, false),
                Err(RequestFailure::Lost(why)) => return ConnectionEnd::Lost(why),
                Err(RequestFailure::TimedOut) if must_answer => {
                    return ConnectionEnd::Lost("no longer answers".to_owned());
                }
                Err(RequestFailure::TimedOut) => must_answer = true,
                Err(RequestFailure::Refused(why)) => {
                    let error = quote(&self.redactor, &why);
                    tracing::warn!(event = "mcp_server_list_failed", server = &*self.name, error);
                }
            }
        }
    }

    /// Reads the tools of the server and stores them if they have changed. Rejected tools are then logged again.
    /// Returns the lifetime of the list. Fails if the tools cannot be read before the deadline. The known tools then
    /// remain.
    async fn list(&self, peer: &McpPeer, deadline: Instant) -> Result<Duration, RequestFailure> {
        let (listing, lifetime) = peer.list(&self.name, &self.settings, deadline).await?;
        let (tools, mut rejected_tools) = listing.into_sorted();
        for tool in &mut rejected_tools {
            tool.reason = quote(&self.redactor, &tool.reason);
        }
        let has_changed = {
            let status = self.status();
            status.tools != tools || status.rejected_tools != rejected_tools
        };
        if has_changed {
            for RejectedTool { name, reason } in &rejected_tools {
                tracing::warn!(event = "mcp_server_tool_left_out", server = &*self.name, tool = name, reason);
            }
            self.update(|status| (status.tools, status.rejected_tools) = (tools, rejected_tools));
        }
        Ok(list_lifetime(lifetime))
    }

    /// Logs and stores that calls can be sent over this connection, with its era, its protocol version and the
    /// implementation of the server. The tools must have been listed before.
    fn set_ready(&self, peer: &McpPeer, era: ProtocolEra) {
        let info = peer.server_info();
        let protocol = info.as_ref().map(|info| info.protocol_version.to_string());
        let server = info.and_then(|info| info.server_info.clone());
        let implementation = server.map(|server| quote(&self.redactor, &format!("{} {}", server.name, server.version)));
        let tools = self.status().tools.len();
        tracing::info!(event = "mcp_server_ready", server = &*self.name, protocol, implementation, tools);
        self.update(|status| {
            (status.phase, status.peer, status.era) = (McpServerPhase::Ready, Some(peer.clone()), Some(era));
            (status.protocol, status.implementation) = (protocol, implementation);
        });
    }

    /// Returns the tools of a ready server. Returns none otherwise.
    pub(super) fn tools(&self) -> Arc<[DiscoveredTool]> {
        let status = self.status();
        if status.phase == McpServerPhase::Ready { status.tools.clone() } else { Arc::default() }
    }

    /// Returns true if the server is ready or has failed once.
    pub(super) fn has_settled(&self) -> bool {
        let status = self.status();
        status.phase == McpServerPhase::Ready || status.has_failed
    }

    /// Returns true if the server is connected and its circuit breaker is not open.
    pub(super) fn is_ready(&self) -> bool {
        self.status().phase == McpServerPhase::Ready && !self.breaker.is_open()
    }

    /// Returns the current state, including that of the circuit breaker.
    pub(super) fn state(&self) -> McpServerState {
        let status = self.status();
        let next_try_in = status.next_attempt.map(|at| at.saturating_duration_since(Instant::now()).as_secs());
        McpServerState {
            name: self.settings.name.clone(),
            phase: status.phase,
            era: status.era,
            protocol: status.protocol.clone(),
            implementation: status.implementation.clone(),
            tools: status.tools.len(),
            rejected_tools: status.rejected_tools.clone(),
            last_error: status.last_error.clone(),
            next_try_in,
            breaker: self.breaker.snapshot(),
        }
    }

    /// Calls a tool once. `max_wait` is the maximum time that the caller waits. Secrets of the configuration are
    /// redacted in the result. Fails with `Unavailable` if the circuit breaker is open, the server is not connected or
    /// the connection is lost. Fails with `Refused` if the server no longer has the tool, rejects the call or sends an
    /// unexpected response, and with `TimedOut`.
    ///
    /// For the circuit breaker, a missing or lost connection and a call timeout are failures, and a `Refused` call that
    /// was sent is a success. A missing tool does not count. Neither does a call that `max_wait` ended, because that is
    /// the limit of the caller. A timeout or a lost connection requests a check, which ends the connection to a server
    /// that hangs. A timeout does not if `max_wait` is less than both [`MIN_FAIR_TIMEOUT`] and the call timeout.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: ToolArguments,
        max_wait: Duration,
        progress: Option<&UnboundedSender<String>>,
    ) -> Result<ExternalResult, ExternalCallError> {
        let Some(permit) = self.breaker.try_acquire() else {
            let why = "failed repeatedly and is not called for some time";
            return Err(ExternalCallError::Unavailable(why.to_owned()));
        };
        let (peer, has_tool) = {
            let status = self.status();
            (status.peer.clone(), status.tools.iter().any(|known| known.name == tool))
        };
        let Some(peer) = peer else {
            let why = match self.status().last_error.clone() {
                Some(error) => format!("is not connected ({error})"),
                None => "has not started yet".to_owned(),
            };
            permit.failed(&why);
            return Err(ExternalCallError::Unavailable(why));
        };
        if !has_tool {
            // The permit is released without a result, because no call was sent.
            return Err(ExternalCallError::Refused("no longer has this tool".to_owned()));
        }
        let report = |text: String| {
            if let Some(progress) = progress {
                let _ = progress.send(quote(&self.redactor, &text));
            }
        };
        let started = Instant::now();
        match peer.call(tool, arguments, self.settings.call_timeout, max_wait, &report).await {
            Ok(ServerResult::CallToolResult(result)) => {
                permit.succeeded();
                Ok(self.without_secrets(ExternalResult::new(result, self.settings.max_result_bytes)))
            }
            Ok(_) => {
                permit.succeeded();
                Err(ExternalCallError::Refused("sent an unexpected response".to_owned()))
            }
            Err(RequestFailure::Refused(why)) => {
                permit.succeeded();
                Err(ExternalCallError::Refused(quote(&self.redactor, &why)))
            }
            // The caller had too little time to judge the server.
            Err(RequestFailure::TimedOut) if max_wait < self.settings.call_timeout.min(MIN_FAIR_TIMEOUT) => {
                Err(ExternalCallError::TimedOut)
            }
            Err(RequestFailure::TimedOut) => {
                // Either the tool is slow or the server hangs. The limit of the caller says nothing about the server.
                peer.signals.check_needed.notify_one();
                if started.elapsed() < max_wait {
                    permit.failed(&ExternalCallError::TimedOut.to_string());
                }
                Err(ExternalCallError::TimedOut)
            }
            Err(RequestFailure::Lost(why)) => {
                peer.signals.check_needed.notify_one();
                let why = quote(&self.redactor, &why);
                permit.failed(&why);
                Err(ExternalCallError::Unavailable(why))
            }
        }
    }

    /// Redacts the secrets of the configuration in the text and the structured data. All other content of a result is
    /// passed on, also texts that look like secrets.
    fn without_secrets(&self, mut result: ExternalResult) -> ExternalResult {
        if let Cow::Owned(text) = self.secret_redactor.text(&result.text) {
            result.text = text;
        }
        if let Some(structured) = &mut result.structured {
            self.secret_redactor.json(structured);
        }
        result
    }

    /// Changes the status and reports the change.
    fn update(&self, change: impl FnOnce(&mut ServerStatus)) {
        change(&mut self.status());
        self.changes.send_modify(|count| *count += 1);
    }

    fn status(&self) -> MutexGuard<'_, ServerStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the lifetime of a list, within our limits. Zero means the default, like `None`.
fn list_lifetime(requested: Option<Duration>) -> Duration {
    match requested {
        None | Some(Duration::ZERO) => DEFAULT_LIST_LIFETIME,
        Some(requested) => requested.clamp(MIN_LIST_LIFETIME, MAX_LIST_LIFETIME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_a_list_is_limited() {
        let seconds = |requested: Option<u64>| list_lifetime(requested.map(Duration::from_secs)).as_secs();
        let lifetimes = [None, Some(0), Some(1), Some(60), Some(86_400)].map(seconds);
        assert_eq!(lifetimes, [300, 300, 10, 60, 3600]);
    }
}
