//! The models that can be asked.

pub mod choice;

pub use choice::{Choice, Provider};
