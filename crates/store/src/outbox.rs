//! The outbox: pending deliveries, each to one channel. These functions work on the rows of all users, for the delivery
//! loop.
//!
//! A claim counts as an attempt and expires. Updates from an expired claim are rejected if another node has claimed the
//! delivery since. The payload of a delivery without a notification is removed when the delivery ends. It stays if
//! housekeeping gives up the delivery because of its age.

use jiff::{SignedDuration, Timestamp};
use model::UserId;
use uuid::Uuid;

use crate::Result;
use crate::conn::{Conn, DbRow, Statement, args};
use crate::executions::replace_nul;

/// The period of the rate of a channel and user.
const RATE_PERIOD: SignedDuration = SignedDuration::from_mins(1);

/// A delivery that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    pub id: Uuid,
    pub owner: UserId,
    /// The notification of the delivery, if it has one.
    pub notification_id: Option<Uuid>,
    pub channel: String,
    /// The destination inside the channel, as JSON without secrets.
    pub target: Option<String>,
    /// The body of the delivery, as JSON.
    pub payload: String,
}

/// A delivery that this node has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedDelivery {
    pub id: Uuid,
    pub owner: UserId,
    pub channel: String,
    pub target: Option<String>,
    pub payload: String,
    /// The number of attempts, including the current one.
    pub attempts: i64,
    pub created_at: Timestamp,
}

/// The number of waiting and failed deliveries of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelBacklog {
    pub channel: String,
    pub waiting: i64,
    /// The stored deliveries that were given up.
    pub dead: i64,
}

/// Adds a delivery without attempts that can be claimed immediately. If the owner already has as many notifications for
/// the channel as one minute allows, it is delayed until one of them is a minute old. NUL characters in its payload are
/// replaced by U+FFFD. Fails with [`crate::Error::Database`] if the id exists.
pub async fn add(conn: &mut Conn, new: &NewDelivery, now: Timestamp) -> Result<()> {
    let not_before = match new.notification_id {
        Some(_) => earliest_delivery(conn, new.owner, &new.channel, now).await?,
        None => now,
    };
    let sql = "INSERT INTO deliveries (id, owner, notification_id, channel, target, payload, attempts, next_at, \
               not_before, created_at, dead) VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7, $8, 0)";
    let values = args![
        new.id,
        new.owner,
        new.notification_id.map(|id| id.to_string()),
        new.channel.as_str(),
        new.target.as_deref(),
        replace_nul(&new.payload),
        not_before,
        now,
    ];
    conn.run((sql, values)).await.map(drop)
}

/// Returns the time at which the channel may deliver another notification of the owner, `now` or later. The caller has
/// added the notification, so no other transaction adds one of this owner at the same time.
async fn earliest_delivery(conn: &mut Conn, owner: UserId, channel: &str, now: Timestamp) -> Result<Timestamp> {
    let Some(limit) = conn.quotas().quotas().deliveries_per_minute else { return Ok(now) };
    let sql = "SELECT not_before FROM deliveries WHERE owner = $1 AND channel = $2 \
               ORDER BY not_before DESC LIMIT 1 OFFSET $3";
    let row = conn.first((sql, args![owner, channel, limit - 1])).await?;
    let free_at = row.map(|row| row.time(0)).transpose()?.map(|at| at + RATE_PERIOD);
    Ok(free_at.map_or(now, |at| at.max(now)))
}

