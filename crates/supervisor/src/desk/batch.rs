//! What is written of an execution in one go, and the account of one for which that was all there is.

use std::sync::Arc;

use model::execution::{Artifact, Execution, StateName};
use store::executions::{Event, Fence, Kind, Left};

use crate::streams::Name;

/// Notes on their way to the database.
pub(crate) struct Batch {
    pub(crate) execution: Execution,
    pub(super) events: Vec<Event>,
    pub(super) dropped: Vec<(Name, i64)>,
    pub(super) truncated: bool,
    pub(super) output_bytes: i64,
    /// Of its texts.
    pub(super) size: usize,
}

impl Batch {
    /// Both in one: what the first one wrote and this one replaces is left out.
    pub(super) fn behind(mut self, first: &Self) -> Self {
        // What earlier tries said stays.
        let earlier = first.events.iter().rposition(is_start).map_or(0, |at| at + 1);
        let replaced = |event: &Event| {
            let is = |(stream, from): &(Name, i64)| event.stream == stream.as_str() && event.start >= *from;
            event.kind != Kind::State && self.dropped.iter().any(is)
        };
        let kept = |(at, event): &(usize, &Event)| *at < earlier || !replaced(event);
        let events: Vec<_> = first.events.iter().enumerate().filter(kept).map(|(_, event)| event.clone()).collect();
        let dropped = first.dropped.iter().copied();
        self.events = events.into_iter().chain(std::mem::take(&mut self.events)).collect();
        self.dropped = dropped.chain(std::mem::take(&mut self.dropped)).collect();
        self
    }

    /// `false`: the execution is somebody else's by now, and nothing was written.
    pub(crate) async fn write(
        &self,
        conn: &mut store::Conn,
        fence: Fence,
        artifacts: Option<Vec<Artifact>>,
    ) -> store::Result<bool> {
        let left = Left {
            artifacts: artifacts.unwrap_or_default(),
            truncated: self.truncated,
            output_bytes: self.output_bytes,
        };
        if !store::executions::save(conn, fence, &self.execution, Some(&left)).await? {
            return Ok(false);
        }
        for (stream, from) in &self.dropped {
            store::executions::drop_from(conn, fence.id, stream.as_str(), *from).await?;
        }
        store::executions::append(conn, fence.id, &self.events).await?;
        Ok(true)
    }
}

/// The state that a try begins with.
fn is_start(event: &Event) -> bool {
    event.kind == Kind::State && event.text == StateName::Starting.as_str()
}

/// All that happened to an execution that was carried out in one go, as it stands in the tables.
#[derive(Clone)]
pub struct Account {
    pub(super) begun: [Event; 2],
    pub(super) batch: Arc<Batch>,
    pub(super) artifacts: Vec<Artifact>,
}

impl Account {
    pub fn execution(&self) -> &Execution {
        &self.batch.execution
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.begun.iter().chain(&self.batch.events)
    }

    /// The files that it left.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Whether not all that it said was kept.
    pub fn is_truncated(&self) -> bool {
        self.batch.truncated
    }
}
