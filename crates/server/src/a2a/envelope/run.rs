//! Runs the commands of envelopes.

use ::a2a::{Error, ErrorKind};
use axum::response::Response;
use futures::StreamExt;
use model::agent::ASSISTANT_ID;
use model::conversation;
use serde_json::{Value, json};
use store::executions::{ExecutionEventKind, OwnerScope};
use supervisor::{FollowEvent, RunDraft, RunOrigin, SubmitError};
use uuid::Uuid;

use super::message::{ReplyEnvelope, validation_error};
use crate::App;
use crate::a2a::authn::{OfferedAgent, derived_uuid};
use crate::a2a::caller::A2aCaller;
use crate::a2a::{errors, policy};
use crate::event_stream;
use crate::handlers;
use crate::open_streams::OpenStream;

/// The parameter with the conversation of the assistant.
const CONVERSATION_PARAMETER: &str = "conversation_id";

/// Returns GetA2AStatus of S2: the load of the agent as in `/api/agents/{id}/status`. It also contains the protocol,
/// its versions, and the transports and capabilities of the endpoint. Fails if the database fails.
pub(super) async fn status(app: &App, offered: &OfferedAgent) -> Result<Value, Error> {
    let agent = &offered.entry.agent;
    let status = handlers::agents::current_status(app, agent).await.map_err(from_store)?;
    let mut status = serde_json::to_value(status).map_err(internal)?;
    status["protocol"] = json!("a2a");
    status["supported_versions"] = json!(["1.0", "0.3"]);
    status["transports"] = json!(offered.endpoint().transports);
    status["capabilities"] = json!(offered.endpoint().advertised_capabilities(agent));
    Ok(status)
}

/// Enqueues an execution and returns its id. `limit` is the maximum size of the input in bytes. Fails if the input is
/// larger, or like [`from_submit_error`] if the execution cannot be prepared. Fails if the queue is full or the
/// database fails.
///
/// For the assistant, the conversation of the envelope becomes the parameter `conversation_id`, unless the request sets
/// that parameter. A name that is not a conversation id becomes an id that is derived from it and the user. The origin
/// contains the id and the sender of the envelope.
pub(super) async fn enqueue(
    app: &App,
    caller: &A2aCaller,
    mut draft: RunDraft,
    limit: u64,
    envelope: &ReplyEnvelope,
) -> Result<Uuid, Error> {
    if draft.input.len() as u64 > limit {
        return Err(policy::too_large("params.input", limit));
    }
    if let Some(conversation) =
        envelope.context.conversation_id.as_ref().filter(|_| caller.entry.agent.id == ASSISTANT_ID)
    {
        let parameters = draft.parameters.get_or_insert_default();
        parameters.entry(CONVERSATION_PARAMETER).or_insert_with(|| json!(conversation_id(caller, conversation)));
    }
    let mut origin = RunOrigin::default();
    origin.context.insert("a2a".to_owned(), json!({"message_id": envelope.id, "from": envelope.context.from}));
    let supervisor = app.supervisor();
    let submission = supervisor.prepare_with(&caller.entry, &caller.user, draft, origin).map_err(from_submit_error)?;
    let supervisor = supervisor.clone();
    let owner = submission.new_execution.owner;
    let queued = app.store().owner_transaction(owner, async move |tx| supervisor.enqueue(tx, submission).await);
    queued.await.map_err(from_store)
}

/// Returns the id of a conversation. A name that is not a valid id is hashed together with the user id.
fn conversation_id(caller: &A2aCaller, name: &str) -> String {
    match name.parse::<conversation::ConversationId>() {
        Ok(id) => id.to_string(),
        Err(_) => derived_uuid(&format!("adjutant:a2a:conversation:{}:{name}", caller.user.id)).to_string(),
    }
}

/// Waits for the end of an execution without a time limit and returns its result, also if the execution failed. Fails
/// with `Busy` if the server stops before that; the execution is not cancelled. Fails with `NotFound` if the execution
/// is deleted, and if the database fails.
pub(super) async fn wait_for_result(app: &App, caller: &A2aCaller, id: Uuid) -> Result<Value, Error> {
    let scope = OwnerScope::User(caller.user.id);
    let ended = app.stopping().run_until_cancelled(app.supervisor().wait(scope, id)).await;
    let stopping = || {
        let message =
            format!("the server is stopping; execution {id} continues after a restart, request its result later");
        Error::new(ErrorKind::Busy, message)
    };
    ended.ok_or_else(stopping)?.map_err(from_store)?;
    result(app, scope, id).await
}

