//! The configuration: defaults, then the file, then `ADJUTANT_A__B` in the environment, then flags.
//!
//! Every mistake is reported at once, each with its place and what to do about it. Secrets are references (`env:NAME`,
//! `file:PATH`); their values are looked up here and never shown.

mod address;
pub(crate) mod document;
pub(crate) mod drafts;
pub(crate) mod form;
pub(crate) mod mcp_servers;
pub(crate) mod models;
pub(crate) mod notify;
pub(crate) mod secrets;
pub(crate) mod section;
pub(crate) mod settings;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use model::agent::Source;
use secrecy::{ExposeSecret, SecretString};
use server::settings::{A2a, Auth, Rate};
use store::Location;
use store::housekeeping::Retention;
use supervisor::Supervisor;
use tools::foreign;

pub(crate) use document::{Document, Origin};
use drafts::ForeignAgent;
use form::{Number, Reference, WebOrigin};
use models::Models;
use secrets::Variables;
use section::Reading;
use settings::Settings;

use crate::cli::Global;

/// The configuration that is in force.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    pub(crate) data_dir: PathBuf,
    pub(crate) database_url: Option<SecretString>,
    pub(crate) server: server::Settings,
    /// The first is asked first, each next one takes the place of those before it.
    pub(crate) models: Models,
    pub(crate) mcp_servers: Vec<foreign::Settings>,
    pub(crate) agents: Vec<model::agent::Agent>,
    pub(crate) schedules: Vec<scheduler::Checked>,
    /// The agents of schedules that only the database may know.
    foreign_agents: Vec<ForeignAgent>,
    pub(crate) admission: supervisor::Admission,
    pub(crate) notify: ::notify::Settings,
    /// Where each value came from, for `config show`.
    pub(crate) document: Document,
}

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) origin: Origin,
    pub(crate) message: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

impl Config {
    /// Reads everything, or returns every mistake. Agents that only the database knows are left to
    /// [`Config::unknown_agents`].
    pub(crate) fn load(global: &Global, listen: Option<&str>) -> Result<Self, Vec<Mistake>> {
        match Self::read(global, listen, std::env::vars_os()) {
            (Some(config), mistakes) if mistakes.is_empty() => Ok(config),
            (_, mistakes) => Err(mistakes),
        }
    }

