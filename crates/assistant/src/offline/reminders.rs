//! Answers questions about reminders, and sets, moves and cancels them.

use serde_json::Value;

use super::{OfflinePolicy, PendingCall};

/// Answers when reminders ring: those of the given tasks, or all.
pub(super) fn answer(
    _policy: &mut OfflinePolicy<'_>,
    _tasks: &[Value],
    _all: bool,
) -> Result<Option<String>, PendingCall> {
    Ok(None)
}
