//! Work in the background: delays between attempts, and the loop that keeps work done.
//!
//! The crate knows nothing of what is done. It never spawns a task: callers decide where a loop runs.

pub mod backoff;
pub mod reconcile;
