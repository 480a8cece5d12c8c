//! What an MCP server of somebody else is and what its tools may do, as the configuration says it.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
