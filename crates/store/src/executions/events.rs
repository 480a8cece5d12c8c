//! What happens in an execution, numbered. Followers ask for what comes after the last number they have.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::plain_words;
use model::said::Said;
use uuid::Uuid;

use super::without_nul;
use crate::Result;
use crate::conn::{Conn, Row, Statement, args};

plain_words! {
    pub enum Kind {
        /// It went on to the state in `text`.
        State = "state",
        Output = "output",
        /// Something that is more than text: `text` is a [`Said`] as JSON.
        Said = "said",
        /// Output that is not kept; `text` says how many bytes.
        Gap = "gap",
    }
}

/// Each try begins with the state `starting`. `$1` is the execution.
const OF_THE_LAST_TRY: &str = "seq > COALESCE((SELECT MAX(s.seq) FROM execution_events s \
     WHERE s.execution_id = $1 AND s.kind = 'state' AND s.text = 'starting'), 0)";

/// So many events are read without letting others go on meanwhile.
pub const FEW: i64 = 16;

/// The stream of what is more than text.
pub const SAID: &str = "said";

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub seq: i64,
    pub kind: Kind,
    /// `stdout`, `stderr`, `file` or [`SAID`]; empty for states.
    pub stream: String,
    /// Where in its stream it begins, in bytes as they came.
    pub start: i64,
    pub at: Timestamp,
    pub text: String,
}

/// Adds what happened. To be called in one transaction behind [`save`](super::save), which says whether the execution is
/// still the caller's and keeps it so. What is there already is left alone: whoever does not know whether a transaction was
/// committed writes the same again.
pub async fn append(conn: &mut Conn, id: Uuid, events: &[Event]) -> Result<()> {
    let sql = "INSERT INTO execution_events (execution_id, seq, kind, stream, start, at, text) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (execution_id, seq) DO NOTHING";
    for event in events {
        let kind = event.kind.as_str();
        let stream = event.stream.as_str();
        let text = without_nul(&event.text);
        conn.run((sql, args![id, event.seq, kind, stream, event.start, event.at, text])).await?;
    }
    Ok(())
}

/// Removes the output of one stream from that place on: what takes its place follows. Behind [`save`](super::save), as
/// above. The output of earlier tries is left alone.
pub async fn drop_from(conn: &mut Conn, id: Uuid, stream: &str, start: i64) -> Result<u64> {
    let mut delete = Statement::default();
    delete.push("DELETE FROM execution_events WHERE execution_id = ").bind(id).push(" AND stream = ").bind(stream);
    delete.push(" AND start >= ").bind(start).push(" AND kind <> 'state' AND ").push(OF_THE_LAST_TRY);
    conn.run(delete).await
}

/// What came after `after`, in its order, at most `limit`.
pub async fn events(conn: &mut Conn, id: Uuid, after: i64, limit: i64) -> Result<Vec<Event>> {
    let sql = "SELECT seq, kind, stream, start, at, text FROM execution_events \
               WHERE execution_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let statement = (sql, args![id, after, limit]);
    let rows = if limit <= FEW { conn.few(statement).await? } else { conn.all(statement).await? };
    rows.iter().map(read).collect()
}

/// The same without output and artifacts: what became of it, and its words on how it goes.
pub async fn events_in_short(conn: &mut Conn, id: Uuid) -> Result<Vec<Event>> {
    let sql = "SELECT seq, kind, stream, start, at, text FROM execution_events WHERE execution_id = $1 \
               AND (kind = 'state' OR kind = 'said' AND text NOT LIKE '{\"artifact\"%') ORDER BY seq";
    conn.all((sql, args![id])).await?.iter().map(read).collect()
}

pub async fn last_seq(conn: &mut Conn, id: Uuid) -> Result<i64> {
    let sql = "SELECT COALESCE(MAX(seq), 0) FROM execution_events WHERE execution_id = $1";
    conn.first((sql, args![id])).await?.map_or(Ok(0), |row| row.int(0))
}

/// All that is kept of what the last try said, with a mark where something is missing.
pub async fn output(conn: &mut Conn, id: Uuid, stream: &str) -> Result<String> {
    Ok(texts(conn, id, Some(stream)).await?.remove(stream).unwrap_or_default())
}

/// The same of every stream that has something.
pub async fn outputs(conn: &mut Conn, id: Uuid) -> Result<BTreeMap<String, String>> {
    texts(conn, id, None).await
}

