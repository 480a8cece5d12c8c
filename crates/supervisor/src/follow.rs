//! Follows an execution: past events first, then new ones, until its end.

use std::sync::Arc;
use std::time::Duration;

use model::execution::{Execution, ResourceUsage};
use store::executions::{EventPiece, ExecutionEvent, ExecutionEventKind, OwnerScope, PageLimits};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::Supervisor;
use crate::delivered::DeliveredOffsets;
use crate::recorder::FinishedRun;

/// The size of one read. An event that is longer is read in several pieces and joined.
const PAGE: PageLimits = PageLimits { events: 100, bytes: 256 << 10 };
/// The size of the first read. Most executions have no more, so one query is enough.
const FIRST_PAGE: PageLimits = PageLimits { events: store::executions::MAX_INLINE_EVENTS, ..PAGE };
/// The size of one read of a follower in pieces. Thousands of followers whose clients read nothing hold so much each.
const SMALL_PAGE: PageLimits = PageLimits { events: 32, bytes: 4 << 10 };
/// The longest time between two reads without a notification. Changes on other nodes may come without one.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// One item that a follower receives.
#[derive(Clone, Debug, PartialEq)]
pub enum FollowEvent {
    Event(ExecutionEvent),
    /// A piece of an event that is too long for one read, see [`ExecutionFollower::in_pieces`].
    Piece(EventPiece),
    Usage(ResourceUsage),
    /// The execution has ended. This is the last item.
    End(Box<Execution>),
}

/// A subscriber to the events of one execution.
pub struct ExecutionFollower {
    supervisor: Supervisor,
    scope: OwnerScope,
    id: Uuid,
    /// The number of the last event that was read to its end.
    after: i64,
    /// The piece that was read last, without its text, if its event has more.
    inside: Option<PartialEvent>,
    /// Long events are delivered in pieces.
    in_pieces: bool,
    /// The last read has left events in the database.
    has_more: bool,
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

/// The position in an event whose text is delivered in pieces.
#[derive(Clone, Copy)]
struct PartialEvent {
    seq: i64,
    /// The number of characters that were read.
    chars: i64,
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
            inside: None,
            in_pieces: false,
            has_more: false,
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

    /// Makes the follower hold at most about 4 KiB of texts: longer events are delivered as [`FollowEvent::Piece`]s. If
    /// such an event is replaced in the database before its last piece, the next read fails with
    /// [`store::Error::NotFound`].
    #[must_use]
    pub fn in_pieces(mut self) -> Self {
        self.in_pieces = true;
        self
    }

    /// Returns the next item if it was already read.
    pub fn next_ready(&mut self) -> Option<FollowEvent> {
        let next = self.ready.pop_front();
        if self.ready.is_empty() {
            // A follower that waits for its client holds no buffer.
            self.ready = std::collections::VecDeque::new();
        }
        next
    }

    /// Returns the length of the texts that were read and not delivered yet, in bytes.
    pub fn held_bytes(&self) -> usize {
        let length = |item: &FollowEvent| match item {
            FollowEvent::Event(event) => event.text.len(),
            FollowEvent::Piece(piece) => piece.event.text.len(),
            FollowEvent::Usage(_) | FollowEvent::End(_) => 0,
        };
        self.ready.iter().map(length).sum()
    }

