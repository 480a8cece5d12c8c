//! Authenticates requests (OPS-3) by bearer token. Without configured authentication every caller is the local user.
//!
//! A rejection does not reveal its reason: an expired, a forged and a missing token get the same response.

pub(crate) mod expiry;
pub(crate) mod jwks;
pub mod mint;
pub(crate) mod revocations;
pub mod user_name;
pub(crate) mod verifier;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::User;

use crate::agent_caller::AgentCaller;
use crate::{App, Problem, audit, request};
use verifier::Claims;

/// Authenticates a request and adds its [`User`] to the extensions and the log. Responds with 401 if the token is
/// missing, invalid or revoked, and with 429 beyond the rate limit of the user. Without configured authentication the
/// user is the local user.
pub(crate) async fn require_user(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let agent = request.extensions().get::<AgentCaller>().cloned();
    match authenticate(&app, request.headers(), agent).await {
        Ok((user, claims)) => {
            request::record_user(&user);
            let actor = audit::request_actor(&app, &request, &user, claims);
            request.extensions_mut().insert(actor);
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Returns the user of a request and the claims of their token, and counts the request. A request of an agent has the
/// owner of its run. Fails with 401 if the token is missing or invalid, and with 429 beyond the rate limit of the user.
async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    agent: Option<AgentCaller>,
) -> Result<(User, Option<Claims>), Problem> {
    let (user, claims) = match agent {
        Some(agent) => (agent.owner, None),
        None => identify_by_claims(app, bearer_token(headers)).await.ok_or_else(Problem::unauthorized)?,
    };
    if let Some(limiter) = &app.active_config().limiter {
        limiter.check(&user.id).map_err(Problem::too_many_requests)?;
    }
    Ok((user, claims))
}

/// Returns the user of a token, or `None` if the token is missing, invalid or revoked. Returns the local user without
/// configured authentication, or if the token is missing and optional.
pub async fn identify(app: &App, token: Option<&str>) -> Option<User> {
    identify_by_claims(app, token).await.map(|(user, _)| user)
}

/// Like [`identify`], with the claims of the token. The local user has none.
async fn identify_by_claims(app: &App, token: Option<&str>) -> Option<(User, Option<Claims>)> {
    let config = app.active_config();
    let local = || Some((User::local(config.settings.time_zone.clone()), None));
    let Some(verifier) = &config.verifier else { return local() };
    let Some(token) = token else { return if config.requires_token() { None } else { local() } };
    let claims = verifier.verify(token).await?;
    let revoked = app.revocations().contains(&claims.revocation_id(token));
    (!revoked).then(|| (claims.user(&config.settings.time_zone), Some(claims)))
}

/// Returns the token of the `Authorization` header, or `None` if the header is missing or has another scheme than
/// `Bearer`.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The user that [`require_user`] authenticated.
pub(crate) struct CurrentUser(pub(crate) User);

impl<S: Sync> FromRequestParts<S> for CurrentUser {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<User>().cloned().map(Self).ok_or_else(Problem::unauthorized)
    }
}

/// Fails if the user does not have the scope `adjutant:admin` (OPS-6).
pub(crate) fn require_admin(user: &User) -> Result<(), Problem> {
    if user.is_admin() { Ok(()) } else { Err(Problem::forbidden("this operation requires the scope adjutant:admin")) }
}
