//! The configuration: defaults, overridden by the file, by `ADJUTANT_A__B` in the environment, and by flags.
//!
//! All mistakes are reported together, each with its origin and a remedy. Secrets are references (`env:NAME`,
//! `file:PATH`). Their values are resolved here and never shown.

mod address;
pub(crate) mod document;
pub(crate) mod drafts;
pub(crate) mod mcp_servers;
pub(crate) mod models;
pub(crate) mod notify;
pub(crate) mod secrets;
pub(crate) mod section;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use model::agent::AgentSource;
use model::quota::Quotas;
use secrecy::{ExposeSecret, SecretString};
use server::settings::{A2aSettings, AuthSettings, EndpointRateLimit};
use store::housekeeping::Retention;
use store::{Location, PostgresSettings};
use supervisor::Supervisor;
use tools::mcp_client;

pub(crate) use document::{ConfigDocument, ValueOrigin};
use drafts::ExternalAgentRef;
use models::ConfiguredModels;
use secrets::EnvVariables;
use section::ConfigReader;
use settings::{ConfigSettings, QuotasSection};
use values::{Number, RedactedText, SecretReference, WebOrigin};

use crate::cli::GlobalOptions;

/// The effective configuration.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) settings: ConfigSettings,
    pub(crate) data_dir: PathBuf,
    /// None uses SQLite in the data directory.
    pub(crate) database_url: Option<SecretString>,
    direct_url: Option<SecretString>,
    pub(crate) server: server::ServerSettings,
    /// The models in the order in which they are tried.
    pub(crate) models: ConfiguredModels,
    pub(crate) mcp_servers: Vec<mcp_client::McpServerSettings>,
    pub(crate) agents: Vec<model::agent::Agent>,
    pub(crate) schedules: Vec<scheduler::CheckedSchedule>,
    /// The agents of schedules that are not in the file. The database may have them.
    external_agents: Vec<ExternalAgentRef>,
    pub(crate) admission: supervisor::Admission,
    pub(crate) notify: ::notify::NotifySettings,
    /// The values with their origins, for `config show`.
    pub(crate) document: ConfigDocument,
}

/// One mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigMistake {
    pub(crate) origin: ValueOrigin,
    pub(crate) message: String,
}

impl std::fmt::Display for ConfigMistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

impl Config {
    /// Reads the configuration. Fails with all mistakes. [`Config::unknown_agents`] checks the agents that may be in
    /// the database.
    pub(crate) fn load(global: &GlobalOptions, listen: Option<&str>) -> Result<Self, Vec<ConfigMistake>> {
        match Self::read(global, listen, std::env::vars_os()) {
            (Some(config), mistakes) if mistakes.is_empty() => Ok(config),
            (_, mistakes) => Err(mistakes),
        }
    }

