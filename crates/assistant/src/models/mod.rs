//! The models that can be asked: the built-in one, and those of the providers.

pub mod choice;
mod events;
mod fault;
mod heard;
mod prompt;
mod remote;
mod schema;
mod wire;

use std::sync::Arc;

use model::Clock;
use model::breaker::Breakers;

pub use choice::{Choice, Provider};
pub use remote::{Remote, Unusable};

use crate::offline::Offline;
use crate::{ChatModel, Models};

/// The models in the order in which they are asked; the built-in one where none is chosen.
pub fn all(choices: Vec<Choice>, breakers: &Breakers, clock: &Clock) -> Result<Models, Unusable> {
    let mut models = choices.into_iter().map(|choice| -> Result<Arc<dyn ChatModel>, Unusable> {
        Ok(match choice.provider {
            Provider::Offline => Arc::new(Offline),
            _ => Arc::new(Remote::new(choice, breakers, clock.clone())?),
        })
    });
    let first = models.next().unwrap_or_else(|| Ok(Arc::new(Offline)))?;
    Ok(Models::new(first, models.collect::<Result<Vec<_>, _>>()?))
}
