//! `adjutant doctor`: what is there, what works, and what to do about what does not.

use std::time::Duration;

use api::health::{Health, HealthOfChannel, HealthStatus};
use futures::future::join_all;
use model::Clock;
use model::agent::Agent;
use model::breaker::Breakers;
use reqwest::redirect::Policy;
use serde::Deserialize;
use serde_json::{Value, json};
use store::Store;
use store::lock::Lock;
use supervisor::guardian::{Landlock, landlock_support};
use tools::foreign::{Phase, Servers, Settings};

use super::agents::check;
use super::agents::presets;
use super::listing::or_empty;
use crate::cli::Global;
use crate::client::http;
use crate::config::form::WebOrigin;
use crate::config::{Config, Mistake, mcp_servers, models, notify};
use crate::exit::{Code, Exit};
use crate::output;

const PATIENCE: Duration = Duration::from_secs(3);
/// For a program that is started, which may have to be fetched first.
const MCP_PATIENCE: Duration = Duration::from_secs(20);

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    well: bool,
    says: String,
}

pub(crate) async fn run(global: &Global) -> anyhow::Result<()> {
    let findings = match Config::load(global, None) {
        Ok(config) => {
            let mut findings = examine(&config, global.server.as_deref()).await;
            let unknown = super::config::unknown_agents(global, &config).await.unwrap_or_default();
            findings.extend(unknown.iter().map(|mistake| bad("schedule", mistake.to_string())));
            findings
        }
        Err(mistakes) => mistakes.iter().map(|mistake| bad("configuration", Mistake::to_string(mistake))).collect(),
    };
    if global.json {
        let list: Vec<Value> =
            findings.iter().map(|f| json!({"what": f.what, "ok": f.well, "detail": f.says})).collect();
        output::say(&json!({"ok": findings.iter().all(|f| f.well), "checks": list}).to_string())?;
    } else {
        let rows: Vec<_> = findings
            .iter()
            .map(|f| vec![if f.well { "ok" } else { "!!" }.to_owned(), f.what.to_owned(), f.says.clone()])
            .collect();
        output::table(&["", "WHAT", "FINDING"], &rows)?;
    }
    match findings.iter().filter(|finding| !finding.well).count() {
        0 => Ok(()),
        wrong => Err(Exit::new(Code::Failed, format!("{wrong} of {} checks failed", findings.len())).into()),
    }
}

async fn examine(config: &Config, server: Option<&str>) -> Vec<Finding> {
    let mut findings = vec![good("version", env!("CARGO_PKG_VERSION").to_owned())];
    findings.push(match &config.document.file {
        Some(file) => good("configuration", format!("{} is valid", file.display())),
        None => good("configuration", "no file, defaults are used".to_owned()),
    });
    match server {
        Some(url) => findings.extend(health(url).await),
        None => findings.extend(data(config).await),
    }
    findings.push(match &config.server.auth {
        Some(auth) => good(
            "authentication",
            match (&auth.secret, &auth.jwks_url) {
                (Some(_), Some(url)) => format!("tokens by secret and by the keys at {url}"),
                (None, Some(url)) => format!("tokens by the keys at {url}"),
                _ => "tokens by secret".to_owned(),
            },
        ),
        None => good("authentication", "off: one local user, this machine only".to_owned()),
    });
    if let Some(url) = config.server.auth.as_ref().and_then(|auth| auth.jwks_url.as_deref()) {
        findings.push(keys(url).await);
    }
    findings.push(good("model", config.models.described()));
    let models = config.models.choices.iter().filter_map(|choice| Some((choice.label(), models::address_of(choice)?)));
    findings.extend(join_all(models.map(|(label, address)| answers(label, address))).await);
    findings.extend(mcp(&config.mcp_servers).await);
    findings.extend(agents(&config.agents).await);
    findings.extend(channels(config).await);
    let zone = config.server.time_zone.iana_name().unwrap_or("not named, UTC offsets only").to_owned();
    findings.push(good("time zone", zone));
    if let Some(WebOrigin(endpoint)) = &config.settings.telemetry.otlp_endpoint {
        findings.push(reach(endpoint).await);
    }
    findings
}

