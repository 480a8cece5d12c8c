//! `/api/notifications`: what the user was told, and what is told from now on.

use std::time::Duration;

use api::notifications::{ListNotifications, Notification, Notifications};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::StreamExt;
use model::Invalid;
use store::page::Page;
use uuid::Uuid;

use super::page;
use crate::auth::Asking;
use crate::change::{Answer, Change, Nothing};
use crate::event_stream;
use crate::input::{self, Id, NoParameters, Params};
use crate::{App, Problem};

/// How often a quiet stream shows that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What the user was told, newest first.
#[utoipa::path(
    get,
    path = "/api/notifications",
    tag = "notifications",
    params(ListNotifications),
    responses((status = 200, body = Notifications))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListNotifications>,
) -> Result<Json<Notifications>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let unread = params.unread.unwrap_or(false);
    let mut reader = app.store().reader().await?;
    let found = store::notifications::list(&mut reader, user.id, unread, cursor.as_ref(), limit).await?;
    let rows: Vec<_> = found.rows.into_iter().map(|row| row.notification).collect();
    Ok(page(Page { rows, next: found.next }, Notifications::new))
}

/// What the user is told from now on, or behind `Last-Event-ID`: one event, `notification`, for each.
#[utoipa::path(
    get,
    path = "/api/notifications/stream",
    tag = "notifications",
    params(("Last-Event-ID" = Option<i64>, Header, description = "The last event that was seen; 0 for all that are kept")),
    responses((status = 200, description = "Server-Sent Events", content_type = "text/event-stream"))
)]
pub(super) async fn stream(
    State(app): State<App>,
    Asking(user): Asking,
    Params(_params): Params<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = match headers.get("last-event-id").map(|id| id.to_str().ok().and_then(|id| id.trim().parse().ok())) {
        Some(Some(after)) if after >= 0 => after,
        None => store::notifications::last(&mut app.store().reader().await?, user.id).await?,
        Some(_) => return Err(Invalid::one("Last-Event-ID", "number", "must be the id of an event").into()),
    };
    let follower = app.notifier().follow(user.id, after);
    let stopping = app.stopping().clone();
    // Something at once, so that whoever listens knows that it is heard, and behind which event.
    let begun = format!("{}{}", sse::position(after), sse::KEEP_ALIVE);
    let told = futures::stream::unfold(follower, move |mut follower| {
        let stopping = stopping.clone();
        async move {
            tokio::select! {
                told = tokio::time::timeout(KEEP_ALIVE, follower.next()) => match told {
                    Err(_) => Some((sse::KEEP_ALIVE.to_owned(), follower)),
                    Ok(Ok(told)) => {
                        let data = serde_json::to_string(&told.notification).unwrap_or_default();
                        Some((event_stream::encode(Some(&told.seq.to_string()), "notification", &data), follower))
                    }
                    Ok(Err(_)) => None,
                },
                // Whoever follows comes back with the last id.
                () = stopping.cancelled() => None,
            }
        }
    });
    let stream = futures::stream::iter([begun]).chain(told).map(Ok::<_, std::convert::Infallible>);
    Ok(event_stream::respond(Body::from_stream(stream)))
}

/// Notes that a notification was read; the first time counts.
#[utoipa::path(
    post,
    path = "/api/notifications/{id}/read",
    tag = "notifications",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Notification),
        (status = 404),
    )
)]
pub(super) async fn read(Id(id): Id<Uuid>, change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    let now = change.app.clock().now();
    change
        .carry_out("notification", async move |tx| {
            store::notifications::mark_read(tx, owner, id, now).await.map(Answer::Ok)
        })
        .await
}
