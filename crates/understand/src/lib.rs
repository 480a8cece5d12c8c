//! The offline language engine: reads an utterance about tasks into intents, dates and slots.
//!
//! Pure: the same text at the same time gives the same reading; nothing here waits, reads a file or takes the time.

mod attributes;
mod clause;
mod command;
mod create;
mod dates;
mod filter;
mod intent;
mod json;
mod lexicon;
mod numbers;
mod phrases;
mod reading;
mod scope;
mod spelling;
mod split;
mod target;
mod tokens;
mod update;

pub use json::to_json;
pub use reading::{Command, DueFilter, Field, Filter, Intent, Missing, Reading, StatusFilter, Target, When};

use clause::Clause;
use tokens::Words;

/// Reads an utterance: what its commands are, in order. Dates are those of the zone of `now`.
pub fn read(text: &str, now: &jiff::Zoned) -> Reading {
    let words = Words::new(text);
    let mut commands: Vec<Command> =
        split::clauses(&words).into_iter().map(|range| command::read(&mut Clause::new(&words, range, now))).collect();
    // A greeting or a remark beside a command is no command of its own.
    if commands.iter().any(|command| command.intent != Intent::Unknown) {
        commands.retain(|command| command.intent != Intent::Unknown);
    } else if commands.len() > 1 {
        let whole = command::read(&mut Clause::new(&words, 0..words.len(), now));
        commands = vec![whole];
    }
    Reading { commands }
}

#[cfg(test)]
mod tests;
