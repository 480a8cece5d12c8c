//! Tests of the MCP client with real processes and sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http_servers;
mod long_calls;
mod stdio_servers;

use std::fmt::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use model::Clock;
use model::breaker::Breakers;
use serde_json::Value;
use tools::ToolArguments;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use tools::mcp_client::{DiscoveredTool, McpServerPhase, McpServerSettings, McpServerState, McpServers};

pub(crate) fn breakers() -> Breakers {
    Breakers::new(Clock::manual("2026-01-01T00:00:00Z".parse().unwrap()), |_| {})
}

pub(crate) fn start(settings: impl IntoIterator<Item = McpServerSettings>) -> McpServers {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let _ = tracing_subscriber::registry().with(LogRecorder).try_init();
    McpServers::start(settings.into_iter().collect(), &breakers())
}

pub(crate) fn names(servers: &McpServers) -> Vec<String> {
    servers.tools().iter().map(|tool| tool.name.clone()).collect()
}

pub(crate) fn find(servers: &McpServers, name: &str) -> DiscoveredTool {
    servers.tools().iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("no tool {name}")).clone()
}

pub(crate) fn arguments(value: Value) -> ToolArguments {
    let Value::Object(arguments) = value else { panic!("{value}") };
    arguments
}

pub(crate) fn state(servers: &McpServers, name: &str) -> McpServerState {
    servers.states().into_iter().find(|state| state.name == name).unwrap()
}

/// Waits until a condition holds. Panics after a timeout.
pub(crate) async fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("timed out: {condition}");
}

pub(crate) async fn until_ready(servers: &McpServers, name: &str) {
    until("ready", || state(servers, name).phase == McpServerPhase::Ready).await;
}

/// Returns the resident memory of this process in MB. It includes the memory of concurrent tests.
pub(crate) fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Records the log of all tests: our own entries at any level, entries of dependencies from `WARN` on.
struct LogRecorder;

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) fn logged() -> Vec<String> {
    LOGGED.lock().unwrap().clone()
}

impl<S: Subscriber> Layer<S> for LogRecorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let is_ours = event.metadata().target().starts_with("tools");
        if is_ours || *event.metadata().level() <= Level::WARN {
            let mut entry = LogEntry(String::new());
            event.record(&mut entry);
            LOGGED.lock().unwrap().push(entry.0);
        }
    }
}

struct LogEntry(String);

impl Visit for LogEntry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
