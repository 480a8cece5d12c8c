//! Authenticates callers of agents (A2A-2): by a token or key of the agent, by a token of a user, or not at all if the
//! operator allows that.
//!
//! Rejections do not contain a reason. Credentials are compared by digest, so that the timing reveals nothing.
//! Addresses
//! with repeated failures are blocked for some time: their invalid credentials are answered with 429.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::a2a::{Binding, CallContext, CallRejection, Error, ErrorKind};
use axum::http::{Extensions, HeaderMap};
use jiff::tz::TimeZone;
use model::agent::endpoint::{A2aTransport, EndpointAuth, EndpointAuthType};
use model::agent::{ASSISTANT_ID, Agent, Endpoint};
use model::{User, UserId};
use sha2::{Digest, Sha256};
use supervisor::AgentEntry;
use uuid::Uuid;

use super::caller::A2aCaller;
use crate::app::ActiveConfig;
use crate::{App, auth, peer, request};

/// An agent that is enabled for A2A, with the active configuration.
pub(crate) struct OfferedAgent {
    pub(crate) entry: AgentEntry,
    pub(crate) config: Arc<ActiveConfig>,
}

impl OfferedAgent {
    /// Returns the agent with this id, or the configured default agent if `agent` is `None`. Returns `None` if the
    /// agent does not exist, is disabled, or is not enabled for A2A. Does not check that the caller may use it.
    pub(crate) fn find(app: &App, agent: Option<&str>) -> Option<Self> {
        let config = app.active_config();
        let entry = app.supervisor().agent(agent.unwrap_or(&config.settings.a2a.default_agent))?;
        Self { entry, config }.if_enabled()
    }

    /// Returns all agents that are enabled for A2A.
    pub(crate) fn all(app: &App) -> Vec<Self> {
        let config = app.active_config();
        let all = app.supervisor().agents().into_iter();
        all.filter_map(|entry| Self { entry, config: config.clone() }.if_enabled()).collect()
    }

    /// Returns the agent if both the agent and its endpoint are enabled.
    fn if_enabled(self) -> Option<Self> {
        (self.entry.agent.enabled && self.endpoint().enabled).then_some(self)
    }

    /// Returns the endpoint settings of the agent.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        endpoint(&self.config, &self.entry.agent)
    }

    /// Returns whether only some users of the server may use the agent. To all other callers it does not exist.
    pub(crate) fn is_restricted(&self) -> bool {
        let agent = &self.entry.agent;
        let is_for_all = agent.id == ASSISTANT_ID || agent.allow.iter().any(|allowed| allowed == "*");
        self.caller_auth() == CallerAuth::Jwt { required: true } && !is_for_all
    }

    /// Returns how callers of the agent authenticate.
    pub(crate) fn caller_auth(&self) -> CallerAuth<'_> {
        CallerAuth::from_settings(self.endpoint().auth.as_ref(), self.config.requires_token())
    }
}

/// Returns the endpoint settings of an agent. Those of the assistant are in the server configuration.
pub(crate) fn endpoint<'a>(config: &'a ActiveConfig, agent: &'a Agent) -> &'a Endpoint {
    if agent.id == ASSISTANT_ID { &config.settings.a2a.assistant } else { &agent.a2a }
}

/// The authentication method for callers of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CallerAuth<'a> {
    /// No authentication: every caller is the local user.
    Local,
    /// A token of a user.
    Jwt { required: bool },
    /// A token or key of the agent.
    AgentCredential(&'a EndpointAuth),
    /// No authentication: all callers share one anonymous user.
    Anonymous,
}

impl<'a> CallerAuth<'a> {
    /// Returns the method of the endpoint settings, with their value of `required`. The type `none` means
    /// [`Self::Anonymous`] if the server has a verifier of user tokens, otherwise [`Self::Local`]. Without settings a
    /// token of a user is required if the server has a verifier, otherwise every caller is the local user.
    fn from_settings(auth: Option<&'a EndpointAuth>, has_verifier: bool) -> Self {
        match auth {
            None if has_verifier => Self::Jwt { required: true },
            None => Self::Local,
            Some(auth) => match auth.kind {
                EndpointAuthType::Jwt => Self::Jwt { required: auth.required },
                EndpointAuthType::BearerToken | EndpointAuthType::ApiKey => Self::AgentCredential(auth),
                EndpointAuthType::None if has_verifier => Self::Anonymous,
                EndpointAuthType::None => Self::Local,
            },
        }
    }

    /// Returns true if a call without credentials is rejected. Always false for `Local` and `Anonymous`.
    pub(crate) fn is_required(self) -> bool {
        match self {
            Self::Local | Self::Anonymous => false,
            Self::Jwt { required } => required,
            Self::AgentCredential(auth) => auth.required,
        }
    }

