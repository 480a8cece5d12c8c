//! The capacity of this node: the limits of the machine, less the reservations for claimed executions.

use std::sync::{Arc, Mutex};

use crate::{Admission, lock};

/// The limits of this node and the reservations that count against them.
#[derive(Debug)]
pub(crate) struct Capacity {
    admission: Mutex<Admission>,
    /// The reason why no execution starts at the moment, if there is one.
    refusal: Mutex<Option<String>>,
    /// Executions that are claimed and not running yet.
    reserved: Mutex<usize>,
}

impl Capacity {
    pub(crate) fn new(admission: Admission) -> Self {
        Self { admission: Mutex::new(admission), refusal: Mutex::default(), reserved: Mutex::default() }
    }

    pub(crate) fn set_admission(&self, admission: Admission) {
        *lock(&self.admission) = admission;
    }

    /// Returns the reason why no execution starts at the moment, if there is one.
    pub(crate) fn refusal(&self) -> Option<String> {
        lock(&self.refusal).clone()
    }

    /// Returns true if the machine has capacity for one more execution beside `running` ones. Stores the refusal, or
    /// its absence, for [`Capacity::refusal`]. Logs a refusal only if there was none before. Reservations do not count.
    pub(crate) fn admits(&self, running: usize) -> bool {
        let refusal = lock(&self.admission).refusal(running);
        let mut known = lock(&self.refusal);
        if known.is_none()
            && let Some(reason) = &refusal
        {
            tracing::warn!(event = "executions_held_back", reason);
        }
        let admits = refusal.is_none();
        *known = refusal;
        admits
    }

    /// Reserves capacity for at most `wanted` executions beside `running` ones. Returns the reservation, which may be
    /// smaller or empty. Only `max_running` limits it.
    pub(crate) fn reserve(self: &Arc<Self>, running: usize, wanted: usize) -> Reservation {
        let limit = lock(&self.admission).max_running;
        let mut reserved = lock(&self.reserved);
        let free = limit.map_or(usize::MAX, |limit| limit.saturating_sub(running + *reserved));
        let count = free.min(wanted);
        *reserved += count;
        Reservation { capacity: self.clone(), count }
    }
}

/// Capacity for executions that are claimed but not running yet. Dropping it releases the capacity.
#[derive(Debug)]
pub(crate) struct Reservation {
    capacity: Arc<Capacity>,
    count: usize,
}

impl Reservation {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Releases the capacity beyond `needed` executions.
    pub(crate) fn shrink(&mut self, needed: usize) {
        let spare = self.count.saturating_sub(needed);
        *lock(&self.capacity.reserved) -= spare;
        self.count -= spare;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_counts_until_it_is_dropped() {
        // SUP-4
        let capacity = Arc::new(Capacity::new(Admission { max_running: Some(4), ..Admission::default() }));
        let mut first = capacity.reserve(1, 10);
        assert_eq!(first.count(), 3);
        assert_eq!(capacity.reserve(1, 10).count(), 0);
        first.shrink(1);
        assert_eq!(capacity.reserve(1, 10).count(), 2);
        drop(first);
        assert_eq!(capacity.reserve(1, 10).count(), 3);
    }
}
