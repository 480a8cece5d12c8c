//! `adjutant config`: write, check and show the configuration.

use std::io::Write;

use anyhow::Context;
use model::agent::{Agent, Endpoint};
use model::schedule::Settings;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{Location, Store};
use tools::foreign::Transport;

use super::listing;
use crate::cli::{ConfigCommand, Global};
use crate::client::Client;
use crate::config::document::{AGENTS, MCP_SERVERS, NOTIFY, SCHEDULES, Table};
use crate::config::mcp_servers::{self, McpServer};
use crate::config::notify::{self, ChannelEntry};
use crate::config::section::{Key, Section};
use crate::config::settings::SECTIONS;
use crate::config::{Config, Document, Mistake, drafts, models, user_config_file};
use crate::exit::{Code, Exit};
use crate::{output, wire};

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

/// Returns every setting with its default, as comments: the file changes nothing until a line is uncommented.
pub(crate) fn template() -> String {
    let mut text = String::from("# Configuration of adjutant. Every line below shows a default or an example.\n");
    let keys = |keys: &[Key], pick: &dyn Fn(&Key) -> bool| {
        keys.iter().filter(|key| pick(key)).map(Key::template).collect::<String>()
    };
    for (section, settings) in SECTIONS {
        text.push_str(&format!("\n[{section}]\n{}", keys(settings, &|_| true)));
        if *section == "a2a" {
            text.push_str(include_str!("../config/template/a2a.toml"));
        }
    }
    text.push_str("\n# MCP servers whose tools the assistant uses, each a program or an address.\n# [[mcp_servers]]\n");
    text.push_str(&keys(McpServer::KEYS, &|key| key.of != "Url"));
    text.push_str("\n# [[mcp_servers]]\n# name = \"search\"\n");
    text.push_str(&keys(McpServer::KEYS, &|key| key.of == "Url"));
    text.push_str(concat!("\n", include_str!("../config/template/agents.toml")));
    text.push_str(concat!("\n", include_str!("../config/template/schedules.toml")));
    text.push_str("\n# Where users are told of reminders and of what became of runs, besides the product itself.\n");
    for (name, kind) in [("team", "Webhook"), ("desk", "Command"), ("mail", "Email")] {
        text.push_str(&format!("# [[notify]]\n# name = \"{name}\"\n# type = \"{}\"\n", kind.to_lowercase()));
        // The keys of every channel are explained once.
        let of_all = |key: &Key| key.of.is_empty() && kind == "Webhook" && !["name", "type"].contains(&key.name);
        text.push_str(&keys(ChannelEntry::KEYS, &|key| key.of == kind || of_all(key)));
        text.push('\n');
    }
    text
}

