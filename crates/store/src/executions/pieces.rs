//! Reads the log of an execution in pieces of limited size, so that a follower never holds all of it.

use uuid::Uuid;

use super::events::{ExecutionEvent, IN_LAST_ATTEMPT, MAX_INLINE_EVENTS, gap_mark, read};
use crate::Result;
use crate::conn::{Conn, DbRow, Statement, args};

/// Up to this length, texts are read inline.
const MAX_INLINE_BYTES: i64 = 16 << 10;

/// A piece of the text of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPiece {
    /// The event with only this piece as its text.
    pub event: ExecutionEvent,
    /// The length of the text before this piece, in characters.
    pub first_char: i64,
    /// The length of the whole text, in bytes.
    pub total_bytes: i64,
    /// This piece ends the text.
    pub is_last: bool,
}

impl EventPiece {
    /// Returns true if the piece is the whole text.
    pub fn is_whole(&self) -> bool {
        self.first_char == 0 && self.is_last
    }

    /// Returns the number of characters up to the end of this piece.
    pub fn end_char(&self) -> i64 {
        self.first_char.saturating_add(i64::try_from(self.event.text.chars().count()).unwrap_or(i64::MAX))
    }
}

/// The limits of one read of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// The maximum number of events.
    pub events: i64,
    /// The maximum length of their texts, in bytes. A longer event is read in pieces of as many characters.
    pub bytes: i64,
}

/// Events that one read returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventPage {
    pub pieces: Vec<EventPiece>,
    /// More events, or the rest of the only one, may be stored.
    pub has_more: bool,
}

/// Returns the events after the number `after`, in order, within the limits. If the first one is longer than the limit,
/// returns only its first piece. Other texts are never read.
pub async fn event_page(conn: &mut Conn, id: Uuid, after: i64, limits: PageLimits) -> Result<EventPage> {
    // The inner query reads only lengths.
    let sql = "SELECT e.seq, e.kind, e.stream, e.start, e.at, SUBSTR(e.text, 1, CAST($4 AS INTEGER)), page.bytes, \
               page.last FROM (SELECT seq, bytes, SUM(bytes) OVER (ORDER BY seq) AS total, MAX(seq) OVER () AS last \
               FROM (SELECT seq, CAST(OCTET_LENGTH(text) AS BIGINT) AS bytes FROM execution_events \
               WHERE execution_id = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS sizes) AS page \
               JOIN execution_events e ON e.execution_id = $1 AND e.seq = page.seq \
               WHERE page.total <= $5 OR page.total = page.bytes ORDER BY e.seq";
    let statement = (sql, args![id, after, limits.events, limits.bytes, limits.bytes]);
    let is_small = limits.events <= MAX_INLINE_EVENTS || limits.bytes <= MAX_INLINE_BYTES;
    let rows = if is_small { conn.all_inline(statement).await? } else { conn.all(statement).await? };
    let pieces = rows.iter().map(|row| read_piece(row, 0)).collect::<Result<Vec<_>>>()?;
    let is_full = i64::try_from(pieces.len()).is_ok_and(|found| found >= limits.events);
    let has_more = match (pieces.last(), rows.last()) {
        (Some(piece), Some(row)) => is_full || !piece.is_last || piece.event.seq < row.int(7)?,
        _ => false,
    };
    Ok(EventPage { pieces, has_more })
}

/// Returns the next piece of an event: at most `chars` characters after the first `first_char` ones. Returns `None` if
/// the event does not exist any more.
pub async fn event_piece(
    conn: &mut Conn,
    id: Uuid,
    seq: i64,
    first_char: i64,
    chars: i64,
) -> Result<Option<EventPiece>> {
    let sql = "SELECT seq, kind, stream, start, at, SUBSTR(text, CAST($3 AS INTEGER), CAST($4 AS INTEGER)), \
               CAST(OCTET_LENGTH(text) AS BIGINT), CAST(LENGTH(text) AS BIGINT) \
               FROM execution_events WHERE execution_id = $1 AND seq = $2";
    let row = conn.first((sql, args![id, seq, first_char.saturating_add(1), chars])).await?;
    let Some(row) = row else { return Ok(None) };
    let mut piece = read_piece(&row, first_char)?;
    piece.is_last = piece.end_char() >= row.int(7)?;
    Ok(Some(piece))
}

