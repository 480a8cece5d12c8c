//! One turn of a conversation with the assistant, from a checked request to the answer (CHAT-1 … CHAT-7).
//!
//! With a model that answers at once the whole turn is one transaction: what was said before is read, tools are called,
//! the exchange and the answer to its `Idempotency-Key` are written, or none of it happened. With a model that takes its
//! time every tool call is a transaction and the exchange is written at the end ([`patient`]). Either way the turn does
//! not depend on whether the client still listens.

mod live;
mod patient;
mod runner;
pub(crate) mod sse;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use assistant::{AgentContext, AgentResult, AgentRunner, ErrorType, Event, Limits, Request};
use axum::http::HeaderValue;
use axum::response::Response;
use jiff::Timestamp;
use model::conversation::{Id, Message, Role};
use model::{Clock, User};
use serde::Serialize;
use store::Conn;
use store::idempotency::{Key, Reply, once};
use tools::Tools;
use tracing::Instrument;
use utoipa::ToSchema;

pub(crate) use live::Turns;
pub(crate) use runner::Assistant;

use crate::request::Ended;
use crate::{App, Problem, change};

/// How much of a conversation the assistant looks back on.
const HISTORY: i64 = 50;

/// A turn to be carried out.
pub(crate) struct Turn {
    pub(crate) user: User,
    pub(crate) request: Request,
    pub(crate) place: Place,
    pub(crate) key: Option<Key>,
    pub(crate) request_id: String,
    /// How many events of the stream the client has seen already.
    pub(crate) seen: usize,
    pub(crate) form: Form,
    pub(crate) started: Instant,
}

/// Where the conversation is.
pub(crate) enum Place {
    /// Kept here, under this id.
    Kept(Id),
    /// With the caller, who sends it along; nothing of it is stored.
    Given(AgentContext),
}

/// How the turn is told.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// As events.
    Stream,
    /// As one document, which this makes.
    Document(fn(&Told<'_>) -> serde_json::Result<String>),
}

/// A turn that has ended.
pub(crate) struct Told<'a> {
    pub(crate) result: &'a AgentResult,
    pub(crate) request: &'a Request,
    pub(crate) conversation_id: Option<&'a Id>,
    pub(crate) request_id: &'a str,
    pub(crate) model: &'a str,
    pub(crate) milliseconds: u64,
}

/// What the replies of outside models cost.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = TokenUsage)]
pub(crate) struct Usage {
    input_tokens: u64,
    /// Reasoning included.
    output_tokens: u64,
    reasoning_tokens: u64,
    total_tokens: u64,
}

impl Told<'_> {
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.result.usage().map(|usage| Usage {
            input_tokens: usage.input,
            output_tokens: usage.output,
            reasoning_tokens: usage.reasoning,
            total_tokens: usage.input + usage.output,
        })
    }
}

/// Carries a turn out and answers it.
pub(crate) async fn carry_out(app: &App, turn: Turn) -> Result<Response, Problem> {
    let (runner, at_once_will_do) = runner(app);
    if at_once_will_do {
        let (form, seen) = (turn.form, turn.seen);
        let (reply, earlier, ended) = at_once(app, runner, turn).await?;
        Ok(respond(form, reply, earlier, seen, ended))
    } else {
        patient::carry_out(app, runner, turn).await
    }
}

/// Who carries turns out, and whether that waits for nobody else.
fn runner(app: &App) -> (AgentRunner, bool) {
    let in_force = app.in_force();
    let limits = Limits { max_tool_calls: in_force.settings.max_tool_calls, time: in_force.settings.request_timeout };
    let runner = AgentRunner { models: in_force.models.clone(), limits };
    let at_once = runner.models.first().is_immediate() && in_force.tools.are_ours();
    (runner, at_once)
}

