//! Outside models in the whole product: the real program, and scripted providers over real sockets.
//!
//! [`Turn::read`] holds every stream to what CHAT-1 promises, so no test here has to say it again.

mod breaker;
mod confirm;
mod faults;
mod limits;
mod once;
mod rejected;
mod secrets;
mod users;
mod wires;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::{Home, Server};
use testkit::llm::{Fault, Llm, Reply, Wire};

use crate::home;
use crate::turn::{Turn, find_uuid, has_uuid};

/// A key of a shape that everybody knows.
const KEY: &str = "sk-proj-7Qm2Zx9LtVb4Wn8RkYc3Hd6Jf1Gs5Pa0";
/// A key that looks like nothing.
const PLAIN_KEY: &str = "plain-key-7f3a9c";
/// What Azure and gateways want in a header of their own.
const HEADER_KEY: &str = "kestrel-gate-51d08e";

/// A provider as it is configured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    OpenAi,
    /// A server that speaks as OpenAI's does and wants its key in a header, as Azure does.
    Azure,
    Gemini,
    /// Gemini, asked as OpenAI is.
    GeminiAsOpenAi,
    Anthropic,
}

impl Kind {
    /// One for each wire.
    const WIRES: [Self; 3] = [Self::OpenAi, Self::Gemini, Self::Anthropic];

    /// As in answers and metrics.
    fn label(self) -> &'static str {
        match self {
            Self::OpenAi => "openai:gpt-4o",
            Self::Azure => "openai-compatible:team-gpt",
            Self::Gemini => "gemini:gemini-2.5-flash",
            Self::GeminiAsOpenAi => "openai-compatible:gemini-2.5-pro",
            Self::Anthropic => "anthropic:claude-sonnet-4-5",
        }
    }

    fn wire(self) -> Wire {
        match self {
            Self::OpenAi | Self::Azure | Self::GeminiAsOpenAi => Wire::OpenAi,
            Self::Gemini => Wire::Gemini,
            Self::Anthropic => Wire::Anthropic,
        }
    }

    /// The secret that its requests must carry.
    fn secret(self) -> &'static str {
        match self {
            Self::Azure => HEADER_KEY,
            Self::GeminiAsOpenAi => PLAIN_KEY,
            _ => KEY,
        }
    }

    /// The lines of `[model]`.
    fn configured(self, url: &str) -> String {
        match self {
            Self::OpenAi => format!("provider = \"openai\"\nbase_url = \"{url}/v1\"\napi_key = \"env:KEY\"\n"),
            Self::Azure => format!(
                "provider = \"openai-compatible\"\nname = \"team-gpt\"\nbase_url = \"{url}/openai/v1\"\n\
                 headers = [\"api-key: env:HEADER_KEY\", \"X-Team: blue\"]\n"
            ),
            Self::Gemini => format!("provider = \"gemini\"\nbase_url = \"{url}\"\napi_key = \"env:KEY\"\n"),
            Self::GeminiAsOpenAi => format!(
                "provider = \"openai-compatible\"\nname = \"gemini-2.5-pro\"\nbase_url = \"{url}/v1beta/openai\"\n\
                 api_key = \"env:PLAIN_KEY\"\n"
            ),
            Self::Anthropic => format!("provider = \"anthropic\"\nbase_url = \"{url}\"\napi_key = \"env:KEY\"\n"),
        }
    }
}

/// A home that knows the keys.
fn home_with_keys() -> Home {
    home().with("KEY", KEY).with("PLAIN_KEY", PLAIN_KEY).with("HEADER_KEY", HEADER_KEY)
}

/// A provider and a server that asks it.
struct Stage {
    llm: Llm,
    server: Server,
    home: Home,
}

impl Stage {
    async fn new(kind: Kind) -> Self {
        Self::with(kind, "").await
    }

    /// With more lines of configuration, which begin inside of `[model]`.
    async fn with(kind: Kind, more: &str) -> Self {
        let llm = Llm::start().await;
        let home = home_with_keys().configured(&format!("[model]\n{}{more}", kind.configured(&llm.url())));
        let server = home.serve();
        Self { llm, server, home }
    }

    /// Says something in a conversation of its own.
    async fn say(&self, input: &str) -> Turn {
        self.stream(json!({"input": input})).await
    }

    async fn say_in(&self, conversation: &str, input: &str) -> Turn {
        self.stream(json!({"input": input, "conversation_id": conversation})).await
    }

    async fn stream(&self, body: Value) -> Turn {
        let answer = self.server.post("/chat/stream", &body).await;
        assert_eq!(answer.status(), 200);
        let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        Turn::read(&answer.text().await.unwrap(), &request_id)
    }

    async fn chat(&self, input: &str) -> Value {
        self.document("/chat", &json!({"input": input})).await
    }

    async fn run(&self, message: &str) -> Value {
        self.document("/agent/run", &json!({"message": message})).await
    }

    async fn document(&self, path: &str, body: &Value) -> Value {
        let answer = self.server.post(path, body).await;
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }

    /// The titles of all tasks, oldest first.
    async fn titles(&self) -> Vec<String> {
        titles(&self.tasks().await)
    }

    async fn tasks(&self) -> Value {
        self.server.get("/api/tasks?status=all&limit=100").await.json().await.unwrap()
    }

    /// What `/health` says about the model that is asked first.
    async fn health(&self) -> Value {
        let answer = self.server.get("/health").await;
        assert_eq!(answer.status(), 200);
        let health: Value = answer.json().await.unwrap();
        health["dependencies"]["models"][0].clone()
    }

    async fn metrics(&self) -> String {
        self.server.get("/metrics").await.text().await.unwrap()
    }

    /// How often the provider was asked since the last time.
    fn count(&self) -> usize {
        self.llm.requests().len()
    }
}

fn titles(tasks: &Value) -> Vec<String> {
    let mut tasks = tasks["tasks"].as_array().unwrap().clone();
    tasks.sort_by_key(|task| task["id"].as_str().unwrap().to_owned());
    tasks.iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

/// A reply that makes one task.
fn adding(title: &str) -> Reply {
    Reply::call("add_task", json!({"title": title}))
}

/// Everything that can go wrong with a request, apart from what a provider rejects and what never ends.
fn all_faults() -> Vec<Fault> {
    use testkit::llm::RetryAfter::{Date, Seconds, Unsaid};
    let statuses = [400, 401, 403, 404, 408, 413, 500, 502, 503, 529];
    let limits = [Unsaid, Seconds(0), Date(std::time::Duration::ZERO)];
    let rest = [
        Fault::HangBeforeHeaders,
        Fault::HangAfterHeaders,
        Fault::HangMidway,
        Fault::CloseBeforeHeaders,
        Fault::CutAtStart,
        Fault::CutMidway,
        Fault::EndAtStart,
        Fault::EndMidway,
        Fault::BrokenJson,
        Fault::ErrorEvent,
        Fault::Html,
        Fault::EmptyBody,
    ];
    statuses.into_iter().map(Fault::Status).chain(limits.map(Fault::RateLimited)).chain(rest).collect()
}

/// A request as some user, for servers that want to know who asks.
async fn post_as(server: &Server, token: &str, path: &str, body: &Value) -> (u16, String, String) {
    let answer = server.request(Method::POST, path).bearer_auth(token).json(body).send().await.unwrap();
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    (answer.status().as_u16(), request_id, answer.text().await.unwrap())
}
