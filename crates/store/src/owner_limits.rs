//! Limits how many connections the requests of one owner use at once. Further ones wait here, in the order of their
//! arrival, and hold no connection. So one owner cannot use up the connections of all others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