/// The whole turn in one transaction.
async fn at_once(app: &App, runner: AgentRunner, turn: Turn) -> Result<(Reply, bool, Ended), Problem> {
    let (clock, tools, owner) = (app.clock().clone(), app.tools(), turn.user.id);
    let now = clock.now();
    let ended = Arc::new(OnceLock::new());
    let (summary, limit) = (ended.clone(), app.in_force().settings.request_timeout);
    let Turn { user, request, place, key, request_id, form, started, .. } = turn;
    let fallback = (request.clone(), request_id.clone(), place.id().cloned(), runner.models.clone());
    let job = async move |conn: &mut Conn| -> store::Result<Reply> {
        let mut events = Vec::with_capacity(8);
        let id = place.id().cloned();
        let mut watch = |event| events.push(event);
        let within = Within { runner: &runner, tools: &tools, clock: &clock, now };
        let result = within.carry_out(conn, user, place, &request, &mut watch).await?;
        let told = Told {
            result: &result,
            request: &request,
            conversation_id: id.as_ref(),
            request_id: &request_id,
            model: runner.models.first().name(),
            milliseconds: milliseconds(started),
        };
        let body = render(form, &events, &told)?;
        let _ = summary.set(Ended::of(&result));
        Ok(Reply { status: 200, body })
    };
    let span = tracing::Span::current();
    let written = app.store().write(move |conn| {
        let job =
            async move { once(conn, owner, key.as_ref(), now, |conn| Box::pin(async move { job(conn).await })).await };
        Box::pin(job.instrument(span))
    });
    let failed = match tokio::time::timeout(limit, written).await {
        Ok(Ok((reply, earlier))) => {
            let ended = ended.get().cloned().unwrap_or_default();
            app.in_force().tools.committed(&used(&ended, app));
            return Ok((reply, earlier, ended));
        }
        Ok(Err(store::Error::Unavailable(cause))) => {
            tracing::error!(
                event = "error_occurred",
                error_type = "unavailable",
                error_message = cause,
                recoverable = true
            );
            AgentResult::failed(ErrorType::McpUnavailable, assistant::trouble())
        }
        Ok(Err(error)) => return Err(Problem::from_store("conversation")(error)),
        Err(_) => AgentResult::failed(ErrorType::Timeout, assistant::timed_out()),
    };
    let (request, request_id, id, models) = fallback;
    let told = Told {
        result: &failed,
        request: &request,
        conversation_id: id.as_ref(),
        request_id: &request_id,
        model: models.first().name(),
        milliseconds: milliseconds(started),
    };
    let body = render(form, &[failure(&failed)], &told)?;
    Ok((Reply { status: 200, body }, false, Ended::of(&failed)))
}

/// A turn that is part of somebody's transaction.
struct Within<'a> {
    runner: &'a AgentRunner,
    tools: &'a Tools,
    clock: &'a Clock,
    now: Timestamp,
}

impl Within<'_> {
    async fn carry_out(
        &self,
        conn: &mut Conn,
        user: User,
        place: Place,
        request: &Request,
        watch: &mut (dyn FnMut(Event) + Send),
    ) -> store::Result<AgentResult> {
        let owner = user.id;
        let (context, id) = match place {
            Place::Kept(id) => {
                let history = store::conversations::open(conn, owner, &id, HISTORY).await?;
                (AgentContext::kept(user, history), Some(id))
            }
            Place::Given(context) => (context, None),
        };
        let mut toolbox = self.tools.within(&context.user, conn).in_conversation(id.as_ref());
        let result = self.runner.stream(&context, request, &mut toolbox, watch).await?;
        if let Some(id) = &id {
            let exchange = exchange(self.clock, request, self.now, &result);
            store::conversations::append(conn, owner, id, &exchange, self.clock.now()).await?;
        }
        Ok(result)
    }
}

/// Which of our own tools a turn has used.
fn used(ended: &Ended, app: &App) -> Vec<tools::Tool> {
    let specs = tools::catalog::ours(app.in_force().settings.tool_names, tools::Offer::Schedules);
    let known = |(name, _): &(String, bool)| specs.iter().find(|spec| spec.name == *name)?.tool;
    ended.tools.iter().filter_map(known).collect()
}

/// The event that tells of a turn that failed as a whole.
fn failure(result: &AgentResult) -> Event {
    Event::Error {
        error_type: result.error_type.unwrap_or(ErrorType::Internal),
        message: result.response.clone(),
        recoverable: false,
    }
}

fn render(form: Form, events: &[Event], told: &Told<'_>) -> store::Result<String> {
    let body = match form {
        Form::Stream => sse::whole(events, told),
        Form::Document(make) => make(told),
    };
    body.map_err(|error| store::Error::Corrupt(error.to_string()))
}

fn respond(form: Form, reply: Reply, earlier: bool, seen: usize, ended: Ended) -> Response {
    let mut response = match form {
        Form::Stream => {
            let mut response = sse::respond(sse::after(&reply.body, seen).to_owned().into());
            if earlier {
                response.headers_mut().insert(change::REPLAYED, HeaderValue::from_static("true"));
            }
            response
        }
        Form::Document(_) => change::respond(reply, earlier),
    };
    response.extensions_mut().insert(ended);
    response
}

/// What was said and what was answered, as it is kept.
fn exchange(clock: &Clock, request: &Request, asked: Timestamp, result: &AgentResult) -> [Message; 2] {
    let pending = result.held.as_ref().and_then(|held| serde_json::to_value(held).ok());
    [
        Message {
            id: clock.id(),
            role: Role::User,
            content: request.message.clone(),
            timestamp: asked,
            tool_calls: Vec::new(),
            pending: None,
        },
        Message {
            id: clock.id(),
            role: Role::Assistant,
            content: result.response.clone(),
            timestamp: clock.now(),
            tool_calls: result.tool_calls.clone(),
            pending,
        },
    ]
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Place {
    fn id(&self) -> Option<&Id> {
        match self {
            Self::Kept(id) => Some(id),
            Self::Given(_) => None,
        }
    }
}

impl Ended {
    fn of(result: &AgentResult) -> Self {
        let asked = result.asked.clone();
        let tools = result.tool_calls.iter().map(|call| (call.tool_name.clone(), call.error.is_none())).collect();
        Self::new(tools, asked, result.success)
    }
}