    /// Returns the value of `WWW-Authenticate`: `ApiKey` with the header name for an API key, otherwise `Bearer`.
    fn challenge(self) -> String {
        match self {
            Self::AgentCredential(auth) if auth.kind == EndpointAuthType::ApiKey => {
                format!("ApiKey name=\"{}\"", auth.header().unwrap_or_default())
            }
            _ => "Bearer".to_owned(),
        }
    }
}

/// Authenticates a call and returns its caller. Fails like [`authenticate`], or with `NotOffered` if the agent does not
/// offer the binding of the call.
pub(crate) async fn authorize(app: &App, call: &CallContext) -> Result<A2aCaller, CallRejection> {
    let caller = authenticate(app, call).await?;
    let config = app.active_config();
    if !endpoint(&config, &caller.entry.agent).offers(transport(call.binding)) {
        let message = format!("this agent is not available over {}", call.binding.as_str());
        return Err(CallRejection::NotOffered(Error::new(ErrorKind::UnsupportedOperation, message)));
    }
    Ok(caller)
}

/// Returns the agent whose card a call requests. Fails if the agent is unknown or disabled, or if it is restricted and
/// the caller is not one of its users. Invalid credentials are counted for the block of the address.
pub(crate) async fn find_for_card(app: &App, call: &CallContext) -> Result<OfferedAgent, CallRejection> {
    let offered = OfferedAgent::find(app, call.agent.as_deref()).ok_or(CallRejection::UnknownAgent)?;
    if offered.is_restricted() {
        let from = client_address(&offered.config, &call.extensions, &call.headers);
        identify(app, &offered, from, &call.headers).await.map_err(|rejection| match rejection {
            CallRejection::Unauthenticated { .. } => CallRejection::UnknownAgent,
            other => other,
        })?;
    }
    Ok(offered)
}

/// Authenticates a call of any binding and returns its caller. A call without an agent is for the default agent.
///
/// Fails with `UnknownAgent` if the agent does not exist, is disabled or is not enabled for A2A, or the tenant is the
/// id of another known agent. Any other tenant is ignored. Fails with `RateLimited` if the rate limit is exceeded. Also
/// fails like [`identify`].
///
/// Records the user in the request log. Counts the authenticated call against the rate limit of the agent, or else of
/// the server. Anonymous callers are counted per network.
pub(crate) async fn authenticate(app: &App, call: &CallContext) -> Result<A2aCaller, CallRejection> {
    let offered = OfferedAgent::find(app, call.agent.as_deref()).ok_or(CallRejection::UnknownAgent)?;
    if call.tenant.as_deref().is_some_and(|tenant| names_other_agent(app, &offered.entry, tenant)) {
        return Err(CallRejection::UnknownAgent);
    }
    let from = client_address(&offered.config, &call.extensions, &call.headers);
    let (user, is_anonymous) = identify(app, &offered, from, &call.headers).await?;
    let OfferedAgent { entry, config } = &offered;
    request::record_user(&user);
    if let Some(rate) = offered.endpoint().rate.or(config.settings.rate_limit) {
        let key = (user.id, is_anonymous.then(|| peer::client_network(from)));
        let allowed = app.a2a().limits.check(&entry.agent.id, rate, key);
        allowed.map_err(|retry_after| CallRejection::RateLimited { retry_after })?;
    }
    Ok(A2aCaller { user, entry: offered.entry, version: call.version, binding: call.binding, is_anonymous })
}

/// Returns true if the tenant is the id of a known agent other than `entry`. Returns false for any other tenant.
pub(crate) fn names_other_agent(app: &App, entry: &AgentEntry, tenant: &str) -> bool {
    tenant != entry.agent.id && app.supervisor().agent(tenant).is_some()
}

/// Returns the address of the client. Forwarding headers count only from trusted proxies.
pub(crate) fn client_address(config: &ActiveConfig, extensions: &Extensions, headers: &HeaderMap) -> IpAddr {
    peer::client_address(extensions, headers, &config.settings.trusted_proxies)
}

