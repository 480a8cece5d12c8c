//! Limits the rate of calls and the number of open streams of each caller and agent (A2A-3). An agent has its own rate
//! limit or that of the server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::UserId;

use crate::rate_limit::KeyedRateLimiter;
use crate::settings::EndpointRateLimit;

/// The number of buckets of an agent above which full buckets are removed.
const MAX_BUCKETS: usize = 10_000;

/// A user. Anonymous users are distinguished by their network.
pub(crate) type CallerKey = (UserId, Option<IpAddr>);

/// The rate limiters of all agents.
#[derive(Default)]
pub(crate) struct CallRateLimits(Mutex<HashMap<String, Arc<AgentBuckets>>>);

struct AgentBuckets {
    rate: EndpointRateLimit,
    limiter: KeyedRateLimiter<CallerKey>,
}

impl CallRateLimits {
    /// Counts one call of the caller with this agent against `rate`. Fails with the time to wait if the limit is
    /// exceeded; the call is then not counted. Removes full buckets first if the agent has more than [`MAX_BUCKETS`].
    pub(crate) fn check(&self, agent: &str, rate: EndpointRateLimit, key: CallerKey) -> Result<(), Duration> {
        let buckets = self.buckets(agent, rate);
        if buckets.limiter.len() > MAX_BUCKETS {
            buckets.limiter.remove_idle();
        }
        buckets.limiter.check(&key)
    }

    /// Returns the buckets of an agent. Creates full ones if there are none yet or the rate has changed. The old ones
    /// are discarded.
    fn buckets(&self, agent: &str, rate: EndpointRateLimit) -> Arc<AgentBuckets> {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match agents.get(agent) {
            Some(buckets) if buckets.rate == rate => buckets.clone(),
            _ => {
                let buckets = Arc::new(AgentBuckets { rate, limiter: KeyedRateLimiter::new(rate) });
                agents.insert(agent.to_owned(), buckets.clone());
                buckets
            }
        }
    }

    /// Removes full buckets, and agents without buckets.
    pub(crate) fn remove_idle(&self) {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|_, buckets| {
            buckets.limiter.remove_idle();
            buckets.limiter.len() > 0
        });
    }
}

/// The maximum number of open streams of one user with one agent. Each stream polls the database.
const MAX_STREAMS: usize = 1000;

/// Counts the open streams.
#[derive(Clone, Default)]
pub(crate) struct StreamCounter(Arc<Mutex<HashMap<(UserId, String), usize>>>);

/// An open stream. It is counted until it is dropped.
pub(crate) struct OpenStream {
    counter: StreamCounter,
    key: (UserId, String),
}

impl StreamCounter {
    /// Counts one more stream of a user with an agent, until the result is dropped. Returns `None` if 1,000 are open.
    pub(crate) fn open(&self, user: UserId, agent: &str) -> Option<OpenStream> {
        let key = (user, agent.to_owned());
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.clone()).or_default();
        if *count >= MAX_STREAMS {
            return None;
        }
        *count += 1;
        Some(OpenStream { counter: self.clone(), key })
    }
}

impl Drop for OpenStream {
    /// Reduces the count of the user and the agent by one. An entry without streams is removed.
    fn drop(&mut self) {
        let mut counts = self.counter.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
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
        let rate = EndpointRateLimit { per_minute: number(1), burst: number(2) };
        let limits = CallRateLimits::default();
        let user = |id: u128| (UserId::new(uuid::Uuid::from_u128(id)), None);
        for _ in 0..2 {
            limits.check("a", rate, user(1)).unwrap();
        }
        let wait = limits.check("a", rate, user(1)).unwrap_err();
        assert!(wait > Duration::from_secs(55) && wait <= Duration::from_secs(60), "{wait:?}");
        limits.check("a", rate, user(2)).unwrap();
        limits.check("b", rate, user(1)).unwrap();
        let network = Some(std::net::Ipv4Addr::LOCALHOST.into());
        limits.check("a", rate, (user(1).0, network)).unwrap();
        limits.remove_idle();
        assert!(limits.check("a", rate, user(1)).is_err(), "buckets that are not full are kept");
        limits.check("a", EndpointRateLimit { per_minute: number(60), ..rate }, user(1)).unwrap();
    }

    #[test]
    fn the_number_of_open_streams_is_limited() {
        // A2A-3
        let streams = StreamCounter::default();
        let user = UserId::new(uuid::Uuid::from_u128(1));
        let mut open: Vec<_> = (0..MAX_STREAMS).map(|_| streams.open(user, "a").unwrap()).collect();
        assert!(streams.open(user, "a").is_none());
        assert!(
            streams.open(user, "b").is_some() && streams.open(UserId::new(uuid::Uuid::from_u128(2)), "a").is_some()
        );
        open.pop();
        assert!(streams.open(user, "a").is_some());
        open.clear();
        assert!(streams.0.lock().unwrap().is_empty(), "closed streams are removed");
    }
}
