//! What is wrong with something that came from outside: one entry a violation, all of them at once.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One broken rule: where, which, and a sentence for the person who sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Violation {
    /// The field as it is called in the request, `tags[2]` inside lists.
    #[schema(examples("title"))]
    pub field: String,
    /// A short name of the rule that programs can compare.
    #[schema(examples("max_length"))]
    pub rule: String,
    #[schema(examples("must have at most 200 characters, has 201"))]
    pub message: String,
}

/// A draft that was refused. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", sentence(.violations))]
pub struct Invalid {
    pub violations: Vec<Violation>,
}

impl Invalid {
    pub fn one(field: impl Into<String>, rule: &str, message: impl Into<String>) -> Self {
        Self { violations: vec![violation(field, rule, message)] }
    }
}

/// More violations than this are not worth reading, and must not make the answer larger than the question.
const ENOUGH: usize = 100;

/// Collects violations while a draft is checked, the first [`ENOUGH`] of them.
#[derive(Debug, Default)]
pub struct Checks {
    violations: Vec<Violation>,
}

impl Checks {
    pub fn fail(&mut self, field: impl Into<String>, rule: &str, message: impl Into<String>) {
        if self.violations.len() < ENOUGH {
            self.violations.push(violation(field, rule, message));
        }
    }

    /// The value, or `None` with its violations noted.
    pub fn take<T>(&mut self, result: Result<T, Invalid>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(invalid) => {
                let room = ENOUGH.saturating_sub(self.violations.len());
                self.violations.extend(invalid.violations.into_iter().take(room));
                None
            }
        }
    }

    /// `value` if nothing failed so far, else everything that did.
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

fn sentence(violations: &[Violation]) -> String {
    let parts: Vec<_> = violations.iter().map(|v| format!("{} {}", v.field, v.message)).collect();
    parts.join("; ")
}
