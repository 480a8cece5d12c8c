//! Tasks of A2A, over real sockets, with an agent that does what its message says.

mod contexts;
mod owners;
mod streams;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use assistant::ChatModel;
use assistant::offline::Offline;
use futures::future::BoxFuture;
use model::Clock;
use model::agent::{Agent, Draft, Seconds};
use model::execution::Outcome;
use serde_json::{Value, json};
use server::Settings;
use supervisor::{Desk, Ended, Failure, Run, Runner, Stream};
use tokio::sync::Notify;

use crate::Bench;

const AGENT: &str = "speaker";

/// Does what the text of a message says, where that is JSON; says anything else again.
struct Speaker {
    go: Arc<Notify>,
}

impl Runner for Speaker {
    fn answers_by_message(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            let Ok(order) = serde_json::from_str::<Value>(&run.request.input) else {
                desk.output(Stream::Stdout, run.request.input.as_bytes()).await;
                return Ended::default();
            };
            for step in order["do"].as_array().into_iter().flatten() {
                if let Some(text) = step["print"].as_str() {
                    desk.output(Stream::Stdout, text.as_bytes()).await;
                } else if step == "wait" {
                    tokio::select! {
                        () = self.go.notified() => {}
                        _ = desk.stopped() => return Ended { stopped: true, ..Ended::default() },
                    }
                } else if step == "fail once" && run.attempt == 1 {
                    return Failure::transient("the first try fails").into();
                } else if step == "message" {
                    let text = run.request.message.clone().unwrap_or_default().to_string();
                    desk.output(Stream::Stdout, text.as_bytes()).await;
                } else if step.is_object() {
                    desk.say(serde_json::from_value(step.clone()).unwrap()).await;
                }
            }
            let outcome = order["outcome"].as_str().map(|word| Outcome::parse("outcome", word).unwrap());
            let failure = order["failure"].as_str().map(Failure::agent);
            Ended { outcome, failure, ..Ended::default() }
        })
    }
}

fn speaker() -> (Agent, Arc<dyn Runner>, Arc<Notify>) {
    let draft = Draft {
        id: Some(AGENT.into()),
        name: Some("Speaker".into()),
        retry_delay: Some(Seconds::from_millis(1)),
        max_retries: Some(1),
        max_concurrent_executions: Some(4),
        queue_depth: Some(4),
        grace: Some(Seconds::from_millis(100)),
        ..Draft::default()
    };
    let go = Arc::new(Notify::new());
    (draft.built_in(), Arc::new(Speaker { go: go.clone() }), go)
}

/// A server with the speaker, and what lets it go on.
async fn started(settings: Settings) -> (Bench, Arc<Notify>) {
    started_with(settings, Arc::new(Offline)).await
}

async fn started_with(settings: Settings, model: Arc<dyn ChatModel>) -> (Bench, Arc<Notify>) {
    let (agent, runner, go) = speaker();
    (Bench::with_agents(settings, Clock::system(), model, vec![(agent, runner)]).await, go)
}

/// One who calls an agent.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    url: String,
    version: &'static str,
    token: Option<String>,
}

impl Client {
    fn of(bench: &Bench, agent: &str) -> Self {
        Self::at(&bench.url, agent)
    }

    fn at(url: &str, agent: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
        Self { http, url: format!("{url}/agents/{agent}"), version: "1.0", token: None }
    }

    fn request(&self, method: &str, params: Value) -> reqwest::RequestBuilder {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let request = self.http.post(&self.url).header("A2A-Version", self.version).json(&body);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The whole answer.
    async fn call(&self, method: &str, params: Value) -> Value {
        self.request(method, params).send().await.unwrap().json().await.unwrap()
    }

    async fn ok(&self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Its code and what it says.
    async fn error(&self, method: &str, params: Value) -> (i64, String) {
        let answer = self.call(method, params).await;
        let error = &answer["error"];
        assert!(error.is_object(), "{method}: {answer}");
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    async fn send(&self, message: Value) -> Value {
        self.ok("SendMessage", json!({"message": message})).await["task"].take()
    }

    /// Without waiting for what comes of it.
    async fn begin(&self, message: Value) -> Value {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.ok("SendMessage", params).await["task"].take()
    }

    async fn get(&self, id: &Value) -> Value {
        self.ok("GetTask", json!({"id": id})).await
    }

    /// Waits until a task is in that state.
    async fn reaches(&self, id: &Value, state: &str) -> Value {
        for _ in 0..500 {
            let task = self.get(id).await;
            if state_of(&task) == state {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("never {state}: {}", self.get(id).await);
    }

    async fn stream(&self, method: &str, params: Value) -> Events {
        let response = self.request(method, params).send().await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        if !kind.starts_with("text/event-stream") {
            panic!("{method}: {}", response.text().await.unwrap());
        }
        Events { response, buffer: String::new() }
    }
}

/// What comes of a stream.
struct Events {
    response: reqwest::Response,
    buffer: String,
}

impl Events {
    /// The next event; nothing at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((block, rest)) = self.buffer.split_once("\n\n") {
                let data = block.lines().find_map(|line| line.strip_prefix("data:")).map(str::to_owned);
                self.buffer = rest.to_owned();
                if let Some(data) = data {
                    let mut event: Value = serde_json::from_str(data.trim()).unwrap();
                    assert!(event["result"].is_object(), "{event}");
                    return Some(event["result"].take());
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

fn text(text: &str) -> Value {
    json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// A message that says what to do.
fn order(order: Value) -> Value {
    text(&order.to_string())
}

/// The same for a task.
fn to(task: &Value, mut message: Value) -> Value {
    message["taskId"] = task["id"].clone();
    message
}

fn state_of(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("{task}"));
    state.strip_prefix("TASK_STATE_").unwrap()
}

/// The state that an event tells of, if any.
fn state_in(event: &Value) -> Option<&str> {
    let status = event.get("task").or(event.get("statusUpdate"))?;
    Some(state_of(status))
}
