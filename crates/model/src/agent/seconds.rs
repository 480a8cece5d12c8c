//! A duration that is written as a number of seconds.

use std::borrow::Cow;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The longest accepted duration: 366 days.
pub const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A duration in whole milliseconds. In JSON it is a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(Duration);

impl Seconds {
    /// Returns a duration of whole seconds.
    pub const fn new(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Returns a duration of whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns the duration.
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Returns `true` if the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// Returns the milliseconds, for the database.
    pub fn as_millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

impl From<Duration> for Seconds {
    /// Limits the duration to [`MAX_DURATION`]. Does not round it to milliseconds.
    fn from(duration: Duration) -> Self {
        Self(duration.min(MAX_DURATION))
    }
}

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    /// Rounds to milliseconds. Fails if the number is negative, not finite, or more than [`MAX_DURATION`].
    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        match Duration::try_from_secs_f64(seconds) {
            // Rounded to milliseconds, so that the value round-trips.
            Ok(duration) if duration <= MAX_DURATION => Ok(Self::from_millis((seconds * 1000.0).round() as u64)),
            _ => Err("must be a number of seconds between 0 and 366 days"),
        }
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_nanos() == 0 {
            serializer.serialize_u64(self.0.as_secs())
        } else {
            serializer.serialize_f64(self.0.as_secs_f64())
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(f64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl PartialSchema for Seconds {
    fn schema() -> RefOr<Schema> {
        f64::schema()
    }
}

impl ToSchema for Seconds {
    fn name() -> Cow<'static, str> {
        "Seconds".into()
    }
}