/// The server that runs here, or else the database itself.
async fn data(config: &Config) -> Vec<Finding> {
    match Lock::take(&config.data_dir) {
        Err(store::Error::InUse { at: Some(url), .. }) => health(&url).await,
        Err(error) => vec![bad("data directory", error.to_string())],
        Ok(_lock) => {
            let dir = good("data directory", config.data_dir.display().to_string());
            let server = good("server", "not running; commands work on the data directory".to_owned());
            let mut findings = vec![dir, server];
            match Store::open(&config.location(), config.settings.database.durability).await {
                Ok(store) => {
                    findings.push(good("database", format!("{}, schema up to date", store.kind())));
                    findings.extend(outbox(&store).await);
                }
                Err(error) => findings.push(bad("database", redact::redact(&error.to_string()).into_owned())),
            }
            findings
        }
    }
}

/// What waits to be delivered, or never was.
async fn outbox(store: &Store) -> Vec<Finding> {
    let read = async { store::outbox::standing(&mut store.reader().await?).await };
    let Ok(standing) = read.await else { return Vec::new() };
    let says = |channel: &store::outbox::Standing| {
        format!("{}: {} waiting, {} given up", channel.channel, channel.waiting, channel.dead)
    };
    standing.iter().map(|channel| good("notifications", says(channel))).collect()
}

/// The ways by which users are told. Nothing is sent to try them.
async fn channels(config: &Config) -> Vec<Finding> {
    let checks = config.notify.channels.iter().map(|channel| async {
        let about = format!("{} ({})", channel.name, notify::described(channel));
        match tokio::time::timeout(PATIENCE, channel.check()).await {
            Ok(Ok(says)) => good("channel", format!("{about}: {says}")),
            Ok(Err(says)) => bad("channel", format!("{about}: {says}")),
            Err(_) => bad("channel", format!("{about}: does not answer")),
        }
    });
    join_all(checks).await
}

/// The server, and its channels that are disabled.
async fn health(url: &str) -> Vec<Finding> {
    let ask = async {
        let client = http(url).timeout(PATIENCE).build()?;
        client.get(format!("{}/health", url.trim_end_matches('/'))).send().await?.json::<Value>().await
    };
    let body = match ask.await {
        Ok(body) => body,
        Err(error) => {
            return vec![bad("server", format!("holds the data directory but does not answer at {url}: {error}"))];
        }
    };
    // Another program may answer there.
    let health = Health::deserialize(&body).ok().filter(|health| health.status == HealthStatus::Ok);
    let Some(Health { dependencies, .. }) = health else {
        return vec![bad("server", format!("running at {url}, but not well: {body}"))];
    };
    let mut findings = vec![good("server", format!("running at {url}, {} answers", dependencies.database.kind))];
    let disabled = dependencies.channels.into_iter().filter(|channel| channel.status != HealthStatus::Ok);
    findings.extend(disabled.map(|HealthOfChannel { name, disabled_until, last_error, .. }| {
        let until = or_empty(disabled_until);
        let error = last_error.unwrap_or_default();
        bad("channel", format!("{name} is disabled until {until}, too much was given up: {error}"))
    }));
    findings
}

async fn keys(url: &str) -> Finding {
    let ask =
        async { http(url).timeout(PATIENCE).build()?.get(url).send().await?.error_for_status()?.json::<Value>().await };
    match ask.await {
        Ok(set) if set.get("keys").is_some_and(Value::is_array) => good("token keys", format!("{url} publishes keys")),
        Ok(_) => bad("token keys", format!("{url} does not publish keys")),
        Err(error) => bad("token keys", format!("{url} cannot be read: {error}")),
    }
}

