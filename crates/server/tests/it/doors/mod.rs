//! Who is let in to agents by A2A, what is told of agents, and S2's envelope: over real sockets, with agents that are no
//! processes.

mod admission;
mod bindings;
mod cards;
mod envelope;

use std::path::Path;
use std::sync::Arc;

use assistant::offline::Offline;
use futures::future::BoxFuture;
use model::agent::{Agent, Draft};
use model::{Clock, Invalid};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use server::Settings;
use server::settings::Auth;
use supervisor::{Desk, Ended, Failure, Run, Runner, Stream};
use testkit::issuer::hs256;

use crate::Bench;

const SECRET: &str = "correct-horse-battery-staple-0123456789";
const ALICE: &str = "aaaaaaaa-0000-4000-8000-00000000000a";
const BOB: &str = "bbbbbbbb-0000-4000-8000-00000000000b";
const CAROL: &str = "cccccccc-0000-4000-8000-00000000000c";

/// Says what it hears, and what it was told besides.
struct Echo;

impl Runner for Echo {
    fn check(&self, request: &supervisor::Request) -> Result<(), Invalid> {
        match request.input.as_str() {
            "wrong" => Err(Invalid::one("input", "taste", "must be something else")),
            _ => Ok(()),
        }
    }

    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            match run.request.input.as_str() {
                "fail" => Failure::agent("it did not work").into(),
                "whoami" => {
                    desk.output(Stream::Stdout, run.owner.to_string().as_bytes()).await;
                    Ended::default()
                }
                input => {
                    desk.output(Stream::Stdout, input.as_bytes()).await;
                    Ended::default()
                }
            }
        })
    }
}

/// An agent that is offered like this.
fn echo(id: &str, more: Value) -> (Agent, Arc<dyn Runner>) {
    let mut draft = json!({"id": id, "name": id, "executable_path": "/bin/cat"});
    draft.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let agent = serde_json::from_value::<Draft>(draft).unwrap().check().unwrap();
    (agent, Arc::new(Echo))
}

/// A file with a token in it, as a reference.
fn token(dir: &Path, token: &str) -> String {
    let path = dir.join(token);
    std::fs::write(&path, format!("{token}\n")).unwrap();
    format!("file:{}", path.display())
}

/// Of a server whose users have tokens.
fn with_tokens() -> Settings {
    let auth = Auth { secret: Some(SECRET.into()), jwks_url: None, issuer: None, audience: None };
    Settings { auth: Some(auth), ..Settings::default() }
}

fn jwt(user: &str, scope: &str) -> String {
    hs256(SECRET, &json!({"sub": user, "exp": 4_000_000_000_i64, "scope": scope}))
}

async fn bench(settings: Settings, agents: Vec<(Agent, Arc<dyn Runner>)>) -> Bench {
    let clock = Clock::manual("2026-11-17T12:00:00Z".parse().unwrap());
    Bench::with_agents(settings, clock, Arc::new(Offline), agents).await
}

fn request(bench: &Bench, method: Method, path: &str) -> RequestBuilder {
    bench.client.request(method, format!("{}{path}", bench.url)).header("A2A-Version", "1.0")
}

async fn get(bench: &Bench, path: &str) -> Response {
    request(bench, Method::GET, path).send().await.unwrap()
}

/// Something that only those get who are let in: the extended card.
fn extended(bench: &Bench, agent: &str) -> RequestBuilder {
    request(bench, Method::GET, &format!("/agents/{agent}/extendedAgentCard"))
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

/// An envelope that asks for something.
fn asks(method: &str, params: Value) -> Value {
    json!({
        "protocol": "a2a", "version": "0.3.0", "id": "m-1", "type": "request", "timestamp": "2026-11-17T12:00:00Z",
        "context": {"from": "tester", "to": null, "conversation_id": "c-1", "message_id": "x-1"},
        "payload": {"method": method, "params": params},
    })
}

fn post(bench: &Bench, agent: &str, envelope: &Value) -> RequestBuilder {
    request(bench, Method::POST, &format!("/agents/{agent}/v1/envelope")).json(envelope)
}

/// Whom the caller is to the agent.
async fn whoami(request: RequestBuilder) -> String {
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer["payload"]["result"]["output"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}
