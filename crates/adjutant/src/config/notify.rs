//! `[[notify]]` and `[smtp]`: the ways by which users are told what they did not ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;
use model::UserId;
use model::notification::Kind;
use notify::{Channel, Mail, Program, Settings, Smtp, Way, Webhook};
use secrecy::{ExposeSecret, SecretString};

use super::layers::Origin;
use super::read::Reader;
use super::tables::{self, Entry, Section, Shape, key};
use super::{address, secrets};

/// Which channels a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Every,
    Webhook,
    Command,
    Email,
}

pub(crate) type Key = tables::Key<Of>;

const TYPES: [(&str, Of); 3] = [("webhook", Of::Webhook), ("command", Of::Command), ("email", Of::Email)];

/// Every key there is, in the order of the template.
pub(crate) const KEYS: &[Key] = &[
    key("name", Of::Every, Shape::Text, "\"team\"", "Its name here: letters, digits, - and _."),
    key("type", Of::Every, Shape::Text, "\"webhook\"", "webhook, command or email."),
    key(
        "url",
        Of::Webhook,
        Shape::Text,
        "\"https://hooks.example/adjutant\"",
        "Where notifications are posted to, as JSON; \"env:NAME\" where the address is a secret.",
    ),
    key(
        "secret",
        Of::Webhook,
        Shape::Secret,
        "\"env:HOOK_SECRET\"",
        "What they are signed with: X-Adjutant-Signature is sha256= and the HMAC of timestamp, dot and body.",
    ),
    key(
        "allow_private",
        Of::Webhook,
        Shape::Flag,
        "false",
        "Whether the address may be on this machine or in a private network.",
    ),
    key("command", Of::Command, Shape::Text, "\"notify-send\"", "The program that is started for each; no shell."),
    key("args", Of::Command, Shape::List, "[\"adjutant\"]", "What it is started with; the notification is its input."),
    key(
        "timeout_seconds",
        Of::Command,
        Shape::Number { default: 30, min: 1, max: 600 },
        "30",
        "After this it is killed with all it has started.",
    ),
    key("to", Of::Email, Shape::Texts, "[\"me@mail.example\"]", "Who gets it; [smtp] says by which server."),
    key("kinds", Of::Every, Shape::List, "[\"reminder\"]", "Of what: reminder, execution, schedule; all by default."),
    key(
        "users",
        Of::Every,
        Shape::List,
        "[\"0b3ad5cb-8e1f-4a45-9d2a-3e9d4f5f6a70\"]",
        "Whose, by their ids; everyone's by default.",
    ),
    key("enabled", Of::Every, Shape::Flag, "true", "false leaves the channel out."),
];

pub(crate) const SECTION: Section<Of> = Section {
    name: "notify",
    wrong: "every channel is a [[notify]] of its own, with a name and a type",
    keys: KEYS,
    aliases: &[
        ("kind", "kinds"),
        ("user", "users"),
        ("timeout", "timeout_seconds"),
        ("disabled", "enabled"),
        ("program", "command"),
    ],
};

/// What is told, and by which ways.
pub(crate) fn read(reader: &mut Reader<'_>, time_zone: TimeZone) -> Settings {
    let layers = reader.layers;
    let smtp = smtp(reader);
    let mut channels = Vec::new();
    let mut names: BTreeMap<&str, &Origin> = BTreeMap::new();
    for entry in &layers.notify {
        let channel = Reading { entry, reader: &mut *reader, smtp: smtp.as_ref() }.read();
        if !entry.is_enabled() {
            continue;
        }
        match names.get(entry.name()) {
            Some(other) if !entry.name().is_empty() => {
                let message = format!("{} is taken by the channel at {other}", entry.path("name"));
                reader.mistake_at(entry.origin_of("name"), message);
            }
            _ => drop(names.insert(entry.name(), &entry.origin)),
        }
        channels.extend(channel);
    }
    Settings { channels, notify_due: reader.flag("tasks.notify_due"), time_zone: Some(time_zone) }
}

/// The server that sends e-mail; `Err` where it is configured, and wrongly.
fn smtp(reader: &mut Reader<'_>) -> Option<Result<Smtp, ()>> {
    let (url, from) = (reader.text("smtp.url"), reader.text("smtp.from"));
    let password = reader.secret("smtp.password");
    let (Some(url), Some(from)) = (url.clone(), from.clone()) else {
        let set = [url, from].iter().any(Option::is_some) || reader.is_given("smtp.password");
        return set.then(|| {
            reader.mistake("smtp.url", "[smtp] needs url and from".to_owned());
            Err(())
        });
    };
    let parsed = reqwest::Url::parse(&url).ok();
    if parsed.as_ref().is_some_and(|url| url.password().is_some()) {
        reader.mistake("smtp.url", "smtp.url holds a password: write it as smtp.password = \"env:NAME\"".to_owned());
        return Some(Err(()));
    }
    let name = parsed.as_ref().map(|url| url.username()).filter(|name| !name.is_empty());
    let name = name.map(|name| percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned());
    if password.is_some() != name.is_some() && !reader.is_inline_secret("smtp.password") {
        let message = "smtp.url has a user, as in smtps://me@mail.example, exactly where there is smtp.password";
        reader.mistake("smtp.url", message.to_owned());
        return Some(Err(()));
    }
    let plain = parsed.as_ref().is_some_and(|url| {
        url.scheme() == "smtp" && !url.query_pairs().any(|(key, value)| key == "tls" && value == "required")
    });
    if plain && password.is_some() && !parsed.as_ref().is_some_and(address::is_near) {
        let message = "smtp.url would send the password unencrypted: use smtps:// or add ?tls=required";
        reader.mistake("smtp.url", message.to_owned());
        return Some(Err(()));
    }
    Some(Smtp::new(&url, name, password.as_ref(), &from).map_err(|(field, says)| {
        let setting = format!("smtp.{field}");
        reader.mistake(&setting, format!("{setting} {says}"));
    }))
}