    /// Reads everything. A value that is wrong has its default in the configuration.
    pub(crate) fn read(
        global: &Global,
        listen: Option<&str>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> (Option<Self>, Vec<Mistake>) {
        let mut mistakes = Vec::new();
        let variables: Variables = variables.collect();
        let document = Document::collect(global, listen, &variables, &mut mistakes);
        let reading = Reading { document: &document, variables: &variables, mistakes: mistakes.into() };
        let config = Self::of(&reading, data_dir(global));
        let mut mistakes = reading.mistakes.into_inner();
        mistakes.sort_by(|a, b| a.origin.cmp(&b.origin));
        (config, mistakes)
    }

    fn of(reading: &Reading<'_>, data_dir: PathBuf) -> Option<Self> {
        let settings = Settings::load(reading)?;
        let auth = auth(reading, &settings);
        let listen = settings.server.listen;
        if auth.is_none() && !listen.ip().is_loopback() {
            let message = format!(
                "{listen} can be reached from other machines, and no authentication is configured: set auth.jwt_secret \
                 or auth.jwks_url, or listen on 127.0.0.1"
            );
            reading.complain(reading.document.section("server").origin_of("listen"), message);
        }
        let (agents, ids) = drafts::agents(reading, auth.is_some());
        let server = server(reading, &settings, auth);
        let (schedules, foreign_agents) = drafts::schedules(reading, &server.time_zone, ids);
        Some(Self {
            database_url: database_url(reading, &settings),
            models: models::read(reading, &settings.model),
            mcp_servers: mcp_servers::read(reading),
            agents,
            schedules,
            foreign_agents,
            admission: admission(&settings, data_dir.clone()),
            notify: notify::read(reading, &settings, server.time_zone.clone()),
            server,
            settings,
            data_dir,
            document: reading.document.clone(),
        })
    }

    /// Returns whether the address, the database or the traces differ from `other`: a running server keeps its own.
    pub(crate) fn needs_restart(&self, other: &Self) -> bool {
        let url = |config: &Self| config.database_url.as_ref().map(|url| url.expose_secret().to_owned());
        self.settings.server.listen != other.settings.server.listen
            || url(self) != url(other)
            || self.data_dir != other.data_dir
            || self.settings.telemetry.otlp_endpoint != other.settings.telemetry.otlp_endpoint
    }

    pub(crate) fn location(&self) -> Location {
        match &self.database_url {
            Some(url) => Location::Postgres(url.expose_secret().to_owned()),
            None => Location::Sqlite(self.data_dir.join("adjutant.db")),
        }
    }

    /// Returns whether a schedule is of an agent that only the database may know.
    pub(crate) fn has_foreign_agents(&self) -> bool {
        !self.foreign_agents.is_empty()
    }

    /// Returns a mistake for each schedule whose agent is neither in the file nor `registered` over the API.
    pub(crate) fn unknown_among(&self, registered: &[String]) -> Vec<Mistake> {
        let unknown = self.foreign_agents.iter().filter(|agent| !registered.contains(&agent.id));
        unknown.map(|agent| agent.mistake(registered.iter().map(String::as_str))).collect()
    }

    /// Like [`Config::unknown_among`], with the agents that the database has now.
    pub(crate) async fn unknown_agents(&self, supervisor: &Supervisor) -> store::Result<Vec<Mistake>> {
        if self.has_foreign_agents() {
            supervisor.refresh().await?;
        }
        let registered = supervisor.agents().into_iter().filter(|entry| entry.source == Source::Api);
        let registered: Vec<_> = registered.map(|entry| entry.agent.id.clone()).collect();
        Ok(self.unknown_among(&registered))
    }
}

fn server(reading: &Reading<'_>, settings: &Settings, auth: Option<Auth>) -> server::Settings {
    let Settings { server, assistant, tasks, retention, a2a, .. } = settings;
    let origin = |WebOrigin(origin): &WebOrigin| origin.clone();
    server::Settings {
        request_timeout: Duration::from_secs(server.request_timeout_seconds.0),
        max_body_bytes: server.max_body_bytes.size(),
        max_import_bytes: server.max_import_bytes.size(),
        loopback_only: server.listen.ip().is_loopback(),
        public_url: server.public_url.as_ref().map(origin),
        cors_origins: server.cors_origins.iter().map(origin).collect(),
        trusted_proxies: server.trusted_proxies.clone(),
        rate_limit: rate(reading, settings, auth.is_some()),
        time_zone: assistant.time_zone.clone().unwrap_or_else(TimeZone::system),
        numeric_dates: assistant.numeric_dates,
        tasks: model::task::Limits { max_title_chars: tasks.max_title_chars.size() },
        tool_names: tasks.tool_names,
        confirm: assistant.confirm,
        max_tool_calls: assistant.max_tool_calls.size(),
        retention: Retention {
            conversations: days(retention.conversation_days),
            executions: days(retention.execution_days),
            output_bytes: retention.output_gb.limit().and_then(|gb| i64::try_from(gb * 1_000_000_000).ok()),
            notifications: days(retention.notification_days),
        },
        a2a: A2a {
            default_agent: a2a.default_agent.clone(),
            assistant: drafts::assistant(reading, auth.is_some()).unwrap_or_default(),
            allow_private_webhooks: a2a.allow_private_webhooks,
        },
        auth,
    }
}

const MIN_SECRET: usize = 32;

fn auth(reading: &Reading<'_>, settings: &Settings) -> Option<Auth> {
    let settings = &settings.auth;
    let table = reading.document.section("auth");
    let secret = settings.jwt_secret.as_ref().and_then(|Reference(kept)| reading.resolve(table, "jwt_secret", kept));
    if secret.as_ref().is_some_and(|secret| secret.expose_secret().len() < MIN_SECRET) {
        let says = format!("must have at least {MIN_SECRET} characters: try `openssl rand -hex 32`");
        reading.mistake(table, "jwt_secret", says);
    }
    let jwks_url = settings.jwks_url.clone();
    if jwks_url.as_deref().is_some_and(|url| !is_private_channel(url)) {
        reading.mistake(table, "jwks_url", "must begin with https:// (http:// only for this machine)");
    }
    // A secret that cannot be read is a mistake of its own, not the wish to go without.
    let wanted = table.get("jwt_secret").is_some() || jwks_url.is_some();
    if !wanted && (settings.issuer.is_some() || settings.audience.is_some()) {
        reading.complain(table.origin_of("issuer"), "[auth] needs jwt_secret or jwks_url".to_owned());
    }
    let issuer = settings.issuer.clone();
    wanted.then_some(Auth { secret, jwks_url, issuer, audience: settings.audience.clone() })
}

fn is_private_channel(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => true,
        ("http", Some(host)) => ["127.0.0.1", "localhost", "[::1]"].contains(&host),
        _ => false,
    }
}

