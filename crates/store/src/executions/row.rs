//! Reads executions from database rows.

use jiff::Timestamp;
use model::UserId;
use model::agent::Seconds;
use model::execution::{ErrorCategory, Execution, ExecutionOutcome, ExecutionRecord, StateName};
use uuid::Uuid;

use crate::Result;
use crate::conn::DbRow;

macro_rules! columns {
    ($input:literal) => {
        concat!(
            "e.id, e.agent_id, e.schedule_id, e.session_id, e.state, e.previous_state, e.created_at, e.started_at, \
             e.ended_at, e.changed_at, ",
            $input,
            ", e.process_id, e.exit_code, e.error_message, e.error_category, e.outcome, e.retry_count, e.max_retries, \
             e.timeout_ms, e.resource_usage, e.context, e.transitions, e.previous"
        )
    };
}

/// The columns of an execution.
pub(crate) const COLUMNS: &str = columns!("e.input");
/// The columns for lists. The input has one character more than is shown, which reveals that it is longer.
pub(crate) const SUMMARY_COLUMNS: &str = columns!("SUBSTR(e.input, 1, 1001)");
/// The longest input in a list, in characters.
const MAX_SUMMARY_CHARS: usize = 1000;
/// The number of columns in [`COLUMNS`]. Further columns follow from this index.
pub(crate) const COLUMN_COUNT: usize = 23;

/// The columns that are not public. They follow [`COLUMNS`].
pub(super) const INTERNAL_COLUMNS: &str =
    ", e.owner, e.request, e.spool, e.lease_token, e.cancel_asked, e.node, e.cancel_reason";

/// An execution with the columns that are not public.
#[derive(Clone, Debug)]
pub struct ExecutionRow {
    pub execution: Execution,
    pub owner: UserId,
    /// The request as JSON. `None` if it contains secrets and is in the spool.
    pub request: Option<String>,
    /// The name of the spool that contains the request.
    pub spool: Option<String>,
    pub lease_token: i64,
    /// The time of the cancellation request.
    pub cancel_requested_at: Option<Timestamp>,
    /// The node that holds the execution, or has held it last.
    pub node: Option<String>,
    /// The error of the execution after a cancellation. `None` for a request of a user.
    pub cancel_reason: Option<String>,
}

/// Reads an execution with its queue position, which follows [`COLUMNS`].
pub(super) fn read_with_position(row: &DbRow) -> Result<Execution> {
    let record = ExecutionRecord { queue_position: row.maybe_int(COLUMN_COUNT)?, ..read_record(row)? };
    Ok(record.try_into()?)
}

/// Reads an execution from [`SUMMARY_COLUMNS`] and the queue position, and shortens long values. The input is cut after
/// 1000 characters. A context value of more than 1000 bytes becomes its JSON as text, cut after 1000 characters. Fails
/// with [`crate::Error::Corrupt`] if a column is invalid.
pub(super) fn read_summary(row: &DbRow) -> Result<Execution> {
    let mut execution = read_with_position(row)?;
    shorten(&mut execution.input);
    for value in execution.context.values_mut() {
        let mut text = value.to_string();
        if text.len() > MAX_SUMMARY_CHARS {
            shorten(&mut text);
            *value = text.into();
        }
    }
    Ok(execution)
}

/// Cuts text after [`MAX_SUMMARY_CHARS`] characters and adds an ellipsis. Shorter text stays unchanged.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_SUMMARY_CHARS) {
        text.truncate(end);
        text.push('…');
    }
}

/// Reads an execution from [`COLUMNS`] and [`INTERNAL_COLUMNS`]. The request is `None` if it is in a spool. Fails with
/// [`crate::Error::Corrupt`] if a column is invalid or the columns contradict each other.
pub(super) fn read_row(row: &DbRow) -> Result<ExecutionRow> {
    let spool = row.maybe_text(COLUMN_COUNT + 2)?;
    Ok(ExecutionRow {
        execution: read(row)?,
        owner: row.parsed(COLUMN_COUNT, str::parse)?,
        request: Some(row.text(COLUMN_COUNT + 1)?).filter(|_| spool.is_none()),
        spool,
        lease_token: row.int(COLUMN_COUNT + 3)?,
        cancel_requested_at: row.maybe_time(COLUMN_COUNT + 4)?,
        node: row.maybe_text(COLUMN_COUNT + 5)?,
        cancel_reason: row.maybe_text(COLUMN_COUNT + 6)?,
    })
}

/// Reads an execution. Fails with [`crate::Error::Corrupt`] if the columns contradict each other.
pub(crate) fn read(row: &DbRow) -> Result<Execution> {
    Ok(read_record(row)?.try_into()?)
}

/// Reads [`COLUMNS`], without a queue position. The attempt is the number of retries plus one. Does not check that the
/// columns fit together. Fails with [`crate::Error::Corrupt`] if a column is invalid.
fn read_record(row: &DbRow) -> Result<ExecutionRecord> {
    let maybe_id = |column| row.maybe_text(column)?.map(|text| parsed(&text, Uuid::try_parse)).transpose();
    let retry_count = row.int(16)?;
    Ok(ExecutionRecord {
        id: row.parsed(0, Uuid::try_parse)?,
        agent_id: row.text(1)?,
        schedule_id: maybe_id(2)?,
        session_id: maybe_id(3)?,
        state: row.parsed(4, |word| StateName::parse("state", word))?,
        previous_state: row.maybe_text(5)?.map(|word| parsed(&word, |w| StateName::parse("state", w))).transpose()?,
        created_at: row.time(6)?,
        start_time: row.maybe_time(7)?,
        end_time: row.maybe_time(8)?,
        last_state_change: row.time(9)?,
        input: row.text(10)?,
        process_id: row.maybe_int(11)?,
        exit_code: row.maybe_int(12)?,
        error_message: row.maybe_text(13)?,
        error_category: row
            .maybe_text(14)?
            .map(|word| parsed(&word, |w| ErrorCategory::parse("category", w)))
            .transpose()?,
        outcome: row
            .maybe_text(15)?
            .map(|word| parsed(&word, |w| ExecutionOutcome::parse("outcome", w)))
            .transpose()?,
        retry_count,
        max_retries: row.int(17)?,
        attempt: retry_count + 1,
        timeout: Seconds::from_millis(row.int(18)?.unsigned_abs()),
        resource_usage: row.maybe_text(19)?.map(|json| parsed(&json, |j| serde_json::from_str(j))).transpose()?,
        context: row.parsed(20, |json| serde_json::from_str(json))?,
        queue_position: None,
        state_transitions: row.parsed(21, |json| serde_json::from_str(json))?,
        previous_retries: row.parsed(22, |json| serde_json::from_str(json))?,
    })
}

fn parsed<T, E: std::fmt::Display>(text: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T> {
    parse(text).map_err(|error| crate::Error::Corrupt(error.to_string()))
}
