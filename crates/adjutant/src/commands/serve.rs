//! `adjutant serve` and `adjutant work`: run until a signal stops them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use model::stop_state::StopState;
use scheduler::SyncReport;
use server::App;
use server::local_socket::LocalSocket;
use server::serve::Listeners;
use store::lock::DataDirLock;
use supervisor::Supervisor;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tools::ToolNames;

use super::reload_record::{AgentChanges, record_reload};
use crate::cli::GlobalOptions;
use crate::config::values::WebOrigin;
use crate::config::{Config, ConfigMistake};
use crate::exit::{ExitError, ExitStatus};
use crate::telemetry::TraceExporter;
use crate::wire::{self, ExternalServices};
use crate::{logging, output};

/// The time in which blocking threads may finish at the end.
const THREADS_TIMEOUT: Duration = Duration::from_millis(500);

/// The role of this node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeRole {
    /// Serves requests and runs agents.
    Both,
    /// Serves requests. Other nodes run agents.
    Serve,
    /// Runs agents only.
    Work,
}

impl NodeRole {
    /// Fails with a usage error if the role is [`NodeRole::Serve`] or [`NodeRole::Work`] and no PostgreSQL URL is
    /// configured.
    fn check(self, config: &Config) -> anyhow::Result<()> {
        let command = match self {
            Self::Serve => "`serve --no-work`",
            Self::Work => "`work`",
            Self::Both => return Ok(()),
        };
        match config.database_url {
            Some(_) => Ok(()),
            None => {
                let message =
                    "needs a PostgreSQL database that several nodes share: set database.url, or run `adjutant serve`";
                Err(ExitError::new(ExitStatus::Usage, format!("{command} {message}")).into())
            }
        }
    }
}

/// Loads the configuration, locks the data directory, starts traces and logging, and serves until a signal stops the
/// node. Sends the last traces at the end. Replaces the panic hook. `listen` is the value of `--listen`.
///
/// Fails if the configuration is invalid, if the role needs PostgreSQL, or if a step of the start or [`serve`] fails.
/// Fails if another server uses the data directory, or another command does for too long.
pub(crate) fn run(global: &GlobalOptions, listen: Option<&str>, role: NodeRole) -> anyhow::Result<()> {
    let config = super::load_config(global, listen)?;
    role.check(&config)?;
    // Fails only where the system forbids it. The server then accepts fewer connections.
    let _ = supervisor::guardian::raise_open_files_limit();
    let runtime = wire::server_runtime()?;
    let mut lock = runtime.block_on(wire::lock_data_dir(&config.data_dir))?;
    let traces = runtime.block_on(async { TraceExporter::start(&config) }).context("failed to start traces")?;
    let log = logging::start(&config, traces.as_ref());
    logging::log_panics();
    let served = runtime.block_on(serve(global, listen, &config, role, &mut lock, &log));
    // The exporter needs the runtime.
    if let Some(traces) = traces {
        traces.finish();
    }
    // A thread that waits for a disk must not delay the end.
    runtime.shutdown_timeout(THREADS_TIMEOUT);
    served
}

