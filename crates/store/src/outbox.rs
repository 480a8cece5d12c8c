//! The outbox: what is to be delivered, each piece to one channel. Works on everyone's rows, for the deliverer.
//!
//! A claim counts an attempt and ends by itself; what a claim that was overtaken has to say is refused. The payload of what
//! is no notification is only kept until it has ended: nobody looks at it again.

use jiff::Timestamp;
use model::UserId;
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, Row, Statement, args};
use crate::executions::without_nul;

/// Something to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct New {
    pub id: Uuid,
    pub owner: UserId,
    /// The notification it tells of, if it is one.
    pub notification_id: Option<Uuid>,
    pub channel: String,
    /// What else says where to, as JSON without secrets.
    pub target: Option<String>,
    /// JSON, as it is delivered.
    pub payload: String,
}

/// A delivery that this node may make now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub id: Uuid,
    pub owner: UserId,
    pub channel: String,
    pub target: Option<String>,
    pub payload: String,
    /// This one included.
    pub attempts: i64,
    pub created_at: Timestamp,
}

/// How a channel is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub channel: String,
    pub waiting: i64,
    /// Given up, as far as they are kept.
    pub dead: i64,
}

pub async fn add(conn: &mut Conn, new: &New, now: Timestamp) -> Result<()> {
    let sql = "INSERT INTO deliveries (id, owner, notification_id, channel, target, payload, attempts, next_at, \
               created_at, dead) VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7, 0)";
    let values = args![
        new.id,
        new.owner,
        new.notification_id.map(|id| id.to_string()),
        new.channel.as_str(),
        new.target.as_deref(),
        without_nul(&new.payload),
        now,
    ];
    conn.run((sql, values)).await.map(drop)
}

/// Takes up to `limit` deliveries of a channel that are due; they are nobody else's until `lease_until`.
pub async fn claim(
    conn: &mut Conn,
    channel: &str,
    limit: i64,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Vec<Claimed>> {
    let mut update = Statement::default();
    update.push("UPDATE deliveries SET attempts = attempts + 1, next_at = ").bind(lease_until);
    update.push(" WHERE id IN (SELECT id FROM deliveries WHERE ended_at IS NULL AND channel = ").bind(channel);
    update.push(" AND next_at <= ").bind(now).push(" ORDER BY next_at, id LIMIT ").bind(limit);
    if !conn.is_sqlite() {
        update.push(" FOR UPDATE SKIP LOCKED");
    }
    update.push(") RETURNING id, owner, channel, target, payload, attempts, created_at");
    let mut claimed = conn.all(update).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    claimed.sort_by_key(|delivery| delivery.id);
    Ok(claimed)
}

/// When a delivery of this channel can be claimed next.
pub async fn next(conn: &mut Conn, channel: &str) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(next_at) FROM deliveries WHERE ended_at IS NULL AND channel = $1";
    conn.first((sql, args![channel])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Every channel for which something waits, and when the first of it can be claimed.
pub async fn waiting(conn: &mut Conn) -> Result<Vec<(String, Timestamp)>> {
    // From channel to channel along the index: DISTINCT would look at everything that waits.
    let sql = "WITH RECURSIVE waiting (channel) AS (\
               SELECT MIN(d.channel) FROM deliveries d WHERE d.ended_at IS NULL \
               UNION ALL SELECT (SELECT MIN(d.channel) FROM deliveries d WHERE d.ended_at IS NULL \
               AND d.channel > w.channel) FROM waiting w WHERE w.channel IS NOT NULL) \
               SELECT w.channel, (SELECT MIN(d.next_at) FROM deliveries d WHERE d.ended_at IS NULL \
               AND d.channel = w.channel) FROM waiting w WHERE w.channel IS NOT NULL";
    conn.all((sql, [])).await?.iter().map(|row| Ok((row.text(0)?, row.time(1)?))).collect()
}

/// Whether anything at all is to be delivered.
pub async fn is_empty(conn: &mut Conn) -> Result<bool> {
    Ok(conn.first(("SELECT 1 FROM deliveries WHERE ended_at IS NULL LIMIT 1", [])).await?.is_none())
}

/// Nobody else can be at work: what is claimed or waits for another try can be claimed now.
pub async fn release(conn: &mut Conn, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE deliveries SET next_at = $1 WHERE ended_at IS NULL AND next_at > $1";
    conn.run((sql, args![now])).await
}

/// It has arrived. `false`: the claim was overtaken.
pub async fn done(conn: &mut Conn, claimed: &Claimed, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET ended_at = $3, last_error = NULL, \
               payload = CASE WHEN notification_id IS NULL THEN '' ELSE payload END \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, now])).await? == 1)
}

/// It has not arrived, and is tried again then. `false`: the claim was overtaken.
pub async fn again(conn: &mut Conn, claimed: &Claimed, error: &str, next_at: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET next_at = $3, last_error = $4 \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, next_at, without_nul(error)])).await? == 1)
}

/// It was not tried here after all, which does not count; somebody else may try it from then on. `false`: the claim was
/// overtaken.
pub async fn put_back(conn: &mut Conn, claimed: &Claimed, next_at: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET attempts = attempts - 1, next_at = $3 \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, next_at])).await? == 1)
}

/// It has not arrived, and is given up. `false`: the claim was overtaken.
pub async fn give_up(conn: &mut Conn, claimed: &Claimed, error: &str, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET ended_at = $3, dead = 1, last_error = $4, \
               payload = CASE WHEN notification_id IS NULL THEN '' ELSE payload END \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, now, without_nul(error)])).await? == 1)
}

/// How every channel is doing that has something waiting or given up.
pub async fn standing(conn: &mut Conn) -> Result<Vec<Standing>> {
    let sql = "SELECT channel, COUNT(*) - CAST(SUM(dead) AS BIGINT), CAST(SUM(dead) AS BIGINT) FROM deliveries \
               WHERE ended_at IS NULL OR dead = 1 GROUP BY channel ORDER BY channel";
    let read = |row: &Row| Ok(Standing { channel: row.text(0)?, waiting: row.int(1)?, dead: row.int(2)? });
    conn.all((sql, [])).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Claimed> {
    Ok(Claimed {
        id: row.parsed(0, Uuid::try_parse)?,
        owner: row.parsed(1, str::parse)?,
        channel: row.text(2)?,
        target: row.maybe_text(3)?,
        payload: row.text(4)?,
        attempts: row.int(5)?,
        created_at: row.time(6)?,
    })
}
