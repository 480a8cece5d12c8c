//! The configuration: defaults, then the file, then `ADJUTANT_A__B` in the environment, then flags.
//!
//! Everything that is wrong is reported at once, each with where it stands and what to do. Secrets are references
//! (`env:NAME`, `file:PATH`); their values are looked up here and never shown.

pub(crate) mod a2a;
mod address;
pub(crate) mod agents;
pub(crate) mod entries;
mod layers;
pub(crate) mod mcp_servers;
pub(crate) mod models;
pub(crate) mod notify;
mod read;
pub(crate) mod schedules;
pub(crate) mod secrets;
pub(crate) mod settings;
pub(crate) mod tables;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assistant::models::{Choice, Provider};
use ipnet::IpNet;
use jiff::tz::TimeZone;
use secrecy::{ExposeSecret, SecretString};
use server::settings::{Auth, Rate};
use store::{Durability, Location};
use tools::{Confirm, Names, foreign};
use tracing::level_filters::LevelFilter;
use understand::Order;

pub(crate) use layers::{Layers, Origin, Value};
use read::Reader;
use secrets::Variables;

use crate::cli::Global;

/// What is in force.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) data_dir: PathBuf,
    pub(crate) database_url: Option<SecretString>,
    pub(crate) durability: Durability,
    pub(crate) server: server::Settings,
    /// The first is asked first, each next one takes the place of those before it.
    pub(crate) models: Vec<Choice>,
    /// Of each model.
    pub(crate) model_sources: Vec<models::Source>,
    /// Which model is asked first and why, for people.
    pub(crate) model_reason: String,
    pub(crate) mcp_servers: Vec<foreign::Settings>,
    pub(crate) agents: Vec<model::agent::Agent>,
    pub(crate) schedules: Vec<scheduler::Checked>,
    pub(crate) admission: supervisor::Admission,
    pub(crate) notify: ::notify::Settings,
    pub(crate) log_level: LevelFilter,
    pub(crate) log_format: LogFormat,
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) service_name: String,
    /// Where each value came from, for `config show`.
    pub(crate) layers: Layers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    Json,
    Text,
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
    /// Reads everything, or says everything that is wrong.
    pub(crate) fn load(global: &Global, listen: Option<&str>) -> Result<Self, Vec<Mistake>> {
        Self::load_with(global, listen, std::env::vars_os())
    }

    fn load_with(
        global: &Global,
        listen: Option<&str>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let variables: Variables = variables.collect();
        let layers = Layers::collect(global, listen, &variables, &mut mistakes);
        let mut reader = Reader { layers: &layers, variables: &variables, mistakes };
        let config = Self::read(&mut reader, global);
        let mut mistakes = reader.mistakes;
        mistakes.sort_by(|a, b| a.origin.cmp(&b.origin));
        if mistakes.is_empty() { Ok(Self { layers, ..config }) } else { Err(mistakes) }
    }

    fn read(reader: &mut Reader<'_>, global: &Global) -> Self {
        let listen: SocketAddr = reader
            .parsed("server.listen", "an address and a port such as 127.0.0.1:7717", |text| text.parse().ok())
            .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 7717)));
        let auth = auth(reader);
        if auth.is_none() && !listen.ip().is_loopback() {
            let message = format!(
                "{listen} can be reached from other machines, and no authentication is configured: set auth.jwt_secret \
                 or auth.jwks_url, or listen on 127.0.0.1"
            );
            reader.mistake("server.listen", message);
        }
        let time_zone = reader
            .parsed("assistant.time_zone", "a time zone such as Europe/Berlin", |name| TimeZone::get(name).ok())
            .unwrap_or_else(TimeZone::system);
        let a2a = a2a::read(reader, auth.is_some());
        let agents = agents::read(reader, auth.is_some());
        let settings = server::Settings {
            request_timeout: Duration::from_secs(reader.number("server.request_timeout_seconds", 1, 3600)),
            max_body_bytes: reader.size("server.max_body_bytes", 1024, 1 << 30),
            max_import_bytes: reader.size("server.max_import_bytes", 1024, 1 << 32),
            loopback_only: listen.ip().is_loopback(),
            public_url: reader.parsed("server.public_url", "a URL such as https://adjutant.example", origin_of),
            cors_origins: reader.list("server.cors_origins", "an origin such as https://app.example", origin_of),
            trusted_proxies: reader.list(
                "server.trusted_proxies",
                "an address or a network such as 10.0.0.0/8",
                network,
            ),
            a2a,
            rate_limit: rate(reader, auth.is_some()),
            auth,
            time_zone: time_zone.clone(),
            numeric_dates: reader
                .word("assistant.numeric_dates", &[("month_first", Order::MonthFirst), ("day_first", Order::DayFirst)]),
            tasks: model::task::Limits { max_title_chars: reader.size("tasks.max_title_chars", 1, 2000) },
            tool_names: reader
                .word("tasks.tool_names", &[("task", Names::Task), ("todo", Names::Todo), ("none", Names::None)]),
            confirm: reader.word(
                "assistant.confirm",
                &[("destructive", Confirm::Destructive), ("bulk", Confirm::Bulk), ("never", Confirm::Never)],
            ),
            max_tool_calls: reader.size("assistant.max_tool_calls", 1, 100),
            retention: store::housekeeping::Retention {
                conversations: days(reader.number("retention.conversation_days", 0, 36_500)),
                executions: days(reader.number("retention.execution_days", 0, 36_500)),
                output_bytes: match reader.number("retention.output_gb", 0, 1_000_000) {
                    0 => None,
                    gb => i64::try_from(gb * 1_000_000_000).ok(),
                },
                notifications: days(reader.number("retention.notification_days", 0, 36_500)),
            },
        };
        let (models, model_sources, model_reason) = models::read(reader);
        let schedules = schedules::read(reader, &settings.time_zone);
        Self {
            listen,
            data_dir: data_dir(global),
            database_url: database_url(reader),
            durability: reader
                .word("database.durability", &[("full", Durability::Full), ("normal", Durability::Normal)]),
            server: settings,
            models,
            model_sources,
            model_reason,
            mcp_servers: mcp_servers::read(reader),
            agents,
            schedules,
            admission: admission(reader, data_dir(global)),
            notify: notify::read(reader, time_zone),
            log_level: reader.word("log.level", &LEVELS),
            log_format: reader
                .word("log.format", &[("auto", LogFormat::Auto), ("json", LogFormat::Json), ("text", LogFormat::Text)]),
            otlp_endpoint: reader.parsed("telemetry.otlp_endpoint", "a URL such as http://127.0.0.1:4317", origin_of),
            service_name: reader.text("telemetry.service_name").unwrap_or_default(),
            layers: Layers::default(),
        }
    }

    /// The model that is asked first, why, and what happens when it fails.
    pub(crate) fn model_line(&self) -> String {
        let reason = &self.model_reason;
        let rest: Vec<_> = self.models.iter().skip(1).map(Choice::label).collect();
        match self.models.first() {
            _ if !rest.is_empty() => format!("{reason}; when it fails, {}", rest.join(", then ")),
            Some(first) if first.provider != Provider::Offline => format!("{reason}; nothing takes its place"),
            _ => reason.clone(),
        }
    }

    /// Whether the data is somewhere else than with `other`.
    pub(crate) fn location_differs(&self, other: &Self) -> bool {
        let url = |config: &Self| config.database_url.as_ref().map(|url| url.expose_secret().to_owned());
        url(self) != url(other) || self.data_dir != other.data_dir
    }

    pub(crate) fn location(&self) -> Location {
        match &self.database_url {
            Some(url) => Location::Postgres(url.expose_secret().to_owned()),
            None => Location::Sqlite(self.data_dir.join("adjutant.db")),
        }
    }
}

