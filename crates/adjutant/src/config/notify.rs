//! `[[notify]]` and `[smtp]`: the channels for notifications.

use std::time::Duration;

use jiff::tz::TimeZone;
use model::UserId;
use model::notification::NotificationKind;
use notify::{Channel, ChannelTransport, CommandTransport, EmailTransport, NotifySettings, SmtpServer, Webhook};
use secrecy::{ExposeSecret, SecretString};

use super::document::{ConfigTable, NOTIFY};
use super::section::{ConfigReader, ConfigSection, section};
use super::settings::{ConfigSettings, SmtpSection};
use super::values::{ChannelType, EntryName, Number, OneOrMore, RedactedText, SecretReference};
use super::{address, secrets};

section! {
    pub(crate) struct ChannelEntry {
        /// Name of the channel: letters, digits, - and _.
        name: Option<EntryName> => "team";
        /// Type: webhook, command or email.
        r#type: Option<ChannelType> => "webhook";
        /// URL that receives each notification as JSON; "env:NAME" if the URL is a secret.
        url: Option<RedactedText> => "https://hooks.example/adjutant", Webhook;
        /// Secret for the signature: X-Adjutant-Signature is sha256= and the HMAC of timestamp, dot and body.
        secret: Option<SecretReference> => "env:HOOK_SECRET", Webhook;
        /// Allow URLs on this machine and in private networks.
        allow_private: bool = false, Webhook;
        /// Program to start for each notification, without a shell.
        command: Option<String> => "notify-send", Command;
        /// Arguments of the program; it receives the notification on standard input.
        args: Vec<String> = [] => ["adjutant"], Command;
        /// Timeout after which the program and its children are killed.
        timeout_seconds: Number<1, 600> = 30, Command;
        /// Recipients; the mail server is in [smtp].
        to: OneOrMore = [] => ["me@mail.example"], Email;
        /// Kinds of notifications: reminder, execution, schedule; all by default.
        kinds: Vec<NotificationKind> = [] => ["reminder"];
        /// Ids of users; all users by default.
        users: Vec<UserId> = [] => ["0b3ad5cb-8e1f-4a45-9d2a-3e9d4f5f6a70"];
        /// false disables the channel.
        enabled: bool = true;
    }
}

/// Reads the channels and the settings of notifications. Reports mistakes, also in disabled channels, and repeated
/// names of enabled channels. Disabled and invalid channels are left out. `[smtp]` is checked even without an e-mail
/// channel.
pub(crate) fn read(reader: &ConfigReader<'_>, settings: &ConfigSettings, time_zone: TimeZone) -> NotifySettings {
    let smtp = smtp(reader, &settings.smtp);
    let tables = reader.document.list(&NOTIFY);
    let enabled = || tables.iter().filter(|table| table.is_enabled());
    reader.unique(&NOTIFY, "name", enabled().map(|table| (table, table.name().to_owned())));
    let read = |table| {
        let channel = ChannelEntry::load(table, reader)?;
        ChannelReader { reader, table, channel: &channel, smtp: smtp.as_ref() }.channel().filter(|_| channel.enabled)
    };
    let channels = tables.iter().filter_map(read).collect();
    NotifySettings { channels, notify_due: settings.tasks.notify_due, time_zone: Some(time_zone) }
}

/// Returns the mail server, or none if nothing in `[smtp]` is set. Reports these mistakes and returns `Err`:
///
/// - A missing or invalid `url` or `from`.
/// - A password in the URL, a user without `smtp.password`, or the reverse.
/// - A user with `smtp://` and without `?tls=required`, except for a host on this machine or in a private network.
///
/// A password that cannot be resolved is reported too, but the server is returned without credentials.
fn smtp(reader: &ConfigReader<'_>, settings: &SmtpSection) -> Option<Result<SmtpServer, ()>> {
    let table = reader.document.section("smtp");
    let wrong = |message: &str| {
        reader.mistake(table, "url", message);
        Some(Err(()))
    };
    let password =
        settings.password.as_ref().map(|SecretReference(reference)| reader.resolve(table, "password", reference));
    let (Some(url), Some(from)) = (&settings.url, &settings.from) else {
        if ["url", "from", "password"].iter().any(|key| table.get(key).is_some()) {
            reader.report(table.origin.clone(), "[smtp] needs url and from".to_owned());
            return Some(Err(()));
        }
        return None;
    };
    let parsed = reqwest::Url::parse(url).ok();
    if parsed.as_ref().is_some_and(|url| url.password().is_some()) {
        return wrong("contains a password: write it as smtp.password = \"env:NAME\"");
    }
    let name = parsed.as_ref().map(|url| url.username()).filter(|name| !name.is_empty());
    let name = name.map(|name| percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned());
    if table.get("password").is_some() != name.is_some() {
        return wrong("must contain a user if smtp.password is set, and only then, as in smtps://me@mail.example");
    }
    let plain = parsed.as_ref().is_some_and(|url| {
        url.scheme() == "smtp" && !url.query_pairs().any(|(key, value)| key == "tls" && value == "required")
    });
    if plain && name.is_some() && !parsed.as_ref().is_some_and(address::is_private_host) {
        return wrong("would send the password unencrypted: use smtps:// or add ?tls=required");
    }
    let smtp = SmtpServer::new(url, name, password.flatten().as_ref(), from);
    Some(smtp.map_err(|(field, message)| reader.mistake(table, field, message)))
}