    /// Reads the configuration and returns it with all mistakes, ordered by origin. An invalid value is replaced by its
    /// default. `listen` is the value of `--listen`, and `variables` is the environment. The configuration is none only
    /// if a default does not have the type of its setting.
    pub(crate) fn read(
        global: &GlobalOptions,
        listen: Option<&str>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> (Option<Self>, Vec<ConfigMistake>) {
        let mut mistakes = Vec::new();
        let variables: EnvVariables = variables.collect();
        let document = ConfigDocument::collect(global, listen, &variables, &mut mistakes);
        let reader = ConfigReader { document: &document, variables: &variables, mistakes: mistakes.into() };
        let config = Self::from_reader(&reader, data_dir(global));
        let mut mistakes = reader.mistakes.into_inner();
        mistakes.sort_by(|a, b| a.origin.cmp(&b.origin));
        (config, mistakes)
    }

    /// Validates all sections and reports mistakes. Also reports an address that other machines can reach without
    /// authentication. Returns none only if a default does not have the type of its setting.
    fn from_reader(reader: &ConfigReader<'_>, data_dir: PathBuf) -> Option<Self> {
        let settings = ConfigSettings::load(reader)?;
        let auth = auth(reader, &settings);
        let listen = settings.server.listen;
        if auth.is_none() && !listen.ip().is_loopback() {
            let message = format!(
                "{listen} is reachable from other machines, and no authentication is configured: set auth.jwt_secret \
                 or auth.jwks_url, or listen on 127.0.0.1"
            );
            reader.report(reader.document.section("server").origin_of("listen"), message);
        }
        let (agents, ids) = drafts::agents(reader, auth.is_some());
        let server = server(reader, &settings, auth);
        let (schedules, external_agents) = drafts::schedules(reader, &server.time_zone, ids);
        Some(Self {
            database_url: postgres_url(reader, "url", settings.database.url.as_ref()),
            direct_url: postgres_url(reader, "direct_url", settings.database.direct_url.as_ref()),
            models: models::read(reader, &settings.model),
            mcp_servers: mcp_servers::read(reader),
            agents,
            schedules,
            external_agents,
            admission: admission(&settings, data_dir.clone()),
            notify: notify::read(reader, &settings, server.time_zone.clone()),
            server,
            settings,
            data_dir,
            document: reader.document.clone(),
        })
    }

    /// Returns true if the address, the database, the data directory or the traces differ from `other`. A running
    /// server cannot change them.
    pub(crate) fn needs_restart(&self, other: &Self) -> bool {
        self.settings.server.listen != other.settings.server.listen
            || self.location() != other.location()
            || self.data_dir != other.data_dir
            || self.settings.telemetry.otlp_endpoint != other.settings.telemetry.otlp_endpoint
    }

    /// Returns the location of the database: PostgreSQL if a URL is configured, else the SQLite file in the data
    /// directory.
    pub(crate) fn location(&self) -> Location {
        let Some(url) = &self.database_url else { return Location::Sqlite(self.data_dir.join("adjutant.db")) };
        let settings = &self.settings.database;
        Location::Postgres(PostgresSettings {
            url: url.expose_secret().to_owned(),
            pooler: settings.pooler,
            direct_url: self.direct_url.as_ref().map(|url| url.expose_secret().to_owned()),
            max_connections: u32::try_from(settings.max_connections.0).unwrap_or(u32::MAX),
            acquire_timeout: Duration::from_secs(settings.acquire_timeout_seconds.0),
            lock_timeout: Duration::from_secs(settings.lock_timeout_seconds.0),
            statement_timeout: settings.statement_timeout_seconds.limit().map(Duration::from_secs),
        })
    }

    /// Returns true if a schedule refers to an agent that is not in the file.
    pub(crate) fn has_external_agents(&self) -> bool {
        !self.external_agents.is_empty()
    }

    /// Returns a mistake for each schedule with an agent that is neither in the file nor in `registered`.
    pub(crate) fn unknown_among(&self, registered: &[String]) -> Vec<ConfigMistake> {
        let unknown = self.external_agents.iter().filter(|agent| !registered.contains(&agent.id));
        unknown.map(|agent| agent.mistake(registered.iter().map(String::as_str))).collect()
    }

    /// Like [`Config::unknown_among`], with the agents of the database. Fails if the database fails.
    pub(crate) async fn unknown_agents(&self, supervisor: &Supervisor) -> store::Result<Vec<ConfigMistake>> {
        if self.has_external_agents() {
            supervisor.refresh_agents().await?;
        }
        let registered = supervisor.agents().into_iter().filter(|entry| entry.source == AgentSource::Api);
        let registered: Vec<_> = registered.map(|entry| entry.agent.id.clone()).collect();
        Ok(self.unknown_among(&registered))
    }
}

/// Returns the settings of the server. Without a configured time zone, uses that of the system. `loopback_only` is true
/// if the server listens on a loopback address. A rate limit or a retention of 0 means unlimited. Reports mistakes in
/// the endpoint of the assistant and uses its default then.
fn server(reader: &ConfigReader<'_>, settings: &ConfigSettings, auth: Option<AuthSettings>) -> server::ServerSettings {
    let ConfigSettings { server, assistant, tasks, retention, a2a, .. } = settings;
    let origin = |WebOrigin(origin): &WebOrigin| origin.clone();
    server::ServerSettings {
        request_timeout: Duration::from_secs(server.request_timeout_seconds.0),
        stall_timeout: Duration::from_secs(server.stall_timeout_seconds.0),
        max_body_bytes: server.max_body_bytes.size(),
        max_import_bytes: server.max_import_bytes.size(),
        loopback_only: server.listen.ip().is_loopback(),
        public_url: server.public_url.as_ref().map(origin),
        cors_origins: server.cors_origins.iter().map(origin).collect(),
        trusted_proxies: server.trusted_proxies.clone(),
        rate_limit: rate_limit(reader, settings, auth.is_some()),
        time_zone: assistant.time_zone.clone().unwrap_or_else(TimeZone::system),
        numeric_dates: assistant.numeric_dates,
        default_reminder_time: assistant.default_reminder_time,
        tasks: model::task::TaskLimits { max_title_chars: tasks.max_title_chars.size() },
        tool_names: tasks.tool_names,
        confirm: assistant.confirm,
        has_worker: true,
        max_tool_calls: assistant.max_tool_calls.size(),
        max_answer_chars: assistant.max_answer_chars.size(),
        retention: Retention {
            conversations: days(retention.conversation_days),
            executions: days(retention.execution_days),
            output_bytes: retention.output_gb.limit().and_then(|gb| i64::try_from(gb * 1_000_000_000).ok()),
            notifications: days(retention.notification_days),
            audit: days(retention.audit_days),
        },
        quotas: quotas(&settings.quotas),
        a2a: A2aSettings {
            default_agent: a2a.default_agent.clone(),
            assistant: drafts::assistant(reader, auth.is_some()).unwrap_or_default(),
            allow_private_webhooks: a2a.allow_private_webhooks,
        },
        sealing_key: long_secret(reader, "database", "sealing_key", settings.database.sealing_key.as_ref()),
        auth,
        is_token_optional: false,
    }
}

/// Returns the limits of each user. 0 means unlimited.
fn quotas(settings: &QuotasSection) -> Quotas {
    Quotas {
        tasks: quota(settings.tasks),
        reminders: quota(settings.reminders),
        reminders_per_task: quota(settings.reminders_per_task),
        schedules: quota(settings.schedules),
        conversations: quota(settings.conversations),
        runs_per_day: quota(settings.runs_per_day),
        queue_share: Some(settings.queue_share.0).filter(|share| *share > 0.0),
        sessions: quota(settings.sessions),
        streams: quota(settings.streams),
        total_streams: quota(settings.total_streams),
        deliveries_per_minute: quota(settings.deliveries_per_minute),
    }
}

/// Returns a quota, or none for 0.
fn quota<const MAX: u64>(number: Number<0, MAX>) -> Option<i64> {
    number.limit().and_then(|limit| i64::try_from(limit).ok())
}

/// The minimum length of a secret for tokens, in bytes.
const MIN_SECRET_CHARS: usize = 32;

/// Returns the settings for tokens, or none if neither a secret nor a JWKS URL is configured. Reports a secret that
/// cannot be resolved or has fewer than [`MIN_SECRET_CHARS`] bytes, and a JWKS URL that is not confidential; both still
/// count as configured. Also reports an issuer or audience without a secret and a JWKS URL, and a previous secret without
/// a secret.
fn auth(reader: &ConfigReader<'_>, settings: &ConfigSettings) -> Option<AuthSettings> {
    let settings = &settings.auth;
    let table = reader.document.section("auth");
    let secret = long_secret(reader, "auth", "jwt_secret", settings.jwt_secret.as_ref());
    let previous_secret = long_secret(reader, "auth", "previous_jwt_secret", settings.previous_jwt_secret.as_ref());
    if settings.previous_jwt_secret.is_some() && table.get("jwt_secret").is_none() {
        reader.mistake(table, "previous_jwt_secret", "needs auth.jwt_secret, which signs new tokens");
    }
    let jwks_url = settings.jwks_url.clone();
    if jwks_url.as_deref().is_some_and(|url| !is_confidential(url)) {
        reader.mistake(table, "jwks_url", "must begin with https:// (http:// only for this machine)");
    }
    // An unresolved secret is reported above. It does not disable authentication.
    let is_configured = table.get("jwt_secret").is_some() || jwks_url.is_some();
    if !is_configured && (settings.issuer.is_some() || settings.audience.is_some()) {
        reader.report(table.origin_of("issuer"), "[auth] needs jwt_secret or jwks_url".to_owned());
    }
    let issuer = settings.issuer.clone();
    let audience = settings.audience.clone();
    is_configured.then_some(AuthSettings { secret, previous_secret, jwks_url, issuer, audience })
}

/// Returns the secret of a setting. None if it is not configured or cannot be resolved, which is reported. Reports a
/// secret with fewer than [`MIN_SECRET_CHARS`] bytes and returns it nevertheless.
fn long_secret(
    reader: &ConfigReader<'_>,
    section: &str,
    key: &str,
    reference: Option<&SecretReference>,
) -> Option<SecretString> {
    let table = reader.document.section(section);
    let secret = reader.resolve(table, key, &reference?.0)?;
    if secret.expose_secret().len() < MIN_SECRET_CHARS {
        let message = format!("must have at least {MIN_SECRET_CHARS} characters: try `openssl rand -hex 32`");
        reader.mistake(table, key, message);
    }
    Some(secret)
}

/// Returns true for HTTPS, and for HTTP to `127.0.0.1`, `localhost` or `[::1]`. False for other schemes, and if the
/// text is not a URL.
fn is_confidential(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => true,
        ("http", Some(host)) => ["127.0.0.1", "localhost", "[::1]"].contains(&host),
        _ => false,
    }
}

