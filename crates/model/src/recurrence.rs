//! The rule by which a task repeats: an RFC 5545 RRULE, checked part by part, kept in one spelling, and followed.
//!
//! A series has no memory: each task carries the rule, and its due date is the start that the rule goes on from. What a
//! rule does not say (the day of a month, the time of day) is taken from there.

mod days;
mod occurrences;
mod rule;

pub use occurrences::Occurrences;
pub use rule::{Frequency, Rule, Until};

use crate::Invalid;

/// The rule in upper case and without the `RRULE:` in front, or what is wrong with it.
pub fn parse(field: &str, text: &str) -> Result<String, Invalid> {
    let rule = text.trim().to_ascii_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    Rule::read(rule)
        .map_err(|why| Invalid::one(field, "rrule", format!("must be an RRULE such as FREQ=WEEKLY;BYDAY=MO: {why}")))?;
    Ok(rule.to_owned())
}

/// The rule with `steps` occurrences less to come, where it counts them.
pub fn counted_down(rule: &str, steps: i64) -> String {
    let part = |part: &str| match part.strip_prefix("COUNT=").and_then(|count| count.parse::<i64>().ok()) {
        Some(count) => format!("COUNT={}", count - steps),
        None => part.to_owned(),
    };
    rule.split(';').map(part).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests;
