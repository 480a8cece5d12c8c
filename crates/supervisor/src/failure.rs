//! The failure of a run: a message for people and a category.
//!
//! The message may name variables and files, but never contains the secrets in them. It may contain output of the
//! agent.

use std::fmt;

use model::execution::ErrorCategory;

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RunFailure {
    pub category: ErrorCategory,
    pub message: String,
}

impl RunFailure {
    /// Returns a failure that a retry may solve.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { category: ErrorCategory::Transient, message: message.into() }
    }

    /// Returns a failure that repeats until the configuration or the request changes.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { category: ErrorCategory::Permanent, message: message.into() }
    }

    /// Returns a failure that the agent caused.
    pub fn agent(message: impl Into<String>) -> Self {
        Self { category: ErrorCategory::AgentError, message: message.into() }
    }

    /// Returns a failure of the machine or of adjutant.
    pub fn system(message: impl Into<String>) -> Self {
        Self { category: ErrorCategory::SystemError, message: message.into() }
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
