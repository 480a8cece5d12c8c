//! The types of the HTTP interface: request bodies, response bodies, list parameters and errors. The server and the
//! command line share them.
//!
//! The types of `model` (tasks, schedules, agents …) are the objects of the interface. This crate adds the types that
//! exist only on the wire. It does no I/O and validates nothing: [`serde`] rejects unknown fields and wrong types, and
//! `model` validates the rest.

#[macro_use]
mod page;

pub mod agents;
pub mod audit;
pub mod chat;
pub mod conversations;
pub mod data;
pub mod executions;
pub mod health;
pub mod notifications;
pub mod permissions;
mod problem;
pub mod reminders;
pub mod schedules;
pub mod sessions;
pub mod stop;
pub mod stop_all;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod tokens;

pub use page::{ListPage, ListParams, MAX_LIMIT};
pub use problem::{PROBLEM_TYPE_PREFIX, Problem};
