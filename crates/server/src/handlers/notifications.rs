//! `/api/notifications`: lists and streams the notifications of the user, and marks them as read.
//!
//! The list contains all notifications, or with `unread=true` only unread ones. The stream starts after
//! `Last-Event-ID`, or with the next notification without that header. It first sends the id from which it can be
//! resumed. It ends if the server stops or the database fails. Marking a notification again keeps its first time.

use api::notifications::{ListNotifications, Notification, Notifications};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::StreamExt;
use store::page::Page;
use uuid::Uuid;

use super::page;
use crate::auth::CurrentUser;
use crate::event_stream::{self, EventChunk};
use crate::idempotency::{EmptyBody, IdempotentRequest, Success};
use crate::input::{self, IdParam, NoParameters, QueryParams};
use crate::open_streams::StreamOwner;
use crate::{App, Problem};

/// Lists the notifications of the user, newest first.
#[utoipa::path(
    get,
    path = "/api/notifications",
    tag = "notifications",
    params(ListNotifications),
    responses((status = 200, description = "A page of notifications", body = Notifications))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListNotifications>,
) -> Result<Json<Notifications>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let unread = params.unread.unwrap_or(false);
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::notifications::list(&mut reader, user.id, unread, cursor.as_ref(), limit).await?;
    let rows: Vec<_> = found.rows.into_iter().map(|row| row.notification).collect();
    Ok(page(Page { rows, next: found.next }, Notifications::new))
}

/// Streams the notifications of the user, from now on or after `Last-Event-ID`.
///
/// Each is an event `notification`.
#[utoipa::path(
    get,
    path = "/api/notifications/stream",
    tag = "notifications",
    params(("Last-Event-ID" = Option<i64>, Header, description = "The last event that the client has received, or 0 for all")),
    responses((status = 200, description = "Server-sent events", content_type = "text/event-stream"))
)]
pub(super) async fn stream(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(_params): QueryParams<NoParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let open_stream = app.open_stream(StreamOwner::User(user.id))?;
    let after = match event_stream::last_event_id(&headers)? {
        Some(after) => after,
        None => store::notifications::last_seq(&mut app.store().owner_reader(user.id).await?, user.id).await?,
    };
    let follower = app.notifier().follow(user.id, after);
    let stopping = app.stopping().clone();
    // Sent at once, so that the client knows that it is connected and from which event it can resume.
    let start = format!("{}{}", sse::encode_last_id(after), sse::KEEP_ALIVE);
    let events = futures::stream::unfold(follower, |mut follower| async move {
        let numbered = follower.next().await.ok()?;
        let data = serde_json::to_string(&numbered.notification).unwrap_or_default();
        let text = event_stream::encode(Some(&numbered.seq.to_string()), "notification", &data);
        Some((EventChunk { text, last_id: Some(numbered.seq), is_inside: false }, follower))
    });
    let start = EventChunk { text: start, last_id: Some(after), is_inside: false };
    let events = futures::stream::iter([start]).chain(events);
    // On shutdown the stream ends. The client reconnects with the last id.
    Ok(event_stream::stream(events.take_until(stopping.cancelled_owned()), open_stream))
}

/// Marks a notification as read.
///
/// A repetition keeps the first time.
#[utoipa::path(
    post,
    path = "/api/notifications/{id}/read",
    tag = "notifications",
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The notification", body = Notification),
        (status = 404, description = "The user has no notification with this id"),
    )
)]
pub(super) async fn read(
    IdParam(id): IdParam<Uuid>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let owner = request.user.id;
    let now = request.app.clock().now();
    request
        .run_transaction("notification", async move |tx| {
            store::notifications::mark_read(tx, owner, id, now).await.map(Success::Ok)
        })
        .await
}
