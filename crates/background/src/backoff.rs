//! Delays between attempts that double up to a largest one.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

/// After so many doublings every delay has reached its largest value.
const MAX_DOUBLINGS: u64 = 100;

/// The rule by which delays grow: the first one, then twice the one before, never more than the largest.
#[derive(Clone, Copy, Debug)]
pub struct Doubling {
    builder: ExponentialBuilder,
    max: Duration,
}

impl Doubling {
    /// A largest delay that is smaller than the first one counts from the second delay on.
    pub const fn new(first: Duration, max: Duration) -> Self {
        let builder = ExponentialBuilder::new().with_min_delay(first).with_max_delay(max).without_max_times();
        Self { builder, max }
    }

    /// Returns the delay that follows `retries` earlier ones, for callers that count their own attempts.
    pub fn delay(&self, retries: u64) -> Duration {
        let index = usize::try_from(retries.min(MAX_DOUBLINGS)).unwrap_or_default();
        self.builder.build().nth(index).unwrap_or(self.max)
    }

    /// Returns a counter that starts with the first delay.
    pub const fn start(self) -> Backoff {
        Backoff { rule: self, retries: 0 }
    }
}

/// Counts retries and returns the delay before each.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    rule: Doubling,
    retries: u64,
}

impl Backoff {
    /// Returns the next delay.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.rule.delay(self.retries);
        self.retries = self.retries.saturating_add(1);
        delay
    }

    /// Starts again with the first delay.
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

    const RULE: Doubling = Doubling::new(Duration::from_secs(1), Duration::from_secs(60));

    #[test]
    fn delays_double_up_to_the_largest() {
        let mut backoff = RULE.start();
        let delays: Vec<u64> = (0..8).map(|_| backoff.next_delay().as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.retries(), 8);
        backoff.reset();
        assert_eq!(backoff.next_delay(), Duration::from_secs(1));
    }

    #[test]
    fn any_delay_is_computed_from_its_number() {
        let mut backoff = RULE.start();
        for retries in 0..50 {
            assert_eq!(RULE.delay(retries), backoff.next_delay(), "{retries}");
        }
        assert_eq!(RULE.delay(u64::MAX), Duration::from_secs(60));
    }

    #[test]
    fn extreme_delays_are_kept() {
        let long = Doubling::new(Duration::from_secs(86_400), Duration::MAX);
        assert_eq!(long.delay(0), Duration::from_secs(86_400));
        assert_eq!(long.delay(u64::MAX), Duration::MAX);
        let none = Doubling::new(Duration::ZERO, Duration::from_secs(1));
        assert_eq!(none.delay(9), Duration::ZERO);
        let constant = Doubling::new(Duration::from_secs(1800), Duration::from_secs(1800));
        assert_eq!(constant.delay(3), Duration::from_secs(1800));
    }
}
