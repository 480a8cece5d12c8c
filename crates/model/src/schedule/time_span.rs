//! Durations in text form: `90m`, `1h30m`, `45s`, `2d`. A day always has 24 hours.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::Invalid;

/// A duration of whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan(u32);

/// Ten years.
const MAX_SECONDS: i64 = 3660 * 24 * 60 * 60;

impl TimeSpan {
    /// Returns a duration of whole seconds.
    pub const fn from_secs(seconds: u32) -> Self {
        Self(seconds)
    }

    /// Returns the number of seconds.
    pub const fn as_secs(self) -> u32 {
        self.0
    }

    /// Returns the duration.
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }

    /// Returns the duration as a signed one.
    pub const fn signed_duration(self) -> SignedDuration {
        SignedDuration::from_secs(self.0 as i64)
    }

    /// Parses a duration such as `1h30m`, or in ISO 8601 such as `PT90M`. Outer spaces are ignored. Fails if it is
    /// malformed, has months or years, is not between 1 second and 3660 days, or not in whole seconds.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let invalid =
            || Invalid::one(field, "length", "must be a duration such as 45s, 90m, 1h30m or 2d, between 1s and 3660d");
        let span: Span = text.trim().parse().map_err(|_| invalid())?;
        let exact = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| invalid())?;
        let seconds = Some(exact.as_secs()).filter(|_| exact.subsec_nanos() == 0);
        match seconds
            .filter(|seconds| (1..=MAX_SECONDS).contains(seconds))
            .and_then(|seconds| u32::try_from(seconds).ok())
        {
            Some(seconds) => Ok(Self(seconds)),
            None => Err(invalid()),
        }
    }
}

impl fmt::Display for TimeSpan {
    /// Writes the units that are not zero, such as `1d2h`, in a form that [`TimeSpan::parse`] accepts. Zero is `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0 / 60;
        let seconds = self.0 % 60;
        let hours = minutes / 60;
        let minutes = minutes % 60;
        let parts = [(hours / 24, "d"), (hours % 24, "h"), (minutes, "m"), (seconds, "s")];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        parts.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse("length", &text).map_err(|invalid| D::Error::custom(&invalid.violations[0].message))
    }
}

impl PartialSchema for TimeSpan {
    fn schema() -> RefOr<Schema> {
        String::schema()
    }
}

impl ToSchema for TimeSpan {
    fn name() -> Cow<'static, str> {
        "Length".into()
    }
}
