//! Tests of A2A tasks over real sockets, with an agent that executes the steps in its message.

mod contexts;
mod owners;
mod streams;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use assistant::ChatModel;
use assistant::offline::OfflineModel;
use futures::future::BoxFuture;
use model::Clock;
use model::agent::{Agent, AgentDraft, Seconds};
use model::execution::ExecutionOutcome;
use serde_json::{Value, json};
use server::ServerSettings;
use supervisor::{AgentRun, RunFailure, RunRecorder, RunResult, Runner, StreamName};
use tokio::sync::Notify;

use crate::TestServer;

const AGENT_ID: &str = "speaker";

/// Executes the steps in a JSON message. Repeats any other message.
struct StepRunner {
    go: Arc<Notify>,
}

impl Runner for StepRunner {
    fn answers_by_message(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            let Ok(script) = serde_json::from_str::<Value>(&run.request.input) else {
                recorder.output(StreamName::Stdout, run.request.input.as_bytes()).await;
                return RunResult::default();
            };
            for step in script["do"].as_array().into_iter().flatten() {
                if let Some(text) = step["print"].as_str() {
                    recorder.output(StreamName::Stdout, text.as_bytes()).await;
                } else if step == "wait" {
                    tokio::select! {
                        () = self.go.notified() => {}
                        _ = recorder.stop_requested() => return RunResult { stopped: true, ..RunResult::default() },
                    }
                } else if step == "fail once" && run.attempt == 1 {
                    return RunFailure::transient("the first attempt fails").into();
                } else if step == "message" {
                    let text = run.request.message.clone().unwrap_or_default().to_string();
                    recorder.output(StreamName::Stdout, text.as_bytes()).await;
                } else if step.is_object() {
                    recorder.rich_output(serde_json::from_value(step.clone()).unwrap()).await;
                }
            }
            let outcome = script["outcome"].as_str().map(|word| ExecutionOutcome::parse("outcome", word).unwrap());
            let failure = script["failure"].as_str().map(RunFailure::agent);
            RunResult { outcome, failure, ..RunResult::default() }
        })
    }
}

fn speaker() -> (Agent, Arc<dyn Runner>, Arc<Notify>) {
    let draft = AgentDraft {
        id: Some(AGENT_ID.into()),
        name: Some("Speaker".into()),
        retry_delay: Some(Seconds::from_millis(1)),
        max_retries: Some(1),
        max_concurrent_executions: Some(4),
        queue_depth: Some(4),
        grace: Some(Seconds::from_millis(100)),
        ..AgentDraft::default()
    };
    let go = Arc::new(Notify::new());
    (draft.into_built_in(), Arc::new(StepRunner { go: go.clone() }), go)
}

/// Starts a server with the agent. Notifying the returned signal continues a step `wait`.
async fn start_server(settings: ServerSettings) -> (TestServer, Arc<Notify>) {
    start_server_with(settings, Arc::new(OfflineModel)).await
}

async fn start_server_with(settings: ServerSettings, model: Arc<dyn ChatModel>) -> (TestServer, Arc<Notify>) {
    let (agent, runner, go) = speaker();
    (TestServer::with_agents(settings, Clock::system(), model, vec![(agent, runner)]).await, go)
}

/// A client of one agent.
#[derive(Clone)]
struct RpcClient {
    http: reqwest::Client,
    url: String,
    version: &'static str,
    token: Option<String>,
}

impl RpcClient {
    fn new(server: &TestServer, agent: &str) -> Self {
        let url = &server.url;
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

    /// Returns the whole response.
    async fn call(&self, method: &str, params: Value) -> Value {
        self.request(method, params).send().await.unwrap().json().await.unwrap()
    }

    async fn ok(&self, method: &str, params: Value) -> Value {
        let mut response = self.call(method, params).await;
        assert!(response.get("result").is_some(), "{method}: {response}");
        response["result"].take()
    }

    /// Returns the code and the message of the error.
    async fn error(&self, method: &str, params: Value) -> (i64, String) {
        let response = self.call(method, params).await;
        let error = &response["error"];
        assert!(error.is_object(), "{method}: {response}");
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    async fn send(&self, message: Value) -> Value {
        self.ok("SendMessage", json!({"message": message})).await["task"].take()
    }

    /// Sends a message and returns the task at once.
    async fn start_task(&self, message: Value) -> Value {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.ok("SendMessage", params).await["task"].take()
    }

    async fn get(&self, id: &Value) -> Value {
        self.ok("GetTask", json!({"id": id})).await
    }

    /// Waits until a task is in a state. Returns the task.
    async fn wait_for_state(&self, id: &Value, state: &str) -> Value {
        for _ in 0..500 {
            let task = self.get(id).await;
            if state_of(&task) == state {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the task never becomes {state}: {}", self.get(id).await);
    }

    async fn stream(&self, method: &str, params: Value) -> EventStream {
        let response = self.request(method, params).send().await.unwrap();
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        if !kind.starts_with("text/event-stream") {
            panic!("{method}: {}", response.text().await.unwrap());
        }
        EventStream { response, buffer: String::new() }
    }
}

/// The events of a stream.
struct EventStream {
    response: reqwest::Response,
    buffer: String,
}

impl EventStream {
    /// Returns the next event, or `None` at the end.
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

/// Returns a message with steps for the agent.
fn steps(script: Value) -> Value {
    text(&script.to_string())
}

/// Addresses a message to a task.
fn to_task(task: &Value, mut message: Value) -> Value {
    message["taskId"] = task["id"].clone();
    message
}

fn state_of(task: &Value) -> &str {
    let state = task["status"]["state"].as_str().unwrap_or_else(|| panic!("{task}"));
    state.strip_prefix("TASK_STATE_").unwrap()
}

/// Returns the state in an event, if it has one.
fn event_state(event: &Value) -> Option<&str> {
    let status = event.get("task").or(event.get("statusUpdate"))?;
    Some(state_of(status))
}
