//! `adjutant config`: writes, checks and shows the configuration.

use std::io::Write;

use anyhow::Context;
use model::agent::{Agent, Endpoint};
use model::schedule::ScheduleSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::{Location, Store};
use tools::mcp_client::McpTransport;

use super::listing;
use crate::cli::{ConfigCommand, GlobalOptions};
use crate::client::Client;
use crate::config::document::{AGENTS, ConfigTable, MCP_SERVERS, NOTIFY, SCHEDULES};
use crate::config::mcp_servers::{self, McpServer};
use crate::config::notify::{self, ChannelEntry};
use crate::config::section::{ConfigSection, SettingKey};
use crate::config::settings::SECTIONS;
use crate::config::{Config, ConfigDocument, ConfigMistake, drafts, models, user_config_file};
use crate::exit::{ExitError, ExitStatus};
use crate::target::{ConnectionTarget, find_local};
use crate::{output, wire};

/// Runs one subcommand. Fails if the subcommand fails.
pub(crate) fn run(global: &GlobalOptions, command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::Init => init(global),
        ConfigCommand::Check => check(global),
        ConfigCommand::Show => show(global),
    }
}

/// Writes the template to `--config`, or to the configuration file of the user, and prints a note with the path.
/// Creates the directory and its parents. Never overwrites: fails with [`ExitStatus::Refused`] if the file exists. Also
/// fails if the directory or file cannot be written.
fn init(global: &GlobalOptions) -> anyhow::Result<()> {
    let file = global.config.clone().unwrap_or_else(user_config_file);
    if let Some(dir) = file.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).with_context(|| format!("failed to create {}", dir.display()))?;
    }
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&file);
    let mut out = created.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            ExitError::new(ExitStatus::Refused, format!("{} already exists and was not changed", file.display()))
        }
        _ => ExitError::new(ExitStatus::Failed, format!("failed to create {}: {error}", file.display())),
    })?;
    out.write_all(template().as_bytes()).with_context(|| format!("failed to write {}", file.display()))?;
    output::note(&format!("wrote {}", file.display()));
    Ok(())
}

/// Returns the text of a new configuration file. It has every section, with each setting commented out at its example,
/// else its default. Commented examples of list entries follow. It has no effect until a line is uncommented.
pub(crate) fn template() -> String {
    let mut text = String::from("# Configuration of adjutant. Every line below shows a default or an example.\n");
    let lines = |keys: &[SettingKey], filter: &dyn Fn(&SettingKey) -> bool| {
        keys.iter().filter(|key| filter(key)).map(SettingKey::template).collect::<String>()
    };
    for (section, settings) in SECTIONS {
        text.push_str(&format!("\n[{section}]\n{}", lines(settings, &|_| true)));
        if *section == "a2a" {
            text.push_str(include_str!("../config/template/a2a.toml"));
        }
    }
    text.push_str("\n# MCP servers with tools for the assistant. Each is a program or a URL.\n# [[mcp_servers]]\n");
    text.push_str(&lines(McpServer::KEYS, &|key| key.entry_kind != "Url"));
    text.push_str("\n# [[mcp_servers]]\n# name = \"search\"\n");
    text.push_str(&lines(McpServer::KEYS, &|key| key.entry_kind == "Url"));
    text.push_str(concat!("\n", include_str!("../config/template/agents.toml")));
    text.push_str(concat!("\n", include_str!("../config/template/schedules.toml")));
    text.push_str("\n# Channels for notifications about reminders, executions and schedules.\n");
    for (name, kind) in [("team", "Webhook"), ("desk", "Command"), ("mail", "Email")] {
        text.push_str(&format!("# [[notify]]\n# name = \"{name}\"\n# type = \"{}\"\n", kind.to_lowercase()));
        // The common keys are explained once.
        let is_common =
            |key: &SettingKey| key.entry_kind.is_empty() && kind == "Webhook" && !["name", "type"].contains(&key.name);
        text.push_str(&lines(ChannelEntry::KEYS, &|key| key.entry_kind == kind || is_common(key)));
        text.push('\n');
    }
    text
}