/// Returns the user of a call, and whether it is the anonymous user. [`CallerAuth::Local`] yields the local user and
/// [`CallerAuth::Anonymous`] the anonymous one; credentials are then ignored. Otherwise a valid credential of the agent
/// identifies the user in the endpoint settings. Missing credentials that are not required yield the anonymous user.
///
/// Fails with `Unauthenticated` if credentials are invalid, even if they are not required, or are required but missing.
/// Invalid ones are logged and counted for the block of the address. While the address is blocked, they fail with
/// `RateLimited` instead. Valid credentials are never blocked, because other clients may share the address. Fails with
/// `UnknownAgent` if the user of a JWT may not use the agent. A JWT is invalid if the server has no verifier, and a
/// credential if the settings name no user.
async fn identify(
    app: &App,
    offered: &OfferedAgent,
    from: IpAddr,
    headers: &HeaderMap,
) -> Result<(User, bool), CallRejection> {
    let caller_auth = offered.caller_auth();
    let zone = &offered.config.settings.time_zone;
    let agent = &offered.entry.agent;
    let (presented, user) = match caller_auth {
        CallerAuth::Local => return Ok((User::local(zone.clone()), false)),
        CallerAuth::Anonymous => return Ok((anonymous_user(&agent.id, zone), true)),
        CallerAuth::Jwt { .. } => {
            let token = presented_jwt(headers);
            // Without a verifier every token is invalid.
            let can_verify = token.is_some() && offered.config.verifier.is_some();
            (token.is_some(), if can_verify { auth::identify(app, token).await } else { None })
        }
        CallerAuth::AgentCredential(auth) => {
            let key = presented_credential(auth, headers);
            let is_valid = match key {
                Some(key) => is_agent_credential(app, auth, key).await,
                None => false,
            };
            let user = auth.user.filter(|_| is_valid);
            (key.is_some(), user.map(|id| User { id, scopes: Vec::new(), time_zone: zone.clone() }))
        }
    };
    match user {
        // An agent that the user may not use looks like an unknown one.
        Some(user) if matches!(caller_auth, CallerAuth::Jwt { .. }) && !offered.entry.is_allowed_for(&user) => {
            Err(CallRejection::UnknownAgent)
        }
        Some(user) => Ok((user, false)),
        None if !presented && !caller_auth.is_required() => Ok((anonymous_user(&agent.id, zone), true)),
        None if presented => match record_failure(app, from, Some(&agent.id)) {
            Some(retry_after) => Err(CallRejection::RateLimited { retry_after }),
            None => Err(CallRejection::Unauthenticated { challenge: caller_auth.challenge() }),
        },
        None => Err(CallRejection::Unauthenticated { challenge: caller_auth.challenge() }),
    }
}

/// Logs that an address presented invalid credentials, and counts the failure. Repeated failures block the address.
/// Returns the remaining time of a block that existed before, and then counts and logs nothing.
pub(crate) fn record_failure(app: &App, from: IpAddr, agent_id: Option<&str>) -> Option<Duration> {
    let now = app.clock().now();
    let blocked = app.a2a().blocklist.remaining_block(from, now);
    if blocked.is_none() {
        tracing::info!(event = "a2a_authentication_failed", agent_id, address = %from);
        if app.a2a().blocklist.record_failure(from, now) {
            tracing::warn!(event = "a2a_address_blocked", address = %from);
        }
    }
    blocked
}

/// Returns the bearer token of a request, or `None` without an `Authorization` header. Returns an empty text if the
/// header has another scheme.
pub(crate) fn presented_jwt(headers: &HeaderMap) -> Option<&str> {
    headers.contains_key(axum::http::header::AUTHORIZATION).then(|| auth::bearer_token(headers).unwrap_or_default())
}

/// Returns the token or key that a caller presents, or `None` without the header of the endpoint. An API key is the
/// whole value of the header, trimmed. A token in `Authorization` must have the scheme `Bearer`, otherwise the result
/// is empty. In a custom header the scheme is optional. A value that is not visible ASCII is empty.
pub(crate) fn presented_credential<'h>(auth: &EndpointAuth, headers: &'h HeaderMap) -> Option<&'h str> {
    let name = auth.header()?;
    let value = headers.get(name)?.to_str().unwrap_or_default().trim();
    if auth.kind == EndpointAuthType::ApiKey {
        return Some(value);
    }
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        _ if name.eq_ignore_ascii_case("authorization") => Some(""),
        _ => Some(value),
    }
}

/// Returns true if this is the token or key of the agent. Returns false if it is empty, or if the configured token is
/// missing or cannot be read. A changed token takes effect after at most five seconds.
pub(crate) async fn is_agent_credential(app: &App, auth: &EndpointAuth, presented: &str) -> bool {
    let Some(reference) = &auth.token else { return false };
    let Some(digest) = app.a2a().tokens.digest(app, reference).await else { return false };
    !presented.is_empty() && digest == *Sha256::digest(presented)
}

/// Returns the anonymous user of an agent. Each agent has its own.
pub(crate) fn anonymous_user(agent_id: &str, time_zone: &TimeZone) -> User {
    let id = UserId::new(derived_uuid(&format!("adjutant:a2a:anonymous:{agent_id}")));
    User { id, scopes: Vec::new(), time_zone: time_zone.clone() }
}

/// Returns a UUID that is derived from the SHA-256 digest of the text. Equal texts yield equal ids.
pub(crate) fn derived_uuid(text: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(text)[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn transport(binding: Binding) -> A2aTransport {
    match binding {
        Binding::JsonRpc => A2aTransport::JsonRpc,
        Binding::HttpJson => A2aTransport::HttpJson,
        Binding::Grpc => A2aTransport::Grpc,
    }
}
