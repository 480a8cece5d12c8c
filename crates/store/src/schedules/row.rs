//! Reads schedules from database rows.

use jiff::Timestamp;
use model::UserId;
use model::execution::ExecutionStatus;
use model::schedule::{Schedule, ScheduleSettings, ScheduleSource, ScheduleState};
use uuid::Uuid;

use crate::Result;
use crate::conn::DbRow;

/// The columns of a schedule.
pub(super) const COLUMNS: &str = "s.id, s.settings, s.enabled, s.paused_at, s.paused_reason, s.last_at, s.last_status, \
     s.next_at, s.failures, s.source, s.created_at, s.updated_at, \
     (SELECT COUNT(*) FROM executions e WHERE e.schedule_id = s.id AND e.ended_at IS NULL), s.owner, s.due_at, s.version";

/// A schedule with the columns that are not public.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleRow {
    pub schedule: Schedule,
    pub owner: UserId,
    /// The next occurrence, without jitter. A paused schedule has one, too.
    pub due_at: Option<Timestamp>,
    /// Increases with each change, for compare-and-swap.
    pub version: i64,
}

/// Reads [`COLUMNS`]. The state follows from `now`, the start time, the pause and the number of running executions.
/// Fails with [`crate::Error::Corrupt`] if a column is invalid.
pub(super) fn read(row: &DbRow, now: Timestamp) -> Result<ScheduleRow> {
    let settings: ScheduleSettings = row.parsed(1, |json| serde_json::from_str(json))?;
    let enabled = row.int(2)? != 0;
    let state = ScheduleState::compute(enabled, row.int(12)? > 0, settings.start_at, now);
    let last_status = row.maybe_text(6)?.map(|word| ExecutionStatus::parse("status", &word)).transpose();
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
        source: row.parsed(9, |word| ScheduleSource::parse("source", word))?,
        created_at: row.time(10)?,
        updated_at: row.time(11)?,
    };
    Ok(ScheduleRow { schedule, owner: row.parsed(13, str::parse)?, due_at: row.maybe_time(14)?, version: row.int(15)? })
}
