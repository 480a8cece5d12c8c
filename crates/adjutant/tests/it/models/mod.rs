//! External models with the real program and scripted providers, over real sockets.
//!
//! [`Turn::read`] checks the requirements of CHAT-1 for every stream.

mod circuit_breaker;
mod confirmation;
mod exactly_once;
mod failures;
mod injection;
mod isolation;
mod limits;
mod providers;
mod rejections;
mod secrets;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::app::{Home, Server};
use testkit::llm::{Llm, LlmFailure, Reply, Wire};

use crate::home;
use crate::turn::{Turn, find_uuid, has_uuid};

/// A key with a known pattern.
const KEY: &str = "sk-proj-7Qm2Zx9LtVb4Wn8RkYc3Hd6Jf1Gs5Pa0";
/// A key without a recognizable pattern.
const PLAIN_KEY: &str = "plain-key-7f3a9c";
/// A key for a custom header, as Azure and gateways require it.
const HEADER_KEY: &str = "kestrel-gate-51d08e";

/// A configured provider.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Provider {
    OpenAi,
    /// An OpenAI-compatible server with the key in a custom header, like Azure.
    Azure,
    Gemini,
    /// Gemini with the OpenAI protocol.
    GeminiAsOpenAi,
    Anthropic,
}

impl Provider {
    /// One provider for each protocol.
    const ONE_PER_PROTOCOL: [Self; 3] = [Self::OpenAi, Self::Gemini, Self::Anthropic];

    /// Returns the name in responses and metrics.
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

    /// Returns the secret in its requests.
    fn secret(self) -> &'static str {
        match self {
            Self::Azure => HEADER_KEY,
            Self::GeminiAsOpenAi => PLAIN_KEY,
            _ => KEY,
        }
    }

    /// Returns the lines of the section `[model]`.
    fn config_lines(self, url: &str) -> String {
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

/// Returns a home with all keys in its environment.
fn home_with_keys() -> Home {
    home().with_env("KEY", KEY).with_env("PLAIN_KEY", PLAIN_KEY).with_env("HEADER_KEY", HEADER_KEY)
}

/// A scripted provider and a server that uses it.
struct Fixture {
    llm: Llm,
    server: Server,
    home: Home,
}

impl Fixture {
    async fn new(provider: Provider) -> Self {
        Self::with_config(provider, "").await
    }

    /// Starts a server with extra lines of configuration, which begin in the section `[model]`.
    async fn with_config(provider: Provider, extra: &str) -> Self {
        let llm = Llm::start().await;
        let home = home_with_keys().with_config(&format!("[model]\n{}{extra}", provider.config_lines(&llm.url())));
        let server = home.serve();
        Self { llm, server, home }
    }

    /// Sends a message in a new conversation.
    async fn send(&self, input: &str) -> Turn {
        self.stream(json!({"input": input})).await
    }

    async fn send_in(&self, conversation: &str, input: &str) -> Turn {
        self.stream(json!({"input": input, "conversation_id": conversation})).await
    }

    async fn stream(&self, body: Value) -> Turn {
        let answer = self.server.post("/chat/stream", &body).await;
        assert_eq!(answer.status(), 200);
        let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        Turn::read(&answer.text().await.unwrap(), &request_id)
    }

    async fn chat(&self, input: &str) -> Value {
        self.post_json("/chat", &json!({"input": input})).await
    }

    async fn run(&self, message: &str) -> Value {
        self.post_json("/agent/run", &json!({"message": message})).await
    }

    async fn post_json(&self, path: &str, body: &Value) -> Value {
        let answer = self.server.post(path, body).await;
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }

    /// Returns the titles of all tasks, oldest first.
    async fn titles(&self) -> Vec<String> {
        titles(&self.tasks().await)
    }

    async fn tasks(&self) -> Value {
        self.server.get("/api/tasks?status=all&limit=100").await.json().await.unwrap()
    }

    /// Returns the health of the first model.
    async fn health(&self) -> Value {
        let answer = self.server.get("/health").await;
        assert_eq!(answer.status(), 200);
        let health: Value = answer.json().await.unwrap();
        health["dependencies"]["models"][0].clone()
    }

    async fn metrics(&self) -> String {
        self.server.get("/metrics").await.text().await.unwrap()
    }

    /// Returns the number of recorded requests to the provider.
    fn request_count(&self) -> usize {
        self.llm.requests().len()
    }
}

fn titles(tasks: &Value) -> Vec<String> {
    let mut tasks = tasks["tasks"].as_array().unwrap().clone();
    tasks.sort_by_key(|task| task["id"].as_str().unwrap().to_owned());
    tasks.iter().map(|task| task["title"].as_str().unwrap().to_owned()).collect()
}

/// Returns a reply that adds one task.
fn add_task(title: &str) -> Reply {
    Reply::call("add_task", json!({"title": title}))
}

/// Returns all failures except rejections and endless replies.
fn all_failures() -> Vec<LlmFailure> {
    use testkit::llm::RetryAfter::{Absent, Date, Seconds};
    let statuses = [400, 401, 403, 404, 408, 413, 500, 502, 503, 529];
    let limits = [Absent, Seconds(0), Date(std::time::Duration::ZERO)];
    let rest = [
        LlmFailure::HangBeforeHeaders,
        LlmFailure::HangAfterHeaders,
        LlmFailure::HangMidway,
        LlmFailure::CloseBeforeHeaders,
        LlmFailure::CutAtStart,
        LlmFailure::CutMidway,
        LlmFailure::EndAtStart,
        LlmFailure::EndMidway,
        LlmFailure::BrokenJson,
        LlmFailure::ErrorEvent,
        LlmFailure::Html,
        LlmFailure::EmptyBody,
    ];
    statuses.into_iter().map(LlmFailure::Status).chain(limits.map(LlmFailure::RateLimited)).chain(rest).collect()
}

/// Sends a request as a user. Returns the status, the request id and the body.
async fn post_as(server: &Server, token: &str, path: &str, body: &Value) -> (u16, String, String) {
    let answer = server.request(Method::POST, path).bearer_auth(token).json(body).send().await.unwrap();
    let request_id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    (answer.status().as_u16(), request_id, answer.text().await.unwrap())
}