/// A channel that is being read.
struct Reading<'a, 'b, 'c> {
    entry: &'a Entry,
    reader: &'b mut Reader<'c>,
    smtp: Option<&'a Result<Smtp, ()>>,
}

impl Reading<'_, '_, '_> {
    fn read(mut self) -> Option<Channel> {
        if let Some(message) = self.entry.fault_of_name() {
            self.reader.mistake_at(self.entry.origin_of("name"), message);
        }
        let (kinds, users) = (self.kinds(), self.users());
        let way = self.way()?;
        Some(Channel { name: self.entry.name().to_owned(), way, kinds, users })
    }

    fn mistake(&mut self, key: &str, says: &str) {
        self.reader.mistake_at(self.entry.origin_of(key), format!("{} {says}", self.entry.path(key)));
    }

    fn way(&mut self) -> Option<Way> {
        let word = self.entry.given("type").map(str::to_lowercase);
        let Some((name, of)) = TYPES.into_iter().find(|(name, _)| word.as_deref() == Some(*name)) else {
            if !self.entry.is_wrong("type") {
                self.mistake("type", "must be webhook, command or email");
            }
            return None;
        };
        let foreign = |key: &&Key| key.of != Of::Every && key.of != of && self.entry.values.contains_key(key.name);
        for key in KEYS.iter().filter(foreign).map(|key| key.name).collect::<Vec<_>>() {
            self.mistake(key, &format!("is nothing that a channel of type {name} has"));
        }
        match of {
            Of::Webhook => self.webhook().map(Way::Webhook),
            Of::Command => self.program().map(Way::Command),
            Of::Email | Of::Every => self.mail().map(Way::Email),
        }
    }

    /// The text, or a mistake.
    fn required(&mut self, key: &str) -> Option<String> {
        let text = self.entry.given(key).map(str::to_owned);
        if text.is_none() && !self.entry.is_wrong(key) {
            self.mistake(key, "must be given");
        }
        text
    }

    fn webhook(&mut self) -> Option<Webhook> {
        let url = self.required("url")?;
        let url = match secrets::is_reference(&url) {
            true => self.resolved("url", &url)?,
            false if secrets::is_inline_secret(false, &url) => {
                self.mistake("url", "holds a secret: write \"env:NAME\" or \"file:PATH\"");
                return None;
            }
            false => url.into(),
        };
        let secret = match self.entry.given("secret").map(str::to_owned) {
            Some(reference) if secrets::is_reference(&reference) => Some(self.resolved("secret", &reference)?),
            Some(_) => {
                let message = secrets::inline(&self.entry.path("secret"));
                self.reader.mistake_at(self.entry.origin_of("secret"), message);
                None
            }
            None => None,
        };
        if !self.entry.is_enabled() {
            return None;
        }
        let webhook = Webhook::new(url.expose_secret(), secret, self.entry.flag("allow_private", false));
        webhook.map_err(|says| self.mistake("url", &says)).ok()
    }

    fn program(&mut self) -> Option<Program> {
        let command = self.required("command")?;
        let mut program = Program::new(&command, self.entry.list("args").to_vec());
        match self.entry.number(KEYS, "timeout_seconds") {
            Ok(seconds) => program.limit = Duration::from_secs(seconds),
            Err(says) => self.mistake("timeout_seconds", &says),
        }
        Some(program)
    }

    fn mail(&mut self) -> Option<Mail> {
        let smtp = match self.smtp {
            Some(Ok(smtp)) => smtp.clone(),
            // Reported already.
            Some(Err(())) => return None,
            None => {
                self.mistake("type", "needs [smtp] with url and from");
                return None;
            }
        };
        Mail::new(smtp, self.entry.list("to")).map_err(|says| self.mistake("to", &says)).ok()
    }

    fn kinds(&mut self) -> Vec<Kind> {
        let kinds = self.entry.list("kinds").iter().map(|word| Kind::parse("kinds", word.trim()));
        kinds.collect::<Result<_, _>>().unwrap_or_else(|_| {
            self.mistake("kinds", "must hold reminder, execution or schedule");
            Vec::new()
        })
    }

    fn users(&mut self) -> Vec<UserId> {
        let users = self.entry.list("users").iter().map(|id| id.trim().parse());
        users.collect::<Result<_, _>>().unwrap_or_else(|_| {
            self.mistake("users", "must hold ids of users, which are UUIDs");
            Vec::new()
        })
    }

    /// What it refers to. A channel that is left out need not have its secrets at hand.
    fn resolved(&mut self, key: &str, reference: &str) -> Option<SecretString> {
        if !self.entry.is_enabled() {
            return Some(SecretString::default());
        }
        let found = secrets::resolve(self.reader.variables, &self.entry.path(key), reference);
        found.map_err(|message| self.reader.mistake_at(self.entry.origin_of(key), message)).ok()
    }
}

/// What a channel is, for people: no address that may be a secret.
pub(crate) fn described(channel: &Channel) -> String {
    let mut line = match &channel.way {
        Way::Webhook(webhook) => format!("webhook at {}", webhook.host()),
        Way::Command(program) => {
            let words: Vec<_> = std::iter::once(&program.command).chain(&program.args).map(String::as_str).collect();
            format!("command {}", model::redact::redact(&words.join(" ")))
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
