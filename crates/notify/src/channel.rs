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
    pub(crate) hope: Hope,
    /// Whether it is the host that does not work, rather than this one address there.
    pub(crate) is_of_the_host: bool,
}

/// What may help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hope {
    /// Another try, not before so long where the other side says so.
    Again(Option<Duration>),
    /// Another node.
    Elsewhere,
    None,
}

impl Failure {
    pub(crate) fn for_now(says: impl Into<String>) -> Self {
        Self { says: says.into(), hope: Hope::Again(None), is_of_the_host: false }
    }

    pub(crate) fn for_good(says: impl Into<String>) -> Self {
        Self { says: says.into(), hope: Hope::None, is_of_the_host: false }
    }

    pub(crate) fn elsewhere(says: impl Into<String>) -> Self {
        Self { says: says.into(), hope: Hope::Elsewhere, is_of_the_host: false }
    }

    /// Not again before so long.
    pub(crate) fn after(self, patience: Option<Duration>) -> Self {
        Self { hope: Hope::Again(patience), ..self }
    }

    pub(crate) fn of_the_host(self) -> Self {
        Self { is_of_the_host: true, ..self }
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
            Way::Webhook(_) => crate::post::LIMIT,
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
