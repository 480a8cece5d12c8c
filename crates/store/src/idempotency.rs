//! Answers kept by the key their request came with, so that a request sent twice is carried out once.
//!
//! [`once`] claims the key, does the work and keeps the answer in one transaction: either all of it happened or none.

use jiff::{SignedDuration, Timestamp};
use model::UserId;

use crate::conn::{Conn, args};
use crate::{Error, Job, Result, Transaction};

/// How long an answer is kept.
pub const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// An answer as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub body: String,
}

/// A key and a digest of the request it belongs to.
#[derive(Clone, Debug)]
pub struct Key {
    pub key: String,
    pub fingerprint: String,
}

/// Carries `work` out unless the key has an answer already; the flag tells whether this is an earlier answer.
pub async fn once<E, W>(
    tx: &mut Transaction,
    owner: UserId,
    key: Option<&Key>,
    now: Timestamp,
    work: W,
) -> Result<(Reply, bool), E>
where
    E: From<Error>,
    W: AsyncFnOnce(&mut Transaction) -> Result<Reply, E> + for<'t> Job<'t, Reply, E>,
{
    let Some(key) = key else { return Ok((work(tx).await?, false)) };
    if let Some(reply) = claim(tx, owner, key, now).await? {
        return Ok((reply, true));
    }
    let reply = work(&mut *tx).await?;
    settle(tx, owner, key, now, &reply).await?;
    Ok((reply, false))
}

/// Takes the key, or gives the answer it already has. [`Error::KeyReused`] for another request under the same key,
/// [`Error::KeyBusy`] for one that is still at work.
pub async fn claim(conn: &mut Conn, owner: UserId, key: &Key, now: Timestamp) -> Result<Option<Reply>> {
    let take = "INSERT INTO idempotency_keys (owner, key, fingerprint, created_at) VALUES ($1, $2, $3, $4) \
                ON CONFLICT (owner, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, \
                created_at = excluded.created_at WHERE idempotency_keys.created_at <= $5";
    let values = args![owner, key.key.as_str(), key.fingerprint.as_str(), now, now - KEPT];
    if conn.run((take, values)).await? == 1 {
        return Ok(None);
    }
    let find = "SELECT fingerprint, status, body FROM idempotency_keys WHERE owner = $1 AND key = $2";
    let row = conn.first((find, args![owner, key.key.as_str()])).await?.ok_or(Error::KeyBusy)?;
    if row.text(0)? != key.fingerprint {
        return Err(Error::KeyReused);
    }
    let status = row.maybe_int(1)?.ok_or(Error::KeyBusy)?;
    let status = u16::try_from(status).map_err(|error| Error::Corrupt(error.to_string()))?;
    Ok(Some(Reply { status, body: row.maybe_text(2)?.unwrap_or_default() }))
}

/// Gives a claimed key back: the request it came with was not carried out.
pub async fn release(conn: &mut Conn, owner: UserId, key: &Key) -> Result<()> {
    let sql = "DELETE FROM idempotency_keys WHERE owner = $1 AND key = $2 AND status IS NULL";
    conn.run((sql, args![owner, key.key.as_str()])).await.map(drop)
}

/// Keeps the answer to a request whose key was claimed, also where the request has erased the claim with all else.
pub async fn settle(conn: &mut Conn, owner: UserId, key: &Key, now: Timestamp, reply: &Reply) -> Result<()> {
    let sql = "INSERT INTO idempotency_keys (owner, key, fingerprint, status, body, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6) \
               ON CONFLICT (owner, key) DO UPDATE SET status = excluded.status, body = excluded.body";
    let fingerprint = key.fingerprint.as_str();
    let key = key.key.as_str();
    let values = args![owner, key, fingerprint, i64::from(reply.status), reply.body.as_str(), now];
    conn.run((sql, values)).await.map(drop)
}
