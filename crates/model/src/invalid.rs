//! Validation errors: one violation for each broken rule, all of them at once.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One broken rule: the field, the rule and a message for the sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// The name of the field in the request. `tags[2]` for an entry of a list.
    #[schema(examples("title"))]
    pub field: String,
    /// The short name of the rule, for programs.
    #[schema(examples("max_length"))]
    pub rule: String,
    #[schema(examples("must have at most 200 characters, has 201"))]
    pub message: String,
}

/// The error of an invalid draft. It has at least one violation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", join_messages(.violations))]
pub struct Invalid {
    pub violations: Vec<Violation>,
}

impl Invalid {
    /// Returns an error with a single violation.
    pub fn one(field: impl Into<String>, rule: &str, message: impl Into<String>) -> Self {
        Self { violations: vec![violation(field, rule, message)] }
    }
}

/// The maximum number of reported violations, so that the response does not get larger than the request.
const MAX_VIOLATIONS: usize = 100;

/// Collects violations while a draft is checked, at most [`MAX_VIOLATIONS`].
#[derive(Debug, Default)]
pub struct Checks {
    violations: Vec<Violation>,
}

impl Checks {
    /// Adds a violation. Does nothing if there are already [`MAX_VIOLATIONS`].
    pub fn fail(&mut self, field: impl Into<String>, rule: &str, message: impl Into<String>) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(violation(field, rule, message));
        }
    }

    /// Returns the value of `result`. On an error, adds its violations and returns `None`. Drops the violations beyond
    /// 100 in total.
    pub fn take<T>(&mut self, result: Result<T, Invalid>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(invalid) => {
                let remaining = MAX_VIOLATIONS.saturating_sub(self.violations.len());
                self.violations.extend(invalid.violations.into_iter().take(remaining));
                None
            }
        }
    }

    /// Returns `value`. Fails with all violations if there are any, or if `value` is `None`. If `value` is `None`, the
    /// caller must have added a violation.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Invalid> {
        match value {
            Some(value) if self.violations.is_empty() => Ok(value),
            _ => Err(Invalid { violations: self.violations }),
        }
    }
}

fn violation(field: impl Into<String>, rule: &str, message: impl Into<String>) -> Violation {
    Violation { field: field.into(), rule: rule.to_owned(), message: message.into() }
}

fn join_messages(violations: &[Violation]) -> String {
    let parts: Vec<_> = violations.iter().map(|v| format!("{} {}", v.field, v.message)).collect();
    parts.join("; ")
}
