//! Counts the tasks of the machine, to notice a fork bomb between two samples.

use std::time::{Duration, Instant};

use super::proc;

/// The time between two counts.
const TASK_COUNT_INTERVAL: Duration = Duration::from_millis(100);
/// So many new tasks of the machine cause a sample of all executions.
const NEW_TASKS: u64 = 256;

/// Detects a fast growth of the number of tasks between two samples. It is used where the kernel does not limit the
/// processes of an execution.
pub(super) struct TaskWatch {
    pub(super) next: Instant,
    /// The lowest number of tasks of the machine since the last sample.
    pub(super) baseline: u64,
}

impl TaskWatch {
    /// Returns true if a count is due at `now` and [`NEW_TASKS`] more tasks exist than before. Schedules the next
    /// count.
    pub(super) fn has_grown(&mut self, now: Instant) -> bool {
        if self.next > now {
            return false;
        }
        self.next = now + TASK_COUNT_INTERVAL;
        let Some(tasks) = proc::task_count() else { return false };
        let grown = tasks > self.baseline.saturating_add(NEW_TASKS);
        self.baseline = if grown { tasks } else { self.baseline.min(tasks) };
        grown
    }
}