/// Claims up to `limit` due deliveries of a channel until `lease_until`, also those with an expired claim. The longest
/// due ones are claimed first. Counts the attempt. On PostgreSQL, skips rows that another transaction has locked.
/// Returns them in order of their ids.
pub async fn claim(
    conn: &mut Conn,
    channel: &str,
    limit: i64,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<Vec<ClaimedDelivery>> {
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

/// Returns the earliest time at which a delivery of this channel can be claimed, or `None` if none is pending. For a
/// claimed delivery this is the end of its claim.
pub async fn next_attempt_at(conn: &mut Conn, channel: &str) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(next_at) FROM deliveries WHERE ended_at IS NULL AND channel = $1";
    conn.first((sql, args![channel])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Returns the channels with deliveries that have not ended, in order of their names. Each has the time at which its
/// first delivery can be claimed. For a claimed delivery this is the end of its claim.
pub async fn pending_channels(conn: &mut Conn) -> Result<Vec<(String, Timestamp)>> {
    // Skips from channel to channel on the index. DISTINCT would read all pending rows.
    let sql = "WITH RECURSIVE waiting (channel) AS (\
               SELECT MIN(d.channel) FROM deliveries d WHERE d.ended_at IS NULL \
               UNION ALL SELECT (SELECT MIN(d.channel) FROM deliveries d WHERE d.ended_at IS NULL \
               AND d.channel > w.channel) FROM waiting w WHERE w.channel IS NOT NULL) \
               SELECT w.channel, (SELECT MIN(d.next_at) FROM deliveries d WHERE d.ended_at IS NULL \
               AND d.channel = w.channel) FROM waiting w WHERE w.channel IS NOT NULL";
    conn.all((sql, [])).await?.iter().map(|row| Ok((row.text(0)?, row.time(1)?))).collect()
}

/// Returns true if no delivery is pending.
pub async fn is_empty(conn: &mut Conn) -> Result<bool> {
    Ok(conn.first(("SELECT 1 FROM deliveries WHERE ended_at IS NULL LIMIT 1", [])).await?.is_none())
}

/// Makes all pending deliveries claimable now, including claimed ones. Deliveries that are delayed by the rate of their
/// channel stay delayed. Only for a single node. Returns their number.
pub async fn release_all(conn: &mut Conn, now: Timestamp) -> Result<u64> {
    let sql = "UPDATE deliveries SET next_at = CASE WHEN not_before > $1 THEN not_before ELSE $1 END \
               WHERE ended_at IS NULL AND next_at > $1";
    conn.run((sql, args![now])).await
}

/// Marks a delivery as delivered. Returns false if the claim is no longer valid.
pub async fn mark_delivered(conn: &mut Conn, claimed: &ClaimedDelivery, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET ended_at = $3, last_error = NULL, \
               payload = CASE WHEN notification_id IS NULL THEN '' ELSE payload END \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, now])).await? == 1)
}

/// Records a failed attempt and schedules the next one at `next_at`. Returns false if the claim is no longer valid.
pub async fn retry_at(conn: &mut Conn, claimed: &ClaimedDelivery, error: &str, next_at: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET next_at = $3, last_error = $4 \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, next_at, replace_nul(error)])).await? == 1)
}

/// Returns a claim without an attempt. Any node can claim the delivery from `next_at`. Returns false if the claim is no
/// longer valid.
pub async fn return_claim(conn: &mut Conn, claimed: &ClaimedDelivery, next_at: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET attempts = attempts - 1, next_at = $3 \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, next_at])).await? == 1)
}

/// Marks a delivery as failed for good. Returns false if the claim is no longer valid.
pub async fn give_up(conn: &mut Conn, claimed: &ClaimedDelivery, error: &str, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE deliveries SET ended_at = $3, dead = 1, last_error = $4, \
               payload = CASE WHEN notification_id IS NULL THEN '' ELSE payload END \
               WHERE id = $1 AND attempts = $2 AND ended_at IS NULL";
    Ok(conn.run((sql, args![claimed.id, claimed.attempts, now, replace_nul(error)])).await? == 1)
}

/// Returns the backlog of every channel with waiting or failed deliveries.
pub async fn channel_backlogs(conn: &mut Conn) -> Result<Vec<ChannelBacklog>> {
    let sql = "SELECT channel, COUNT(*) - CAST(SUM(dead) AS BIGINT), CAST(SUM(dead) AS BIGINT) FROM deliveries \
               WHERE ended_at IS NULL OR dead = 1 GROUP BY channel ORDER BY channel";
    let read = |row: &DbRow| Ok(ChannelBacklog { channel: row.text(0)?, waiting: row.int(1)?, dead: row.int(2)? });
    conn.all((sql, [])).await?.iter().map(read).collect()
}

/// Reads a claimed delivery. Fails with [`crate::Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<ClaimedDelivery> {
    Ok(ClaimedDelivery {
        id: row.parsed(0, Uuid::try_parse)?,
        owner: row.parsed(1, str::parse)?,
        channel: row.text(2)?,
        target: row.maybe_text(3)?,
        payload: row.text(4)?,
        attempts: row.int(5)?,
        created_at: row.time(6)?,
    })
}
