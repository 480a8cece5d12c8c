//! Communicates with agents over JSON-RPC: the Agent Client Protocol, or plain requests.
//!
//! A conversation uses one agent process and consists of one or more prompts. It starts no process and no task.
//! Dropping it only closes the agent's input. The caller has to end the process.

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

use model::agent::{Agent, AgentProtocol};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use uuid::Uuid;

pub use plain::response;
pub use wire::MAX_LINE;

use crate::{ClippedText, RunFailure};
use wire::RpcWire;

/// A conversation with one agent.
pub struct RpcConversation(RpcProtocol);

enum RpcProtocol {
    Acp(Box<acp::Acp>),
    Plain(Box<plain::PlainRpc>),
}

/// A prompt to an agent.
#[derive(Clone, Debug)]
pub struct RpcPrompt {
    pub input: String,
    /// Only sent with plain JSON-RPC. The Agent Client Protocol has no field for them.
    pub parameters: Map<String, Value>,
    pub execution_id: Uuid,
}

/// Output of an agent during a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentOutput {
    /// A part of the answer.
    Output(String),
    Thought(String),
    /// A short description of the current activity.
    Progress(String),
    /// A line on standard output that is not a message of the protocol.
    Plain(String),
}

/// The result of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptResult {
    /// The answer, or its beginning if the prompt did not complete.
    pub output: ClippedText,
    /// The final response replaces the output that was sent during the prompt.
    pub replaces_output: bool,
    pub end: PromptEnd,
}

/// The end of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptEnd {
    Completed,
    /// The prompt was cancelled. The agent may not have confirmed it.
    Cancelled,
    Failed(RunFailure),
}

/// Receives the output of an agent as it arrives.
pub type OutputListener<'a> = &'a mut (dyn FnMut(AgentOutput) + Send);

impl RpcConversation {
    /// Starts a conversation over the standard output and input of an agent, both unbuffered. `cwd` is its absolute
    /// working directory. The protocol of the agent decides: with the Agent Client Protocol, completes the handshake
    /// and fails if the agent does not. Plain JSON-RPC has no handshake and cannot fail. Has no time limit.
    pub async fn open(
        agent: &Agent,
        cwd: &Path,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        on_output: OutputListener<'_>,
    ) -> Result<Self, RunFailure> {
        let wire = RpcWire::new(reader, writer);
        Ok(Self(match agent.protocol {
            AgentProtocol::Acp => RpcProtocol::Acp(Box::new(acp::Acp::open(agent, cwd, wire, on_output).await?)),
            AgentProtocol::JsonRpc => RpcProtocol::Plain(Box::new(plain::PlainRpc::new(agent, wire))),
        }))
    }

    /// Sends a prompt and returns its result. `on_output` receives the output as it arrives. When `cancel` completes,
    /// the agent is requested to stop and has its grace period to confirm that. After a prompt that was dropped, not
    /// confirmed in time, or interrupted by a closed connection, the conversation cannot be used any more: further
    /// prompts fail.
    pub async fn prompt(
        &mut self,
        prompt: &RpcPrompt,
        on_output: OutputListener<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> PromptResult {
        match &mut self.0 {
            RpcProtocol::Acp(acp) => acp.prompt(prompt, on_output, cancel).await,
            RpcProtocol::Plain(plain) => plain.prompt(prompt, on_output, cancel).await,
        }
    }

    /// Returns true if another prompt can be sent.
    pub fn is_usable(&self) -> bool {
        match &self.0 {
            RpcProtocol::Acp(acp) => !acp.turns.is_busy(),
            RpcProtocol::Plain(plain) => !plain.turns.is_busy(),
        }
    }
}
