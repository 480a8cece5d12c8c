//! The A2A server with the scripted agent, over real sockets. `operations`, `streams`, `tck` and `tck_v03` send single
//! messages. `sdk_clients` uses independent clients.

mod client;
mod convert_v03;
mod expected_errors;
mod fuzz;
mod isolation;
mod operations;
mod processes;
mod schema;
mod sdk_clients;
mod streams;
mod tck;
mod tck_v03;
mod webhook;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use model::agent::Agent;
use serde_json::{Value, json};

use testkit::conformance::{AGENT_ID, ConformanceOptions, ConformanceServer};

use client::A2aClient;

/// Returns the directory of the independent clients that `scripts/a2a-peers/setup` installed.
fn peers() -> PathBuf {
    let dir = std::env::var_os("ADJUTANT_TEST_A2A_PEERS").unwrap_or_else(|| {
        panic!(
            "the A2A clients are not installed: run scripts/a2a-peers/setup target/a2a-peers and set \
             ADJUTANT_TEST_A2A_PEERS to the absolute path of target/a2a-peers"
        )
    });
    dir.into()
}

/// The product with the scripted agent as the default agent.
struct Conformance(ConformanceServer);

impl Conformance {
    async fn start() -> Self {
        Self::start_with(ConformanceOptions::default()).await
    }

    async fn start_with(options: ConformanceOptions) -> Self {
        Self(ConformanceServer::start(options).await)
    }

    /// Starts a server with an additional scripted agent.
    async fn start_with_scripted(agent: Agent) -> Self {
        Self::start_with(ConformanceOptions { extra_agents: vec![agent], ..ConformanceOptions::default() }).await
    }

    fn url(&self) -> &str {
        &self.0.url
    }

    fn client(&self) -> A2aClient {
        self.client_for(AGENT_ID)
    }

    fn client_for(&self, agent: &str) -> A2aClient {
        A2aClient::new(&format!("{}/agents/{agent}", self.0.url), agent)
    }
}

/// Returns a user message. The prefix of its id selects the behaviour of the scripted agent.
fn message(kind: &str, text: &str) -> Value {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let n = LAST.fetch_add(1, Ordering::Relaxed);
    json!({"messageId": format!("{kind}-{n}"), "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// Returns the state of a task or a status update without its prefix, such as `COMPLETED`.
fn state(object: &Value) -> &str {
    object["status"]["state"].as_str().unwrap_or_default().trim_start_matches("TASK_STATE_")
}
