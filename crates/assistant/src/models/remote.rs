//! A model of a provider, asked over HTTP. What can fail fails here: asked again where that may help, given up after a
//! few failures in a row, and never waited for longer than the turn has time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use http_body_util::Full;
use model::Clock;
use model::breaker::{Breaker, Breakers, Pass, Rules};
use redact::{Redactor, What};
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, Url};
use secrecy::ExposeSecret;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};
use tools::Specs;

use super::events::Events;
use super::fault::{Fault, Remedy};
use super::heard::Heard;
use super::prompt::{self, Told};
use super::wire::{Ask, Tool, Wire};
use super::{Choice, schema};
use crate::{ChatModel, Delta, Health, ModelError, Prompt, log};

/// How often a request is made again.
const RETRIES: usize = 2;
const FIRST_DELAY: Duration = Duration::from_millis(250);
const CONNECT: Duration = Duration::from_secs(5);
/// How much of an error is read, in bytes.
const MAX_ERROR: usize = 64 * 1024;
/// The most tools that are offered: providers take no more.
const MAX_TOOLS: usize = 128;
/// The longest wait where nothing else sets a limit.
const PATIENCE: Duration = Duration::from_secs(600);

pub struct Remote {
    label: String,
    choice: Choice,
    wire: Wire,
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
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
    names: Vec<String>,
    tools: Option<Box<RawValue>>,
    temperature: Option<f64>,
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
        let wire = Wire::of(choice.provider);
        let wire = wire.ok_or_else(|| unusable("the built-in model is asked otherwise".to_owned()))?;
        let url = wire.url(&choice).map_err(unusable)?;
        let headers = wire.headers(&choice).map_err(unusable)?;
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            // A key is sent to the address that was configured, and nowhere else.
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(usize::MAX)
            .tcp_nodelay(true)
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let breaker = breakers.of(&label, Rules::MODEL);
        let secrets = choice.key.iter().chain(choice.headers.iter().map(|(_, value)| value));
        let redactor =
            Redactor::new(What::default()).with_known(secrets.map(|secret| secret.expose_secret().to_owned()));
        let without_temperature = AtomicBool::new(false);
        let offered = Mutex::default();
        Ok(Self { label, choice, wire, client, url, headers, breaker, clock, redactor, without_temperature, offered })
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
            let tools = usable.take(MAX_TOOLS).map(|spec| Tool {
                name: &spec.name,
                description: &spec.description,
                schema: schema::adapt(&spec.schema, self.choice.provider),
            });
            let tools: Vec<_> = tools.collect();
            offered.offer = Arc::new(Offer {
                names: tools.iter().map(|tool| tool.name.to_owned()).collect(),
                tools: if tools.is_empty() { None } else { self.wire.tools(&tools).ok() },
                temperature: self.choice.temperature.filter(|_| !self.without_temperature.load(Ordering::Relaxed)),
            });
            offered.from = Some(specs.clone());
        }
        offered.offer.clone()
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
    async fn open(&self, prompt: &Prompt<'_>, until: Instant) -> Result<Box<Opened>, ModelError> {
        let Some(pass) = self.breaker.admit() else {
            return Err(ModelError(format!("{} is left alone after repeated failures", self.label)));
        };
        let mut attempt = Attempt { pass: Some(pass), until, answered: false };
        let mut delays =
            ExponentialBuilder::default().with_min_delay(FIRST_DELAY).with_max_times(RETRIES).with_jitter().build();
        loop {
            let offer = self.offer(prompt.tools);
            let began = std::time::Instant::now();
            let first = timeout_at(until, self.first(prompt, &offer)).await.unwrap_or_else(|_| Err(Fault::late()));
            let fault = match first.map_err(|fault| fault.cleaned(&self.redactor)) {
                Ok(answer) if !answer.heard.ended || !answer.heard.is_empty() || !prompt.steps.is_empty() => {
                    log::model_called(&self.choice, prompt::length(prompt), began);
                    attempt.answered = true;
                    return Ok(Box::new(Opened { answer, attempt }));
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
                Remedy::WithoutTool(tool) if offer.names.contains(&tool) => {
                    self.set_aside(&[tool], &fault.message);
                    continue;
                }
                Remedy::WithoutForeign => {
                    let foreign = prompt.tools.iter().filter(|spec| !spec.is_ours()).map(|spec| spec.name.to_string());
                    let foreign: Vec<_> = foreign.filter(|name| offer.names.contains(name)).collect();
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

    /// Makes the request and waits for the first thing that the model says.
    async fn first(&self, prompt: &Prompt<'_>, offer: &Offer) -> Result<Answer, Fault> {
        let mut request = reqwest::Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        // A body that cannot be sent twice is not kept for that.
        *request.body_mut() = Some(reqwest::Body::wrap(Full::<Bytes>::from(self.body(prompt, offer)?)));
        let response = self.client.execute(request).await.map_err(|error| Fault::connection(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response, offer).await);
        }
        let mut answer = Answer { wire: self.wire, events: Events::new(response), heard: Heard::default() };
        while !answer.heard.begun && !answer.heard.ended {
            answer.listen().await?;
        }
        Ok(answer)
    }

    fn body(&self, prompt: &Prompt<'_>, offer: &Offer) -> Result<Vec<u8>, Fault> {
        let told = Told::new(prompt, &self.label);
        let model = self.choice.name.as_str();
        let temperature = offer.temperature;
        let tools = offer.tools.as_deref();
        let body = self.wire.write(&Ask { model, temperature, tools, told: &told });
        body.map_err(|error| Fault::broken(format!("the request cannot be written: {error}")))
    }

    async fn refusal(&self, mut response: Response, offer: &Offer) -> Fault {
        let mut body = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR - body.len())]);
            if body.len() == MAX_ERROR {
                break;
            }
        }
        let status = response.status();
        let headers = response.headers();
        Fault::refusal(status, headers, &String::from_utf8_lossy(&body), &offer.names, self.clock.now())
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
        let states = stream::unfold(State::Asking, move |state| async move {
            let mut opened = match state {
                State::Asking => match Box::pin(self.open(&prompt, until)).await {
                    Ok(opened) => opened,
                    Err(error) => return Some((Err(error), State::Over)),
                },
                State::Speaking(opened) => opened,
                State::Over => return None,
            };
            match self.next(&mut opened).await {
                Some(Ok(delta)) => Some((Ok(delta), State::Speaking(opened))),
                Some(Err(message)) => Some((Err(opened.attempt.failed(message)), State::Over)),
                None => {
                    opened.answer.events.end().await;
                    None
                }
            }
        });
        states.boxed()
    }
}

