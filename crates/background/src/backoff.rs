//! Retry delays that double up to a limit.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

/// The number of doublings after which every delay has reached its limit.
const MAX_DOUBLINGS: u64 = 100;

/// The growth of delays: each delay is twice the previous one, up to a limit.
#[derive(Clone, Copy, Debug)]
pub struct BackoffPolicy {
    builder: ExponentialBuilder,
    max: Duration,
}

impl BackoffPolicy {
    /// Returns a policy. A limit that is smaller than the first delay applies from the second delay.
    pub const fn new(first: Duration, max: Duration) -> Self {
        let builder = ExponentialBuilder::new().with_min_delay(first).with_max_delay(max).without_max_times();
        Self { builder, max }
    }

    /// Returns the delay after `retries` earlier ones, for callers that count their attempts themselves.
    pub fn delay(&self, retries: u64) -> Duration {
        let index = usize::try_from(retries.min(MAX_DOUBLINGS)).unwrap_or_default();
        self.builder.build().nth(index).unwrap_or(self.max)
    }

    /// Returns a backoff that starts with the first delay.
    pub const fn start(self) -> Backoff {
        Backoff { policy: self, retries: 0 }
    }
}

/// Counts retries and returns the delay before each.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    retries: u64,
}

impl Backoff {
    /// Returns the next delay.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.policy.delay(self.retries);
        self.retries = self.retries.saturating_add(1);
        delay
    }

    /// Resets to the first delay.
    pub fn reset(&mut self) {
        self.retries = 0;
    }

    /// Returns the number of delays since the start or the last reset.
    pub const fn retries(&self) -> u64 {
        self.retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: BackoffPolicy = BackoffPolicy::new(Duration::from_secs(1), Duration::from_secs(60));

    #[test]
    fn delays_double_up_to_the_limit() {
        let mut backoff = POLICY.start();
        let delays: Vec<u64> = (0..8).map(|_| backoff.next_delay().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.retries(), 8);
        backoff.reset();
        assert_eq!(backoff.next_delay(), Duration::from_secs(1));
    }

    #[test]
    fn each_delay_is_computed_from_the_number_of_retries() {
        let mut backoff = POLICY.start();
        for retries in 0..50 {
            assert_eq!(POLICY.delay(retries), backoff.next_delay(), "{retries}");
        }
        assert_eq!(POLICY.delay(u64::MAX), Duration::from_secs(60));
    }

    #[test]
    fn extreme_delays_are_supported() {
        let long = BackoffPolicy::new(Duration::from_secs(86_400), Duration::MAX);
        assert_eq!(long.delay(0), Duration::from_secs(86_400));
        assert_eq!(long.delay(u64::MAX), Duration::MAX);
        let none = BackoffPolicy::new(Duration::ZERO, Duration::from_secs(1));
        assert_eq!(none.delay(9), Duration::ZERO);
        let constant = BackoffPolicy::new(Duration::from_secs(1800), Duration::from_secs(1800));
        assert_eq!(constant.delay(3), Duration::from_secs(1800));
    }
}
