//! `/api/audit`: the records of administrative changes, for administrators (SEC-6). Each handler writes its record in
//! the transaction of its change. A record cannot be changed or removed here.

use api::audit::{AuditRecords, ListAudit};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use model::due::DueDate;
use model::schedule::TimeSpan;
use model::{Invalid, User};
use store::audit::AuditFilter;

use super::page;
use crate::auth::{CurrentUser, require_admin};
use crate::input::{self, QueryParams};
use crate::{App, Problem};

/// Lists administrative changes, newest first.
///
/// Requires the scope `adjutant:admin`.
#[utoipa::path(
    get,
    path = "/api/audit",
    tag = "operation",
    params(ListAudit),
    responses(
        (status = 200, description = "A page of records", body = AuditRecords),
        (status = 403, description = "The scope adjutant:admin is required"),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(mut params): QueryParams<ListAudit>,
) -> Result<Json<AuditRecords>, Problem> {
    require_admin(&user)?;
    let (limit, cursor) = input::page_params(&params)?;
    // A duration before now is exact: "2h".
    if params.since.as_deref().is_some_and(|since| TimeSpan::parse("since", since).is_err()) {
        app.field_reader(&user).resolve_time(&mut params.since);
    }
    let since = params.since.as_deref().map(|text| parse_since(text, &user, app.clock().now())).transpose()?;
    let filter = AuditFilter { since, action: params.action };
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::audit::list(&mut reader, filter, cursor.as_ref(), limit).await?;
    Ok(page(found, AuditRecords::new))
}

/// Parses a time, a date in the time zone of the user, or a duration before `now`. Fails if it is neither.
fn parse_since(text: &str, user: &User, now: Timestamp) -> Result<Timestamp, Invalid> {
    if let Ok(span) = TimeSpan::parse("since", text) {
        return Ok(now - span.signed_duration());
    }
    let invalid = || {
        Invalid::one(
            "since",
            "time",
            "must be a time, a date, words such as 'yesterday', or a duration before now such as 2h or 7d",
        )
    };
    match DueDate::parse("since", text, &user.time_zone).map_err(|_| invalid())? {
        DueDate::Day(date) => {
            let start = date.to_zoned(user.time_zone.clone()).map_err(|_| invalid())?;
            Ok(start.timestamp())
        }
        time => time.timestamp().ok_or_else(invalid),
    }
}
