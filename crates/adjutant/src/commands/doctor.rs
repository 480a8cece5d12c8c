//! `adjutant doctor`: checks the installation and reports problems.

use std::time::Duration;

use api::health::{ChannelHealth, Health, HealthBrief, HealthStatus};
use futures::future::join_all;
use model::Clock;
use model::agent::Agent;
use model::breaker::Breakers;
use model::stop_state::StopState;
use reqwest::redirect::Policy;
use serde::Deserialize;
use serde_json::{Value, json};
use store::lock::DataDirLock;
use store::{Location, Store};
use supervisor::guardian::{Guardian, GuardianOptions};
use tools::mcp_client::{McpServerPhase, McpServerSettings, McpServers};

use super::agents::check;
use super::agents::presets;
use super::listing::or_empty;
use crate::cli::GlobalOptions;
use crate::config::values::WebOrigin;
use crate::config::{Config, ConfigMistake, mcp_servers, models, notify};
use crate::exit::{ExitError, ExitStatus};
use crate::output;
use crate::target::{http_client, socket_target};

/// The time limit of each check over the network.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// An MCP server may have to be downloaded before it starts.
const MCP_START_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of one check.
struct DoctorFinding {
    subject: &'static str,
    ok: bool,
    detail: String,
}

/// Runs all checks and prints the findings, with `--json` as one document. If the configuration is invalid, its
/// mistakes are the only findings. Schedules with unknown agents are findings too, but not a failure to read the
/// agents. Fails if a check failed.
pub(crate) async fn run(global: &GlobalOptions) -> anyhow::Result<()> {
    let findings = match Config::load(global, None) {
        Ok(config) => {
            let mut findings = examine(&config, global.server.as_deref()).await;
            let unknown = super::config::unknown_agents(global, &config).await.unwrap_or_default();
            findings.extend(unknown.iter().map(|mistake| bad("schedule", mistake.to_string())));
            findings
        }
        Err(mistakes) => {
            mistakes.iter().map(|mistake| bad("configuration", ConfigMistake::to_string(mistake))).collect()
        }
    };
    if global.json {
        let list: Vec<Value> =
            findings.iter().map(|f| json!({"what": f.subject, "ok": f.ok, "detail": f.detail})).collect();
        output::print_line(&json!({"ok": findings.iter().all(|f| f.ok), "checks": list}).to_string())?;
    } else {
        let rows: Vec<_> = findings
            .iter()
            .map(|f| vec![if f.ok { "ok" } else { "!!" }.to_owned(), f.subject.to_owned(), f.detail.clone()])
            .collect();
        output::print_table(&["", "CHECK", "FINDING"], &rows)?;
    }
    match findings.iter().filter(|finding| !finding.ok).count() {
        0 => Ok(()),
        wrong => Err(ExitError::new(ExitStatus::Failed, format!("{wrong} of {} checks failed", findings.len())).into()),
    }
}

/// Runs all checks of a valid configuration and returns the findings in a fixed order. Checks the server at the URL in
/// `server`, else the data directory. Also checks the JWKS URL, models, MCP servers, agents, channels and the trace
/// endpoint, as far as they are configured. Starts MCP servers and programs of agents for a short time. Version,
/// configuration, authentication and time zone are findings too, but never problems.
async fn examine(config: &Config, server: Option<&str>) -> Vec<DoctorFinding> {
    let mut findings = vec![good("version", env!("CARGO_PKG_VERSION").to_owned())];
    findings.push(match &config.document.file {
        Some(file) => good("configuration", format!("{} is valid", file.display())),
        None => good("configuration", "no file; the defaults are used".to_owned()),
    });
    match server {
        Some(url) => findings.extend(check_server(url).await),
        None => findings.extend(check_data_dir(config).await),
    }
    findings.push(match &config.server.auth {
        Some(auth) => good(
            "authentication",
            match (&auth.secret, &auth.jwks_url) {
                (Some(_), Some(url)) => format!("tokens signed with the secret or with the keys at {url}"),
                (None, Some(url)) => format!("tokens signed with the keys at {url}"),
                _ => "tokens signed with the secret".to_owned(),
            },
        ),
        None => good("authentication", "off: one local user, only on this machine".to_owned()),
    });
    if let Some(url) = config.server.auth.as_ref().and_then(|auth| auth.jwks_url.as_deref()) {
        findings.push(keys(url).await);
    }
    findings.push(good("model", config.models.describe()));
    let models = config.models.configs.iter().filter_map(|model| Some((model.label(), models::address_of(model)?)));
    findings.extend(join_all(models.map(|(label, address)| check_model(label, address))).await);
    findings.extend(mcp(&config.mcp_servers).await);
    findings.extend(agents(&config.agents).await);
    findings.extend(channels(config).await);
    let zone = config.server.time_zone.iana_name().unwrap_or("no name, UTC offset only").to_owned();
    findings.push(good("time zone", zone));
    if let Some(WebOrigin(endpoint)) = &config.settings.telemetry.otlp_endpoint {
        findings.push(check_traces(endpoint).await);
    }
    findings
}

