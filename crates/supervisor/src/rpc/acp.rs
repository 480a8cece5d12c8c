//! A client of the Agent Client Protocol, version 1: opens a session in a directory and sends prompts.
//!
//! It does not offer access to files or terminals: the agent uses the permissions of its own process. Lines that are
//! not messages are passed to the output listener.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::pin;

use model::agent::{Agent, Permissions};
use serde_json::{Value, json};

use super::turn::{PromptTurn, TurnState, TurnStep};
use super::wire::{IncomingMessage, RpcError, RpcWire};
use super::{AgentOutput, OutputListener, PromptEnd, PromptResult, RpcPrompt, permission, progress};
use crate::RunFailure;

/// The version of the protocol.
const VERSION: u64 = 1;
/// The error code for an agent that is not logged in.
const AUTH_REQUIRED: i64 = -32000;
/// The maximum number of remembered tool calls. An agent has only a few at a time.
const MAX_TOOLS: usize = 1000;

/// A session of the Agent Client Protocol.
pub(super) struct Acp {
    wire: RpcWire,
    session: String,
    permissions: Permissions,
    tools: HashMap<String, AcpTool>,
    pub(super) turns: TurnState,
}

/// The known state of a tool call. Updates only contain changed fields.
#[derive(Default)]
struct AcpTool {
    title: String,
    kind: Option<String>,
    /// The last reported progress line.
    reported: Option<String>,
}

