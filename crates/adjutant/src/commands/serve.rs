//! `adjutant serve` and `adjutant work`: run until they are told to stop.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use server::App;
use store::lock::Lock;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tools::Names;

use crate::cli::Global;
use crate::config::form::WebOrigin;
use crate::config::{Config, Mistake};
use crate::exit::{Code, Exit};
use crate::telemetry::Traces;
use crate::wire::{self, Outside};
use crate::{logging, output};

/// What this node does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Both,
    /// Agents are run by other nodes.
    Serve,
    /// Only runs agents.
    Work,
}

impl Role {
    /// Whether the database lets nodes share the work.
    fn check(self, config: &Config) -> anyhow::Result<()> {
        let what = match self {
            Self::Serve => "`serve --no-work`",
            Self::Work => "`work`",
            Self::Both => return Ok(()),
        };
        match config.database_url {
            Some(_) => Ok(()),
            None => {
                let message =
                    "needs PostgreSQL, which several nodes can share: set database.url, or run `adjutant serve`";
                Err(Exit::new(Code::Usage, format!("{what} {message}")).into())
            }
        }
    }
}

pub(crate) fn run(global: &Global, listen: Option<&str>, role: Role) -> anyhow::Result<()> {
    let config = super::load(global, listen)?;
    role.check(&config)?;
    let runtime = wire::runtime()?;
    let mut lock = runtime.block_on(wire::lock(&config.data_dir))?;
    let traces = runtime.block_on(async { Traces::start(&config) }).context("failed to start traces")?;
    let log = logging::start(&config, traces.as_ref());
    logging::log_panics();
    let served = runtime.block_on(serve(global, listen, &config, role, &mut lock, &log));
    if let Some(traces) = traces {
        traces.finish();
    }
    served
}

async fn serve(
    global: &Global,
    listen: Option<&str>,
    config: &Config,
    role: Role,
    lock: &mut Lock,
    log: &logging::Handle,
) -> anyhow::Result<()> {
    // Before anything is printed: a signal that comes early must not be lost.
    let mut signals = Signals::listen()?;
    let outside = Outside::start(config);
    let app = wire::app(config, config.server.clone(), outside.equipment(config)?).await?;
    let unknown = config.unknown_agents(app.supervisor()).await?;
    if !unknown.is_empty() {
        outside.stop().await;
        return Err(super::not_valid(&unknown));
    }
    // One that only works has no address unless it is given one.
    let listener = match role == Role::Work && listen.is_none() {
        true => None,
        false => Some(bind(config).await?),
    };
    let url = match &listener {
        Some(listener) => Some(format!("http://{}", reachable(listener.local_addr()?))),
        None => None,
    };
    if let Some(url) = url.as_ref().filter(|_| role != Role::Work) {
        lock.publish(url)?;
    }
    greet(config, role, url.as_deref())?;
    tracing::info!(event = "server_started", address = url, database = app.store().kind());
    let begun = match role {
        Role::Serve => app.supervisor().attend().await,
        Role::Both | Role::Work => app.supervisor().work().await,
    };
    begun.context("failed to begin to run agents")?;
    let schedules = match role {
        Role::Serve => None,
        Role::Both | Role::Work => {
            let synced = wire::sync(&app, config.schedules.clone()).await;
            synced.context("failed to bring in the schedules of the configuration")?;
            let scheduler = app.scheduler().clone();
            let stopping = app.stopping().clone();
            Some(tokio::spawn(async move { scheduler.run(stopping).await }))
        }
    };
    let notifying = tokio::spawn({
        let app = app.clone();
        async move { app.notifier().run(app.stopping()).await }
    });
    let mut server = tokio::spawn({
        let app = app.clone();
        async move {
            match listener {
                Some(listener) if role == Role::Work => server::serve::tell_health(app, listener).await,
                Some(listener) => server::serve::serve(app, listener).await,
                None => server::serve::work(app).await,
            }
        }
    });
    loop {
        tokio::select! {
            wish = signals.next() => match wish {
                Wish::Reload => reload(global, listen, config, &app, &outside, log).await,
                Wish::Stop => break,
            },
            // It ends by itself only if something is very wrong.
            ended = &mut server => return ended.context("the server failed")?.context("the server failed"),
        }
    }
    tracing::info!(event = "server_stopping");
    app.stopping().cancel();
    let stopped = tokio::select! {
        done = server => done.context("the server failed")?.context("the server failed"),
        // Whoever asks twice does not want to wait.
        () = signals.stop() => Err(Exit::new(Code::Interrupted, "stopped without waiting").into()),
    };
    if let Some(schedules) = schedules {
        schedules.await.context("the scheduler failed")?;
    }
    app.supervisor().stop().await;
    let _ = notifying.await;
    outside.stop().await;
    stopped
}

async fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    TcpListener::bind(config.settings.server.listen).await.map_err(|error| {
        let listen = config.settings.server.listen;
        let message = format!("cannot listen on {listen}: {error}; choose another with --listen");
        Exit::new(Code::Failed, message).into()
    })
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

enum Wish {
    Reload,
    Stop,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.hangup.recv() => Wish::Reload,
            () = stop(&mut self.terminate, &mut self.interrupt) => Wish::Stop,
        }
    }

    async fn stop(&mut self) {
        stop(&mut self.terminate, &mut self.interrupt).await;
    }
}

