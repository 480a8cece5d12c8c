//! Counts the open event streams of this process: of chats, executions, notifications and A2A tasks (SEC-5). Each
//! stream holds a connection and polls the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::UserId;
use model::quota::{QuotaKind, QuotaReached, Quotas};

/// The maximum number of open streams of all anonymous callers of one agent.
const MAX_ANONYMOUS_STREAMS: i64 = 200;
/// The time after which a client may try again if all streams of the node are open, in seconds.
const RETRY_AFTER_SECONDS: u64 = 10;

/// The party whose streams are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StreamOwner {
    User(UserId),
    /// The anonymous callers of this agent.
    Anonymous(String),
}

/// Counts the open streams. Clones share the counts.
#[derive(Clone, Default)]
pub(crate) struct StreamCounter(Arc<Mutex<StreamCounts>>);

#[derive(Default)]
struct StreamCounts {
    by_owner: HashMap<StreamOwner, i64>,
    total: i64,
}

/// An open stream. It is counted until it is dropped.
pub(crate) struct OpenStream {
    counter: StreamCounter,
    owner: StreamOwner,
}

impl StreamCounter {
    /// Counts one more stream until the result is dropped. Fails if the limit of the owner or of the node is reached.
    pub(crate) fn open(&self, owner: StreamOwner, quotas: &Quotas) -> Result<OpenStream, QuotaReached> {
        let limit = match owner {
            StreamOwner::User(_) => quotas.streams.unwrap_or(i64::MAX),
            StreamOwner::Anonymous(_) => MAX_ANONYMOUS_STREAMS,
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.by_owner.get(&owner).is_some_and(|count| *count >= limit) || limit < 1 {
            return Err(QuotaReached::new(QuotaKind::Streams, limit));
        }
        if let Some(total) = quotas.total_streams.filter(|total| counts.total >= *total) {
            let retry_after = Some(RETRY_AFTER_SECONDS);
            return Err(QuotaReached { retry_after, ..QuotaReached::new(QuotaKind::TotalStreams, total) });
        }
        counts.total += 1;
        *counts.by_owner.entry(owner.clone()).or_default() += 1;
        Ok(OpenStream { counter: self.clone(), owner })
    }
}

impl Drop for OpenStream {
    /// Reduces the count of the owner by one. An entry without streams is removed.
    fn drop(&mut self) {
        let mut counts = self.counter.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.total -= 1;
        if let Some(count) = counts.by_owner.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.by_owner.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_open_streams_is_limited() {
        // A2A-3, SEC-5
        let streams = StreamCounter::default();
        let quotas = |limit| Quotas { streams: limit, ..Quotas::UNLIMITED };
        let user = |id| StreamOwner::User(UserId::new(uuid::Uuid::from_u128(id)));
        let three = quotas(Some(3));
        let mut open: Vec<_> = (0..3).map(|_| streams.open(user(1), &three).unwrap_or_else(|_| panic!())).collect();
        let reached = streams.open(user(1), &three).err().unwrap();
        assert_eq!(reached, QuotaReached::new(QuotaKind::Streams, 3));
        assert!(streams.open(user(2), &three).is_ok(), "another user is not affected");
        assert!(streams.open(user(1), &quotas(None)).is_ok());
        open.pop();
        assert!(streams.open(user(1), &three).is_ok());
        open.clear();
        let anonymous = || streams.open(StreamOwner::Anonymous("a".to_owned()), &three);
        let many: Vec<_> = (0..MAX_ANONYMOUS_STREAMS).map(|_| anonymous().unwrap_or_else(|_| panic!())).collect();
        assert!(anonymous().is_err());
        drop(many);
        assert!(streams.0.lock().unwrap().by_owner.is_empty(), "closed streams are removed");
    }

    #[test]
    fn all_users_together_have_a_limit() {
        // A2A-3, SEC-5
        let streams = StreamCounter::default();
        let quotas = Quotas { streams: Some(2), total_streams: Some(3), ..Quotas::UNLIMITED };
        let open = |id| streams.open(StreamOwner::User(UserId::new(uuid::Uuid::from_u128(id))), &quotas);
        let mut held: Vec<_> = [1, 1, 2].into_iter().map(|id| open(id).unwrap_or_else(|_| panic!())).collect();
        let reached = open(3).err().unwrap();
        assert_eq!((reached.kind, reached.limit, reached.retry_after), (QuotaKind::TotalStreams, 3, Some(10)));
        assert_eq!(open(1).err().unwrap().kind, QuotaKind::Streams, "the own limit is named first");
        held.pop();
        assert!(open(3).is_ok() && streams.0.lock().unwrap().total == 2, "a closed stream frees its place");
    }
}
