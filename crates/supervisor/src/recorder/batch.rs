//! One write of a recorder, and the complete record of a run that needed only one write.

use std::sync::Arc;

use model::execution::{Artifact, Execution, StateName};
use store::executions::{ExecutionEvent, ExecutionEventKind, Fence, OutputSummary};

use crate::output_buffer::StreamName;

/// Changes of one execution that are written in one transaction.
pub(crate) struct RecordBatch {
    pub(crate) execution: Execution,
    pub(super) events: Vec<ExecutionEvent>,
    /// Streams and offsets. Stored output of the stream from the offset on is removed before the events are added.
    pub(super) truncations: Vec<(StreamName, i64)>,
    /// Part of the output was not stored.
    pub(super) truncated: bool,
    /// The number of stored bytes of all attempts.
    pub(super) output_bytes: i64,
    /// The total length of the texts of `events`, in bytes.
    pub(super) size: usize,
}

impl RecordBatch {
    /// Returns one batch with the events and truncations of `first`, which is the earlier one, and then those of this
    /// batch. Output of `first` that a truncation of this batch replaces is left out, unless it belongs to an earlier
    /// attempt. The execution and the totals are those of this batch. `size` is not updated.
    pub(super) fn merge_after(mut self, first: &Self) -> Self {
        // Output of earlier attempts is never replaced.
        let earlier = first.events.iter().rposition(is_start).map_or(0, |at| at + 1);
        let replaced = |event: &ExecutionEvent| {
            let is = |(stream, from): &(StreamName, i64)| event.stream == stream.as_str() && event.start >= *from;
            event.kind != ExecutionEventKind::State && self.truncations.iter().any(is)
        };
        let remains = |(at, event): &(usize, &ExecutionEvent)| *at < earlier || !replaced(event);
        let events: Vec<_> = first.events.iter().enumerate().filter(remains).map(|(_, event)| event.clone()).collect();
        let truncations = first.truncations.iter().copied();
        self.events = events.into_iter().chain(std::mem::take(&mut self.events)).collect();
        self.truncations = truncations.chain(std::mem::take(&mut self.truncations)).collect();
        self
    }

    /// Writes the batch in the transaction of the caller: the execution, then the truncations, then the events.
    /// `artifacts` is only given with the last batch; `None` stores an empty list. Returns `false` if another node has
    /// taken over the execution or it has ended: then nothing was written. Fails if the database fails.
    pub(crate) async fn write(
        &self,
        conn: &mut store::Conn,
        fence: Fence,
        artifacts: Option<Vec<Artifact>>,
    ) -> store::Result<bool> {
        let summary = OutputSummary {
            artifacts: artifacts.unwrap_or_default(),
            truncated: self.truncated,
            output_bytes: self.output_bytes,
        };
        if !store::executions::save(conn, fence, &self.execution, Some(&summary)).await? {
            return Ok(false);
        }
        for (stream, from) in &self.truncations {
            store::executions::truncate_stream(conn, fence.id, stream.as_str(), *from).await?;
        }
        store::executions::append_events(conn, fence.id, &self.events).await?;
        Ok(true)
    }
}

/// Returns true for the event that starts an attempt.
fn is_start(event: &ExecutionEvent) -> bool {
    event.kind == ExecutionEventKind::State && event.text == StateName::Starting.as_str()
}

/// The complete record of an execution, equal to the one in the database. It exists only if all events after the claim
/// were written in one batch.
#[derive(Clone)]
pub struct FinishedRun {
    pub(super) first_events: [ExecutionEvent; 2],
    pub(super) batch: Arc<RecordBatch>,
    pub(super) artifacts: Vec<Artifact>,
}

impl FinishedRun {
    /// Returns the execution after its end.
    pub fn execution(&self) -> &Execution {
        &self.batch.execution
    }

    /// Yields all events in order.
    pub fn events(&self) -> impl Iterator<Item = &ExecutionEvent> {
        self.first_events.iter().chain(&self.batch.events)
    }

    /// Returns the artifacts of the run.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Returns true if part of the output was not stored.
    pub fn is_truncated(&self) -> bool {
        self.batch.truncated
    }
}
