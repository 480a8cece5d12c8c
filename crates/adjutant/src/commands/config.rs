//! `adjutant config`: write, check and show the configuration.

use std::io::Write;

use anyhow::Context;
use assistant::models::Choice;
use model::agent::{Agent, Endpoint};
use model::schedule::Settings;
use scheduler::Checked;
use serde_json::{Map, json};
use tools::foreign::{self, Transport};

use crate::cli::{ConfigCommand, Global};
use crate::config::a2a;
use crate::config::mcp_servers::{self, KEYS, Key, Of};
use crate::config::notify;
use crate::config::settings::{Kind, SETTINGS, Setting};
use crate::config::tables::Entry;
use crate::config::{Config, Layers, Value, models, secrets, user_config_file};
use crate::exit::{Code, Exit};
use crate::output;

pub(crate) fn run(global: &Global, command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Init => init(global),
        ConfigCommand::Check => check(global),
        ConfigCommand::Show => show(global),
    }
}

fn init(global: &Global) -> anyhow::Result<()> {
    let file = global.config.clone().unwrap_or_else(user_config_file);
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    }
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&file);
    let mut out = created.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Exit::new(Code::Refused, format!("{} exists already and is left as it is", file.display()))
        }
        _ => Exit::new(Code::Failed, format!("failed to create {}: {error}", file.display())),
    })?;
    out.write_all(template().as_bytes()).with_context(|| format!("failed to write {}", file.display()))?;
    output::note(&format!("wrote {}", file.display()));
    Ok(())
}

/// Every setting with its default, as comments: the file changes nothing until a line is uncommented.
pub(crate) fn template() -> String {
    let mut text = String::from("# Configuration of adjutant. Every line below shows a default or an example.\n");
    let mut section = "";
    for setting in SETTINGS {
        let (of, key) = setting.name.split_once('.').unwrap_or(("", setting.name));
        if of != section {
            text.push_str(&format!("\n[{of}]\n"));
            section = of;
        }
        text.push_str(&format!("# {}\n# {key} = {}\n", setting.about, setting.example));
        if setting.name == "a2a.allow_private_webhooks" {
            text.push_str(ASSISTANT);
        }
    }
    text.push_str("\n# MCP servers whose tools the assistant uses, each a program or an address.\n# [[mcp_servers]]\n");
    for Key { name, about, example, .. } in KEYS.iter().filter(|key| key.of != Of::Url) {
        text.push_str(&format!("# {about}\n# {name} = {example}\n"));
    }
    text.push_str("\n# [[mcp_servers]]\n# name = \"search\"\n");
    for Key { name, about, example, .. } in KEYS.iter().filter(|key| key.of == Of::Url) {
        text.push_str(&format!("# {about}\n# {name} = {example}\n"));
    }
    text.push_str(AGENTS);
    text.push_str(SCHEDULES);
    text.push_str("\n# Where users are told of reminders and of what became of runs, besides the product itself.\n");
    let kinds = [("team", "webhook", notify::Of::Webhook), ("desk", "command", notify::Of::Command)];
    for (name, kind, of) in kinds.into_iter().chain([("mail", "email", notify::Of::Email)]) {
        text.push_str(&format!("# [[notify]]\n# name = \"{name}\"\n# type = \"{kind}\"\n"));
        // What every channel may have is said once.
        let also = |key: &&notify::Key| {
            key.of == notify::Of::Every && kind == "webhook" && !["name", "type"].contains(&key.name)
        };
        for key in notify::KEYS.iter().filter(|key| key.of == of || also(key)) {
            text.push_str(&format!("# {}\n# {} = {}\n", key.about, key.name, key.example));
        }
        text.push('\n');
    }
    text
}

/// How the assistant is offered: more than a setting can hold.
const ASSISTANT: &str = r#"# The rest says how the assistant is offered to other programs; `a2a` of an agent says the same of that agent.
# enabled = true
# transports = ["json_rpc", "http_json", "grpc"]
# Without it, the tokens of [auth]. bearer_token, api_key, jwt or none.
# auth = { type = "bearer_token", token = "env:A2A_TOKEN", user = "7d9f1a52-3c1e-4b7a-9d42-5f0e6f1c2b3a" }
# A caller; server.rate_limit_per_minute where it is not given.
# rate = { per_minute = 60, burst = 10 }
# What is not listed is refused.
# capabilities = { supported_content_types = ["text/plain"], max_input_size = 10000 }
"#;