fn check(global: &Global) -> anyhow::Result<()> {
    let (config, mut mistakes) = Config::read(global, None, std::env::vars_os());
    if let Some(config) = &config {
        match wire::small_runtime()?.block_on(unknown_agents(global, config)) {
            Ok(unknown) => mistakes.extend(unknown),
            Err(error) => output::note(&format!("the agents of the database were not looked at: {error:#}")),
        }
        mistakes.sort_by(|a, b| a.origin.cmp(&b.origin));
    }
    let file = config.and_then(|config| config.document.file);
    if mistakes.is_empty() {
        return output::say(&match file {
            _ if global.json => json!({"valid": true, "file": file}).to_string(),
            Some(file) => format!("{} is valid", file.display()),
            None => "no configuration file; the defaults are valid".to_owned(),
        });
    }
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

/// Returns a mistake for each schedule whose agent is neither in the file nor in the database.
pub(crate) async fn unknown_agents(global: &Global, config: &Config) -> anyhow::Result<Vec<Mistake>> {
    match config.has_foreign_agents() {
        true => Ok(config.unknown_among(&registered(global, config).await?)),
        false => Ok(Vec::new()),
    }
}

/// Returns the ids of the agents that were registered over the API. A server that runs is asked; else the database is read.
async fn registered(global: &Global, config: &Config) -> anyhow::Result<Vec<String>> {
    let location = config.location();
    if matches!(&location, Location::Sqlite(file) if !file.exists()) {
        return Ok(Vec::new());
    }
    match wire::lock(&config.data_dir).await {
        Ok(_lock) => {
            let store = Store::open(&location, config.settings.database.durability).await?;
            let agents = store::agents::all(&mut store.reader().await?).await?;
            Ok(agents.into_iter().map(|kept| kept.agent.id).collect())
        }
        Err(store::Error::InUse { at: Some(_), .. }) => {
            let agents = listing::agents(&Client::connect(global).await?).await?;
            Ok(agents.iter().map(|agent| agent.id().to_owned()).collect())
        }
        Err(error) => Err(error.into()),
    }
}

/// One line of `config show`. Programs get `json` and the origin.
#[derive(Serialize)]
struct Row {
    #[serde(skip)]
    setting: String,
    #[serde(skip)]
    value: String,
    #[serde(flatten)]
    json: Value,
    origin: String,
}

fn show(global: &Global) -> anyhow::Result<()> {
    let config = super::load(global, None)?;
    let groups = [
        ("models", models(&config)),
        ("mcp_servers", servers(&config)),
        ("notify", channels(&config)),
        ("agents", agents(&config)),
        ("schedules", schedules(&config)),
    ];
    let assistant = &config.server.a2a.assistant;
    if global.json {
        let settings: Map<_, _> = settings(&config.document)
            .map(|(name, value, origin)| (name, json!({"value": value, "origin": origin})))
            .collect();
        let all = [("data_dir", json!(config.data_dir)), ("settings", json!(settings)), ("a2a", json!(assistant))];
        let groups = groups.iter().map(|(group, rows)| (*group, json!(rows)));
        let all: Map<_, _> = all.into_iter().chain(groups).map(|(name, value)| (name.to_owned(), value)).collect();
        return output::say(&json!(all).to_string());
    }
    let mut rows = vec![vec!["data_dir".to_owned(), config.data_dir.display().to_string(), String::new()]];
    rows.extend(settings(&config.document).map(|(name, value, origin)| {
        let value = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        vec![name, value.unwrap_or_default(), origin]
    }));
    for row in groups.into_iter().flat_map(|(_, rows)| rows) {
        rows.push(vec![row.setting, row.value, row.origin]);
    }
    if let Some(table) = &config.document.endpoint {
        rows.push(vec!["a2a (assistant)".to_owned(), drafts::described(assistant), table.origin.to_string()]);
    }
    output::table(&["SETTING", "VALUE", "FROM"], &rows)
}

/// Returns every setting with the value in force and its origin; of a secret only where it is kept.
fn settings(document: &Document) -> impl Iterator<Item = (String, Option<Value>, String)> {
    SECTIONS.iter().flat_map(move |(section, keys)| {
        let table = document.section(section);
        keys.iter().map(move |key| {
            let (value, origin) = match table.fields.get(key.name) {
                Some(value) => ((key.shown)(value), table.origin_of(key.name).to_string()),
                None => (key.default(), "default".to_owned()),
            };
            (format!("{section}.{}", key.name), Some(value).filter(|value| !value.is_null()), origin)
        })
    })
}

fn models(config: &Config) -> Vec<Row> {
    let models = config.models.choices.iter().zip(&config.models.sources).enumerate();
    let row = |(index, (choice, source)): (usize, (&assistant::models::Choice, &models::Source))| {
        let address = models::address_of(choice);
        let key = match (&source.key, &choice.key) {
            (Some(reference), _) => format!("key {reference}"),
            (None, Some(_)) => "key set".to_owned(),
            (None, None) => "no key".to_owned(),
        };
        let label = choice.label();
        let headers: Vec<_> = choice.headers.iter().map(|(name, _)| name).collect();
        Row {
            setting: format!("models[{}]", index + 1),
            value: address.map_or_else(|| label.clone(), |address| format!("{label} at {address}, {key}")),
            origin: source.origin.to_string(),
            json: json!({
                "label": label, "address": address, "key": source.key, "headers": headers,
                "temperature": choice.temperature,
            }),
        }
    };
    models.map(row).collect()
}

/// Makes the row of an entry that may be left out. `described` is empty then.
fn entry(table: &Table, list: &str, described: Option<String>, more: Value) -> Row {
    let mut json = json!({"name": table.name(), "enabled": table.is_enabled(), "is": described});
    if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    Row {
        setting: format!("{list}[{}]", table.name()),
        value: described.unwrap_or_else(|| "off: enabled is false".to_owned()),
        origin: table.origin.to_string(),
        json,
    }
}

/// Of variables and headers only the names are shown: their values may be secrets.
fn servers(config: &Config) -> Vec<Row> {
    let row = |table: &Table| {
        let server = config.mcp_servers.iter().find(|server| table.is_enabled() && server.name == table.name());
        let (of, pairs) = match server.map(|server| &server.transport) {
            Some(Transport::Child { variables, .. }) => ("env", variables.as_slice()),
            Some(Transport::Http { headers, .. }) => ("headers", headers.as_slice()),
            None => ("env", &[][..]),
        };
        let names: Vec<_> = pairs.iter().map(|(name, _)| name).collect();
        entry(table, MCP_SERVERS.name, server.map(mcp_servers::described), json!({of: names}))
    };
    config.document.list(&MCP_SERVERS).iter().map(row).collect()
}

/// Of an address only what is no secret is shown, of a secret only where it is kept.
fn channels(config: &Config) -> Vec<Row> {
    let row = |table: &Table| {
        let channels = &config.notify.channels;
        let channel = channels.iter().find(|channel| table.is_enabled() && channel.name == table.name());
        let list = |key: &str| table.get(key).cloned().unwrap_or_else(|| json!([]));
        let more = json!({
            "type": table.text("type"), "secret": table.text("secret"), "kinds": list("kinds"), "users": list("users"),
        });
        entry(table, NOTIFY.name, channel.map(notify::described), more)
    };
    config.document.list(&NOTIFY).iter().map(row).collect()
}

fn agents(config: &Config) -> Vec<Row> {
    let row = |(agent, table): (&Agent, &Table)| {
        let envs = agent.envs.iter().map(|(name, value)| (name.clone(), json!(drafts::reference(value))));
        Row {
            setting: format!("agents[{}]", agent.id),
            value: described(agent),
            origin: table.origin.to_string(),
            json: json!({
                "id": agent.id, "name": agent.name, "enabled": agent.enabled, "executable_path": agent.executable_path,
                "card_url": agent.card_url, "card_auth": agent.card_auth, "args": agent.args,
                "access_type": agent.access_type, "envs": envs.collect::<Map<_, _>>(), "a2a": agent.a2a,
            }),
        }
    };
    config.agents.iter().zip(config.document.list(&AGENTS)).map(row).collect()
}

/// Describes how an agent is run, with its variables as far as they are references.
fn described(agent: &Agent) -> String {
    let place = agent.card_url.as_ref().unwrap_or(&agent.executable_path);
    let command: Vec<_> = std::iter::once(place).chain(&agent.args).map(String::as_str).collect();
    let mut line = format!("{}, {}", command.join(" "), agent.access_type);
    if !agent.enabled {
        line.push_str(", off: enabled is false");
    }
    if agent.a2a != Endpoint::default() {
        line.push_str(&format!(", by A2A {}", drafts::described(&agent.a2a)));
    }
    let variables = agent.envs.iter().map(|(name, value)| format!("{name} {}", drafts::reference(value)));
    let variables: Vec<_> = variables.collect();
    if variables.is_empty() { line } else { format!("{line}, with {}", variables.join(", ")) }
}

fn schedules(config: &Config) -> Vec<Row> {
    let row = |(schedule, table): (&scheduler::Checked, &Table)| {
        let Settings { name, agent_id, cron_expression, every, at, time_zone, .. } = &schedule.settings;
        let when = match (cron_expression, every, at) {
            (Some(expression), ..) => format!("{expression} in {time_zone}"),
            (_, Some(every), _) => format!("every {every}"),
            (.., at) => at.map(|at| format!("at {at}")).unwrap_or_default(),
        };
        Row {
            setting: format!("schedules[{name}]"),
            value: format!("{agent_id}, {when}"),
            origin: table.origin.to_string(),
            json: json!({"settings": schedule.settings, "enabled": schedule.enabled}),
        }
    };
    config.schedules.iter().zip(config.document.list(&SCHEDULES)).map(row).collect()
}
