//! Queries the model of a provider over HTTP. Retries transient failures, stops after repeated failures (circuit
//! breaker), and never waits beyond the deadline of the turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http_body_util::Full;
use model::Clock;
use model::breaker::{Breaker, BreakerConfig, Breakers, CallPermit};
use redact::{RedactOptions, Redactor};
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, Url};
use secrecy::ExposeSecret;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tools::ToolSpecs;

use super::accumulator::ReplyAccumulator;
use super::events::ProviderEvents;
use super::provider_error::{ProviderError, Remedy};
use super::transcript::{ModelTranscript, prompt_length};
use super::wire::{OfferedTool, ProviderWire, WireRequest};
use super::{ModelConfig, schema};
use crate::{ChatModel, ModelError, ModelHealth, Prompt, ReplyDelta, log};

/// The maximum number of retries of a request.
const MAX_RETRIES: usize = 2;
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of an error response that is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The maximum number of tools in a request. Providers accept no more.
const MAX_TOOLS: usize = 128;
/// The timeout of a call without a deadline.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// A model of a provider.
pub struct RemoteModel {
    label: String,
    config: ModelConfig,
    wire: ProviderWire,
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    breaker: Arc<Breaker>,
    clock: Clock,
    /// Removes the key from error messages, because providers repeat rejected keys.
    redactor: Redactor,
    /// Set after the provider has rejected a temperature.
    without_temperature: AtomicBool,
    tool_cache: Mutex<ToolCache>,
}

/// The tools in the format of this provider.
#[derive(Default)]
struct ToolCache {
    /// The specifications from which `prepared` was created. `None` if it must be created again.
    specs: Option<ToolSpecs>,
    prepared: Arc<PreparedTools>,
    /// Names of the tools that the provider rejected, each with its reason.
    rejected: Vec<(String, String)>,
}

/// The part of a request that is the same for all turns.
#[derive(Default)]
struct PreparedTools {
    /// The names of the tools, in their order in the request.
    names: Vec<String>,
    /// The output of [`ProviderWire::tools`]. `None` without tools.
    tools: Option<Box<RawValue>>,
    temperature: Option<f64>,
}

/// An invalid configuration of a model.
#[derive(Debug, thiserror::Error)]
#[error("{label}: {cause}")]
pub struct ModelConfigError {
    label: String,
    cause: String,
}

