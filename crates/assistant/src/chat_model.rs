//! What the loop asks of a model, whichever it is: the transcript in, words and tool calls out.

use std::fmt;

use futures::stream::BoxStream;
use tools::{Outcome, Spec};

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

    /// The next part of the answer. A reply without a call is the end of the turn.
    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<Delta, ModelError>>;
}

/// What a model is told.
#[derive(Clone, Copy)]
pub struct Prompt<'a> {
    pub context: &'a AgentContext,
    pub request: &'a Request,
    pub tools: &'a [Spec],
    /// What was said and called in this turn so far.
    pub steps: &'a [Step],
}

/// A reply that called tools, and what came of the calls.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub text: String,
    pub calls: Vec<(Call, Outcome)>,
}

/// A piece of a reply.
#[derive(Clone, Debug)]
pub enum Delta {
    /// Reasoning, for those who like to watch.
    Thinking(String),
    Text(String),
    Call(Call),
}

/// A tool that the model wants called.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// A JSON object, or whatever the model took for one.
    pub arguments: String,
}

/// Why a model did not answer. The text is for the log.
#[derive(Clone, Debug)]
pub struct ModelError(pub String);

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
