//! `adjutant agents check`: whether agents can be run on this machine. Starts a program only with the arguments with which
//! it says its version and ends, and only where a preset knows them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use model::agent::Agent;
use serde_json::json;
use supervisor::{check, presets};

use crate::cli::Global;
use crate::client::Client;
use crate::commands::listing;
use crate::exit::{Code, Exit};
use crate::output;

/// Some of them are slow to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was found out about an agent.
pub(in crate::commands) struct Finding {
    pub(in crate::commands) id: String,
    pub(in crate::commands) faults: Vec<String>,
    /// What there is to say where nothing is wrong.
    pub(in crate::commands) says: String,
}

pub(super) async fn run(global: &Global, names: &[String]) -> anyhow::Result<()> {
    let agents = agents(global).await?;
    let mut wanted = Vec::new();
    for name in names {
        wanted.push(listing::agent_of(&agents, name)?);
    }
    if names.is_empty() {
        wanted.extend(agents.iter().filter(|agent| agent.enabled));
    }
    if wanted.is_empty() {
        output::note("no agents; `adjutant agents detect` finds some");
    }
    let findings = futures::future::join_all(wanted.iter().map(|agent| examine(agent))).await;
    report(global, &findings)?;
    match findings.iter().filter(|finding| !finding.faults.is_empty()).count() {
        0 => Ok(()),
        wrong => Err(Exit::new(Code::Failed, format!("{wrong} of {} agents cannot be run", findings.len())).into()),
    }
}

fn report(global: &Global, findings: &[Finding]) -> anyhow::Result<()> {
    let well = findings.iter().all(|finding| finding.faults.is_empty());
    if global.json {
        let list: Vec<_> = findings
            .iter()
            .map(|finding| {
                let ok = finding.faults.is_empty();
                let faults = &finding.faults;
                json!({"id": finding.id, "ok": ok, "faults": faults, "detail": finding.says})
            })
            .collect();
        return output::say(&json!({"ok": well, "agents": list}).to_string());
    }
    let rows = findings.iter().flat_map(|finding| {
        let line = |mark: &str, says: &str| vec![mark.to_owned(), finding.id.clone(), says.to_owned()];
        match finding.faults.as_slice() {
            [] => vec![line("ok", &finding.says)],
            faults => faults.iter().map(|fault| line("!!", fault)).collect(),
        }
    });
    output::table(&["", "AGENT", "FINDING"], &rows.collect::<Vec<_>>())
}

/// Returns the agents of the configuration, and those that were added, as far as the user may see them.
async fn agents(global: &Global) -> anyhow::Result<Vec<Agent>> {
    let mut agents = crate::commands::load(global, None)?.agents;
    let quiet = Global { json: false, ..global.clone() };
    let registered = async { listing::agents(&Client::connect(&quiet).await?).await };
    match registered.await {
        Ok(registered) => {
            // Only administrators see how an agent is run.
            for agent in registered.iter().filter_map(api::agents::Agent::configuration) {
                if agent.id != model::agent::ASSISTANT && !agents.iter().any(|known| known.id == agent.id) {
                    agents.push(agent.clone());
                }
            }
        }
        Err(error) => output::note(&format!("only those of the configuration are looked at: {error:#}")),
    }
    Ok(agents)
}

/// Looks at what an agent needs, and has its program say its version where that is known to be harmless.
pub(in crate::commands) async fn examine(agent: &Agent) -> Finding {
    let (mut faults, path) = stands(agent);
    if agent.is_elsewhere() {
        return examine_elsewhere(agent, faults).await;
    }
    let mut says = path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let version = agent.preset.as_deref().and_then(presets::preset).map(|preset| &preset.version);
    if let (Some(path), Some(arguments), true) = (path, version, faults.is_empty()) {
        match ask(&path, arguments).await {
            Ok(version) => says = format!("{says}: {version}"),
            Err(why) => {
                let tried = format!("{} {}", path.display(), arguments.join(" "));
                faults.push(format!("`{tried}` {why}: run it yourself to see what is wrong"));
            }
        }
    }
    Finding { id: agent.id.clone(), faults, says }
}

/// Reads the card of an agent elsewhere.
async fn examine_elsewhere(agent: &Agent, mut faults: Vec<String>) -> Finding {
    let mut says = String::new();
    if faults.is_empty() {
        match tokio::time::timeout(PATIENCE, server::elsewhere(agent, &|name| std::env::var(name).ok())).await {
            Err(_) => faults.push(format!("its card did not come within {} s", PATIENCE.as_secs())),
            Ok(Err(failure)) => faults.push(failure.message),
            Ok(Ok(client)) => {
                let card = client.card();
                let binding = client.binding().as_str();
                let version = client.version().as_str();
                says = format!("{} {}, by {binding} {version} at {}", card.name, card.version, client.url());
            }
        }
    }
    Finding { id: agent.id.clone(), faults, says }
}

/// What can be said without running anything: what is wrong, and where the program is.
pub(in crate::commands) fn stands(agent: &Agent) -> (Vec<String>, Option<std::path::PathBuf>) {
    let variables = |name: &str| std::env::var(name).ok();
    (check::faults(agent, &variables), check::program(agent, &variables))
}

/// The first line that the program answers.
async fn ask(program: &Path, arguments: &[String]) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    // Ctrl-C is ours to handle; and what takes too long is killed.
    command.args(arguments).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    let output = match tokio::time::timeout(PATIENCE, command.output()).await {
        Err(_) => return Err(format!("did not end within {} s", PATIENCE.as_secs())),
        Ok(Err(error)) => return Err(format!("could not be run: {error}")),
        Ok(Ok(output)) => output,
    };
    let said = String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout });
    let line: String = said.lines().next().unwrap_or_default().chars().take(100).collect();
    if output.status.success() { Ok(line) } else { Err(format!("ended with {}: {line}", output.status)) }
}
