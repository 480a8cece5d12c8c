//! The tools over real processes and real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod foreign_child;
mod foreign_http;

use std::fmt::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use model::Clock;
use model::breaker::Breakers;
use serde_json::Value;
use tools::Arguments;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use tools::foreign::{Found, Phase, ServerState, Servers, Settings};

pub(crate) fn breakers() -> Breakers {
    Breakers::new(Clock::manual("2026-01-01T00:00:00Z".parse().unwrap()), |_| {})
}

pub(crate) fn start(settings: impl IntoIterator<Item = Settings>) -> Servers {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let _ = tracing_subscriber::registry().with(Log).try_init();
    Servers::start(settings.into_iter().collect(), &breakers())
}

pub(crate) fn names(servers: &Servers) -> Vec<String> {
    servers.tools().iter().map(|found| found.name.clone()).collect()
}

pub(crate) fn find(servers: &Servers, name: &str) -> Found {
    servers.tools().iter().find(|found| found.name == name).unwrap_or_else(|| panic!("no tool {name}")).clone()
}

pub(crate) fn arguments(value: Value) -> Arguments {
    let Value::Object(arguments) = value else { panic!("{value}") };
    arguments
}

pub(crate) fn state(servers: &Servers, name: &str) -> ServerState {
    servers.states().into_iter().find(|state| state.name == name).unwrap()
}

/// Waits until something holds; there is no signal for what others do.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

pub(crate) async fn until_ready(servers: &Servers, name: &str) {
    until("ready", || state(servers, name).phase == Phase::Ready).await;
}

/// Of this process, in MB. Other tests take some at the same time, but not what has no end.
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Everything that all tests log: our own at any level, of others what the product would show.
struct Log;

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub(crate) fn logged() -> Vec<String> {
    LOGGED.lock().unwrap().clone()
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let is_ours = event.metadata().target().starts_with("tools");
        if is_ours || *event.metadata().level() <= Level::WARN {
            let mut entry = Entry(String::new());
            event.record(&mut entry);
            LOGGED.lock().unwrap().push(entry.0);
        }
    }
}

struct Entry(String);

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