async fn stop(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Reads the configuration again. One that is not valid changes nothing.
async fn reload(
    global: &Global,
    listen: Option<&str>,
    old: &Config,
    app: &App,
    outside: &Outside,
    log: &logging::Handle,
) {
    let loaded = match Config::load(global, listen) {
        Ok(new) => match new.unknown_agents(app.supervisor()).await {
            Ok(unknown) if unknown.is_empty() => Ok(new),
            Ok(unknown) => Err(unknown),
            Err(error) => return tracing::error!(event = "configuration_rejected", mistakes = %error),
        },
        Err(mistakes) => Err(mistakes),
    };
    match loaded {
        // Whoever could reach the server only with a token would be let in without one.
        Ok(new) if old.server.auth.is_some() && new.server.auth.is_none() => {
            let mistakes = "authentication cannot be switched off while the server runs: stop it and start it again";
            tracing::error!(event = "configuration_rejected", mistakes);
        }
        Ok(new) => {
            if new.needs_restart(old) {
                let message = "address, database and traces stay as they are until the next start";
                tracing::warn!(event = "configuration_reloaded", message);
            }
            log.set_level(new.settings.log.level);
            // The guard belongs to the address that is in use.
            let equipment = match outside.equipment(&new) {
                Ok(equipment) => equipment,
                Err(error) => {
                    let mistakes = format!("{error:#}");
                    return tracing::error!(event = "configuration_rejected", mistakes);
                }
            };
            outside.servers().replace(new.mcp_servers);
            app.supervisor().reload(new.agents, new.admission);
            if let Err(error) = wire::sync(app, new.schedules).await {
                tracing::error!(event = "schedules_not_synced", error = %error);
            }
            app.notifier().reload(new.notify);
            app.reload(server::Settings { loopback_only: old.server.loopback_only, ..new.server }, equipment);
            tracing::info!(event = "configuration_reloaded");
        }
        Err(mistakes) => {
            let mistakes: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
            tracing::error!(event = "configuration_rejected", mistakes = mistakes.join("; "));
        }
    }
}

fn greet(config: &Config, role: Role, url: Option<&str>) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match (role, url) {
        (Role::Work, None) => output::say(&format!("adjutant {version} is ready to run agents"))?,
        (Role::Work, Some(url)) => {
            output::say(&format!("adjutant {version} is ready to run agents; how it is: {url}/health"))?;
        }
        (_, url) => {
            let url = url.unwrap_or_default();
            output::say(&format!("adjutant {version} is ready at {url}"))?;
            output::say(&format!("  interface  {url}/docs"))?;
        }
    }
    match &config.database_url {
        Some(_) => output::say("  database   PostgreSQL")?,
        None => output::say(&format!("  database   SQLite in {}", config.data_dir.display()))?,
    }
    output::say(&format!("  model      {}", config.models.described()))?;
    let servers: Vec<_> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    match (config.server.tool_names, servers.join(", ")) {
        (Names::None, servers) if servers.is_empty() => output::say("  tools      none: tasks.tool_names is none")?,
        (Names::None, servers) => output::say(&format!("  tools      those of {servers}; our own are off"))?,
        (_, servers) if servers.is_empty() => output::say("  tools      our own; no MCP servers are configured")?,
        (_, servers) => output::say(&format!("  tools      our own, and those of {servers}"))?,
    }
    match role {
        Role::Serve => output::say("  agents     run by other nodes: this one was started with --no-work")?,
        Role::Both | Role::Work => greet_agents(config)?,
    }
    let channels: Vec<_> = config.notify.channels.iter().map(|channel| channel.name.as_str()).collect();
    match channels.join(", ") {
        none if none.is_empty() => output::say("  notify     in the product only: no [[notify]] is configured")?,
        channels => output::say(&format!("  notify     in the product, and by {channels}"))?,
    }
    match &config.server.auth {
        Some(_) => output::say("  users      by token"),
        None => output::say("  users      one, the local user; tokens are off because no [auth] is configured"),
    }?;
    match &config.settings.telemetry.otlp_endpoint {
        Some(WebOrigin(endpoint)) => output::say(&format!("  traces     to {endpoint}")),
        None => output::say("  traces     off: telemetry.otlp_endpoint is not set"),
    }
}

fn greet_agents(config: &Config) -> anyhow::Result<()> {
    let missing =
        |agent: &&model::agent::Agent| supervisor::check::here(agent, &|name| std::env::var(name).ok()).is_err();
    let names =
        |agents: Vec<&model::agent::Agent>| agents.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>().join(", ");
    let (lacking, there): (Vec<_>, Vec<_>) = config.agents.iter().filter(|agent| agent.enabled).partition(missing);
    let mut line = match names(there) {
        none if none.is_empty() && lacking.is_empty() => {
            "none are configured; `adjutant agents detect` finds some".to_owned()
        }
        there => there,
    };
    if !lacking.is_empty() {
        line = format!("{line}; not usable: {} (see `adjutant agents check`)", names(lacking));
    }
    output::say(&format!("  agents     {}", line.trim_start_matches("; ")))
}

/// An address that a client on this machine can use.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}