impl Remote {
    /// What the model says next, once it has begun; an error is for the log.
    async fn next(&self, opened: &mut Opened) -> Option<Result<Delta, String>> {
        let Opened { answer, attempt } = opened;
        loop {
            if let Some(delta) = answer.heard.fresh.pop_front() {
                return Some(Ok(delta));
            }
            if answer.heard.ended {
                // Nothing is left to tell once the breaker has heard of it.
                attempt.pass.as_ref()?;
                log::model_result(&self.choice, answer.heard.length(), answer.heard.usage);
                attempt.succeeded();
                answer.heard.conclude(&self.label);
                continue;
            }
            let listened = timeout_at(attempt.until, answer.listen()).await.unwrap_or_else(|_| Err(Fault::late()));
            if let Err(fault) = listened {
                return Some(Err(fault.cleaned(&self.redactor).message));
            }
        }
    }
}

/// How far a reply is.
enum State {
    Asking,
    Speaking(Box<Opened>),
    Over,
}

/// A reply that has begun.
struct Opened {
    answer: Answer,
    attempt: Attempt,
}

/// An answer under way.
struct Answer {
    wire: Wire,
    events: Events,
    heard: Heard,
}

impl Answer {
    /// Takes one event in.
    async fn listen(&mut self) -> Result<(), Fault> {
        match self.events.next().await? {
            Some(data) => self.wire.read(data, &mut self.heard),
            None if self.heard.stopped => {
                self.heard.ended = true;
                Ok(())
            }
            None if self.heard.begun => Err(Fault::transient("the answer was cut off")),
            None => Err(Fault::transient(format!("the answer ended before it began: {}", self.events.ignored()))),
        }
    }
}

/// What the breaker hears of a reply: once, after all retries.
struct Attempt {
    pass: Option<Pass>,
    until: Instant,
    /// Whether the model has begun to answer.
    answered: bool,
}

impl Attempt {
    fn succeeded(&mut self) {
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