/// Starts the parts of this role, prints the banner, and serves until SIGTERM, SIGINT or a request to stop. Running
/// executions may finish before that, if that is configured or asked for. SIGHUP reloads the configuration.
///
/// - `Both` and `Work` run agents and schedules, and write the schedules of the file to the database. `Serve` does
///   neither. Every role fires reminders and delivers notifications.
/// - `Work` listens only with `--listen`, and serves only its health. The other roles publish their address in `lock`,
///   and also listen on the socket of the data directory.
///
/// Fails if a schedule refers to an unknown agent, if a part cannot start, or if the server or the scheduler panics.
/// Fails with [`ExitStatus::Interrupted`] if a second signal arrives before the server has stopped.
async fn serve(
    global: &GlobalOptions,
    listen: Option<&str>,
    config: &Config,
    role: NodeRole,
    lock: &mut DataDirLock,
    log: &logging::LogHandle,
) -> anyhow::Result<()> {
    // Registered before the banner, so that no early signal is lost.
    let mut signals = Signals::listen()?;
    let mut drain_limit = Duration::from_secs(config.settings.server.drain_seconds.0);
    let services = ExternalServices::start(config);
    let app = wire::build_app(config, config.server.clone(), services.backends(config)?).await?;
    let unknown = config.unknown_agents(app.supervisor()).await?;
    if !unknown.is_empty() {
        services.stop().await;
        return Err(super::config_error(&unknown));
    }
    // A node that only runs agents has an address only with `--listen`.
    let listener = match role == NodeRole::Work && listen.is_none() {
        true => None,
        false => Some(bind(config).await?),
    };
    let address = match &listener {
        Some(listener) => Some(reachable(listener.local_addr()?)),
        None => None,
    };
    let url = address.map(|address| format!("http://{address}"));
    let local = if role == NodeRole::Work { None } else { bind_local(config) };
    if let Some(url) = url.as_ref().filter(|_| role != NodeRole::Work) {
        lock.publish_address(url)?;
        let port = address.map_or(0, |address| address.port());
        app.supervisor().set_server_address(supervisor::ServerAddress { url: url.clone(), port });
    }
    print_banner(config, role, url.as_deref())?;
    if let Some(stop) = store::stop_state::current(&mut app.store().reader().await?).await? {
        print_stop(&stop)?;
    }
    tracing::info!(event = "server_started", address = url, database = app.store().kind());
    let started = match role {
        NodeRole::Serve => app.supervisor().start_without_running().await,
        NodeRole::Both | NodeRole::Work => app.supervisor().start().await,
    };
    started.context("failed to start the supervisor")?;
    let schedules = match role {
        NodeRole::Serve => None,
        NodeRole::Both | NodeRole::Work => {
            let synced = wire::sync_schedules(&app, config.schedules.clone()).await;
            synced.context("failed to write the schedules of the configuration to the database")?;
            let scheduler = app.scheduler().clone();
            let stopping = app.stopping().clone();
            Some(tokio::spawn(async move { scheduler.run(stopping).await }))
        }
    };
    if role != NodeRole::Serve && !config.agents.is_empty() {
        let supervisor = app.supervisor().clone();
        tokio::spawn(async move { log_missing_protections(&supervisor).await });
    }
    let notifying = tokio::spawn({
        let app = app.clone();
        async move { app.notifier().run(app.stopping()).await }
    });
    let mut server = tokio::spawn({
        let app = app.clone();
        async move {
            match listener {
                Some(listener) if role == NodeRole::Work => server::serve::serve_health(app, listener).await,
                Some(listener) => server::serve::serve(app, Listeners { tcp: Some(listener), local }).await,
                None => server::serve::run_background(app).await,
            }
        }
    });
    let mut stop_requests = app.stop_requests();
    loop {
        tokio::select! {
            action = signals.next() => match action {
                SignalAction::Reload => reload(global, listen, config, &app, &services, log).await,
                SignalAction::Stop => break,
            },
            // The sender lives as long as `app`.
            Ok(()) = stop_requests.changed() => {
                let command = *stop_requests.borrow_and_update();
                drain_limit = command.and_then(|command| command.drain).unwrap_or(drain_limit);
                break;
            }
            // The server ends without a signal only if it panics.
            ended = &mut server => return ended.context("the server failed"),
        }
    }
    super::stop::drain(&app, drain_limit, signals.stop()).await;
    tracing::info!(event = "server_stopping");
    app.stopping().cancel();
    // A disk that fails must not delay the stop.
    app.store().stop_retrying();
    let end = async {
        let stopped = server.await.context("the server failed");
        if let Some(schedules) = schedules {
            schedules.await.context("the scheduler failed")?;
        }
        app.supervisor().stop().await;
        let _ = notifying.await;
        services.stop().await;
        close_database(&app).await;
        stopped
    };
    tokio::select! {
        stopped = end => stopped,
        // A second signal ends the process at once. The guardian ends the agents.
        () = signals.stop() => Err(ExitError::new(ExitStatus::Interrupted, "stopped without waiting").into()),
    }
}

/// Closes the database and logs the outcome.
async fn close_database(app: &App) {
    let store = app.store().clone();
    match tokio::task::spawn_blocking(move || store.close(wire::CLOSE_TIMEOUT)).await {
        Ok(Ok(())) => tracing::info!(event = "database_closed"),
        Ok(Err(error)) => tracing::error!(event = "database_not_closed", error = %error),
        Err(error) => tracing::error!(event = "database_not_closed", error = %error),
    }
}

