//! `[[mcp_servers]]`: MCP servers of others, each a program or an address.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tools::foreign::{Settings, Transport};

use super::document::{MCP_SERVERS, Table};
use super::form::{Name, Number, Pairs, Protocol, Reference, ToolPattern};
use super::section::{Reading, Section, section};
use super::{address, secrets};

section! {
    pub(crate) struct McpServer {
        /// Its name here: letters, digits, - and _.
        name: Option<Name> => "notes";
        /// The program that is started and spoken to.
        command: Option<String> => "uvx", Command;
        /// What the program is started with.
        args: Vec<String> = [] => ["notes-server"], Command;
        /// Variables of the program; secrets as references.
        env: Pairs = {} => { NOTES_DIR = "/srv/notes", NOTES_TOKEN = "env:NOTES_TOKEN" }, Command;
        /// Where the program works.
        working_directory: Option<String> => "/tmp", Command;
        /// Instead of a program: where the server is.
        url: Option<String> => "https://search.example/mcp", Url;
        /// Sent as `Authorization: Bearer …`.
        token: Option<Reference> => "env:SEARCH_TOKEN", Url;
        /// Sent along; secrets as references.
        headers: Pairs = {} => { "X-Team" = "blue" }, Url;
        /// Which of its tools are taken.
        allow: Vec<ToolPattern> = [] => ["*"];
        /// Which of them are left out, even if allowed.
        deny: Vec<ToolPattern> = [] => ["drop_*"];
        /// Which tools the user is always asked about.
        ask: Vec<ToolPattern> = [] => ["send_*"];
        /// Which tools the user is never asked about.
        never_ask: Vec<ToolPattern> = [] => ["read_*"];
        /// Whether to believe what it says about its tools being harmless.
        trust: bool = false;
        /// legacy (until 2025-11-25), modern, or auto: found by trying.
        protocol: Protocol = "auto";
        /// How long it may take to start.
        start_timeout_seconds: Number<1, 600> = 60;
        /// How long a tool may be silent.
        call_timeout_seconds: Number<1, 600> = 60;
        /// How much of a result is taken.
        max_result_bytes: Number<1000, 10_000_000> = 50000;
        /// false leaves the server out.
        enabled: bool = true;
    }
}

/// Returns the servers that are used. The names of others are free.
pub(crate) fn read(reading: &Reading<'_>) -> Vec<Settings> {
    let tables = reading.document.list(&MCP_SERVERS);
    let enabled = || tables.iter().filter(|table| table.is_enabled());
    reading.unique(&MCP_SERVERS, "name", enabled().map(|table| (table, table.name().to_owned())));
    let read = |table| {
        let server = McpServer::load(table, reading)?;
        let settings = Entry { reading, table, server: &server }.settings();
        settings.filter(|_| server.enabled)
    };
    tables.iter().filter_map(read).collect()
}

struct Entry<'a> {
    reading: &'a Reading<'a>,
    table: &'a Table,
    server: &'a McpServer,
}

