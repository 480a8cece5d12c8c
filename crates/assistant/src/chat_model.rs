//! What the loop asks of a model, whichever it is: the transcript in, words and tool calls out.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tools::{Outcome, Specs};

use crate::{AgentContext, Request};

/// A model that can talk and call tools. It keeps nothing between calls.
pub trait ChatModel: Send + Sync {
    /// As shown in answers and logs.
    fn name(&self) -> &str;

    /// Whether it answers without waiting for anything outside: then a whole turn can be one transaction.
    fn is_immediate(&self) -> bool {
        false
    }

    /// Whether its words are our own, so that what it says was done was done.
    fn is_ours(&self) -> bool {
        false
    }

    /// What is known about its health; nothing where it cannot fail.
    fn health(&self) -> Option<Health> {
        None
    }

    /// The next part of the answer. A reply without a call is the end of the turn.
    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<Delta, ModelError>>;
}

/// The models that are asked, one after the other until one answers. There is at least one.
#[derive(Clone)]
pub struct Models(Arc<[Arc<dyn ChatModel>]>);

impl Models {
    pub fn new(first: Arc<dyn ChatModel>, fallback: impl IntoIterator<Item = Arc<dyn ChatModel>>) -> Self {
        Self(std::iter::once(first).chain(fallback).collect())
    }

    /// The one that is asked first.
    pub fn first(&self) -> &dyn ChatModel {
        &*self.0[0]
    }

    pub fn get(&self, at: usize) -> Option<&dyn ChatModel> {
        self.0.get(at).map(|model| &**model)
    }

    pub fn iter(&self) -> impl Iterator<Item = &dyn ChatModel> {
        self.0.iter().map(|model| &**model)
    }
}

impl From<Arc<dyn ChatModel>> for Models {
    fn from(only: Arc<dyn ChatModel>) -> Self {
        Self::new(only, [])
    }
}

/// How a model is doing.
#[derive(Clone, Debug)]
pub struct Health {
    pub breaker: model::breaker::Snapshot,
    /// Tools that it does not take, each with the reason it gave.
    pub set_aside: Vec<(String, String)>,
}

/// What a model is told.
#[derive(Clone, Copy)]
pub struct Prompt<'a> {
    pub context: &'a AgentContext,
    pub request: &'a Request,
    pub tools: &'a Specs,
    /// What was said and called in this turn so far.
    pub steps: &'a [Step],
    /// An answer that comes later is of no use.
    pub until: Option<Instant>,
}

/// A reply that called tools, and what came of the calls.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub text: String,
    pub calls: Vec<(Call, Outcome)>,
    /// What the model wants to see again.
    pub memo: Option<Memo>,
}

/// A piece of a reply.
#[derive(Clone, Debug)]
pub enum Delta {
    /// Reasoning, for those who like to watch.
    Thinking(String),
    Text(String),
    Call(Call),
    Usage(Usage),
    Memo(Memo),
}

/// A tool that the model wants called.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// A JSON object, or whatever the model took for one.
    pub arguments: String,
}

/// What a reply cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    /// Reasoning included.
    pub output: u64,
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.reasoning += other.reasoning;
    }
}

/// What only the model that made it can read: signatures of its thoughts, the ids of its calls.
#[derive(Clone)]
pub struct Memo(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

/// Why a model did not answer. The text is for the log.
#[derive(Clone, Debug)]
pub struct ModelError(pub String);

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
