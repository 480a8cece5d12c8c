//! `[[mcp_servers]]`: external MCP servers, each a program or a URL.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tools::mcp_client::{McpServerSettings, McpTransport};

use super::document::{ConfigTable, MCP_SERVERS};
use super::section::{ConfigReader, ConfigSection, section};
use super::values::{EntryName, Number, ProtocolSetting, SecretReference, TextTable, ToolPattern};
use super::{address, secrets};

section! {
    pub(crate) struct McpServer {
        /// Name of the server: letters, digits, - and _.
        name: Option<EntryName> => "notes";
        /// Program to start; it communicates by standard input and output.
        command: Option<String> => "uvx", Command;
        /// Arguments of the program.
        args: Vec<String> = [] => ["notes-server"], Command;
        /// Environment variables of the program; secrets as references.
        env: TextTable = {} => { NOTES_DIR = "/srv/notes", NOTES_TOKEN = "env:NOTES_TOKEN" }, Command;
        /// Working directory of the program.
        working_directory: Option<String> => "/tmp", Command;
        /// URL of the server, instead of a program.
        url: Option<String> => "https://search.example/mcp", Url;
        /// Token, sent as `Authorization: Bearer …`.
        token: Option<SecretReference> => "env:SEARCH_TOKEN", Url;
        /// Headers to send; secrets as references.
        headers: TextTable = {} => { "X-Team" = "blue" }, Url;
        /// Tools to use.
        allow: Vec<ToolPattern> = [] => ["*"];
        /// Tools not to use, even if allowed.
        deny: Vec<ToolPattern> = [] => ["drop_*"];
        /// Tools that always need a confirmation of the user.
        ask: Vec<ToolPattern> = [] => ["send_*"];
        /// Tools that never need a confirmation of the user.
        never_ask: Vec<ToolPattern> = [] => ["read_*"];
        /// Trust the hints of the server that a tool is harmless.
        trust: bool = false;
        /// Protocol: legacy (until 2025-11-25), modern, or auto to detect it.
        protocol: ProtocolSetting = "auto";
        /// Maximum time to start.
        start_timeout_seconds: Number<1, 600> = 60;
        /// Maximum time without a message during a tool call.
        call_timeout_seconds: Number<1, 600> = 60;
        /// Maximum size of a result; the rest is discarded.
        max_result_bytes: Number<1000, 10_000_000> = 50000;
        /// false disables the server.
        enabled: bool = true;
    }
}

/// Returns the enabled servers with a name and a transport. Reports mistakes, also of disabled servers, and repeated
/// names of enabled ones. Names of disabled servers may be used again.
pub(crate) fn read(reader: &ConfigReader<'_>) -> Vec<McpServerSettings> {
    let tables = reader.document.list(&MCP_SERVERS);
    let enabled = || tables.iter().filter(|table| table.is_enabled());
    reader.unique(&MCP_SERVERS, "name", enabled().map(|table| (table, table.name().to_owned())));
    let read = |table| {
        let server = McpServer::load(table, reader)?;
        let settings = McpServerReader { reader, table, server: &server }.settings();
        settings.filter(|_| server.enabled)
    };
    tables.iter().filter_map(read).collect()
}

/// Reads one entry of `[[mcp_servers]]`.
struct McpServerReader<'a> {
    reader: &'a ConfigReader<'a>,
    table: &'a ConfigTable,
    server: &'a McpServer,
}

