//! Follows an execution: past events first, then new ones, until its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::execution::{Execution, ResourceUsage, StateName};
use store::executions::{ExecutionEvent, ExecutionEventKind, OwnerScope};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::Supervisor;
use crate::recorder::FinishedRun;

/// The number of events read in one query.
const BATCH_SIZE: i64 = 100;
/// The number of events read in the first query. Most executions have no more, so one query is enough.
const FIRST_BATCH_SIZE: i64 = store::executions::MAX_INLINE_EVENTS;
/// The longest time between two reads without a notification. Changes on other nodes may come without one.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// One item that a follower receives.
#[derive(Clone, Debug, PartialEq)]
pub enum FollowEvent {
    Event(ExecutionEvent),
    Usage(ResourceUsage),
    /// The execution has ended. This is the last item.
    End(Box<Execution>),
}

/// A subscriber to the events of one execution.
pub struct ExecutionFollower {
    supervisor: Supervisor,
    scope: OwnerScope,
    id: Uuid,
    /// The number of the last event that was read.
    after: i64,
    notify: Arc<Notify>,
    /// Items that were read and not delivered yet.
    ready: std::collections::VecDeque<FollowEvent>,
    /// The last usage that was delivered.
    usage: Option<ResourceUsage>,
    delivered: DeliveredOffsets,
    /// Only existing events are delivered.
    existing_only: bool,
    /// Nothing more is read. `ready` contains the last items.
    is_finished: bool,
    /// The ended execution, if it is known without a read.
    ended: Option<Execution>,
}

impl Supervisor {
    /// Returns a follower that starts after the event with the number `after`. 0 means all events. Reads nothing yet:
    /// an execution that does not exist in the scope makes the first read fail.
    pub fn follow(&self, scope: OwnerScope, id: Uuid, after: i64) -> ExecutionFollower {
        ExecutionFollower {
            supervisor: self.clone(),
            scope,
            id,
            after,
            notify: self.0.notifiers.get(id),
            ready: std::collections::VecDeque::new(),
            usage: None,
            delivered: DeliveredOffsets::default(),
            existing_only: false,
            is_finished: false,
            ended: None,
        }
    }

    /// Returns a notifier for changes of an execution. It also works after the end, because the A2A task of the
    /// execution may continue.
    pub fn change_notifier(&self, id: Uuid) -> ChangeNotifier {
        ChangeNotifier { notify: self.0.notifiers.get(id), poll_interval: self.poll_interval() }
    }

    /// Makes the followers of this execution read its events again.
    pub fn notify_followers(&self, id: Uuid) {
        self.0.notifiers.notify(id);
    }

    /// Waits for the end of an execution and returns it. Fails if the execution is not found in this scope.
    pub async fn wait(&self, scope: OwnerScope, id: Uuid) -> store::Result<Execution> {
        self.wait_for(scope, id, false).await
    }

    /// Like [`Supervisor::wait`], for an execution that the caller has just enqueued. Saves the first read.
    pub async fn wait_for_submitted(&self, scope: OwnerScope, id: Uuid) -> store::Result<Execution> {
        self.wait_for(scope, id, true).await
    }

    /// Waits for the end of an execution and returns it. `is_authorized` means that the caller may read the execution:
    /// then the first read is skipped while it runs on this node. Also polls, because an end on another node may come
    /// without a notification. Fails if the database fails or the execution is not found in this scope.
    async fn wait_for(&self, scope: OwnerScope, id: Uuid, mut is_authorized: bool) -> store::Result<Execution> {
        let notify = self.0.notifiers.get(id);
        loop {
            if is_authorized {
                self.wait_while_running(id).await;
            }
            let notified = notify.notified();
            tokio::pin!(notified);
            // No notification is missed after this call.
            notified.as_mut().enable();
            let execution = store::executions::get(&mut self.0.store.reader().await?, scope, id).await?;
            if execution.is_ended() {
                return Ok(execution);
            }
            is_authorized = true;
            let _ = tokio::time::timeout(self.poll_interval(), notified).await;
        }
    }

