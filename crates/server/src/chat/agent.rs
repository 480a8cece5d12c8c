//! Runs the assistant as an agent: one execution is one turn in a stored conversation. It starts no process.
//! Destructive calls are held in the conversation until the user confirms them.

use std::sync::Arc;
use std::time::Instant;

use assistant::turn::{History, Turn, TurnOutcome, TurnStream};
use assistant::{AgentResult, ErrorType, ToolCallStatus, TurnEvent, TurnRequest};
use futures::future::BoxFuture;
use model::Invalid;
use model::agent::{ASSISTANT_ID, Agent, AgentDraft, RedactionKind, Seconds};
use model::conversation::{self, ConversationId, MAX_CHAT_INPUT_CHARS};
use model::execution::ExecutionOutcome;
use model::invalid::Checks;
use supervisor::{AgentRun, RunFailure, RunRecorder, RunRequest, RunResult, Runner, StreamName};
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::app::WeakApp;

/// The only parameter of the agent.
const CONVERSATION_PARAMETER: &str = "conversation_id";
const MAX_CONCURRENT_EXECUTIONS: u32 = 10;
const QUEUE_DEPTH: u32 = 100;
/// More than the longest message of a turn.
const MAX_INPUT_BYTES: u64 = 64 << 10;
/// Longer than the time limit of a turn, so that the turn ends by its own limit.
const TIMEOUT: Seconds = Seconds::new(600);

/// The runner of the agent `assistant`.
pub(crate) struct AssistantRunner(WeakApp);

impl AssistantRunner {
    /// Creates the runner. It does not keep the app alive.
    pub(crate) fn new(app: &App) -> Self {
        Self(app.downgrade())
    }

    /// Returns the default configuration of the agent. All users may run it. It has ten slots, a queue of 100, an input
    /// of at most 64 KiB and a timeout of ten minutes. Only secrets are redacted.
    pub(crate) fn agent() -> Agent {
        let draft = AgentDraft {
            id: Some(ASSISTANT_ID.to_owned()),
            name: Some("Assistant".to_owned()),
            description: Some("adds, lists, changes and completes your tasks, and reminds you of them".to_owned()),
            max_concurrent_executions: Some(MAX_CONCURRENT_EXECUTIONS),
            queue_depth: Some(QUEUE_DEPTH),
            max_input_size: Some(MAX_INPUT_BYTES),
            timeout: Some(TIMEOUT),
            allow: Some(vec!["*".to_owned()]),
            // E-mail addresses are not redacted, because many tasks contain one.
            redact: Some(vec![RedactionKind::Secrets]),
            ..AgentDraft::default()
        };
        draft.into_built_in()
    }
}

impl Runner for AssistantRunner {
    fn check(&self, request: &RunRequest) -> Result<(), Invalid> {
        parse_request(request).map(drop)
    }

    /// Runs one turn and records its start. Fails with a system failure if the server is stopping, otherwise like
    /// [`run_turn`].
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            let Some(app) = self.0.upgrade() else { return RunFailure::system("adjutant is stopping").into() };
            match run_turn(&app, run, recorder).await {
                Ok(result) => result,
                Err(failure) => failure.into(),
            }
        })
    }
}

/// Returns the message, and the conversation if the request names one. Fails with all violations: the message is empty
/// or too long, a parameter is not `conversation_id`, or its value is not a conversation id.
fn parse_request(request: &RunRequest) -> Result<(String, Option<ConversationId>), Invalid> {
    let mut checks = Checks::default();
    let message = checks.take(conversation::clean_message("input", &request.input, MAX_CHAT_INPUT_CHARS));
    for name in request.parameters.keys().filter(|name| *name != CONVERSATION_PARAMETER) {
        checks.fail(
            format!("parameters.{name}"),
            "unknown",
            format!("is unknown; the only parameter is {CONVERSATION_PARAMETER}"),
        );
    }
    let id = request
        .parameters
        .get(CONVERSATION_PARAMETER)
        .map(|id| id.as_str().unwrap_or_default().parse::<ConversationId>());
    if let Some(Err(invalid)) = &id {
        for violation in &invalid.violations {
            checks.fail(format!("parameters.{CONVERSATION_PARAMETER}"), &violation.rule, violation.message.clone());
        }
    }
    checks.finish(message.map(|message| (message, id.and_then(Result::ok))))
}