const LEVELS: [(&str, LevelFilter); 6] = [
    ("info", LevelFilter::INFO),
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warning", LevelFilter::WARN),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

const MIN_SECRET: usize = 32;

fn auth(reader: &mut Reader<'_>) -> Option<Auth> {
    let secret = reader.secret("auth.jwt_secret");
    if secret.as_ref().is_some_and(|secret| secret.expose_secret().len() < MIN_SECRET) {
        let message = format!("auth.jwt_secret must have at least {MIN_SECRET} characters: try `openssl rand -hex 32`");
        reader.mistake("auth.jwt_secret", message);
    }
    let jwks_url = reader.text("auth.jwks_url");
    if jwks_url.as_deref().is_some_and(|url| !is_private_channel(url)) {
        let message = "auth.jwks_url must begin with https:// (http:// only for this machine)".to_owned();
        reader.mistake("auth.jwks_url", message);
    }
    let (issuer, audience) = (reader.text("auth.issuer"), reader.text("auth.audience"));
    // A secret that cannot be read is a mistake of its own, not the wish to go without.
    let wanted = reader.is_set("auth.jwt_secret") || jwks_url.is_some();
    if !wanted && (issuer.is_some() || audience.is_some()) {
        reader.mistake("auth.issuer", "[auth] needs jwt_secret or jwks_url".to_owned());
    }
    wanted.then_some(Auth { secret, jwks_url, issuer, audience })
}

fn is_private_channel(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => true,
        ("http", Some(host)) => ["127.0.0.1", "localhost", "[::1]"].contains(&host),
        _ => false,
    }
}

