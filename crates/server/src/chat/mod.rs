//! Turns of the assistant over HTTP and as an agent. The engine is `assistant::turn`; each file here encodes its events for
//! one interface: [`sse`] for `/chat/stream`, [`document`] for `/chat` and `/agent/run`, [`agent`] for executions, and
//! thereby for A2A.

mod agent;
pub(crate) mod document;
pub(crate) mod sse;

use std::time::Instant;

use assistant::turn::{Source, Turn, TurnStream};
use assistant::{AgentRunner, Limits};
use axum::http::HeaderValue;
use axum::response::Response;
use tracing::Instrument;

pub(crate) use agent::Assistant;

use crate::change::REPLAYED;
use crate::request::TurnSummary;
use crate::{App, Problem};

/// Starts a turn under the settings in force.
async fn start(app: &App, turn: Turn) -> store::Result<TurnStream> {
    let in_force = app.in_force();
    let limits = Limits { max_tool_calls: in_force.settings.max_tool_calls, time: in_force.settings.request_timeout };
    let runner = AgentRunner { models: in_force.models.clone(), limits };
    app.turns().start(runner, in_force.tools.clone(), turn).await
}

/// Runs the turn of a request and answers with what `encode` makes of its events. `seen` is how many of them the client
/// has.
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
    if source == Source::Replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response.extensions_mut().extend(summary);
    Ok(response)
}

/// Returns what the log and the metrics of the request need. If the turn goes on, they are written when it ends.
fn summarize(app: &App, stream: &TurnStream, started: Instant) -> axum::http::Extensions {
    let mut summary = axum::http::Extensions::new();
    match (stream.source(), stream.outcome_now()) {
        (Source::Replayed, _) => {}
        (Source::Started, Some(outcome)) => drop(summary.insert(TurnSummary::Ended(outcome))),
        (Source::Joined, _) => drop(summary.insert(TurnSummary::Deferred)),
        (Source::Started, None) => {
            summary.insert(TurnSummary::Deferred);
            let stream = stream.second();
            let app = app.clone();
            let tasks = app.tasks().clone();
            let follow = async move {
                let summary = TurnSummary::Ended(stream.outcome().await);
                app.metrics().count_turn(&summary, app.in_force().settings.tool_names);
                summary.log(true, started);
            };
            tasks.spawn(follow.in_current_span());
        }
    }
    summary
}