/// Reads one entry of `[[notify]]`.
struct ChannelReader<'a> {
    reader: &'a ConfigReader<'a>,
    table: &'a ConfigTable,
    channel: &'a ChannelEntry,
    /// The mail server, as returned by [`smtp`].
    smtp: Option<&'a Result<SmtpServer, ()>>,
}

impl ChannelReader<'_> {
    /// Returns the channel. None if its name or transport is missing or invalid, which is reported, and for a disabled
    /// webhook.
    fn channel(&self) -> Option<Channel> {
        self.reader.require_name(self.table);
        let transport = self.transport()?;
        let EntryName(name) = self.channel.name.clone()?;
        Some(Channel { name, transport, kinds: self.channel.kinds.clone(), users: self.channel.users.clone() })
    }

    fn mistake(&self, key: &str, message: &str) {
        self.reader.mistake(self.table, key, message);
    }

    /// Returns the transport of the type. Reports a missing type, and settings that belong to other types. None if the
    /// type is missing or invalid, if the transport has mistakes, or for a disabled webhook.
    fn transport(&self) -> Option<ChannelTransport> {
        let Some(kind) = self.channel.r#type else {
            if self.table.get("type").is_none() {
                self.mistake("type", "is required: webhook, command or email");
            }
            return None;
        };
        let entry_kind = format!("{kind:?}");
        for key in ChannelEntry::KEYS.iter().filter(|key| !key.entry_kind.is_empty() && key.entry_kind != entry_kind) {
            if self.table.get(key.name).is_some() {
                self.mistake(key.name, &format!("is not a setting of channels of type {}", entry_kind.to_lowercase()));
            }
        }
        match kind {
            ChannelType::Webhook => self.webhook().map(ChannelTransport::Webhook),
            ChannelType::Command => self.command().map(ChannelTransport::Command),
            ChannelType::Email => self.email().map(ChannelTransport::Email),
        }
    }

    /// Reports a missing setting.
    fn require(&self, key: &str) {
        if self.table.get(key).is_none() {
            self.mistake(key, "is required");
        }
    }

    /// Returns the webhook with its URL and secret resolved. None if the channel is disabled, or if the URL is missing,
    /// invalid, a plain secret or a reference that cannot be resolved. Mistakes are reported; of the URL of a disabled
    /// channel, only that it is missing or a plain secret. An unresolved secret is reported, and the webhook is
    /// returned without a signature.
    fn webhook(&self) -> Option<Webhook> {
        self.require("url");
        let secret = self.channel.secret.as_ref().map(|SecretReference(reference)| self.resolved("secret", reference));
        let text = self.channel.url.as_ref()?.0.expose_secret();
        let url = match secrets::is_reference(text) {
            true => self.resolved("url", text)?,
            false if secrets::is_inline_secret(false, text) => {
                self.mistake("url", "contains a secret: write \"env:NAME\" or \"file:PATH\"");
                return None;
            }
            false => text.into(),
        };
        if !self.channel.enabled {
            return None;
        }
        let webhook = Webhook::new(url.expose_secret(), secret.flatten(), self.channel.allow_private);
        webhook.map_err(|message| self.mistake("url", &message)).ok()
    }

    fn command(&self) -> Option<CommandTransport> {
        self.require("command");
        let mut program = CommandTransport::new(self.channel.command.as_ref()?, self.channel.args.clone());
        program.timeout = Duration::from_secs(self.channel.timeout_seconds.0);
        Some(program)
    }

    /// Returns the transport for the recipients. None if `[smtp]` is missing or invalid, or if a recipient is missing
    /// or invalid. Mistakes are reported, except for the recipients if `[smtp]` is invalid.
    fn email(&self) -> Option<EmailTransport> {
        let OneOrMore(to) = &self.channel.to;
        match self.smtp {
            Some(Ok(smtp)) => {
                EmailTransport::new(smtp.clone(), to).map_err(|message| self.mistake("to", &message)).ok()
            }
            // The mistake was reported.
            Some(Err(())) => None,
            None => {
                self.require("to");
                self.mistake("type", "needs [smtp] with url and from");
                None
            }
        }
    }

    /// Returns the secret that a reference points to. Reports a reference that cannot be resolved and returns none.
    /// Secrets of disabled channels are not resolved; an empty secret is returned.
    fn resolved(&self, key: &str, reference: &str) -> Option<SecretString> {
        match self.channel.enabled {
            true => self.reader.resolve(self.table, key, reference),
            false => Some(SecretString::default()),
        }
    }
}

/// Describes a channel and its filters without secrets: the host of a webhook, the redacted command, or the recipients.
/// Adds the kinds of notifications and the number of users, if they are limited.
pub(crate) fn describe(channel: &Channel) -> String {
    let mut line = match &channel.transport {
        ChannelTransport::Webhook(webhook) => format!("webhook at {}", webhook.host()),
        ChannelTransport::Command(program) => {
            let words: Vec<_> = std::iter::once(&program.command).chain(&program.args).map(String::as_str).collect();
            format!("command {}", redact::redact(&words.join(" ")))
        }
        ChannelTransport::Email(mail) => format!("e-mail to {}", mail.recipients()),
    };
    if !channel.kinds.is_empty() {
        let kinds: Vec<_> = channel.kinds.iter().map(|kind| kind.as_str()).collect();
        line.push_str(&format!(", {} only", kinds.join(" and ")));
    }
    if !channel.users.is_empty() {
        let users = if channel.users.len() == 1 { "user" } else { "users" };
        line.push_str(&format!(", for {} {users}", channel.users.len()));
    }
    line
}
