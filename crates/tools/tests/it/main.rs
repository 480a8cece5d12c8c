//! The tools over real processes and real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod foreign_child;
mod foreign_http;

use std::time::Duration;

use model::Clock;
use model::breaker::Breakers;
use serde_json::Value;
use tools::Arguments;
use tools::foreign::{Found, Phase, ServerState, Servers, Settings};

pub(crate) fn breakers() -> Breakers {
    Breakers::new(Clock::manual("2026-01-01T00:00:00Z".parse().unwrap()), |_| {})
}

pub(crate) fn start(settings: impl IntoIterator<Item = Settings>) -> Servers {
    let _ = rustls::crypto::ring::default_provider().install_default();
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

/// Of this process, in MB.
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
