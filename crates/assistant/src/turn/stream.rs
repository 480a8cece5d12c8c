//! The events of one turn, for any number of readers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::TurnOutcome;
use crate::TurnEvent;

/// The origin of the events of a [`TurnStream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSource {
    /// This request started the turn.
    Started,
    /// An earlier request with the same key is running the turn.
    Joined,
    /// An earlier request with the same key completed the turn. The events come from its record.
    Replayed,
}

/// The events of a turn in their order, from any offset. Reading is optional: the turn runs to its end anyway.
pub struct TurnStream {
    log: Arc<EventLog>,
    offset: usize,
    source: StreamSource,
}

impl TurnStream {
    /// Creates the stream of a turn that has ended. The last event is [`TurnEvent::Done`].
    pub(super) fn finished(events: Vec<TurnEvent>) -> Self {
        Self { log: Arc::new(EventLog::ended(events)), offset: 0, source: StreamSource::Started }
    }

    pub(super) fn replayed(events: Vec<TurnEvent>) -> Self {
        Self { source: StreamSource::Replayed, ..Self::finished(events) }
    }

    pub(super) fn follow(log: Arc<EventLog>, source: StreamSource) -> Self {
        Self { log, offset: 0, source }
    }

    /// Returns the origin of the events.
    pub fn source(&self) -> StreamSource {
        self.source
    }

    /// Returns the id of the request that started the turn.
    pub fn request_id(&self) -> &str {
        &self.log.request_id
    }

    /// Skips the first `offset` events.
    #[must_use]
    pub fn from_offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Returns another reader of the same turn that starts at the first event.
    pub fn from_start(&self) -> Self {
        Self { log: self.log.clone(), offset: 0, source: self.source }
    }

    /// Waits for the next event and returns it with its number, counted from 1. Returns `None` once the turn has ended
    /// and no event after the offset is left.
    pub async fn next(&mut self) -> Option<(usize, TurnEvent)> {
        loop {
            let log = self.log.clone();
            // Registered before the log is read, so that no event is missed in between.
            let changed = log.changed.notified();
            // Read before the next event, which may be the last one.
            let has_ended = log.outcome().is_some();
            if let Some(next) = self.try_next() {
                return Some(next);
            }
            if has_ended {
                return None;
            }
            changed.await;
        }
    }

    /// Returns the next event if it has already happened.
    pub fn try_next(&mut self) -> Option<(usize, TurnEvent)> {
        let event = self.log.events().get(self.offset)?.clone();
        self.offset += 1;
        Some((self.offset, event))
    }

    /// Waits for the end of the turn and returns its outcome. Does not consume events.
    pub async fn outcome(&self) -> Arc<TurnOutcome> {
        loop {
            let changed = self.log.changed.notified();
            if let Some(outcome) = self.log.outcome() {
                return outcome;
            }
            changed.await;
        }
    }

    /// Returns the outcome if the turn has ended.
    pub fn try_outcome(&self) -> Option<Arc<TurnOutcome>> {
        self.log.outcome()
    }
}

/// The events of a turn so far.
pub(super) struct EventLog {
    request_id: String,
    events: Mutex<Vec<TurnEvent>>,
    changed: Notify,
}

impl EventLog {
    pub(super) fn new(request_id: String) -> Self {
        Self { request_id, events: Mutex::default(), changed: Notify::new() }
    }

    /// Creates the log of a turn that has ended. The id of the request comes from the last event.
    fn ended(events: Vec<TurnEvent>) -> Self {
        let request_id = match events.last() {
            Some(TurnEvent::Done(outcome)) => outcome.request_id.clone(),
            _ => String::new(),
        };
        Self { events: Mutex::new(events), ..Self::new(request_id) }
    }

    pub(super) fn push(&self, event: TurnEvent) {
        self.events().push(event);
        self.changed.notify_waiters();
    }

    pub(super) fn events(&self) -> MutexGuard<'_, Vec<TurnEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outcome(&self) -> Option<Arc<TurnOutcome>> {
        match self.events().last() {
            Some(TurnEvent::Done(outcome)) => Some(outcome.clone()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(content: &str) -> TurnEvent {
        TurnEvent::Thinking { content: content.to_owned() }
    }

    #[tokio::test]
    async fn every_reader_gets_all_events_from_its_offset() {
        // CHAT-6
        let log = Arc::new(EventLog::new("req_1".to_owned()));
        let mut first = TurnStream::follow(log.clone(), StreamSource::Started);
        log.push(thought("one"));
        assert!(matches!(first.next().await, Some((1, TurnEvent::Thinking { .. }))));
        assert!(first.try_next().is_none());
        let waiting = tokio::spawn(async move { first.next().await });
        tokio::task::yield_now().await;
        log.push(thought("two"));
        assert!(matches!(waiting.await.unwrap(), Some((2, TurnEvent::Thinking { content })) if content == "two"));
        let mut late = TurnStream::follow(log, StreamSource::Joined).from_offset(1);
        assert!(matches!(late.next().await, Some((2, TurnEvent::Thinking { content })) if content == "two"));
        assert!(late.try_outcome().is_none());
    }
}