/// Returns a retention period in days. 0 means unlimited.
fn days<const MIN: u64, const MAX: u64>(days: Number<MIN, MAX>) -> Option<SignedDuration> {
    let hours = i64::try_from(days.limit()?).ok()?.checked_mul(24)?;
    Some(SignedDuration::from_hours(hours))
}

/// Returns the rate limit of requests, or none if the limit is 0. `with_auth` is true if authentication is configured.
/// Without it, the limit applies only if `rate_limit_per_minute` is set; its default does not apply.
fn rate_limit(reader: &ConfigReader<'_>, settings: &ConfigSettings, with_auth: bool) -> Option<EndpointRateLimit> {
    let number = |number: u64| NonZeroU32::new(u32::try_from(number).unwrap_or_default());
    if !with_auth && reader.document.section("server").get("rate_limit_per_minute").is_none() {
        return None;
    }
    let per_minute = number(settings.server.rate_limit_per_minute.0)?;
    Some(EndpointRateLimit { per_minute, burst: number(settings.server.rate_limit_burst.0)? })
}

/// Returns the resources that a new run requires. 0 means no requirement. `disk` is the directory that needs free
/// space.
fn admission(settings: &ConfigSettings, disk: PathBuf) -> supervisor::Admission {
    let settings = &settings.executions;
    supervisor::Admission {
        max_load: Some(settings.max_load.0).filter(|load| *load > 0.0),
        min_memory_mb: settings.min_free_memory_mb.limit(),
        min_disk_mb: settings.min_free_disk_mb.limit(),
        max_running: settings.max_running.limit().map(|_| settings.max_running.size()),
        disk,
    }
}