impl RemoteModel {
    /// Creates a model. Models with the same label share a circuit breaker. Redirects are not followed. Fails if the
    /// configuration has an invalid URL or header or names the built-in model, or if the HTTP client cannot be created.
    pub fn new(config: ModelConfig, breakers: &Breakers, clock: Clock) -> Result<Self, ModelConfigError> {
        let label = config.label();
        let invalid = |cause: String| ModelConfigError { label: label.clone(), cause };
        let wire = ProviderWire::for_provider(config.provider);
        let wire = wire.ok_or_else(|| invalid("the built-in model has no provider".to_owned()))?;
        let url = wire.url(&config).map_err(invalid)?;
        let headers = wire.headers(&config).map_err(invalid)?;
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // The key is sent only to the configured address.
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(usize::MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        let breaker = breakers.get_or_create(&label, BreakerConfig::MODEL);
        let secrets = config.api_key.iter().chain(config.headers.iter().map(|(_, value)| value));
        let redactor =
            Redactor::new(RedactOptions::default()).with_known(secrets.map(|secret| secret.expose_secret().to_owned()));
        let without_temperature = AtomicBool::new(false);
        let tool_cache = Mutex::default();
        Ok(Self {
            label,
            config,
            wire,
            client,
            url,
            headers,
            breaker,
            clock,
            redactor,
            without_temperature,
            tool_cache,
        })
    }

    fn tool_cache(&self) -> MutexGuard<'_, ToolCache> {
        self.tool_cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tools in the format of this provider: the first [`MAX_TOOLS`] that were not rejected, and none if
    /// they cannot be serialized. Also contains the temperature, unless it was rejected. Cached until `specs` is
    /// another list, a tool is rejected or the temperature is dropped. A new list also removes the rejections of tools
    /// that it does not contain.
    fn prepare_tools(&self, specs: &ToolSpecs) -> Arc<PreparedTools> {
        let mut cache = self.tool_cache();
        let same = |cached: &ToolSpecs| std::ptr::eq(&**cached, &**specs);
        if !cache.specs.as_ref().is_some_and(same) {
            let rejected = std::mem::take(&mut cache.rejected);
            // Forgets the rejections of tools that no longer exist.
            let exists = |name: &str| specs.iter().any(|spec| spec.name == *name);
            cache.rejected = rejected.into_iter().filter(|(name, _)| exists(name)).collect();
            let usable = specs.iter().filter(|spec| !cache.rejected.iter().any(|(name, _)| *name == *spec.name));
            let tools = usable.take(MAX_TOOLS).map(|spec| OfferedTool {
                name: &spec.name,
                description: &spec.description,
                schema: schema::adapt(&spec.schema, self.config.provider),
            });
            let tools: Vec<_> = tools.collect();
            cache.prepared = Arc::new(PreparedTools {
                names: tools.iter().map(|tool| tool.name.to_owned()).collect(),
                tools: if tools.is_empty() { None } else { self.wire.tools(&tools).ok() },
                temperature: self.config.temperature.filter(|_| !self.without_temperature.load(Ordering::Relaxed)),
            });
            cache.specs = Some(specs.clone());
        }
        cache.prepared.clone()
    }

    /// Removes these tools from all further requests and logs each with the reason. Ignores tools that are rejected
    /// already.
    fn reject_tools(&self, names: &[String], reason: &str) {
        let mut cache = self.tool_cache();
        for name in names {
            // A concurrent turn may have rejected the tool already.
            if !cache.rejected.iter().any(|(known, _)| known == name) {
                log::tool_rejected(&self.label, name, reason);
                cache.rejected.push((name.clone(), reason.to_owned()));
            }
        }
        cache.specs = None;
    }

    /// Sends the request and waits for the start of the reply. A transient failure is retried up to [`MAX_RETRIES`]
    /// times, after the longer of the backoff and the delay of the provider. A rejected temperature or tool is left out
    /// from now on, and the request is repeated at once. An empty reply is retried, unless tools were already called in
    /// this turn.
    ///
    /// Fails if the circuit breaker is open, the remedies do not help, or the deadline would pass before a retry. The
    /// circuit breaker counts transient and unusable failures, but no rejected request. Every failed attempt is logged.
    async fn start_reply(&self, prompt: &Prompt<'_>, deadline: Instant) -> Result<Box<StartedReply>, ModelError> {
        let Some(permit) = self.breaker.try_acquire() else {
            return Err(ModelError(format!("{} is paused after repeated failures", self.label)));
        };
        let mut attempt = ModelAttempt { permit: Some(permit), deadline, answered: false };
        let mut delays = ExponentialBuilder::default()
            .with_min_delay(FIRST_RETRY_DELAY)
            .with_max_times(MAX_RETRIES)
            .with_jitter()
            .build();
        loop {
            let tools = self.prepare_tools(prompt.tools);
            let started = std::time::Instant::now();
            let sent = timeout_at(deadline, self.send(prompt, &tools)).await;
            let sent = sent.unwrap_or_else(|_| Err(ProviderError::timeout()));
            let error = match sent.map_err(|error| error.redacted(&self.redactor)) {
                Ok(reader) if !reader.reply.ended || !reader.reply.is_empty() || !prompt.steps.is_empty() => {
                    log::model_called(&self.config, prompt_length(prompt), started);
                    attempt.answered = true;
                    return Ok(Box::new(StartedReply { reader, attempt }));
                }
                Ok(_) => ProviderError::transient("the answer is empty"),
                Err(error) => error,
            };
            log::model_failed(&self.config, &error.message);
            let delay = match error.remedy {
                Remedy::WithoutTemperature if !self.without_temperature.swap(true, Ordering::Relaxed) => {
                    self.tool_cache().specs = None;
                    continue;
                }
                Remedy::WithoutTool(tool) if tools.names.contains(&tool) => {
                    self.reject_tools(&[tool], &error.message);
                    continue;
                }
                Remedy::WithoutExternalTools => {
                    let external = prompt.tools.iter().filter(|spec| !spec.is_built_in());
                    let external = external.map(|spec| spec.name.to_string());
                    let external: Vec<_> = external.filter(|name| tools.names.contains(name)).collect();
                    if external.is_empty() {
                        return Err(attempt.refused(error.message));
                    }
                    self.reject_tools(&external, &error.message);
                    continue;
                }
                Remedy::InvalidRequest | Remedy::WithoutTemperature | Remedy::WithoutTool(_) => {
                    return Err(attempt.refused(error.message));
                }
                Remedy::Retry(after) => delays.next().map(|delay| after.map_or(delay, |after| after.max(delay))),
                Remedy::Unusable => None,
            };
            match delay {
                // A retry after the deadline would be useless.
                Some(delay) if Instant::now().checked_add(delay).is_some_and(|then| then < deadline) => {
                    tokio::time::sleep(delay).await;
                }
                _ => return Err(attempt.failed(error.message)),
            }
        }
    }

    /// Sends the request once and waits for the first content of the reply, or for its end. Has no timeout. Fails if
    /// the request cannot be serialized, the connection fails or the status is not a success. Also fails if an event is
    /// invalid, too large or reports an error, or if the answer ends without content and stop reason.
    async fn send(&self, prompt: &Prompt<'_>, tools: &PreparedTools) -> Result<ReplyReader, ProviderError> {
        let mut request = reqwest::Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        // A streamed body is not retained for a second request, which never happens here.
        *request.body_mut() = Some(reqwest::Body::wrap(Full::<Bytes>::from(self.body(prompt, tools)?)));
        let response = self.client.execute(request).await.map_err(|error| ProviderError::connection(&error))?;
        if !response.status().is_success() {
            return Err(self.read_error(response, tools).await);
        }
        let events = ProviderEvents::new(response);
        let mut reader = ReplyReader { wire: self.wire, events, reply: ReplyAccumulator::default() };
        while !reader.reply.begun && !reader.reply.ended {
            reader.read_event().await?;
        }
        Ok(reader)
    }

    /// Serializes the request: the transcript, the model, the temperature and the tools. Fails with
    /// [`Remedy::Unusable`] if the serialization fails.
    fn body(&self, prompt: &Prompt<'_>, tools: &PreparedTools) -> Result<Vec<u8>, ProviderError> {
        let transcript = ModelTranscript::new(prompt, &self.label);
        let model = self.config.name.as_str();
        let temperature = tools.temperature;
        let tools = tools.tools.as_deref();
        let body = self.wire.write(&WireRequest { model, temperature, tools, transcript: &transcript });
        body.map_err(|error| ProviderError::unusable(format!("cannot serialize the request: {error}")))
    }

    /// Reads an error response and determines the remedy from its status, headers and body. Uses at most
    /// [`MAX_ERROR_BYTES`] of the body. If reading fails, uses the part so far.
    async fn read_error(&self, mut response: Response, tools: &PreparedTools) -> ProviderError {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BYTES - body.len())]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
        let status = response.status();
        let headers = response.headers();
        ProviderError::from_response(status, headers, &String::from_utf8_lossy(&body), &tools.names, self.clock.now())
    }
}

