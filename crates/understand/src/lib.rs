//! Offline language engine: parses an utterance about tasks into commands with intents, dates and slots.
//!
//! All functions are pure. The same text at the same time gives the same result. Nothing here blocks or reads the clock.
//! The only input besides the text is the time zone database, for a text that names a zone ("9am Europe/Berlin").

mod attributes;
mod bullets;
mod clause;
mod command;
mod corrections;
mod courtesy;
mod create;
mod date_names;
mod dates;
mod description_phrases;
mod emoji;
mod expression;
mod fields;
mod filter;
mod intent;
mod json;
mod lead_time;
mod lexicon;
mod multiple_targets;
mod numbers;
mod parsed;
mod parser;
mod phrases;
mod quoted_text;
mod reminders;
pub mod schedule_times;
mod scope;
mod shared_verb;
mod spelling;
mod split;
mod subject;
mod tag_phrases;
mod target;
mod task_lines;
mod tense;
mod timing;
mod tokens;
#[doc(hidden)]
pub mod training;
mod trimming;
mod update;
mod utterance;
mod vocabulary;
mod when;

pub use expression::{Grain, TimeExpression};
pub use fields::{FieldReader, WordFields};
pub use parsed::{
    ClearableField, CommandFilter, DateShift, DayOrTime, DueFilter, Intent, LeadTime, MissingSlot, ParsedCommand,
    ParsedUtterance, StatusFilter, TagOperation, TaskTarget,
};
pub use parser::{DateOrder, UtteranceParser};
pub use when::{When, parse_when};

/// Returns the commands of an utterance. Calls [`UtteranceParser::parse`] with [`DateOrder::MonthFirst`].
pub fn parse(text: &str, now: &jiff::Zoned) -> ParsedUtterance {
    UtteranceParser::default().parse(text, now)
}

/// Returns the commands of an utterance. Calls [`UtteranceParser::parse_assuming_tasks`] with
/// [`DateOrder::MonthFirst`].
pub fn parse_assuming_tasks(text: &str, now: &jiff::Zoned) -> ParsedUtterance {
    UtteranceParser::default().parse_assuming_tasks(text, now)
}

/// Returns the time expressions of a text. Calls [`UtteranceParser::find_expressions`] with [`DateOrder::MonthFirst`].
pub fn find_expressions(text: &str, now: &jiff::Zoned) -> Vec<TimeExpression> {
    UtteranceParser::default().find_expressions(text, now)
}

#[cfg(test)]
mod tests;
