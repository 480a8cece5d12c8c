//! `adjutant run`: runs an agent, prints its output as it arrives, and ends as the execution does.

use std::io::{IsTerminal, Read};

use anyhow::Context;
use api::agents::Agent;
use api::executions::{Execution, ExecutionDraft};
use model::agent::{ASSISTANT, Seconds};
use serde_json::{Map, Value};

use super::listing::{self, pair};
use super::watch::{Show, Watch, conclude};
use crate::cli::{Global, Run};
use crate::client::{Answer, Client};
use crate::exit::{Code, Exit};
use crate::{output, wire};

/// The largest input in bytes.
const MAX_INPUT: u64 = 1 << 30;

pub(crate) fn run(global: &Global, order: &Run) -> anyhow::Result<()> {
    // Before anything listens for Ctrl-C, so that it ends the command while the input is typed.
    let body = body(order)?;
    let runtime = wire::own_runtime()?;
    let ran = runtime.block_on(carry_out(global, order, &body));
    // After an interruption nothing is waited for.
    runtime.shutdown_background();
    ran
}

async fn carry_out(global: &Global, order: &Run, body: &ExecutionDraft) -> anyhow::Result<()> {
    let mut outside = None;
    // Only the assistant needs models.
    let client = match order.agent == ASSISTANT {
        true => Client::to_chat(global, &mut outside).await?,
        false => Client::connect(global).await?,
    };
    let ran = ask(order, body, &client).await;
    if let Some(outside) = outside {
        outside.stop().await;
    }
    ran
}

async fn ask(order: &Run, body: &ExecutionDraft, client: &Client) -> anyhow::Result<()> {
    if order.detach && client.supervisor().is_some() {
        return Err(alone("--detach"));
    }
    let agent = listing::agent(client, &order.agent).await?;
    let path = format!("/api/agents/{}/executions", agent.id());
    let request = client.post(&path, body);
    if order.detach { detach(request).await } else { watch(client, &agent, request).await }
}

/// Sends a request that starts an execution, and prints its id.
pub(super) async fn detach(request: impl Future<Output = anyhow::Result<Answer>>) -> anyhow::Result<()> {
    request.await?.show(|execution: Execution| output::say(&execution.id.to_string()))
}

/// Sends a request that starts an execution of this agent, and ends as the execution does.
pub(super) async fn watch(
    client: &Client,
    agent: &Agent,
    request: impl Future<Output = anyhow::Result<Answer>>,
) -> anyhow::Result<()> {
    let mut watch = Watch::begin(client, agent.id()).await?;
    let ended = async {
        let id = request.await?.read::<Execution>()?.id;
        let show = if client.json { Show::Nothing } else { Show::answer_of(agent) };
        let result = watch.follow(id, show).await?;
        if watch.unread {
            return Ok(());
        }
        if client.json {
            client.get(&format!("/api/executions/{id}/result")).await?.print()?;
        }
        conclude(result)
    };
    let ended = ended.await;
    watch.end().await;
    ended
}

/// Returns the error of a flag that needs a server, because the execution outlives the command.
pub(super) fn alone(what: &str) -> anyhow::Error {
    let message = format!("{what} needs a server that goes on with it: start one with `adjutant serve`");
    Exit::new(Code::Usage, message).into()
}

fn body(order: &Run) -> anyhow::Result<ExecutionDraft> {
    let input = input(order)?;
    let parameters = parameters(Map::new(), &order.param)?;
    let envs = order.env.iter().map(|given| {
        let (name, value) = pair("--env", given)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    let envs = envs.collect::<anyhow::Result<_>>()?;
    // The server may run in another directory.
    let directory = order.cwd.as_ref().map(std::path::absolute).transpose().context("--cwd is no directory")?;
    let timeout = order.timeout.map(Seconds::try_from).transpose();
    Ok(ExecutionDraft {
        input,
        parameters: Some(parameters).filter(|parameters| !parameters.is_empty()),
        working_directory: directory.map(|directory| directory.to_string_lossy().into_owned()),
        envs: Some(envs).filter(|_| !order.env.is_empty()),
        timeout: timeout.map_err(|why| Exit::new(Code::Usage, format!("timeout has the wrong type or form: {why}")))?,
        wait: None,
    })
}

fn input(order: &Run) -> anyhow::Result<String> {
    let here = std::io::stdin().is_terminal();
    match order.input.as_deref() {
        Some("-") => {}
        Some(input) => return Ok(input.to_owned()),
        None if !here => {}
        // The parameters may contain everything.
        None if !order.param.is_empty() => return Ok(String::new()),
        None => {
            let message = "nothing to ask: give an INPUT, `-` for standard input, or '' for none";
            return Err(Exit::new(Code::Usage, message).into());
        }
    }
    let mut input = Vec::new();
    std::io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut input).context("failed to read standard input")?;
    if input.len() as u64 > MAX_INPUT {
        return Err(Exit::new(Code::Refused, format!("the input must have at most {MAX_INPUT} bytes")).into());
    }
    String::from_utf8(input).map_err(|_| Exit::new(Code::Usage, "the input must be text in UTF-8").into())
}

/// Returns the known parameters, with those of the flags in place of any with the same name.
pub(super) fn parameters(mut known: Map<String, Value>, given: &[String]) -> anyhow::Result<Map<String, Value>> {
    for given in given {
        let (name, value) = pair("--param", given)?;
        known.insert(name.to_owned(), parameter(value));
    }
    Ok(known)
}

/// Returns a number, a boolean, a list or an object if the value is written like one, else a text.
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
    fn parameters_are_json_where_they_look_like_it() {
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
