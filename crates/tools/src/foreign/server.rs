//! One server, kept connected: a task starts it, learns its tools, notices when it is gone and starts it again, each time
//! a little later. What it knows at the moment is there for everybody to read.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use background::backoff::Doubling;
use model::breaker::{Breaker, Snapshot};
use redact::{Redactor, What};
use rmcp::model::ServerResult;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Failure, Line};
use super::{CallError, Called, Era, Found, LeftOut, Settings, outside};
use crate::Arguments;

/// Between two attempts: doubled each time, anew after it was up for a while.
const DELAYS: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(60));
const LONG_ENOUGH: Duration = Duration::from_secs(60);
/// How long a list of tools holds, and what a server may say about that.
const LIST_HOLDS: Duration = Duration::from_secs(300);
const LIST_HOLDS_LEAST: Duration = Duration::from_secs(10);
const LIST_HOLDS_MOST: Duration = Duration::from_secs(3600);
/// How long a list may take once the server has started, and how soon a failed one is tried again.
const LIST_PATIENCE: Duration = Duration::from_secs(30);
/// A call that is given less time than this says nothing about the server.
const FAIR: Duration = Duration::from_secs(5);
/// Between two lists, however often the server says that its tools have changed.
const LIST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Server {
    pub(super) name: Arc<str>,
    pub(super) settings: Settings,
    redactor: Redactor,
    /// Takes out only what the server was entrusted with.
    entrusted: Redactor,
    breaker: Arc<Breaker>,
    state: Mutex<State>,
    /// Counts the changes of all servers.
    changes: watch::Sender<u64>,
    pub(super) stop: CancellationToken,
    ended: CancellationToken,
}

#[derive(Default)]
struct State {
    phase: Phase,
    line: Option<Line>,
    has_failed: bool,
    era: Option<Era>,
    protocol: Option<String>,
    implementation: Option<String>,
    tools: Arc<[Found]>,
    left_out: Vec<LeftOut>,
    last_error: Option<String>,
    next_try: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    #[default]
    Starting,
    Ready,
    Down,
}

/// How a server is at the moment.
#[derive(Clone, Debug, Serialize)]
pub struct ServerState {
    pub name: String,
    pub phase: Phase,
    pub era: Option<Era>,
    /// The version of the protocol that was agreed on.
    pub protocol: Option<String>,
    /// What the server calls itself, with its version.
    pub implementation: Option<String>,
    pub tools: usize,
    pub left_out: Vec<LeftOut>,
    /// Stays until the next failure.
    pub last_error: Option<String>,
    /// Seconds until it is started again.
    pub next_try_in: Option<u64>,
    pub breaker: Snapshot,
}

/// Why a connection was given up.
enum Over {
    Stopped,
    Lost(String),
}

impl Server {
    pub(super) fn new(settings: Settings, breaker: Arc<Breaker>, changes: watch::Sender<u64>) -> Arc<Self> {
        Arc::new(Self {
            name: settings.name.as_str().into(),
            redactor: settings.redactor(),
            entrusted: Redactor::new(What { secrets: false, emails: false }).with_known(settings.secrets()),
            settings,
            breaker,
            state: Mutex::default(),
            changes,
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        })
    }

    /// Keeps it connected until it is stopped. Begins when the server whose place it takes has ended.
    pub(super) async fn run(self: Arc<Self>, predecessor: Option<Arc<Self>>) {
        if let Some(predecessor) = predecessor {
            predecessor.ended.cancelled().await;
        }
        let mut backoff = DELAYS.start();
        while !self.stop.is_cancelled() {
            let era = self.state().era;
            let opened = Connection::open(&self.name, &self.settings, era, &self.stop).await;
            let error = match opened {
                Ok(connection) => {
                    let began = Instant::now();
                    let era = connection.era;
                    let over = self.serve(&connection, era).await;
                    self.tell(|state| (state.phase, state.line, state.tools) = (Phase::Down, None, Arc::default()));
                    let ended = connection.close().await;
                    if began.elapsed() >= LONG_ENOUGH {
                        backoff.reset();
                    }
                    match (over, ended) {
                        (Over::Stopped, _) => break,
                        (Over::Lost(why), Some(ended)) if why == "ended" || why == "closed the connection" => ended,
                        (Over::Lost(why), _) => why,
                    }
                }
                Err(_) if self.stop.is_cancelled() => break,
                Err(error) => {
                    // It may have been replaced by one of the other era.
                    self.state().era = None;
                    error
                }
            };
            self.failed(&error, backoff.next_delay()).await;
        }
        self.tell(|state| *state = State { phase: Phase::Down, has_failed: true, ..State::default() });
        self.ended.cancel();
    }