/// Two of very many ways to write an agent down.
const AGENTS: &str = r#"
# Programs that `adjutant run` runs: `adjutant agents detect` finds those that are installed.
# [[agents]]
# id = "codex"
# One that adjutant knows; `adjutant agents presets` lists them.
# preset = "codex"
# Where it works.
# working_directory = "/home/me/project"
# read-only, or read-write: then it runs alone.
# access_type = "read-write"
# Who may run it: ids of users, or "*". Administrators always may.
# allow = ["*"]
# How other programs reach it, by the Agent2Agent protocol.
# a2a = { transports = ["json_rpc", "http_json"], rate = { per_minute = 60, burst = 10 } }

# [[agents]]
# id = "shout"
# Any other program; {{input}} is what it is asked.
# executable_path = "tr"
# args = ["a-z", "A-Z"]
# stdin, file, args or json-rpc.
# input_pattern = "stdin"
# stdout, file or json-rpc.
# output_pattern = "stdout"
# Variables; a secret only as "env:NAME" or "file:PATH".
# envs = { LANG = "C" }
# In seconds.
# timeout = 1800
"#;

const SCHEDULES: &str = r#"
# When agents are run by themselves.
# [[schedules]]
# name = "tidy"
# agent_id = "codex"
# Minute, hour, day, month, weekday. Instead of it: every, a length such as 90m, or at, a time.
# cron_expression = "0 17 * * FRI"
# assistant.time_zone where it is not given.
# time_zone = "Europe/Berlin"
# `input` is what the agent is asked; the rest are parameters of the run.
# input_parameters = { input = "Tidy the changelog." }
# While the last run goes on: skip, queue_one, queue_all, cancel or allow.
# overlap = "skip"
# Of runs whose time has passed while adjutant was not there: none, once or all are made up for,
# missed = "once"
# if they are no later than this.
# missed_window = "1d"
# Put each run off by up to so long.
# jitter = "5m"
# Failures in a row after which it is paused.
# pause_after_failures = 3
"#;

fn check(global: &Global) -> anyhow::Result<()> {
    match Config::load(global, None) {
        Ok(config) if global.json => output::say(&json!({"valid": true, "file": config.layers.file}).to_string()),
        Ok(config) => match &config.layers.file {
            Some(file) => output::say(&format!("{} is valid", file.display())),
            None => output::say("no configuration file; the defaults are valid"),
        },
        Err(mistakes) => {
            if global.json {
                let list: Vec<_> = mistakes
                    .iter()
                    .map(|mistake| json!({"origin": mistake.origin.to_string(), "message": mistake.message}))
                    .collect();
                output::say(&json!({"valid": false, "errors": list}).to_string())?;
            } else {
                mistakes.iter().try_for_each(|mistake| output::say(&mistake.to_string()))?;
            }
            Err(Exit::new(Code::Usage, format!("{} mistakes in the configuration", mistakes.len())).into())
        }
    }
}