/// Whether there is somebody at the model's address. The key stays here: whoever answers at all is reachable.
async fn answers(label: String, address: &str) -> Finding {
    let ask = async {
        let client = http(address).redirect(Policy::none()).timeout(PATIENCE).build()?;
        client.get(address).send().await
    };
    match ask.await {
        Ok(_) => good("model", format!("{label}: {address} can be reached")),
        Err(_) => bad("model", format!("{label}: {address} cannot be reached")),
    }
}

/// Starts every MCP server, all at once, asks what it offers and stops it again.
async fn mcp(settings: &[Settings]) -> Vec<Finding> {
    let bounded = |settings: &Settings| {
        let mut settings = settings.clone();
        settings.start_timeout = settings.start_timeout.min(MCP_PATIENCE);
        settings
    };
    let settings: Vec<Settings> = settings.iter().map(bounded).collect();
    let patience = settings.iter().map(|settings| settings.start_timeout).max().unwrap_or_default();
    let servers = Servers::start(settings.clone(), &Breakers::new(Clock::system(), |_| {}));
    servers.settled(patience).await;
    let states = servers.states();
    servers.stop().await;
    let found = settings.iter().zip(states).map(|(settings, state)| {
        let about = format!("{} ({})", state.name, mcp_servers::described(settings));
        match (state.phase, state.last_error) {
            (Phase::Ready, _) => {
                let tools = if state.tools == 1 { "tool" } else { "tools" };
                let protocol = state.protocol.unwrap_or_default();
                let aside = match state.left_out.len() {
                    0 => String::new(),
                    count => format!(", {count} more cannot be used"),
                };
                good("MCP server", format!("{about}: ready, {} {tools}{aside}, protocol {protocol}", state.tools))
            }
            (_, Some(error)) => bad("MCP server", format!("{about}: {error}")),
            (_, None) => bad("MCP server", format!("{about}: not ready after {} s", patience.as_secs())),
        }
    });
    found.collect()
}

/// The agents of the configuration, those that could be added, and what keeps read-only ones from writing.
async fn agents(configured: &[Agent]) -> Vec<Finding> {
    let enabled = configured.iter().filter(|agent| agent.enabled);
    let mut findings: Vec<_> = join_all(enabled.map(check::examine))
        .await
        .into_iter()
        .map(|found| match found.faults.as_slice() {
            [] => good("agent", format!("{}: {}", found.id, found.says)),
            faults => bad("agent", format!("{}: {}", found.id, faults.join("; "))),
        })
        .collect();
    let others: Vec<_> = presets::here()
        .into_iter()
        .map(|found| found.preset.id.as_str())
        .filter(|preset| !configured.iter().any(|agent| agent.preset.as_deref() == Some(preset)))
        .collect();
    findings.push(good(
        "agents",
        match others.as_slice() {
            [] => "no others are installed that adjutant knows".to_owned(),
            others => format!("installed too: {}; `adjutant agents add --preset NAME` adds one", others.join(", ")),
        },
    ));
    let enforced = match landlock_support() {
        Landlock::Full => "enforced by Landlock",
        Landlock::Partial => "enforced by Landlock, but for some ways to truncate, move or control what is there",
        Landlock::Missing => "not enforced: this kernel has no Landlock, agents can only be asked not to write",
    };
    findings.push(good("read-only", enforced.to_owned()));
    findings
}

async fn reach(endpoint: &str) -> Finding {
    let address = endpoint.split("://").nth(1).unwrap_or_default();
    let address = if address.contains(':') { address.to_owned() } else { format!("{address}:4317") };
    match tokio::time::timeout(PATIENCE, tokio::net::TcpStream::connect(&address)).await {
        Ok(Ok(_)) => good("traces", format!("{endpoint} can be reached")),
        Ok(Err(error)) => bad("traces", format!("{endpoint} cannot be reached: {error}")),
        Err(_) => bad("traces", format!("{endpoint} does not answer")),
    }
}

fn good(what: &'static str, says: String) -> Finding {
    Finding { what, well: true, says }
}

fn bad(what: &'static str, says: String) -> Finding {
    Finding { what, well: false, says }
}
