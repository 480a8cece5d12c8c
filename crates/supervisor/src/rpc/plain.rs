//! Plain JSON-RPC 2.0: one request, notifications on the way, one response; then perhaps the next.

use std::future::Future;
use std::pin::pin;

use model::agent::Agent;
use serde_json::{Value, json};

use super::turn::{Step, Turns};
use super::wire::{Fault, Incoming, METHOD_NOT_FOUND, Wire};
use super::{Answer, Ask, End, Listener, Said};
use crate::Failure;

pub(super) struct Plain {
    wire: Wire,
    method: String,
    pub(super) turns: Turns,
}

impl Plain {
    pub(super) fn new(agent: &Agent, wire: Wire) -> Self {
        let turns = Turns::new(agent.grace.duration(), agent.max_output_size);
        Self { wire, method: agent.rpc_method.clone(), turns }
    }

    pub(super) async fn prompt(
        &mut self,
        ask: &Ask,
        on: Listener<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Answer {
        let mut turn = match self.turns.begin() {
            Ok(turn) => turn,
            Err(answer) => return answer,
        };
        let Ask { input, parameters, execution_id } = ask;
        let params = json!({"input": input, "parameters": parameters, "execution_id": execution_id});
        let asked = self.wire.request(&self.method, &params);
        let mut cancel = pin!(cancel);
        loop {
            let incoming = match turn.step(&mut self.wire, &mut cancel).await {
                Step::Heard(incoming) => incoming,
                Step::Cancel => {
                    self.wire.notify("$/cancelRequest", &json!({"id": asked}));
                    continue;
                }
                Step::End(end) => return turn.broken(end),
            };
            match incoming {
                Incoming::Notification { method, params } => match (method.as_str(), text_of(&params)) {
                    ("output", Some(text)) => turn.say(text, on),
                    ("log" | "progress", Some(text)) => on(Said::Progress(text.to_owned())),
                    _ => {}
                },
                Incoming::Request { id, method, .. } => self.wire.refuse(&id, &method),
                Incoming::Plain(line) => on(Said::Plain(line)),
                Incoming::Response { id, .. } if !is(&id, asked) => {}
                Incoming::Response { .. } if turn.is_cancelled() => return turn.answered(End::Cancelled),
                Incoming::Response { outcome: Err(fault), .. } => {
                    return turn.answered(End::Failed(failure(&fault, &self.method)));
                }
                Incoming::Response { outcome: Ok(result), .. } => {
                    let text = shown(&result);
                    return if text.is_empty() { turn.answered(End::Completed) } else { turn.answered_with(&text) };
                }
            }
        }
    }
}

/// What the response says that stands in the output of an agent which has ended: the last of those there are.
pub fn response(stdout: &str) -> Result<String, Failure> {
    let read = |text: &str| match serde_json::from_str(text).ok().and_then(Incoming::of) {
        Some(Incoming::Response { outcome, .. }) => Some(outcome),
        _ => None,
    };
    let whole = || read(stdout.trim());
    let last_line = || stdout.lines().rev().filter(|line| line.trim_start().starts_with('{')).find_map(read);
    // Printed over many lines, with something before it.
    let last_block = || stdout.rfind("\n{").and_then(|at| read(stdout[at..].trim()));
    match whole().or_else(last_line).or_else(last_block) {
        Some(Ok(result)) => Ok(shown(&result)),
        Some(Err(fault)) => Err(failure(&fault, "the request")),
        None => Err(Failure::agent("the agent's output has no JSON-RPC response in it")),
    }
}

/// An error without an id is about what was asked last: the agent could not read it.
fn is(id: &Value, asked: u64) -> bool {
    id.is_null() || id.as_u64() == Some(asked)
}

fn failure(fault: &Fault, method: &str) -> Failure {
    let Fault { code, message } = fault;
    if *code == METHOD_NOT_FOUND {
        return Failure::permanent(format!("the agent does not know {method} (rpc_method): {message}"));
    }
    Failure::agent(format!("the agent answered with error {code}: {message}"))
}

fn shown(result: &Value) -> String {
    match (text_of(result), result) {
        (Some(text), _) => text.to_owned(),
        (None, Value::Null) => String::new(),
        (None, other) => other.to_string(),
    }
}

/// A text, or the one in an object that holds it.
fn text_of(value: &Value) -> Option<&str> {
    let named = || ["output", "text", "content", "message"].iter().find_map(|name| value.get(name)?.as_str());
    value.as_str().or_else(named)
}
