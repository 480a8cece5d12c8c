//! Why a run failed: a sentence for people, and what kind of failure it is.
//!
//! The sentence names variables and files, never the secrets in them; what an agent said itself may be part of it.

use std::fmt;

use model::execution::Category;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Failure {
    pub category: Category,
    pub message: String,
}

impl Failure {
    /// May go better another time.
    pub fn transient(message: impl Into<String>) -> Self {
        Self { category: Category::Transient, message: message.into() }
    }

    /// Will fail again until somebody changes something.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { category: Category::Permanent, message: message.into() }
    }

    /// The agent's own doing.
    pub fn agent(message: impl Into<String>) -> Self {
        Self { category: Category::AgentError, message: message.into() }
    }

    /// The machine's, or ours.
    pub fn system(message: impl Into<String>) -> Self {
        Self { category: Category::SystemError, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
