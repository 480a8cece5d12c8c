//! `[[notify]]` and `[smtp]`: the channels by which users get notifications.

use std::time::Duration;

use jiff::tz::TimeZone;
use model::UserId;
use model::notification::Kind;
use notify::{Channel, Mail, Program, Settings, Smtp, Way, Webhook};
use secrecy::{ExposeSecret, SecretString};

use super::document::{NOTIFY, Table};
use super::form::{ChannelType, Hidden, Name, Number, OneOrMore, Reference};
use super::section::{Reading, Section, section};
use super::settings::{Settings as All, Smtp as SmtpSettings};
use super::{address, secrets};

section! {
    pub(crate) struct ChannelEntry {
        /// Its name here: letters, digits, - and _.
        name: Option<Name> => "team";
        /// webhook, command or email.
        r#type: Option<ChannelType> => "webhook";
        /// Where notifications are posted to, as JSON; "env:NAME" where the address is a secret.
        url: Option<Hidden> => "https://hooks.example/adjutant", Webhook;
        /// What they are signed with: X-Adjutant-Signature is sha256= and the HMAC of timestamp, dot and body.
        secret: Option<Reference> => "env:HOOK_SECRET", Webhook;
        /// Whether the address may be on this machine or in a private network.
        allow_private: bool = false, Webhook;
        /// The program that is started for each; no shell.
        command: Option<String> => "notify-send", Command;
        /// What it is started with; the notification is its input.
        args: Vec<String> = [] => ["adjutant"], Command;
        /// After this it is killed with all it has started.
        timeout_seconds: Number<1, 600> = 30, Command;
        /// Who gets it; [smtp] says by which server.
        to: OneOrMore = [] => ["me@mail.example"], Email;
        /// Of what: reminder, execution, schedule; all by default.
        kinds: Vec<Kind> = [] => ["reminder"];
        /// Whose, by their ids; everyone's by default.
        users: Vec<UserId> = [] => ["0b3ad5cb-8e1f-4a45-9d2a-3e9d4f5f6a70"];
        /// false leaves the channel out.
        enabled: bool = true;
    }
}

/// Reads what is told, and by which channels.
pub(crate) fn read(reading: &Reading<'_>, settings: &All, time_zone: TimeZone) -> Settings {
    let smtp = smtp(reading, &settings.smtp);
    let tables = reading.document.list(&NOTIFY);
    let enabled = || tables.iter().filter(|table| table.is_enabled());
    reading.unique(&NOTIFY, "name", enabled().map(|table| (table, table.name().to_owned())));
    let read = |table| {
        let channel = ChannelEntry::load(table, reading)?;
        Entry { reading, table, channel: &channel, smtp: smtp.as_ref() }.channel().filter(|_| channel.enabled)
    };
    let channels = tables.iter().filter_map(read).collect();
    Settings { channels, notify_due: settings.tasks.notify_due, time_zone: Some(time_zone) }
}

/// Returns the server that sends e-mail, or `Err` where it is configured, and wrongly.
fn smtp(reading: &Reading<'_>, settings: &SmtpSettings) -> Option<Result<Smtp, ()>> {
    let table = reading.document.section("smtp");
    let wrong = |says: &str| {
        reading.mistake(table, "url", says);
        Some(Err(()))
    };
    let password = settings.password.as_ref().map(|Reference(kept)| reading.resolve(table, "password", kept));
    let (Some(url), Some(from)) = (&settings.url, &settings.from) else {
        if ["url", "from", "password"].iter().any(|key| table.get(key).is_some()) {
            reading.complain(table.origin.clone(), "[smtp] needs url and from".to_owned());
            return Some(Err(()));
        }
        return None;
    };
    let parsed = reqwest::Url::parse(url).ok();
    if parsed.as_ref().is_some_and(|url| url.password().is_some()) {
        return wrong("holds a password: write it as smtp.password = \"env:NAME\"");
    }
    let name = parsed.as_ref().map(|url| url.username()).filter(|name| !name.is_empty());
    let name = name.map(|name| percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned());
    if table.get("password").is_some() != name.is_some() {
        return wrong("has a user, as in smtps://me@mail.example, exactly where there is smtp.password");
    }
    let plain = parsed.as_ref().is_some_and(|url| {
        url.scheme() == "smtp" && !url.query_pairs().any(|(key, value)| key == "tls" && value == "required")
    });
    if plain && name.is_some() && !parsed.as_ref().is_some_and(address::is_near) {
        return wrong("would send the password unencrypted: use smtps:// or add ?tls=required");
    }
    let smtp = Smtp::new(url, name, password.flatten().as_ref(), from);
    Some(smtp.map_err(|(field, says)| reading.mistake(table, field, says)))
}

