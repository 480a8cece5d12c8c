//! A2A as others meet it: the product with the scripted agent in it, over real sockets. Message by message in `table`,
//! `streams`, `kit` and `kit_v03`; with clients that others wrote in `clients`.

mod clients;
mod faults;
mod fuzz;
mod hook;
mod kit;
mod kit_v03;
mod older;
mod owners;
mod processes;
mod schema;
mod speak;
mod streams;
mod table;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use model::agent::Agent;
use serde_json::{Value, json};

use testkit::conformance::{AGENT, Options, Server};

use speak::Speaker;

/// Where `scripts/a2a-peers/setup` put the clients of others.
fn peers() -> PathBuf {
    let dir = std::env::var_os("ADJUTANT_TEST_A2A_PEERS").unwrap_or_else(|| {
        panic!(
            "the clients of others are not there: run scripts/a2a-peers/setup target/a2a-peers and set \
             ADJUTANT_TEST_A2A_PEERS to the whole path of target/a2a-peers"
        )
    });
    dir.into()
}

/// The product with the scripted agent as the one that is meant where none is named.
struct Conformance(Server);

impl Conformance {
    async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    async fn start_with(options: Options) -> Self {
        Self(Server::start(options).await)
    }

    /// With one more agent of the kind.
    async fn start_with_scripted(agent: Agent) -> Self {
        Self::start_with(Options { more: vec![agent], ..Options::default() }).await
    }

    fn url(&self) -> &str {
        &self.0.url
    }

    fn speaker(&self) -> Speaker {
        self.speaker_to(AGENT)
    }

    fn speaker_to(&self, agent: &str) -> Speaker {
        Speaker::new(&format!("{}/agents/{agent}", self.0.url), agent)
    }
}

/// A message of the user; what the agent does with it follows from how its id begins.
fn message(kind: &str, text: &str) -> Value {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let n = LAST.fetch_add(1, Ordering::Relaxed);
    json!({"messageId": format!("{kind}-{n}"), "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// `COMPLETED`, of whatever has a status.
fn state(of: &Value) -> &str {
    of["status"]["state"].as_str().unwrap_or_default().trim_start_matches("TASK_STATE_")
}
