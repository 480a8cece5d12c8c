//! The configuration of an external MCP server and its tools.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

/// The settings of an external MCP server.
#[derive(Clone, Debug)]
pub struct McpServerSettings {
    /// The unique name in the configuration.
    pub name: String,
    pub transport: McpTransport,
    /// Patterns with `*` for the tools to use. If empty, all tools are used.
    pub allow: Vec<String>,
    /// Patterns for the tools not to use. They have priority over `allow`.
    pub deny: Vec<String>,
    /// Patterns for the tools that always need a confirmation.
    pub ask: Vec<String>,
    /// Patterns for the tools that never need a confirmation.
    pub never_ask: Vec<String>,
    /// True if the hints of the server about its tools (read-only, destructive) are trusted.
    pub trusted: bool,
    /// `None` if it is detected on connect.
    pub era: Option<ProtocolEra>,
    /// The timeout for the start and for the first list of tools.
    pub start_timeout: Duration,
    /// The timeout of a call without progress.
    pub call_timeout: Duration,
    /// Longer results are shortened.
    pub max_result_bytes: usize,
}

/// The connection to an external MCP server.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// A child process, with messages on its standard input and output.
    Child { command: String, args: Vec<String>, variables: Vec<(String, SecretString)>, directory: Option<PathBuf> },
    /// Streamable HTTP.
    Http { url: String, headers: Vec<(String, SecretString)> },
}

/// The generation of the protocol that a server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolEra {
    /// Up to 2025-11-25: a handshake, then a session.
    Legacy,
    /// Since 2026-07-28: independent requests without a session.
    Modern,
}

impl McpServerSettings {
    /// Creates settings with the defaults of the configuration. All tools are used, the hints are not trusted, and the
    /// era is detected. The timeouts are 60 seconds, and results have up to 50,000 bytes.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            allow: Vec::new(),
            deny: Vec::new(),
            ask: Vec::new(),
            never_ask: Vec::new(),
            trusted: false,
            era: None,
            start_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            max_result_bytes: 50_000,
        }
    }
}

impl McpServerSettings {
    /// Returns true if all settings are equal, so that a running server does not need a restart. Also compares secrets.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let Self { name, transport, allow, deny, ask, never_ask, trusted, era, start_timeout, call_timeout, .. } = self;
        *name == other.name
            && transport.is_same(&other.transport)
            && (allow, deny, ask, never_ask) == (&other.allow, &other.deny, &other.ask, &other.never_ask)
            && (trusted, era) == (&other.trusted, &other.era)
            && (start_timeout, call_timeout) == (&other.start_timeout, &other.call_timeout)
            && self.max_result_bytes == other.max_result_bytes
    }

    /// Yields the values of the configured variables or headers, which must be redacted. Of a value with spaces, such
    /// as `Bearer abc`, also yields the last part.
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> {
        let pairs = match &self.transport {
            McpTransport::Child { variables, .. } => variables,
            McpTransport::Http { headers, .. } => headers,
        };
        pairs.iter().flat_map(|(_, value)| {
            let value = value.expose_secret();
            // For `Bearer abc`, both the whole value and its last part are secrets.
            let last = value.rsplit(' ').next().filter(|last| last.len() < value.len());
            [Some(value), last].into_iter().flatten().map(str::to_owned)
        })
    }
}

impl McpTransport {
    /// Returns true if kind, target and all secrets are equal. Arguments, variables and headers must have the same
    /// order.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Child { command, args, variables, directory },
                Self::Child { command: command2, args: args2, variables: variables2, directory: directory2 },
            ) => (command, args, directory) == (command2, args2, directory2) && are_same_pairs(variables, variables2),
            (Self::Http { url, headers }, Self::Http { url: url2, headers: headers2 }) => {
                url == url2 && are_same_pairs(headers, headers2)
            }
            _ => false,
        }
    }
}

fn are_same_pairs(one: &[(String, SecretString)], other: &[(String, SecretString)]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|((name, value), (name2, value2))| name == name2 && value.expose_secret() == value2.expose_secret())
}
