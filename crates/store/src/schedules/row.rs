//! A schedule as it stands in its row.

use jiff::Timestamp;
use model::UserId;
use model::execution::Status;
use model::schedule::{Schedule, Settings, Source, State};
use uuid::Uuid;

use crate::Result;
use crate::conn::Row;

pub(super) const COLUMNS: &str = "s.id, s.settings, s.enabled, s.paused_at, s.paused_reason, s.last_at, s.last_status, \
     s.next_at, s.failures, s.source, s.created_at, s.updated_at, \
     (SELECT COUNT(*) FROM executions e WHERE e.schedule_id = s.id AND e.ended_at IS NULL), s.owner, s.due_at, s.version";

/// A schedule with what only those need who act upon it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub schedule: Schedule,
    pub owner: UserId,
    /// The next of its times, without jitter; also of one that is paused.
    pub due_at: Option<Timestamp>,
    pub version: i64,
}

pub(super) fn read(row: &Row, now: Timestamp) -> Result<Kept> {
    let settings: Settings = row.parsed(1, |json| serde_json::from_str(json))?;
    let enabled = row.int(2)? != 0;
    let state = State::of(enabled, row.int(12)? > 0, settings.start_at, now);
    let last_status = row.maybe_text(6)?.map(|word| Status::parse("status", &word)).transpose();
    let schedule = Schedule {
        id: row.parsed(0, Uuid::try_parse)?,
        settings,
        enabled,
        active: state.is_active(),
        state,
        paused_at: row.maybe_time(3)?,
        paused_reason: row.maybe_text(4)?,
        last_execution: row.maybe_time(5)?,
        last_status: last_status.map_err(|error| crate::Error::Corrupt(error.to_string()))?,
        next_execution: row.maybe_time(7)?,
        failures: row.int(8)?,
        source: row.parsed(9, |word| Source::parse("source", word))?,
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
    };
    Ok(Kept { schedule, owner: row.parsed(13, str::parse)?, due_at: row.maybe_time(14)?, version: row.int(15)? })
}