fn show(global: &Global) -> anyhow::Result<()> {
    let config = super::load(global, None)?;
    if global.json {
        let values: Map<_, _> = SETTINGS
            .iter()
            .map(|setting| {
                let (value, origin) = shown(setting, &config.layers);
                (setting.name.to_owned(), json!({"value": value, "origin": origin}))
            })
            .collect();
        let models: Vec<_> = (0..config.models.len()).map(|index| model(&config, index)).collect();
        let servers: Vec<_> = config.layers.mcp_servers.iter().map(|entry| server(&config, entry)).collect();
        let agents: Vec<_> = agents(&config).map(|(agent, origin)| agent_json(agent, &origin)).collect();
        let schedules: Vec<_> = schedules(&config)
            .map(|(schedule, origin)| json!({"settings": schedule.settings, "enabled": schedule.enabled, "origin": origin}))
            .collect();
        let all = json!({
            "data_dir": config.data_dir, "settings": values, "models": models, "mcp_servers": servers, "agents": agents,
            "schedules": schedules, "a2a": config.server.a2a.assistant,
            "notify": config.layers.notify.iter().map(|entry| channel(&config, entry)).collect::<Vec<_>>(),
        });
        return output::say(&all.to_string());
    }
    let mut rows = vec![vec!["data_dir".to_owned(), config.data_dir.display().to_string(), String::new()]];
    rows.extend(SETTINGS.iter().map(|setting| {
        let (value, origin) = shown(setting, &config.layers);
        vec![setting.name.to_owned(), value.map(|value| plain(&value)).unwrap_or_default(), origin]
    }));
    for (index, (choice, source)) in config.models.iter().zip(&config.model_sources).enumerate() {
        let mut value = choice.label();
        if let Some(address) = models::address_of(choice) {
            value.push_str(&format!(" at {address}, {}", key(choice, source.key.as_deref())));
        }
        rows.push(vec![format!("models[{}]", index + 1), value, source.origin.to_string()]);
    }
    for entry in &config.layers.mcp_servers {
        let value = enabled(&config, entry).map_or_else(|| "off: enabled is false".to_owned(), mcp_servers::described);
        rows.push(vec![format!("mcp_servers[{}]", entry.name()), value, entry.origin.to_string()]);
    }
    for entry in &config.layers.notify {
        let value = channel_of(&config, entry).map_or_else(|| "off: enabled is false".to_owned(), notify::described);
        rows.push(vec![format!("notify[{}]", entry.name()), value, entry.origin.to_string()]);
    }
    for (agent, origin) in agents(&config) {
        rows.push(vec![format!("agents[{}]", agent.id), described(agent), origin]);
    }
    if let Some(entry) = &config.layers.a2a {
        let value = a2a::described(&config.server.a2a.assistant);
        rows.push(vec!["a2a (assistant)".to_owned(), value, entry.origin.to_string()]);
    }
    for (schedule, origin) in schedules(&config) {
        let Settings { name, agent_id, cron_expression, every, at, time_zone, .. } = &schedule.settings;
        let when = match (cron_expression, every, at) {
            (Some(expression), ..) => format!("{expression} in {time_zone}"),
            (_, Some(every), _) => format!("every {every}"),
            (.., at) => at.map(|at| format!("at {at}")).unwrap_or_default(),
        };
        rows.push(vec![format!("schedules[{name}]"), format!("{agent_id}, {when}"), origin]);
    }
    output::table(&["SETTING", "VALUE", "FROM"], &rows)
}

/// The schedules of the file, each with where it stands.
fn schedules(config: &Config) -> impl Iterator<Item = (&Checked, String)> {
    config.schedules.iter().zip(&config.layers.schedules).map(|(schedule, entry)| (schedule, entry.origin.to_string()))
}

/// The agents of the file, each with where it stands.
fn agents(config: &Config) -> impl Iterator<Item = (&Agent, String)> {
    config.agents.iter().zip(&config.layers.agents).map(|(agent, entry)| (agent, entry.origin.to_string()))
}

/// How an agent is run, and its variables as far as they are references.
fn described(agent: &Agent) -> String {
    let place = agent.card_url.as_ref().unwrap_or(&agent.executable_path);
    let command: Vec<_> = std::iter::once(place).chain(&agent.args).map(String::as_str).collect();
    let mut line = format!("{}, {}", command.join(" "), agent.access_type);
    if !agent.enabled {
        line.push_str(", off: enabled is false");
    }
    if agent.a2a != Endpoint::default() {
        line.push_str(&format!(", by A2A {}", a2a::described(&agent.a2a)));
    }
    let variables: Vec<_> = agent.envs.iter().map(|(name, value)| format!("{name} {}", reference(value))).collect();
    if variables.is_empty() { line } else { format!("{line}, with {}", variables.join(", ")) }
}

fn reference(value: &str) -> &str {
    if secrets::is_reference(value) { value } else { "set" }
}