impl Acp {
    /// Initializes the agent and creates a session in `cwd`. Logs in with a key if the agent requires it, and then
    /// creates the session again. `on_output` receives lines that are not messages. Fails permanently if the agent uses
    /// another version of the protocol or is not logged in. Also fails if it answers with an error, creates a session
    /// without an id, or ends. Has no time limit.
    pub(super) async fn open(
        agent: &Agent,
        cwd: &Path,
        mut wire: RpcWire,
        on_output: OutputListener<'_>,
    ) -> Result<Self, RunFailure> {
        let client = json!({"name": "adjutant", "title": "adjutant", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let params = json!({"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": client});
        let server =
            call(&mut wire, "initialize", &params, on_output).await?.map_err(|error| failed("initialize", &error))?;
        if server["protocolVersion"] != VERSION {
            let version = &server["protocolVersion"];
            let message =
                format!("the agent uses version {version} of the Agent Client Protocol; adjutant requires {VERSION}");
            return Err(RunFailure::permanent(format!("{message}: install a compatible version of the agent")));
        }
        let created = match new_session(&mut wire, cwd, on_output).await? {
            Err(error) if error.code == AUTH_REQUIRED => {
                log_in(&mut wire, &server["authMethods"], &error, on_output).await?;
                new_session(&mut wire, cwd, on_output)
                    .await?
                    .map_err(|error| not_logged_in(&server["authMethods"], &error))?
            }
            outcome => outcome.map_err(|error| failed("session/new", &error))?,
        };
        let Some(session) = created["sessionId"].as_str() else {
            return Err(RunFailure::agent("the agent created a session without an id"));
        };
        let turns = TurnState::new(agent.grace.duration(), agent.max_output_size);
        let session = session.to_owned();
        Ok(Self { wire, session, permissions: agent.permissions, tools: HashMap::new(), turns })
    }

    /// Sends the input of a prompt and handles messages until it ends. The parameters are not sent. Permission requests
    /// are answered by the configuration; any other request is refused. Updates of another session are ignored. The end
    /// is that of [`prompt_end`].
    ///
    /// When `cancel` completes, sends a cancellation, cancels permission requests, and waits for the response during
    /// the grace period. Any response, no response, or a closed connection then counts as cancelled. Fails at once if
    /// the previous prompt was not answered, and also if the connection fails, or closes before a cancellation.
    pub(super) async fn prompt(
        &mut self,
        prompt: &RpcPrompt,
        on_output: OutputListener<'_>,
        cancel: impl Future<Output = ()> + Send,
    ) -> PromptResult {
        let Self { wire, session, permissions, tools, turns } = self;
        let mut turn = match turns.begin() {
            Ok(turn) => turn,
            Err(answer) => return answer,
        };
        tools.clear();
        let content = json!([{"type": "text", "text": prompt.input}]);
        let request = wire.request("session/prompt", &json!({"sessionId": session, "prompt": content}));
        let mut cancel = pin!(cancel);
        loop {
            let incoming = match turn.step(wire, &mut cancel).await {
                TurnStep::Received(incoming) => incoming,
                TurnStep::Cancel => {
                    wire.notify("session/cancel", &json!({"sessionId": session}));
                    continue;
                }
                TurnStep::Ended(end) => return turn.abort(end),
            };
            match incoming {
                IncomingMessage::Notification { method, params } => {
                    if method == "session/update" && params["sessionId"] == **session {
                        update(&params["update"], tools, &mut turn, on_output);
                    }
                }
                IncomingMessage::Request { id, method, params } if method == "session/request_permission" => {
                    let outcome = if turn.is_cancelled() {
                        permission::cancelled()
                    } else {
                        permit(&params, *permissions, tools, on_output)
                    };
                    wire.answer(&id, &outcome);
                }
                IncomingMessage::Request { id, method, .. } => wire.refuse(&id, &method),
                IncomingMessage::Plain(line) => on_output(AgentOutput::Plain(line)),
                IncomingMessage::Response { id, .. } if id.as_u64() != Some(request) => {}
                IncomingMessage::Response { outcome, .. } => {
                    let end = if turn.is_cancelled() { PromptEnd::Cancelled } else { prompt_end(outcome) };
                    return turn.complete(end);
                }
            }
        }
    }
}

/// Returns the end of a prompt. The stop reason `end_turn` completes it, and `cancelled` cancels it. Any other or
/// missing reason is a failure of the agent, also a limit that cut off the answer; its output is kept. An error
/// response is a failure, which is permanent if the agent is not logged in.
fn prompt_end(outcome: Result<Value, RpcError>) -> PromptEnd {
    let result = match outcome {
        Ok(result) => result,
        Err(error) if error.code == AUTH_REQUIRED => return PromptEnd::Failed(not_logged_in(&Value::Null, &error)),
        Err(error) => return PromptEnd::Failed(failed("session/prompt", &error)),
    };
    let message = match result["stopReason"].as_str() {
        Some("end_turn") => return PromptEnd::Completed,
        Some("cancelled") => return PromptEnd::Cancelled,
        Some("refusal") => "the agent refused to continue",
        Some("max_tokens") => "the agent stopped at its token limit",
        Some("max_turn_requests") => "the agent stopped at its limit of requests per turn",
        _ => "the agent stopped for an unknown reason",
    };
    PromptEnd::Failed(RunFailure::agent(message))
}

/// Handles an update of the session: a part of the answer, a thought, a tool call or a plan. Unknown updates are
/// ignored. A thought or a tool call makes the next part of the answer start a new paragraph. A completed tool call and
/// an empty plan send no line. The same progress line of a tool call is not sent twice in a row.
fn update(
    update: &Value,
    tools: &mut HashMap<String, AcpTool>,
    turn: &mut PromptTurn<'_>,
    on_output: OutputListener<'_>,
) {
    match update["sessionUpdate"].as_str().unwrap_or_default() {
        "agent_message_chunk" => turn.push_output(&progress::content(&update["content"]), on_output),
        "agent_thought_chunk" => {
            turn.start_paragraph();
            on_output(AgentOutput::Thought(progress::content(&update["content"])));
        }
        "tool_call" | "tool_call_update" => {
            turn.start_paragraph();
            let tool = tool_of(update, tools);
            let kind = tool.kind.as_deref().unwrap_or("other");
            let line = progress::tool_call(&tool.title, kind, update["status"].as_str().unwrap_or_default());
            if line.is_some() && line != tool.reported {
                tool.reported.clone_from(&line);
                line.into_iter().for_each(|line| on_output(AgentOutput::Progress(line)));
            }
        }
        "plan" => {
            progress::plan(&update["entries"]).into_iter().for_each(|line| on_output(AgentOutput::Progress(line)))
        }
        _ => {}
    }
}

/// Returns the tool call that a message refers to, updated with the fields of the message. Adds it if it is unknown.
/// Forgets all tool calls once [`MAX_TOOLS`] are known.
fn tool_of<'t>(update: &Value, tools: &'t mut HashMap<String, AcpTool>) -> &'t mut AcpTool {
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

/// Returns the answer to a permission request and sends the progress line `allowed …` or `not allowed …`. The kind of
/// the tool decides, which an earlier update may have given. Remembers the tool call.
fn permit(
    params: &Value,
    permissions: Permissions,
    tools: &mut HashMap<String, AcpTool>,
    on_output: OutputListener<'_>,
) -> Value {
    let tool = tool_of(&params["toolCall"], tools);
    let allowed = permission::allows(permissions, tool.kind.as_deref());
    let kind = tool.kind.as_deref().unwrap_or("other");
    let line = progress::tool_call(&tool.title, kind, "").unwrap_or_default();
    on_output(AgentOutput::Progress(format!("{} {line}", if allowed { "allowed" } else { "not allowed" })));
    permission::outcome(&params["options"], allowed)
}

/// Creates a session. Returns the response, which may be an error. Fails if the agent ends or sends invalid data.
async fn new_session(
    wire: &mut RpcWire,
    cwd: &Path,
    on_output: OutputListener<'_>,
) -> Result<Result<Value, RpcError>, RunFailure> {
    call(wire, "session/new", &json!({"cwd": cwd, "mcpServers": []}), on_output).await
}

/// Logs in with a key from a variable. Tries, in order, the methods of the type `env_var` and those with `api-key`,
/// `api_key` or `apikey` in their id. Methods of another kind are skipped, because they open a browser or a terminal
/// prompt and need a person. Fails permanently with the message of `error` if no method succeeds. Fails if the agent
/// ends or sends invalid data.
async fn log_in(
    wire: &mut RpcWire,
    methods: &Value,
    error: &RpcError,
    on_output: OutputListener<'_>,
) -> Result<(), RunFailure> {
    for method in methods.as_array().map(Vec::as_slice).unwrap_or_default() {
        let id = method["id"].as_str().unwrap_or_default();
        let by_key = method["type"] == "env_var" || ["api-key", "api_key", "apikey"].iter().any(|key| id.contains(key));
        if by_key && call(wire, "authenticate", &json!({"methodId": id}), on_output).await?.is_ok() {
            return Ok(());
        }
    }
    Err(not_logged_in(methods, error))
}

/// Returns a permanent failure that lists the names of the login methods, if there are any.
fn not_logged_in(methods: &Value, error: &RpcError) -> RunFailure {
    let names: Vec<_> = methods.as_array().into_iter().flatten().filter_map(|method| method["name"].as_str()).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let advice = format!("log in with the command of the agent first{names}, or set a key in envs");
    RunFailure::permanent(format!("the agent is not logged in: {}; {advice}", error.message))
}

fn failed(method: &str, error: &RpcError) -> RunFailure {
    RunFailure::agent(format!("the agent answered {method} with error {}: {}", error.code, error.message))
}

/// Sends a request outside of a prompt and returns its response, which may be an error. Meanwhile refuses requests of
/// the agent, ignores its notifications and other responses, and passes lines that are not messages to `on_output`.
/// Fails if the agent ends, writes a line that is too long, or does not read its input. Has no time limit.
async fn call(
    wire: &mut RpcWire,
    method: &str,
    params: &Value,
    on_output: OutputListener<'_>,
) -> Result<Result<Value, RpcError>, RunFailure> {
    let request = wire.request(method, params);
    loop {
        match wire.next().await? {
            Some(IncomingMessage::Response { id, outcome }) if id.as_u64() == Some(request) => return Ok(outcome),
            Some(IncomingMessage::Request { id, method, .. }) => wire.refuse(&id, &method),
            Some(IncomingMessage::Plain(line)) => on_output(AgentOutput::Plain(line)),
            Some(IncomingMessage::Response { .. } | IncomingMessage::Notification { .. }) => {}
            None => {
                let message = format!("the agent ended before it answered {method}");
                return Err(RunFailure::agent(format!("{message}; check that it supports the Agent Client Protocol")));
            }
        }
    }
}
