//! A model of a provider, asked over HTTP. What can fail fails here: asked again where that may help, given up after a
//! few failures in a row, and never waited for longer than the turn has time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, StreamEnd, Tool as GenaiTool};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, Headers, ModelIden, ServiceTarget};
use model::Clock;
use model::breaker::{Breaker, Breakers, Pass, Rules};
use model::redact::{Redactor, What};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Specs;

use super::fault::{Fault, Remedy};
use super::prompt::{self, Kept};
use super::{Choice, Provider, schema};
use crate::{Call, ChatModel, Delta, Health, Memo, ModelError, Prompt, Usage, log};

/// How often a request is made again.
const RETRIES: usize = 2;
const FIRST_DELAY: Duration = Duration::from_millis(250);
const CONNECT: Duration = Duration::from_secs(5);
/// How long the end of a body may take after the last event in it.
const LINGER: Duration = Duration::from_millis(100);
/// The most tools that are offered: providers take no more.
const MAX_TOOLS: usize = 128;
/// The longest wait where nothing else sets a limit.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Remote {
    label: String,
    choice: Choice,
    client: Client,
    target: ServiceTarget,
    breaker: Arc<Breaker>,
    clock: Clock,
    /// Providers repeat the key that they do not like.
    redactor: Redactor,
    /// Whether the model does not take a temperature.
    without_temperature: AtomicBool,
    offered: Mutex<Offered>,
}

/// The tools as this model takes them.
#[derive(Default)]
struct Offered {
    /// What they were made from.
    from: Option<Specs>,
    offer: Arc<Offer>,
    set_aside: Vec<(String, String)>,
}

/// What is the same in every request, ready to be sent.
#[derive(Default)]
struct Offer {
    tools: Vec<GenaiTool>,
    options: ChatOptions,
}

/// Why a model cannot be asked at all.
#[derive(Debug, thiserror::Error)]
#[error("{label}: {cause}")]
pub struct Unusable {
    label: String,
    cause: String,
}

impl Remote {
    pub fn new(choice: Choice, breakers: &Breakers, clock: Clock) -> Result<Self, Unusable> {
        let label = choice.label();
        let unusable = |cause: String| Unusable { label: label.clone(), cause };
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            // A key is sent to the address that was configured, and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(usize::MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let client = Client::builder().with_reqwest(http).build().map_err(|error| unusable(error.to_string()))?;
        let target = target(&choice).map_err(unusable)?;
        let breaker = breakers.of(&label, Rules::MODEL);
        let secrets = choice.key.iter().chain(choice.headers.iter().map(|(_, value)| value));
        let redactor =
            Redactor::new(What::default()).with_known(secrets.map(|secret| secret.expose_secret().to_owned()));
        let without_temperature = AtomicBool::new(false);
        let offered = Mutex::default();
        Ok(Self { label, choice, client, target, breaker, clock, redactor, without_temperature, offered })
    }

    fn offered(&self) -> MutexGuard<'_, Offered> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tools in this model's form; made once for as long as they stay the same.
    fn offer(&self, specs: &Specs) -> Arc<Offer> {
        let mut offered = self.offered();
        let same = |from: &Specs| std::ptr::eq(&**from, &**specs);
        if !offered.from.as_ref().is_some_and(same) {
            let aside = std::mem::take(&mut offered.set_aside);
            // What has changed since is given another chance.
            let kept = |name: &str| specs.iter().any(|spec| spec.name == *name);
            offered.set_aside = aside.into_iter().filter(|(name, _)| kept(name)).collect();
            let usable = specs.iter().filter(|spec| !offered.set_aside.iter().any(|(name, _)| *name == *spec.name));
            let tools = usable.take(MAX_TOOLS).map(|spec| {
                GenaiTool::new(spec.name.to_string())
                    .with_description(spec.description.to_string())
                    .with_schema(schema::adapt(&spec.schema, self.choice.provider))
            });
            let tools: Vec<_> = tools.collect();
            let options = self.options(&tools);
            offered.offer = Arc::new(Offer { tools, options });
            offered.from = Some(specs.clone());
        }
        offered.offer.clone()
    }

