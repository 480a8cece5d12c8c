//! The numbered events of an execution. A follower reads the events after the last number that it has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::output::RichOutput;
use model::string_enum;
use uuid::Uuid;

use super::replace_nul;
use crate::Result;
use crate::conn::{Conn, DbRow, Statement, args};

string_enum! {
    /// The kind of an execution event.
    pub enum ExecutionEventKind {
        /// The execution has entered the state in `text`.
        State = "state",
        /// A piece of the output in `text`.
        Output = "output",
        /// Structured output: `text` is a [`RichOutput`] as JSON.
        RichOutput = "said",
        /// Output that is not stored. `text` is the number of bytes.
        Gap = "gap",
    }
}

/// Selects the events of the last attempt. Each attempt begins with the state `starting`. `$1` is the execution.
pub(super) const IN_LAST_ATTEMPT: &str = "seq > COALESCE((SELECT MAX(s.seq) FROM execution_events s \
     WHERE s.execution_id = $1 AND s.kind = 'state' AND s.text = 'starting'), 0)";

/// Up to this number, events are read inline.
pub const MAX_INLINE_EVENTS: i64 = 16;

/// The name of the stream of structured output.
pub const RICH_OUTPUT_STREAM: &str = "said";

/// A numbered event in the log of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionEvent {
    pub seq: i64,
    pub kind: ExecutionEventKind,
    /// `stdout`, `stderr`, `file` or [`RICH_OUTPUT_STREAM`]; empty for states.
    pub stream: String,
    /// The offset in the stream, in bytes of the original output.
    pub start: i64,
    pub at: Timestamp,
    pub text: String,
}

/// Appends events with their numbers. The caller calls [`save`](super::save) first in the same transaction, which
/// checks the fence. Events with an existing number are skipped, so that a caller can repeat a transaction with an
/// unknown outcome. NUL characters in the text are replaced by U+FFFD.
pub async fn append_events(conn: &mut Conn, id: Uuid, events: &[ExecutionEvent]) -> Result<()> {
    let sql = "INSERT INTO execution_events (execution_id, seq, kind, stream, start, at, text) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (execution_id, seq) DO NOTHING";
    for event in events {
        let kind = event.kind.as_str();
        let stream = event.stream.as_str();
        let text = replace_nul(&event.text);
        conn.run((sql, args![id, event.seq, kind, stream, event.start, event.at, text])).await?;
    }
    Ok(())
}

/// Removes the events of one stream that start at the offset `start` or later, in the last attempt. An event that
/// starts before it stays complete. Returns the number of removed events. The caller calls [`save`](super::save) first
/// in the same transaction.
pub async fn truncate_stream(conn: &mut Conn, id: Uuid, stream: &str, start: i64) -> Result<u64> {
    let mut delete = Statement::default();
    delete.push("DELETE FROM execution_events WHERE execution_id = ").bind(id).push(" AND stream = ").bind(stream);
    delete.push(" AND start >= ").bind(start).push(" AND kind <> 'state' AND ").push(IN_LAST_ATTEMPT);
    conn.run(delete).await
}

/// Returns up to `limit` events after the number `after`, in order.
pub async fn events(conn: &mut Conn, id: Uuid, after: i64, limit: i64) -> Result<Vec<ExecutionEvent>> {
    let sql = "SELECT seq, kind, stream, start, at, text FROM execution_events \
               WHERE execution_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let statement = (sql, args![id, after, limit]);
    let rows = if limit <= MAX_INLINE_EVENTS { conn.all_inline(statement).await? } else { conn.all(statement).await? };
    rows.iter().map(read).collect()
}

/// Returns all states and status messages of an execution in order, without output and artifacts.
pub async fn status_events(conn: &mut Conn, id: Uuid) -> Result<Vec<ExecutionEvent>> {
    let sql = "SELECT seq, kind, stream, start, at, text FROM execution_events WHERE execution_id = $1 \
               AND (kind = 'state' OR kind = 'said' AND text NOT LIKE '{\"artifact\"%') ORDER BY seq";
    conn.all((sql, args![id])).await?.iter().map(read).collect()
}

/// Returns the number of the last event, or 0 if the execution has none.
pub async fn last_seq(conn: &mut Conn, id: Uuid) -> Result<i64> {
    let sql = "SELECT COALESCE(MAX(seq), 0) FROM execution_events WHERE execution_id = $1";
    conn.first((sql, args![id])).await?.map_or(Ok(0), |row| row.int(0))
}

/// Returns the stored output of one stream in the last attempt, or an empty text. A marker replaces missing output.
pub async fn output(conn: &mut Conn, id: Uuid, stream: &str) -> Result<String> {
    Ok(read_texts(conn, id, Some(stream)).await?.remove(stream).unwrap_or_default())
}

/// Returns the stored output of the last attempt by stream, as [`output`] does.
pub async fn outputs_by_stream(conn: &mut Conn, id: Uuid) -> Result<BTreeMap<String, String>> {
    read_texts(conn, id, None).await
}

/// Returns the structured output of the last attempt in order. Fails with [`crate::Error::Corrupt`] if it is not valid
/// JSON.
pub async fn rich_output(conn: &mut Conn, id: Uuid) -> Result<Vec<RichOutput>> {
    let mut select = Statement::default();
    select.push("SELECT text FROM execution_events WHERE execution_id = ").bind(id);
    select.push(" AND kind = 'said' AND ").push(IN_LAST_ATTEMPT).push(" ORDER BY seq");
    conn.all(select).await?.iter().map(|row| row.parsed(0, |json| serde_json::from_str(json))).collect()
}