/// Checks the server that uses the data directory. Without a server, checks the data directory and the database, and
/// reports pending deliveries. Creates a missing directory or database, and migrates the schema if needed. Another
/// command that holds the data directory is a problem; does not wait for it.
async fn check_data_dir(config: &Config) -> Vec<DoctorFinding> {
    match DataDirLock::acquire(&config.data_dir) {
        Err(store::Error::InUse { address: Some(url), .. }) => {
            let mut findings = check_server(&url).await;
            findings.extend(check_database_file(config).await);
            findings
        }
        Err(store::Error::InUse { .. }) if matches!(socket_target(&config.data_dir, None).await, Ok(Some(_))) => {
            let detail = format!("{}, held by another command, which serves all others", config.data_dir.display());
            vec![good("data directory", detail)]
        }
        Err(error) => vec![bad("data directory", error.to_string())],
        Ok(_lock) => {
            let dir = good("data directory", config.data_dir.display().to_string());
            let server = good("server", "not running; commands use the data directory".to_owned());
            let mut findings = vec![dir, server];
            findings.extend(check_database_file(config).await);
            match Store::open(&config.location(), config.settings.database.durability).await {
                Ok(store) => {
                    findings.push(good("database", format!("{}, schema up to date", store.kind())));
                    findings.extend(outbox(&store).await);
                    let read = async { store::stop_state::current(&mut store.reader().await?).await };
                    findings.extend(read.await.unwrap_or_default().map(|state| stopped(&state)));
                }
                Err(error) => findings.push(bad("database", redact::redact(&error.to_string()).into_owned())),
            }
            findings
        }
    }
}

/// Checks the structure of the SQLite file, also while a server uses it. Reads the whole file, without a time limit. Returns
/// `None` for PostgreSQL and without a file.
async fn check_database_file(config: &Config) -> Option<DoctorFinding> {
    let Location::Sqlite(path) = config.location() else { return None };
    if !path.exists() {
        return None;
    }
    let checked = tokio::task::spawn_blocking(move || store::check_file(&path)).await.ok()?;
    Some(match checked {
        Ok(()) => good("database file", "its structure is sound".to_owned()),
        Err(error) => bad("database file", error.to_string()),
    })
}

/// Reports a stop of everything as a problem: no agent runs.
fn stopped(state: &StopState) -> DoctorFinding {
    let sentence = StopState::describe(state.reason.as_deref());
    let since = super::listing::local_time(state.stopped_at);
    bad("agents", format!("{sentence} (since {since}); `adjutant resume-all` takes that back"))
}

/// Reports the pending and failed deliveries of each channel, never as a problem. Empty if the database cannot be read.
async fn outbox(store: &Store) -> Vec<DoctorFinding> {
    let read = async { store::outbox::channel_backlogs(&mut store.reader().await?).await };
    let Ok(backlogs) = read.await else { return Vec::new() };
    let detail = |channel: &store::outbox::ChannelBacklog| {
        format!("{}: {} pending, {} failed", channel.channel, channel.waiting, channel.dead)
    };
    backlogs.iter().map(|channel| good("notifications", detail(channel))).collect()
}

