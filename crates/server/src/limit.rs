//! How often one user, or whoever else is told apart, may ask: a bucket of requests each, refilled steadily. Counted on
//! this node.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::settings::Rate;

pub(crate) struct Limiter<K: Clone + Eq + Hash> {
    buckets: RateLimiter<K, DashMapStateStore<K>, DefaultClock>,
    clock: DefaultClock,
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    pub(crate) fn new(rate: Rate) -> Self {
        let one = Duration::from_secs(60) / u32::from(rate.per_minute);
        let quota = Quota::with_period(one).unwrap_or(Quota::per_second(NonZeroU32::MAX)).allow_burst(rate.burst);
        let clock = DefaultClock::default();
        Self { buckets: RateLimiter::dashmap_with_clock(quota, clock.clone()), clock }
    }

    /// Takes one request out of a bucket, or says how long to wait.
    pub(crate) fn take(&self, key: &K) -> Result<(), Duration> {
        self.buckets.check_key(key).map_err(|until| until.wait_time_from(self.clock.now()))
    }

    /// Forgets those whose bucket is full again.
    pub(crate) fn tidy(&self) {
        self.buckets.retain_recent();
        self.buckets.shrink_to_fit();
    }

    /// How many buckets are kept.
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }
}
