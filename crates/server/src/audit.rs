//! Finds the actor of a request for the audit log (SEC-6). Handlers write the record in the transaction of the change.

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use model::User;
use model::audit::{Actor, AuditInterface};

use crate::auth::verifier::Claims;
use crate::peer::{PeerAddress, client_address};
use crate::request::RequestId;
use crate::{App, Problem};

/// Returns the actor of a request. A request without a connection is a command that works on the data directory.
pub(crate) fn request_actor(app: &App, request: &Request, user: &User, claims: Option<Claims>) -> Actor {
    let extensions = request.extensions();
    let is_remote = extensions.get::<PeerAddress>().is_some();
    let trusted = &app.active_config().settings.trusted_proxies;
    let address = is_remote.then(|| client_address(extensions, request.headers(), trusted).to_string());
    let (user_name, token_id) = claims.map_or((None, None), |claims| (claims.preferred_username, claims.jti));
    Actor {
        user_id: Some(user.id),
        user_name,
        token_id,
        interface: if is_remote { AuditInterface::Http } else { AuditInterface::CommandLine },
        request_id: extensions.get::<RequestId>().map(|id| id.as_str().to_owned()),
        client_address: address,
    }
}

/// The actor that `require_user` has found.
pub(crate) struct CurrentActor(pub(crate) Actor);

impl<S: Sync> FromRequestParts<S> for CurrentActor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Actor>().cloned().map(Self).ok_or_else(Problem::unauthorized)
    }
}