/// Prints that the configuration is valid, or all mistakes, ordered by origin. With `--json`, prints one document.
/// Fails with a usage error if there are any mistakes. If the agents in the database cannot be read, prints a note and
/// does not check references to them.
fn check(global: &GlobalOptions) -> anyhow::Result<()> {
    let (config, mut mistakes) = Config::read(global, None, std::env::vars_os());
    if let Some(config) = &config {
        match wire::command_runtime()?.block_on(unknown_agents(global, config)) {
            Ok(unknown) => mistakes.extend(unknown),
            Err(error) => output::note(&format!("the agents in the database were not checked: {error:#}")),
        }
        mistakes.sort_by(|a, b| a.origin.cmp(&b.origin));
    }
    let file = config.and_then(|config| config.document.file);
    if mistakes.is_empty() {
        return output::print_line(&match file {
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
        output::print_line(&json!({"valid": false, "errors": list}).to_string())?;
    } else {
        mistakes.iter().try_for_each(|mistake| output::print_line(&mistake.to_string()))?;
    }
    Err(ExitError::new(
        ExitStatus::Usage,
        match mistakes.len() {
            1 => "1 mistake in the configuration".to_owned(),
            count => format!("{count} mistakes in the configuration"),
        },
    )
    .into())
}

/// Returns a mistake for each schedule with an agent that is neither in the file nor in the database. Does not read the
/// database if the file has all agents. Fails if the agents cannot be read.
pub(crate) async fn unknown_agents(global: &GlobalOptions, config: &Config) -> anyhow::Result<Vec<ConfigMistake>> {
    match config.has_external_agents() {
        true => Ok(config.unknown_among(&registered_agents(global, config).await?)),
        false => Ok(Vec::new()),
    }
}

/// Returns the ids of the agents in the database, or those that the server of the data directory lists to this user.
/// `--server` is used only if such a server runs. Empty if the SQLite file does not exist. Opening the database
/// migrates its schema if needed. Fails if the agents cannot be read, or if a process that serves no commands holds the
/// data directory for too long.
async fn registered_agents(global: &GlobalOptions, config: &Config) -> anyhow::Result<Vec<String>> {
    let location = config.location();
    if matches!(&location, Location::Sqlite(file) if !file.exists()) {
        return Ok(Vec::new());
    }
    match find_local(&config.data_dir).await? {
        ConnectionTarget::DataDir(_lock) => {
            let store = Store::open(&location, config.settings.database.durability).await?;
            let agents = store::agents::all(&mut store.reader().await?).await?;
            Ok(agents.into_iter().map(|row| row.agent.id).collect())
        }
        ConnectionTarget::Server(_) => {
            let agents = listing::agents(&Client::connect(global).await?).await?;
            Ok(agents.iter().map(|agent| agent.id().to_owned()).collect())
        }
    }
}

/// One line of `config show`. With `--json`, only `json` and the origin are printed.
#[derive(Serialize)]
struct ShowRow {
    #[serde(skip)]
    setting: String,
    #[serde(skip)]
    value: String,
    #[serde(flatten)]
    json: Value,
    origin: String,
}

/// Prints the data directory, every effective setting with its origin, the models and the entries of all lists. Also
/// prints the endpoint of the assistant if it is configured. With `--json`, prints one document, always with that
/// endpoint. Fails if the configuration is invalid.
fn show(global: &GlobalOptions) -> anyhow::Result<()> {
    let config = super::load_config(global, None)?;
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
        return output::print_line(&json!(all).to_string());
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
        rows.push(vec!["a2a (assistant)".to_owned(), drafts::describe_endpoint(assistant), table.origin.to_string()]);
    }
    output::print_table(&["SETTING", "VALUE", "FROM"], &rows)
}

/// Returns every setting as `section.key` with its effective value and origin, `default` if it is not set. The value is
/// none if there is no default. References are shown, secrets are hidden.
fn settings(document: &ConfigDocument) -> impl Iterator<Item = (String, Option<Value>, String)> {
    SECTIONS.iter().flat_map(move |(section, keys)| {
        let table = document.section(section);
        keys.iter().map(move |key| {
            let (value, origin) = match table.fields.get(key.name) {
                Some(value) => ((key.display_value)(value), table.origin_of(key.name).to_string()),
                None => (key.default(), "default".to_owned()),
            };
            (format!("{section}.{}", key.name), Some(value).filter(|value| !value.is_null()), origin)
        })
    })
}

/// Returns the rows of models, in the order in which they are tried. The key is shown as its reference, as "key set" or
/// as "no key". A model without an address shows its label only. Only the JSON contains the temperature and the names
/// of the headers.
fn models(config: &Config) -> Vec<ShowRow> {
    let models = config.models.configs.iter().zip(&config.models.sources).enumerate();
    let row = |(index, (model, source)): (usize, (&assistant::models::ModelConfig, &models::ModelSource))| {
        let address = models::address_of(model);
        let key = match (&source.key, &model.api_key) {
            (Some(reference), _) => format!("key {reference}"),
            (None, Some(_)) => "key set".to_owned(),
            (None, None) => "no key".to_owned(),
        };
        let label = model.label();
        let headers: Vec<_> = model.headers.iter().map(|(name, _)| name).collect();
        ShowRow {
            setting: format!("models[{}]", index + 1),
            value: address.map_or_else(|| label.clone(), |address| format!("{label} at {address}, {key}")),
            origin: source.origin.to_string(),
            json: json!({
                "label": label, "address": address, "key": source.key, "headers": headers,
                "temperature": model.temperature,
            }),
        }
    };
    models.map(row).collect()
}

/// Returns the row of an entry of `list`. `description` is none if the entry is disabled; the row shows that it is off
/// then. The fields of `more` are added to the JSON.
fn entry(table: &ConfigTable, list: &str, description: Option<String>, more: Value) -> ShowRow {
    let mut json = json!({"name": table.name(), "enabled": table.is_enabled(), "is": description});
    if let (Value::Object(json), Value::Object(more)) = (&mut json, more) {
        json.extend(more);
    }
    ShowRow {
        setting: format!("{list}[{}]", table.name()),
        value: description.unwrap_or_else(|| "off: enabled is false".to_owned()),
        origin: table.origin.to_string(),
        json,
    }
}

/// Returns the rows of MCP servers in the order of the file, also of disabled ones. Only the JSON contains the names of
/// variables or headers, without their values, which may be secrets. It has no names for a disabled server.
fn servers(config: &Config) -> Vec<ShowRow> {
    let row = |table: &ConfigTable| {
        let server = config.mcp_servers.iter().find(|server| table.is_enabled() && server.name == table.name());
        let (field, pairs) = match server.map(|server| &server.transport) {
            Some(McpTransport::Child { variables, .. }) => ("env", variables.as_slice()),
            Some(McpTransport::Http { headers, .. }) => ("headers", headers.as_slice()),
            None => ("env", &[][..]),
        };
        let names: Vec<_> = pairs.iter().map(|(name, _)| name).collect();
        entry(table, MCP_SERVERS.name, server.map(mcp_servers::describe), json!({field: names}))
    };
    config.document.list(&MCP_SERVERS).iter().map(row).collect()
}

/// Returns the rows of channels in the order of the file, also of disabled ones. Secrets are shown as references only,
/// and addresses without their secret parts.
fn channels(config: &Config) -> Vec<ShowRow> {
    let row = |table: &ConfigTable| {
        let channels = &config.notify.channels;
        let channel = channels.iter().find(|channel| table.is_enabled() && channel.name == table.name());
        let list = |key: &str| table.get(key).cloned().unwrap_or_else(|| json!([]));
        let more = json!({
            "type": table.text("type"), "secret": table.text("secret"), "kinds": list("kinds"), "users": list("users"),
        });
        entry(table, NOTIFY.name, channel.map(notify::describe), more)
    };
    config.document.list(&NOTIFY).iter().map(row).collect()
}

/// Returns the rows of the agents in the file, also of disabled ones. Values of variables are shown only if they are
/// references, otherwise as `set`. Arguments are shown unchanged. The configuration must be valid, because agents and
/// tables are matched by position.
fn agents(config: &Config) -> Vec<ShowRow> {
    let row = |(agent, table): (&Agent, &ConfigTable)| {
        let envs = agent.envs.iter().map(|(name, value)| (name.clone(), json!(drafts::reference_or_set(value))));
        ShowRow {
            setting: format!("agents[{}]", agent.id),
            value: describe_agent(agent),
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

/// Describes an agent: its program or card URL with arguments, its access and its variables. Adds `off` if it is
/// disabled, and its A2A endpoint if it is not the default. Values of variables are shown only if they are references,
/// otherwise as `set`.
fn describe_agent(agent: &Agent) -> String {
    let target = agent.card_url.as_ref().unwrap_or(&agent.executable_path);
    let command: Vec<_> = std::iter::once(target).chain(&agent.args).map(String::as_str).collect();
    let mut line = format!("{}, {}", command.join(" "), agent.access_type);
    if !agent.enabled {
        line.push_str(", off: enabled is false");
    }
    if agent.a2a != Endpoint::default() {
        line.push_str(&format!(", by A2A {}", drafts::describe_endpoint(&agent.a2a)));
    }
    let variables = agent.envs.iter().map(|(name, value)| format!("{name} {}", drafts::reference_or_set(value)));
    let variables: Vec<_> = variables.collect();
    if variables.is_empty() { line } else { format!("{line}, with {}", variables.join(", ")) }
}

/// Returns the rows of the schedules in the file, also of disabled ones: the agent, and the cron expression with its
/// time zone, the interval or the time. Only the JSON contains all settings and `enabled`. The configuration must be
/// valid, because schedules and tables are matched by position.
fn schedules(config: &Config) -> Vec<ShowRow> {
    let row = |(schedule, table): (&scheduler::CheckedSchedule, &ConfigTable)| {
        let ScheduleSettings { name, agent_id, cron_expression, every, at, time_zone, .. } = &schedule.settings;
        let when = match (cron_expression, every, at) {
            (Some(expression), ..) => format!("{expression} in {time_zone}"),
            (_, Some(every), _) => format!("every {every}"),
            (.., at) => at.map(|at| format!("at {at}")).unwrap_or_default(),
        };
        ShowRow {
            setting: format!("schedules[{name}]"),
            value: format!("{agent_id}, {when}"),
            origin: table.origin.to_string(),
            json: json!({"settings": schedule.settings, "enabled": schedule.enabled}),
        }
    };
    config.schedules.iter().zip(config.document.list(&SCHEDULES)).map(row).collect()
}
