//! Replies stored by idempotency key, so that a repeated request has no further effect.
//!
//! [`run_once`] claims the key, does the work and stores the reply in one transaction.

use jiff::{SignedDuration, Timestamp};
use model::UserId;

use crate::conn::{Conn, args};
use crate::{Error, Job, Result, Transaction};

/// The time for which a reply is stored.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    pub status: u16,
    pub body: String,
}

/// An idempotency key and a digest of its request.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    pub key: String,
    pub fingerprint: String,
}

/// Runs `work` unless the key has a stored reply, and stores its reply. Without a key, always runs it and stores
/// nothing. Returns the reply, and true if it is a stored one. Fails like [`claim`], or with the error of `work`; no
/// reply is stored then, and the caller must roll back to release the claim.
pub async fn run_once<E, W>(
    tx: &mut Transaction,
    owner: UserId,
    key: Option<&IdempotencyKey>,
    now: Timestamp,
    work: W,
) -> Result<(StoredReply, bool), E>
where
    E: From<Error>,
    W: AsyncFnOnce(&mut Transaction) -> Result<StoredReply, E> + for<'t> Job<'t, StoredReply, E>,
{
    let Some(key) = key else { return Ok((work(tx).await?, false)) };
    if let Some(reply) = claim(tx, owner, key, now).await? {
        return Ok((reply, true));
    }
    let reply = work(&mut *tx).await?;
    save_reply(tx, owner, key, now, &reply).await?;
    Ok((reply, false))
}

/// Claims the key and returns `None`, or returns the stored reply of the key. A key that was claimed [`RETENTION`] ago
/// or earlier counts as unused, even without a reply. Fails with [`Error::KeyReused`] if the fingerprint differs, and
/// with [`Error::KeyBusy`] if the key is claimed and has no reply yet.
pub async fn claim(
    conn: &mut Conn,
    owner: UserId,
    key: &IdempotencyKey,
    now: Timestamp,
) -> Result<Option<StoredReply>> {
    let claim = "INSERT INTO idempotency_keys (owner, key, fingerprint, created_at) VALUES ($1, $2, $3, $4) \
                ON CONFLICT (owner, key) DO UPDATE SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, \
                created_at = excluded.created_at WHERE idempotency_keys.created_at <= $5";
    let values = args![owner, key.key.as_str(), key.fingerprint.as_str(), now, now - RETENTION];
    if conn.run((claim, values)).await? == 1 {
        return Ok(None);
    }
    let find = "SELECT fingerprint, status, body FROM idempotency_keys WHERE owner = $1 AND key = $2";
    let row = conn.first((find, args![owner, key.key.as_str()])).await?.ok_or(Error::KeyBusy)?;
    if row.text(0)? != key.fingerprint {
        return Err(Error::KeyReused);
    }
    let status = row.maybe_int(1)?.ok_or(Error::KeyBusy)?;
    let status = u16::try_from(status).map_err(|error| Error::Corrupt(error.to_string()))?;
    Ok(Some(StoredReply { status, body: row.maybe_text(2)?.unwrap_or_default() }))
}

/// Releases a claimed key because its request was not executed. Does nothing if the key has a reply.
pub async fn release(conn: &mut Conn, owner: UserId, key: &IdempotencyKey) -> Result<()> {
    let sql = "DELETE FROM idempotency_keys WHERE owner = $1 AND key = $2 AND status IS NULL";
    conn.run((sql, args![owner, key.key.as_str()])).await.map(drop)
}

/// Stores the reply of a claimed key and replaces an earlier one. The fingerprint and the time of an existing claim
/// stay. If the request has erased the claim with all data of the user, adds the key again, with `now`.
pub async fn save_reply(
    conn: &mut Conn,
    owner: UserId,
    key: &IdempotencyKey,
    now: Timestamp,
    reply: &StoredReply,
) -> Result<()> {
    let sql = "INSERT INTO idempotency_keys (owner, key, fingerprint, status, body, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6) \
               ON CONFLICT (owner, key) DO UPDATE SET status = excluded.status, body = excluded.body";
    let fingerprint = key.fingerprint.as_str();
    let key = key.key.as_str();
    let values = args![owner, key, fingerprint, i64::from(reply.status), reply.body.as_str(), now];
    conn.run_later((sql, values)).await
}
