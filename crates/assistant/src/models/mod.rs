//! The models: the built-in one and those of the providers.

mod accumulator;
pub mod config;
mod events;
mod provider_error;
mod remote;
mod schema;
mod transcript;
mod wire;

use std::sync::Arc;

use model::Clock;
use model::breaker::Breakers;

pub use config::{ModelConfig, ModelProvider};
pub use remote::{ModelConfigError, RemoteModel};

use crate::offline::OfflineModel;
use crate::{ChatModel, ModelChain};

/// Creates the models in fallback order. Without configurations, the chain has only the built-in model.
///
/// Fails if a configuration has an invalid URL or header, or if the HTTP client cannot be created.
pub fn from_configs(
    configs: Vec<ModelConfig>,
    breakers: &Breakers,
    clock: &Clock,
) -> Result<ModelChain, ModelConfigError> {
    let mut models = configs.into_iter().map(|config| -> Result<Arc<dyn ChatModel>, ModelConfigError> {
        Ok(match config.provider {
            ModelProvider::Offline => Arc::new(OfflineModel),
            _ => Arc::new(RemoteModel::new(config, breakers, clock.clone())?),
        })
    });
    let first = models.next().unwrap_or_else(|| Ok(Arc::new(OfflineModel)))?;
    Ok(ModelChain::new(first, models.collect::<Result<Vec<_>, _>>()?))
}