    fn options(&self, tools: &[GenaiTool]) -> ChatOptions {
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true);
        options.temperature = self.choice.temperature.filter(|_| !self.without_temperature.load(Ordering::Relaxed));
        if speaks_openai(self.choice.provider) {
            // Some names end in what would be taken for a wish about reasoning.
            let mut body = json!({"model": self.choice.name});
            if !tools.is_empty() {
                body["tools"] = tools.iter().map(as_openai).collect();
            }
            options = options.with_extra_body(body);
        } else if !self.choice.headers.is_empty() {
            options = options.with_extra_headers(headers(&self.choice));
        }
        options
    }

    /// The tools that go with the messages: for OpenAI they are in the options, which spares two copies of all schemas
    /// a request.
    fn beside<'a>(&self, offer: &'a Offer) -> &'a [GenaiTool] {
        if speaks_openai(self.choice.provider) { &[] } else { &offer.tools }
    }

    /// Does not offer these tools any more.
    fn set_aside(&self, names: &[String], reason: &str) {
        let mut offered = self.offered();
        for name in names {
            // Another turn may have been told the same.
            if !offered.set_aside.iter().any(|(known, _)| known == name) {
                log::set_aside(&self.label, name, reason);
                offered.set_aside.push((name.clone(), reason.to_owned()));
            }
        }
        offered.from = None;
    }

    /// The first sign of an answer, asked for again where that may help.
    async fn open(&self, prompt: &Prompt<'_>, until: Instant) -> Result<Opened, ModelError> {
        let Some(pass) = self.breaker.admit() else {
            return Err(ModelError(format!("{} is left alone after repeated failures", self.label)));
        };
        let mut attempt = Attempt { pass: Some(pass), until, answered: false };
        let mut delays =
            ExponentialBuilder::default().with_min_delay(FIRST_DELAY).with_max_times(RETRIES).with_jitter().build();
        loop {
            let offer = self.offer(prompt.tools);
            let tools = &offer.tools;
            let request = prompt::request(prompt, &self.label, self.beside(&offer).to_vec());
            let began = std::time::Instant::now();
            let fault = match self.first(request, &offer, until).await {
                Ok((first, rest)) if !is_empty(&first) || !prompt.steps.is_empty() => {
                    log::model_called(&self.choice, prompt::length(prompt), began);
                    attempt.answered = true;
                    return Ok(Opened { first: Some(first), rest, attempt, said: 0 });
                }
                Ok(_) => Fault::transient("an empty answer"),
                Err(fault) => fault,
            };
            log::model_failed(&self.choice, &fault.message);
            let wait = match fault.remedy {
                Remedy::WithoutTemperature if !self.without_temperature.swap(true, Ordering::Relaxed) => {
                    self.offered().from = None;
                    continue;
                }
                Remedy::WithoutTool(tool) if tools.iter().any(|offered| offered.name.as_str() == tool) => {
                    self.set_aside(&[tool], &fault.message);
                    continue;
                }
                Remedy::WithoutForeign => {
                    let foreign = prompt.tools.iter().filter(|spec| !spec.is_ours()).map(|spec| spec.name.to_string());
                    let foreign: Vec<_> =
                        foreign.filter(|name| tools.iter().any(|tool| tool.name.as_str() == name)).collect();
                    if foreign.is_empty() {
                        return Err(attempt.refused(fault.message));
                    }
                    self.set_aside(&foreign, &fault.message);
                    continue;
                }
                Remedy::Never | Remedy::WithoutTemperature | Remedy::WithoutTool(_) => {
                    return Err(attempt.refused(fault.message));
                }
                Remedy::Again(after) => delays.next().map(|delay| after.map_or(delay, |after| after.max(delay))),
                Remedy::Broken => None,
            };
            match wait {
                // What would come too late is not waited for.
                Some(wait) if Instant::now().checked_add(wait).is_some_and(|then| then < until) => {
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(attempt.failed(fault.message)),
            }
        }
    }

    fn fault(&self, error: &genai::Error, tools: &[GenaiTool]) -> Fault {
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let fault = Fault::of(error, &names, self.clock.now());
        Fault { message: self.redactor.text(&fault.message).into_owned(), ..fault }
    }

    /// Makes the request and waits for the first thing that the model says.
    async fn first(
        &self,
        request: ChatRequest,
        offer: &Offer,
        until: Instant,
    ) -> Result<(ChatStreamEvent, ChatStream), Fault> {
        let fault = |error: &genai::Error| self.fault(error, &offer.tools);
        let ask = self.client.exec_chat_stream(self.target.clone(), request, Some(&offer.options));
        let mut rest = ask.await.map_err(|error| fault(&error))?.stream;
        loop {
            let event = tokio::time::timeout_at(until, rest.next()).await.map_err(|_| Fault::late())?;
            match event {
                None => return Err(Fault::transient("the answer ended before it began")),
                Some(Err(error)) => return Err(fault(&error)),
                Some(Ok(ChatStreamEvent::Start | ChatStreamEvent::Heartbeat)) => {}
                Some(Ok(event)) => return Ok((event, rest)),
            }
        }
    }
}