impl Entry<'_> {
    fn settings(&self) -> Option<Settings> {
        let server = self.server;
        self.reading.require_name(self.table);
        if self.table.name().eq_ignore_ascii_case("adjutant") {
            self.mistake("name", "is our own: choose another");
        }
        let transport = self.transport();
        let Name(name) = server.name.clone()?;
        let patterns = |patterns: &[ToolPattern]| patterns.iter().map(|ToolPattern(name)| name.clone()).collect();
        Some(Settings {
            allow: patterns(&server.allow),
            deny: patterns(&server.deny),
            ask: patterns(&server.ask),
            never_ask: patterns(&server.never_ask),
            trusted: server.trust,
            era: server.protocol.0,
            start_timeout: Duration::from_secs(server.start_timeout_seconds.0),
            call_timeout: Duration::from_secs(server.call_timeout_seconds.0),
            max_result_bytes: server.max_result_bytes.size(),
            ..Settings::new(name, transport?)
        })
    }

    fn mistake(&self, path: &str, says: &str) {
        self.reading.mistake(self.table, path, says);
    }

    fn transport(&self) -> Option<Transport> {
        let server = self.server;
        // Both are read whatever is chosen: a mistake in the other is one too.
        let variables = self.variables();
        let directory = self.directory();
        let (headers, with_secrets) = self.headers();
        let is_given = |key| self.table.get(key).is_some();
        let needs = match (is_given("command"), is_given("url")) {
            (true, true) => "has command and url: choose one",
            (false, false) => "needs command or url",
            (true, false) => {
                self.refuse("Url", "goes with url, not with command");
                let command = server.command.clone()?;
                return Some(Transport::Child { command, args: server.args.clone(), variables, directory });
            }
            (false, true) => {
                self.refuse("Command", "goes with command, not with url");
                let url = server.url.clone()?;
                if let Err(says) = address::check(&url, "https://search.example/mcp", with_secrets) {
                    self.mistake("url", &says);
                }
                // With a slash at the end where it has one: to some servers that is another address.
                return Some(Transport::Http { url, headers });
            }
        };
        self.reading.complain(self.table.origin.clone(), format!("{} {needs}", self.table.title));
        None
    }

    fn refuse(&self, of: &str, says: &str) {
        for key in McpServer::KEYS.iter().filter(|key| key.of == of && self.table.get(key.name).is_some()) {
            self.mistake(key.name, says);
        }
    }

    fn directory(&self) -> Option<PathBuf> {
        let directory = PathBuf::from(self.server.working_directory.as_ref()?);
        if self.server.enabled && !directory.is_dir() {
            let says = format!("must be a directory, and {} is none", directory.display());
            self.mistake("working_directory", &says);
        }
        Some(directory)
    }

    fn variables(&self) -> Vec<(String, SecretString)> {
        self.each("env", &self.server.env, |name, value| {
            if name.is_empty() || name.contains(['=', '\0']) {
                Err("is not the name of a variable".to_owned())
            } else if secrets::is_inline_secret(secrets::variable_sounds_secret(name), value) {
                Err(secrets::INLINE.to_owned())
            } else {
                self.resolved(value)
            }
        })
    }

    /// Returns the headers, and whether any of them is a secret.
    fn headers(&self) -> (Vec<(String, SecretString)>, bool) {
        let Pairs(written) = &self.server.headers;
        let mut headers = self.each("headers", &self.server.headers, |name, value| match self.server.enabled {
            true => secrets::header(self.reading.variables, name, value),
            false => secrets::check_header(name, value).map(|()| SecretString::default()),
        });
        let is_authorization = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if self.server.token.is_some() && written.iter().any(is_authorization) {
            self.mistake("token", "and headers.Authorization are the same: choose one");
        }
        let with_secrets = self.server.token.is_some() || written.iter().any(|(_, value)| secrets::is_reference(value));
        headers.extend(self.token().map(|token| ("Authorization".to_owned(), token)));
        (headers, with_secrets)
    }

    fn token(&self) -> Option<SecretString> {
        let Reference(reference) = self.server.token.as_ref()?;
        let token = self.resolved(reference).map_err(|says| self.mistake("token", &says)).ok()?;
        let bearer = SecretString::from(format!("Bearer {}", token.expose_secret()));
        if !secrets::is_header_value(&bearer) {
            self.mistake("token", "cannot be sent in a header");
        }
        Some(bearer)
    }

    /// Returns what `value_of` makes of each pair. Each failure is a mistake of its own.
    fn each(
        &self,
        key: &str,
        pairs: &Pairs,
        value_of: impl Fn(&str, &str) -> Result<SecretString, String>,
    ) -> Vec<(String, SecretString)> {
        let mut values = Vec::new();
        for (name, value) in &pairs.0 {
            match value_of(name, value) {
                Ok(value) => values.push((name.clone(), value)),
                Err(says) => self.mistake(&format!("{key}.{name}"), &says),
            }
        }
        values
    }

    /// Returns the value, or the secret that it refers to. A server that is left out needs no secrets.
    fn resolved(&self, value: &str) -> Result<SecretString, String> {
        match self.server.enabled && secrets::is_reference(value) {
            true => secrets::resolve(self.reading.variables, value),
            false => Ok(value.into()),
        }
    }
}

/// Describes the server for people.
pub(crate) fn described(settings: &Settings) -> String {
    match &settings.transport {
        Transport::Child { command, args, .. } => {
            let words: Vec<_> = std::iter::once(command).chain(args).map(String::as_str).collect();
            redact::redact(&words.join(" ")).into_owned()
        }
        Transport::Http { url, .. } => address::shown(url).to_owned(),
    }
}
