//! The assistant as an agent among others: an execution is one turn in a conversation that is kept. It starts no process,
//! and what destroys is held in the conversation, where its user can confirm it.

use std::sync::Arc;
use std::time::Instant;

use assistant::turn::{History, Turn, TurnOutcome, TurnStream};
use assistant::{AgentResult, ErrorType, Request, Status, TurnEvent};
use futures::future::BoxFuture;
use model::Invalid;
use model::agent::{ASSISTANT, Agent, Draft, Redact, Seconds};
use model::conversation::{self, Id, MAX_INPUT};
use model::execution::Outcome;
use model::invalid::Checks;
use supervisor::{Desk, Ended, Failure, Run, Runner, Stream};
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::app::Fading;

/// The one parameter it knows.
const CONVERSATION: &str = "conversation_id";
const PLACES: u32 = 10;
const QUEUE: u32 = 100;
/// Longer than a turn may be.
const MAX_INPUT_BYTES: u64 = 64 << 10;
/// A turn has limits of its own, and they are shorter.
const TIMEOUT: Seconds = Seconds::new(600);

/// Carries turns out for whoever runs the agent `assistant`.
pub(crate) struct Assistant(Fading);

impl Assistant {
    pub(crate) fn of(app: &App) -> Self {
        Self(app.downgrade())
    }

    pub(crate) fn agent() -> Agent {
        let draft = Draft {
            id: Some(ASSISTANT.to_owned()),
            name: Some("Assistant".to_owned()),
            description: Some("adds, lists, changes and completes your tasks, and reminds you of them".to_owned()),
            max_concurrent_executions: Some(PLACES),
            queue_depth: Some(QUEUE),
            max_input_size: Some(MAX_INPUT_BYTES),
            timeout: Some(TIMEOUT),
            allow: Some(vec!["*".to_owned()]),
            // Whom to write to is part of many a task.
            redact: Some(vec![Redact::Secrets]),
            ..Draft::default()
        };
        draft.built_in()
    }
}

impl Runner for Assistant {
    fn check(&self, request: &supervisor::Request) -> Result<(), Invalid> {
        read(request).map(drop)
    }

    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            let Some(app) = self.0.upgrade() else { return Failure::system("adjutant is stopping").into() };
            match turn(&app, run, desk).await {
                Ok(ended) => ended,
                Err(failure) => failure.into(),
            }
        })
    }
}

/// The message, and the conversation in which it is said: where none is named, one begins under the id of the execution.
fn read(request: &supervisor::Request) -> Result<(String, Option<Id>), Invalid> {
    let mut checks = Checks::default();
    let message = checks.take(conversation::input("input", &request.input, MAX_INPUT));
    for name in request.parameters.keys().filter(|name| *name != CONVERSATION) {
        checks.fail(format!("parameters.{name}"), "unknown", format!("is not known: there is only {CONVERSATION}"));
    }
    let id = request.parameters.get(CONVERSATION).map(|id| id.as_str().unwrap_or_default().parse::<Id>());
    if let Some(Err(invalid)) = &id {
        for violation in &invalid.violations {
            checks.fail(format!("parameters.{CONVERSATION}"), &violation.rule, violation.message.clone());
        }
    }
    checks.finish(message.map(|message| (message, id.and_then(Result::ok))))
}

/// Runs the turn and reports its events. A turn that is stopped ends with what it has done, and its exchange is stored.
async fn turn(app: &App, run: &Run, desk: &Desk) -> Result<Ended, Failure> {
    let (message, id) = read(&run.request).map_err(|invalid| Failure::permanent(invalid.to_string()))?;
    let zone = app.in_force().settings.time_zone.clone();
    let user = run.request.asker.clone().unwrap_or_default().user(run.owner, zone);
    let cancelled = CancellationToken::new();
    let turn = Turn {
        request: Request::new(message, &user, app.reader(), app.clock().now()),
        user,
        history: History::Stored(id.unwrap_or_else(|| run.id.into())),
        key: None,
        request_id: run.id.to_string(),
        started: Instant::now(),
        include_reading: false,
        cancelled: cancelled.clone(),
    };
    let mut stream = tokio::select! {
        started = super::start(app, turn) => started.map_err(|error| lost(&error))?,
        _ = desk.stopped() => return Ok(Ended { stopped: true, ..Ended::default() }),
    };
    let stop = async {
        desk.stopped().await;
        cancelled.cancel();
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = report(&mut stream, desk) => outcome,
        () = stop => None,
    };
    let Some(outcome) = outcome else { return Err(Failure::system("the turn has no end")) };
    let result = &outcome.result;
    desk.output(Stream::Stdout, result.response.as_bytes()).await;
    if let Some(held) = &result.held {
        let words = format!("nothing was changed yet: '{}' in the conversation confirms it\n", held.phrase);
        desk.output(Stream::Stderr, words.as_bytes()).await;
    }
    let stopped = desk.is_stopped().is_some() && !result.success;
    // A pending confirmation is a question to the caller.
    let outcome = result.held.is_some().then_some(Outcome::Asks);
    Ok(Ended { stopped, failure: failure_of(result), outcome, ..Ended::default() })
}

/// Reports the events of a turn until its end. Returns the outcome.
async fn report(stream: &mut TurnStream, desk: &Desk) -> Option<Arc<TurnOutcome>> {
    while let Some((_, event)) = stream.next().await {
        match event {
            TurnEvent::Done(outcome) => return Some(outcome),
            event => tell(desk, &event),
        }
    }
    None
}

/// Tools that were called, and what went wrong, for those who follow.
fn tell(desk: &Desk, event: &TurnEvent) {
    let line = match event {
        TurnEvent::ToolCall { tool_name, status: Status::Completed, .. } => format!("{tool_name} completed\n"),
        TurnEvent::ToolCall { tool_name, status: Status::Failed, .. } => format!("{tool_name} failed\n"),
        TurnEvent::Error { message, .. } => format!("{message}\n"),
        _ => return,
    };
    desk.output_now(Stream::Stderr, line.as_bytes());
}

fn failure_of(result: &AgentResult) -> Option<Failure> {
    let words = result.error.clone().filter(|_| !result.success)?;
    Some(match result.error_type {
        Some(ErrorType::Timeout | ErrorType::ModelUnavailable | ErrorType::McpUnavailable) => Failure::transient(words),
        Some(ErrorType::Internal) => Failure::system(words),
        _ => Failure::agent(words),
    })
}

fn lost(error: &store::Error) -> Failure {
    match error {
        store::Error::NotFound => Failure::permanent("there is no such conversation"),
        error => Failure::system(error.to_string()),
    }
}
