//! Tests of the A2A endpoints over real sockets: authentication, agent cards, bindings and the envelope of S2. The agents
//! start no processes.

mod authentication;
mod bindings;
mod cards;
mod envelope;

use std::path::Path;
use std::sync::Arc;

use assistant::offline::OfflineModel;
use futures::future::BoxFuture;
use model::agent::{Agent, AgentDraft};
use model::{Clock, Invalid};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use server::ServerSettings;
use server::settings::AuthSettings;
use supervisor::{AgentRun, RunFailure, RunRecorder, RunRequest, RunResult, Runner, StreamName};
use testkit::issuer::sign_hs256;

use crate::TestServer;

const SECRET: &str = "correct-horse-battery-staple-0123456789";
const ALICE: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const BOB: &str = "bbbbbbbb-0000-4000-8000-00000000000b";
const CAROL: &str = "cccccccc-0000-4000-8000-00000000000c";

/// Repeats its input. Some inputs have special results.
struct EchoRunner;

impl Runner for EchoRunner {
    fn check(&self, request: &RunRequest) -> Result<(), Invalid> {
        match request.input.as_str() {
            "wrong" => Err(Invalid::one("input", "taste", "must be a different text")),
            _ => Ok(()),
        }
    }

    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            match run.request.input.as_str() {
                "fail" => RunFailure::agent("it did not work").into(),
                "whoami" => {
                    recorder.output(StreamName::Stdout, run.owner.to_string().as_bytes()).await;
                    RunResult::default()
                }
                input => {
                    recorder.output(StreamName::Stdout, input.as_bytes()).await;
                    RunResult::default()
                }
            }
        })
    }
}

/// Returns an echo agent with additional configuration.
fn echo(id: &str, config: Value) -> (Agent, Arc<dyn Runner>) {
    let mut draft = json!({"id": id, "name": id, "executable_path": "/bin/cat"});
    draft.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let agent = serde_json::from_value::<AgentDraft>(draft).unwrap().check().unwrap();
    (agent, Arc::new(EchoRunner))
}

/// Writes a token to a file. Returns the reference to it.
fn token(dir: &Path, token: &str) -> String {
    let path = dir.join(token);
    std::fs::write(&path, format!("{token}\n")).unwrap();
    format!("file:{}", path.display())
}

/// Returns settings with authentication by JWT.
fn with_tokens() -> ServerSettings {
    let auth = AuthSettings { secret: Some(SECRET.into()), ..AuthSettings::default() };
    ServerSettings { auth: Some(auth), ..ServerSettings::default() }
}

fn jwt(user: &str, scope: &str) -> String {
    sign_hs256(SECRET, &json!({"sub": user, "exp": 4_000_000_000_i64, "scope": scope}))
}

async fn start_server(settings: ServerSettings, agents: Vec<(Agent, Arc<dyn Runner>)>) -> TestServer {
    let clock = Clock::manual("2026-11-17T12:00:00Z".parse().unwrap());
    TestServer::with_agents(settings, clock, Arc::new(OfflineModel), agents).await
}

fn request(server: &TestServer, method: Method, path: &str) -> RequestBuilder {
    server.client.request(method, format!("{}{path}", server.url)).header("A2A-Version", "1.0")
}

async fn get(server: &TestServer, path: &str) -> Response {
    request(server, Method::GET, path).send().await.unwrap()
}

/// Requests the extended card, which requires authentication.
fn extended(server: &TestServer, agent: &str) -> RequestBuilder {
    request(server, Method::GET, &format!("/agents/{agent}/extendedAgentCard"))
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

/// Returns a request envelope.
fn envelope_request(method: &str, params: Value) -> Value {
    json!({
        "protocol": "a2a", "version": "0.3.0", "id": "m-1", "type": "request", "timestamp": "2026-11-17T12:00:00Z",
        "context": {"from": "tester", "to": null, "conversation_id": "c-1", "message_id": "x-1"},
        "payload": {"method": method, "params": params},
    })
}

fn post(server: &TestServer, agent: &str, envelope: &Value) -> RequestBuilder {
    request(server, Method::POST, &format!("/agents/{agent}/v1/envelope")).json(envelope)
}

/// Returns the user that the agent sees as its caller.
async fn whoami(request: RequestBuilder) -> String {
    let response: Value = request.send().await.unwrap().json().await.unwrap();
    response["payload"]["result"]["output"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}
