//! Who may call which agent by A2A (A2A-2): by a token or a key of the agent's own, by a token of the server's users, or,
//! where the operator wants it so, anybody.
//!
//! A refusal never says why. What a caller presents is compared by digest, so that the time it takes tells nothing. An
//! address that presents the wrong thing again and again is not listened to for a while.

use std::net::IpAddr;
use std::sync::Arc;

use ::a2a::{Binding, Call, Denied, Error, Kind};
use axum::http::{Extensions, HeaderMap};
use jiff::tz::TimeZone;
use model::agent::endpoint::{Auth, AuthType, Transport};
use model::agent::{ASSISTANT, Agent, Endpoint};
use model::{User, UserId};
use sha2::{Digest, Sha256};
use supervisor::Entry;
use uuid::Uuid;

use super::caller::Caller;
use crate::app::InForce;
use crate::{App, auth, peer, request};

/// An agent that can be reached, with the settings it is offered under.
pub(crate) struct Offered {
    pub(crate) entry: Entry,
    pub(crate) in_force: Arc<InForce>,
}

impl Offered {
    /// The agent that is meant by a name, or where there is none.
    pub(crate) fn find(app: &App, agent: Option<&str>) -> Option<Self> {
        let in_force = app.in_force();
        let entry = app.supervisor().agent(agent.unwrap_or(&in_force.settings.a2a.default_agent))?;
        Self { entry, in_force }.if_open()
    }

    /// All that there are.
    pub(crate) fn all(app: &App) -> Vec<Self> {
        let in_force = app.in_force();
        let all = app.supervisor().agents().into_iter();
        all.filter_map(|entry| Self { entry, in_force: in_force.clone() }.if_open()).collect()
    }

    fn if_open(self) -> Option<Self> {
        (self.entry.agent.enabled && self.endpoint().enabled).then_some(self)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        endpoint(&self.in_force, &self.entry.agent)
    }

    pub(crate) fn way(&self) -> Way<'_> {
        Way::of(self.endpoint().auth.as_ref(), self.in_force.verifier.is_some())
    }
}

/// How an agent is offered. The configuration says it for the assistant, every other agent says it itself.
pub(crate) fn endpoint<'a>(in_force: &'a InForce, agent: &'a Agent) -> &'a Endpoint {
    if agent.id == ASSISTANT { &in_force.settings.a2a.assistant } else { &agent.a2a }
}

/// How callers of an agent prove who they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way<'a> {
    /// Everyone is the local user.
    Local,
    /// By a token of the server's users.
    Jwt { required: bool },
    /// By a token or a key of the agent's own.
    Own(&'a Auth),
    /// Not at all.
    Anyone,
}

impl<'a> Way<'a> {
    fn of(auth: Option<&'a Auth>, with_tokens: bool) -> Self {
        match auth {
            None if with_tokens => Self::Jwt { required: true },
            None => Self::Local,
            Some(auth) => match auth.kind {
                AuthType::Jwt => Self::Jwt { required: auth.required },
                AuthType::BearerToken | AuthType::ApiKey => Self::Own(auth),
                AuthType::None if with_tokens => Self::Anyone,
                AuthType::None => Self::Local,
            },
        }
    }

    /// Whether nobody is let in without proof.
    pub(crate) fn is_required(self) -> bool {
        match self {
            Self::Local | Self::Anyone => false,
            Self::Jwt { required } => required,
            Self::Own(auth) => auth.required,
        }
    }

    /// What a caller without it is told to bring.
    fn challenge(self) -> String {
        match self {
            Self::Own(auth) if auth.kind == AuthType::ApiKey => {
                format!("ApiKey name=\"{}\"", auth.header().unwrap_or_default())
            }
            _ => "Bearer".to_owned(),
        }
    }
}

/// Whether this call may be made, and as whom.
pub(crate) async fn admit(app: &App, call: &Call) -> Result<Caller, Denied> {
    let caller = enter(app, call).await?;
    let in_force = app.in_force();
    if !endpoint(&in_force, &caller.entry.agent).offers(transport(call.binding)) {
        let message = format!("this agent is not offered by {}", call.binding.as_str());
        return Err(Denied::Refused(Error::new(Kind::UnsupportedOperation, message)));
    }
    Ok(caller)
}

/// The same for what belongs to every transport.
pub(crate) async fn enter(app: &App, call: &Call) -> Result<Caller, Denied> {
    let offered = Offered::find(app, call.agent.as_deref()).ok_or(Denied::NoAgent)?;
    if call.tenant.as_deref().is_some_and(|tenant| is_another(app, &offered.entry, tenant)) {
        return Err(Denied::NoAgent);
    }
    let from = address(&offered.in_force, &call.extensions, &call.headers);
    let (user, anonymous) = identify(app, &offered, from, &call.headers).await?;
    let Offered { entry, in_force } = &offered;
    request::note_user(&user);
    if let Some(rate) = offered.endpoint().rate.or(in_force.settings.rate_limit) {
        let key = (user.id, anonymous.then(|| peer::network(from)));
        let taken = app.a2a().limits.take(&entry.agent.id, rate, key);
        taken.map_err(|retry_after| Denied::TooMany { retry_after })?;
    }
    Ok(Caller { user, entry: offered.entry, version: call.version, binding: call.binding, anonymous })
}

