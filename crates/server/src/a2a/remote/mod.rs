//! Carries out agents that run elsewhere (A2A-1): a run of ours is a message to them, and what becomes of it there is what
//! becomes of the run.
//!
//! A task goes on elsewhere while the connection is lost: it is asked for again until it can be heard, or is given up.

mod memory;
mod teller;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::a2a::client::{Auth, Client, Error, News, Options};
use ::a2a::types::{
    CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest,
};
use axum::http::HeaderName;
use background::backoff::{Backoff, Doubling};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use model::agent::endpoint::AuthType;
use model::agent::{Agent, CardAuth};
use model::execution::{Category, Outcome};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use supervisor::{Desk, Ended, Failure, Run, Runner, Stop};
use tokio::time::Instant;
use uuid::Uuid;

use self::memory::Known;
use self::teller::Teller;
use crate::App;
use crate::app::Fading;

/// How long a card is believed.
const FRESH: Duration = Duration::from_secs(60);
/// How long an agent that shall stop a task has for its answer.
const LAST_WORD: Duration = Duration::from_secs(5);
/// How long an agent may be out of reach while it has a task of ours.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long until it is asked again, at first and at most.
const DELAYS: Doubling = Doubling::new(Duration::from_millis(250), Duration::from_secs(5));

/// The runner of all agents elsewhere. Holds no more than a weak handle: the application holds it.
pub(crate) struct Elsewhere {
    app: Fading,
    clients: Mutex<HashMap<String, Cached>>,
    /// Tasks there that a try lost sight of, by our executions: the next try looks for them instead of asking twice.
    lost: Mutex<HashMap<Uuid, String>>,
}

/// A client, how it was made, and when.
struct Cached {
    client: Client,
    card_url: String,
    auth: Option<CardAuth>,
    token: Option<SecretString>,
    timeout: Duration,
    at: Instant,
}

impl Runner for Elsewhere {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            desk.started(None);
            let Some(app) = self.app.upgrade() else { return Failure::system("the server has gone").into() };
            match self.carry_out(&app, run, desk).await {
                Ok(ended) => ended,
                Err(failure) => Ended { stopped: desk.is_stopped().is_some(), ..failure.into() },
            }
        })
    }
}

impl Elsewhere {
    pub(crate) fn of(app: &App) -> Self {
        Self { app: app.downgrade(), clients: Mutex::default(), lost: Mutex::default() }
    }

    async fn carry_out(&self, app: &App, run: &Run, desk: &Desk) -> Result<Ended, Failure> {
        let known = memory::recall(app, run).await.map_err(|error| Failure::system(error.to_string()))?;
        let client = tokio::select! {
            client = self.client(app, run) => client?,
            _ = desk.stopped() => return Ok(Ended { stopped: true, ..Ended::default() }),
        };
        let lost = lock(&self.lost).remove(&run.id);
        let mut teller = Teller::new(desk, lost);
        let ended = talk(&client, run, desk, &known, &mut teller).await;
        if let Err(failure) = &ended {
            lock(&self.clients).remove(&run.agent.id);
            let again = failure.category == Category::Transient && run.attempt <= i64::from(run.agent.max_retries);
            if let (true, Some(task)) = (again, &teller.task) {
                lock(&self.lost).insert(run.id, task.clone());
            }
        }
        let asks = ended.as_ref().is_ok_and(|ended| ended.outcome == Some(Outcome::Asks));
        let asking = teller.task.take().filter(|_| asks);
        let context = teller.context.take().or_else(|| known.context.clone());
        if let Err(error) = memory::keep(app, run.owner, &run.agent.id, known, context, asking).await {
            tracing::warn!(event = "context_not_kept", execution_id = %run.id, error = %error);
        }
        ended
    }

    /// The client for the agent, by a card that is not old.
    async fn client(&self, app: &App, run: &Run) -> Result<Client, Failure> {
        let agent = &run.agent;
        let card_url = agent.card_url.clone().unwrap_or_default();
        let token = app.supervisor().token_for(agent)?.map(SecretString::from);
        let timeout = agent.timeout.duration();
        let same = |cached: &Cached| {
            let plain = |token: &Option<SecretString>| token.as_ref().map(|token| token.expose_secret().to_owned());
            cached.card_url == card_url
                && cached.auth == agent.card_auth
                && plain(&cached.token) == plain(&token)
                && cached.timeout == timeout
                && cached.at.elapsed() < FRESH
        };
        if let Some(cached) = lock(&self.clients).get(&agent.id).filter(|cached| same(cached)) {
            return Ok(cached.client.clone());
        }
        let client = discover(agent, token.as_ref()).await?;
        let auth = agent.card_auth.clone();
        let cached = Cached { client: client.clone(), card_url, auth, token, timeout, at: Instant::now() };
        lock(&self.clients).insert(agent.id.clone(), cached);
        Ok(client)
    }
}

