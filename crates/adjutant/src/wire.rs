//! Puts the parts together: configuration → store → app. The only place that knows all of them.

use anyhow::Context;
use model::Clock;
use server::App;
use store::Store;
use tokio::runtime::{Builder, Runtime};

use crate::config::Config;

/// For commands that make a few requests and end.
pub(crate) fn small_runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("failed to start")
}

/// For the server.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("failed to start")
}

/// The application on the configured database. Whoever calls this holds the lock of the data directory.
pub(crate) async fn app(config: &Config, settings: server::Settings) -> anyhow::Result<App> {
    let store = Store::open(&config.location(), config.durability).await.context("failed to open the database")?;
    Ok(App::new(store, Clock::system(), settings))
}
