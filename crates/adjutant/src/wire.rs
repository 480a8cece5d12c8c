//! Builds the application from the configuration: store, supervisor, models and MCP servers.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use assistant::offline::OfflineModel;
use assistant::{ChatModel, ModelChain};
use model::Clock;
use model::breaker::Breakers;
use server::App;
use server::app::Backends;
use store::Store;
use store::lock::DataDirLock;
use supervisor::Supervisor;
use tokio::runtime::{Builder, Runtime};
use tools::mcp_client::McpServers;

use crate::config::Config;
use crate::exit::ExitStatus;

/// The time to wait for another short command.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The time in which the database must close at the end of a process.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns a runtime for short commands. On Ctrl-C it ends the process with [`ExitStatus::Interrupted`], also while the
/// command waits for a confirmation at the keyboard. Fails if the runtime cannot start.
pub(crate) fn command_runtime() -> anyhow::Result<Runtime> {
    let runtime = single_thread_runtime()?;
    runtime.spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(ExitStatus::Interrupted as i32);
        }
    });
    Ok(runtime)
}

/// Returns a runtime for commands that handle Ctrl-C themselves.
pub(crate) fn single_thread_runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().context("failed to start the runtime")
}

/// Locks the data directory, and creates it if it does not exist. Waits up to [`LOCK_TIMEOUT`] for a process without a
/// published address, such as a short command. Fails with `InUse` after the wait, or at once if a server with an
/// address holds the lock. Fails at once if the directory cannot be locked for another reason.
pub(crate) async fn lock_data_dir(dir: &Path) -> store::Result<DataDirLock> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match DataDirLock::acquire(dir) {
            Err(store::Error::InUse { address: None, .. }) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            result => return result,
        }
    }
}

/// Returns the runtime of the server, with one thread per core.
pub(crate) fn server_runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("failed to start the runtime")
}

/// Builds the application on the configured database and loads agents, channels and revoked tokens. Creates a missing
/// SQLite database and migrates the schema if needed. Schedules are not loaded. The caller must hold the lock of the
/// data directory. Agents do not run before the supervisor is started. Fails if the database cannot be opened or read.
pub(crate) async fn build_app(
    config: &Config,
    settings: server::ServerSettings,
    backends: Backends,
) -> anyhow::Result<App> {
    let store = Store::open(&config.location(), config.settings.database.durability)
        .await
        .context("failed to open the database")?;
    let supervisor = Supervisor::new(supervisor::SupervisorOptions {
        variables: Arc::new(|name| std::env::var(name).ok()),
        admission: config.admission.clone(),
        agents: config.agents.clone(),
        ..supervisor::SupervisorOptions::new(store, Clock::system(), &config.data_dir)
    });
    supervisor.set_hidden_paths(config.document.secret_files());
    supervisor.refresh_agents().await?;
    let app = App::new(supervisor, settings, backends);
    app.notifier().reload(config.notify.clone());
    app.refresh_revocations().await?;
    Ok(app)
}

/// Makes the configured schedules in the database match the configuration: adds, changes and removes them. They belong
/// to the local user. Schedules of the API stay; a configured schedule with the name of one is skipped with a warning
/// in the log. Returns the changes. Fails if the database fails.
pub(crate) async fn sync_schedules(
    app: &App,
    schedules: Vec<scheduler::CheckedSchedule>,
) -> store::Result<scheduler::SyncReport> {
    let synced = app.scheduler().sync(schedules).await?;
    for name in &synced.name_conflicts {
        let message = "a schedule of the API has the same name; the schedule of the configuration is ignored";
        tracing::warn!(event = "schedule_name_taken", name, message);
    }
    Ok(synced)
}

/// The models and MCP servers of the assistant. The state of their circuit breakers survives a reload of the
/// configuration.
pub(crate) struct ExternalServices {
    breakers: Breakers,
    servers: McpServers,
}

impl ExternalServices {
    /// Starts the MCP servers in the background.
    pub(crate) fn start(config: &Config) -> Self {
        let breakers = Breakers::new(Clock::system(), tools::call_log::log_breaker_change);
        let servers = McpServers::start(config.mcp_servers.clone(), &breakers);
        Self { breakers, servers }
    }

    /// Returns the models of a configuration, and the MCP servers if it has any. Fails if a model cannot be set up.
    pub(crate) fn backends(&self, config: &Config) -> anyhow::Result<Backends> {
        let models = assistant::models::from_configs(config.models.configs.clone(), &self.breakers, &Clock::system())
            .context("failed to set up the models")?;
        let servers = Some(self.servers.clone()).filter(|_| !config.mcp_servers.is_empty());
        Ok(Backends { models, servers })
    }

    /// Returns the MCP servers.
    pub(crate) fn servers(&self) -> &McpServers {
        &self.servers
    }

    /// Stops the MCP servers. Their processes have ended when it returns.
    pub(crate) async fn stop(&self) {
        self.servers.stop().await;
    }
}

/// Returns the offline model and the built-in tools, for commands that use no models.
pub(crate) fn offline_backends() -> Backends {
    let offline: Arc<dyn ChatModel> = Arc::new(OfflineModel);
    ModelChain::from(offline).into()
}