/// Returns the result of an ended execution as JSON. Fails if the execution does not exist or has not ended.
async fn result(app: &App, scope: OwnerScope, id: Uuid) -> Result<Value, Error> {
    let mut reader = app.store().reader().await.map_err(from_store)?;
    let result = store::executions::result(&mut reader, scope, id).await.map_err(from_store)?;
    serde_json::to_value(result).map_err(internal)
}

/// Returns a stream of the events of an execution from its start, one envelope of type `stream` each. The last envelope
/// is a `response` with the result, or an `error` if the database fails or the result cannot be read. If the server
/// stops, the stream ends without a result. A caller that disconnects does not cancel the execution.
pub(super) fn stream_events(
    app: App,
    caller: A2aCaller,
    id: Uuid,
    envelope: ReplyEnvelope,
    open_stream: OpenStream,
) -> Response {
    let scope = OwnerScope::User(caller.user.id);
    let follower = app.supervisor().follow(scope, id, 0);
    let stopping = app.stopping().clone();
    let state = Some((app, follower, envelope));
    let events = futures::stream::unfold(state, move |state| async move {
        let (app, mut follower, envelope) = state?;
        let (next, is_last) = match follower.next().await {
            Ok(Some(FollowEvent::End(_))) => match result(&app, scope, id).await {
                Ok(result) => (envelope.response(result), true),
                Err(error) => (envelope.error(&error), true),
            },
            Ok(Some(event)) => (envelope.stream(event_json(event)), false),
            Ok(None) => return None,
            Err(error) => (envelope.error(&from_store(error)), true),
        };
        Some((encode_event(&next), (!is_last).then_some((app, follower, envelope))))
    });
    // If the server stops, the stream ends. The execution continues after a restart.
    event_stream::stream(events.take_until(stopping.cancelled_owned()), open_stream)
}

fn encode_event(envelope: &Value) -> String {
    event_stream::encode(None, "", &envelope.to_string())
}

/// Returns the content of the envelope for an event. Its `event` is `state`, `output`, `said` for rich output, or
/// `usage`. A gap is an output without text and with the number of missing bytes. Rich output that is not JSON becomes
/// null. The end yields null.
fn event_json(event: FollowEvent) -> Value {
    match event {
        FollowEvent::Event(event) if event.kind == ExecutionEventKind::State => {
            json!({"event": "state", "state": event.text, "at": event.at})
        }
        FollowEvent::Event(event) if event.kind == ExecutionEventKind::Gap => {
            let missing: u64 = event.text.parse().unwrap_or_default();
            json!({"event": "output", "stream": event.stream, "text": "", "missing_bytes": missing, "at": event.at})
        }
        FollowEvent::Event(event) if event.kind == ExecutionEventKind::RichOutput => {
            json!({"event": "said", "said": serde_json::from_str::<Value>(&event.text).unwrap_or_default(), "at": event.at})
        }
        FollowEvent::Event(event) => {
            json!({"event": "output", "stream": event.stream, "text": event.text, "at": event.at})
        }
        FollowEvent::Usage(usage) => json!({"event": "usage", "resource_usage": usage}),
        // The last envelope contains the result.
        FollowEvent::End(_) => Value::Null,
    }
}

/// Converts an error of a submission. A missing, disabled or forbidden agent, and a request that this node cannot
/// accept because it runs no agents, are an `UnsupportedOperation`. A too large input and violations are
/// `InvalidParams`, with field names that start with `params.`. The cause of an internal error is only logged.
fn from_submit_error(error: SubmitError) -> Error {
    match error {
        SubmitError::AgentNotFound
        | SubmitError::AgentDisabled(_)
        | SubmitError::Forbidden(_)
        | SubmitError::NotOnThisNode(_) => Error::new(ErrorKind::UnsupportedOperation, error.to_string()),
        SubmitError::InputTooLarge { limit } => policy::too_large("params.input", limit),
        SubmitError::Invalid(mut invalid) => {
            for violation in &mut invalid.violations {
                violation.field = format!("params.{}", violation.field);
            }
            validation_error(ErrorKind::InvalidParams, invalid)
        }
        SubmitError::Internal(cause) => errors::internal(&cause),
    }
}

/// Converts an error about an execution.
fn from_store(error: store::Error) -> Error {
    match error {
        store::Error::NotFound => Error::new(ErrorKind::NotFound, "the execution was not found"),
        other => errors::from_store(other, ""),
    }
}

fn internal(error: serde_json::Error) -> Error {
    errors::internal(&error.to_string())
}