/// What the last try said that is more than text, in its order.
pub async fn said(conn: &mut Conn, id: Uuid) -> Result<Vec<Said>> {
    let mut select = Statement::default();
    select.push("SELECT text FROM execution_events WHERE execution_id = ").bind(id);
    select.push(" AND kind = 'said' AND ").push(OF_THE_LAST_TRY).push(" ORDER BY seq");
    conn.all(select).await?.iter().map(|row| row.parsed(0, |json| serde_json::from_str(json))).collect()
}

async fn texts(conn: &mut Conn, id: Uuid, stream: Option<&str>) -> Result<BTreeMap<String, String>> {
    let mut select = Statement::default();
    select.push("SELECT seq, kind, stream, start, at, text FROM execution_events WHERE execution_id = ").bind(id);
    select.push(" AND kind IN ('output', 'gap') AND ").push(OF_THE_LAST_TRY);
    if let Some(stream) = stream {
        select.push(" AND stream = ").bind(stream);
    }
    select.push(" ORDER BY stream, start, seq");
    let mut streams = BTreeMap::<_, String>::new();
    for row in conn.all(select).await? {
        let event = read(&row)?;
        let text = streams.entry(event.stream).or_default();
        match event.kind {
            Kind::Gap => text.push_str(&gap_mark(&event.text)),
            Kind::Output | Kind::State | Kind::Said => text.push_str(&event.text),
        }
    }
    Ok(streams)
}

/// What stands in a text where so many bytes are missing.
fn gap_mark(bytes: &str) -> String {
    format!("\n[… {bytes} bytes left out …]\n")
}

/// How many bytes of all executions are kept.
pub async fn size_of_output(conn: &mut Conn) -> Result<i64> {
    let sql = "SELECT CAST(COALESCE(SUM(output_bytes), 0) AS BIGINT) FROM executions";
    conn.first((sql, [])).await?.map_or(Ok(0), |row| row.int(0))
}

/// How much output was given up.
pub(crate) struct Dropped {
    pub(crate) executions: u64,
    pub(crate) bytes: i64,
}

/// Gives up the output of the executions that ended first, until `excess` bytes are free or so many executions were
/// done; what happened to them stays on record.
pub(crate) async fn drop_output(conn: &mut Conn, excess: i64, limit: i64, now: Timestamp) -> Result<Dropped> {
    let mut select = Statement::default();
    select.push("SELECT id, output_bytes FROM executions WHERE ended_at IS NOT NULL AND output_bytes > 0 ");
    select.push("ORDER BY ended_at LIMIT ").bind(limit);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE SKIP LOCKED");
    }
    let mut dropped = Dropped { executions: 0, bytes: 0 };
    for row in conn.all(select).await? {
        if dropped.bytes >= excess {
            break;
        }
        leave_gaps(conn, row.parsed(0, Uuid::try_parse)?, now).await?;
        dropped.executions += 1;
        dropped.bytes += row.int(1)?;
    }
    Ok(dropped)
}

/// Puts one gap a stream in the place of its output.
async fn leave_gaps(conn: &mut Conn, id: Uuid, now: Timestamp) -> Result<()> {
    let mut missing = BTreeMap::<String, i64>::new();
    let sql = "SELECT stream, CAST(SUM(OCTET_LENGTH(text)) AS BIGINT) FROM execution_events \
               WHERE execution_id = $1 AND kind IN ('output', 'said') GROUP BY stream";
    for row in conn.all((sql, args![id])).await? {
        *missing.entry(row.text(0)?).or_default() += row.int(1)?;
    }
    // What was left out before is missing still.
    let sql = "SELECT stream, text FROM execution_events WHERE execution_id = $1 AND kind = 'gap'";
    for row in conn.all((sql, args![id])).await? {
        *missing.entry(row.text(0)?).or_default() += row.text(1)?.parse().unwrap_or(0);
    }
    let last = last_seq(conn, id).await?;
    conn.run(("DELETE FROM execution_events WHERE execution_id = $1 AND kind <> 'state'", args![id])).await?;
    let gap = |(seq, (stream, bytes)): (i64, (String, i64))| Event {
        seq,
        kind: Kind::Gap,
        stream,
        start: 0,
        at: now,
        text: bytes.to_string(),
    };
    let gaps: Vec<_> = (last + 1..).zip(missing).map(gap).collect();
    append(conn, id, &gaps).await?;
    let sql = "UPDATE executions SET output_bytes = 0, earlier_bytes = 0, truncated = 1 WHERE id = $1";
    conn.run((sql, args![id])).await.map(drop)
}

fn read(row: &Row) -> Result<Event> {
    Ok(Event {
        seq: row.int(0)?,
        kind: row.parsed(1, |word| Kind::parse("kind", word))?,
        stream: row.text(2)?,
        start: row.int(3)?,
        at: row.time(4)?,
        text: row.text(5)?,
    })
}
