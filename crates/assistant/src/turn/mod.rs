//! One turn of a conversation: a message in, typed events out, the exchange stored (CHAT-1 … CHAT-7).
//!
//! [`TurnEngine::start`] is the only way to run a turn. It returns a [`TurnStream`] whose last event is
//! [`TurnEvent::Done`]. An interface encodes that stream in its own format and knows nothing else about turns.
//!
//! If the model answers at once, the whole turn is one transaction ([`immediate`]). Otherwise each tool call is a
//! transaction and the exchange is written at the end ([`background`]). Either way the turn does not depend on whether
//! the stream is still read, and a request with an idempotency key runs once: later ones get the same events.

mod active;
mod background;
mod immediate;
mod stream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use model::conversation::{Id, Message, Role};
use model::{Clock, User};
use serde::{Deserialize, Serialize};
use store::Store;
use store::idempotency::{Key, Reply};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::Tools;

pub use active::ConversationLock;
pub use stream::{Source, TurnStream};

use crate::{AgentContext, AgentResult, AgentRunner, ErrorType, Request, TurnEvent};
use active::ActiveTurns;

/// How many messages of a stored conversation the assistant is given.
const HISTORY_LENGTH: i64 = 50;

/// A message to answer.
pub struct Turn {
    pub user: User,
    pub request: Request,
    pub history: History,
    pub key: Option<Key>,
    /// The id of the request, for the outcome.
    pub request_id: String,
    pub started: Instant,
    /// Adds to the outcome how the language engine reads the message.
    pub include_reading: bool,
    /// Stops a turn that runs in the background. What it has changed stays changed, and the exchange is stored.
    pub cancelled: CancellationToken,
}

/// The conversation that a message belongs to.
pub enum History {
    /// Stored under this id. The exchange is added to it.
    Stored(Id),
    /// Sent by the caller. Nothing is stored.
    FromCaller(Box<AgentContext>),
}

impl History {
    fn id(&self) -> Option<&Id> {
        match self {
            Self::Stored(id) => Some(id),
            Self::FromCaller(_) => None,
        }
    }
}

/// How a turn has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TurnOutcome {
    pub result: AgentResult,
    /// The stored conversation, if there is one.
    pub conversation_id: Option<Id>,
    pub request_id: String,
    /// The model that answered.
    pub model: String,
    pub duration_ms: u64,
    /// How the language engine reads the message, if the turn asked for it.
    pub reading: Option<serde_json::Value>,
}

/// Runs turns. Cheap to clone.
#[derive(Clone)]
pub struct TurnEngine(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    /// Turns in the background.
    tasks: TaskTracker,
    active: ActiveTurns,
}

impl TurnEngine {
    /// Runs turns on this store. Those in the background are spawned on `tasks`.
    pub fn new(store: Store, clock: Clock, tasks: TaskTracker) -> Self {
        Self(Arc::new(Inner { store, clock, tasks, active: ActiveTurns::default() }))
    }

    /// Starts a turn and returns its events.
    ///
    /// Fails with [`store::Error::NotFound`] if the conversation belongs to another user, and with
    /// [`store::Error::KeyReused`] or [`store::Error::KeyBusy`] if the key cannot be used. Everything else that goes wrong
    /// is part of the outcome.
    pub async fn start(&self, runner: AgentRunner, tools: Tools, turn: Turn) -> store::Result<TurnStream> {
        let is_immediate = runner.models.first().is_immediate() && tools.are_ours();
        let run = TurnRun { engine: self.clone(), runner, tools, turn };
        if is_immediate { immediate::start(run).await } else { background::start(run).await }
    }

    /// Keeps turns of this conversation from starting on this node until the lock is dropped. Returns `None` if one is
    /// running.
    pub fn try_lock(&self, id: &Id) -> Option<ConversationLock> {
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

    fn outcome(&self, result: AgentResult) -> TurnOutcome {
        let turn = &self.turn;
        let model = result.answered_by.clone().unwrap_or_else(|| self.runner.models.first().name().to_owned());
        TurnOutcome {
            conversation_id: turn.history.id().cloned(),
            request_id: turn.request_id.clone(),
            model,
            duration_ms: u64::try_from(turn.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            reading: turn.include_reading.then(|| serde_json::to_value(&turn.request.reading).unwrap_or_default()),
            result,
        }
    }

    /// Returns the two messages that are stored: what the user said, and the answer.
    fn exchange(&self, asked_at: Timestamp, result: &AgentResult) -> [Message; 2] {
        let clock = self.clock();
        let pending = result.held.as_ref().and_then(|held| serde_json::to_value(held).ok());
        [
            Message {
                id: clock.id(),
                role: Role::User,
                content: self.turn.request.message.clone(),
                timestamp: asked_at,
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

    fn time_limit(&self) -> Duration {
        self.runner.limits.time
    }
}

/// Returns the event that reports a turn which failed as a whole.
fn failure(result: &AgentResult) -> TurnEvent {
    TurnEvent::Error {
        error_type: result.error_type.unwrap_or(ErrorType::Internal),
        message: result.response.clone(),
        recoverable: false,
    }
}

/// Returns the record of a turn that is kept under its idempotency key.
fn to_reply(events: &[TurnEvent]) -> store::Result<Reply> {
    let body = serde_json::to_string(events).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    Ok(Reply { status: 200, body })
}

fn from_reply(reply: &Reply) -> store::Result<Vec<TurnEvent>> {
    serde_json::from_str(&reply.body).map_err(|error| store::Error::Corrupt(error.to_string()))
}
