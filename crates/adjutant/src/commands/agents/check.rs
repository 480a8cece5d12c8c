//! `adjutant agents check`: checks whether agents can run on this machine. Starts a program only to print its version,
//! with the arguments of its preset. Reads the cards of remote agents.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use model::agent::Agent;
use serde_json::json;
use supervisor::{check, presets};

use crate::cli::GlobalOptions;
use crate::client::Client;
use crate::commands::listing;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

/// The time limit of a program or a remote agent. Some agents start slowly.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of the check of one agent.
pub(in crate::commands) struct AgentFinding {
    pub(in crate::commands) id: String,
    pub(in crate::commands) problems: Vec<String>,
    /// The program and its version, or the card, if there are no problems.
    pub(in crate::commands) detail: String,
}

/// Checks the named agents, also disabled ones, or all enabled agents without names, at the same time. A name that is
/// given twice is checked twice. Prints the findings, and a note if there are no agents. Fails before any check if a
/// name matches no agent or several. Fails at the end if an agent cannot run.
pub(super) async fn run(global: &GlobalOptions, names: &[String]) -> anyhow::Result<()> {
    let agents = agents(global).await?;
    let mut selected = Vec::new();
    for name in names {
        selected.push(listing::find_agent(&agents, name)?);
    }
    if names.is_empty() {
        selected.extend(agents.iter().filter(|agent| agent.enabled));
    }
    if selected.is_empty() {
        output::note("no agents; `adjutant agents detect` finds installed ones");
    }
    let findings = futures::future::join_all(selected.iter().map(|agent| examine(agent))).await;
    report(global, &findings)?;
    match findings.iter().filter(|finding| !finding.problems.is_empty()).count() {
        0 => Ok(()),
        wrong => {
            Err(ExitError::new(ExitStatus::Failed, format!("{wrong} of {} agents cannot run", findings.len())).into())
        }
    }
}

/// Prints one row for each problem, or one row for an agent without problems. With `--json`, prints one document with
/// all agents, and `ok` if no agent has problems.
fn report(global: &GlobalOptions, findings: &[AgentFinding]) -> anyhow::Result<()> {
    let ok = findings.iter().all(|finding| finding.problems.is_empty());
    if global.json {
        let list: Vec<_> = findings
            .iter()
            .map(|finding| {
                let ok = finding.problems.is_empty();
                let problems = &finding.problems;
                json!({"id": finding.id, "ok": ok, "faults": problems, "detail": finding.detail})
            })
            .collect();
        return output::print_line(&json!({"ok": ok, "agents": list}).to_string());
    }
    let rows = findings.iter().flat_map(|finding| {
        let line = |mark: &str, detail: &str| vec![mark.to_owned(), finding.id.clone(), detail.to_owned()];
        match finding.problems.as_slice() {
            [] => vec![line("ok", &finding.detail)],
            problems => problems.iter().map(|problem| line("!!", problem)).collect(),
        }
    });
    output::print_table(&["", "AGENT", "FINDING"], &rows.collect::<Vec<_>>())
}

/// Returns the agents of the configuration, then the other agents of the server or database, without the assistant.
/// Only operators receive these; other users get the agents of the configuration only. Prints a note if they cannot be
/// read. Fails if the configuration is invalid.
async fn agents(global: &GlobalOptions) -> anyhow::Result<Vec<Agent>> {
    let mut agents = crate::commands::load_config(global, None)?.agents;
    let quiet = GlobalOptions { json: false, ..global.clone() };
    let registered = async { listing::agents(&Client::connect(&quiet).await?).await };
    match registered.await {
        Ok(registered) => {
            // Only administrators receive the configuration of agents.
            for agent in registered.iter().filter_map(api::agents::Agent::configuration) {
                if agent.id != model::agent::ASSISTANT_ID && !agents.iter().any(|known| known.id == agent.id) {
                    agents.push(agent.clone());
                }
            }
        }
        Err(error) => output::note(&format!("only agents of the configuration are checked: {error:#}")),
    }
    Ok(agents)
}

/// Checks the requirements of an agent. If they are met and the agent has a preset, runs its program to get the
/// version; a failure is a problem. Of a remote agent, reads the card instead. Never fails: problems are part of the
/// finding.
pub(in crate::commands) async fn examine(agent: &Agent) -> AgentFinding {
    let (mut problems, path) = static_check(agent);
    if agent.is_remote() {
        return examine_remote(agent, problems).await;
    }
    let mut detail = path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let version = agent.preset.as_deref().and_then(presets::get).map(|preset| &preset.version);
    if let (Some(path), Some(arguments), true) = (path, version, problems.is_empty()) {
        match query_version(&path, arguments).await {
            Ok(version) => detail = format!("{detail}: {version}"),
            Err(why) => {
                let tried = format!("{} {}", path.display(), arguments.join(" "));
                problems.push(format!("`{tried}` {why}; run it to see the error"));
            }
        }
    }
    AgentFinding { id: agent.id.clone(), problems, detail }
}

/// Reads the card of a remote agent, unless `problems` has entries already. The detail is the name and version of the
/// card, with the binding and URL in use. A card that cannot be used, or does not arrive within [`CHECK_TIMEOUT`], is a
/// problem.
async fn examine_remote(agent: &Agent, mut problems: Vec<String>) -> AgentFinding {
    let mut detail = String::new();
    if problems.is_empty() {
        match tokio::time::timeout(
            CHECK_TIMEOUT,
            server::discover_remote_agent(agent, &|name| std::env::var(name).ok()),
        )
        .await
        {
            Err(_) => problems.push(format!("its card did not arrive within {} s", CHECK_TIMEOUT.as_secs())),
            Ok(Err(failure)) => problems.push(failure.message),
            Ok(Ok(client)) => {
                let card = client.card();
                let binding = client.binding().as_str();
                let version = client.version().as_str();
                detail = format!("{} {}, by {binding} {version} at {}", card.name, card.version, client.url());
            }
        }
    }
    AgentFinding { id: agent.id.clone(), problems, detail }
}

/// Returns the problems of an agent and the path of its program, without running it.
pub(in crate::commands) fn static_check(agent: &Agent) -> (Vec<String>, Option<std::path::PathBuf>) {
    let variables = |name: &str| std::env::var(name).ok();
    (check::problems(agent, &variables), check::program_path(agent, &variables))
}

/// Runs the program and returns the first line that it prints, up to 100 characters, on standard output or else on
/// standard error. The line may be empty. Fails if the program cannot start, exits with an error or exceeds
/// [`CHECK_TIMEOUT`], after which it is killed.
async fn query_version(program: &Path, arguments: &[String]) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    // Ctrl-C must not reach the program. It is killed when the timeout expires.
    command.args(arguments).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    let output = match tokio::time::timeout(CHECK_TIMEOUT, command.output()).await {
        Err(_) => return Err(format!("did not exit within {} s", CHECK_TIMEOUT.as_secs())),
        Ok(Err(error)) => return Err(format!("failed to start: {error}")),
        Ok(Ok(output)) => output,
    };
    let printed = String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout });
    let line: String = printed.lines().next().unwrap_or_default().chars().take(100).collect();
    if output.status.success() { Ok(line) } else { Err(format!("exited with {}: {line}", output.status)) }
}
