//! What an MCP server of somebody else is and what its tools may do, as the configuration says it.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

#[derive(Clone, Debug)]
pub struct Settings {
    /// As the configuration calls it; unique.
    pub name: String,
    pub transport: Transport,
    /// Which tools are taken: patterns with `*`. Empty: all.
    pub allow: Vec<String>,
    /// Which tools are left out, whatever is allowed.
    pub deny: Vec<String>,
    /// Which tools the user is always asked about.
    pub ask: Vec<String>,
    /// Which tools the user is never asked about.
    pub never_ask: Vec<String>,
    /// Whether what it says about its tools (read only, destructive) is believed.
    pub trusted: bool,
    /// `None`: found out by trying.
    pub era: Option<Era>,
    /// How long it may take to start and to say what it offers.
    pub start_timeout: Duration,
    /// How long a call may take without a sign of progress.
    pub call_timeout: Duration,
    /// How much of one result is taken.
    pub max_result_bytes: usize,
}

#[derive(Clone, Debug)]
pub enum Transport {
    /// A program that is started and spoken to by stdin and stdout.
    Child { command: String, args: Vec<String>, variables: Vec<(String, SecretString)>, directory: Option<PathBuf> },
    /// Streamable HTTP.
    Http { url: String, headers: Vec<(String, SecretString)> },
}

/// Which form of the protocol a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// Until 2025-11-25: a handshake, then a session.
    Legacy,
    /// Since 2026-07-28: every request stands for itself.
    Modern,
}

impl Settings {
    /// With the defaults of the configuration.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
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

impl Settings {
    /// Whether a server that runs with these may go on with the others.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let Self { name, transport, allow, deny, ask, never_ask, trusted, era, start_timeout, call_timeout, .. } = self;
        *name == other.name
            && transport.is_same(&other.transport)
            && (allow, deny, ask, never_ask) == (&other.allow, &other.deny, &other.ask, &other.never_ask)
            && (trusted, era) == (&other.trusted, &other.era)
            && (start_timeout, call_timeout) == (&other.start_timeout, &other.call_timeout)
            && self.max_result_bytes == other.max_result_bytes
    }

    /// What must not be seen outside.
    pub(super) fn secrets(&self) -> impl Iterator<Item = String> {
        let pairs = match &self.transport {
            Transport::Child { variables, .. } => variables,
            Transport::Http { headers, .. } => headers,
        };
        pairs.iter().flat_map(|(_, value)| {
            let value = value.expose_secret();
            // `Bearer abc` is known as a whole and by its last part.
            let last = value.rsplit(' ').next().filter(|last| last.len() < value.len());
            [Some(value), last].into_iter().flatten().map(str::to_owned)
        })
    }
}

impl Transport {
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
