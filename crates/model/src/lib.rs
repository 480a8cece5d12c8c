//! The domain types of adjutant and their validation rules: tasks, reminders, notifications, conversations, schedules,
//! agents, executions, the audit log, users, ids, time and text cleaning.
//!
//! The crate is pure. It never waits, reads a file, opens a socket or reads the system time (except in [`clock`]).
//! Values of these types are valid. Input is a draft until its `check` method accepts it; `check` reports all
//! violations at once.

pub mod agent;
pub mod audit;
pub mod breaker;
pub mod clock;
pub mod conversation;
pub mod due;
pub mod execution;
pub mod invalid;
pub mod json;
pub mod notification;
pub mod output;
pub mod permission;
pub mod quota;
pub mod recurrence;
pub mod reminder;
pub mod schedule;
pub mod session;
pub mod stop_state;
mod string_enum;
pub mod task;
pub mod text;
pub mod user;
pub mod words;

pub use clock::Clock;
pub use invalid::{Invalid, Violation};
pub use user::{User, UserId};
