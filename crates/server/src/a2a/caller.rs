//! Who calls an agent by A2A, and how.

use ::a2a::{Binding, Version};
use model::User;
use supervisor::Entry;

/// One who was admitted to one agent.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) user: User,
    /// The agent that is called.
    pub(crate) entry: Entry,
    pub(crate) version: Version,
    pub(crate) binding: Binding,
    /// Nobody in particular: all who come like this are one user, who does not see what there is.
    pub(crate) anonymous: bool,
}