    async fn failed(&self, error: &str, delay: Duration) {
        let error = outside(&self.redactor, error);
        // So that servers that fell together do not all come back at the same moment.
        let wait = delay.mul_f64(0.75 + fastrand::f64() * 0.5);
        let next_try = Instant::now() + wait;
        let retry_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(event = "mcp_server_down", server = &*self.name, error, retry_ms);
        self.tell(|state| {
            (state.phase, state.has_failed) = (Phase::Down, true);
            (state.last_error, state.next_try) = (Some(error), Some(next_try));
        });
        tokio::select! {
            () = sleep_until(next_try) => self.tell(|state| (state.phase, state.next_try) = (Phase::Starting, None)),
            () = self.stop.cancelled() => {}
        }
    }

    /// Uses a connection for as long as it is good.
    async fn serve(&self, connection: &Connection, era: Era) -> Over {
        let line = &connection.line;
        let signals = &line.signals;
        let mut next = tokio::select! {
            () = self.stop.cancelled() => return Over::Stopped,
            listed = self.list(line, Instant::now() + self.settings.start_timeout) => match listed {
                Ok(holds) => Instant::now() + holds,
                Err(Failure::TimedOut) => return Over::Lost("did not say in time what it can do".to_owned()),
                Err(Failure::Refused(why) | Failure::Lost(why)) => return Over::Lost(why),
            },
        };
        self.ready(line, era);
        let mut listening = std::pin::pin!(line.listen(era));
        let mut last = Instant::now().checked_sub(LIST_PAUSE).unwrap_or_else(Instant::now);
        // Whether it has to answer the next list or be given up.
        let mut doubt = false;
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return Over::Stopped,
                () = signals.lost() => return Over::Lost(signals.reason().unwrap_or_default().to_owned()),
                _ = &mut listening => {}
                () = signals.changed.notified() => {}
                () = signals.suspect.notified() => doubt = true,
                () = sleep_until(next) => {}
            }
            let listed = async {
                sleep_until(last + LIST_PAUSE).await;
                self.list(line, Instant::now() + LIST_PATIENCE.min(self.settings.start_timeout)).await
            };
            let listed = tokio::select! {
                () = self.stop.cancelled() => return Over::Stopped,
                () = signals.lost() => continue,
                listed = listed => listed,
            };
            last = Instant::now();
            next = last + LIST_PATIENCE;
            match listed {
                Ok(holds) => (next, doubt) = (last + holds, false),
                Err(Failure::Lost(why)) => return Over::Lost(why),
                Err(Failure::TimedOut) if doubt => return Over::Lost("does not answer any more".to_owned()),
                Err(Failure::TimedOut) => doubt = true,
                Err(Failure::Refused(why)) => {
                    let error = outside(&self.redactor, &why);
                    tracing::warn!(event = "mcp_server_list_failed", server = &*self.name, error);
                }
            }
        }
    }

    /// Learns what the server can do. Says for how long that holds.
    async fn list(&self, line: &Line, deadline: Instant) -> Result<Duration, Failure> {
        let (listed, holds) = line.list(&self.name, &self.settings, deadline).await?;
        let (found, mut left_out) = listed.sorted();
        for tool in &mut left_out {
            tool.reason = outside(&self.redactor, &tool.reason);
        }
        let is_new = {
            let state = self.state();
            state.tools != found || state.left_out != left_out
        };
        if is_new {
            for LeftOut { name, reason } in &left_out {
                tracing::warn!(event = "mcp_server_tool_left_out", server = &*self.name, tool = name, reason);
            }
            self.tell(|state| (state.tools, state.left_out) = (found, left_out));
        }
        Ok(how_long(holds))
    }

    fn ready(&self, line: &Line, era: Era) {
        let about = line.about();
        let protocol = about.as_ref().map(|about| about.protocol_version.to_string());
        let own = about.and_then(|about| about.server_info.clone());
        let implementation = own.map(|own| outside(&self.redactor, &format!("{} {}", own.name, own.version)));
        let tools = self.state().tools.len();
        tracing::info!(event = "mcp_server_ready", server = &*self.name, protocol, implementation, tools);
        self.tell(|state| {
            (state.phase, state.line, state.era) = (Phase::Ready, Some(line.clone()), Some(era));
            (state.protocol, state.implementation) = (protocol, implementation);
        });
    }

    /// What it offers now.
    pub(super) fn tools(&self) -> Arc<[Found]> {
        let state = self.state();
        if state.phase == Phase::Ready { state.tools.clone() } else { Arc::default() }
    }

    pub(super) fn has_settled(&self) -> bool {
        let state = self.state();
        state.phase == Phase::Ready || state.has_failed
    }

    pub(super) fn is_ready(&self) -> bool {
        self.state().phase == Phase::Ready && !self.breaker.is_open()
    }

    pub(super) fn describe(&self) -> ServerState {
        let state = self.state();
        let next_try = state.next_try.map(|at| at.saturating_duration_since(Instant::now()).as_secs());
        ServerState {
            name: self.settings.name.clone(),
            phase: state.phase,
            era: state.era,
            protocol: state.protocol.clone(),
            implementation: state.implementation.clone(),
            tools: state.tools.len(),
            left_out: state.left_out.clone(),
            last_error: state.last_error.clone(),
            next_try_in: next_try,
            breaker: self.breaker.snapshot(),
        }
    }

    /// `most` is how long the caller can wait at all.
    pub(super) async fn call(&self, tool: &str, arguments: Arguments, most: Duration) -> Result<Called, CallError> {
        let Some(pass) = self.breaker.admit() else {
            let why = "failed too often and is left alone for a while";
            return Err(CallError::Unavailable(why.to_owned()));
        };
        let (line, is_offered) = {
            let state = self.state();
            (state.line.clone(), state.tools.iter().any(|found| found.name == tool))
        };
        let Some(line) = line else {
            let why = match self.state().last_error.clone() {
                Some(error) => format!("is not there at the moment ({error})"),
                None => "has not started yet".to_owned(),
            };
            pass.failed(&why);
            return Err(CallError::Unavailable(why));
        };
        if !is_offered {
            // The pass goes back: nobody was asked.
            return Err(CallError::Refused("does not offer this tool any more".to_owned()));
        }
        match line.call(tool, arguments, self.settings.call_timeout, most).await {
            Ok(ServerResult::CallToolResult(result)) => {
                pass.succeeded();
                Ok(self.without_secrets(Called::read(result, self.settings.max_result_bytes)))
            }
            Ok(_) => {
                pass.succeeded();
                Err(CallError::Refused("answered with something that is no result".to_owned()))
            }
            Err(Failure::Refused(why)) => {
                pass.succeeded();
                Err(CallError::Refused(outside(&self.redactor, &why)))
            }
            // Who had hardly any time to wait cannot tell.
            Err(Failure::TimedOut) if most < self.settings.call_timeout.min(FAIR) => Err(CallError::TimedOut),
            Err(Failure::TimedOut) => {
                // Perhaps the tool is slow, perhaps the server hangs.
                line.signals.suspect.notify_one();
                pass.failed(&CallError::TimedOut.to_string());
                Err(CallError::TimedOut)
            }
            Err(Failure::Lost(why)) => {
                line.signals.suspect.notify_one();
                let why = outside(&self.redactor, &why);
                pass.failed(&why);
                Err(CallError::Unavailable(why))
            }
        }
    }

    /// A tool may say what is private to others, but not what we entrusted to its server.
    fn without_secrets(&self, mut called: Called) -> Called {
        if let Cow::Owned(text) = self.entrusted.text(&called.text) {
            called.text = text;
        }
        if let Some(structured) = &mut called.structured {
            self.entrusted.json(structured);
        }
        called
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changes.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn how_long(said: Option<Duration>) -> Duration {
    match said {
        None | Some(Duration::ZERO) => LIST_HOLDS,
        Some(said) => said.clamp(LIST_HOLDS_LEAST, LIST_HOLDS_MOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_as_long_as_the_server_says_within_reason() {
        let seconds = |said: Option<u64>| how_long(said.map(Duration::from_secs)).as_secs();
        let holds = [None, Some(0), Some(1), Some(60), Some(86_400)].map(seconds);
        assert_eq!(holds, [300, 300, 10, 60, 3600]);
    }
}
