//! Limits the rate of calls of each caller and agent (A2A-3). An agent has its own rate limit or that of the server.

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
}
