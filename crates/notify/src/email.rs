//! E-mail by SMTP. The id of the delivery is the id of the message, by which mail programs know doubles.

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
use store::outbox::Claimed;

use crate::channel::Failure;

pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// The server that mail is handed to.
#[derive(Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl fmt::Debug for Smtp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smtp").finish_non_exhaustive()
    }
}

impl Smtp {
    /// `url` is `smtps://user@host`, `smtp://user@host:587?tls=required` or, without encryption, `smtp://host:25`. Says
    /// which field is wrong, and how.
    pub fn new(
        url: &str,
        user: Option<String>,
        password: Option<&SecretString>,
        from: &str,
    ) -> Result<Self, (&'static str, String)> {
        let from = mailbox(from).map_err(|says| ("from", says))?;
        let wrong = |_| ("url", "must be a URL such as smtps://me@mail.example".to_owned());
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(wrong)?.timeout(Some(LIMIT));
        if let (Some(user), Some(password)) = (user, password) {
            builder = builder.credentials(Credentials::new(user, password.expose_secret().to_owned()));
        }
        Ok(Self { transport: builder.build(), from })
    }
}

/// An address such as `me@mail.example` or `Me <me@mail.example>`.
fn mailbox(text: &str) -> Result<Mailbox, String> {
    text.parse().map_err(|_| "must be an address such as me@mail.example".to_owned())
}

/// Who gets it, and from where.
#[derive(Clone, Debug)]
pub struct Mail {
    smtp: Smtp,
    to: Vec<Mailbox>,
}

impl Mail {
    pub fn new(smtp: Smtp, to: &[String]) -> Result<Self, String> {
        let to = to.iter().map(|to| mailbox(to)).collect::<Result<Vec<_>, _>>()?;
        if to.is_empty() { Err("must have at least one address".to_owned()) } else { Ok(Self { smtp, to }) }
    }

    /// Who gets it.
    pub fn to(&self) -> String {
        self.to.iter().map(|to| to.email.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Greets the server, and shows it the password.
    pub(crate) async fn check(&self) -> Result<String, String> {
        match self.smtp.transport.test_connection().await {
            Ok(true) => Ok("the server answers; nothing was sent".to_owned()),
            Ok(false) => Err("the server does not answer as it should".to_owned()),
            Err(error) => Err(says(&error)),
        }
    }

    pub(crate) async fn deliver(&self, delivery: &Claimed, now: Timestamp) -> Result<(), Failure> {
        let message = self.message(delivery, now).map_err(Failure::for_good)?;
        let sent = tokio::time::timeout(LIMIT, self.smtp.transport.send(message)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_permanent() => {
                Err(Failure::for_good(format!("it was refused: {}", says(&error))))
            }
            Ok(Err(error)) => Err(Failure::for_now(says(&error))),
            Err(_) => Err(Failure::for_now(format!("it was not taken within {} seconds", LIMIT.as_secs()))),
        }
    }

    fn message(&self, delivery: &Claimed, now: Timestamp) -> Result<Message, String> {
        let unreadable = |error: serde_json::Error| format!("it cannot be read: {error}");
        let notification: Notification = serde_json::from_str(&delivery.payload).map_err(unreadable)?;
        let domain = self.smtp.from.email.domain();
        let started = Message::builder()
            .from(self.smtp.from.clone())
            .subject(notification.title.clone())
            .message_id(Some(format!("<{}@{domain}>", delivery.id)))
            .date(std::time::SystemTime::from(now))
            // Nobody's absence is announced to a machine.
            .raw_header(raw("Auto-Submitted", "auto-generated"))
            .raw_header(raw("X-Adjutant-Delivery", &delivery.id.to_string()));
        let addressed = self.to.iter().cloned().fold(started, MessageBuilder::to);
        let text = if notification.text.is_empty() { notification.title } else { notification.text };
        addressed.header(ContentType::TEXT_PLAIN).body(text).map_err(|error| error.to_string())
    }
}

fn raw(name: &'static str, value: &str) -> lettre::message::header::HeaderValue {
    let name = lettre::message::header::HeaderName::new_from_ascii_str(name);
    lettre::message::header::HeaderValue::new(name, value.to_owned())
}

/// What a server says may repeat addresses.
fn says(error: &lettre::transport::smtp::Error) -> String {
    redact(&error.to_string()).into_owned()
}
