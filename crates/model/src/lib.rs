//! The nouns of adjutant and the rules that hold for them everywhere: tasks, reminders, notifications, conversations,
//! schedules, users, ids, time and text cleaning.
//!
//! Pure: nothing here waits, reads a file, opens a socket or takes the time by itself. A value of one of these types
//! is valid; what comes from outside is a draft until its `check` has said so, with every violation at once.

pub mod agent;
pub mod breaker;
pub mod clock;
pub mod conversation;
pub mod due;
pub mod execution;
pub mod invalid;
pub mod json;
pub mod notification;
pub mod recurrence;
pub mod reminder;
pub mod said;
pub mod schedule;
pub mod session;
pub mod task;
pub mod text;
pub mod user;
mod words;

pub use clock::Clock;
pub use invalid::{Invalid, Violation};
pub use user::{User, UserId};
