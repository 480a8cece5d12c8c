//! Limits how many connections the requests of one owner use at once. Further ones wait here, in the order of their
//! arrival, and hold no connection. So one owner cannot use up the connections of all others.
//!
//! [`SharedWriteLimits`] limits the writes of each owner to SQLite while several owners write. The requests of one owner
//! would otherwise keep all processors busy, and the request of another owner waits for a processor, not for the writer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::UserId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of all owners. Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct OwnerLimits {
    slots_per_owner: usize,
    owners: Arc<Mutex<HashMap<UserId, Arc<Semaphore>>>>,
}

/// One slot of an owner, or a place in the queue for one. It is released when it is dropped.
#[derive(Debug)]
pub(crate) struct OwnerSlot {
    owner: UserId,
    limits: OwnerLimits,
    /// `None` only while it is dropped.
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl OwnerLimits {
    /// Allows each owner this number of slots, but at least one.
    pub(crate) fn new(slots_per_owner: usize) -> Self {
        Self { slots_per_owner: slots_per_owner.max(1), owners: Arc::default() }
    }

    /// Waits for a slot of the owner. Dropping the returned future leaves the queue.
    pub(crate) async fn acquire(&self, owner: UserId) -> OwnerSlot {
        let semaphore = self.owners().entry(owner).or_insert_with(|| self.new_semaphore()).clone();
        let mut slot = OwnerSlot { owner, limits: self.clone(), semaphore: Some(semaphore.clone()), permit: None };
        // The semaphore is never closed.
        slot.permit = semaphore.acquire_owned().await.ok();
        slot
    }

    fn new_semaphore(&self) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(self.slots_per_owner))
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<UserId, Arc<Semaphore>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OwnerSlot {
    /// Releases the slot, and forgets the owner if it has no other slot and no waiting request.
    fn drop(&mut self) {
        let mut owners = self.limits.owners();
        self.permit = None;
        self.semaphore = None;
        // New users of the semaphore are created under the lock.
        if owners.get(&self.owner).is_some_and(|semaphore| Arc::strong_count(semaphore) == 1) {
            owners.remove(&self.owner);
        }
    }
}

/// The number of writes of one owner that are in progress, while several owners write.
const SHARED_WRITES_PER_OWNER: usize = 4;
/// Owners count as active for this time after the start of a write.
const ACTIVE_TIME: Duration = Duration::from_secs(1);

/// Limits the writes of each owner while several owners write. A single owner is not limited.
#[derive(Clone, Debug)]
pub(crate) struct SharedWriteLimits {
    limits: OwnerLimits,
    recent: Arc<Mutex<RecentOwners>>,
}

/// The owner of the last write, and the last write of any other owner.
#[derive(Debug, Default)]
struct RecentOwners {
    last: Option<UserId>,
    last_at: Option<Instant>,
    other_at: Option<Instant>,
}

impl RecentOwners {
    /// Records a write. Returns true if another owner is active.
    fn add(&mut self, owner: UserId, now: Instant) -> bool {
        if self.last != Some(owner) {
            self.other_at = self.last_at;
            self.last = Some(owner);
        }
        self.last_at = Some(now);
        self.other_at.is_some_and(|at| now.saturating_duration_since(at) < ACTIVE_TIME)
    }
}

impl SharedWriteLimits {
    pub(crate) fn new() -> Self {
        Self { limits: OwnerLimits::new(SHARED_WRITES_PER_OWNER), recent: Arc::default() }
    }

    /// Waits until the owner may write, if several owners are active. The result must be kept during the write.
    pub(crate) async fn acquire(&self, owner: UserId) -> Option<OwnerSlot> {
        let is_shared = self.recent.lock().unwrap_or_else(PoisonError::into_inner).add(owner, Instant::now());
        if is_shared { Some(self.limits.acquire(owner).await) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;
    use uuid::Uuid;

    use super::*;

    fn owner(number: u128) -> UserId {
        UserId::new(Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn an_owner_waits_for_its_own_slots_only_and_in_order() {
        // OPS-5
        let limits = OwnerLimits::new(2);
        let first = limits.acquire(owner(1)).await;
        let _second = limits.acquire(owner(1)).await;
        let mut third = pin!(limits.acquire(owner(1)));
        let mut fourth = pin!(limits.acquire(owner(1)));
        assert!(third.as_mut().now_or_never().is_none() && fourth.as_mut().now_or_never().is_none());
        assert!(limits.acquire(owner(2)).now_or_never().is_some(), "another owner has slots of its own");
        drop(first);
        assert!(fourth.as_mut().now_or_never().is_none(), "the third is before the fourth");
        assert!(third.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn writes_of_an_owner_are_limited_only_while_another_owner_writes() {
        // OPS-5
        let limits = SharedWriteLimits::new();
        for _ in 0..2 * SHARED_WRITES_PER_OWNER {
            assert!(limits.acquire(owner(1)).await.is_none(), "a single owner");
        }
        assert!(limits.acquire(owner(2)).await.is_some());
        let mut held = Vec::new();
        for _ in 0..SHARED_WRITES_PER_OWNER {
            held.push(limits.acquire(owner(1)).await.unwrap());
        }
        assert!(pin!(limits.acquire(owner(1))).as_mut().now_or_never().is_none());
        assert!(limits.acquire(owner(2)).now_or_never().is_some(), "the other owner does not wait");
    }

    #[test]
    fn an_owner_is_active_for_a_second() {
        let start = Instant::now();
        let mut recent = RecentOwners::default();
        assert!(!recent.add(owner(1), start));
        assert!(recent.add(owner(2), start));
        assert!(recent.add(owner(1), start));
        assert!(recent.add(owner(1), start + ACTIVE_TIME / 2));
        assert!(!recent.add(owner(1), start + ACTIVE_TIME));
    }

    #[tokio::test]
    async fn owners_without_slots_are_forgotten() {
        // OPS-5
        let limits = OwnerLimits::new(1);
        let held = limits.acquire(owner(1)).await;
        {
            let mut abandoned = pin!(limits.acquire(owner(1)));
            assert!(abandoned.as_mut().now_or_never().is_none());
        }
        assert_eq!(limits.owners().len(), 1);
        drop(held);
        assert_eq!(limits.owners().len(), 0);
    }
}
