//! Agents elsewhere, and `adjutant a2a`: another adjutant is the other side.

mod cli;
mod remote;

use testkit::app::{Home, Server};

use crate::{ALICE, home};

const TOKEN: &str = "a-token-that-nobody-guesses";

/// A home of agents that others speak with.
fn far() -> Home {
    let agents = format!(
        r#"
[[agents]]
id = "cat"
executable_path = "/bin/cat"
[[agents]]
id = "slow"
executable_path = "/bin/sh"
args = ["-c", "echo begun; sleep 60"]
[[agents]]
id = "broken"
executable_path = "/bin/sh"
args = ["-c", "echo no luck >&2; exit 3"]
[[agents]]
id = "plain"
executable_path = "/bin/cat"
a2a = {{ capabilities = {{ streaming_support = false }} }}
[[agents]]
id = "locked"
executable_path = "/bin/cat"
a2a = {{ auth = {{ type = "bearer_token", token = "env:FAR_TOKEN", user = "{ALICE}" }} }}
"#
    );
    home().with("FAR_TOKEN", TOKEN).configured(&agents)
}

/// A home whose agents are those of the other.
fn near(far: &Server) -> Home {
    near_with(far, "")
}

fn near_with(far: &Server, more: &str) -> Home {
    let url = &far.url;
    let agents = ["cat", "slow", "broken", "plain", "assistant"].map(|id| {
        let timeout = if id == "slow" { 20 } else { 30 };
        format!(
            "[[agents]]\nid = \"far-{id}\"\ncard_url = \"{url}/agents/{id}\"\ntimeout = {timeout}\nallow = [\"*\"]\n"
        )
    });
    let locked = |id: &str, token: &str| {
        format!(
            "[[agents]]\nid = \"{id}\"\ncard_url = \"{url}/agents/locked\"\ncard_auth = {{ type = \"bearer_token\", token = \"env:{token}\" }}\n"
        )
    };
    let all = format!("{}{}{}{more}", agents.concat(), locked("opened", "GOOD"), locked("shut", "BAD"));
    home().with("GOOD", TOKEN).with("BAD", "another-token-altogether").configured(&all)
}

/// What the other side says about the last execution of an agent.
async fn last(server: &Server, agent: &str) -> serde_json::Value {
    let path = format!("/api/executions?agent_id={agent}&limit=1");
    let answer: serde_json::Value = server.get(&path).await.json().await.unwrap();
    answer["executions"][0].clone()
}

/// Waits until it stands like this.
async fn becomes(server: &Server, agent: &str, state: &str) -> serde_json::Value {
    let mut seen = serde_json::Value::Null;
    for _ in 0..400 {
        seen = last(server, agent).await;
        if seen["state"] == state {
            return seen;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{agent} did not become {state}: {seen}");
}