/// Reads the card of an agent elsewhere, as a run would.
pub async fn elsewhere(agent: &Agent, variables: &dyn Fn(&str) -> Option<String>) -> Result<Client, Failure> {
    let token = supervisor::check::token(agent, variables)?.map(SecretString::from);
    discover(agent, token.as_ref()).await
}

async fn discover(agent: &Agent, token: Option<&SecretString>) -> Result<Client, Failure> {
    let mut options = options(agent.card_auth.as_ref().zip(token))?;
    options.limits.send = agent.timeout.duration();
    Client::discover(agent.card_url.as_deref().unwrap_or_default(), &options).await.map_err(|error| failed(&error))
}

/// How agents elsewhere are spoken to. Whoever configured the address may configure a private one.
fn options(shown: Option<(&CardAuth, &SecretString)>) -> Result<Options, Failure> {
    let auth = shown.map(|(auth, token)| match (auth.kind, &auth.header_name) {
        (AuthType::BearerToken, None) => Ok(Auth::Bearer(token.clone())),
        _ => {
            let name = HeaderName::try_from(auth.header());
            let name = name.map_err(|_| Failure::permanent("card_auth.header_name is not the name of a header"))?;
            Ok::<_, Failure>(Auth::Header(name, SecretString::from(auth.value(token.expose_secret()))))
        }
    });
    let user_agent = Some(format!("adjutant/{}", env!("CARGO_PKG_VERSION")));
    Ok(Options { auth: auth.transpose()?, user_agent, ..Options::default() })
}