fn agent_json(agent: &Agent, origin: &str) -> serde_json::Value {
    let envs: Map<_, _> = agent.envs.iter().map(|(name, value)| (name.clone(), json!(reference(value)))).collect();
    json!({
        "id": agent.id,
        "name": agent.name,
        "enabled": agent.enabled,
        "executable_path": agent.executable_path,
        "card_url": agent.card_url,
        "card_auth": agent.card_auth,
        "args": agent.args,
        "access_type": agent.access_type,
        "envs": envs,
        "a2a": agent.a2a,
        "origin": origin,
    })
}

fn model(config: &Config, index: usize) -> serde_json::Value {
    let (choice, source) = (&config.models[index], &config.model_sources[index]);
    let headers: Vec<_> = choice.headers.iter().map(|(name, _)| name).collect();
    json!({
        "label": choice.label(),
        "address": models::address_of(choice),
        "key": source.key,
        "headers": headers,
        "temperature": choice.temperature,
        "origin": source.origin.to_string(),
    })
}

/// Of variables and headers only the names: their values may be secrets.
fn server(config: &Config, entry: &Entry) -> serde_json::Value {
    let settings = enabled(config, entry);
    let (of, pairs) = match settings.map(|settings| &settings.transport) {
        Some(Transport::Child { variables, .. }) => ("env", variables.as_slice()),
        Some(Transport::Http { headers, .. }) => ("headers", headers.as_slice()),
        None => ("env", &[][..]),
    };
    let names: Vec<_> = pairs.iter().map(|(name, _)| name).collect();
    json!({
        "name": entry.name(),
        "enabled": entry.is_enabled(),
        "is": settings.map(mcp_servers::described),
        of: names,
        "origin": entry.origin.to_string(),
    })
}

/// Of its address only what is no secret, of its secret only where it is kept.
fn channel(config: &Config, entry: &Entry) -> serde_json::Value {
    let channel = channel_of(config, entry);
    json!({
        "name": entry.name(),
        "type": entry.text("type"),
        "enabled": entry.is_enabled(),
        "is": channel.map(notify::described),
        "secret": entry.text("secret"),
        "kinds": entry.list("kinds"),
        "users": entry.list("users"),
        "origin": entry.origin.to_string(),
    })
}

fn channel_of<'a>(config: &'a Config, entry: &Entry) -> Option<&'a ::notify::Channel> {
    config.notify.channels.iter().find(|channel| entry.is_enabled() && channel.name == entry.name())
}

fn enabled<'a>(config: &'a Config, entry: &Entry) -> Option<&'a foreign::Settings> {
    config.mcp_servers.iter().find(|settings| entry.is_enabled() && settings.name == entry.name())
}

fn key(choice: &Choice, kept: Option<&str>) -> String {
    match (kept, &choice.key) {
        (Some(reference), _) => format!("key {reference}"),
        (None, Some(_)) => "key set".to_owned(),
        (None, None) => "no key".to_owned(),
    }
}

/// The value in force and its origin; of a secret only where it is kept.
fn shown(setting: &Setting, layers: &Layers) -> (Option<serde_json::Value>, String) {
    let Some((value, origin)) = layers.values.get(setting.name) else {
        let default = match setting.kind {
            Kind::Text("") | Kind::Secret => None,
            Kind::Text(text) | Kind::Decimal(text) => Some(json!(text)),
            Kind::Number(number) => Some(json!(number)),
            Kind::Flag(flag) => Some(json!(flag)),
            Kind::List(list) => Some(json!(list)),
            Kind::Headers => Some(json!([])),
        };
        return (default, "default".to_owned());
    };
    let value = match value {
        Value::Text(text)
            if setting.kind == Kind::Secret && !text.starts_with("env:") && !text.starts_with("file:") =>
        {
            json!(model::redact::redact(text))
        }
        Value::Text(text) => json!(text),
        Value::Number(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::List(list) if setting.kind == Kind::Headers => {
            json!(list.iter().map(|entry| secrets::shown_header(entry)).collect::<Vec<_>>())
        }
        Value::List(list) => json!(list),
    };
    (Some(value), origin.to_string())
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
