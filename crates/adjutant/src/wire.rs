//! Puts the parts together: configuration → store → app. The only place that knows all of them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use assistant::Models;
use model::Clock;
use model::breaker::Breakers;
use server::App;
use store::Store;
use store::lock::Lock;
use tokio::runtime::{Builder, Runtime};

use crate::config::Config;
use crate::exit::Code;

const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// For commands that make a few requests and end. Its one thread listens for Ctrl-C, also while the command waits for
/// an answer at the keyboard.
pub(crate) fn small_runtime() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().context("failed to start")?;
    runtime.spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(Code::Interrupted as i32);
        }
    });
    Ok(runtime)
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

/// The application on the configured database. Whoever calls this holds the lock of the data directory.
pub(crate) async fn app(config: &Config, settings: server::Settings) -> anyhow::Result<App> {
    let store = Store::open(&config.location(), config.durability).await.context("failed to open the database")?;
    let app = App::new(store, Clock::system(), settings, models(config)?);
    app.refresh_revocations().await?;
    Ok(app)
}

/// The models that are asked, in their order.
pub(crate) fn models(config: &Config) -> anyhow::Result<Models> {
    let clock = Clock::system();
    let breakers = Breakers::new(clock.clone(), tools::record::breaker);
    assistant::models::all(config.models.clone(), &breakers, &clock)
        .context("failed to prepare the models")
}