/// Off for the local user unless it is asked for: there is nobody to protect from.
/// How long so many days are; 0 is for ever.
fn days(days: u64) -> Option<jiff::SignedDuration> {
    let hours = i64::try_from(days).ok()?.checked_mul(24)?;
    (hours > 0).then(|| jiff::SignedDuration::from_hours(hours))
}

fn rate(reader: &mut Reader<'_>, with_auth: bool) -> Option<Rate> {
    let per_minute = u32::try_from(reader.number("server.rate_limit_per_minute", 0, 10_000_000)).unwrap_or_default();
    let burst = u32::try_from(reader.number("server.rate_limit_burst", 1, 1_000_000)).unwrap_or_default();
    if !with_auth && !reader.is_set("server.rate_limit_per_minute") {
        return None;
    }
    Some(Rate { per_minute: NonZeroU32::new(per_minute)?, burst: NonZeroU32::new(burst)? })
}

/// What the machine must have left for another run; 0 asks for nothing.
fn admission(reader: &mut Reader<'_>, disk: PathBuf) -> supervisor::Admission {
    let some = |number: u64| Some(number).filter(|number| *number > 0);
    let load = reader.parsed("executions.max_load", "a number such as 2.5", |text| {
        text.parse::<f64>().ok().filter(|load| (0.0..1e6).contains(load))
    });
    supervisor::Admission {
        max_load: load.filter(|load| *load > 0.0),
        min_memory_mb: some(reader.number("executions.min_free_memory_mb", 0, 1 << 40)),
        min_disk_mb: some(reader.number("executions.min_free_disk_mb", 0, 1 << 40)),
        max_running: some(reader.number("executions.max_running", 0, 1_000_000)).map(|most| most as usize),
        disk,
    }
}

/// A password in a file would be a secret in a file.
fn database_url(reader: &mut Reader<'_>) -> Option<SecretString> {
    let url = reader.reference("database.url")?;
    let plain = url.expose_secret();
    if !plain.starts_with("postgres://") && !plain.starts_with("postgresql://") {
        reader.mistake("database.url", "database.url must begin with postgres://".to_owned());
    } else if reader.is_inline_in_file("database.url") && has_password(plain) {
        let message =
            "database.url holds a password: write url = \"env:DATABASE_URL\" or \"file:PATH\" instead".to_owned();
        reader.mistake("database.url", message);
    }
    Some(url)
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || rest.contains("password=")
}

/// One address, or all of a network.
fn network(text: &str) -> Option<IpNet> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()))
}

/// Scheme, host and port; a path or anything behind it is not part of an origin.
fn origin_of(url: &str) -> Option<String> {
    let url = url.trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let plain = !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']);
    plain.then(|| url.to_owned())
}

/// Where everything is kept. Known before the configuration is read.
pub(crate) fn data_dir(global: &Global) -> PathBuf {
    if let Some(dir) = &global.data_dir {
        return dir.clone();
    }
    match std::env::var_os("ADJUTANT_HOME").filter(|home| !home.is_empty()) {
        Some(home) => home.into(),
        None => xdg("XDG_DATA_HOME", ".local/share").join("adjutant"),
    }
}

/// The file to read, and whether it was asked for by name.
pub(crate) fn config_file(global: &Global) -> (PathBuf, bool) {
    if let Some(file) = &global.config {
        return (file.clone(), true);
    }
    let here = Path::new("adjutant.toml");
    if here.exists() { (here.to_owned(), false) } else { (user_config_file(), false) }
}

/// Where a user's own configuration stands.
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

#[cfg(test)]
mod tests;
