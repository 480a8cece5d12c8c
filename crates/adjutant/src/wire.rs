//! Puts the parts together: configuration → store → app. The only place that knows all of them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use assistant::offline::Offline;
use assistant::{ChatModel, Models};
use model::Clock;
use model::breaker::Breakers;
use server::App;
use server::app::Equipment;
use store::Store;
use store::lock::Lock;
use supervisor::Supervisor;
use tokio::runtime::{Builder, Runtime};
use tools::foreign::Servers;

use crate::config::Config;
use crate::exit::Code;

const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// For commands that make a few requests and end. Its one thread listens for Ctrl-C, also while the command waits for
/// an answer at the keyboard.
pub(crate) fn small_runtime() -> anyhow::Result<Runtime> {
    let runtime = own_runtime()?;
    runtime.spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(Code::Interrupted as i32);
        }
    });
    Ok(runtime)
}

/// For commands that decide themselves what Ctrl-C means.
pub(crate) fn own_runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().context("failed to start")
}

/// The lock of the data directory, for which a short command of somebody else is waited.
pub(crate) async fn lock(dir: &Path) -> store::Result<Lock> {
    let give_up = Instant::now() + LOCK_PATIENCE;
    loop {
        match Lock::take(dir) {
            Err(store::Error::InUse { at: None, .. }) if Instant::now() < give_up => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            result => return result,
        }
    }
}

/// For the server.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("failed to start")
}

/// The application on the configured database. Whoever calls this holds the lock of the data directory. Nothing is run
/// before the supervisor is told to work.
pub(crate) async fn app(config: &Config, settings: server::Settings, equipment: Equipment) -> anyhow::Result<App> {
    let store = Store::open(&config.location(), config.settings.database.durability)
        .await
        .context("failed to open the database")?;
    let supervisor = Supervisor::new(supervisor::Options {
        variables: Arc::new(|name| std::env::var(name).ok()),
        admission: config.admission.clone(),
        agents: config.agents.clone(),
        ..supervisor::Options::new(store, Clock::system(), &config.data_dir)
    });
    supervisor.refresh().await?;
    let app = App::new(supervisor, settings, equipment);
    app.notifier().reload(config.notify.clone());
    app.refresh_revocations().await?;
    Ok(app)
}

/// Brings the schedules of the configuration into the table.
pub(crate) async fn sync(app: &App, schedules: Vec<scheduler::Checked>) -> store::Result<()> {
    let synced = app.scheduler().sync(schedules).await?;
    for name in synced.taken {
        let message = "a schedule made over the API has the name of one in the configuration, which is left out";
        tracing::warn!(event = "schedule_name_taken", name, message);
    }
    Ok(())
}

/// What lives outside of the program and is used by the assistant: models and MCP servers. What is known about their
/// health outlives a change of the configuration.
pub(crate) struct Outside {
    breakers: Breakers,
    servers: Servers,
}

impl Outside {
    /// Begins to start the MCP servers; nobody waits for them.
    pub(crate) fn start(config: &Config) -> Self {
        let breakers = Breakers::new(Clock::system(), tools::record::breaker);
        let servers = Servers::start(config.mcp_servers.clone(), &breakers);
        Self { breakers, servers }
    }

    /// For this configuration, to which the MCP servers are brought too.
    pub(crate) fn equipment(&self, config: &Config) -> anyhow::Result<Equipment> {
        let models = assistant::models::all(config.models.choices.clone(), &self.breakers, &Clock::system())
            .context("failed to prepare the models")?;
        let servers = Some(self.servers.clone()).filter(|_| !config.mcp_servers.is_empty());
        Ok(Equipment { models, servers })
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The programs that were started are gone when it returns.
    pub(crate) async fn stop(&self) {
        self.servers.stop().await;
    }
}

/// For commands that ask nobody: the built-in model, our own tools.
pub(crate) fn alone() -> Equipment {
    let offline: Arc<dyn ChatModel> = Arc::new(Offline);
    Models::from(offline).into()
}
