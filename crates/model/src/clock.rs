//! The source of time and of new ids. Code that needs the current time gets a [`Clock`] and never reads the system
//! clock.
//!
//! Times are whole microseconds, the precision of the database. So a time that is read back equals the one written.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use uuid::{ContextV7, Uuid};

/// The system clock, or a manual clock for tests.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    manual: Option<Arc<AtomicI64>>,
}

/// Orders the ids of one millisecond.
static ORDER: std::sync::Mutex<ContextV7> = std::sync::Mutex::new(ContextV7::new());

impl Clock {
    /// Returns the system clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// Returns a manual clock. Its time changes only by [`Clock::advance`] and [`Clock::set`].
    pub fn manual(start: Timestamp) -> Self {
        Self { manual: Some(Arc::new(AtomicI64::new(start.as_microsecond()))) }
    }

    /// Returns the current time in whole microseconds.
    pub fn now(&self) -> Timestamp {
        match &self.manual {
            Some(micros) => from_micros(micros.load(Ordering::Relaxed)),
            None => from_micros(system_now().as_microsecond()),
        }
    }

    /// Moves a manual clock forward. Has no effect on the system clock.
    pub fn advance(&self, by: std::time::Duration) {
        if let Some(micros) = &self.manual {
            micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }

    /// Sets a manual clock, also to an earlier time. Has no effect on the system clock.
    pub fn set(&self, time: Timestamp) {
        if let Some(micros) = &self.manual {
            micros.store(time.as_microsecond(), Ordering::Relaxed);
        }
    }

    /// Returns a new UUID v7. Later ids sort after earlier ones.
    pub fn id(&self) -> Uuid {
        let now = self.now();
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or_default();
        let order = ORDER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*order, seconds, nanos))
    }
}

/// Tells a loop when to compare stored times with the clock: in its first round, after the clock was set back, and at
/// intervals. The clock of another node may have been wrong.
#[derive(Debug, Default)]
pub struct StepDetector {
    /// The time of the last round.
    seen: Option<Timestamp>,
    /// The time of the last check. `None` if a check is due.
    checked: Option<Timestamp>,
}

/// The time between two checks if the clock is not set back.
const CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

impl StepDetector {
    /// Returns true if a check is due at `now`. It stays due until [`StepDetector::set_checked`].
    pub fn is_due(&mut self, now: Timestamp) -> bool {
        if self.seen.is_some_and(|seen| now < seen) {
            self.checked = None;
        }
        self.seen = Some(now);
        self.checked.is_none_or(|checked| now.duration_since(checked) >= CHECK_INTERVAL)
    }

    /// Records a successful check at `now`.
    pub fn set_checked(&mut self, now: Timestamp) {
        self.checked = Some(now);
    }
}

/// Returns the time of a number of microseconds, the inverse of [`Timestamp::as_microsecond`]. A number outside of
/// jiff's range becomes the nearest time.
pub fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

#[expect(clippy::disallowed_methods, reason = "the only read of the system clock")]
fn system_now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_one_instant_ascend() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let ids: Vec<_> = (0..1000).map(|_| clock.id()).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[0].get_version_num(), 7);
    }

    #[test]
    fn a_manual_clock_moves_only_when_advanced() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), clock.now());
        clock.advance(std::time::Duration::from_secs(5));
        assert_eq!(clock.now().as_second(), 5);
    }

    #[test]
    fn a_clock_that_is_set_back_makes_a_check_due() {
        // SCHED-3
        let start: Timestamp = "2026-01-10T12:00:00Z".parse().unwrap();
        let mut detector = StepDetector::default();
        assert!(detector.is_due(start), "the first round");
        assert!(detector.is_due(start), "the check has failed");
        detector.set_checked(start);
        assert!(!detector.is_due(start + SignedDuration::from_mins(1)));
        assert!(detector.is_due(start + SignedDuration::from_secs(59)), "set back by a second");
        detector.set_checked(start);
        assert!(!detector.is_due(start + SignedDuration::from_mins(9)));
        assert!(detector.is_due(start + SignedDuration::from_mins(10)));
    }

    #[test]
    fn now_has_the_precision_of_the_database() {
        let now = Clock::system().now();
        assert_eq!(from_micros(now.as_microsecond()), now);
    }
}
