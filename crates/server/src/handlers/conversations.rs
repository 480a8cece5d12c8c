//! `/api/conversations`.

use api::conversations::{Conversations, ListConversations, ListMessages, Transcript};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::conversation::Id as ConversationId;
use model::text;

use super::{NoBody, page};
use crate::auth::Asking;
use crate::change::{Answer, Change, Nothing};
use crate::input::{self, Id, Params};
use crate::{App, Problem};

const MAX_SEARCH: usize = 200;

/// The user's conversations, the one used last first.
#[utoipa::path(
    get,
    path = "/api/conversations",
    tag = "conversations",
    params(ListConversations),
    responses((status = 200, body = Conversations))
)]
pub(super) async fn list(
    State(app): State<App>,
    Asking(user): Asking,
    Params(params): Params<ListConversations>,
) -> Result<Json<Conversations>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let words = params.q.map(|q| text::required_line("q", &q, MAX_SEARCH)).transpose()?;
    let mut reader = app.store().reader().await?;
    let found = store::conversations::list(&mut reader, user.id, words.as_deref(), cursor.as_ref(), limit).await?;
    Ok(page(found, Conversations::new))
}

/// One conversation with its messages, oldest first.
#[utoipa::path(
    get,
    path = "/api/conversations/{id}",
    tag = "conversations",
    params(
        ("id" = String, Path, description = "A UUID, or `conv_` and letters and digits", pattern = "^(conv_[A-Za-z0-9]{1,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"),
        ListMessages,
    ),
    responses((status = 200, body = Transcript), (status = 404))
)]
pub(super) async fn get(
    State(app): State<App>,
    Asking(user): Asking,
    Id(id): Id<ConversationId>,
    Params(params): Params<ListMessages>,
) -> Result<Json<Transcript>, Problem> {
    let (limit, cursor) = input::page(&params)?;
    let mut reader = app.store().reader().await?;
    let conversation = store::conversations::get(&mut reader, user.id, &id).await;
    let conversation = conversation.map_err(Problem::from_store("conversation"))?;
    let found = store::conversations::messages(&mut reader, user.id, &id, cursor.as_ref(), limit).await?;
    Ok(page(found, |messages, next_cursor| Transcript { conversation, count: messages.len(), messages, next_cursor }))
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
        (status = 404),
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
