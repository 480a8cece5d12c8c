//! `adjutant agents`: list, show, add, rm, check, detect, presets.

pub(in crate::commands) mod check;
pub(in crate::commands) mod presets;

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use api::agents::{Agent, AgentSource, AgentStatus, Agents};
use serde_json::{Map, Value, json};

use super::listing::{self, split_pair};
use crate::cli::{AddAgentArgs, AgentsCommand, GlobalOptions};
use crate::client::Client;
use crate::exit::{ExitError, ExitStatus, read_error};
use crate::output;

/// Runs one subcommand. `detect` and `presets` use no server and no data directory. Fails if the subcommand fails.
pub(crate) async fn run(global: &GlobalOptions, command: AgentsCommand) -> anyhow::Result<()> {
    match command {
        AgentsCommand::List { quiet } => list(&Client::connect(global).await?, quiet).await,
        AgentsCommand::Show { agent } => show(&Client::connect(global).await?, &agent).await,
        AgentsCommand::Add(new) => add(global, &new).await,
        AgentsCommand::Rm { agents } => remove(&Client::connect(global).await?, &agents, global.yes).await,
        AgentsCommand::Check { agents } => check::run(global, &agents).await,
        AgentsCommand::Detect { quiet } => presets::detect(global, quiet),
        AgentsCommand::Presets { quiet } => presets::list(global, quiet),
    }
}

/// Prints all agents of the server: with `--json` its response, even if `quiet` is set, otherwise ids (`quiet`) or a
/// table. The table comes with a note if there is only the built-in assistant. Fails if the request fails.
async fn list(client: &Client, quiet: bool) -> anyhow::Result<()> {
    client.get("/api/agents").await?.show(|Agents { agents, .. }| {
        if quiet {
            return agents.iter().try_for_each(|agent| output::print_line(agent.id()));
        }
        if agents.iter().all(|agent| agent.source() == AgentSource::BuiltIn) {
            output::note("only the built-in assistant; `adjutant agents detect` finds installed agents");
        }
        let rows: Vec<_> = agents.iter().map(row).collect();
        output::print_table(&["ID", "NAME", "STATE", "ACCESS", "MODE", "PROGRAM"], &rows)
    })
}

/// Returns the row of an agent in a table: id, name, state, access, mode, and the program or card URL. The last is
/// `built in` for the assistant, and empty if the user may not see the configuration.
fn row(agent: &Agent) -> Vec<String> {
    let summary = agent.summary();
    let state = if summary.enabled { "enabled" } else { "disabled" };
    let program = if summary.source == AgentSource::BuiltIn { "built in" } else { program_or_url(agent) };
    vec![
        summary.id,
        summary.name,
        state.to_owned(),
        summary.access_type.to_string(),
        summary.mode.to_string(),
        program.to_owned(),
    ]
}

/// Returns the program, or the card URL of a remote agent. Empty if the user may not see it.
fn program_or_url(agent: &Agent) -> &str {
    agent.configuration().map_or("", |agent| agent.card_url.as_ref().unwrap_or(&agent.executable_path))
}

/// Prints all fields of an agent that are not empty, the number of running and queued executions, and the reason if new
/// ones are held back. With `--json`, prints only the agent. Fails if `name` matches no agent or several.
async fn show(client: &Client, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/agents/{}", listing::agent(client, name).await?.id());
    let answer = client.get(&path).await?;
    if client.json {
        return answer.print();
    }
    for (name, value) in answer.read::<Map<String, Value>>()? {
        let value = one_line(&value);
        if !value.is_empty() {
            output::print_line(&format!("{name:<27}{value}"))?;
        }
    }
    let status: AgentStatus = client.get(&format!("{path}/status")).await?.read()?;
    output::print_line(&format!("{:<27}{} running, {} queued", "now", status.running, status.queue_length))?;
    if let Some(why) = status.held_back {
        output::print_line(&format!("{:<27}{why}", "held back"))?;
    }
    let isolation = status.isolation.unwrap_or_default();
    for (name, texts) in [("enforced", isolation.enforced), ("not enforced", isolation.not_enforced)] {
        for text in texts {
            output::print_line(&format!("{name:<27}{text}"))?;
        }
    }
    Ok(())
}

/// Returns a value on one line, or an empty text for null. Line breaks are shown as `\n`. Lists are joined with spaces;
/// items that are empty or contain spaces or line breaks are quoted. Objects are shown as `name=value`, without empty
/// fields.
fn one_line(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('\n', "\\n"),
        Value::Array(items) => {
            let quoted = |item: &Value| match item {
                Value::String(text) if text.contains([' ', '\n']) || text.is_empty() => item.to_string(),
                item => one_line(item),
            };
            items.iter().map(quoted).collect::<Vec<_>>().join(" ")
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| (name, one_line(value))).filter(|(_, value)| !value.is_empty());
            fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        value => value.to_string(),
    }
}

