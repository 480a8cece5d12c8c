//! Background work: retry delays, and the loop that runs rounds of work.
//!
//! The crate is independent of the kind of work. It never spawns a task; the caller decides where a loop runs.

pub mod backoff;
pub mod reconcile;
