//! Plain JSON-RPC 2.0: each prompt is one request, followed by notifications and one response. Lines that are not
//! messages are passed to the output listener.

use std::future::Future;
use std::pin::pin;

use model::agent::Agent;
use serde_json::{Value, json};

use super::turn::{TurnState, TurnStep};
use super::wire::{IncomingMessage, METHOD_NOT_FOUND, RpcError, RpcWire};
use super::{AgentOutput, OutputListener, PromptEnd, PromptResult, RpcPrompt};
use crate::RunFailure;

/// A conversation over plain JSON-RPC.
pub(super) struct PlainRpc {
    wire: RpcWire,
    method: String,
    pub(super) turns: TurnState,
}

impl PlainRpc {
    pub(super) fn new(agent: &Agent, wire: RpcWire) -> Self {
        let turns = TurnState::new(agent.grace.duration(), agent.max_output_size);
        Self { wire, method: agent.rpc_method.clone(), turns }
    }

    /// Sends a prompt and handles messages until the response. A response without an id also ends the prompt. Passes on
    /// the text of the notifications `output`, `log` and `progress`, and ignores any other notification. Requests of
    /// the agent are refused. A result with text replaces the output so far; an empty one completes the prompt with
    /// that output. An error response is a failure.
    ///
    /// When `cancel` completes, sends a cancellation and waits for the response during the grace period. Any response,
    /// no response, or a closed connection then counts as cancelled. Fails at once if the previous prompt was not
    /// answered, and also if the connection fails, or closes before a cancellation.
    pub(super) async fn prompt(
        &mut self,
        prompt: &RpcPrompt,
        on_output: OutputListener<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> PromptResult {
        let mut turn = match self.turns.begin() {
            Ok(turn) => turn,
            Err(answer) => return answer,
        };
        let RpcPrompt { input, parameters, execution_id } = prompt;
        let params = json!({"input": input, "parameters": parameters, "execution_id": execution_id});
        let request = self.wire.request(&self.method, &params);
        let mut cancel = pin!(cancel);
        loop {
            let incoming = match turn.step(&mut self.wire, &mut cancel).await {
                TurnStep::Received(incoming) => incoming,
                TurnStep::Cancel => {
                    self.wire.notify("$/cancelRequest", &json!({"id": request}));
                    continue;
                }
                TurnStep::Ended(end) => return turn.abort(end),
            };
            match incoming {
                IncomingMessage::Notification { method, params } => match (method.as_str(), text_of(&params)) {
                    ("output", Some(text)) => turn.push_output(text, on_output),
                    ("log" | "progress", Some(text)) => on_output(AgentOutput::Progress(text.to_owned())),
                    _ => {}
                },
                IncomingMessage::Request { id, method, .. } => self.wire.refuse(&id, &method),
                IncomingMessage::Plain(line) => on_output(AgentOutput::Plain(line)),
                IncomingMessage::Response { id, .. } if !answers(&id, request) => {}
                IncomingMessage::Response { .. } if turn.is_cancelled() => return turn.complete(PromptEnd::Cancelled),
                IncomingMessage::Response { outcome: Err(error), .. } => {
                    return turn.complete(PromptEnd::Failed(failure(&error, &self.method)));
                }
                IncomingMessage::Response { outcome: Ok(result), .. } => {
                    let text = result_text(&result);
                    return if text.is_empty() {
                        turn.complete(PromptEnd::Completed)
                    } else {
                        turn.complete_with(&text)
                    };
                }
            }
        }
    }
}

/// Returns the text of the last JSON-RPC response in the output of an agent. Looks for it in the whole output, then in
/// the last line that is a response, then in the text from the last line that begins with `{`. A null result has an
/// empty text. Fails if the response is an error, or if the output contains no response.
pub fn response(stdout: &str) -> Result<String, RunFailure> {
    let read = |text: &str| match serde_json::from_str(text).ok().and_then(IncomingMessage::from_object) {
        Some(IncomingMessage::Response { outcome, .. }) => Some(outcome),
        _ => None,
    };
    let whole = || read(stdout.trim());
    let last_line = || stdout.lines().rev().filter(|line| line.trim_start().starts_with('{')).find_map(read);
    // A response on several lines, after other output.
    let last_block = || stdout.rfind("\n{").and_then(|at| read(stdout[at..].trim()));
    match whole().or_else(last_line).or_else(last_block) {
        Some(Ok(result)) => Ok(result_text(&result)),
        Some(Err(error)) => Err(failure(&error, "the request")),
        None => Err(RunFailure::agent("the output of the agent contains no JSON-RPC response")),
    }
}

/// Returns true if a response belongs to the request. A response without an id reports that the request could not be
/// parsed.
fn answers(id: &Value, request: u64) -> bool {
    id.is_null() || id.as_u64() == Some(request)
}

/// Returns the failure for an error response. It is permanent if the agent does not support the method, and otherwise a
/// failure of the agent.
fn failure(error: &RpcError, method: &str) -> RunFailure {
    let RpcError { code, message } = error;
    if *code == METHOD_NOT_FOUND {
        return RunFailure::permanent(format!(
            "the agent does not support the method {method} (rpc_method): {message}"
        ));
    }
    RunFailure::agent(format!("the agent answered with error {code}: {message}"))
}

/// Returns the text of a result. Null has an empty text. A value without a known text field is returned as JSON.
fn result_text(result: &Value) -> String {
    match (text_of(result), result) {
        (Some(text), _) => text.to_owned(),
        (None, Value::Null) => String::new(),
        (None, other) => other.to_string(),
    }
}

/// Returns the text of a string, or of the first known text field of an object.
fn text_of(value: &Value) -> Option<&str> {
    let named = || ["output", "text", "content", "message"].iter().find_map(|name| value.get(name)?.as_str());
    value.as_str().or_else(named)
}
