//! The priority of the guardian. Thousands of processes of a fork bomb must not keep it from ending them.

use std::sync::OnceLock;

use rustix::process::{getpriority_process, setpriority_process};

/// The highest priority. Only root may set it.
const HIGHEST: i32 = -20;

/// The nice value before it was changed.
static BASE: OnceLock<i32> = OnceLock::new();

/// Gives this process the highest priority, if the system allows it.
pub(super) fn raise() {
    let _ = BASE.set(getpriority_process(None).unwrap_or(0));
    let _ = setpriority_process(None, HIGHEST);
}

/// Returns the nice value before [`raise`] changed it, or 0.
pub(super) fn base() -> i32 {
    BASE.get().copied().unwrap_or(0)
}
