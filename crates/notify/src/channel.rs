//! Channels: by which ways users are reached, and who wants what through them.

use std::time::Duration;

use model::UserId;
use model::notification::Kind;
use store::outbox::Claimed;

use crate::{Mail, Program, Webhook};

/// A way out, as it is configured. Its name is all that is stored of it.
#[derive(Clone, Debug)]
pub struct Channel {
    pub name: String,
    pub way: Way,
    /// What goes through it; none: everything.
    pub kinds: Vec<Kind>,
    /// Whose; none: everyone's.
    pub users: Vec<UserId>,
}

#[derive(Clone, Debug)]
pub enum Way {
    Webhook(Webhook),
    Command(Program),
    Email(Mail),
}

/// Why something was not delivered, without secrets or addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) says: String,
    /// Whether another try may help.
    pub(crate) may_pass: bool,
}

impl Failure {
    pub(crate) fn for_now(says: impl Into<String>) -> Self {
        Self { says: says.into(), may_pass: true }
    }

    pub(crate) fn for_good(says: impl Into<String>) -> Self {
        Self { says: says.into(), may_pass: false }
    }
}

impl Channel {
    pub fn wants(&self, owner: UserId, kind: Kind) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&kind)) && (self.users.is_empty() || self.users.contains(&owner))
    }

    /// Whether a delivery could be made, as far as that can be said without making one.
    pub async fn check(&self) -> Result<String, String> {
        match &self.way {
            Way::Webhook(webhook) => webhook.check().await,
            Way::Command(program) => program.check(),
            Way::Email(mail) => mail.check().await,
        }
    }

    /// How long a delivery may take.
    pub(crate) fn limit(&self) -> Duration {
        match &self.way {
            Way::Webhook(_) => crate::webhook::LIMIT,
            Way::Command(program) => program.limit,
            Way::Email(_) => crate::email::LIMIT,
        }
    }

    pub(crate) async fn deliver(&self, delivery: &Claimed, now: jiff::Timestamp) -> Result<(), Failure> {
        match &self.way {
            Way::Webhook(webhook) => webhook.deliver(delivery, now).await,
            Way::Command(program) => program.deliver(delivery).await,
            Way::Email(mail) => mail.deliver(delivery, now).await,
        }
    }
}

impl Way {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Command(_) => "command",
            Self::Email(_) => "email",
        }
    }
}
