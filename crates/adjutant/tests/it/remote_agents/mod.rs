//! Remote agents and `adjutant a2a`. A second adjutant is the remote server.

mod cli;
mod runs;

use testkit::app::{Home, Server};

use crate::{ALICE, home};

const TOKEN: &str = "a-token-that-is-hard-to-guess";

/// Returns the home of the remote server with its agents.
fn remote_home() -> Home {
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
    home().with_env("FAR_TOKEN", TOKEN).with_config(&agents)
}

/// Returns a home with the agents of the remote server as remote agents.
fn local_home(remote: &Server) -> Home {
    local_home_with(remote, "")
}

fn local_home_with(remote: &Server, extra_config: &str) -> Home {
    let url = &remote.url;
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
    let all = format!("{}{}{}{extra_config}", agents.concat(), locked("opened", "GOOD"), locked("shut", "BAD"));
    home().with_env("GOOD", TOKEN).with_env("BAD", "another-token-altogether").with_config(&all)
}

/// Returns the last execution of an agent.
async fn last_execution(server: &Server, agent: &str) -> serde_json::Value {
    let path = format!("/api/executions?agent_id={agent}&limit=1");
    let answer: serde_json::Value = server.get(&path).await.json().await.unwrap();
    answer["executions"][0].clone()
}

/// Waits until the last execution of an agent has this state.
async fn wait_for_state(server: &Server, agent: &str, state: &str) -> serde_json::Value {
    let mut execution = serde_json::Value::Null;
    for _ in 0..400 {
        execution = last_execution(server, agent).await;
        if execution["state"] == state {
            return execution;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{agent} did not become {state}: {execution}");
}
