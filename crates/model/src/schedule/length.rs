//! A length of time as people write it: `90m`, `1h30m`, `45s`, `2d`. A day has 24 hours here.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Span, SpanRelativeTo};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::Invalid;

/// Whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u32);

/// Ten years.
const MAX: i64 = 3660 * 24 * 60 * 60;

impl Length {
    pub const fn from_secs(seconds: u32) -> Self {
        Self(seconds)
    }

    pub const fn as_secs(self) -> u32 {
        self.0
    }

    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }

    pub const fn signed(self) -> SignedDuration {
        SignedDuration::from_secs(self.0 as i64)
    }

    /// From 1 second to ten years.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        let wrong = || {
            Invalid::one(field, "length", "must be a length of time such as 45s, 90m, 1h30m or 2d, of 1 s to 3660 d")
        };
        let span: Span = text.trim().parse().map_err(|_| wrong())?;
        let exact = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
        let seconds = Some(exact.as_secs()).filter(|_| exact.subsec_nanos() == 0);
        match seconds.filter(|seconds| (1..=MAX).contains(seconds)).and_then(|seconds| u32::try_from(seconds).ok()) {
            Some(seconds) => Ok(Self(seconds)),
            None => Err(wrong()),
        }
    }
}

impl fmt::Display for Length {
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

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse("length", &text).map_err(|invalid| D::Error::custom(&invalid.violations[0].message))
    }
}

impl PartialSchema for Length {
    fn schema() -> RefOr<Schema> {
        String::schema()
    }
}

impl ToSchema for Length {
    fn name() -> Cow<'static, str> {
        "Length".into()
    }
}
