//! The Agent Client Protocol, version 1, as its client: a session in a directory, and prompts in it.
//!
//! Offers the agent neither files nor terminals: what it needs it has by itself, within what its process may do.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::pin;

use model::agent::{Agent, Permissions};
use serde_json::{Value, json};

use super::turn::{Step, Turn, Turns};
use super::wire::{Fault, Incoming, Wire};
use super::{Answer, Ask, End, Listener, Said, permission, progress};
use crate::Failure;

const VERSION: u64 = 1;
const AUTH_REQUIRED: i64 = -32000;
/// Tool calls whose kind is remembered: an agent has a few under way at once.
const MAX_TOOLS: usize = 1000;

pub(super) struct Acp {
    wire: Wire,
    session: String,
    permissions: Permissions,
    tools: HashMap<String, Tool>,
    pub(super) turns: Turns,
}

/// What was last said of a tool call: later messages only say what has changed.
#[derive(Default)]
struct Tool {
    title: String,
    kind: Option<String>,
    told: Option<String>,
}

impl Acp {
    pub(super) async fn open(agent: &Agent, cwd: &Path, mut wire: Wire, on: Listener<'_>) -> Result<Self, Failure> {
        let us = json!({"name": "adjutant", "title": "adjutant", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let hello = json!({"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": us});
        let them = call(&mut wire, "initialize", &hello, on).await?.map_err(|fault| refused("initialize", &fault))?;
        if them["protocolVersion"] != VERSION {
            let theirs = &them["protocolVersion"];
            let message = format!("the agent speaks version {theirs} of the Agent Client Protocol, adjutant {VERSION}");
            return Err(Failure::permanent(format!("{message}: install a version of the agent that speaks it too")));
        }
        let created = match new_session(&mut wire, cwd, on).await? {
            Err(fault) if fault.code == AUTH_REQUIRED => {
                log_in(&mut wire, &them["authMethods"], &fault, on).await?;
                new_session(&mut wire, cwd, on).await?.map_err(|fault| not_logged_in(&them["authMethods"], &fault))?
            }
            outcome => outcome.map_err(|fault| refused("session/new", &fault))?,
        };
        let Some(session) = created["sessionId"].as_str() else {
            return Err(Failure::agent("the agent made a session without an id"));
        };
        let turns = Turns::new(agent.grace.duration(), agent.max_output_size);
        let session = session.to_owned();
        Ok(Self { wire, session, permissions: agent.permissions, tools: HashMap::new(), turns })
    }

    pub(super) async fn prompt(
        &mut self,
        ask: &Ask,
        on: Listener<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Answer {
        let Self { wire, session, permissions, tools, turns } = self;
        let mut turn = match turns.begin() {
            Ok(turn) => turn,
            Err(answer) => return answer,
        };
        tools.clear();
        let prompt = json!([{"type": "text", "text": ask.input}]);
        let asked = wire.request("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        let mut cancel = pin!(cancel);
        loop {
            let incoming = match turn.step(wire, &mut cancel).await {
                Step::Heard(incoming) => incoming,
                Step::Cancel => {
                    wire.notify("session/cancel", &json!({"sessionId": session}));
                    continue;
                }
                Step::End(end) => return turn.broken(end),
            };
            match incoming {
                Incoming::Notification { method, params } => {
                    if method == "session/update" && params["sessionId"] == **session {
                        update(&params["update"], tools, &mut turn, on);
                    }
                }
                Incoming::Request { id, method, params } if method == "session/request_permission" => {
                    let outcome = if turn.is_cancelled() {
                        permission::cancelled()
                    } else {
                        permit(&params, *permissions, tools, on)
                    };
                    wire.answer(&id, &outcome);
                }
                Incoming::Request { id, method, .. } => wire.refuse(&id, &method),
                Incoming::Plain(line) => on(Said::Plain(line)),
                Incoming::Response { id, .. } if id.as_u64() != Some(asked) => {}
                Incoming::Response { outcome, .. } => {
                    let end = if turn.is_cancelled() { End::Cancelled } else { ended(outcome) };
                    return turn.answered(end);
                }
            }
        }
    }
}

/// How a prompt ended. An answer that a limit cut off is no answer; what there is of it is kept all the same.
fn ended(outcome: Result<Value, Fault>) -> End {
    let result = match outcome {
        Ok(result) => result,
        Err(fault) if fault.code == AUTH_REQUIRED => return End::Failed(not_logged_in(&Value::Null, &fault)),
        Err(fault) => return End::Failed(refused("session/prompt", &fault)),
    };
    let why = match result["stopReason"].as_str() {
        Some("end_turn") => return End::Completed,
        Some("cancelled") => return End::Cancelled,
        Some("refusal") => "the agent refused to go on",
        Some("max_tokens") => "the agent stopped at its limit of tokens",
        Some("max_turn_requests") => "the agent stopped at its limit of requests in one turn",
        _ => "the agent stopped for a reason that adjutant does not know",
    };
    End::Failed(Failure::agent(why))
}

fn update(update: &Value, tools: &mut HashMap<String, Tool>, turn: &mut Turn<'_>, on: Listener<'_>) {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "agent_message_chunk" => turn.say(&progress::content(&update["content"]), on),
        "agent_thought_chunk" => {
            turn.pause();
            on(Said::Thought(progress::content(&update["content"])));
        }
        "tool_call" | "tool_call_update" => {
            turn.pause();
            let tool = known(update, tools);
            let kind = tool.kind.as_deref().unwrap_or("other");
            let line = progress::tool_call(&tool.title, kind, update["status"].as_str().unwrap_or_default());
            if line.is_some() && line != tool.told {
                tool.told.clone_from(&line);
                line.into_iter().for_each(|line| on(Said::Progress(line)));
            }
        }
        "plan" => progress::plan(&update["entries"]).into_iter().for_each(|line| on(Said::Progress(line))),
        _ => {}
    }
}

/// The tool call, with what is new about it.
fn known<'t>(update: &Value, tools: &'t mut HashMap<String, Tool>) -> &'t mut Tool {
    if tools.len() >= MAX_TOOLS {
        tools.clear();
    }
    let id = update["toolCallId"].as_str().unwrap_or_default();
    let tool = tools.entry(id.to_owned()).or_default();
    if let Some(title) = update["title"].as_str() {
        title.clone_into(&mut tool.title);
    }
    if let Some(kind) = update["kind"].as_str() {
        tool.kind = Some(kind.to_owned());
    }
    tool
}

fn permit(params: &Value, permissions: Permissions, tools: &mut HashMap<String, Tool>, on: Listener<'_>) -> Value {
    let tool = known(&params["toolCall"], tools);
    let allowed = permission::allows(permissions, tool.kind.as_deref());
    let kind = tool.kind.as_deref().unwrap_or("other");
    let line = progress::tool_call(&tool.title, kind, "").unwrap_or_default();
    on(Said::Progress(format!("{} {line}", if allowed { "allowed" } else { "not allowed" })));
    permission::outcome(&params["options"], allowed)
}

async fn new_session(wire: &mut Wire, cwd: &Path, on: Listener<'_>) -> Result<Result<Value, Fault>, Failure> {
    call(wire, "session/new", &json!({"cwd": cwd, "mcpServers": []}), on).await
}

/// By the ways that need nobody: a key in a variable. The others open a browser or ask in a terminal.
async fn log_in(wire: &mut Wire, methods: &Value, fault: &Fault, on: Listener<'_>) -> Result<(), Failure> {
    let ways = methods.as_array().map(Vec::as_slice).unwrap_or_default();
    for way in ways {
        let id = way["id"].as_str().unwrap_or_default();
        let by_key = way["type"] == "env_var" || ["api-key", "api_key", "apikey"].iter().any(|key| id.contains(key));
        if by_key && call(wire, "authenticate", &json!({"methodId": id}), on).await?.is_ok() {
            return Ok(());
        }
    }
    Err(not_logged_in(methods, fault))
}

fn not_logged_in(methods: &Value, fault: &Fault) -> Failure {
    let names: Vec<_> = methods.as_array().into_iter().flatten().filter_map(|way| way["name"].as_str()).collect();
    let ways = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let advice = format!("log in with its own command first{ways}, or give it a key in envs");
    Failure::permanent(format!("the agent is not logged in: {}; {advice}", fault.message))
}

fn refused(method: &str, fault: &Fault) -> Failure {
    Failure::agent(format!("the agent answered {method} with error {}: {}", fault.code, fault.message))
}

/// One request and its answer, before there is a prompt.
async fn call(
    wire: &mut Wire,
    method: &str,
    params: &Value,
    on: Listener<'_>,
) -> Result<Result<Value, Fault>, Failure> {
    let asked = wire.request(method, params);
    loop {
        match wire.next().await? {
            Some(Incoming::Response { id, outcome }) if id.as_u64() == Some(asked) => return Ok(outcome),
            Some(Incoming::Request { id, method, .. }) => wire.refuse(&id, &method),
            Some(Incoming::Plain(line)) => on(Said::Plain(line)),
            Some(Incoming::Response { .. } | Incoming::Notification { .. }) => {}
            None => {
                let message = format!("the agent ended before it had answered {method}");
                return Err(Failure::agent(format!("{message}: does it speak the Agent Client Protocol?")));
            }
        }
    }
}
