//! `adjutant run`: asks an agent for something, prints what it says as it says it, and ends as it ended.

use std::io::{IsTerminal, Read};

use anyhow::Context;
use model::agent::ASSISTANT;
use serde_json::{Map, Value, json};

use super::listing::{self, pair, text};
use super::watch::{Show, Watch, conclude};
use crate::cli::{Global, Run};
use crate::client::Client;
use crate::exit::{Code, Exit};
use crate::{output, wire};

/// No agent takes more.
const MAX_INPUT: u64 = 1 << 30;

pub(crate) fn run(global: &Global, order: &Run) -> anyhow::Result<()> {
    // Before anything listens for Ctrl-C: whoever types the input can still give up.
    let body = body(order)?;
    let runtime = wire::own_runtime()?;
    let ran = runtime.block_on(carry_out(global, order, &body));
    // Whoever leaves early waits for nothing.
    runtime.shutdown_background();
    ran
}

async fn carry_out(global: &Global, order: &Run, body: &Value) -> anyhow::Result<()> {
    let mut outside = None;
    // The assistant asks models; the others need none of us.
    let client = match order.agent == ASSISTANT {
        true => Client::to_chat(global, &mut outside).await?,
        false => Client::connect(global).await?,
    };
    let ran = ask(global, order, body, &client).await;
    if let Some(outside) = outside {
        outside.stop().await;
    }
    ran
}

async fn ask(global: &Global, order: &Run, body: &Value, client: &Client) -> anyhow::Result<()> {
    if order.detach && client.supervisor().is_some() {
        return Err(alone("--detach"));
    }
    let agent = listing::agent(client, &order.agent).await?;
    let id = text(&agent, "id");
    let path = format!("/api/agents/{id}/executions");
    if order.detach {
        let answer = client.post(&path, body).await?;
        return if global.json { output::say(&answer.text()) } else { output::say(text(&answer.json()?, "id")) };
    }
    let mut watch = Watch::begin(client, id).await?;
    let ended = async {
        let execution = client.post(&path, body).await?.json()?;
        let show = if global.json { Show::Nothing } else { Show::answer_of(&agent) };
        finish(&mut watch, client, global, text(&execution, "id"), show).await
    };
    let ended = ended.await;
    watch.end().await;
    ended
}

/// Follows an execution and ends as it did.
pub(super) async fn finish(
    watch: &mut Watch<'_>,
    client: &Client,
    global: &Global,
    id: &str,
    show: Show,
) -> anyhow::Result<()> {
    let result = watch.follow(id, show).await?;
    if watch.unread {
        return Ok(());
    }
    if global.json {
        output::say(&client.get(&format!("/api/executions/{id}/result")).await?.text())?;
    }
    conclude(&result)
}

/// What goes on after the command has ended needs somebody who goes on.
pub(super) fn alone(what: &str) -> anyhow::Error {
    let message = format!("{what} needs a server that goes on with it: start one with `adjutant serve`");
    Exit::new(Code::Usage, message).into()
}

fn body(order: &Run) -> anyhow::Result<Value> {
    let mut body = Map::new();
    body.insert("input".to_owned(), input(order)?.into());
    let mut parameters = Map::new();
    for given in &order.param {
        let (name, value) = pair("--param", given)?;
        parameters.insert(name.to_owned(), parameter(value));
    }
    if !parameters.is_empty() {
        body.insert("parameters".to_owned(), parameters.into());
    }
    let mut envs = Map::new();
    for given in &order.env {
        let (name, value) = pair("--env", given)?;
        envs.insert(name.to_owned(), value.into());
    }
    if !envs.is_empty() {
        body.insert("envs".to_owned(), envs.into());
    }
    if let Some(directory) = &order.cwd {
        // The server is somewhere else.
        let directory = std::path::absolute(directory).context("--cwd is no directory")?;
        body.insert("working_directory".to_owned(), json!(directory));
    }
    body.extend(order.timeout.map(|seconds| ("timeout".to_owned(), json!(seconds))));
    Ok(Value::Object(body))
}

fn input(order: &Run) -> anyhow::Result<String> {
    let here = std::io::stdin().is_terminal();
    match order.input.as_deref() {
        Some("-") => {}
        Some(input) => return Ok(input.to_owned()),
        None if !here => {}
        // What it needs may be in its parameters.
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

/// A number, a truth, a list or an object where it is written like one, else text.
pub(super) fn parameter(value: &str) -> Value {
    match serde_json::from_str(value) {
        Ok(value @ (Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_))) => value,
        _ => value.into(),
    }
}

#[cfg(test)]
mod tests {
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