impl McpServerReader<'_> {
    /// Returns the settings of the server. None if it has no valid name or no transport. Reports mistakes. Also reports
    /// the reserved name "adjutant", ignoring case, and returns the settings nevertheless.
    fn settings(&self) -> Option<McpServerSettings> {
        let server = self.server;
        self.reader.require_name(self.table);
        if self.table.name().eq_ignore_ascii_case("adjutant") {
            self.mistake("name", "is reserved: choose another name");
        }
        let transport = self.transport();
        let EntryName(name) = server.name.clone()?;
        let patterns = |patterns: &[ToolPattern]| patterns.iter().map(|ToolPattern(name)| name.clone()).collect();
        Some(McpServerSettings {
            allow: patterns(&server.allow),
            deny: patterns(&server.deny),
            ask: patterns(&server.ask),
            never_ask: patterns(&server.never_ask),
            trusted: server.trust,
            era: server.protocol.0,
            start_timeout: Duration::from_secs(server.start_timeout_seconds.0),
            call_timeout: Duration::from_secs(server.call_timeout_seconds.0),
            max_result_bytes: server.max_result_bytes.size(),
            ..McpServerSettings::new(name, transport?)
        })
    }

    fn mistake(&self, path: &str, message: &str) {
        self.reader.mistake(self.table, path, message);
    }

    /// Returns the program or the URL. None if neither or both are given, which is reported, or if the given one is no
    /// string. Reports settings of the other kind, mistakes in variables and headers of both kinds, and an invalid URL,
    /// which is returned nevertheless. A trailing slash of the URL is kept.
    fn transport(&self) -> Option<McpTransport> {
        let server = self.server;
        // Settings of both kinds are read, so that all mistakes are reported.
        let variables = self.variables();
        let directory = self.directory();
        let (headers, with_secrets) = self.headers();
        let is_given = |key| self.table.get(key).is_some();
        let needs = match (is_given("command"), is_given("url")) {
            (true, true) => "has command and url: choose one",
            (false, false) => "needs command or url",
            (true, false) => {
                self.reject("Url", "requires url, not command");
                let command = server.command.clone()?;
                return Some(McpTransport::Child { command, args: server.args.clone(), variables, directory });
            }
            (false, true) => {
                self.reject("Command", "requires command, not url");
                let url = server.url.clone()?;
                if let Err(message) = address::check(&url, "https://search.example/mcp", with_secrets) {
                    self.mistake("url", &message);
                }
                // Keeps a trailing slash, which is significant to some servers.
                return Some(McpTransport::Http { url, headers });
            }
        };
        self.reader.report(self.table.origin.clone(), format!("{} {needs}", self.table.title));
        None
    }

    /// Reports each given setting that belongs to entries of the kind `entry_kind`.
    fn reject(&self, entry_kind: &str, message: &str) {
        for key in
            McpServer::KEYS.iter().filter(|key| key.entry_kind == entry_kind && self.table.get(key.name).is_some())
        {
            self.mistake(key.name, message);
        }
    }

    /// Returns the working directory, or none if it is not set. Reports it if the server is enabled and it is not a
    /// directory, and returns it nevertheless.
    fn directory(&self) -> Option<PathBuf> {
        let directory = PathBuf::from(self.server.working_directory.as_ref()?);
        if self.server.enabled && !directory.is_dir() {
            let message = format!("must be a directory; {} is not", directory.display());
            self.mistake("working_directory", &message);
        }
        Some(directory)
    }

    /// Returns the environment variables with references resolved. Reports and leaves out invalid names (empty, or with
    /// `=` or NUL), plain secrets and references that cannot be resolved. For a disabled server, references are not
    /// resolved.
    fn variables(&self) -> Vec<(String, SecretString)> {
        self.each("env", &self.server.env, |name, value| {
            if name.is_empty() || name.contains(['=', '\0']) {
                Err("is not a valid variable name".to_owned())
            } else if secrets::is_inline_secret(secrets::is_secret_variable(name), value) {
                Err(secrets::INLINE_SECRET.to_owned())
            } else {
                self.resolved(value)
            }
        })
    }

    /// Returns the headers, including `Authorization` for the token, and true if a token or a reference is among them.
    /// Reports and leaves out invalid headers. Reports a token beside an `Authorization` header, and returns both. For
    /// a disabled server, the values of headers are empty.
    fn headers(&self) -> (Vec<(String, SecretString)>, bool) {
        let TextTable(given) = &self.server.headers;
        let mut headers = self.each("headers", &self.server.headers, |name, value| match self.server.enabled {
            true => secrets::header(self.reader.variables, name, value),
            false => secrets::check_header(name, value).map(|()| SecretString::default()),
        });
        let is_authorization = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
        if self.server.token.is_some() && given.iter().any(is_authorization) {
            self.mistake("token", "conflicts with headers.Authorization: choose one");
        }
        let with_secrets = self.server.token.is_some() || given.iter().any(|(_, value)| secrets::is_reference(value));
        headers.extend(self.token().map(|token| ("Authorization".to_owned(), token)));
        (headers, with_secrets)
    }

    /// Returns the value of the `Authorization` header. None if no token is set or it cannot be resolved, which is
    /// reported. Reports a token that cannot be sent in a header, and returns it.
    fn token(&self) -> Option<SecretString> {
        let SecretReference(reference) = self.server.token.as_ref()?;
        let token = self.resolved(reference).map_err(|message| self.mistake("token", &message)).ok()?;
        let bearer = SecretString::from(format!("Bearer {}", token.expose_secret()));
        if !secrets::is_header_value(&bearer) {
            self.mistake("token", "is not a valid header value");
        }
        Some(bearer)
    }

    /// Converts each pair of the table `key` with `value_of`. Reports each failure and leaves the pair out.
    fn each(
        &self,
        key: &str,
        pairs: &TextTable,
        value_of: impl Fn(&str, &str) -> Result<SecretString, String>,
    ) -> Vec<(String, SecretString)> {
        let mut values = Vec::new();
        for (name, value) in &pairs.0 {
            match value_of(name, value) {
                Ok(value) => values.push((name.clone(), value)),
                Err(message) => self.mistake(&format!("{key}.{name}"), &message),
            }
        }
        values
    }

    /// Returns the value, or the secret that it refers to. Secrets of disabled servers are not resolved. Fails if a
    /// reference cannot be resolved.
    fn resolved(&self, value: &str) -> Result<SecretString, String> {
        match self.server.enabled && secrets::is_reference(value) {
            true => secrets::resolve(self.reader.variables, value),
            false => Ok(value.into()),
        }
    }
}

/// Describes the server: its redacted command line, or its URL without the query.
pub(crate) fn describe(settings: &McpServerSettings) -> String {
    match &settings.transport {
        McpTransport::Child { command, args, .. } => {
            let words: Vec<_> = std::iter::once(command).chain(args).map(String::as_str).collect();
            redact::redact(&words.join(" ")).into_owned()
        }
        McpTransport::Http { url, .. } => address::without_query(url).to_owned(),
    }
}
