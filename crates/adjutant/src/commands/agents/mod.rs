//! `adjutant agents`: list, show, add, rm, check, detect, presets.

pub(in crate::commands) mod check;
pub(in crate::commands) mod presets;

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use api::agents::{Agent, AgentStatus, Agents as Page, Source};
use serde_json::{Map, Value, json};

use super::listing::{self, pair};
use crate::cli::{Agents, Global, NewAgent};
use crate::client::Client;
use crate::exit::{Code, Exit, unreadable};
use crate::output;

pub(crate) async fn run(global: &Global, command: Agents) -> anyhow::Result<()> {
    match command {
        Agents::List { quiet } => list(&Client::connect(global).await?, quiet).await,
        Agents::Show { agent } => show(&Client::connect(global).await?, &agent).await,
        Agents::Add(new) => add(global, &new).await,
        Agents::Rm { agents } => remove(&Client::connect(global).await?, &agents, global.yes).await,
        Agents::Check { agents } => check::run(global, &agents).await,
        Agents::Detect { quiet } => presets::detect(global, quiet),
        Agents::Presets { quiet } => presets::list(global, quiet),
    }
}

async fn list(client: &Client, quiet: bool) -> anyhow::Result<()> {
    client.get("/api/agents").await?.show(|Page { agents, .. }| {
        if quiet {
            return agents.iter().try_for_each(|agent| output::say(agent.id()));
        }
        if agents.iter().all(|agent| agent.source() == Source::BuiltIn) {
            output::note("no agents of others; `adjutant agents detect` finds some");
        }
        let rows: Vec<_> = agents.iter().map(row).collect();
        output::table(&["ID", "NAME", "STATE", "ACCESS", "MODE", "PROGRAM"], &rows)
    })
}

fn row(agent: &Agent) -> Vec<String> {
    let summary = agent.summary();
    let state = if summary.enabled { "enabled" } else { "disabled" };
    let place = if summary.source == Source::BuiltIn { "built in" } else { place(agent) };
    vec![
        summary.id,
        summary.name,
        state.to_owned(),
        summary.access_type.to_string(),
        summary.mode.to_string(),
        place.to_owned(),
    ]
}

/// Returns the program, or the address of the card of a remote agent. Empty if the user may not see it.
fn place(agent: &Agent) -> &str {
    agent.configuration().map_or("", |agent| agent.card_url.as_ref().unwrap_or(&agent.executable_path))
}

async fn show(client: &Client, name: &str) -> anyhow::Result<()> {
    let path = format!("/api/agents/{}", listing::agent(client, name).await?.id());
    let answer = client.get(&path).await?;
    if client.json {
        return answer.print();
    }
    for (name, value) in answer.read::<Map<String, Value>>()? {
        let value = shown(&value);
        if !value.is_empty() {
            output::say(&format!("{name:<27}{value}"))?;
        }
    }
    let status: AgentStatus = client.get(&format!("{path}/status")).await?.read()?;
    output::say(&format!("{:<27}{} running, {} waiting", "now", status.running, status.queue_length))?;
    if let Some(why) = status.held_back {
        output::say(&format!("{:<27}{why}", "held back"))?;
    }
    Ok(())
}

/// A value on one line, empty where there is none.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('\n', "\\n"),
        Value::Array(items) => {
            let quoted = |item: &Value| match item {
                Value::String(text) if text.contains([' ', '\n']) || text.is_empty() => item.to_string(),
                item => shown(item),
            };
            items.iter().map(quoted).collect::<Vec<_>>().join(" ")
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name, shown(value))).filter(|(_, value)| !value.is_empty());
            fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        }
        value => value.to_string(),
    }
}

async fn add(global: &Global, new: &NewAgent) -> anyhow::Result<()> {
    let fields = fields(new)?;
    if fields.is_empty() {
        let message =
            "nothing to add: give --preset, --executable, --card-url or --file; `adjutant agents detect` finds some";
        return Err(Exit::new(Code::Usage, message).into());
    }
    let answer = Client::connect(global).await?.post("/api/agents", &fields).await?;
    answer.show(|agent: Agent| {
        output::say(&format!("Added '{}' ({}, {})", agent.id(), place(&agent), agent.summary().access_type))
    })
}

/// What the file says, and over it the flags.
fn fields(new: &NewAgent) -> anyhow::Result<Map<String, Value>> {
    let mut fields = new.file.as_deref().map(from_file).transpose()?.unwrap_or_default();
    let executable = new.executable.as_deref().map(|program| {
        // The server may run somewhere else.
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
            let (name, value) = pair("--env", given)?;
            envs.insert(name.to_owned(), value.into());
        }
        fields.insert("envs".to_owned(), envs.into());
    }
    Ok(fields)
}

fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))?;
    Ok(path.to_string_lossy().into_owned())
}

/// The fields of one agent: at the top, or in the only `[[agents]]` of a configuration.
fn from_file(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let wrong = |why: String| Exit::new(Code::Usage, format!("{} is no agent: {why}", file.display()));
    let content = if file == Path::new("-") {
        let mut content = String::new();
        std::io::stdin().read_to_string(&mut content).context("failed to read standard input")?;
        content
    } else {
        std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?
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
        Some(_) => Err(wrong("it must have one agent and nothing else".to_owned()).into()),
    }
}

async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let known = listing::agents(client).await?;
    let agents = listing::each(names, async |name| listing::agent_of(&known, name).cloned()).await?;
    let named = agents.iter().map(|agent| format!("'{}'", agent.id())).collect::<Vec<_>>().join(", ");
    output::confirm(&format!("Remove {named}?"), yes)?;
    for agent in &agents {
        client.delete(&format!("/api/agents/{}", agent.id())).await?;
    }
    if client.json { Ok(()) } else { output::say(&format!("Removed {named}; what was done stays on record")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_on_one_line() {
        for (value, line) in [
            (json!(["-c", "echo a\nb", ""]), r#"-c "echo a\nb" """#),
            (json!({"A": "env:A", "B": null}), "A=env:A"),
            (json!(null), ""),
            (json!(1800), "1800"),
            (json!("two\nlines"), "two\\nlines"),
        ] {
            assert_eq!(shown(&value), line);
        }
    }
}
