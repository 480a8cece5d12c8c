//! Tells whoever follows an execution, or waits for an agent, that there is something to read. Only a hint: the table is
//! the truth, and everyone looks there again after a while anyway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;
use uuid::Uuid;

#[derive(Clone, Default)]
pub(crate) struct Wakes(Arc<Mutex<HashMap<Uuid, Weak<Notify>>>>);

impl Wakes {
    /// To wait on; as long as anybody has it, it is woken.
    pub(crate) fn of(&self, id: Uuid) -> Arc<Notify> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = map.get(&id).and_then(Weak::upgrade) {
            return notify;
        }
        // Those that nobody has any more go when their number has doubled.
        if map.len() >= 64 && map.len().is_power_of_two() {
            map.retain(|_, notify| notify.strong_count() > 0);
        }
        let notify = Arc::new(Notify::new());
        map.insert(id, Arc::downgrade(&notify));
        notify
    }

    /// For when nobody knows who is meant.
    pub(crate) fn wake_all(&self) {
        let all: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.iter().filter_map(Weak::upgrade).for_each(|notify| notify.notify_waiters());
    }

    pub(crate) fn wake(&self, id: Uuid) {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).and_then(Weak::upgrade);
        if let Some(notify) = found {
            notify.notify_waiters();
        }
    }
}
