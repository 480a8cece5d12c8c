//! The caller of an agent.

use ::a2a::{Binding, Version};
use model::User;
use supervisor::AgentEntry;

/// An authenticated caller of one agent.
#[derive(Clone)]
pub(crate) struct A2aCaller {
    pub(crate) user: User,
    /// The agent that is called.
    pub(crate) entry: AgentEntry,
    pub(crate) version: Version,
    pub(crate) binding: Binding,
    /// True if the caller is not authenticated. Anonymous callers share one user and cannot list tasks.
    pub(crate) is_anonymous: bool,
}
