//! The offline language engine: reads an utterance about tasks into intents, dates and slots.
//!
//! Pure: the same text at the same time gives the same reading; nothing here waits, reads a file or takes the time.

mod attributes;
mod bullets;
mod carried;
mod clause;
mod command;
mod correct;
mod courtesy;
mod create;
mod dates;
mod details;
mod expression;
mod filter;
mod intent;
mod json;
mod labels;
mod lead_time;
mod lexicon;
mod margins;
mod numbers;
mod phrases;
mod reader;
mod reading;
mod scope;
mod several;
mod spelling;
mod split;
mod subject;
mod target;
mod tense;
mod timing;
mod tokens;
#[doc(hidden)]
pub mod training;
mod update;
mod utterance;
mod vocabulary;

pub use expression::{Expression, Grain};
pub use reader::{Order, Reader};
pub use reading::{
    Command, DueFilter, Field, Filter, Intent, Missing, Reading, Shift, StatusFilter, Tagging, Target, When,
};

/// [`Reader::read`] with the month first in numeric dates.
pub fn read(text: &str, now: &jiff::Zoned) -> Reading {
    Reader::default().read(text, now)
}

/// [`Reader::read_as_tasks`] with the month first in numeric dates.
pub fn read_as_tasks(text: &str, now: &jiff::Zoned) -> Reading {
    Reader::default().read_as_tasks(text, now)
}

/// [`Reader::expressions`] with the month first in numeric dates.
pub fn expressions(text: &str, now: &jiff::Zoned) -> Vec<Expression> {
    Reader::default().expressions(text, now)
}

#[cfg(test)]
mod tests;