/// Returns the stored output of the last attempt by stream, in the order of offsets. A marker with the number of bytes
/// replaces missing output. `stream` selects one stream, `None` all of them. Structured output is not included, except
/// for a marker if it was dropped. Streams without output are absent.
async fn read_texts(conn: &mut Conn, id: Uuid, stream: Option<&str>) -> Result<BTreeMap<String, String>> {
    let mut select = Statement::default();
    select.push("SELECT seq, kind, stream, start, at, text FROM execution_events WHERE execution_id = ").bind(id);
    select.push(" AND kind IN ('output', 'gap') AND ").push(IN_LAST_ATTEMPT);
    if let Some(stream) = stream {
        select.push(" AND stream = ").bind(stream);
    }
    select.push(" ORDER BY stream, start, seq");
    let mut streams = BTreeMap::<_, String>::new();
    for row in conn.all(select).await? {
        let event = read(&row)?;
        let text = streams.entry(event.stream).or_default();
        match event.kind {
            ExecutionEventKind::Gap => text.push_str(&gap_mark(&event.text)),
            ExecutionEventKind::Output | ExecutionEventKind::State | ExecutionEventKind::RichOutput => {
                text.push_str(&event.text)
            }
        }
    }
    Ok(streams)
}

/// Returns the marker that replaces `bytes` bytes of missing output.
pub fn gap_mark(bytes: &str) -> String {
    format!("\n[… {bytes} bytes left out …]\n")
}

/// Returns the size of the stored output of all executions, in bytes.
pub async fn total_output_bytes(conn: &mut Conn) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(output_bytes), 0) AS BIGINT) FROM executions";
    conn.first((sql, [])).await?.map_or(Ok(0), |row| row.int(0))
}

/// The amount of output that was dropped.
pub(crate) struct DroppedOutput {
    pub(crate) executions: u64,
    pub(crate) bytes: i64,
}

/// Drops the output of the executions that ended first, until `excess` bytes are free or `limit` executions are
/// processed. Executions without output do not count. Their records and states stay; `now` is the time of the gap
/// events. On PostgreSQL, executions that another transaction has locked are skipped. Returns the dropped amount.
pub(crate) async fn drop_output(conn: &mut Conn, excess: i64, limit: i64, now: Timestamp) -> Result<DroppedOutput> {
    let mut select = Statement::default();
    select.push("SELECT id, output_bytes FROM executions WHERE ended_at IS NOT NULL AND output_bytes > 0 ");
    select.push("ORDER BY ended_at LIMIT ").bind(limit);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE SKIP LOCKED");
    }
    let mut dropped = DroppedOutput { executions: 0, bytes: 0 };
    for row in conn.all(select).await? {
        if dropped.bytes >= excess {
            break;
        }
        replace_output_with_gaps(conn, row.parsed(0, Uuid::try_parse)?, now).await?;
        dropped.executions += 1;
        dropped.bytes += row.int(1)?;
    }
    Ok(dropped)
}

/// Replaces the output of all attempts of an execution, also the structured output, with one gap event for each stream.
/// A gap has the next free number and the time `now`, and counts the stored bytes and those of earlier gaps. State
/// events stay. Marks the execution as truncated, with an output size of 0.
async fn replace_output_with_gaps(conn: &mut Conn, id: Uuid, now: Timestamp) -> Result<()> {
    let mut missing = BTreeMap::<String, i64>::new();
    let sql = "SELECT stream, CAST(SUM(OCTET_LENGTH(text)) AS BIGINT) FROM execution_events \
               WHERE execution_id = $1 AND kind IN ('output', 'said') GROUP BY stream";
    for row in conn.all((sql, args![id])).await? {
        *missing.entry(row.text(0)?).or_default() += row.int(1)?;
    }
    // Earlier gaps still count.
    let sql = "SELECT stream, text FROM execution_events WHERE execution_id = $1 AND kind = 'gap'";
    for row in conn.all((sql, args![id])).await? {
        *missing.entry(row.text(0)?).or_default() += row.text(1)?.parse().unwrap_or(0);
    }
    let last = last_seq(conn, id).await?;
    conn.run(("DELETE FROM execution_events WHERE execution_id = $1 AND kind <> 'state'", args![id])).await?;
    let gap = |(seq, (stream, bytes)): (i64, (String, i64))| ExecutionEvent {
        seq,
        kind: ExecutionEventKind::Gap,
        stream,
        start: 0,
        at: now,
        text: bytes.to_string(),
    };
    let gaps: Vec<_> = (last + 1..).zip(missing).map(gap).collect();
    append_events(conn, id, &gaps).await?;
    let sql = "UPDATE executions SET output_bytes = 0, earlier_bytes = 0, truncated = 1 WHERE id = $1";
    conn.run((sql, args![id])).await.map(drop)
}

/// Reads an event. Fails with [`crate::Error::Corrupt`] if a column is invalid.
pub(super) fn read(row: &DbRow) -> Result<ExecutionEvent> {
    Ok(ExecutionEvent {
        seq: row.int(0)?,
        kind: row.parsed(1, |word| ExecutionEventKind::parse("kind", word))?,
        stream: row.text(2)?,
        start: row.int(3)?,
        at: row.time(4)?,
        text: row.text(5)?,
    })
}
