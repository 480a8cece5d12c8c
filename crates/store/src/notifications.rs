//! Notifications of users. They are numbered in commit order, so that a follower can resume after the last number it
//! has seen.

use jiff::Timestamp;
use model::UserId;
use model::notification::{Notification, NotificationKind};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::executions::replace_nul;
use crate::page::{Cursor, Page};
use crate::{Error, Result};

const COLUMNS: &str = "seq, id, kind, title, text, task_id, execution_id, schedule_id, created_at, read_at";

/// A notification with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedNotification {
    pub seq: i64,
    pub notification: Notification,
}

/// Adds a notification with a number above all earlier ones of its owner. The number is at least the creation time in
/// microseconds. Returns false and changes nothing if the owner already has one with this id. NUL characters in its
/// title and text are replaced by U+FFFD. On PostgreSQL, waits for other transactions that add one for this owner.
pub async fn add(conn: &mut Conn, owner: UserId, notification: &Notification) -> Result<bool> {
    if !conn.is_sqlite() {
        // Serializes the notifications of this owner, so that no lower number is committed after a higher one. The
        // second number separates these locks from other advisory locks.
        conn.first(("SELECT pg_advisory_xact_lock(hashtextextended($1, 5))", args![owner])).await?;
    }
    // The number is at least the time, so that it is never reused after rows were removed.
    let insert = "INSERT INTO notifications (owner, id, seq, kind, title, text, task_id, execution_id, schedule_id, \
                  created_at, read_at) VALUES ($1, $2, (SELECT CASE WHEN MAX(seq) >= $9 THEN MAX(seq) + 1 ELSE $9 END \
                  FROM notifications WHERE owner = $1), $3, $4, $5, $6, $7, $8, $9, $10) \
                  ON CONFLICT (owner, id) DO NOTHING";
    let text = |id: Option<Uuid>| id.map(|id| id.to_string());
    let values = args![
        owner,
        notification.id,
        notification.kind.as_str(),
        replace_nul(&notification.title),
        replace_nul(&notification.text),
        text(notification.task_id),
        text(notification.execution_id),
        text(notification.schedule_id),
        notification.created_at,
        notification.read_at,
    ];
    Ok(conn.run((insert, values)).await? == 1)
}

/// Returns one page of notifications, newest first. With `unread`, only unread ones.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    unread: bool,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<NumberedNotification>> {
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
    Ok(Page::from_rows(rows, limit, |row| Cursor { sort: row.seq, id: row.notification.id.to_string() }))
}

/// Returns up to `limit` notifications after the number `seq`, oldest first.
pub async fn list_after(conn: &mut Conn, owner: UserId, seq: i64, limit: i64) -> Result<Vec<NumberedNotification>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM notifications WHERE owner = ").bind(owner);
    select.push(" AND seq > ").bind(seq).push(" ORDER BY seq LIMIT ").bind(limit);
    conn.all(select).await?.iter().map(read).collect()
}

/// Returns the number of the owner's newest notification, or 0 if the owner has none.
pub async fn last_seq(conn: &mut Conn, owner: UserId) -> Result<i64> {
    let sql = "SELECT COALESCE(MAX(seq), 0) FROM notifications WHERE owner = $1";
    conn.first((sql, args![owner])).await?.map_or(Ok(0), |row| row.int(0))
}

/// Marks a notification as read and returns it. The first time is kept. Fails with [`Error::NotFound`] if it does not
/// exist.
pub async fn mark_read(conn: &mut Conn, owner: UserId, id: Uuid, now: Timestamp) -> Result<Notification> {
    let mut update = Statement::default();
    update.push("UPDATE notifications SET read_at = COALESCE(read_at, ").bind(now).push(") WHERE owner = ").bind(owner);
    update.push(" AND id = ").bind(id).push(" RETURNING ").push(COLUMNS);
    let row = conn.first(update).await?.ok_or(Error::NotFound)?;
    Ok(read(&row)?.notification)
}

/// Returns the owners of notifications created at `since` or later, each with the newest of these numbers. For all
/// users.
pub async fn latest_since(conn: &mut Conn, since: Timestamp) -> Result<Vec<(UserId, i64)>> {
    let sql = "SELECT owner, MAX(seq) FROM notifications WHERE created_at >= $1 GROUP BY owner";
    let rows = conn.all((sql, args![since])).await?;
    rows.iter().map(|row| Ok((row.parsed(0, str::parse)?, row.int(1)?))).collect()
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<NumberedNotification> {
    let id = |column| -> Result<Option<Uuid>> {
        let text = row.maybe_text(column)?;
        text.map(|text| Uuid::try_parse(&text).map_err(|error| Error::Corrupt(error.to_string()))).transpose()
    };
    Ok(NumberedNotification {
        seq: row.int(0)?,
        notification: Notification {
            id: row.parsed(1, Uuid::try_parse)?,
            kind: row.parsed(2, |word| NotificationKind::parse("kind", word))?,
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