/// Sends the message and hears what becomes of it, to the end.
async fn talk(
    client: &Client,
    run: &Run,
    desk: &Desk,
    known: &Known,
    teller: &mut Teller<'_>,
) -> Result<Ended, Failure> {
    let mut news = match &teller.task {
        Some(_) => stream::empty().boxed(),
        None => match begin(client, message(run, known)?, desk, teller).await? {
            Some(news) => news,
            None => return Ok(Ended { stopped: true, ..Ended::default() }),
        },
    };
    let mut reach = Reach::default();
    loop {
        let update = tokio::select! {
            update = news.next() => update,
            why = desk.stopped() => return Ok(withdraw(client, teller, why).await),
        };
        let why = match update {
            Some(Ok(update)) => {
                reach.heard();
                let whole = matches!(update, StreamResponse::Task(_) | StreamResponse::Message(_));
                let Some(ended) = teller.hear(update).await else { continue };
                // What was told while nobody listened stands in the task.
                if reach.was_lost && !whole {
                    reconcile(client, teller).await;
                }
                return Ok(ended);
            }
            Some(Err(error)) if !error.is_transient() => return Err(failed(&error)),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let Some(task) = teller.task.clone() else {
            return Err(why.map_or_else(|| Failure::agent("the agent said nothing"), |error| failed(&error)));
        };
        let looked = tokio::select! {
            looked = look(client, &task, teller, &mut reach, why) => looked?,
            why = desk.stopped() => return Ok(withdraw(client, teller, why).await),
        };
        match looked {
            Looked::Ended(ended) => return Ok(*ended),
            Looked::Listens(again) => news = again,
            Looked::Works => news = stream::empty().boxed(),
        }
    }
}

/// Sends the message. Nothing, where it was to be stopped before there was an answer.
async fn begin(
    client: &Client,
    request: SendMessageRequest,
    desk: &Desk,
    teller: &mut Teller<'_>,
) -> Result<Option<News>, Failure> {
    let streams = client.card().capabilities.streaming == Some(true);
    let sending = async {
        if streams {
            return client.stream(request).await;
        }
        let update = match client.send(request).await? {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
        };
        Ok(stream::iter([Ok(update)]).boxed())
    };
    let mut sending = std::pin::pin!(sending);
    let why = tokio::select! {
        news = &mut sending => return news.map(Some).map_err(|error| failed(&error)),
        why = desk.stopped() => why,
    };
    // What has begun there can only be stopped once it has a name.
    let first = async { sending.await.ok()?.next().await?.ok() };
    if let Ok(Some(update)) = tokio::time::timeout(LAST_WORD, first).await
        && teller.hear(update).await.is_none()
    {
        withdraw(client, teller, why).await;
    }
    Ok(None)
}

/// Asks the agent to stop its task, for a moment. What somebody else has by now is left to them.
async fn withdraw(client: &Client, teller: &Teller<'_>, why: Stop) -> Ended {
    if let (Some(id), true) = (teller.task.clone(), why != Stop::Lost) {
        let request = CancelTaskRequest { id, metadata: None, tenant: None };
        match tokio::time::timeout(LAST_WORD, client.cancel(request)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(event = "remote_task_not_cancelled", error = %error),
            Err(_) => tracing::warn!(event = "remote_task_not_cancelled", error = "no answer"),
        }
    }
    Ended { stopped: true, ..Ended::default() }
}

/// How well the agent can be reached.
struct Reach {
    since: Instant,
    backoff: Backoff,
    /// Whether something may have been missed.
    was_lost: bool,
}

impl Default for Reach {
    fn default() -> Self {
        Self { since: Instant::now(), backoff: DELAYS.start(), was_lost: false }
    }
}

impl Reach {
    fn heard(&mut self) {
        self.since = Instant::now();
        self.backoff.reset();
    }

    /// Waits a little longer every time.
    async fn wait(&mut self) {
        tokio::time::sleep(self.backoff.next_delay()).await;
    }
}

/// What became of a task that is not heard of any more.
enum Looked {
    Ended(Box<Ended>),
    Listens(News),
    Works,
}

/// Looks for the task, for a while after it was last heard of.
async fn look(
    client: &Client,
    id: &str,
    teller: &mut Teller<'_>,
    reach: &mut Reach,
    why: Option<Error>,
) -> Result<Looked, Failure> {
    let lost = why.is_some();
    reach.was_lost = true;
    if let Some(error) = why.filter(|_| reach.since.elapsed() >= PATIENCE) {
        return Err(failed(&error));
    }
    reach.wait().await;
    let streams = client.card().capabilities.streaming == Some(true);
    if streams {
        let request = SubscribeToTaskRequest { id: id.to_owned(), tenant: None };
        // Who cannot be heard this way, or says nothing at all, is asked the other.
        if let Ok(mut news) = client.subscribe(request).await
            && let Some(first) = news.next().await
        {
            return Ok(Looked::Listens(stream::iter([first]).chain(news).boxed()));
        }
    }
    match get(client, id).await {
        Ok(task) => {
            let backoff = reach.backoff;
            reach.heard();
            // An agent that works without interruption is not asked more often.
            if !lost {
                reach.backoff = backoff;
            }
            Ok(teller.hear_task(task).await.map_or(Looked::Works, |ended| Looked::Ended(Box::new(ended))))
        }
        Err(error) if !error.is_transient() || reach.since.elapsed() >= PATIENCE => Err(failed(&error)),
        Err(_) => Ok(Looked::Works),
    }
}

async fn reconcile(client: &Client, teller: &mut Teller<'_>) {
    if let Some(id) = teller.task.clone()
        && let Ok(task) = get(client, &id).await
    {
        teller.hear_task(task).await;
    }
}

async fn get(client: &Client, id: &str) -> Result<::a2a::types::Task, Error> {
    client.get(GetTaskRequest { id: id.to_owned(), history_length: Some(0), tenant: None }).await
}

/// What is sent: the message as it came, or the text; what a run is given besides travels as metadata.
fn message(run: &Run, known: &Known) -> Result<SendMessageRequest, Failure> {
    let unreadable = |error: serde_json::Error| Failure::permanent(format!("the message cannot be read: {error}"));
    let given = run.request.message.as_ref();
    let given = given.map(Message::deserialize).transpose().map_err(unreadable)?;
    let (parts, metadata) = match given {
        Some(message) if !message.parts.is_empty() => (message.parts, message.metadata.unwrap_or_default()),
        _ => (vec![Part::text(&run.request.input)], HashMap::new()),
    };
    let parameters = run.agent.parameters.clone().into_iter().chain(run.request.parameters.clone());
    let metadata: HashMap<_, _> = metadata.into_iter().chain(parameters).collect();
    let message = Message {
        // The same for every try: an agent may know by it what it was asked already.
        message_id: run.id.to_string(),
        context_id: known.context.clone(),
        task_id: known.task.clone(),
        role: Role::User,
        parts,
        metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
        extensions: None,
        reference_task_ids: None,
    };
    let configuration = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: Some(0),
        return_immediately: Some(true),
    };
    Ok(SendMessageRequest { message, configuration: Some(configuration), metadata: None, tenant: None })
}

/// What an error of the client means to a run.
fn failed(error: &Error) -> Failure {
    let words = error.to_string();
    match error {
        _ if error.is_transient() => Failure::transient(words),
        Error::Refused { status: 401 | 403 | 404, .. } | Error::Address(_) | Error::Card(_) => {
            Failure::permanent(words)
        }
        _ => Failure::agent(words),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
