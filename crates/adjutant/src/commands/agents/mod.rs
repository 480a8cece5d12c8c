//! `adjutant agents`: list, show, add, rm, check, detect, presets.

pub(in crate::commands) mod check;
pub(in crate::commands) mod presets;

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::listing::{self, pair, text};
use crate::cli::{Agents, Global, NewAgent};
use crate::client::Client;
use crate::exit::{Code, Exit};
use crate::output;

pub(crate) async fn run(global: &Global, command: Agents) -> anyhow::Result<()> {
    match command {
        Agents::List { quiet } => list(&Client::connect(global).await?, global, quiet).await,
        Agents::Show { agent } => show(&Client::connect(global).await?, global, &agent).await,
        Agents::Add(new) => add(global, &new).await,
        Agents::Rm { agents } => remove(&Client::connect(global).await?, global, &agents).await,
        Agents::Check { agents } => check::run(global, &agents).await,
        Agents::Detect { quiet } => presets::detect(global, quiet),
        Agents::Presets { quiet } => presets::list(global, quiet),
    }
}

async fn list(client: &Client, global: &Global, quiet: bool) -> anyhow::Result<()> {
    let answer = client.get("/api/agents").await?;
    if global.json {
        return output::say(&answer.text());
    }
    let answer = answer.json()?;
    let agents = answer["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
    if quiet {
        return agents.iter().try_for_each(|agent| output::say(text(agent, "id")));
    }
    if agents.iter().all(|agent| agent["source"] == "built_in") {
        output::note("no agents of others; `adjutant agents detect` finds some");
    }
    let rows: Vec<_> = agents.iter().map(row).collect();
    output::table(&["ID", "NAME", "STATE", "ACCESS", "MODE", "PROGRAM"], &rows)
}

fn row(agent: &Value) -> Vec<String> {
    let state = if agent["enabled"] == false { "disabled" } else { "enabled" };
    let mut row: Vec<_> = ["id", "name"].map(|field| text(agent, field).to_owned()).into();
    row.push(state.to_owned());
    row.extend(["access_type", "mode"].map(|field| text(agent, field).to_owned()));
    row.push(place(agent).to_owned());
    if agent["source"] == "built_in" {
        row.pop();
        row.push("built in".to_owned());
    }
    row
}

/// The program, or where the card of an agent elsewhere is.
fn place(agent: &Value) -> &str {
    agent["card_url"].as_str().unwrap_or_else(|| text(agent, "executable_path"))
}

async fn show(client: &Client, global: &Global, name: &str) -> anyhow::Result<()> {
    let agent = listing::agent(client, name).await?;
    let path = format!("/api/agents/{}", text(&agent, "id"));
    let answer = client.get(&path).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let agent = answer.json()?;
    for (name, value) in agent.as_object().into_iter().flatten() {
        let value = shown(value);
        if !value.is_empty() {
            output::say(&format!("{name:<27}{value}"))?;
        }
    }
    let status = client.get(&format!("{path}/status")).await?.json()?;
    let running = shown(&status["running"]);
    let waiting = shown(&status["queue_length"]);
    output::say(&format!("{:<27}{running} running, {waiting} waiting", "now"))?;
    if let Some(why) = status["held_back"].as_str() {
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
    let client = Client::connect(global).await?;
    let answer = client.post("/api/agents", &Value::Object(fields)).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let agent = answer.json()?;
    let id = text(&agent, "id");
    let access = text(&agent, "access_type");
    output::say(&format!("Added '{id}' ({}, {access})", place(&agent)))
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
        std::fs::read_to_string(file).map_err(|error| {
            let code = if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Failed };
            Exit::new(code, format!("failed to read {}: {error}", file.display()))
        })?
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

async fn remove(client: &Client, global: &Global, names: &[String]) -> anyhow::Result<()> {
    let answer = client.get("/api/agents").await?.json()?;
    let agents = answer["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut ids: Vec<String> = Vec::new();
    for name in names {
        let id = text(&listing::agent_of(agents, name)?, "id").to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let named = ids.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(", ");
    output::confirm(&format!("Remove {named}?"), global.yes)?;
    for id in &ids {
        client.send(Method::DELETE, &format!("/api/agents/{id}"), None).await?;
    }
    if global.json { Ok(()) } else { output::say(&format!("Removed {named}; what was done stays on record")) }
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
