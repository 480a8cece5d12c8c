//! Notifications, each under its owner and numbered in the order of their commits: whoever has seen one asks for what
//! came after its number.

use jiff::Timestamp;
use model::UserId;
use model::notification::{Kind, Notification};
use uuid::Uuid;

use crate::conn::{Conn, Row, Statement, args};
use crate::executions::without_nul;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

const COLUMNS: &str = "seq, id, kind, title, text, task_id, execution_id, schedule_id, created_at, read_at";

/// A notification and its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub seq: i64,
    pub notification: Notification,
}

/// Adds a notification unless the owner has one under that id; says whether it did.
pub async fn add(conn: &mut Conn, owner: UserId, notification: &Notification) -> Result<bool> {
    if !conn.is_sqlite() {
        // Until the transaction ends nobody else adds one for this owner, so that a number that is seen has none before
        // it that is yet to come. The second number keeps these locks apart from others.
        conn.first(("SELECT pg_advisory_xact_lock(hashtextextended($1, 5))", args![owner])).await?;
    }
    // At least the time: a number is never used again, whatever was removed meanwhile.
    let insert = "INSERT INTO notifications (owner, id, seq, kind, title, text, task_id, execution_id, schedule_id, \
                  created_at, read_at) VALUES ($1, $2, (SELECT CASE WHEN MAX(seq) >= $9 THEN MAX(seq) + 1 ELSE $9 END \
                  FROM notifications WHERE owner = $1), $3, $4, $5, $6, $7, $8, $9, $10) \
                  ON CONFLICT (owner, id) DO NOTHING";
    let text = |id: Option<Uuid>| id.map(|id| id.to_string());
    let values = args![
        owner,
        notification.id,
        notification.kind.as_str(),
        without_nul(&notification.title),
        without_nul(&notification.text),
        text(notification.task_id),
        text(notification.execution_id),
        text(notification.schedule_id),
        notification.created_at,
        notification.read_at,
    ];
    Ok(conn.run((insert, values)).await? == 1)
}

/// One page, newest first.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    unread: bool,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Numbered>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM notifications WHERE owner = ").bind(owner);
    if unread {
        select.push(" AND read_at IS NULL");
    }
    if let Some(cursor) = after {
        select.push(" AND seq < ").bind(cursor.sort);
    }
    select.push(" ORDER BY seq DESC LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(rows, limit, |row| Cursor { sort: row.seq, id: row.notification.id.to_string() }))
}

/// What came after the one with this number, oldest first.
pub async fn after(conn: &mut Conn, owner: UserId, seq: i64, limit: i64) -> Result<Vec<Numbered>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM notifications WHERE owner = ").bind(owner);
    select.push(" AND seq > ").bind(seq).push(" ORDER BY seq LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read).collect()
}

/// The number of the owner's newest one; 0 where there is none.
pub async fn last(conn: &mut Conn, owner: UserId) -> Result<i64> {
    let sql = "SELECT COALESCE(MAX(seq), 0) FROM notifications WHERE owner = $1";
    conn.first((sql, args![owner])).await?.map_or(Ok(0), |row| row.int(0))
}

/// Notes that the owner has seen it; the first time counts.
pub async fn mark_read(conn: &mut Conn, owner: UserId, id: Uuid, now: Timestamp) -> Result<Notification> {
    let mut update = Statement::default();
    update.push("UPDATE notifications SET read_at = COALESCE(read_at, ").bind(now).push(") WHERE owner = ").bind(owner);
    update.push(" AND id = ").bind(id).push(" RETURNING ").push(COLUMNS);
    let row = conn.first(update).await?.ok_or(Error::NotFound)?;
    Ok(read(&row)?.notification)
}

/// Whose newest notification came since, and its number: for whoever wakes those who wait. Everyone's.
pub async fn news(conn: &mut Conn, since: Timestamp) -> Result<Vec<(UserId, i64)>> {
    let sql = "SELECT owner, MAX(seq) FROM notifications WHERE created_at >= $1 GROUP BY owner";
    let rows = conn.all((sql, args![since])).await?;
    rows.iter().map(|row| Ok((row.parsed(0, str::parse)?, row.int(1)?))).collect()
}

fn read(row: &Row) -> Result<Numbered> {
    let id = |column| -> Result<Option<Uuid>> {
        let text = row.maybe_text(column)?;
        text.map(|text| Uuid::try_parse(&text).map_err(|error| Error::Corrupt(error.to_string()))).transpose()
    };
    Ok(Numbered {
        seq: row.int(0)?,
        notification: Notification {
            id: row.parsed(1, Uuid::try_parse)?,
            kind: row.parsed(2, |word| Kind::parse("kind", word))?,
            title: row.text(3)?,
            text: row.text(4)?,
            task_id: id(5)?,
            execution_id: id(6)?,
            schedule_id: id(7)?,
            created_at: row.time(8)?,
            read_at: row.maybe_time(9)?,
        },
    })
}