/// Checks all notification channels at the same time, each for at most [`CHECK_TIMEOUT`]. A failed check and a timeout
/// are problems. Sends no notification.
async fn channels(config: &Config) -> Vec<DoctorFinding> {
    let checks = config.notify.channels.iter().map(|channel| async {
        let about = format!("{} ({})", channel.name, notify::describe(channel));
        match tokio::time::timeout(CHECK_TIMEOUT, channel.check()).await {
            Ok(Ok(detail)) => good("channel", format!("{about}: {detail}")),
            Ok(Err(detail)) => bad("channel", format!("{about}: {detail}")),
            Err(_) => bad("channel", format!("{about}: no response")),
        }
    });
    join_all(checks).await
}

/// Checks the health of a server and reports a stop of everything and each of its disabled channels as problems. Returns one problem if the
/// server does not respond with JSON within [`CHECK_TIMEOUT`], is unhealthy, or is another program.
async fn check_server(url: &str) -> Vec<DoctorFinding> {
    let request = async {
        let client = http_client(url).timeout(CHECK_TIMEOUT).build()?;
        client.get(format!("{}/health", url.trim_end_matches('/'))).send().await?.json::<Value>().await
    };
    let body = match request.await {
        Ok(body) => body,
        Err(error) => {
            return vec![bad("server", format!("uses the data directory but does not respond at {url}: {error}"))];
        }
    };
    let database_error = Health::deserialize(&body).ok().and_then(|health| health.dependencies.database.error);
    if let Some(error) = database_error {
        return vec![bad("server", format!("running at {url}, but {error}"))];
    }
    // The URL may belong to another program.
    let brief = HealthBrief::deserialize(&body).ok().filter(|brief| brief.status == HealthStatus::Ok);
    if brief.is_none() {
        return vec![bad("server", format!("running at {url}, but unhealthy: {body}"))];
    }
    let Ok(Health { dependencies, stopped: stop, .. }) = Health::deserialize(&body) else {
        return vec![good("server", format!("running at {url}; a token is required for details (--token)"))];
    };
    let mut findings = vec![good("server", format!("running at {url}, {} responds", dependencies.database.kind))];
    findings.extend(stop.as_ref().map(stopped));
    let disabled = dependencies.channels.into_iter().filter(|channel| channel.status != HealthStatus::Ok);
    findings.extend(disabled.map(|ChannelHealth { name, disabled_until, last_error, .. }| {
        let until = or_empty(disabled_until);
        let error = last_error.unwrap_or_default();
        bad("channel", format!("{name} is disabled until {until} after too many failed deliveries: {error}"))
    }));
    findings
}

/// Checks that the JWKS URL returns a JSON object with a list `keys` within [`CHECK_TIMEOUT`]. The list may be empty.
/// An HTTP error is a problem.
async fn keys(url: &str) -> DoctorFinding {
    let request = async {
        http_client(url)
            .timeout(CHECK_TIMEOUT)
            .build()?
            .get(url)
            .send()
            .await?
            .error_for_status()?
            .json::<Value>()
            .await
    };
    match request.await {
        Ok(set) if set.get("keys").is_some_and(Value::is_array) => good("token keys", format!("{url} publishes keys")),
        Ok(_) => bad("token keys", format!("{url} does not publish keys")),
        Err(error) => bad("token keys", format!("{url} cannot be read: {error}")),
    }
}

/// Checks that the address of a model responds within [`CHECK_TIMEOUT`]. Sends no key, follows no redirect, and accepts
/// any response, also an HTTP error.
async fn check_model(label: String, address: &str) -> DoctorFinding {
    let request = async {
        let client = http_client(address).redirect(Policy::none()).timeout(CHECK_TIMEOUT).build()?;
        client.get(address).send().await
    };
    match request.await {
        Ok(_) => good("model", format!("{label}: {address} is reachable")),
        Err(_) => bad("model", format!("{label}: {address} is unreachable")),
    }
}

