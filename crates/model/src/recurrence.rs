//! Recurrence rules of tasks: parsing, normalization and occurrences of an RFC 5545 RRULE.
//!
//! A series has no stored state. Each task carries the rule, and its due date is the start of the rule. Parts that the
//! rule omits, such as the day of the month or the time of day, are taken from the start.

mod days;
mod occurrences;
mod rule;

pub use occurrences::Occurrences;
pub use rule::{Frequency, RecurrenceRule, Until};

use crate::Invalid;

/// Returns the rule in upper case, without outer white space and the prefix `RRULE:`. Parts keep their order. Fails if
/// it is not a valid rule, see [`RecurrenceRule::parse`].
pub fn normalize(field: &str, text: &str) -> Result<String, Invalid> {
    let rule = text.trim().to_ascii_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    RecurrenceRule::parse(rule).map_err(|reason| {
        Invalid::one(field, "rrule", format!("must be an RRULE such as FREQ=WEEKLY;BYDAY=MO: {reason}"))
    })?;
    Ok(rule.to_owned())
}

/// Returns the rule with its `COUNT` reduced by `steps`. A rule without `COUNT` is not changed.
pub fn reduce_count(rule: &str, steps: i64) -> String {
    let part = |part: &str| match part.strip_prefix("COUNT=").and_then(|count| count.parse::<i64>().ok()) {
        Some(count) => format!("COUNT={}", count - steps),
        None => part.to_owned(),
    };
    rule.split(';').map(part).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests;
