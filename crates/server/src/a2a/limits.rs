//! How often one caller may call one agent (A2A-3), and how many streams they may have open. Each agent has its own rate,
//! or else the server's.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::UserId;

use crate::limit::Limiter;
use crate::settings::Rate;

/// Buckets of one agent beyond which those are forgotten that are full again.
const MANY: usize = 10_000;

/// A user; those without a name are told apart by where they call from.
pub(crate) type Key = (UserId, Option<IpAddr>);

#[derive(Default)]
pub(crate) struct Limits(Mutex<HashMap<String, Arc<Buckets>>>);

struct Buckets {
    rate: Rate,
    limiter: Limiter<Key>,
}

impl Limits {
    /// Takes one call out of the caller's bucket, or says how long to wait.
    pub(crate) fn take(&self, agent: &str, rate: Rate, key: Key) -> Result<(), Duration> {
        let buckets = self.of(agent, rate);
        if buckets.limiter.len() > MANY {
            buckets.limiter.tidy();
        }
        buckets.limiter.take(&key)
    }

    /// Those of an agent; a new rate begins with full buckets.
    fn of(&self, agent: &str, rate: Rate) -> Arc<Buckets> {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match agents.get(agent) {
            Some(buckets) if buckets.rate == rate => buckets.clone(),
            _ => {
                let buckets = Arc::new(Buckets { rate, limiter: Limiter::new(rate) });
                agents.insert(agent.to_owned(), buckets.clone());
                buckets
            }
        }
    }

    /// Forgets callers whose bucket is full again, and agents without any other.
    pub(crate) fn tidy(&self) {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|_, buckets| {
            buckets.limiter.tidy();
            buckets.limiter.len() > 0
        });
    }
}

/// Streams that one user may have open with one agent: each looks at the tables now and then, for as long as it lasts.
const STREAMS: usize = 1000;

/// Counts them.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<(UserId, String), usize>>>);

/// One that is open, until it is dropped.
pub(crate) struct Open {
    all: Streams,
    key: (UserId, String),
}

impl Streams {
    /// Counts one more; nothing where there are enough.
    pub(crate) fn open(&self, user: UserId, agent: &str) -> Option<Open> {
        let key = (user, agent.to_owned());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(key.clone()).or_default();
        if *count >= STREAMS {
            return None;
        }
        *count += 1;
        Some(Open { all: self.clone(), key })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn each_caller_has_a_bucket_for_each_agent() {
        // A2A-3
        let number = |number| NonZeroU32::new(number).unwrap();
        let rate = Rate { per_minute: number(1), burst: number(2) };
        let limits = Limits::default();
        let user = |id: u128| (UserId::new(uuid::Uuid::from_u128(id)), None);
        for _ in 0..2 {
            limits.take("a", rate, user(1)).unwrap();
        }
        let wait = limits.take("a", rate, user(1)).unwrap_err();
        assert!(wait > Duration::from_secs(55) && wait <= Duration::from_secs(60), "{wait:?}");
        limits.take("a", rate, user(2)).unwrap();
        limits.take("b", rate, user(1)).unwrap();
        let somewhere = Some(std::net::Ipv4Addr::LOCALHOST.into());
        limits.take("a", rate, (user(1).0, somewhere)).unwrap();
        limits.tidy();
        assert!(limits.take("a", rate, user(1)).is_err(), "what is not full is not forgotten");
        limits.take("a", Rate { per_minute: number(60), ..rate }, user(1)).unwrap();
    }

    #[test]
    fn a_user_has_so_many_streams_with_an_agent_and_no_more() {
        // A2A-3
        let streams = Streams::default();
        let user = UserId::new(uuid::Uuid::from_u128(1));
        let mut open: Vec<_> = (0..STREAMS).map(|_| streams.open(user, "a").unwrap()).collect();
        assert!(streams.open(user, "a").is_none());
        assert!(
            streams.open(user, "b").is_some() && streams.open(UserId::new(uuid::Uuid::from_u128(2)), "a").is_some()
        );
        open.pop();
        assert!(streams.open(user, "a").is_some());
        open.clear();
        assert!(streams.0.lock().unwrap().is_empty(), "nothing is kept of those that are closed");
    }
}