/// Starts all MCP servers at the same time, reports their number of tools and stops them. Waits for each at most its
/// own start timeout, and never longer than [`MCP_START_TIMEOUT`]. A server that is not ready then is a problem.
async fn mcp(settings: &[McpServerSettings]) -> Vec<DoctorFinding> {
    let with_timeout = |settings: &McpServerSettings| {
        let mut settings = settings.clone();
        settings.start_timeout = settings.start_timeout.min(MCP_START_TIMEOUT);
        settings
    };
    let settings: Vec<McpServerSettings> = settings.iter().map(with_timeout).collect();
    let timeout = settings.iter().map(|settings| settings.start_timeout).max().unwrap_or_default();
    let servers = McpServers::start(settings.clone(), &Breakers::new(Clock::system(), |_| {}));
    servers.wait_until_settled(timeout).await;
    let states = servers.states();
    servers.stop().await;
    let found = settings.iter().zip(states).map(|(settings, state)| {
        let about = format!("{} ({})", state.name, mcp_servers::describe(settings));
        match (state.phase, state.last_error) {
            (McpServerPhase::Ready, _) => {
                let tools = if state.tools == 1 { "tool" } else { "tools" };
                let protocol = state.protocol.unwrap_or_default();
                let rejected = match state.rejected_tools.len() {
                    0 => String::new(),
                    count => format!(", {count} more rejected"),
                };
                good("MCP server", format!("{about}: ready, {} {tools}{rejected}, protocol {protocol}", state.tools))
            }
            (_, Some(error)) => bad("MCP server", format!("{about}: {error}")),
            (_, None) => bad("MCP server", format!("{about}: not ready after {} s", timeout.as_secs())),
        }
    });
    found.collect()
}

/// Checks the enabled agents of the configuration, finds installed agents without a configured preset, and reports the
/// protections of agents. Only a failed check of an agent is a problem, not a missing protection.
async fn agents(configured: &[Agent]) -> Vec<DoctorFinding> {
    let enabled = configured.iter().filter(|agent| agent.enabled);
    let mut findings: Vec<_> = join_all(enabled.map(check::examine))
        .await
        .into_iter()
        .map(|found| match found.problems.as_slice() {
            [] => good("agent", format!("{}: {}", found.id, found.detail)),
            problems => bad("agent", format!("{}: {}", found.id, problems.join("; "))),
        })
        .collect();
    let installed: Vec<_> = presets::installed()
        .into_iter()
        .map(|found| found.preset.id.as_str())
        .filter(|preset| !configured.iter().any(|agent| agent.preset.as_deref() == Some(preset)))
        .collect();
    findings.push(good(
        "agents",
        match installed.as_slice() {
            [] => "no further known agents are installed".to_owned(),
            installed => {
                format!("also installed: {}; `adjutant agents add --preset NAME` adds one", installed.join(", "))
            }
        },
    ));
    findings.push(isolation().await);
    findings
}

/// Starts a guardian and returns the protections of agents that it enforces on this system, and those that are missing.
/// A missing protection is no problem of the installation.
async fn isolation() -> DoctorFinding {
    let guardian = match Guardian::start(GuardianOptions::default()).await {
        Ok(guardian) => guardian,
        Err(error) => return bad("isolation", error.to_string()),
    };
    let protections = guardian.protections().await.unwrap_or_default();
    guardian.stop().await;
    let enforced = protections.enforced().join("; ");
    match protections.missing().as_slice() {
        [] => good("isolation", enforced),
        missing => good("isolation", format!("{enforced}. Not enforced: {}", missing.join("; "))),
    }
}

/// Checks that the endpoint accepts a TCP connection within [`CHECK_TIMEOUT`], on port 4317 if it has no port. An IPv6
/// address without a port is always a problem. Sends no traces and does not check the protocol.
async fn check_traces(endpoint: &str) -> DoctorFinding {
    let address = endpoint.split("://").nth(1).unwrap_or_default();
    let address = if address.contains(':') { address.to_owned() } else { format!("{address}:4317") };
    match tokio::time::timeout(CHECK_TIMEOUT, tokio::net::TcpStream::connect(&address)).await {
        Ok(Ok(_)) => good("traces", format!("{endpoint} is reachable")),
        Ok(Err(error)) => bad("traces", format!("{endpoint} is unreachable: {error}")),
        Err(_) => bad("traces", format!("{endpoint} does not respond")),
    }
}

fn good(subject: &'static str, detail: String) -> DoctorFinding {
    DoctorFinding { subject, ok: true, detail }
}

fn bad(subject: &'static str, detail: String) -> DoctorFinding {
    DoctorFinding { subject, ok: false, detail }
}
