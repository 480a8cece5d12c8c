//! Finds the part of the output of an execution that a follower has not received yet.

use std::collections::HashMap;

use model::execution::StateName;
use store::executions::{ExecutionEvent, ExecutionEventKind};

/// The part of each stream that a follower has received.
#[derive(Default)]
pub(crate) struct DeliveredOffsets(HashMap<String, StreamOffset>);

impl DeliveredOffsets {
    /// Like [`Self::undelivered_part`] for an event with its whole text.
    pub(crate) fn undelivered(&mut self, event: ExecutionEvent) -> Option<ExecutionEvent> {
        let length = i64::try_from(event.text.len()).unwrap_or(i64::MAX);
        self.undelivered_part(event, length)
    }

    /// Returns the part of the event that was not delivered yet, or `None` if all of it was. State events are always
    /// returned. The start of an attempt resets the offsets. A gap is shortened to the part after the delivered output.
    ///
    /// At the end of a long output, its final tail replaces the provisional output: events start again at an earlier
    /// offset. The follower may already have received parts of the tail as provisional output. Events up to the last
    /// delivered one are dropped. A new part that cannot be separated from a delivered one becomes a gap. `event` may have
    /// only the beginning of its text, which has `total_bytes` in all.
    pub(crate) fn undelivered_part(&mut self, mut event: ExecutionEvent, total_bytes: i64) -> Option<ExecutionEvent> {
        if event.kind == ExecutionEventKind::State {
            if event.text == StateName::Starting.as_str() {
                self.0.clear();
            }
            return Some(event);
        }
        let offset = self.0.entry(event.stream.clone()).or_default();
        let length = match event.kind {
            ExecutionEventKind::Gap => event.text.parse().unwrap_or(0),
            _ => total_bytes,
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