/// Logs a warning that names the protections of agents which this system does not enforce. Starts the guardian.
async fn log_missing_protections(supervisor: &Supervisor) {
    match supervisor.protections().await {
        Ok(protections) if protections.missing().is_empty() => {}
        Ok(protections) => {
            let message = protections.missing().join("; ");
            tracing::warn!(event = "protections_missing", message);
        }
        Err(failure) => tracing::error!(event = "guardian_failed", error = failure.message),
    }
}

/// Binds `server.listen`. Fails with a hint to use `--listen` if the address cannot be bound.
async fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    TcpListener::bind(config.settings.server.listen).await.map_err(|error| {
        let listen = config.settings.server.listen;
        let message = format!("cannot listen on {listen}: {error}; choose another with --listen");
        ExitError::new(ExitStatus::Failed, message).into()
    })
}

/// Binds the socket of the data directory, for commands of this machine. If that fails, logs the reason; commands use
/// TCP then.
fn bind_local(config: &Config) -> Option<LocalSocket> {
    match LocalSocket::bind(&config.data_dir) {
        Ok(socket) => Some(socket),
        Err(error) => {
            let message = "cannot listen on the socket of the data directory; commands use TCP";
            tracing::warn!(event = "socket_not_bound", error = %error, message);
            None
        }
    }
}

/// The signals that the node handles.
struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

/// The effect of a signal.
enum SignalAction {
    /// SIGHUP.
    Reload,
    /// SIGTERM or SIGINT.
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

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.hangup.recv() => SignalAction::Reload,
            () = stop(&mut self.terminate, &mut self.interrupt) => SignalAction::Stop,
        }
    }

    async fn stop(&mut self) {
        stop(&mut self.terminate, &mut self.interrupt).await;
    }
}

/// Waits for SIGTERM or SIGINT.
async fn stop(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Loads the configuration again and applies it to the running parts. `old` is the configuration of the start, not of
/// the last reload. Rejects a configuration that is invalid, refers to unknown agents or lacks the authentication of
/// `old`, and logs the reason. Also rejects it if the agents cannot be read.
///
/// The address, the database, the data directory and the traces do not change; a difference to `old` is logged as a
/// warning. If the backends cannot be built, only the log level has changed. A failure to write the schedules is
/// logged, and the rest is applied. On a node with the role `Serve` too, the schedules are written.
async fn reload(
    global: &GlobalOptions,
    listen: Option<&str>,
    old: &Config,
    app: &App,
    services: &ExternalServices,
    log: &logging::LogHandle,
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
        // Removing authentication at runtime would expose the server to clients without a token.
        Ok(new) if old.server.auth.is_some() && new.server.auth.is_none() => {
            let mistakes = "authentication cannot be removed while the server runs: restart it";
            tracing::error!(event = "configuration_rejected", mistakes);
        }
        Ok(new) => {
            if new.needs_restart(old) {
                let message = "changes to the address, the database and the traces take effect after a restart";
                tracing::warn!(event = "configuration_reloaded", message);
            }
            log.set_level(new.settings.log.level);
            let backends = match services.backends(&new) {
                Ok(backends) => backends,
                Err(error) => {
                    let mistakes = format!("{error:#}");
                    return tracing::error!(event = "configuration_rejected", mistakes);
                }
            };
            services.servers().replace(new.mcp_servers);
            app.supervisor().set_hidden_paths(new.document.secret_files());
            let agents = AgentChanges::between(&app.supervisor().agents(), &new.agents);
            app.supervisor().reload(new.agents, new.admission);
            let schedules = match wire::sync_schedules(app, new.schedules).await {
                Ok(schedules) => schedules,
                Err(error) => {
                    tracing::error!(event = "schedules_not_synced", error = %error);
                    SyncReport::default()
                }
            };
            record_reload(app, &agents, &schedules).await;
            app.notifier().reload(new.notify);
            // `loopback_only` belongs to the current address.
            app.reload(server::ServerSettings { loopback_only: old.server.loopback_only, ..new.server }, backends);
            tracing::info!(event = "configuration_reloaded");
        }
        Err(mistakes) => {
            let mistakes: Vec<_> = mistakes.iter().map(ConfigMistake::to_string).collect();
            tracing::error!(event = "configuration_rejected", mistakes = mistakes.join("; "));
        }
    }
}

