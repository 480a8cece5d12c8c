//! What is done about an envelope: the one path of every execution, as any other door takes it.

use ::a2a::{Error, Kind};
use axum::response::Response;
use futures::StreamExt;
use model::agent::ASSISTANT;
use model::conversation;
use serde_json::{Value, json};
use store::executions::{Kind as What, Whose};
use supervisor::{Draft, Origin, Refused, Told};
use uuid::Uuid;

use super::message::{Envelope, named};
use crate::App;
use crate::a2a::admission::{Offered, made_of};
use crate::a2a::caller::Caller;
use crate::a2a::{faults, terms};
use crate::event_stream;
use crate::handlers;

/// In which conversation the assistant is spoken to.
const CONVERSATION: &str = "conversation_id";

/// S2's GetA2AStatus: how busy the agent is, and what it can do.
pub(super) async fn status(app: &App, offered: &Offered) -> Result<Value, Error> {
    let agent = &offered.entry.agent;
    let status = handlers::agents::status_of(app, agent).await.map_err(from_store)?;
    let mut status = serde_json::to_value(status).map_err(broken)?;
    status["protocol"] = json!("a2a");
    status["supported_versions"] = json!(["1.0", "0.3"]);
    status["transports"] = json!(offered.endpoint().transports);
    status["capabilities"] = json!(offered.endpoint().advertised(agent));
    Ok(status)
}

/// Puts a run into the queue.
pub(super) async fn begin(
    app: &App,
    caller: &Caller,
    mut draft: Draft,
    limit: u64,
    envelope: &Envelope,
) -> Result<Uuid, Error> {
    if draft.input.len() as u64 > limit {
        return Err(terms::too_large("params.input", limit));
    }
    if let Some(conversation) = envelope.context.conversation_id.as_ref().filter(|_| caller.entry.agent.id == ASSISTANT)
    {
        let parameters = draft.parameters.get_or_insert_default();
        parameters.entry(CONVERSATION).or_insert_with(|| json!(conversation_id(caller, conversation)));
    }
    let mut origin = Origin::default();
    origin.context.insert("a2a".to_owned(), json!({"message_id": envelope.id, "from": envelope.context.from}));
    let supervisor = app.supervisor();
    let submission = supervisor.prepare_with(&caller.entry, &caller.user, draft, origin).map_err(from_refused)?;
    let supervisor = supervisor.clone();
    let queued = app.store().transaction(async move |tx| supervisor.enqueue(tx, submission).await);
    queued.await.map_err(from_store)
}

/// Callers name conversations as they like; ours have ids.
fn conversation_id(caller: &Caller, named: &str) -> String {
    match named.parse::<conversation::Id>() {
        Ok(id) => id.to_string(),
        Err(_) => made_of(&format!("adjutant:a2a:conversation:{}:{named}", caller.user.id)).to_string(),
    }
}

/// The result of a run, once it has ended.
pub(super) async fn end(app: &App, caller: &Caller, id: Uuid) -> Result<Value, Error> {
    let whose = Whose::Users(caller.user.id);
    let ended = app.stopping().run_until_cancelled(app.supervisor().wait(whose, id)).await;
    let stops = || Error::new(Kind::Busy, format!("the server stops; the execution {id} goes on: ask for it later"));
    ended.ok_or_else(stops)?.map_err(from_store)?;
    result(app, whose, id).await
}

async fn result(app: &App, whose: Whose, id: Uuid) -> Result<Value, Error> {
    let mut reader = app.store().reader().await.map_err(from_store)?;
    let result = store::executions::result(&mut reader, whose, id).await.map_err(from_store)?;
    serde_json::to_value(result).map_err(broken)
}

/// What happens in a run, an envelope each, and its result in the last one.
pub(super) fn follow(app: App, caller: Caller, id: Uuid, envelope: Envelope) -> Response {
    let whose = Whose::Users(caller.user.id);
    let follower = app.supervisor().follow(whose, id, 0);
    let stopping = app.stopping().clone();
    let state = Some((app, follower, envelope));
    let events = futures::stream::unfold(state, move |state| async move {
        let (app, mut follower, envelope) = state?;
        let (next, is_last) = match follower.next().await {
            Ok(Some(Told::End(_))) => match result(&app, whose, id).await {
                Ok(result) => (envelope.response(result), true),
                Err(error) => (envelope.error(&error), true),
            },
            Ok(Some(told)) => (envelope.stream(event(told)), false),
            Ok(None) => return None,
            Err(error) => (envelope.error(&from_store(error)), true),
        };
        Some((block(&next), (!is_last).then_some((app, follower, envelope))))
    });
    // The run goes on when the server stops, and its result is kept.
    event_stream::stream(events.take_until(stopping.cancelled_owned()))
}

fn block(envelope: &Value) -> String {
    event_stream::encode(None, "", &envelope.to_string())
}

fn event(told: Told) -> Value {
    match told {
        Told::Event(told) if told.kind == What::State => json!({"event": "state", "state": told.text, "at": told.at}),
        Told::Event(told) if told.kind == What::Gap => {
            let missing: u64 = told.text.parse().unwrap_or_default();
            json!({"event": "output", "stream": told.stream, "text": "", "missing_bytes": missing, "at": told.at})
        }
        Told::Event(told) if told.kind == What::Said => {
            json!({"event": "said", "said": serde_json::from_str::<Value>(&told.text).unwrap_or_default(), "at": told.at})
        }
        Told::Event(told) => json!({"event": "output", "stream": told.stream, "text": told.text, "at": told.at}),
        Told::Usage(usage) => json!({"event": "usage", "resource_usage": usage}),
        // The last envelope says it.
        Told::End(_) => Value::Null,
    }
}

fn from_refused(refused: Refused) -> Error {
    match refused {
        Refused::NoAgent | Refused::Disabled(_) | Refused::Forbidden(_) | Refused::NotHere(_) => {
            Error::new(Kind::UnsupportedOperation, refused.to_string())
        }
        Refused::TooLarge { limit } => terms::too_large("params.input", limit),
        Refused::Invalid(mut invalid) => {
            for violation in &mut invalid.violations {
                violation.field = format!("params.{}", violation.field);
            }
            named(Kind::InvalidParams, invalid)
        }
        Refused::Broken(cause) => faults::internal(&cause),
    }
}

/// Of executions, not of tasks.
fn from_store(error: store::Error) -> Error {
    match error {
        store::Error::NotFound => Error::new(Kind::NotFound, "there is no such execution any more"),
        other => faults::from_store(other, ""),
    }
}

fn broken(error: serde_json::Error) -> Error {
    faults::internal(&error.to_string())
}
