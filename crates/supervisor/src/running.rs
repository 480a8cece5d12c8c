//! The executions that run on this node, and counters of those that have ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::execution::ExecutionStatus;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::recorder::RunRecorder;
use crate::{StopReason, lock};

/// The recorders of all running executions.
#[derive(Default)]
pub(crate) struct Running {
    recorders: Mutex<HashMap<Uuid, RunRecorder>>,
    /// Notified when a recorder has unwritten changes.
    pub(crate) unwritten: Arc<Notify>,
    /// Notified when an execution has ended, on this node or on another one.
    pub(crate) ended: Notify,
    /// The number of ended executions on this node, indexed like [`ExecutionStatus::ALL`].
    counts: [AtomicU64; 4],
}

impl Running {
    pub(crate) fn insert(&self, recorder: RunRecorder) {
        lock(&self.recorders).insert(recorder.execution_id(), recorder);
    }

    pub(crate) fn remove(&self, id: Uuid) {
        lock(&self.recorders).remove(&id);
    }

    pub(crate) fn get(&self, id: Uuid) -> Option<RunRecorder> {
        lock(&self.recorders).get(&id).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.recorders).len()
    }

    pub(crate) fn all(&self) -> Vec<RunRecorder> {
        lock(&self.recorders).values().cloned().collect()
    }

    /// Stops every execution that runs on this node.
    pub(crate) fn stop_all(&self, reason: StopReason) {
        self.all().iter().for_each(|recorder| recorder.request_stop(reason));
    }

    pub(crate) fn count_end(&self, status: ExecutionStatus) {
        self.counts[status as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended_by_status(&self) -> impl Iterator<Item = (ExecutionStatus, u64)> {
        ExecutionStatus::ALL.iter().map(|status| (*status, self.counts[*status as usize].load(Ordering::Relaxed)))
    }
}