/// Prints the version, the address and one line each for the database, models, tools, agents, channels, users and
/// traces. `url` is none if this node does not listen. A node that only runs agents shows its health URL instead of the
/// interface. Fails if standard output cannot be written.
fn print_banner(config: &Config, role: NodeRole, url: Option<&str>) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match (role, url) {
        (NodeRole::Work, None) => output::print_line(&format!("adjutant {version} is ready to run agents"))?,
        (NodeRole::Work, Some(url)) => {
            output::print_line(&format!("adjutant {version} is ready to run agents; health: {url}/health"))?;
        }
        (_, url) => {
            let url = url.unwrap_or_default();
            output::print_line(&format!("adjutant {version} is ready at {url}"))?;
            output::print_line(&format!("  interface  {url}/docs"))?;
        }
    }
    match &config.database_url {
        Some(_) => output::print_line("  database   PostgreSQL")?,
        None => output::print_line(&format!("  database   SQLite in {}", config.data_dir.display()))?,
    }
    output::print_line(&format!("  model      {}", config.models.describe()))?;
    let servers: Vec<_> = config.mcp_servers.iter().map(|server| server.name.as_str()).collect();
    match (config.server.tool_names, servers.join(", ")) {
        (ToolNames::None, servers) if servers.is_empty() => {
            output::print_line("  tools      none: tasks.tool_names is none")?
        }
        (ToolNames::None, servers) => output::print_line(&format!(
            "  tools      of {servers}; the built-in tools are off: tasks.tool_names is none"
        ))?,
        (_, servers) if servers.is_empty() => {
            output::print_line("  tools      built in; no MCP servers are configured")?
        }
        (_, servers) => output::print_line(&format!("  tools      built in, and of {servers}"))?,
    }
    match role {
        NodeRole::Serve => output::print_line("  agents     run on other nodes: this node was started with --no-work")?,
        NodeRole::Both | NodeRole::Work => print_agents(config)?,
    }
    let channels: Vec<_> = config.notify.channels.iter().map(|channel| channel.name.as_str()).collect();
    match channels.join(", ") {
        none if none.is_empty() => output::print_line("  notify     no channels: no [[notify]] is configured")?,
        channels => output::print_line(&format!("  notify     by {channels}"))?,
    }
    match &config.server.auth {
        Some(_) => output::print_line("  users      by token"),
        None => output::print_line("  users      the local user only; tokens are off because no [auth] is configured"),
    }?;
    match &config.settings.telemetry.otlp_endpoint {
        Some(WebOrigin(endpoint)) => output::print_line(&format!("  traces     to {endpoint}")),
        None => output::print_line("  traces     off: telemetry.otlp_endpoint is not set"),
    }
}

/// Prints a warning that everything is stopped, and logs it.
fn print_stop(stop: &StopState) -> anyhow::Result<()> {
    let sentence = StopState::describe(stop.reason.as_deref());
    let since = super::listing::local_time(stop.stopped_at);
    tracing::warn!(event = "started_while_stopped", reason = stop.reason, since = %stop.stopped_at);
    output::print_line(&format!("  WARNING    {sentence} (since {since}); `adjutant resume-all` takes that back"))
}

/// Prints one line with the ids of the enabled agents of the configuration. Agents with a missing program, directory or
/// token are at its end, as not usable. Without agents, the line is a hint to detect installed ones.
fn print_agents(config: &Config) -> anyhow::Result<()> {
    let is_unusable = |agent: &&model::agent::Agent| {
        supervisor::check::check_available(agent, &|name| std::env::var(name).ok()).is_err()
    };
    let names =
        |agents: Vec<&model::agent::Agent>| agents.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>().join(", ");
    let (unusable, usable): (Vec<_>, Vec<_>) =
        config.agents.iter().filter(|agent| agent.enabled).partition(is_unusable);
    let mut line = match names(usable) {
        none if none.is_empty() && unusable.is_empty() => {
            "none configured; `adjutant agents detect` finds installed ones".to_owned()
        }
        usable => usable,
    };
    if !unusable.is_empty() {
        line = format!("{line}; not usable: {} (see `adjutant agents check`)", names(unusable));
    }
    output::print_line(&format!("  agents     {}", line.trim_start_matches("; ")))
}

/// Returns an address that clients on this machine can use: an unspecified IP address is replaced with the loopback
/// address of the same family.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}
