//! `[[mcp_servers]]`: MCP servers of others, as the file has them. Only the file: a variable cannot name one of several.

mod entry;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tools::foreign::{Era, Settings, Transport};

pub(crate) use entry::{KEYS, Key, Of, SECTION};

use super::layers::Origin;
use super::read::Reader;
use super::tables::Entry;
use super::{address, secrets};

/// The servers that are used.
pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<Settings> {
    let layers = reader.layers;
    let mut servers = Vec::new();
    let mut names: BTreeMap<&str, &Origin> = BTreeMap::new();
    for entry in &layers.mcp_servers {
        let settings = Server { entry, reader: &mut *reader }.read();
        if !entry.is_enabled() {
            continue;
        }
        match names.get(entry.name()) {
            Some(other) if !entry.name().is_empty() => {
                let message = format!("{}.name is taken by the server at {other}", entry.title);
                reader.mistake_at(entry.origin_of("name"), message);
            }
            _ => drop(names.insert(entry.name(), &entry.origin)),
        }
        servers.extend(settings);
    }
    servers
}

/// A server that is being read.
struct Server<'a, 'b, 'c> {
    entry: &'a Entry,
    reader: &'b mut Reader<'c>,
}

impl Server<'_, '_, '_> {
    fn read(mut self) -> Option<Settings> {
        self.check_name();
        let transport = self.transport();
        Some(Settings {
            allow: self.patterns("allow"),
            deny: self.patterns("deny"),
            ask: self.patterns("ask"),
            never_ask: self.patterns("never_ask"),
            trusted: self.entry.flag("trust", false),
            era: self.era(),
            start_timeout: Duration::from_secs(self.number("start_timeout_seconds")),
            call_timeout: Duration::from_secs(self.number("call_timeout_seconds")),
            max_result_bytes: usize::try_from(self.number("max_result_bytes")).unwrap_or(usize::MAX),
            ..Settings::new(self.entry.name(), transport?)
        })
    }

    fn path(&self, key: &str) -> String {
        self.entry.path(key)
    }

    fn mistake(&mut self, key: &str, says: &str) {
        let message = format!("{} {says}", self.path(key));
        self.reader.mistake_at(self.entry.origin_of(key), message);
    }

    fn check_name(&mut self) {
        if let Some(message) = self.entry.fault_of_name() {
            self.reader.mistake_at(self.entry.origin_of("name"), message);
        } else if self.entry.name().eq_ignore_ascii_case("adjutant") {
            self.mistake("name", "is our own: choose another");
        }
    }

    fn transport(&mut self) -> Option<Transport> {
        let given = |key| self.entry.text(key).filter(|text| !text.is_empty()).map(str::to_owned);
        match (given("command"), given("url")) {
            (Some(command), None) => {
                self.refuse(Of::Url, "goes with url, not with command");
                let (args, directory) = (self.entry.list("args").to_vec(), self.directory());
                Some(Transport::Child { command, args, variables: self.variables(), directory })
            }
            (None, Some(url)) => {
                self.refuse(Of::Command, "goes with command, not with url");
                let (headers, with_secrets) = self.headers();
                match address::check(&self.path("url"), &url, "https://search.example/mcp", with_secrets) {
                    // With a slash at the end where it has one: to some servers that is another address.
                    Ok(_) => Some(Transport::Http { url, headers }),
                    Err(message) => {
                        self.reader.mistake_at(self.entry.origin_of("url"), message);
                        None
                    }
                }
            }
            // Reported already.
            _ if self.entry.is_wrong("command") || self.entry.is_wrong("url") => None,
            (both, _) => {
                let message = match both {
                    Some(_) => format!("{} has command and url: choose one", self.entry.title),
                    None => format!("{} needs command or url", self.entry.title),
                };
                self.reader.mistake_at(self.entry.origin.clone(), message);
                None
            }
        }
    }

    fn refuse(&mut self, of: Of, says: &str) {
        for key in KEYS.iter().filter(|key| key.of == of && self.entry.values.contains_key(key.name)) {
            self.mistake(key.name, says);
        }
    }

    fn directory(&mut self) -> Option<PathBuf> {
        let directory = PathBuf::from(self.entry.text("working_directory").filter(|text| !text.is_empty())?);
        if self.entry.is_enabled() && !directory.is_dir() {
            let says = format!("must be a directory, and {} is none", directory.display());
            self.mistake("working_directory", &says);
        }
        Some(directory)
    }

    fn variables(&mut self) -> Vec<(String, SecretString)> {
        let mut variables = Vec::new();
        for (name, value, origin) in self.entry.table("env") {
            let setting = self.path(&format!("env.{name}"));
            let found = if name.is_empty() || name.contains(['=', '\0']) {
                Err(format!("{setting} is not the name of a variable"))
            } else if secrets::is_inline_secret(secrets::variable_sounds_secret(name), value) {
                Err(secrets::inline(&setting))
            } else {
                self.resolved(&setting, value)
            };
            match found {
                Ok(value) => variables.push((name.clone(), value)),
                Err(message) => self.reader.mistake_at(origin.clone(), message),
            }
        }
        variables
    }

    /// The headers, and whether any of them is a secret.
    fn headers(&mut self) -> (Vec<(String, SecretString)>, bool) {
        let mut headers = Vec::new();
        for (name, value, origin) in self.entry.table("headers") {
            let setting = self.path(&format!("headers.{name}"));
            let found = match self.entry.is_enabled() {
                true => secrets::header(self.reader.variables, &setting, name, value),
                false => secrets::check_header(&setting, name, value).map(|()| SecretString::default()),
            };
            match found {
                Ok(value) => headers.push((name.clone(), value)),
                Err(message) => self.reader.mistake_at(origin.clone(), message),
            }
        }
        let with_secrets = self.entry.table("headers").iter().any(|(_, value, _)| secrets::is_reference(value));
        let token = self.token();
        if token.is_some() && headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            self.mistake("token", "and headers.Authorization are the same: choose one");
        }
        let with_secrets = with_secrets || token.is_some();
        headers.extend(token.map(|token| ("Authorization".to_owned(), token)));
        (headers, with_secrets)
    }

    fn token(&mut self) -> Option<SecretString> {
        let reference = self.entry.text("token").filter(|text| !text.is_empty())?;
        let setting = self.path("token");
        let token = match secrets::is_reference(reference) {
            true => self.resolved(&setting, reference),
            false => Err(secrets::inline(&setting)),
        };
        let bearer = token.and_then(|token| {
            let bearer = SecretString::from(format!("Bearer {}", token.expose_secret()));
            let fits = secrets::is_header_value(&bearer);
            if fits { Ok(bearer) } else { Err(format!("{setting} cannot be sent in a header")) }
        });
        bearer.map_err(|message| self.reader.mistake_at(self.entry.origin_of("token"), message)).ok()
    }

    /// The value, or what it refers to. A server that is left out need not have its secrets at hand.
    fn resolved(&self, setting: &str, value: &str) -> Result<SecretString, String> {
        match self.entry.is_enabled() && secrets::is_reference(value) {
            true => secrets::resolve(self.reader.variables, setting, value),
            false => Ok(value.into()),
        }
    }

    fn patterns(&mut self, key: &str) -> Vec<String> {
        let patterns: Vec<_> = self.entry.list(key).iter().map(|pattern| pattern.trim().to_owned()).collect();
        if patterns.iter().any(|pattern| pattern.is_empty() || pattern.contains(char::is_whitespace)) {
            self.mistake(key, "must hold names of tools, with * for any letters, one in each text");
        }
        patterns
    }

    fn era(&mut self) -> Option<Era> {
        match self.entry.text("protocol") {
            None | Some("" | "auto") => None,
            Some("legacy") => Some(Era::Legacy),
            Some("modern") => Some(Era::Modern),
            Some(other) => {
                self.mistake("protocol", &format!("must be one of auto, legacy, modern, not '{other}'"));
                None
            }
        }
    }

    fn number(&mut self, key: &str) -> u64 {
        self.entry.number(KEYS, key).unwrap_or_else(|says| {
            self.mistake(key, &says);
            0
        })
    }
}

/// What the server is, for people.
pub(crate) fn described(settings: &Settings) -> String {
    match &settings.transport {
        Transport::Child { command, args, .. } => {
            let words: Vec<_> = std::iter::once(command).chain(args).map(String::as_str).collect();
            model::redact::redact(&words.join(" ")).into_owned()
        }
        Transport::Http { url, .. } => address::shown(url).to_owned(),
    }
}
