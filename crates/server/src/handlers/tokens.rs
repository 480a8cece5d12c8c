//! `/api/tokens/revoke`: revokes a token before it expires. Users may revoke only their own valid token, which they
//! present. Administrators may revoke any token, also by its id and user. The revocation applies at once on this node,
//! and within seconds on all nodes.

use api::tokens::Revocation;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use model::audit::AuditAction;
use model::{Invalid, UserId};
use serde_json::json;

use super::NoBody;
use crate::Problem;
use crate::auth::require_admin;
use crate::auth::verifier::{Claims, revocation_id};
use crate::idempotency::{IdempotentRequest, JsonBody, Success};

/// The longest retention of a revocation. It applies to tokens that are revoked by id, because their expiry is unknown.
const MAX_RETENTION: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// The retention after the expiry of a token. It is longer than the accepted clock skew.
const EXPIRY_MARGIN: SignedDuration = SignedDuration::from_mins(5);

/// Revokes a token of the user.
///
/// An administrator can revoke the token of any user.
#[utoipa::path(
    post,
    path = "/api/tokens/revoke",
    tag = "tokens",
    request_body = Revocation,
    responses(
        (status = 204, description = "The token is no longer valid"),
    )
)]
pub(super) async fn revoke(request: IdempotentRequest<JsonBody<Revocation>>) -> Result<Response, Problem> {
    let now = request.app.clock().now();
    let RevocationTarget { owner, id, token_id, expires_at } = target(&request.body.0, now)?;
    if require_admin(&request.user).is_err() {
        check_own(&request, owner).await?;
    }
    let app = request.app.clone();
    let revoked = id.clone();
    let record = request.audit_record(AuditAction::TokenRevoked, token_id.as_ref().unwrap_or(&id));
    let record = record.with_after(&json!({"user_id": owner}));
    let response = request
        .run_transaction("token", async move |tx| {
            if store::tokens::revoke(tx, &id, expires_at, now).await? {
                store::audit::record(tx, &record).await?;
            }
            Ok(Success::<NoBody>::NoContent)
        })
        .await?;
    app.revocations().add(revoked);
    Ok(response)
}

/// Fails with 403 if the token belongs to a different user, and with 422 if it is not valid. A revocation by id fails
/// as well, because only a presented token can be verified. Without this check users could fill the table with invented
/// tokens.
async fn check_own(request: &IdempotentRequest<JsonBody<Revocation>>, owner: UserId) -> Result<(), Problem> {
    if owner != request.user.id {
        return require_admin(&request.user);
    }
    let config = request.app.active_config();
    let is_valid = match (&config.verifier, &request.body.0.token) {
        (Some(verifier), Some(token)) => verifier.verify(token).await.is_some(),
        _ => false,
    };
    if is_valid { Ok(()) } else { Err(Invalid::one("token", "jwt", "must be a valid token of the user").into()) }
}

/// The token that a request revokes.
struct RevocationTarget {
    owner: UserId,
    /// The id of the revocation.
    id: String,
    /// The `jti` of the token, if it has one.
    token_id: Option<String>,
    /// The time until which the revocation is stored.
    expires_at: Timestamp,
}

/// Returns the token that a request revokes. Its revocation is stored for a limited time. For a
/// token that is five minutes after its expiry, for an id about ten years from now. An expiry in more than ten years
/// counts as ten years. The token is not verified.
///
/// Fails if the body has neither a token alone nor an id with a user. Fails if the token is not a JWT, or the id or the
/// user id is invalid.
fn target(revocation: &Revocation, now: Timestamp) -> Result<RevocationTarget, Invalid> {
    match revocation {
        Revocation { token: Some(token), id: None, user_id: None } => {
            let claims = Claims::unverified(token).ok_or_else(|| Invalid::one("token", "jwt", "must be a JWT"))?;
            let latest = now + MAX_RETENTION;
            let expires_at = Timestamp::from_second(claims.exp).unwrap_or(latest).min(latest) + EXPIRY_MARGIN;
            let id = claims.revocation_id(token);
            Ok(RevocationTarget { owner: claims.sub, id, token_id: claims.jti, expires_at })
        }
        Revocation { token: None, id: Some(id), user_id: Some(user) } => {
            let id = model::text::required_line("id", id, 200)?;
            let user: UserId = user.parse()?;
            let expires_at = now + MAX_RETENTION;
            Ok(RevocationTarget { owner: user, id: revocation_id(user, &id), token_id: Some(id), expires_at })
        }
        _ => Err(Invalid::one("token", "one_of", "is required, unless id and user_id are given")),
    }
}
