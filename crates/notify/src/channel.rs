//! Channels: the configured destinations of notifications.

use std::time::Duration;

use model::UserId;
use model::notification::NotificationKind;
use store::outbox::ClaimedDelivery;

use crate::{CommandTransport, EmailTransport, Webhook};

/// A configured channel. The database stores only its name.
#[derive(Clone, Debug)]
pub struct Channel {
    pub name: String,
    pub transport: ChannelTransport,
    /// The kinds of notifications for this channel. Empty means all.
    pub kinds: Vec<NotificationKind>,
    /// The users of this channel. Empty means all.
    pub users: Vec<UserId>,
}

/// The technical destination of a channel.
#[derive(Clone, Debug)]
pub enum ChannelTransport {
    Webhook(Webhook),
    Command(CommandTransport),
    Email(EmailTransport),
}

/// The reason of a failed delivery. It contains no secrets and no URLs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryFailure {
    pub(crate) message: String,
    pub(crate) retry: RetryAdvice,
    /// True if the whole host has failed, not only this URL.
    pub(crate) is_host_failure: bool,
}

/// The kind of retry that may succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// A later attempt, not before the delay that the receiver has requested, if any.
    Later(Option<Duration>),
    /// An attempt of another node.
    OtherNode,
    /// No retry can succeed.
    Never,
}

impl DeliveryFailure {
    /// Creates a failure that a later attempt may overcome.
    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: RetryAdvice::Later(None), is_host_failure: false }
    }

    /// Creates a failure that no retry can overcome.
    pub(crate) fn permanent(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: RetryAdvice::Never, is_host_failure: false }
    }

    /// Creates a failure that another node may overcome.
    pub(crate) fn other_node(message: impl Into<String>) -> Self {
        Self { message: message.into(), retry: RetryAdvice::OtherNode, is_host_failure: false }
    }

    /// Makes the failure transient, with the delay that the receiver has requested.
    pub(crate) fn retry_after(self, delay: Option<Duration>) -> Self {
        Self { retry: RetryAdvice::Later(delay), ..self }
    }

    /// Marks the failure as one of the whole host.
    pub(crate) fn host_failure(self) -> Self {
        Self { is_host_failure: true, ..self }
    }
}

impl Channel {
    /// Returns true if the channel accepts notifications of this kind for this user.
    pub fn accepts(&self, owner: UserId, kind: NotificationKind) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&kind)) && (self.users.is_empty() || self.users.contains(&owner))
    }

    /// Checks the channel without sending a notification: the host name of a webhook, the file of a command, or the
    /// connection and login at the mail server. Returns a description of the result. Fails with the reason if the check
    /// fails.
    pub async fn check(&self) -> Result<String, String> {
        match &self.transport {
            ChannelTransport::Webhook(webhook) => webhook.check().await,
            ChannelTransport::Command(command) => command.check(),
            ChannelTransport::Email(email) => email.check().await,
        }
    }

    /// Returns the timeout of a delivery: ten seconds for a webhook, 30 for an e-mail, the configured one for a
    /// command.
    pub(crate) fn timeout(&self) -> Duration {
        match &self.transport {
            ChannelTransport::Webhook(_) => crate::post::REQUEST_TIMEOUT,
            ChannelTransport::Command(command) => command.timeout,
            ChannelTransport::Email(_) => crate::email::SEND_TIMEOUT,
        }
    }

    /// Sends a delivery with the transport of the channel. `now` is the time in signatures and e-mails. Fails with the
    /// reason and the advice for a retry. Commands always fail transiently.
    pub(crate) async fn deliver(
        &self,
        delivery: &ClaimedDelivery,
        now: jiff::Timestamp,
    ) -> Result<(), DeliveryFailure> {
        match &self.transport {
            ChannelTransport::Webhook(webhook) => webhook.deliver(delivery, now).await,
            ChannelTransport::Command(command) => command.deliver(delivery).await,
            ChannelTransport::Email(email) => email.deliver(delivery, now).await,
        }
    }
}

impl ChannelTransport {
    /// Returns `webhook`, `command` or `email`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Command(_) => "command",
            Self::Email(_) => "email",
        }
    }
}
