//! What the server can be told. The values come from the configuration; this crate does not know files or variables.

use std::time::Duration;

use ipnet::IpNet;
use jiff::tz::TimeZone;
pub use model::agent::endpoint::Rate;
use model::agent::{ASSISTANT, Endpoint};
use model::task;
use secrecy::SecretString;
use store::housekeeping::Retention;

#[derive(Clone, Debug)]
pub struct Settings {
    /// After this a request is answered with 504.
    pub request_timeout: Duration,
    /// The largest body of an ordinary request.
    pub max_body_bytes: usize,
    /// The largest body of an import.
    pub max_import_bytes: usize,
    /// Refuse requests whose `Host` is not this machine: what a server on loopback does against DNS rebinding.
    pub loopback_only: bool,
    /// Where people reach the server from outside, as scheme, host and port.
    pub public_url: Option<String>,
    /// Web pages of other origins that may call the server.
    pub cors_origins: Vec<String>,
    /// Those whose word on where a request comes from is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// `None`: everyone is the local user.
    pub auth: Option<Auth>,
    pub rate_limit: Option<Rate>,
    /// Where a user is when the token does not say.
    pub time_zone: TimeZone,
    /// What comes first in a date in figures.
    pub numeric_dates: understand::Order,
    pub tasks: task::Limits,
    /// What the tools for agents are called.
    pub tool_names: tools::Names,
    /// What the assistant asks about before it is done.
    pub confirm: tools::Confirm,
    /// How many tools one turn of the assistant may call.
    pub max_tool_calls: usize,
    pub retention: Retention,
    pub a2a: A2a,
}

/// What is said about the Agent2Agent protocol as a whole.
#[derive(Clone, Debug)]
pub struct A2a {
    /// Which agent answers where none is named.
    pub default_agent: String,
    /// How the assistant is offered; every other agent says it itself.
    pub assistant: Endpoint,
    /// Whether tasks may be told of at private addresses.
    pub allow_private_webhooks: bool,
}

impl Default for A2a {
    fn default() -> Self {
        Self { default_agent: ASSISTANT.to_owned(), assistant: Endpoint::default(), allow_private_webhooks: false }
    }
}

/// How tokens are recognised.
#[derive(Clone, Debug)]
pub struct Auth {
    /// For HS256.
    pub secret: Option<SecretString>,
    /// Where the public keys for RS256, ES256 and EdDSA are published.
    pub jwks_url: Option<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            max_body_bytes: 1024 * 1024,
            max_import_bytes: 64 * 1024 * 1024,
            loopback_only: true,
            public_url: None,
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            auth: None,
            rate_limit: None,
            time_zone: TimeZone::UTC,
            numeric_dates: understand::Order::default(),
            tasks: task::Limits::default(),
            tool_names: tools::Names::default(),
            confirm: tools::Confirm::default(),
            max_tool_calls: 10,
            retention: Retention::default(),
            a2a: A2a::default(),
        }
    }
}
