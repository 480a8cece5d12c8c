//! `/api/conversations`: the stored conversations of the user. Conversations of other users are not found, also by
//! administrators. The search text `q` must have 1 to 200 characters in one line. Listings fail with 422 if a parameter
//! is invalid. Deleting cannot be undone.

use api::conversations::{Conversations, ListConversations, ListMessages, Transcript};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use model::conversation::ConversationId;
use model::text;

use super::{NoBody, page};
use crate::auth::CurrentUser;
use crate::idempotency::{EmptyBody, IdempotentRequest, Success};
use crate::input::{self, IdParam, QueryParams};
use crate::{App, Problem};

const MAX_SEARCH_CHARS: usize = 200;

/// Lists the conversations of the user, the most recently used first.
#[utoipa::path(
    get,
    path = "/api/conversations",
    tag = "conversations",
    params(ListConversations),
    responses((status = 200, description = "A page of conversations", body = Conversations))
)]
pub(super) async fn list(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    QueryParams(params): QueryParams<ListConversations>,
) -> Result<Json<Conversations>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let words = params.q.map(|q| text::required_line("q", &q, MAX_SEARCH_CHARS)).transpose()?;
    let mut reader = app.store().owner_reader(user.id).await?;
    let found = store::conversations::list(&mut reader, user.id, words.as_deref(), cursor.as_ref(), limit).await?;
    Ok(page(found, Conversations::new))
}

/// Returns a conversation with its messages, oldest first.
#[utoipa::path(
    get,
    path = "/api/conversations/{id}",
    tag = "conversations",
    params(
        ("id" = String, Path, description = "A UUID, or `conv_` followed by letters and digits", pattern = "^(conv_[A-Za-z0-9]{1,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"),
        ListMessages,
    ),
    responses(
        (status = 200, description = "The conversation and a page of its messages", body = Transcript),
        (status = 404, description = "The user has no conversation with this id"),
    )
)]
pub(super) async fn get(
    State(app): State<App>,
    CurrentUser(user): CurrentUser,
    IdParam(id): IdParam<ConversationId>,
    QueryParams(params): QueryParams<ListMessages>,
) -> Result<Json<Transcript>, Problem> {
    let (limit, cursor) = input::page_params(&params)?;
    let mut reader = app.store().owner_reader(user.id).await?;
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
        ("id" = String, Path, description = "A UUID, or `conv_` followed by letters and digits", pattern = "^(conv_[A-Za-z0-9]{1,64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"),
    ),
    responses(
        (status = 204, description = "The conversation was deleted"),
        (status = 404, description = "The user has no conversation with this id"),
    )
)]
pub(super) async fn delete(
    IdParam(id): IdParam<ConversationId>,
    request: IdempotentRequest<EmptyBody>,
) -> Result<Response, Problem> {
    let owner = request.user.id;
    request
        .run_transaction("conversation", async move |tx| {
            store::conversations::delete(tx, owner, &id).await?;
            Ok(Success::<NoBody>::NoContent)
        })
        .await
}
