//! The executions that run on this node, and what has ended here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::execution::Status;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::desk::Desk;
use crate::{Stop, lock};

#[derive(Default)]
pub(crate) struct Running {
    desks: Mutex<HashMap<Uuid, Desk>>,
    /// Notified when a run has something to write.
    pub(crate) unwritten: Arc<Notify>,
    /// Notified when an execution has ended, here or on another node.
    pub(crate) ended: Notify,
    /// How many have ended here, by [`Status::ALL`].
    counts: [AtomicU64; 4],
}

impl Running {
    pub(crate) fn insert(&self, desk: Desk) {
        lock(&self.desks).insert(desk.id(), desk);
    }

    pub(crate) fn remove(&self, id: Uuid) {
        lock(&self.desks).remove(&id);
    }

    pub(crate) fn get(&self, id: Uuid) -> Option<Desk> {
        lock(&self.desks).get(&id).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.desks).len()
    }

    pub(crate) fn all(&self) -> Vec<Desk> {
        lock(&self.desks).values().cloned().collect()
    }

    /// Stops every execution that runs on this node.
    pub(crate) fn stop_all(&self, why: Stop) {
        self.all().iter().for_each(|desk| desk.stop(why));
    }

    pub(crate) fn count_end(&self, status: Status) {
        self.counts[status as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended_by_status(&self) -> impl Iterator<Item = (Status, u64)> {
        Status::ALL.iter().map(|status| (*status, self.counts[*status as usize].load(Ordering::Relaxed)))
    }
}
