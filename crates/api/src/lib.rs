//! The HTTP interface as types: request bodies, response bodies, list parameters and errors. The server and the command
//! line use the same ones.
//!
//! The nouns of `model` (a task, a schedule, an agent …) are the objects of the interface; this crate adds what exists only
//! on the wire. It does no I/O and checks no rules: [`serde`] refuses unknown fields and wrong types, and `model` checks the
//! rest.

#[macro_use]
mod page;

pub mod agents;
pub mod chat;
pub mod conversations;
pub mod data;
pub mod executions;
pub mod health;
pub mod notifications;
mod problem;
pub mod reminders;
pub mod schedules;
pub mod sessions;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod tokens;

pub use page::{List, MAX_LIMIT, Page};
pub use problem::{PROBLEM_TYPE_PREFIX, Problem};
