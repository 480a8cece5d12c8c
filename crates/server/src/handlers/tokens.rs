//! `/api/tokens/revoke`: taking a token back before it expires.

use api::tokens::Revocation;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use model::{Invalid, UserId};

use super::NoBody;
use crate::Problem;
use crate::auth::require_admin;
use crate::auth::verifier::{Claims, revocation_id};
use crate::change::{Answer, Change, Json};

/// For a token of which only the id is known, how long the revocation is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// A token is honoured a little beyond its end.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Takes a token back: one's own, or anyone's as an administrator.
#[utoipa::path(
    post,
    path = "/api/tokens/revoke",
    tag = "tokens",
    request_body = Revocation,
    responses(
        (status = 204, description = "The token is no longer valid"),
    )
)]
pub(super) async fn revoke(change: Change<Json<Revocation>>) -> Result<Response, Problem> {
    let now = change.app.clock().now();
    let (owner, id, expires_at) = target(&change.body.0, now)?;
    if require_admin(&change.user).is_err() {
        own(&change, owner).await?;
    }
    let app = change.app.clone();
    let revoked = id.clone();
    let response = change
        .carry_out("token", async move |tx| {
            store::tokens::revoke(tx, &id, expires_at, now).await?;
            Ok(Answer::<NoBody>::NoContent)
        })
        .await?;
    app.revocations().add(revoked);
    Ok(response)
}

/// Others revoke only what is theirs, and real: what anybody could make up would fill the list.
async fn own(change: &Change<Json<Revocation>>, owner: UserId) -> Result<(), Problem> {
    if owner != change.user.id {
        return require_admin(&change.user);
    }
    let in_force = change.app.in_force();
    let genuine = match (&in_force.verifier, &change.body.0.token) {
        (Some(verifier), Some(token)) => verifier.verify(token).await.is_some(),
        _ => false,
    };
    if genuine { Ok(()) } else { Err(Invalid::one("token", "jwt", "must be a valid token of yours").into()) }
}

/// Whose token it is, what its revocation is filed under, and until when.
fn target(wanted: &Revocation, now: Timestamp) -> Result<(UserId, String, Timestamp), Invalid> {
    match wanted {
        Revocation { token: Some(token), id: None, user_id: None } => {
            let claims = Claims::unverified(token).ok_or_else(|| Invalid::one("token", "jwt", "must be a token"))?;
            let latest = now + KEPT;
            let expires_at = Timestamp::from_second(claims.exp).unwrap_or(latest).min(latest) + SKEW;
            Ok((claims.sub, claims.revocation_id(token), expires_at))
        }
        Revocation { token: None, id: Some(id), user_id: Some(user) } => {
            let id = model::text::required_line("id", id, 200)?;
            let user: UserId = user.parse()?;
            Ok((user, revocation_id(user, &id), now + KEPT))
        }
        _ => Err(Invalid::one("token", "one_of", "must be given, or else id and user_id")),
    }
}
