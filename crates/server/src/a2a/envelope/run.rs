//! Runs the commands of envelopes.

use ::a2a::{Error, ErrorKind};
use axum::response::Response;
use futures::StreamExt;
use model::agent::ASSISTANT_ID;
use model::conversation;
use serde_json::{Value, json};
use store::executions::{ExecutionEvent, ExecutionEventKind, OwnerScope};
use supervisor::{ExecutionFollower, FollowEvent, RunDraft, RunOrigin, SubmitError};
use uuid::Uuid;

use super::message::{ReplyEnvelope, validation_error};
use crate::App;
use crate::a2a::authn::{OfferedAgent, derived_uuid};
use crate::a2a::caller::A2aCaller;
use crate::a2a::{errors, policy};
use crate::event_stream::{self, EventChunk};
use crate::handlers;
use crate::open_streams::OpenStream;
use crate::result_chunks::ResultChunks;

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
    let follower = app.supervisor().follow(scope, id, 0).in_pieces();
    let stopping = app.stopping().clone();
    let notice = encode_event(&envelope.error(&stalled(id)));
    let stream =
        EnvelopeStream { app, scope, follower, envelope, rich_output: String::new(), last: LastEnvelope::Open };
    let chunks =
        futures::stream::unfold(stream, |mut stream| async move { Some((Box::pin(stream.next()).await?, stream)) });
    // If the server stops, the stream ends. The execution continues after a restart.
    event_stream::stream_with_stall_event(chunks.take_until(stopping.cancelled_owned()), open_stream, notice)
}

/// Returns the error for a caller that reads nothing.
fn stalled(id: Uuid) -> Error {
    let message = format!("nothing was read for too long; execution {id} continues, request its result later");
    Error::new(ErrorKind::Busy, message)
}

/// Encodes the events of an execution as envelopes, in chunks of limited size.
struct EnvelopeStream {
    app: App,
    scope: OwnerScope,
    follower: ExecutionFollower,
    envelope: ReplyEnvelope,
    /// The pieces of an event with rich output so far.
    rich_output: String,
    last: LastEnvelope,
}

/// The last envelope of a stream.
enum LastEnvelope {
    /// The execution has not ended.
    Open,
    Result(Box<ResultChunks>),
    Sent,
}

impl EnvelopeStream {
    /// Waits for the next chunk. Returns `None` after the last envelope.
    async fn next(&mut self) -> Option<EventChunk> {
        loop {
            match &mut self.last {
                LastEnvelope::Sent => return None,
                LastEnvelope::Result(chunks) => match chunks.next().await {
                    Ok(chunk) => return chunk,
                    Err(_) => return None,
                },
                LastEnvelope::Open => {}
            }
            let mut event = match self.follower.next().await {
                Ok(event) => Some(event?),
                Err(error) => {
                    self.last = LastEnvelope::Sent;
                    return Some(encode_event(&self.envelope.error(&from_store(error))).into());
                }
            };
            let mut text = String::new();
            while let Some(next) = event {
                if matches!(next, FollowEvent::End(_)) {
                    text.push_str(&self.begin_result().await);
                    break;
                }
                text.extend(self.event_json(next).map(|event| encode_event(&self.envelope.stream(event))));
                event = self.follower.next_ready();
            }
            if !text.is_empty() {
                return Some(text.into());
            }
        }
    }

    /// Begins the envelope with the result. Returns an envelope with the error if the result cannot be read.
    async fn begin_result(&mut self) -> String {
        let envelope = &self.envelope;
        let encode = |result: &_| encode_event(&envelope.response(serde_json::to_value(result).unwrap_or_default()));
        match ResultChunks::start(&self.app, self.scope, self.follower.id(), encode).await {
            Ok(result) => {
                self.last = LastEnvelope::Result(Box::new(result));
                String::new()
            }
            Err(error) => {
                self.last = LastEnvelope::Sent;
                encode_event(&self.envelope.error(&from_store(error)))
            }
        }
    }

    /// Returns the content of the envelope for an event. Rich output is complete: its pieces before the last one yield
    /// `None`. Output may be in pieces.
    fn event_json(&mut self, event: FollowEvent) -> Option<Value> {
        let FollowEvent::Piece(piece) = event else { return Some(event_json(event)) };
        if piece.event.kind != ExecutionEventKind::RichOutput {
            return Some(event_json(FollowEvent::Event(piece.event)));
        }
        self.rich_output.push_str(&piece.event.text);
        if !piece.is_last {
            return None;
        }
        let text = std::mem::take(&mut self.rich_output);
        Some(event_json(FollowEvent::Event(ExecutionEvent { text, ..piece.event })))
    }
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
        // The last envelope contains the result. Pieces are joined or are output.
        FollowEvent::End(_) | FollowEvent::Piece(_) => Value::Null,
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