    /// Returns the next existing item, or `None` if no item is available at the moment or the end was delivered. Never
    /// waits for new events. Fails if the database fails or the execution is not found.
    pub async fn next_existing(&mut self) -> store::Result<Option<FollowEvent>> {
        while self.ready.is_empty() && !self.is_finished {
            if !self.read().await? {
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
            if let Some(event) = self.next_ready() {
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

    /// Reads the next events into `ready`, without output that was delivered before. Adds the usage if it has changed,
    /// and the end once all events were read. Returns true if `ready` has items or more events may be stored.
    ///
    /// Fails if the database fails or the execution is not found, and with [`store::Error::NotFound`] if the event of
    /// the last piece does not exist any more.
    async fn read(&mut self) -> store::Result<bool> {
        let mut reader = self.supervisor.0.store.reader().await?;
        if let Some(inside) = self.inside {
            self.read_piece(&mut reader, inside).await?;
            return Ok(true);
        }
        if self.has_more {
            // Not the end of the log, so the state of the execution does not matter yet.
            self.read_page(&mut reader).await?;
            if self.has_more || !self.ready.is_empty() {
                return Ok(true);
            }
        }
        // The execution is read first: if it has ended, all its events are in the database.
        let execution = match self.ended.take() {
            Some(ended) => ended,
            None => store::executions::get(&mut reader, self.scope, self.id).await?,
        };
        self.read_page(&mut reader).await?;
        if self.inside.is_some() {
            // Nothing may come between the pieces of an event.
            self.ended = Some(execution).filter(Execution::is_ended);
            return Ok(true);
        }
        let usage = execution.state().resource_usage();
        if usage != self.usage
            && let Some(usage) = usage
        {
            self.usage = Some(usage);
            self.ready.push_back(FollowEvent::Usage(usage));
        }
        if execution.is_ended() {
            if self.has_more {
                self.ended = Some(execution);
            } else {
                self.is_finished = true;
                self.ready.push_back(FollowEvent::End(Box::new(execution)));
            }
        }
        Ok(self.has_more || !self.ready.is_empty())
    }

    /// Reads the next page of events into `ready`. In pieces, the first one may be only the first piece of an event.
    async fn read_page(&mut self, reader: &mut store::Conn) -> store::Result<()> {
        let limits = match self.in_pieces {
            true => SMALL_PAGE,
            false if self.after == 0 => FIRST_PAGE,
            false => PAGE,
        };
        let page = store::executions::event_page(reader, self.id, self.after, limits).await?;
        self.has_more = page.has_more;
        for mut piece in page.pieces {
            if !piece.is_last && !self.in_pieces {
                self.join(reader, &mut piece).await?;
            }
            let seq = piece.event.seq;
            let is_gap = piece.event.kind == ExecutionEventKind::Gap;
            match self.delivered.undelivered_part(piece.event, piece.total_bytes) {
                Some(event) if piece.is_last => self.ready.push_back(FollowEvent::Event(event)),
                // The event is too far behind and has become a gap.
                Some(event) if event.kind == ExecutionEventKind::Gap && !is_gap => {
                    self.ready.push_back(FollowEvent::Event(event));
                }
                Some(event) => {
                    let piece = EventPiece { event, ..piece };
                    self.inside = Some(PartialEvent { seq, chars: piece.end_char() });
                    self.ready.push_back(FollowEvent::Piece(piece));
                    break;
                }
                None => {}
            }
            self.after = seq;
        }
        Ok(())
    }

    /// Appends the remaining pieces of an event to its first one. Fails with [`store::Error::NotFound`] if the event
    /// does not exist any more.
    async fn join(&self, reader: &mut store::Conn, piece: &mut EventPiece) -> store::Result<()> {
        while !piece.is_last {
            let next =
                store::executions::event_piece(reader, self.id, piece.event.seq, piece.end_char(), PAGE.bytes).await?;
            let next = next.ok_or(store::Error::NotFound)?;
            piece.event.text.push_str(&next.event.text);
            piece.is_last = next.is_last;
        }
        Ok(())
    }

    /// Reads the next piece of an event into `ready`. Fails with [`store::Error::NotFound`] if the event does not exist
    /// any more.
    async fn read_piece(&mut self, reader: &mut store::Conn, inside: PartialEvent) -> store::Result<()> {
        let PartialEvent { seq, chars } = inside;
        let piece = store::executions::event_piece(reader, self.id, seq, chars, SMALL_PAGE.bytes).await?;
        let piece = piece.ok_or(store::Error::NotFound)?;
        if piece.is_last {
            self.after = seq;
            self.inside = None;
        } else {
            self.inside = Some(PartialEvent { seq, chars: piece.end_char() });
        }
        self.ready.push_back(FollowEvent::Piece(piece));
        Ok(())
    }
}
