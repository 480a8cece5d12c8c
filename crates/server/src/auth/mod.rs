//! Who is asking (OPS-3): the bearer of a token, or the local user where no authentication is configured.
//!
//! A refusal says nothing about its reason: an expired token, a forged one and none at all get the same answer.

pub(crate) mod jwks;
pub mod mint;
pub(crate) mod revocations;
pub(crate) mod verifier;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::User;

use crate::{App, Problem, request};

/// Lets a request pass with its [`User`], within that user's rate.
pub(crate) async fn require(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match admit(&app, request.headers()).await {
        Ok(user) => {
            request::note_user(&user);
            request.extensions_mut().insert(user);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn admit(app: &App, headers: &HeaderMap) -> Result<User, Problem> {
    let user = identify(app, bearer(headers)).await.ok_or_else(Problem::unauthorized)?;
    if let Some(limiter) = &app.in_force().limiter {
        limiter.take(&user.id).map_err(Problem::too_many_requests)?;
    }
    Ok(user)
}

/// The user a token stands for; everyone is the local user where no authentication is configured.
pub async fn identify(app: &App, token: Option<&str>) -> Option<User> {
    let in_force = app.in_force();
    let Some(verifier) = &in_force.verifier else { return Some(User::local(in_force.settings.time_zone.clone())) };
    let token = token?;
    let claims = verifier.verify(token).await?;
    let revoked = app.revocations().contains(&claims.revocation_id(token));
    (!revoked).then(|| claims.user(&in_force.settings.time_zone))
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The user that [`require`] let pass.
pub(crate) struct Asking(pub(crate) User);

impl<S: Sync> FromRequestParts<S> for Asking {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<User>().cloned().map(Self).ok_or_else(Problem::unauthorized)
    }
}

/// Whoever configures or copies everything needs the administrator's scope (OPS-6).
pub(crate) fn require_admin(user: &User) -> Result<(), Problem> {
    if user.is_admin() { Ok(()) } else { Err(Problem::forbidden("this needs the scope adjutant:admin")) }
}
