//! Speaks with agents that speak JSON-RPC: the Agent Client Protocol, or one plain request after another.
//!
//! A dialogue has one process at its other end and is one conversation with it, of one prompt or many. It starts no
//! process and no task: when it is dropped the agent's input is closed, and that is all. Ending the agent is for
//! whoever started it.

mod acp;
mod permission;
mod plain;
mod progress;
#[cfg(test)]
mod tests;
mod turn;
mod wire;

use std::future::Future;
use std::path::Path;

use model::agent::{Agent, Protocol};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use uuid::Uuid;

pub use plain::response;
pub use wire::MAX_LINE;

use crate::{Clipped, Failure};
use wire::Wire;

/// A conversation with one agent.
pub struct Dialogue(Kind);

enum Kind {
    Acp(Box<acp::Acp>),
    Plain(Box<plain::Plain>),
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    pub input: String,
    /// Only plain JSON-RPC has a place for them.
    pub parameters: Map<String, Value>,
    pub execution_id: Uuid,
}

/// What an agent says while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Part of its answer.
    Output(String),
    Thought(String),
    /// What it does, in a few words.
    Progress(String),
    /// A line on its stdout that is not of the protocol.
    Plain(String),
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whatever the end, what was said until then.
    pub output: Clipped,
    /// The output is none of what was said on the way: the agent gave it at the end.
    pub only_now: bool,
    pub end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    /// We asked it to stop; it may not have heard.
    Cancelled,
    Failed(Failure),
}

/// Hears what an agent says, as it says it.
pub type Listener<'a> = &'a mut (dyn FnMut(Said) + Send);

impl Dialogue {
    /// Begins to speak with an agent whose stdout and stdin these are, unbuffered. `cwd` is where it works, absolute.
    pub async fn open(
        agent: &Agent,
        cwd: &Path,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        on: Listener<'_>,
    ) -> Result<Self, Failure> {
        let wire = Wire::new(reader, writer);
        Ok(Self(match agent.protocol {
            Protocol::Acp => Kind::Acp(Box::new(acp::Acp::open(agent, cwd, wire, on).await?)),
            Protocol::JsonRpc => Kind::Plain(Box::new(plain::Plain::new(agent, wire))),
        }))
    }

    /// Asks, and listens until there is an answer. When `cancel` is ready the agent is told to stop and has its grace
    /// time to say that it did. A dialogue whose prompt was dropped or did not end in time answers nothing more.
    pub async fn prompt(&mut self, ask: &Ask, on: Listener<'_>, cancel: impl Future<Output = ()> + Send) -> Answer {
        match &mut self.0 {
            Kind::Acp(acp) => acp.prompt(ask, on, cancel).await,
            Kind::Plain(plain) => plain.prompt(ask, on, cancel).await,
        }
    }

    /// Whether it can be asked again.
    pub fn is_usable(&self) -> bool {
        match &self.0 {
            Kind::Acp(acp) => !acp.turns.is_busy(),
            Kind::Plain(plain) => !plain.turns.is_busy(),
        }
    }
}