impl ChatModel for RemoteModel {
    fn name(&self) -> &str {
        &self.label
    }

    fn health(&self) -> Option<ModelHealth> {
        Some(ModelHealth { breaker: self.breaker.snapshot(), rejected_tools: self.tool_cache().rejected.clone() })
    }

    /// Starts the request when the stream is first polled. Without a deadline in the prompt, the limit is 10 minutes,
    /// counted from this call. Transient failures are retried only before the first content. An error is the last item.
    /// Sends at most [`MAX_TOOLS`] tools. A tool or a temperature that the provider rejects is left out of this and all
    /// further requests. After the last delta, waits briefly for the end of the body, so that the connection can be
    /// reused. Dropping the stream after the deadline counts as a failure for the circuit breaker.
    fn reply<'a>(&'a self, prompt: Prompt<'a>) -> BoxStream<'a, Result<ReplyDelta, ModelError>> {
        let deadline = prompt.deadline.unwrap_or_else(|| Instant::now() + DEFAULT_TIMEOUT);
        let deltas = stream::unfold(ReplyState::Requesting, move |state| async move {
            let mut started = match state {
                ReplyState::Requesting => match Box::pin(self.start_reply(&prompt, deadline)).await {
                    Ok(started) => started,
                    Err(error) => return Some((Err(error), ReplyState::Ended)),
                },
                ReplyState::Streaming(started) => started,
                ReplyState::Ended => return None,
            };
            match self.next_delta(&mut started).await {
                Some(Ok(delta)) => Some((Ok(delta), ReplyState::Streaming(started))),
                Some(Err(message)) => Some((Err(started.attempt.failed(message)), ReplyState::Ended)),
                None => {
                    started.reader.events.end().await;
                    None
                }
            }
        });
        deltas.boxed()
    }
}

