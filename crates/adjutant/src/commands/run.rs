//! `adjutant run`: runs an agent, prints its output as it arrives, and exits with its result.

use std::io::{IsTerminal, Read};

use anyhow::Context;
use api::agents::Agent;
use api::executions::{Execution, ExecutionDraft};
use model::agent::{ASSISTANT_ID, InputPattern, Seconds};
use serde_json::{Map, Value};

use super::listing::{self, split_pair};
use super::watch::{OutputSelection, RunWatcher, check_result};
use super::with_words;
use crate::cli::{GlobalOptions, RunArgs};
use crate::client::{Client, ClientResponse};
use crate::exit::{ExitError, ExitStatus};
use crate::{output, wire};

/// The size limit of the input in bytes.
const MAX_INPUT_BYTES: u64 = 1 << 30;

/// Reads the input, runs the agent and prints its output, or with `--detach` the id of the execution. Does not wait for
/// remaining tasks at the end. Fails if the arguments are invalid, if no server or agent can be used, or if the
/// execution does not succeed.
pub(crate) fn run(global: &GlobalOptions, args: &RunArgs) -> anyhow::Result<()> {
    // Ctrl-C must still end the process while the input is typed.
    let body = body(args)?;
    let runtime = wire::single_thread_runtime()?;
    let result = runtime.block_on(run_agent(global, args, &body));
    // Does not wait for remaining tasks after Ctrl-C.
    runtime.shutdown_background();
    result
}

/// Connects, with models only if the agent is given by the id of the assistant, and submits the execution. Then stops
/// the MCP servers that this process started, but not if the connection failed. Fails if the connection or the
/// execution fails.
async fn run_agent(global: &GlobalOptions, args: &RunArgs, body: &ExecutionDraft) -> anyhow::Result<()> {
    let mut services = None;
    // Only the assistant needs models.
    let client = match args.agent == ASSISTANT_ID {
        true => Client::connect_with_models(global, &mut services).await?,
        false => Client::connect(global).await?,
    };
    let result = submit(args, body, &client).await;
    if let Some(services) = services {
        services.stop().await;
    }
    result
}

/// Starts the execution and follows it. With `--detach`, only prints its id, or with `--json` the execution. Fails with
/// a usage error if `--detach` is given without a server. Also fails if no agent or several match, if the server
/// rejects the request, or if a followed execution does not succeed.
async fn submit(args: &RunArgs, body: &ExecutionDraft, client: &Client) -> anyhow::Result<()> {
    if args.detach && !client.has_server() {
        return Err(needs_server("--detach"));
    }
    let agent = listing::agent(client, &args.agent).await?;
    check_known(&agent, body)?;
    let path = format!("/api/agents/{}/executions", agent.id());
    let request = client.post(&path, body);
    if args.detach { detach(request).await } else { watch(client, &agent, request).await }
}

/// Fails with a usage error if the command line of the agent does not use a parameter. An agent whose configuration the
/// user may not see, or that gets all parameters, is not checked.
fn check_known(agent: &Agent, body: &ExecutionDraft) -> anyhow::Result<()> {
    let Some(configuration) = agent.configuration() else { return Ok(()) };
    let given = body.parameters.iter().flat_map(Map::keys);
    if configuration.input_pattern == InputPattern::JsonRpc || configuration.executable_path.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string(configuration)?;
    let mut known: Vec<&str> =
        text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim())).collect();
    known.extend(configuration.parameters.keys().map(String::as_str));
    known.sort_unstable();
    known.dedup();
    for name in given.filter(|name| !known.contains(&name.as_str())) {
        known.retain(|name| !["input", "input_file", "output_file", "execution_id"].contains(name));
        let list = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        let message = format!("'{}' has no parameter '{name}'; {list}", agent.id());
        return Err(ExitError::new(ExitStatus::Usage, message).into());
    }
    Ok(())
}

/// Sends a request that starts an execution, and prints its id, or with `--json` the response of the server. Fails if
/// the request fails.
pub(super) async fn detach(request: impl Future<Output = anyhow::Result<ClientResponse>>) -> anyhow::Result<()> {
    request.await?.show(|execution: Execution| output::print_line(&execution.id.to_string()))
}

