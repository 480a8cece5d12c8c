//! The e-mail transport over SMTP. The id of the delivery is the message id, so that mail programs can detect
//! duplicates.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use model::notification::Notification;
use redact::redact;
use secrecy::{ExposeSecret, SecretString};
use store::outbox::ClaimedDelivery;

use crate::channel::DeliveryFailure;

/// The timeout of a connection and of a delivery.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// An SMTP server and the sender address.
#[derive(Clone)]
pub struct SmtpServer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl fmt::Debug for SmtpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpServer").finish_non_exhaustive()
    }
}

impl SmtpServer {
    /// Creates a server. `url` is `smtps://user@host`, `smtp://user@host:587?tls=required` or, without encryption,
    /// `smtp://host:25`. `user` and `password` replace the credentials of the URL only if both are given. Does not
    /// connect. Fails with a pair of field and message if `from` is not an address (`from`) or the URL is invalid
    /// (`url`).
    pub fn new(
        url: &str,
        user: Option<String>,
        password: Option<&SecretString>,
        from: &str,
    ) -> Result<Self, (&'static str, String)> {
        let from = mailbox(from).map_err(|message| ("from", message))?;
        let invalid_url = |_| ("url", "must be a URL such as smtps://me@mail.example".to_owned());
        let mut builder =
            AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(invalid_url)?.timeout(Some(SEND_TIMEOUT));
        if let (Some(user), Some(password)) = (user, password) {
            builder = builder.credentials(Credentials::new(user, password.expose_secret().to_owned()));
        }
        Ok(Self { transport: builder.build(), from })
    }
}

/// Reads an address such as `me@mail.example` or `Me <me@mail.example>`. Fails with a message if it is invalid.
fn mailbox(text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|_| "must be an address such as me@mail.example".to_owned())
}

/// The e-mail transport: a server and the recipients.
#[derive(Clone, Debug)]
pub struct EmailTransport {
    smtp: SmtpServer,
    to: Vec<Mailbox>,
}

impl EmailTransport {
    /// Creates a transport. Fails with a message if an address is invalid or none is given.
    pub fn new(smtp: SmtpServer, to: &[String]) -> Result<Self, String> {
        let to = to.iter().map(|to| mailbox(to)).collect::<Result<Vec<_>, _>>()?;
        if to.is_empty() { Err("must have at least one address".to_owned()) } else { Ok(Self { smtp, to }) }
    }

    /// Returns the addresses of the recipients, separated by commas.
    pub fn recipients(&self) -> String {
        self.to.iter().map(|to| to.email.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Connects to the server and authenticates, if credentials are set. Returns a description. Fails with a redacted
    /// message if the server cannot be reached, rejects the login, or does not respond as expected.
    pub(crate) async fn check(&self) -> Result<String, String> {
        match self.smtp.transport.test_connection().await {
            Ok(true) => Ok("the server responds; nothing was sent".to_owned()),
            Ok(false) => Err("the server did not respond as expected".to_owned()),
            Err(error) => Err(redacted(&error)),
        }
    }

    /// Sends an e-mail to all recipients in one message. `now` is its date. Fails permanently if the payload is not a
    /// notification, the e-mail cannot be built, or the server rejects it permanently. Fails transiently otherwise,
    /// also after [`SEND_TIMEOUT`]. Messages of the server are redacted.
    pub(crate) async fn deliver(&self, delivery: &ClaimedDelivery, now: Timestamp) -> Result<(), DeliveryFailure> {
        let message = self.message(delivery, now).map_err(DeliveryFailure::permanent)?;
        let sent = tokio::time::timeout(SEND_TIMEOUT, self.smtp.transport.send(message)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_permanent() => {
                Err(DeliveryFailure::permanent(format!("the server rejected the e-mail: {}", redacted(&error))))
            }
            Ok(Err(error)) => Err(DeliveryFailure::transient(redacted(&error))),
            Err(_) => Err(DeliveryFailure::transient(format!(
                "the server did not accept the e-mail within {} seconds",
                SEND_TIMEOUT.as_secs()
            ))),
        }
    }

    /// Builds the e-mail as plain text: the title is the subject, the text is the body. An empty text is replaced by
    /// the title. The message id consists of the delivery id and the domain of the sender. Fails with a message if the
    /// payload is not a notification or the e-mail cannot be built.
    fn message(&self, delivery: &ClaimedDelivery, now: Timestamp) -> Result<Message, String> {
        let unreadable = |error: serde_json::Error| format!("the payload is not a notification: {error}");
        let notification: Notification = serde_json::from_str(&delivery.payload).map_err(unreadable)?;
        let domain = self.smtp.from.email.domain();
        let started = Message::builder()
            .from(self.smtp.from.clone())
            .subject(notification.title.clone())
            .message_id(Some(format!("<{}@{domain}>", delivery.id)))
            .date(std::time::SystemTime::from(now))
            // Prevents automatic replies.
            .raw_header(header("Auto-Submitted", "auto-generated"))
            .raw_header(header("X-Adjutant-Delivery", &delivery.id.to_string()));
        let addressed = self.to.iter().cloned().fold(started, MessageBuilder::to);
        let text = if notification.text.is_empty() { notification.title } else { notification.text };
        addressed.header(ContentType::TEXT_PLAIN).body(text).map_err(|error| error.to_string())
    }
}

/// Returns a custom header.
fn header(name: &'static str, value: &str) -> lettre::message::header::HeaderValue {
    let name = lettre::message::header::HeaderName::new_from_ascii_str(name);
    lettre::message::header::HeaderValue::new(name, value.to_owned())
}

/// Returns the error text without e-mail addresses, which the server may repeat.
fn redacted(error: &lettre::transport::smtp::Error) -> String {
    redact(&error.to_string()).into_owned()
}
