//! Notifies the followers of executions and sessions about changes. A notification is only a hint: the database is the
//! source of truth, and followers also poll it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::Notify;
use uuid::Uuid;

/// One notifier for each execution or session that has a follower.
#[derive(Clone, Default)]
pub(crate) struct ExecutionNotifiers(Arc<Mutex<HashMap<Uuid, Weak<Notify>>>>);

impl ExecutionNotifiers {
    /// Returns the notifier of an execution or session. Creates it if it does not exist. All callers share it as long
    /// as one of them holds it. Also removes unused notifiers from time to time.
    pub(crate) fn get(&self, id: Uuid) -> Arc<Notify> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(notify) = map.get(&id).and_then(Weak::upgrade) {
            return notify;
        }
        // Unused notifiers are removed whenever the number of entries has doubled.
        if map.len() >= 64 && map.len().is_power_of_two() {
            map.retain(|_, notify| notify.strong_count() > 0);
        }
        let notify = Arc::new(Notify::new());
        map.insert(id, Arc::downgrade(&notify));
        notify
    }

    /// Notifies all followers. Used when the changed execution is unknown.
    pub(crate) fn notify_all(&self) {
        let all: Vec<_> = self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.iter().filter_map(Weak::upgrade).for_each(|notify| notify.notify_waiters());
    }

    /// Notifies the followers of one execution or session.
    pub(crate) fn notify(&self, id: Uuid) {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).and_then(Weak::upgrade);
        if let Some(notify) = found {
            notify.notify_waiters();
        }
    }
}
