//! Turns of the assistant over HTTP and as an agent. `assistant::turn` runs them. Each file here encodes their events
//! for one interface: [`sse`] for `/chat/stream`, [`document`] for `/chat` and `/agent/run`, [`agent`] for executions
//! and A2A.

mod agent;
pub(crate) mod document;
pub(crate) mod sse;

use std::sync::Arc;
use std::time::Instant;

use assistant::turn::{EndHook, StreamSource, Turn, TurnStream};
use assistant::{AgentRunner, TurnLimits};
use axum::http::HeaderValue;
use axum::response::Response;
use tracing::Instrument;

pub(crate) use agent::AssistantRunner;

use crate::idempotency::REPLAYED;
use crate::request::TurnSummary;
use crate::{App, Problem};

/// Starts a turn under the active configuration. Fails if the conversation is not found or the database fails.
async fn start(app: &App, turn: Turn) -> store::Result<TurnStream> {
    let config = app.active_config();
    let settings = &config.settings;
    let limits = TurnLimits {
        max_tool_calls: settings.max_tool_calls,
        time_limit: settings.request_timeout,
        max_answer_chars: settings.max_answer_chars,
    };
    let runner = AgentRunner { models: config.models.clone(), limits };
    app.turns().start(runner, config.tools.clone(), turn).await
}

/// Runs the turn of a request, or joins or replays the turn with the same idempotency key. Returns the response that
/// `encode` makes of its events, with the extensions for the request log. A replay has the header
/// `Idempotent-Replayed`.
///
/// `seen` is the number of events that the client already has; `encode` gets the later ones. Fails with 404 if the
/// conversation is not found, with the problem of a used idempotency key, or if the database fails.
pub(crate) async fn respond(
    app: &App,
    turn: Turn,
    seen: usize,
    encode: impl AsyncFnOnce(TurnStream) -> Response,
) -> Result<Response, Problem> {
    let started = turn.started;
    let stream = start(app, turn).await.map_err(Problem::from_store("conversation"))?;
    let summary = summarize(app, &stream, started);
    let source = stream.source();
    let mut response = encode(stream.from_offset(seen)).await;
    if source == StreamSource::Replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response.extensions_mut().extend(summary);
    Ok(response)
}

/// Returns the function that counts a turn in the metrics when it ends. A client that has the last event finds the turn
/// in the metrics.
pub(crate) fn count_at_end(app: &App) -> EndHook {
    let app = app.clone();
    Arc::new(move |outcome| app.metrics().count_turn(outcome, app.active_config().settings.tool_names))
}

/// Returns the extensions of the response that the log needs. An ended turn is logged with the response. If a started
/// turn is still running, its log entry is written in the background when it ends. A joined turn is logged only by the
/// request that started it. A replayed turn has no summary.
fn summarize(app: &App, stream: &TurnStream, started: Instant) -> axum::http::Extensions {
    let mut summary = axum::http::Extensions::new();
    match (stream.source(), stream.try_outcome()) {
        (StreamSource::Replayed, _) => {}
        (StreamSource::Started, Some(outcome)) => drop(summary.insert(TurnSummary::Ended(outcome))),
        (StreamSource::Joined, _) => drop(summary.insert(TurnSummary::Deferred)),
        (StreamSource::Started, None) => {
            summary.insert(TurnSummary::Deferred);
            let stream = stream.from_start();
            let log_at_end = async move { TurnSummary::Ended(stream.outcome().await).log(true, started) };
            app.background_tasks().spawn(log_at_end.in_current_span());
        }
    }
    summary
}
