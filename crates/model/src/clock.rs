//! Where time and new ids come from. Everything that needs "now" is given a [`Clock`]; nothing asks the system.
//!
//! Times are whole microseconds, because that is what the database keeps: a value read back equals the one written.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use uuid::{ContextV7, Uuid};

/// The system's time, or one that a test moves by hand.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    manual: Option<Arc<AtomicI64>>,
}

/// Makes ids of the same millisecond ascend.
static ORDER: std::sync::Mutex<ContextV7> = std::sync::Mutex::new(ContextV7::new());

impl Clock {
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands still until [`Clock::advance`].
    pub fn manual(start: Timestamp) -> Self {
        Self { manual: Some(Arc::new(AtomicI64::new(start.as_microsecond()))) }
    }

    pub fn now(&self) -> Timestamp {
        match &self.manual {
            Some(micros) => from_micros(micros.load(Ordering::Relaxed)),
            None => from_micros(system_now().as_microsecond()),
        }
    }

    /// Moves a manual clock forward; the system's clock takes no orders.
    pub fn advance(&self, by: std::time::Duration) {
        if let Some(micros) = &self.manual {
            micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }

    /// Puts a manual clock to this time, back too; the system's clock takes no orders.
    pub fn set(&self, time: Timestamp) {
        if let Some(micros) = &self.manual {
            micros.store(time.as_microsecond(), Ordering::Relaxed);
        }
    }

    /// A new UUID v7: unique, and later ones sort behind earlier ones.
    pub fn id(&self) -> Uuid {
        let now = self.now();
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let nanos = u32::try_from(now.subsec_nanosecond()).unwrap_or_default();
        let order = ORDER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Uuid::new_v7(uuid::Timestamp::from_unix(&*order, seconds, nanos))
    }
}

/// The inverse of [`Timestamp::as_microsecond`]; a number outside of jiff's range becomes the nearest time.
pub fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

#[expect(clippy::disallowed_methods, reason = "the one place that asks the system for the time")]
fn system_now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_ascend_even_within_one_instant() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let ids: Vec<_> = (0..1000).map(|_| clock.id()).collect();
        assert!(ids.is_sorted());
        assert_eq!(ids[0].get_version_num(), 7);
    }

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        assert_eq!(clock.now(), clock.now());
        clock.advance(std::time::Duration::from_secs(5));
        assert_eq!(clock.now().as_second(), 5);
    }

    #[test]
    fn now_survives_the_database() {
        let now = Clock::system().now();
        assert_eq!(from_micros(now.as_microsecond()), now);
    }
}
