//! The interface of all models: a transcript goes in, text and tool calls come out.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tools::{ToolOutcome, ToolSpecs};

use crate::{AgentContext, TurnRequest};

/// A model that answers in text and can call tools. It has no state between calls.
pub trait ChatModel: Send + Sync {
    /// Returns the name that appears in responses and logs.
    fn name(&self) -> &str;

    /// Returns `true` if the model never waits for an external service. A whole turn can then be one transaction.
    fn is_immediate(&self) -> bool {
        false
    }

    /// Returns `true` if the model composes its replies from fixed sentences. Its claims about completed actions are
    /// then reliable.
    fn is_built_in(&self) -> bool {
        false
    }

    /// Returns the health of the model, or `None` if the model cannot fail.
    fn health(&self) -> Option<ModelHealth> {
        None
    }

    /// Streams the next reply. A reply without a tool call ends the turn. An error ends the stream.
    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<ReplyDelta, ModelError>>;
}

/// The models in fallback order: each is queried only if all before it failed. Contains at least one model.
#[derive(Clone)]
pub struct ModelChain(Arc<[Arc<dyn ChatModel>]>);

impl ModelChain {
    /// Creates a chain of a first model and its fallbacks.
    pub fn new(first: Arc<dyn ChatModel>, fallback: impl IntoIterator<Item = Arc<dyn ChatModel>>) -> Self {
        Self(std::iter::once(first).chain(fallback).collect())
    }

    /// Returns the preferred model.
    pub fn first(&self) -> &dyn ChatModel {
        &*self.0[0]
    }

    /// Returns the model at this position of the chain, starting at 0. Returns `None` after the last model.
    pub fn get(&self, at: usize) -> Option<&dyn ChatModel> {
        self.0.get(at).map(|model| &**model)
    }

    /// Returns the models in fallback order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn ChatModel> {
        self.0.iter().map(|model| &**model)
    }
}

impl From<Arc<dyn ChatModel>> for ModelChain {
    fn from(only: Arc<dyn ChatModel>) -> Self {
        Self::new(only, [])
    }
}

/// The health of a model.
#[derive(Clone, Debug)]
pub struct ModelHealth {
    pub breaker: model::breaker::BreakerSnapshot,
    /// Names of the tools that the provider rejected, each with its reason.
    pub rejected_tools: Vec<(String, String)>,
}

/// The input of one model call.
#[derive(Clone, Copy)]
pub struct Prompt<'a> {
    pub context: &'a AgentContext,
    pub request: &'a TurnRequest,
    pub tools: &'a ToolSpecs,
    /// The replies with tool calls of this turn so far.
    pub steps: &'a [ToolStep],
    /// False if no server runs. Agents, schedules and reminders wait for one then.
    pub has_worker: bool,
    /// The time by which the reply must be complete.
    pub deadline: Option<Instant>,
}

/// A reply that called tools, with the outcomes of the calls.
#[derive(Clone, Debug, Default)]
pub struct ToolStep {
    pub text: String,
    pub calls: Vec<(RequestedCall, ToolOutcome)>,
    /// State that the model needs in the next request.
    pub provider_state: Option<ProviderState>,
}

/// A part of a streamed reply.
#[derive(Clone, Debug)]
pub enum ReplyDelta {
    /// Reasoning of the model, shown to clients as progress.
    Thinking(String),
    Text(String),
    Call(RequestedCall),
    Usage(ModelUsage),
    ProviderState(ProviderState),
}

/// A tool call that the model requested.
#[derive(Clone, Debug)]
pub struct RequestedCall {
    pub name: String,
    /// Should be a JSON object. Not validated yet.
    pub arguments: String,
}

/// The tokens that a reply used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    pub input: u64,
    /// Includes the reasoning tokens.
    pub output: u64,
    pub reasoning: u64,
}

impl std::ops::AddAssign for ModelUsage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}

/// Opaque data that only the model that created it can interpret: signatures of thoughts and ids of calls.
#[derive(Clone)]
pub struct ProviderState(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for ProviderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderState")
    }
}

/// The reason why a model did not answer. The text is for the log.
#[derive(Clone, Debug)]
pub struct ModelError(pub String);

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
