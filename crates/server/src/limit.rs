//! How often one user may ask: a bucket of requests each, refilled steadily. Counted on this node.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use model::UserId;

use crate::Problem;
use crate::settings::Rate;

pub(crate) struct Limiter {
    buckets: RateLimiter<UserId, DashMapStateStore<UserId>, DefaultClock>,
    clock: DefaultClock,
}

impl Limiter {
    pub(crate) fn new(rate: Rate) -> Self {
        let one = Duration::from_secs(60) / u32::from(rate.per_minute);
        let quota = Quota::with_period(one).unwrap_or(Quota::per_second(NonZeroU32::MAX)).allow_burst(rate.burst);
        let clock = DefaultClock::default();
        Self { buckets: RateLimiter::dashmap_with_clock(quota, clock.clone()), clock }
    }

    /// Takes one request out of the user's bucket, or says how long to wait.
    pub(crate) fn take(&self, user: UserId) -> Result<(), Problem> {
        let refused = self.buckets.check_key(&user);
        refused.map_err(|until| Problem::too_many_requests(until.wait_time_from(self.clock.now())))
    }

    /// Forgets users whose bucket is full again.
    pub(crate) fn tidy(&self) {
        self.buckets.retain_recent();
    }
}