/// The place of an event in the output of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputPlace {
    pub start: i64,
    pub seq: i64,
}

impl OutputPlace {
    /// The place before the first event.
    pub const BEGIN: Self = Self { start: -1, seq: 0 };
}

/// Like [`event_page`] for the stored output of one stream in the last attempt, in the order of offsets. Gaps are
/// included, empty texts are not.
pub async fn output_page(
    conn: &mut Conn,
    id: Uuid,
    stream: &str,
    after: OutputPlace,
    limits: PageLimits,
) -> Result<Vec<EventPiece>> {
    let mut select = Statement::default();
    select.push("SELECT e.seq, e.kind, e.stream, e.start, e.at, SUBSTR(e.text, 1, CAST(").bind(limits.bytes);
    select.push(" AS INTEGER)), page.bytes FROM (SELECT seq, bytes, SUM(bytes) OVER (ORDER BY start, seq) AS total ");
    select.push("FROM (SELECT seq, start, CAST(OCTET_LENGTH(text) AS BIGINT) AS bytes FROM execution_events ");
    select.push("WHERE execution_id = ").bind(id).push(" AND stream = ").bind(stream);
    select.push(" AND kind IN ('output', 'gap') AND text <> '' AND (start > ").bind(after.start);
    select.push(" OR start = ").bind(after.start).push(" AND seq > ").bind(after.seq);
    select.push(") AND seq > COALESCE((SELECT MAX(s.seq) FROM execution_events s WHERE s.execution_id = ").bind(id);
    select.push(" AND s.kind = 'state' AND s.text = 'starting'), 0) ORDER BY start, seq LIMIT ").bind(limits.events);
    select.push(") AS sizes) AS page JOIN execution_events e ON e.seq = page.seq AND e.execution_id = ").bind(id);
    select.push(" WHERE page.total <= ").bind(limits.bytes).push(" OR page.total = page.bytes ORDER BY e.start, e.seq");
    conn.all_inline(select).await?.iter().map(|row| read_piece(row, 0)).collect()
}

/// Returns the end of the stored output of one stream in the last attempt, at least `bytes` long if there is so much
/// output. Only as many events are read as needed for that.
pub async fn output_end(conn: &mut Conn, id: Uuid, stream: &str, bytes: usize) -> Result<String> {
    let mut limit: i64 = 1;
    loop {
        let mut select = Statement::default();
        select.push("SELECT kind, text FROM execution_events WHERE execution_id = ").bind(id).push(" AND stream = ");
        select.bind(stream).push(" AND kind IN ('output', 'gap') AND ").push(IN_LAST_ATTEMPT);
        select.push(" ORDER BY start DESC, seq DESC LIMIT ").bind(limit);
        let rows = conn.all(select).await?;
        let texts = rows.iter().rev().map(|row| match row.text(0)?.as_str() {
            "gap" => Ok(gap_mark(&row.text(1)?)),
            _ => row.text(1),
        });
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let is_enough = texts.iter().map(String::len).sum::<usize>() >= bytes;
        if is_enough || i64::try_from(rows.len()).is_ok_and(|found| found < limit) {
            return Ok(texts.concat());
        }
        limit *= 2;
    }
}

/// Returns the length of the stored texts of an execution, in bytes. No text is read.
pub async fn event_bytes(conn: &mut Conn, id: Uuid) -> Result<i64> {
    let sql =
        "SELECT CAST(COALESCE(SUM(OCTET_LENGTH(text)), 0) AS BIGINT) FROM execution_events WHERE execution_id = $1";
    conn.first((sql, args![id])).await?.map_or(Ok(0), |row| row.int(0))
}

/// Reads a piece and the length of the whole text after the columns of an event. Assumes that a piece with all bytes is
/// the last one.
fn read_piece(row: &DbRow, first_char: i64) -> Result<EventPiece> {
    let event = read(row)?;
    let total_bytes = row.int(6)?;
    let is_last = first_char == 0 && i64::try_from(event.text.len()).is_ok_and(|length| length >= total_bytes);
    Ok(EventPiece { event, first_char, total_bytes, is_last })
}