impl RemoteModel {
    /// Returns the next delta of a started reply, or `None` after the last one. At the end of the reply, logs it and
    /// reports the success to the circuit breaker. Then yields the usage, the calls and the provider state. Fails with
    /// a redacted message if the deadline passes or the event cannot be read.
    async fn next_delta(&self, started: &mut StartedReply) -> Option<Result<ReplyDelta, String>> {
        let StartedReply { reader, attempt } = started;
        loop {
            if let Some(delta) = reader.reply.deltas.pop_front() {
                return Some(Ok(delta));
            }
            if reader.reply.ended {
                // The permit is used up once all deltas have been returned.
                attempt.permit.as_ref()?;
                log::model_result(&self.config, reader.reply.text_length(), reader.reply.usage);
                attempt.succeeded();
                reader.reply.finish(&self.label);
                continue;
            }
            let read = timeout_at(attempt.deadline, reader.read_event()).await;
            if let Err(error) = read.unwrap_or_else(|_| Err(ProviderError::timeout())) {
                return Some(Err(error.redacted(&self.redactor).message));
            }
        }
    }
}

/// The progress of a reply.
enum ReplyState {
    Requesting,
    Streaming(Box<StartedReply>),
    Ended,
}

/// A reply after its first content has arrived.
struct StartedReply {
    reader: ReplyReader,
    attempt: ModelAttempt,
}

/// Reads a reply from the events of the provider.
struct ReplyReader {
    wire: ProviderWire,
    events: ProviderEvents,
    reply: ReplyAccumulator,
}

impl ReplyReader {
    /// Reads one event into the reply. The end of the answer after a stop reason ends the reply. Fails if the
    /// connection is lost, or if the event is too large, cannot be decoded or reports an error. Also fails if the
    /// answer ends without a stop reason.
    async fn read_event(&mut self) -> Result<(), ProviderError> {
        match self.events.next().await? {
            Some(data) => self.wire.read(data, &mut self.reply),
            None if self.reply.stopped => {
                self.reply.ended = true;
                Ok(())
            }
            None if self.reply.begun => Err(ProviderError::transient("the answer is incomplete")),
            None => Err(ProviderError::transient(format!("the answer has no content: {}", self.events.ignored()))),
        }
    }
}

/// Reports the result of a reply to the circuit breaker: once, after all retries.
struct ModelAttempt {
    permit: Option<CallPermit>,
    deadline: Instant,
    /// Set when the model has started to answer.
    answered: bool,
}

impl ModelAttempt {
    fn succeeded(&mut self) {
        if let Some(permit) = self.permit.take() {
            permit.succeeded();
        }
    }

    /// Reports the failure to the circuit breaker, unless the result was already reported.
    fn failed(mut self, message: String) -> ModelError {
        if let Some(permit) = self.permit.take() {
            permit.failed(&message);
        }
        ModelError(message)
    }

    /// Ends the attempt without a result, because an invalid request does not indicate a failure of the provider.
    fn refused(mut self, message: String) -> ModelError {
        drop(self.permit.take());
        ModelError(message)
    }
}

/// The turn may drop the stream early: because it has enough text, or because its deadline has passed. After the
/// deadline, this counts as a failure. Before it, an answer that has started counts as a success.
impl Drop for ModelAttempt {
    fn drop(&mut self) {
        match self.permit.take() {
            Some(permit) if Instant::now() >= self.deadline => permit.failed(&ProviderError::timeout().message),
            Some(permit) if self.answered => permit.succeeded(),
            _ => {}
        }
    }
}
