//! The data directory, held by this process (OPS-4). Its requests are handled in this process.
//!
//! A command that runs for a long time also serves other commands over the socket of the data directory until it ends.
//! They ask it for work that a server would do: to run an agent, to use the models, to send reminders.

use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use model::agent::ASSISTANT_ID;
use server::App;
use server::app::Backends;
use server::local_socket::LocalSocket;
use store::lock::DataDirLock;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::wire::{self, ExternalServices};

/// The time that a request waits for MCP servers to start.
const MCP_START_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// The held data directory. Cloning is cheap. The lock is released when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Holder(Arc<HolderShared>);

struct HolderShared {
    app: App,
    router: Router,
    config: Config,
    settings: server::ServerSettings,
    /// The parts that were started for this or another command.
    parts: Mutex<HolderParts>,
    _lock: DataDirLock,
}

#[derive(Default)]
struct HolderParts {
    /// Set if this process has started the models for another command.
    services: Option<ExternalServices>,
    has_models: bool,
    is_running_agents: bool,
    is_notifying: bool,
    /// Serves other commands.
    serving: Option<JoinHandle<()>>,
}

impl Drop for HolderShared {
    /// Closes the database before the lock is released, so that the next process finds a complete file.
    fn drop(&mut self) {
        if let Err(error) = self.app.store().close(wire::CLOSE_TIMEOUT) {
            tracing::error!(event = "database_not_closed", error = %error);
        }
    }
}

impl Holder {
    /// Opens the database and builds the application. `has_models` means that `backends` are the configured ones. Fails
    /// if the database cannot be opened or read.
    pub(crate) async fn open(
        config: Config,
        settings: server::ServerSettings,
        backends: Backends,
        has_models: bool,
        lock: DataDirLock,
    ) -> anyhow::Result<Self> {
        // Another node may work on the executions of a shared database.
        let has_worker = !matches!(config.location(), store::Location::Sqlite(_));
        let settings = server::ServerSettings { has_worker, ..settings };
        let app = wire::build_app(&config, settings.clone(), backends).await?;
        let parts = Mutex::new(HolderParts { has_models, ..HolderParts::default() });
        let router = server::router(app.clone());
        Ok(Self(Arc::new(HolderShared { app, router, config, settings, parts, _lock: lock })))
    }

    pub(crate) fn app(&self) -> &App {
        &self.0.app
    }

    /// Returns the configured time zone.
    pub(crate) fn time_zone(&self) -> jiff::tz::TimeZone {
        self.0.settings.time_zone.clone()
    }

    pub(crate) fn router(&self) -> Router {
        self.0.router.clone()
    }

    /// Serves other commands from now on, until [`Holder::close`]. If the socket cannot be bound, logs a warning; other
    /// commands wait then.
    pub(crate) async fn listen(&self) {
        let mut parts = self.0.parts.lock().await;
        if parts.serving.is_some() {
            return;
        }
        match LocalSocket::bind(&self.0.config.data_dir) {
            Ok(socket) => {
                let routes = Router::new()
                    .route("/local/agents/{id}", post(run_agent))
                    .route("/local/models", post(use_models))
                    .route("/local/notifications", post(send_notifications));
                let serving = server::serve::serve_commands(self.app().clone(), socket, with_holder(routes, self));
                parts.serving = Some(tokio::spawn(serving));
            }
            Err(error) => tracing::warn!(event = "socket_not_bound", error = %error),
        }
    }

    /// Runs executions of this agent in this process. Also uses the models for the assistant. Fails if the supervisor
    /// cannot start.
    pub(crate) async fn run_agent(&self, agent_id: &str) -> anyhow::Result<()> {
        if agent_id == ASSISTANT_ID {
            self.use_models().await?;
        }
        let supervisor = self.app().supervisor();
        let mut parts = self.0.parts.lock().await;
        if parts.is_running_agents {
            supervisor.add_agent(agent_id);
        } else {
            supervisor.start_for_agent(agent_id).await.context("failed to start the supervisor")?;
            parts.is_running_agents = true;
        }
        Ok(())
    }

    /// Returns true if this process runs executions.
    pub(crate) async fn is_running_agents(&self) -> bool {
        self.0.parts.lock().await.is_running_agents
    }

    /// Replaces the offline model with the configured models and MCP servers. Waits up to [`MCP_START_TIMEOUT`] for the
    /// MCP servers. Has no effect if they are in use. Fails if a model cannot be set up.
    pub(crate) async fn use_models(&self) -> anyhow::Result<()> {
        let mut parts = self.0.parts.lock().await;
        if !parts.has_models {
            let services = ExternalServices::start(&self.0.config);
            services.servers().wait_until_settled(MCP_START_TIMEOUT).await;
            self.app().reload(self.0.settings.clone(), services.backends(&self.0.config)?);
            parts.services = Some(services);
            parts.has_models = true;
        }
        Ok(())
    }

    /// Sends reminders and notifications until [`Holder::close`].
    pub(crate) async fn send_notifications(&self) {
        let mut parts = self.0.parts.lock().await;
        if !parts.is_notifying {
            parts.is_notifying = true;
            let app = self.app().clone();
            tokio::spawn(async move { app.notifier().run(app.stopping()).await });
        }
    }

    /// Ends the service for other commands and the parts that were started for them. Other processes can take the data
    /// directory afterwards, when all clones are dropped. Running executions must have ended.
    pub(crate) async fn close(&self) {
        self.app().stopping().cancel();
        let parts = std::mem::take(&mut *self.0.parts.lock().await);
        if let Some(serving) = parts.serving {
            let _ = serving.await;
        }
        if let Some(services) = parts.services {
            services.stop().await;
        }
    }
}

/// Returns the routes with access to the holder.
fn with_holder(routes: Router<Holder>, holder: &Holder) -> Router<App> {
    routes.with_state(holder.clone())
}

/// Returns the status of a request of another command.
fn status(done: anyhow::Result<()>) -> StatusCode {
    match done {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(error) => {
            tracing::error!(event = "command_not_served", error = %error);
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

async fn run_agent(State(holder): State<Holder>, Path(id): Path<String>) -> StatusCode {
    status(holder.run_agent(&id).await)
}

async fn use_models(State(holder): State<Holder>) -> StatusCode {
    status(holder.use_models().await)
}

async fn send_notifications(State(holder): State<Holder>) -> StatusCode {
    holder.send_notifications().await;
    StatusCode::NO_CONTENT
}
