//! One turn of a conversation: a message in, typed events out, the exchange stored (CHAT-1 … CHAT-7).
//!
//! [`TurnEngine::start`] is the only function that runs turns. It returns a [`TurnStream`] that ends with
//! [`TurnEvent::Done`]. An interface encodes that stream in its own format and knows nothing else about turns.
//!
//! If the first model is immediate and no external tools are configured, the whole turn is one transaction
//! ([`immediate`]). Otherwise each tool call is a transaction, and the exchange is written at the end ([`background`]).
//! In both cases the turn runs to its end even if the stream is dropped. A request with an idempotency key runs once.
//! Repeated requests get the same events.

mod active;
mod background;
mod immediate;
mod stream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use model::conversation::{ConversationId, Message, MessageRole};
use model::{Clock, User};
use serde::{Deserialize, Serialize};
use store::Store;
use store::idempotency::{IdempotencyKey, StoredReply};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::Tools;

pub use active::ConversationLock;
pub use stream::{StreamSource, TurnStream};

use crate::{AgentContext, AgentResult, AgentRunner, ErrorType, TurnEvent, TurnRequest};
use active::ActiveTurns;

/// The number of messages of a stored conversation that a turn reads.
const MAX_HISTORY_MESSAGES: i64 = 50;

/// A message to answer.
pub struct Turn {
    pub user: User,
    pub request: TurnRequest,
    pub history: History,
    pub key: Option<IdempotencyKey>,
    /// The id of the request, for the outcome.
    pub request_id: String,
    /// The start of the request, for the duration in the outcome.
    pub started: Instant,
    /// Adds the parsed message to the outcome.
    pub include_utterance: bool,
    /// Stops a turn that runs in the background. Its changes so far remain, and the exchange is stored.
    pub cancelled: CancellationToken,
    /// Called when the turn has ended, before a reader gets [`TurnEvent::Done`].
    pub on_end: Option<EndHook>,
}

/// A function that observes the outcome of a turn. It must not block. It is not called for a turn that is joined or
/// replayed.
pub type EndHook = Arc<dyn Fn(&TurnOutcome) + Send + Sync>;

/// The conversation that a message belongs to.
pub enum History {
    /// Stored under this id. The exchange is added to it.
    Stored(ConversationId),
    /// Sent by the caller. Nothing is stored.
    FromCaller(Box<AgentContext>),
}

impl History {
    fn id(&self) -> Option<&ConversationId> {
        match self {
            Self::Stored(id) => Some(id),
            Self::FromCaller(_) => None,
        }
    }
}

/// The result of a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnOutcome {
    pub result: AgentResult,
    /// The stored conversation, if there is one.
    pub conversation_id: Option<ConversationId>,
    pub request_id: String,
    /// The model that answered.
    pub model: String,
    pub duration_ms: u64,
    /// The parsed message, if [`Turn::include_utterance`] was set.
    #[serde(rename = "reading")]
    pub utterance: Option<serde_json::Value>,
}

/// Runs turns. Cheap to clone.
#[derive(Clone)]
pub struct TurnEngine(Arc<EngineShared>);

struct EngineShared {
    store: Store,
    clock: Clock,
    /// Turns in the background.
    tasks: TaskTracker,
    active: ActiveTurns,
}

impl TurnEngine {
    /// Creates an engine on a store. Background turns are spawned on `tasks`.
    pub fn new(store: Store, clock: Clock, tasks: TaskTracker) -> Self {
        Self(Arc::new(EngineShared { store, clock, tasks, active: ActiveTurns::default() }))
    }

    /// Starts a turn and returns its events.
    ///
    /// Fails with [`store::Error::NotFound`] if the conversation belongs to another user, and with
    /// [`store::Error::KeyReused`] or [`store::Error::KeyBusy`] if the key cannot be used. Also fails if the database
    /// fails before a background turn starts, or with an error other than [`store::Error::Unavailable`] in a turn of
    /// one transaction. All other failures are part of the outcome.
    pub async fn start(&self, runner: AgentRunner, tools: Tools, turn: Turn) -> store::Result<TurnStream> {
        let is_immediate = runner.models.first().is_immediate() && tools.are_all_built_in();
        let run = TurnRun { engine: self.clone(), runner, tools, turn };
        if is_immediate { immediate::start(run).await } else { background::start(run).await }
    }

    /// Prevents turns of this conversation from starting on this node until the lock is dropped. Returns `None` if a
    /// turn is running.
    pub fn try_lock(&self, id: &ConversationId) -> Option<ConversationLock> {
        self.0.active.try_lock(id)
    }
}

/// A turn with everything that it needs to run.
struct TurnRun {
    engine: TurnEngine,
    runner: AgentRunner,
    tools: Tools,
    turn: Turn,
}

impl TurnRun {
    fn store(&self) -> &Store {
        &self.engine.0.store
    }

    fn clock(&self) -> &Clock {
        &self.engine.0.clock
    }

    /// Creates the outcome of the turn. Names the first model if no model answered. The duration counts from
    /// [`Turn::started`]. The parsed message is included only if the turn asks for it.
    fn outcome(&self, result: AgentResult) -> TurnOutcome {
        let turn = &self.turn;
        let model = result.answered_by.clone().unwrap_or_else(|| self.runner.models.first().name().to_owned());
        TurnOutcome {
            conversation_id: turn.history.id().cloned(),
            request_id: turn.request_id.clone(),
            model,
            duration_ms: u64::try_from(turn.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            utterance: turn
                .include_utterance
                .then(|| serde_json::to_value(&turn.request.utterance).unwrap_or_default()),
            result,
        }
    }

    /// Calls the hook of the turn.
    fn report_end(&self, outcome: &TurnOutcome) {
        if let Some(on_end) = &self.turn.on_end {
            on_end(outcome);
        }
    }

    /// Returns the two messages to store, with new ids: the message of the user at `asked_at`, and the reply at the
    /// current time. The reply contains the tool calls and the held calls of the result.
    fn exchange(&self, asked_at: Timestamp, result: &AgentResult) -> [Message; 2] {
        let clock = self.clock();
        let pending = result.pending.as_ref().and_then(|held| serde_json::to_value(held).ok());
        [
            Message {
                id: clock.id(),
                role: MessageRole::User,
                content: self.turn.request.message.clone(),
                timestamp: asked_at,
                tool_calls: Vec::new(),
                pending: None,
            },
            Message {
                id: clock.id(),
                role: MessageRole::Assistant,
                content: result.response.clone(),
                timestamp: clock.now(),
                tool_calls: result.tool_calls.clone(),
                pending,
            },
        ]
    }

    fn time_limit(&self) -> Duration {
        self.runner.limits.time_limit
    }
}

/// Returns the event that reports the failure of the whole turn.
fn failure(result: &AgentResult) -> TurnEvent {
    TurnEvent::Error {
        error_type: result.error_type.unwrap_or(ErrorType::Internal),
        message: result.response.clone(),
        recoverable: false,
    }
}

/// Encodes the events of a turn for storage under its idempotency key. Fails if they cannot be serialized.
fn to_reply(events: &[TurnEvent]) -> store::Result<StoredReply> {
    let body = serde_json::to_string(events).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    Ok(StoredReply { status: 200, body })
}

/// Decodes the events of a stored turn. Fails if the record is corrupt.
fn from_reply(reply: &StoredReply) -> store::Result<Vec<TurnEvent>> {
    serde_json::from_str(&reply.body).map_err(|error| store::Error::Corrupt(error.to_string()))
}