    /// Waits while an execution runs on this node. Returns its complete record if that is available in memory. Returns
    /// `None` if the record must be read from the database, and at once if the execution does not run on this node.
    pub async fn wait_while_running(&self, id: Uuid) -> Option<FinishedRun> {
        let recorder = self.recorder_of(id)?;
        let notify = self.0.notifiers.get(id);
        loop {
            let notified = notify.notified();
            tokio::pin!(notified);
            // One more notification is sent after the recorder is removed.
            notified.as_mut().enable();
            if self.recorder_of(id).is_none() {
                return recorder.finished_run().cloned();
            }
            let _ = tokio::time::timeout(self.poll_interval(), notified).await;
        }
    }

    /// Waits until an agent has no queued execution and no slot in use on any node (`WaitForCompletion` of S2). An open
    /// session uses a slot. Fails if the database fails.
    pub async fn wait_until_agent_idle(&self, agent_id: &str) -> store::Result<()> {
        loop {
            let ended = self.0.running.ended.notified();
            let counts = store::executions::queue_counts(&mut self.0.store.reader().await?, agent_id).await?;
            if counts == (0, 0) {
                return Ok(());
            }
            let _ = tokio::time::timeout(self.poll_interval(), ended).await;
        }
    }

    /// Returns [`POLL_INTERVAL`] if several nodes share the database, otherwise four times as much.
    fn poll_interval(&self) -> Duration {
        if self.0.store.is_shared() { POLL_INTERVAL } else { POLL_INTERVAL * 4 }
    }
}

/// Signals that an execution may have changed. It is only a hint: the database is the source of truth.
pub struct ChangeNotifier {
    notify: Arc<Notify>,
    poll_interval: Duration,
}

impl ChangeNotifier {
    /// Returns a future that completes at the next notification after this call, or after the poll interval.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut notified = Box::pin(self.notify.clone().notified_owned());
        notified.as_mut().enable();
        let poll_interval = self.poll_interval;
        async move {
            let _ = tokio::time::timeout(poll_interval, notified).await;
        }
    }
}

impl ExecutionFollower {
    /// Returns the id of the followed execution.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Supplies the ended execution, so that it is not read from the database.
    pub fn set_ended(&mut self, ended: Execution) {
        self.ended = Some(ended);
    }

    /// Supplies the complete record of the run, so that nothing is read from the database. Delivers all its events that
    /// were not delivered yet, independent of the number that the follower started after.
    pub fn set_finished_run(&mut self, run: &FinishedRun) {
        let events = run.events().filter_map(|event| self.delivered.undelivered(event.clone()));
        self.ready.extend(events.map(FollowEvent::Event));
        self.ready.extend(run.execution().state().resource_usage().map(FollowEvent::Usage));
        self.is_finished = true;
        self.ready.push_back(FollowEvent::End(Box::new(run.execution().clone())));
    }

    /// Limits the follower to events that already exist: it finishes instead of waiting for new ones.
    #[must_use]
    pub fn existing_only(mut self) -> Self {
        self.existing_only = true;
        self
    }

    /// Returns the next existing item, or `None` if no item is available at the moment or the end was delivered. Never
    /// waits for new events. Fails if the database fails or the execution is not found.
    pub async fn next_existing(&mut self) -> store::Result<Option<FollowEvent>> {
        while self.ready.is_empty() && !self.is_finished {
            let before = self.after;
            self.read().await?;
            if self.after == before {
                break;
            }
            // The events that were read may all have been delivered before.
        }
        Ok(self.ready.pop_front())
    }