impl ChatModel for Remote {
    fn name(&self) -> &str {
        &self.label
    }

    fn health(&self) -> Option<Health> {
        Some(Health { breaker: self.breaker.snapshot(), set_aside: self.offered().set_aside.clone() })
    }

    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let until = prompt.until.unwrap_or_else(|| Instant::now() + PATIENCE);
        let opening = async move { self.open(&prompt, until).await };
        let replies = stream::once(opening).flat_map(move |opened| match opened {
            Ok(opened) => self.deltas(opened).boxed(),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        });
        replies.boxed()
    }
}

impl Remote {
    /// Everything that the model says, once it has begun.
    fn deltas(&self, opened: Opened) -> impl Stream<Item = Result<Delta, ModelError>> + Send {
        let states = stream::unfold(Some(opened), move |opened| async move {
            let mut opened = opened?;
            let event = match opened.first.take() {
                Some(first) => Some(Ok(first)),
                None => match tokio::time::timeout_at(opened.attempt.until, opened.rest.next()).await {
                    Ok(event) => event,
                    Err(_) => return Some((vec![Err(opened.attempt.failed(Fault::late().message))], None)),
                },
            };
            match event {
                Some(Ok(ChatStreamEvent::Chunk(chunk))) => {
                    opened.said += chunk.content.len();
                    Some((vec![Ok(Delta::Text(chunk.content))], Some(opened)))
                }
                Some(Ok(ChatStreamEvent::ReasoningChunk(chunk))) => {
                    Some((vec![Ok(Delta::Thinking(chunk.content))], Some(opened)))
                }
                Some(Ok(ChatStreamEvent::End(end))) => Some((self.ended(opened, end), None)),
                Some(Ok(_)) => Some((Vec::new(), Some(opened))),
                Some(Err(error)) => {
                    let fault = self.fault(&error, &[]);
                    Some((vec![Err(opened.attempt.failed(fault.message))], None))
                }
                None => Some((vec![Err(opened.attempt.failed("the answer was cut off".to_owned()))], None)),
            }
        });
        states.flat_map(stream::iter)
    }

    /// The end of a reply: its calls, and what it cost.
    fn ended(&self, opened: Opened, end: StreamEnd) -> Vec<Result<Delta, ModelError>> {
        // Gemini's stream has no end mark but the reason why it ended.
        if self.choice.provider == Provider::Gemini && end.captured_stop_reason.is_none() {
            return vec![Err(opened.attempt.failed("the answer was cut off".to_owned()))];
        }
        let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
        log::model_result(&self.choice, opened.said, usage);
        opened.attempt.succeeded();
        linger(opened.rest);
        let mut deltas = Vec::new();
        if usage != Usage::default() {
            deltas.push(Ok(Delta::Usage(usage)));
        }
        let Some(content) = end.captured_content else { return deltas };
        let calls = content.tool_calls().into_iter().map(|call| {
            let arguments = match &call.fn_arguments {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                arguments => arguments.to_string(),
            };
            Ok(Delta::Call(Call { name: call.fn_name.clone(), arguments }))
        });
        deltas.extend(calls);
        let kept = Kept { by: self.label.clone(), content, reasoning: end.captured_reasoning_content };
        deltas.push(Ok(Delta::Memo(Memo(Arc::new(kept)))));
        deltas
    }
}

/// The end of a body may come after its last event, and only a connection that has seen it can be used again. The HTTP
/// client reads on by itself as long as somebody could still want the rest.
fn linger(rest: ChatStream) {
    tokio::spawn(async move {
        tokio::time::sleep(LINGER).await;
        drop(rest);
    });
}

/// A reply that has begun.
struct Opened {
    first: Option<ChatStreamEvent>,
    rest: ChatStream,
    attempt: Attempt,
    /// How much was said, in bytes.
    said: usize,
}

