//! Rate limits by key, such as a user or a network. Each key has a token bucket that refills steadily. Each node counts
//! on its own.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use model::agent::endpoint::EndpointRateLimit;

/// A token bucket for each key.
pub(crate) struct KeyedRateLimiter<K: Clone + Eq + Hash> {
    buckets: RateLimiter<K, DashMapStateStore<K>, DefaultClock>,
    clock: DefaultClock,
}

impl<K: Clone + Eq + Hash> KeyedRateLimiter<K> {
    /// Creates a limiter without buckets. Each bucket starts full, holds `rate.burst` requests and refills with
    /// `rate.per_minute` requests per minute.
    pub(crate) fn new(rate: EndpointRateLimit) -> Self {
        let refill_period = Duration::from_secs(60) / u32::from(rate.per_minute);
        let quota =
            Quota::with_period(refill_period).unwrap_or(Quota::per_second(NonZeroU32::MAX)).allow_burst(rate.burst);
        let clock = DefaultClock::default();
        Self { buckets: RateLimiter::dashmap_with_clock(quota, clock.clone()), clock }
    }

    /// Takes one request from the bucket of a key. Fails with the time to wait if the bucket is empty.
    pub(crate) fn check(&self, key: &K) -> Result<(), Duration> {
        self.buckets.check_key(key).map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// Removes the buckets that are full again.
    pub(crate) fn remove_idle(&self) {
        self.buckets.retain_recent();
        self.buckets.shrink_to_fit();
    }

    /// Returns the number of buckets in memory.
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }
}