struct Entry<'a> {
    reading: &'a Reading<'a>,
    table: &'a Table,
    channel: &'a ChannelEntry,
    smtp: Option<&'a Result<Smtp, ()>>,
}

impl Entry<'_> {
    fn channel(&self) -> Option<Channel> {
        self.reading.require_name(self.table);
        let way = self.way()?;
        let Name(name) = self.channel.name.clone()?;
        Some(Channel { name, way, kinds: self.channel.kinds.clone(), users: self.channel.users.clone() })
    }

    fn mistake(&self, key: &str, says: &str) {
        self.reading.mistake(self.table, key, says);
    }

    fn way(&self) -> Option<Way> {
        let Some(kind) = self.channel.r#type else {
            if self.table.get("type").is_none() {
                self.mistake("type", "must be given: webhook, command or email");
            }
            return None;
        };
        let of = format!("{kind:?}");
        for key in ChannelEntry::KEYS.iter().filter(|key| !key.of.is_empty() && key.of != of) {
            if self.table.get(key.name).is_some() {
                self.mistake(key.name, &format!("is nothing that a channel of type {} has", of.to_lowercase()));
            }
        }
        match kind {
            ChannelType::Webhook => self.webhook().map(Way::Webhook),
            ChannelType::Command => self.program().map(Way::Command),
            ChannelType::Email => self.mail().map(Way::Email),
        }
    }

    fn require(&self, key: &str) {
        if self.table.get(key).is_none() {
            self.mistake(key, "must be given");
        }
    }

    fn webhook(&self) -> Option<Webhook> {
        self.require("url");
        let secret = self.channel.secret.as_ref().map(|Reference(kept)| self.resolved("secret", kept));
        let written = self.channel.url.as_ref()?.0.expose_secret();
        let url = match secrets::is_reference(written) {
            true => self.resolved("url", written)?,
            false if secrets::is_inline_secret(false, written) => {
                self.mistake("url", "holds a secret: write \"env:NAME\" or \"file:PATH\"");
                return None;
            }
            false => written.into(),
        };
        if !self.channel.enabled {
            return None;
        }
        let webhook = Webhook::new(url.expose_secret(), secret.flatten(), self.channel.allow_private);
        webhook.map_err(|says| self.mistake("url", &says)).ok()
    }

    fn program(&self) -> Option<Program> {
        self.require("command");
        let mut program = Program::new(self.channel.command.as_ref()?, self.channel.args.clone());
        program.limit = Duration::from_secs(self.channel.timeout_seconds.0);
        Some(program)
    }

    fn mail(&self) -> Option<Mail> {
        let OneOrMore(to) = &self.channel.to;
        match self.smtp {
            Some(Ok(smtp)) => Mail::new(smtp.clone(), to).map_err(|says| self.mistake("to", &says)).ok(),
            // Reported already.
            Some(Err(())) => None,
            None => {
                self.require("to");
                self.mistake("type", "needs [smtp] with url and from");
                None
            }
        }
    }

    /// Returns the secret that a reference points to. A channel that is left out needs no secrets.
    fn resolved(&self, key: &str, reference: &str) -> Option<SecretString> {
        match self.channel.enabled {
            true => self.reading.resolve(self.table, key, reference),
            false => Some(SecretString::default()),
        }
    }
}

/// Describes a channel for people, without any address that may be a secret.
pub(crate) fn described(channel: &Channel) -> String {
    let mut line = match &channel.way {
        Way::Webhook(webhook) => format!("webhook at {}", webhook.host()),
        Way::Command(program) => {
            let words: Vec<_> = std::iter::once(&program.command).chain(&program.args).map(String::as_str).collect();
            format!("command {}", redact::redact(&words.join(" ")))
        }
        Way::Email(mail) => format!("e-mail to {}", mail.to()),
    };
    if !channel.kinds.is_empty() {
        let kinds: Vec<_> = channel.kinds.iter().map(|kind| kind.as_str()).collect();
        line.push_str(&format!(", {} only", kinds.join(" and ")));
    }
    if !channel.users.is_empty() {
        line.push_str(&format!(", for {} of the users", channel.users.len()));
    }
    line
}
