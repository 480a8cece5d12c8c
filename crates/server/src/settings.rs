//! The settings of the server. The binary fills them in; this crate reads no files and no environment variables.

use std::time::Duration;

use ipnet::IpNet;
use jiff::civil::Time;
use jiff::tz::TimeZone;
pub use model::agent::endpoint::EndpointRateLimit;
use model::agent::{ASSISTANT_ID, Endpoint};
use model::quota::Quotas;
use model::task::TaskLimits;
use secrecy::SecretString;
use store::housekeeping::Retention;

/// All settings of the server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The time limit of a request. After it the response is 504.
    pub request_timeout: Duration,
    /// The time in which a client must read some of a long response.
    pub stall_timeout: Duration,
    /// The largest body of a request, except imports and restores.
    pub max_body_bytes: usize,
    /// The largest body of an import.
    pub max_import_bytes: usize,
    /// Rejects requests if their `Host` is not this host. It protects a server on loopback from DNS rebinding.
    pub loopback_only: bool,
    /// The public address of the server, as scheme, host and port.
    pub public_url: Option<String>,
    /// Web pages of other origins that may call the server.
    pub cors_origins: Vec<String>,
    /// The proxies that may set `X-Forwarded-For`.
    pub trusted_proxies: Vec<IpNet>,
    /// `None`: every caller is the local user.
    pub auth: Option<AuthSettings>,
    /// A caller without a token is the local user, also if `auth` is configured. For a process that serves only
    /// commands of its own user, who can read the data directory anyway.
    pub is_token_optional: bool,
    /// The key for the secrets in the database, which all nodes share. `None`: see [`crate::seal`].
    pub sealing_key: Option<SecretString>,
    pub rate_limit: Option<EndpointRateLimit>,
    /// The time zone of users with no zone in their token.
    pub time_zone: TimeZone,
    /// The order of day and month in numeric dates.
    pub numeric_dates: understand::DateOrder,
    /// The time of day of reminders for a day.
    pub default_reminder_time: Time,
    pub tasks: TaskLimits,
    /// The naming scheme of the built-in tools.
    pub tool_names: tools::ToolNames,
    /// The operations that need a confirmation of the user.
    pub confirm: tools::ConfirmationPolicy,
    /// Agents, schedules and reminders run in this process or on another node. False for a command that holds the data
    /// directory without a server.
    pub has_worker: bool,
    /// The most tool calls in one turn of the assistant.
    pub max_tool_calls: usize,
    /// The length after which an answer ends with its sentence, in characters.
    pub max_answer_chars: usize,
    pub retention: Retention,
    /// The limits of each user. The shares apply only with authentication, because there is one user without it.
    pub quotas: Quotas,
    pub a2a: A2aSettings,
}

/// The settings of A2A that are not part of a single agent.
#[derive(Clone, Debug)]
pub struct A2aSettings {
    /// The agent that answers requests that name none.
    pub default_agent: String,
    /// The endpoint of the assistant. All other agents have it in their own configuration.
    pub assistant: Endpoint,
    /// Allows push notifications to private addresses.
    pub allow_private_webhooks: bool,
}

impl Default for A2aSettings {
    fn default() -> Self {
        Self { default_agent: ASSISTANT_ID.to_owned(), assistant: Endpoint::default(), allow_private_webhooks: false }
    }
}

/// The keys and claims that a valid token must have.
#[derive(Clone, Debug, Default)]
pub struct AuthSettings {
    /// The shared secret for HS256. New tokens are signed with it.
    pub secret: Option<SecretString>,
    /// The shared secret before a rotation. Tokens that are signed with it are still valid.
    pub previous_secret: Option<SecretString>,
    /// The URL of the public keys (JWKS) for RS256, ES256 and EdDSA.
    pub jwks_url: Option<String>,
    pub issuer: Option<String>,
    pub audience: Option<String>,
}

impl ServerSettings {
    /// Returns the quotas that apply to transactions. Without authentication there are no shares.
    pub(crate) fn effective_quotas(&self) -> Quotas {
        Quotas { queue_share: self.quotas.queue_share.filter(|_| self.auth.is_some()), ..self.quotas }
    }
}

impl Default for ServerSettings {
    /// Returns the settings of a local server: only loopback hosts, no authentication, no rate limit, and UTC. A
    /// request may take 30 seconds and have 1 MiB, an import 64 MiB. A turn may have ten tool calls.
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            max_body_bytes: 1024 * 1024,
            max_import_bytes: 64 * 1024 * 1024,
            loopback_only: true,
            public_url: None,
            cors_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            auth: None,
            is_token_optional: false,
            sealing_key: None,
            rate_limit: None,
            time_zone: TimeZone::UTC,
            numeric_dates: understand::DateOrder::default(),
            default_reminder_time: model::reminder::DEFAULT_TIME,
            tasks: TaskLimits::default(),
            tool_names: tools::ToolNames::default(),
            confirm: tools::ConfirmationPolicy::default(),
            has_worker: true,
            max_tool_calls: 10,
            max_answer_chars: 500,
            retention: Retention::default(),
            quotas: Quotas::default(),
            a2a: A2aSettings::default(),
        }
    }
}