/// What the breaker hears of a reply: once, after all retries.
struct Attempt {
    pass: Option<Pass>,
    until: Instant,
    /// Whether the model has begun to answer.
    answered: bool,
}

impl Attempt {
    fn succeeded(mut self) {
        if let Some(pass) = self.pass.take() {
            pass.succeeded();
        }
    }

    fn failed(mut self, message: String) -> ModelError {
        if let Some(pass) = self.pass.take() {
            pass.failed(&message);
        }
        ModelError(message)
    }

    /// The request was wrong: that says nothing about the provider.
    fn refused(mut self, message: String) -> ModelError {
        drop(self.pass.take());
        ModelError(message)
    }
}

/// Whoever listens may have heard enough, or have waited for too long.
impl Drop for Attempt {
    fn drop(&mut self) {
        match self.pass.take() {
            Some(pass) if Instant::now() >= self.until => pass.failed(&Fault::late().message),
            Some(pass) if self.answered => pass.succeeded(),
            _ => {}
        }
    }
}

fn is_empty(event: &ChatStreamEvent) -> bool {
    matches!(event, ChatStreamEvent::End(end) if end.captured_content.as_ref().is_none_or(|content| content.is_empty()))
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |n: Option<i32>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
    let details = usage.completion_tokens_details.as_ref();
    Usage {
        input: count(usage.prompt_tokens),
        output: count(usage.completion_tokens),
        reasoning: count(details.and_then(|details| details.reasoning_tokens)),
    }
}

fn as_openai(tool: &GenaiTool) -> Value {
    let function = json!({
        "name": tool.name.as_str(), "description": tool.description, "parameters": tool.schema, "strict": false,
    });
    json!({"type": "function", "function": function})
}

fn speaks_openai(provider: Provider) -> bool {
    matches!(provider, Provider::OpenAi | Provider::OpenAiCompatible)
}

/// Where the model is, and with which key.
fn target(choice: &Choice) -> Result<ServiceTarget, String> {
    let (kind, default) = match choice.provider {
        Provider::Gemini => (AdapterKind::Gemini, "https://generativelanguage.googleapis.com/v1beta/"),
        Provider::Anthropic => (AdapterKind::Anthropic, "https://api.anthropic.com/v1/"),
        Provider::OpenAi | Provider::OpenAiCompatible => (AdapterKind::OpenAI, "https://api.openai.com/v1/"),
        Provider::Offline => return Err("the built-in model is asked otherwise".to_owned()),
    };
    let base = choice.base_url.as_deref().unwrap_or(default);
    let mut url = reqwest::Url::parse(base).map_err(|error| format!("'{base}' is no address: {error}"))?;
    let mut path = url.path().trim_end_matches('/').to_owned();
    // These two are usually given without the version.
    match choice.provider {
        Provider::Anthropic if !path.ends_with("/v1") => path.push_str("/v1"),
        Provider::Gemini if path.is_empty() => path.push_str("/v1beta"),
        _ => {}
    }
    url.set_path(&format!("{path}/"));
    let key = choice.key.as_ref().map(|key| key.expose_secret().to_owned());
    let auth = if speaks_openai(choice.provider) {
        let mut url = url.clone();
        url.set_path(&format!("{path}/chat/completions"));
        let mut headers = headers(choice);
        if let Some(key) = key {
            headers.merge(("Authorization".to_owned(), format!("Bearer {key}")));
        }
        AuthData::RequestOverride { url: url.to_string(), headers }
    } else {
        AuthData::from_single(key.unwrap_or_default())
    };
    let name = if speaks_openai(choice.provider) { neutral(&choice.name) } else { choice.name.clone() };
    Ok(ServiceTarget { endpoint: Endpoint::from_owned(url.to_string()), auth, model: ModelIden::new(kind, name) })
}

/// A name without an ending that would be taken for a wish about reasoning; the real one goes into the body.
fn neutral(name: &str) -> String {
    match genai::chat::ReasoningEffort::from_model_name(name) {
        (None, name) if !name.contains("::") => name.to_owned(),
        _ => "model".to_owned(),
    }
}

fn headers(choice: &Choice) -> Headers {
    let pairs = choice.headers.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
    Headers::from(pairs.collect::<std::collections::HashMap<_, _>>())
}