/// Adds an agent from a file and flags. Prints one line with its id, its program or card URL, and its access, or with
/// `--json` the response of the server. Fails with a usage error if neither a file nor flags are given. Also fails if
/// the file or a flag is invalid, or if the server rejects the agent.
async fn add(global: &GlobalOptions, new: &AddAgentArgs) -> anyhow::Result<()> {
    let fields = fields(new)?;
    if fields.is_empty() {
        let message =
            "nothing to add: give --preset, --executable, --card-url or --file; `adjutant agents detect` finds agents";
        return Err(ExitError::new(ExitStatus::Usage, message).into());
    }
    let answer = Client::connect(global).await?.post("/api/agents", &fields).await?;
    answer.show(|agent: Agent| {
        output::print_line(&format!(
            "Added '{}' ({}, {})",
            agent.id(),
            program_or_url(&agent),
            agent.summary().access_type
        ))
    })
}

/// Returns the fields of the file, overridden by the flags. Variables are merged by name; other lists replace those of
/// the file. The card token becomes a bearer token.
///
/// The working directory becomes absolute, and so does a program with a `/` that does not start with `/` or `~`. Paths
/// in the file do not change. Empty without a file and flags. Fails if the file, a path or an `--env` is not valid.
fn fields(new: &AddAgentArgs) -> anyhow::Result<Map<String, Value>> {
    let mut fields = new.file.as_deref().map(from_file).transpose()?.unwrap_or_default();
    let executable = new.executable.as_deref().map(|program| {
        // The server may run in another directory.
        let relative = program.contains('/') && !program.starts_with(['/', '~']);
        if relative { absolute(Path::new(program)) } else { Ok(program.to_owned()) }
    });
    let texts = [
        ("preset", new.preset.clone()),
        ("id", new.id.clone()),
        ("name", new.name.clone()),
        ("executable_path", executable.transpose()?),
        ("card_url", new.card_url.clone()),
        ("input_pattern", new.input.clone()),
        ("output_pattern", new.output.clone()),
        ("access_type", new.access.clone()),
        ("working_directory", new.cwd.as_deref().map(absolute).transpose()?),
    ];
    for (name, value) in texts {
        fields.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    if let Some(token) = &new.card_token {
        fields.insert("card_auth".to_owned(), json!({"type": "bearer_token", "token": token}));
    }
    fields.extend(new.timeout.map(|seconds| ("timeout".to_owned(), json!(seconds))));
    for (name, list) in [("args", &new.args), ("allow", &new.allow)] {
        if !list.is_empty() {
            fields.insert(name.to_owned(), json!(list));
        }
    }
    if !new.env.is_empty() {
        let mut envs = fields.get("envs").and_then(Value::as_object).cloned().unwrap_or_default();
        for given in &new.env {
            let (name, value) = split_pair("--env", given)?;
            envs.insert(name.to_owned(), value.into());
        }
        fields.insert("envs".to_owned(), envs.into());
    }
    Ok(fields)
}

/// Returns the path relative to the current directory as an absolute path. The path need not exist.
fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("{} is not a valid path", path.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

/// Returns the fields of one agent, at the top level or in the only `[[agents]]` entry. A text that starts with `{` is
/// JSON, any other is TOML. `-` reads standard input. Fails if the file cannot be read or parsed, or if `agents` is
/// beside other fields or does not have exactly one entry.
fn from_file(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let wrong = |why: String| ExitError::new(ExitStatus::Usage, format!("{} is not an agent: {why}", file.display()));
    let content = if file == Path::new("-") {
        let mut content = String::new();
        std::io::stdin().read_to_string(&mut content).context("failed to read standard input")?;
        content
    } else {
        std::fs::read_to_string(file).map_err(|error| read_error(file, &error))?
    };
    let json = content.trim_start().starts_with('{');
    let fields: Map<String, Value> = if json {
        serde_json::from_str(&content).map_err(|error| wrong(error.to_string()))?
    } else {
        toml::from_str(&content).map_err(|error| wrong(error.to_string()))?
    };
    match fields.get("agents").and_then(Value::as_array).map(Vec::as_slice) {
        None => Ok(fields),
        Some([Value::Object(only)]) if fields.len() == 1 => Ok(only.clone()),
        Some(_) => Err(wrong("the file must contain exactly one agent and nothing else".to_owned()).into()),
    }
}

/// Removes agents after a confirmation, unless `yes` is set. Fails and removes nothing if a name cannot be resolved or
/// the removal is not confirmed. Names of the same agent count once. Stops at the first request that fails; the agents
/// before it stay removed, and nothing is printed. Otherwise prints one line with all ids, or nothing with `--json`.
async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let known = listing::agents(client).await?;
    let agents = listing::resolve_each(names, async |name| listing::find_agent(&known, name).cloned()).await?;
    let named = agents.iter().map(|agent| format!("'{}'", agent.id())).collect::<Vec<_>>().join(", ");
    output::confirm(&format!("Remove {named}?"), yes)?;
    for agent in &agents {
        client.delete(&format!("/api/agents/{}", agent.id())).await?;
    }
    if client.json { Ok(()) } else { output::print_line(&format!("Removed {named}; past executions are kept")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_on_one_line() {
        for (value, line) in [
            (json!(["-c", "echo a\nb", ""]), r#"-c "echo a\nb" """#),
            (json!({"A": "env:A", "B": null}), "A=env:A"),
            (json!(null), ""),
            (json!(1800), "1800"),
            (json!("two\nlines"), "two\\nlines"),
        ] {
            assert_eq!(one_line(&value), line);
        }
    }
}