/// Returns how long so many days are; 0 is for ever.
fn days<const MIN: u64, const MAX: u64>(days: Number<MIN, MAX>) -> Option<SignedDuration> {
    let hours = i64::try_from(days.limit()?).ok()?.checked_mul(24)?;
    Some(SignedDuration::from_hours(hours))
}

/// Returns the limit of requests. The local user has none unless it is asked for: there is nobody to protect from.
fn rate(reading: &Reading<'_>, settings: &Settings, with_auth: bool) -> Option<Rate> {
    let number = |number: u64| NonZeroU32::new(u32::try_from(number).unwrap_or_default());
    if !with_auth && reading.document.section("server").get("rate_limit_per_minute").is_none() {
        return None;
    }
    let per_minute = number(settings.server.rate_limit_per_minute.0)?;
    Some(Rate { per_minute, burst: number(settings.server.rate_limit_burst.0)? })
}

/// Returns what the machine must have left for another run; 0 asks for nothing.
fn admission(settings: &Settings, disk: PathBuf) -> supervisor::Admission {
    let settings = &settings.executions;
    supervisor::Admission {
        max_load: Some(settings.max_load.0).filter(|load| *load > 0.0),
        min_memory_mb: settings.min_free_memory_mb.limit(),
        min_disk_mb: settings.min_free_disk_mb.limit(),
        max_running: settings.max_running.limit().map(|_| settings.max_running.size()),
        disk,
    }
}

/// Returns the address of the database. A password in the file would be a secret in a file.
fn database_url(reading: &Reading<'_>, settings: &Settings) -> Option<SecretString> {
    let table = reading.document.section("database");
    let written = settings.database.url.as_ref()?.0.expose_secret();
    let is_reference = secrets::is_reference(written);
    let url = if is_reference { reading.resolve(table, "url", written)? } else { written.into() };
    let plain = url.expose_secret();
    if !plain.starts_with("postgres://") && !plain.starts_with("postgresql://") {
        reading.mistake(table, "url", "must begin with postgres://");
    } else if !is_reference && matches!(table.origin_of("url"), Origin::File { .. }) && has_password(plain) {
        reading.mistake(table, "url", "holds a password: write url = \"env:DATABASE_URL\" or \"file:PATH\" instead");
    }
    Some(url)
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || rest.contains("password=")
}

/// Returns where everything is kept. Known before the configuration is read.
pub(crate) fn data_dir(global: &Global) -> PathBuf {
    if let Some(dir) = &global.data_dir {
        return dir.clone();
    }
    match std::env::var_os("ADJUTANT_HOME").filter(|home| !home.is_empty()) {
        Some(home) => home.into(),
        None => xdg("XDG_DATA_HOME", ".local/share").join("adjutant"),
    }
}

/// Returns the file to read, and whether it was asked for by name.
pub(crate) fn config_file(global: &Global) -> (PathBuf, bool) {
    if let Some(file) = &global.config {
        return (file.clone(), true);
    }
    let here = Path::new("adjutant.toml");
    if here.exists() { (here.to_owned(), false) } else { (user_config_file(), false) }
}

/// Returns where a user's own configuration stands.
pub(crate) fn user_config_file() -> PathBuf {
    match std::env::var_os("ADJUTANT_HOME").filter(|home| !home.is_empty()) {
        Some(home) => PathBuf::from(home).join("config.toml"),
        None => xdg("XDG_CONFIG_HOME", ".config").join("adjutant/config.toml"),
    }
}

fn xdg(variable: &str, under_home: &str) -> PathBuf {
    // The specification has relative values ignored.
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute());
    set.unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(under_home))
}