/// Sends a request that starts an execution of this agent, and prints the output until its end. With `--json`, prints
/// only the result at the end. Without a server, this process runs the execution. Ctrl-C cancels it.
///
/// Succeeds if the execution succeeds or the reader closes standard output. Fails otherwise, also if the request or the
/// connection fails.
pub(super) async fn watch(
    client: &Client,
    agent: &Agent,
    request: impl Future<Output = anyhow::Result<ClientResponse>>,
) -> anyhow::Result<()> {
    let mut watch = RunWatcher::start(client, agent.id()).await?;
    let outcome = async {
        let id = request.await?.read::<Execution>()?.id;
        let selection = if client.json { OutputSelection::Nothing } else { OutputSelection::answer_of(agent) };
        let result = watch.follow(id, selection).await?;
        if watch.reader_closed {
            return Ok(());
        }
        if client.json {
            client.get(&format!("/api/executions/{id}/result")).await?.print()?;
        }
        check_result(result)
    };
    let outcome = outcome.await;
    watch.finish().await;
    outcome
}

/// Returns the error for an option that needs a server because the execution outlives the command.
pub(super) fn needs_server(option: &str) -> anyhow::Error {
    let message = format!("{option} needs a server to continue the run: start one with `adjutant serve`");
    ExitError::new(ExitStatus::Usage, message).into()
}

/// Returns the request for the arguments. Reads standard input if it is the input. A `--param` that is a JSON number,
/// boolean, list or object is sent as such, any other as text. The working directory becomes absolute and need not
/// exist. Fails if there is no valid input, if `--param` or `--env` is not NAME=VALUE, or if `--cwd` or `--timeout` is
/// not valid.
fn body(args: &RunArgs) -> anyhow::Result<ExecutionDraft> {
    let input = input(args)?;
    let parameters = parameters(Map::new(), &args.param)?;
    let envs = args.env.iter().map(|given| {
        let (name, value) = split_pair("--env", given)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let envs = envs.collect::<anyhow::Result<_>>()?;
    // The server may run in another directory.
    let directory = args.cwd.as_ref().map(std::path::absolute).transpose().context("--cwd is not a valid path")?;
    let timeout = args.timeout.map(Seconds::try_from).transpose();
    Ok(ExecutionDraft {
        input,
        parameters: Some(parameters).filter(|parameters| !parameters.is_empty()),
        working_directory: directory.map(|directory| directory.to_string_lossy().into_owned()),
        envs: Some(envs).filter(|_| !args.env.is_empty()),
        timeout: timeout.map_err(|why| ExitError::new(ExitStatus::Usage, format!("--timeout is not valid: {why}")))?,
        wait: None,
    })
}

/// Returns INPUT. Reads standard input for `-`, and without INPUT if it is not a terminal; its text is not trimmed and
/// may be empty. On a terminal without INPUT, the input is empty if parameters are given, and missing otherwise.
///
/// Fails with a usage error if the input is missing or not UTF-8. Fails with [`ExitStatus::Refused`] if standard input
/// is larger than [`MAX_INPUT_BYTES`]. Also fails if it cannot be read.
fn input(args: &RunArgs) -> anyhow::Result<String> {
    let is_terminal = std::io::stdin().is_terminal();
    match with_words(args.input.clone(), &args.words).as_deref() {
        Some("-") => {}
        Some(input) => return Ok(input.to_owned()),
        None if !is_terminal => {}
        // The parameters may be enough.
        None if !args.param.is_empty() => return Ok(String::new()),
        None => {
            let message = "no input: give an INPUT, `-` for standard input, or '' for an empty input";
            return Err(ExitError::new(ExitStatus::Usage, message).into());
        }
    }
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut input)
        .context("failed to read standard input")?;
    if input.len() as u64 > MAX_INPUT_BYTES {
        return Err(ExitError::new(
            ExitStatus::Refused,
            format!("the input must have at most {MAX_INPUT_BYTES} bytes"),
        )
        .into());
    }
    String::from_utf8(input).map_err(|_| ExitError::new(ExitStatus::Usage, "the input must be text in UTF-8").into())
}

/// Returns the known parameters, overridden by the flags. Fails if a flag is not NAME=VALUE.
pub(super) fn parameters(mut known: Map<String, Value>, given: &[String]) -> anyhow::Result<Map<String, Value>> {
    for given in given {
        let (name, value) = split_pair("--param", given)?;
        known.insert(name.to_owned(), parameter(value));
    }
    Ok(known)
}

/// Parses a JSON number, boolean, list or object. Returns any other value as text.
fn parameter(value: &str) -> Value {
    match serde_json::from_str(value) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => value,
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parameters_are_parsed_as_json_if_possible() {
        for (given, value) in [
            ("3", json!(3)),
            ("1.5", json!(1.5)),
            ("true", json!(true)),
            (r#"{"a": [1]}"#, json!({"a": [1]})),
            ("[1, 2]", json!([1, 2])),
            ("null", json!("null")),
            ("\"quoted\"", json!("\"quoted\"")),
            ("{not json", json!("{not json")),
            ("", json!("")),
            ("a=b", json!("a=b")),
        ] {
            assert_eq!(parameter(given), value, "{given}");
        }
    }
}
