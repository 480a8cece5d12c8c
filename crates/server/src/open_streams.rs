//! Counts the open event streams of this process: of chats, executions, notifications and A2A tasks (SEC-5). Each
//! stream holds a connection and polls the database.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::UserId;
use model::quota::{QuotaKind, QuotaReached};

/// The maximum number of open streams of all anonymous callers of one agent.
const MAX_ANONYMOUS_STREAMS: i64 = 1000;

/// The party whose streams are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StreamOwner {
    User(UserId),
    /// The anonymous callers of this agent.
    Anonymous(String),
}

/// Counts the open streams. Clones share the counts.
#[derive(Clone, Default)]
pub(crate) struct StreamCounter(Arc<Mutex<HashMap<StreamOwner, i64>>>);

/// An open stream. It is counted until it is dropped.
pub(crate) struct OpenStream {
    counter: StreamCounter,
    owner: StreamOwner,
}

impl StreamCounter {
    /// Counts one more stream until the result is dropped. `limit` is the limit of a user, `None` is no limit. Fails if
    /// the limit is reached.
    pub(crate) fn open(&self, owner: StreamOwner, limit: Option<i64>) -> Result<OpenStream, QuotaReached> {
        let limit = match owner {
            StreamOwner::User(_) => limit.unwrap_or(i64::MAX),
            StreamOwner::Anonymous(_) => MAX_ANONYMOUS_STREAMS,
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(owner.clone()).or_default();
        if *count >= limit {
            return Err(QuotaReached::new(QuotaKind::Streams, limit));
        }
        *count += 1;
        Ok(OpenStream { counter: self.clone(), owner })
    }
}

impl Drop for OpenStream {
    /// Reduces the count of the owner by one. An entry without streams is removed.
    fn drop(&mut self) {
        let mut counts = self.counter.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.owner);
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
        let user = |id| StreamOwner::User(UserId::new(uuid::Uuid::from_u128(id)));
        let mut open: Vec<_> = (0..3).map(|_| streams.open(user(1), Some(3)).unwrap_or_else(|_| panic!())).collect();
        let reached = streams.open(user(1), Some(3)).err().unwrap();
        assert_eq!(reached, QuotaReached::new(QuotaKind::Streams, 3));
        assert!(streams.open(user(2), Some(3)).is_ok(), "another user is not affected");
        assert!(streams.open(user(1), None).is_ok());
        open.pop();
        assert!(streams.open(user(1), Some(3)).is_ok());
        open.clear();
        let anonymous = || streams.open(StreamOwner::Anonymous("a".to_owned()), Some(3));
        let many: Vec<_> = (0..MAX_ANONYMOUS_STREAMS).map(|_| anonymous().unwrap_or_else(|_| panic!())).collect();
        assert!(anonymous().is_err());
        drop(many);
        assert!(streams.0.lock().unwrap().is_empty(), "closed streams are removed");
    }
}
