//! `/api/permissions`: the tools of external servers that the assistant uses without asking, because their user has
//! answered "always allow". Each grant and each removal is an audit record.

use api::permissions::{ListPermissions, Permission, PermissionPage};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::audit::AuditAction;
use uuid::Uuid;

use super::{NoBody, page};
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, Success};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

/// Lists the permissions of the user, oldest first.
#[utoipa::path(
    get,
    path = "/api/permissions",
    tag = "permissions",
    params(ListPermissions),
    responses((status = 200, description = "A page of permissions", body = PermissionPage))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListPermissions>,
) -> Result<Json<PermissionPage>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::permissions::list(&mut reader, user.id, cursor.as_ref(), limit).await?;
    Ok(page(found, PermissionPage::new))
}

/// Returns a permission.
#[utoipa::path(
    get,
    path = "/api/permissions/{id}",
    tag = "permissions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The permission", body = Permission),
        (status = 404, description = "The user has no permission with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<Uuid>,
) -> Result<Json<Permission>, Problem> {
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::permissions::get(&mut reader, user.id, id).await;
    found.map(Json).map_err(Problem::from_store("permission"))
}

/// Removes a permission.
///
/// The tool needs a confirmation again.
#[utoipa::path(
    delete,
    path = "/api/permissions/{id}",
    tag = "permissions",
    params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "The permission was removed"),
        (status = 404, description = "The user has no permission with this id"),
    )
)]
pub(super) async fn delete(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let owner = request.user.id;
    let record = request.audit_record(AuditAction::PermissionRemoved, id);
    request
        .run_transaction("permission", async move |tx| {
            let removed = store::permissions::remove(tx, owner, id).await?;
            store::audit::record(tx, &record.with_before(&removed)).await?;
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}
