//! `/api/conversations`.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use model::conversation::{Conversation, Id as ConversationId, Message};
use model::text;
use serde::Serialize;
use utoipa::ToSchema;

use super::{NoBody, next_cursor};
use crate::auth::Asking;
use crate::change::{Answer, Change, Nothing};
use crate::input::{Id, Query};
use crate::problem::Body as ProblemBody;
use crate::{App, Problem};

const MAX_SEARCH: usize = 200;

#[derive(Serialize, ToSchema)]
pub(super) struct Conversations {
    conversations: Vec<Conversation>,
    /// How many are on this page.
    count: usize,
    /// For the next page; null on the last.
    next_cursor: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Transcript {
    #[serde(flatten)]
    conversation: Conversation,
    /// One page of them, oldest first.
    messages: Vec<Message>,
    /// How many are on this page.
    count: usize,
    /// For the next page of messages; null on the last.
    next_cursor: Option<String>,
}

/// The user's conversations, the one used last first.
#[utoipa::path(
    get,
    path = "/api/conversations",
    tag = "conversations",
    params(
        ("q" = Option<String>, Query, description = "Text in the title or in a message"),
        ("limit" = Option<i64>, Query, description = "Conversations a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Conversations))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    RawQuery(query): RawQuery,
) -> Result<Json<Conversations>, Problem> {
    let query = Query::read(query.as_deref(), &["q", "limit", "cursor"])?;
    let words = query.text("q").map(|q| text::required_line("q", q, MAX_SEARCH)).transpose()?;
    let (limit, cursor) = query.page()?;
    let mut reader = app.store().reader().await?;
    let page = store::conversations::list(&mut reader, user.id, words.as_deref(), cursor.as_ref(), limit).await?;
    Ok(Json(Conversations { count: page.rows.len(), next_cursor: next_cursor(&page), conversations: page.rows }))
}

/// One conversation with its messages, oldest first.
#[utoipa::path(
    get,
    path = "/api/conversations/{id}",
    tag = "conversations",
    params(
        ("id" = String, Path, description = "A UUID, or `conv_` and letters and digits", pattern = "^(conv_[A-Za-z0-9]{1,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"),
        ("limit" = Option<i64>, Query, description = "Messages a page, 50 by default", minimum = 1, maximum = 200),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = Transcript), (status = 404, body = ProblemBody, content_type = "application/problem+json"))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<ConversationId>,
    RawQuery(query): RawQuery,
) -> Result<Json<Transcript>, Problem> {
    let (limit, cursor) = Query::read(query.as_deref(), &["limit", "cursor"])?.page()?;
    let mut reader = app.store().reader().await?;
    let conversation = store::conversations::get(&mut reader, user.id, &id).await;
    let conversation = conversation.map_err(Problem::from_store("conversation"))?;
    let page = store::conversations::messages(&mut reader, user.id, &id, cursor.as_ref(), limit).await?;
    let next_cursor = next_cursor(&page);
    Ok(Json(Transcript { conversation, count: page.rows.len(), messages: page.rows, next_cursor }))
}

/// Deletes a conversation and its messages.
#[utoipa::path(
    delete,
    path = "/api/conversations/{id}",
    tag = "conversations",
    params(
        ("id" = String, Path, description = "A UUID, or `conv_` and letters and digits", pattern = "^(conv_[A-Za-z0-9]{1,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"),
    ),
    responses(
        (status = 204, description = "It is gone"),
        (status = 404, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(Id(id): Id<ConversationId>, change: Change<Nothing>) -> Result<Response, Problem> {
    let owner = change.user.id;
    change
        .carry_out("conversation", async move |tx| {
            store::conversations::delete(tx, owner, &id).await?;
            Ok(Answer::<NoBody>::NoContent)
        })
        .await
}