    /// Waits for the next item. Returns `None` after the end, or if only existing events are delivered and none is
    /// left. Also polls, because changes on other nodes may come without a notification. Fails if the database fails or
    /// the execution is not found.
    pub async fn next(&mut self) -> store::Result<Option<FollowEvent>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.is_finished {
                return Ok(None);
            }
            let notify = self.notify.clone();
            let notified = notify.notified();
            tokio::pin!(notified);
            // No notification is missed after this call, also while the database is read.
            notified.as_mut().enable();
            if self.read().await? {
                continue;
            }
            if self.existing_only {
                self.is_finished = true;
            } else {
                let _ = tokio::time::timeout(self.supervisor.poll_interval(), notified).await;
            }
        }
    }

    /// Reads the execution and one batch of its events into `ready`, without output that was delivered before. Adds the
    /// usage if it has changed, and the end once all events were read. Returns true if `ready` has items or more events
    /// may be stored. Fails if the database fails or the execution is not found.
    async fn read(&mut self) -> store::Result<bool> {
        let mut reader = self.supervisor.0.store.reader().await?;
        // The execution is read first: if it has ended, all its events are in the database.
        let execution = match self.ended.take() {
            Some(ended) => ended,
            None => store::executions::get(&mut reader, self.scope, self.id).await?,
        };
        let limit = if self.after == 0 { FIRST_BATCH_SIZE } else { BATCH_SIZE };
        let events = store::executions::events(&mut reader, self.id, self.after, limit).await?;
        drop(reader);
        let more = i64::try_from(events.len()).is_ok_and(|found| found >= limit);
        for event in events {
            self.after = event.seq;
            if let Some(event) = self.delivered.undelivered(event) {
                self.ready.push_back(FollowEvent::Event(event));
            }
        }
        let usage = execution.state().resource_usage();
        if usage != self.usage
            && let Some(usage) = usage
        {
            self.usage = Some(usage);
            self.ready.push_back(FollowEvent::Usage(usage));
        }
        if execution.is_ended() {
            if more {
                self.ended = Some(execution);
            } else {
                self.is_finished = true;
                self.ready.push_back(FollowEvent::End(Box::new(execution)));
            }
        }
        Ok(more || !self.ready.is_empty())
    }
}

/// The part of each stream that a follower has received.
#[derive(Default)]
pub(crate) struct DeliveredOffsets(HashMap<String, StreamOffset>);

impl DeliveredOffsets {
    /// Returns the part of the event that was not delivered yet, or `None` if all of it was. State events are always
    /// returned. The start of an attempt resets the offsets. A gap is shortened to the part after the delivered output.
    ///
    /// At the end of a long output, its final tail replaces the provisional output: events start again at an earlier
    /// offset. The follower may already have received parts of the tail as provisional output. Events up to the last
    /// delivered one are dropped. A new part that cannot be separated from a delivered one becomes a gap.
    pub(crate) fn undelivered(&mut self, mut event: ExecutionEvent) -> Option<ExecutionEvent> {
        if event.kind == ExecutionEventKind::State {
            if event.text == StateName::Starting.as_str() {
                self.0.clear();
            }
            return Some(event);
        }
        let offset = self.0.entry(event.stream.clone()).or_default();
        let length = match event.kind {
            ExecutionEventKind::Gap => event.text.parse().unwrap_or(0),
            _ => i64::try_from(event.text.len()).unwrap_or(i64::MAX),
        };
        let end = event.start.saturating_add(length);
        // An event starts after the previous one, unless it replaces delivered output.
        offset.is_replaced |= offset.any && event.start <= offset.start;
        match event.kind {
            ExecutionEventKind::Gap => {
                // The end of the last delivered event is only approximate: redaction changes the length of the text.
                let from = event.start.max(offset.end);
                if end < from {
                    // The gap ends inside the last delivered event, and the rest of that event follows.
                    offset.start = offset.start.max(end);
                }
                if end <= from {
                    return None;
                }
                (event.start, event.text) = (from, (end - from).to_string());
                *offset = StreamOffset { any: true, start: end - 1, end, is_replaced: false };
            }
            // The last delivered event comes again as one event. Everything after it is new.
            _ if offset.is_replaced && event.start == offset.start => {
                offset.is_replaced = false;
                return None;
            }
            _ if offset.is_replaced && end <= offset.end => return None,
            // The follower is too far behind to find the boundary: only the size of the missing part is known.
            _ if offset.is_replaced && event.start < offset.end => {
                (event.kind, event.text) = (ExecutionEventKind::Gap, (end - offset.end).to_string());
                let start = std::mem::replace(&mut event.start, offset.end).min(offset.end);
                *offset = StreamOffset { any: true, start: start.max(offset.start), end, is_replaced: false };
            }
            _ => *offset = StreamOffset { any: true, start: event.start, end, is_replaced: false },
        }
        Some(event)
    }
}

/// The position up to which a stream was delivered.
#[derive(Clone, Copy, Default)]
struct StreamOffset {
    /// At least one event was delivered.
    any: bool,
    /// The offset at which the last delivered event starts.
    start: i64,
    /// The offset at which it ends. Only approximate, because redaction changes the length of the text.
    end: i64,
    /// The next events replace delivered ones, up to the last delivered event.
    is_replaced: bool,
}
