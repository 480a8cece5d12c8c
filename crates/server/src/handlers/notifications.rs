//! `/api/notifications`: what the user was told, and what is told from now on.

use api::notifications::{ListNotifications, Notification, Notifications};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::StreamExt;
use store::page::Page;
use uuid::Uuid;

use super::page;
use crate::auth::Asking;
use crate::change::{Answer, Change, Nothing};
use crate::event_stream;
use crate::input::{self, Id, NoParameters, Params};
use crate::{App, Problem};

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
    let after = match event_stream::last_event_id(&headers)? {
        Some(after) => after,
        None => store::notifications::last(&mut app.store().reader().await?, user.id).await?,
    };
    let follower = app.notifier().follow(user.id, after);
    let stopping = app.stopping().clone();
    // Sent at once, so that the client knows that it is connected, and after which event.
    let start = format!("{}{}", sse::position(after), sse::KEEP_ALIVE);
    let events = futures::stream::unfold(follower, |mut follower| async move {
        let told = follower.next().await.ok()?;
        let data = serde_json::to_string(&told.notification).unwrap_or_default();
        Some((event_stream::encode(Some(&told.seq.to_string()), "notification", &data), follower))
    });
    let events = futures::stream::iter([start]).chain(events);
    // A client resumes with the last id on the server that comes next.
    Ok(event_stream::stream(events.take_until(stopping.cancelled_owned())))
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