/// Returns a URL of the section `database`, with a reference resolved. None if it is not configured or cannot be resolved,
/// which is reported. Reports a URL that is not PostgreSQL, and a plain URL with a password in the file; returns them
/// nevertheless. In a variable or a flag, a password is allowed.
fn postgres_url(reader: &ConfigReader<'_>, key: &str, value: Option<&RedactedText>) -> Option<SecretString> {
    let table = reader.document.section("database");
    let text = value?.0.expose_secret();
    let is_reference = secrets::is_reference(text);
    let url = if is_reference { reader.resolve(table, key, text)? } else { text.into() };
    let plain = url.expose_secret();
    if !plain.starts_with("postgres://") && !plain.starts_with("postgresql://") {
        reader.mistake(table, key, "must begin with postgres://");
    } else if !is_reference && matches!(table.origin_of(key), ValueOrigin::File { .. }) && has_password(plain) {
        let message = format!("contains a password: write {key} = \"env:NAME\" or \"file:PATH\" instead");
        reader.mistake(table, key, message);
    }
    Some(url)
}

/// Returns true if the URL has a password before the host or as a parameter.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || rest.contains("password=")
}

/// Returns the data directory: `--data-dir`, else `ADJUTANT_HOME`, else `adjutant` in the data directory of the user.
/// It does not depend on the configuration.
pub(crate) fn data_dir(global: &GlobalOptions) -> PathBuf {
    if let Some(dir) = &global.data_dir {
        return dir.clone();
    }
    match std::env::var_os("ADJUTANT_HOME").filter(|home| !home.is_empty()) {
        Some(home) => home.into(),
        None => xdg_dir("XDG_DATA_HOME", ".local/share").join("adjutant"),
    }
}

/// Returns the configuration file, and true if `--config` names it. Otherwise it is `adjutant.toml` in the current
/// directory if that exists, else the file of the user, which may be missing.
pub(crate) fn config_file(global: &GlobalOptions) -> (PathBuf, bool) {
    if let Some(file) = &global.config {
        return (file.clone(), true);
    }
    let local = Path::new("adjutant.toml");
    if local.exists() { (local.to_owned(), false) } else { (user_config_file(), false) }
}

/// Returns the configuration file of the user: `config.toml` in `ADJUTANT_HOME`, else in the configuration directory of
/// the user. The file may be missing.
pub(crate) fn user_config_file() -> PathBuf {
    match std::env::var_os("ADJUTANT_HOME").filter(|home| !home.is_empty()) {
        Some(home) => PathBuf::from(home).join("config.toml"),
        None => xdg_dir("XDG_CONFIG_HOME", ".config").join("adjutant/config.toml"),
    }
}

/// Returns the directory in a variable, or `under_home` in the home directory if the variable is not set or not
/// absolute.
fn xdg_dir(variable: &str, under_home: &str) -> PathBuf {
    // The specification requires to ignore relative paths.
    let set = std::env::var_os(variable).map(PathBuf::from).filter(|dir| dir.is_absolute());
    set.unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(under_home))
}
