//! An execution as it stands in its row.

use jiff::Timestamp;
use model::UserId;
use model::agent::Seconds;
use model::execution::{Category, Execution, ExecutionRecord, Outcome, StateName};
use uuid::Uuid;

use crate::Result;
use crate::conn::Row;

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

pub(crate) const COLUMNS: &str = columns!("e.input");
/// For lists: one character more than is shown, which tells that there is more.
pub(crate) const IN_SHORT: &str = columns!("SUBSTR(e.input, 1, 1001)");
const SHOWN: usize = 1000;
/// What stands behind those.
pub(crate) const COUNT: usize = 23;

/// What only the supervisor needs to know.
pub(super) const PRIVATE: &str = ", e.owner, e.request, e.spool, e.lease_token, e.cancel_asked, e.node";

/// An execution with what only the supervisor needs to know.
#[derive(Clone, Debug)]
pub struct Stored {
    pub execution: Execution,
    pub owner: UserId,
    /// JSON; `None` where it has secrets and is in the spool of that name.
    pub request: Option<String>,
    pub spool: Option<String>,
    pub lease_token: i64,
    /// Since when somebody wants it cancelled.
    pub cancel_asked: Option<Timestamp>,
    /// Who has it, or had it last.
    pub node: Option<String>,
}

/// Reads an execution whose position in the queue follows its columns.
pub(super) fn read_with_position(row: &Row) -> Result<Execution> {
    let record = ExecutionRecord { queue_position: row.maybe_int(COUNT)?, ..read_record(row)? };
    Ok(record.try_into()?)
}

/// From [`IN_SHORT`]: a list of many does not carry everything that each was asked.
pub(super) fn read_in_short(row: &Row) -> Result<Execution> {
    let mut execution = read_with_position(row)?;
    shorten(&mut execution.input);
    for value in execution.context.values_mut() {
        let mut text = value.to_string();
        if text.len() > SHOWN {
            shorten(&mut text);
            *value = text.into();
        }
    }
    Ok(execution)
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
}

pub(super) fn read_private(row: &Row) -> Result<Stored> {
    let spool = row.maybe_text(COUNT + 2)?;
    Ok(Stored {
        execution: read(row)?,
        owner: row.parsed(COUNT, str::parse)?,
        request: Some(row.text(COUNT + 1)?).filter(|_| spool.is_none()),
        spool,
        lease_token: row.int(COUNT + 3)?,
        cancel_asked: row.maybe_time(COUNT + 4)?,
        node: row.maybe_text(COUNT + 5)?,
    })
}

/// Reads an execution. Fails with [`crate::Error::Corrupt`] if the columns contradict each other.
pub(crate) fn read(row: &Row) -> Result<Execution> {
    Ok(read_record(row)?.try_into()?)
}

fn read_record(row: &Row) -> Result<ExecutionRecord> {
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
            .map(|word| parsed(&word, |w| Category::parse("category", w)))
            .transpose()?,
        outcome: row.maybe_text(15)?.map(|word| parsed(&word, |w| Outcome::parse("outcome", w))).transpose()?,
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