/// Whether a tenant is the name of an agent other than the one that is called.
pub(crate) fn is_another(app: &App, entry: &Entry, tenant: &str) -> bool {
    tenant != entry.agent.id && app.supervisor().agent(tenant).is_some()
}

pub(crate) fn address(in_force: &InForce, extensions: &Extensions, headers: &HeaderMap) -> IpAddr {
    peer::address(extensions, headers, &in_force.settings.trusted_proxies)
}

/// The user who calls, and whether that is nobody in particular.
async fn identify(app: &App, offered: &Offered, from: IpAddr, headers: &HeaderMap) -> Result<(User, bool), Denied> {
    let way = offered.way();
    let zone = &offered.in_force.settings.time_zone;
    let agent = &offered.entry.agent;
    if matches!(way, Way::Jwt { .. } | Way::Own(_))
        && let Some(retry_after) = app.a2a().blocks.wait(from, app.clock().now())
    {
        return Err(Denied::TooMany { retry_after });
    }
    let (presented, user) = match way {
        Way::Local => return Ok((User::local(zone.clone()), false)),
        Way::Anyone => return Ok((anonymous(&agent.id, zone), true)),
        Way::Jwt { .. } => {
            let token = presented_jwt(headers);
            // Without anybody who could check it, no token is good.
            let known = token.is_some() && offered.in_force.verifier.is_some();
            (token.is_some(), if known { auth::identify(app, token).await } else { None })
        }
        Way::Own(auth) => {
            let key = presented(auth, headers);
            let good = match key {
                Some(key) => is_theirs(app, auth, key).await,
                None => false,
            };
            let user = auth.user.filter(|_| good);
            (key.is_some(), user.map(|id| User { id, scopes: Vec::new(), time_zone: zone.clone() }))
        }
    };
    match user {
        // What is not theirs is not there.
        Some(user) if matches!(way, Way::Jwt { .. }) && !offered.entry.is_for(&user) => Err(Denied::NoAgent),
        Some(user) => Ok((user, false)),
        None if !presented && !way.is_required() => Ok((anonymous(&agent.id, zone), true)),
        None => {
            if presented {
                failed(app, from, Some(&agent.id));
            }
            Err(Denied::Unauthenticated { challenge: way.challenge() })
        }
    }
}

/// Notes that an address presented what is not good.
pub(crate) fn failed(app: &App, from: IpAddr, agent_id: Option<&str>) {
    tracing::info!(event = "a2a_authentication_failed", agent_id, address = %from);
    if app.a2a().blocks.failed(from, app.clock().now()) {
        tracing::warn!(event = "a2a_address_blocked", address = %from);
    }
}

/// What a header has that may be a token; something, where it is there at all.
pub(crate) fn presented_jwt(headers: &HeaderMap) -> Option<&str> {
    headers.contains_key(axum::http::header::AUTHORIZATION).then(|| auth::bearer(headers).unwrap_or_default())
}

/// The token or the key that a caller presents. In a header of its own a token may stand without its scheme.
pub(crate) fn presented<'h>(auth: &Auth, headers: &'h HeaderMap) -> Option<&'h str> {
    let name = auth.header()?;
    let value = headers.get(name)?.to_str().unwrap_or_default().trim();
    if auth.kind == AuthType::ApiKey {
        return Some(value);
    }
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim()),
        _ if name.eq_ignore_ascii_case("authorization") => Some(""),
        _ => Some(value),
    }
}

/// Whether this is the token of the agent.
pub(crate) async fn is_theirs(app: &App, auth: &Auth, presented: &str) -> bool {
    let Some(reference) = &auth.token else { return false };
    let Some(digest) = app.a2a().tokens.digest(app, reference).await else { return false };
    !presented.is_empty() && digest == *Sha256::digest(presented)
}

/// All who call an agent without proof are one user, and no other agent's.
pub(crate) fn anonymous(agent_id: &str, time_zone: &TimeZone) -> User {
    let id = UserId::new(made_of(&format!("adjutant:a2a:anonymous:{agent_id}")));
    User { id, scopes: Vec::new(), time_zone: time_zone.clone() }
}

/// An id that is always the same for this text.
pub(crate) fn made_of(text: &str) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(text)[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn transport(binding: Binding) -> Transport {
    match binding {
        Binding::JsonRpc => Transport::JsonRpc,
        Binding::HttpJson => Transport::HttpJson,
        Binding::Grpc => Transport::Grpc,
    }
}