/// Runs the turn and records its events. Without a conversation, a new one starts under the id of the execution. The
/// reply is written to stdout, also of an unsuccessful turn. A pending confirmation has the outcome `InputRequired` and
/// a hint on stderr. The turn is not counted in the metrics.
///
/// A stop before the turn starts returns a stopped result. A turn that is stopped while it runs ends with the work done
/// so far, and its messages are stored. It counts as stopped only if it did not succeed. An unsuccessful turn has the
/// failure of [`turn_failure`]. Fails permanently if the request is invalid or the conversation is not found. Fails
/// with a system failure if the database fails or the turn ends without an outcome.
async fn run_turn(app: &App, run: &AgentRun, recorder: &RunRecorder) -> Result<RunResult, RunFailure> {
    let (message, id) = parse_request(&run.request).map_err(|invalid| RunFailure::permanent(invalid.to_string()))?;
    let zone = app.active_config().settings.time_zone.clone();
    let user = run.request.requester.clone().unwrap_or_default().into_user(run.owner, zone);
    let cancelled = CancellationToken::new();
    let turn = Turn {
        request: TurnRequest::new(message, &user, app.utterance_parser(), app.clock().now()),
        user,
        history: History::Stored(id.unwrap_or_else(|| run.id.into())),
        key: None,
        request_id: run.id.to_string(),
        started: Instant::now(),
        include_utterance: false,
        cancelled: cancelled.clone(),
        on_end: None,
    };
    let mut stream = tokio::select! {
        started = super::start(app, turn) => started.map_err(|error| start_failure(&error))?,
        _ = recorder.stop_requested() => return Ok(RunResult { stopped: true, ..RunResult::default() }),
    };
    let stop = async {
        recorder.stop_requested().await;
        cancelled.cancel();
        std::future::pending::<()>().await;
    };
    let outcome = tokio::select! {
        outcome = record_events(&mut stream, recorder) => outcome,
        () = stop => None,
    };
    let Some(outcome) = outcome else { return Err(RunFailure::system("the turn ended without a result")) };
    let result = &outcome.result;
    recorder.output(StreamName::Stdout, result.response.as_bytes()).await;
    if let Some(pending) = &result.pending {
        let words = format!("confirmation required: reply '{}' in the conversation\n", pending.phrase);
        recorder.output(StreamName::Stderr, words.as_bytes()).await;
    }
    let stopped = recorder.stop_reason().is_some() && !result.success;
    // A pending confirmation is a question to the caller.
    let outcome = result.pending.is_some().then_some(ExecutionOutcome::InputRequired);
    Ok(RunResult { stopped, failure: turn_failure(result), outcome, ..RunResult::default() })
}

/// Records the events of a turn until its end with [`record_event`]. Returns the outcome, or `None` if the stream ends
/// without one.
async fn record_events(stream: &mut TurnStream, recorder: &RunRecorder) -> Option<Arc<TurnOutcome>> {
    while let Some((_, event)) = stream.next().await {
        match event {
            TurnEvent::Done(outcome) => return Some(outcome),
            event => record_event(recorder, &event),
        }
    }
    None
}

/// Writes one line to standard error for each completed or failed tool call, with its name, and for each error, with
/// its message. Other events are ignored.
fn record_event(recorder: &RunRecorder, event: &TurnEvent) {
    let line = match event {
        TurnEvent::ToolCall { tool_name, status: ToolCallStatus::Completed, .. } => format!("{tool_name} completed\n"),
        TurnEvent::ToolCall { tool_name, status: ToolCallStatus::Failed, .. } => format!("{tool_name} failed\n"),
        TurnEvent::Error { message, .. } => format!("{message}\n"),
        _ => return,
    };
    recorder.output_now(StreamName::Stderr, line.as_bytes());
}

/// Returns the failure of an unsuccessful turn, or `None` if it succeeded or has no error message. It is transient
/// after a timeout or if a model or MCP server is unavailable. It is a system failure for internal errors, otherwise
/// one of the agent.
fn turn_failure(result: &AgentResult) -> Option<RunFailure> {
    let message = result.error.clone().filter(|_| !result.success)?;
    Some(match result.error_type {
        Some(ErrorType::Timeout | ErrorType::ModelUnavailable | ErrorType::McpUnavailable) => {
            RunFailure::transient(message)
        }
        Some(ErrorType::Internal) => RunFailure::system(message),
        _ => RunFailure::agent(message),
    })
}

/// Converts an error at the start of a turn. A missing conversation is permanent, other errors are system failures.
fn start_failure(error: &store::Error) -> RunFailure {
    match error {
        store::Error::NotFound => RunFailure::permanent("conversation not found"),
        error => RunFailure::system(error.to_string()),
    }
}
