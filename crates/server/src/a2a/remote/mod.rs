//! Runs agents of other servers over A2A (A2A-1). An attempt sends a message and relays the updates of the remote task.
//!
//! A remote task continues while the connection is lost. The runner reconnects until the task ends or a timeout
//! expires.

mod links;
mod relay;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::a2a::client::{A2aClient, ClientAuth, ClientOptions, Error, TaskUpdates};
use ::a2a::types::{
    CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest,
};
use axum::http::HeaderName;
use background::backoff::{Backoff, BackoffPolicy};
use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use model::agent::endpoint::EndpointAuthType;
use model::agent::{Agent, CardAuth};
use model::execution::{ErrorCategory, ExecutionOutcome};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use supervisor::{AgentRun, RunFailure, RunRecorder, RunResult, Runner, StopReason};
use tokio::time::Instant;
use uuid::Uuid;

use self::links::RemoteLink;
use self::relay::UpdateRelay;
use crate::App;
use crate::app::WeakApp;

/// The time for which a card is cached.
const CARD_TTL: Duration = Duration::from_secs(60);
/// The time limit for cancelling a remote task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which an unreachable agent fails the attempt.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The delays between attempts to reconnect.
const RECONNECT_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(250), Duration::from_secs(5));

/// The runner of all remote agents. It has a weak reference to the application, which owns it.
pub(crate) struct RemoteAgentRunner {
    app: WeakApp,
    /// The clients by the ids of their agents.
    clients: Mutex<HashMap<String, CachedClient>>,
    /// The remote tasks of failed attempts, by execution. A retry continues them instead of sending the message again.
    lost_tasks: Mutex<HashMap<Uuid, String>>,
}

/// A client with the settings and the time of its creation.
struct CachedClient {
    client: A2aClient,
    card_url: String,
    auth: Option<CardAuth>,
    token: Option<SecretString>,
    /// The timeout of the agent.
    timeout: Duration,
    created_at: Instant,
}

impl Runner for RemoteAgentRunner {
    /// Runs one attempt and records its start. Fails with a system failure if the server is stopping. A failure after a
    /// stop request is marked as stopped.
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            recorder.record_start(None);
            let Some(app) = self.app.upgrade() else { return RunFailure::system("the server is stopping").into() };
            match self.run_attempt(&app, run, recorder).await {
                Ok(result) => result,
                Err(failure) => RunResult { stopped: recorder.stop_reason().is_some(), ..failure.into() },
            }
        })
    }
}

impl RemoteAgentRunner {
    /// Returns the runner of an application.
    pub(crate) fn new(app: &App) -> Self {
        Self { app: app.downgrade(), clients: Mutex::default(), lost_tasks: Mutex::default() }
    }

    /// Runs one attempt. Afterwards saves the remote context, and the remote task if it awaits input. Otherwise removes
    /// a saved task, also after a failure. An error while saving is only logged. Returns a stopped result if a stop is
    /// requested before the client is ready; then nothing is saved.
    ///
    /// Fails if the link cannot be read, or like [`Self::client`] and [`exchange`]. A failure of the exchange removes
    /// the client from the cache. If it is transient, a retry follows and the remote task is known, the retry on this
    /// node continues that task.
    async fn run_attempt(&self, app: &App, run: &AgentRun, recorder: &RunRecorder) -> Result<RunResult, RunFailure> {
        let link = links::load(app, run).await.map_err(|error| RunFailure::system(error.to_string()))?;
        let client = tokio::select! {
            client = self.client(app, run) => client?,
            _ = recorder.stop_requested() => return Ok(RunResult { stopped: true, ..RunResult::default() }),
        };
        let lost_task = lock(&self.lost_tasks).remove(&run.id);
        let mut relay = UpdateRelay::new(recorder, lost_task);
        let result = exchange(&client, run, recorder, &link, &mut relay).await;
        if let Err(failure) = &result {
            lock(&self.clients).remove(&run.agent.id);
            let will_retry =
                failure.category == ErrorCategory::Transient && run.attempt <= i64::from(run.agent.max_retries);
            if let (true, Some(task)) = (will_retry, &relay.task) {
                lock(&self.lost_tasks).insert(run.id, task.clone());
            }
        }
        let awaits_input = result.as_ref().is_ok_and(|result| result.outcome == Some(ExecutionOutcome::InputRequired));
        let awaiting_task = relay.task.take().filter(|_| awaits_input);
        let context = relay.context.take().or_else(|| link.context.clone());
        if let Err(error) = links::save(app, run.owner, &run.agent.id, link, context, awaiting_task).await {
            tracing::warn!(event = "context_not_kept", execution_id = %run.id, error = %error);
        }
        result
    }

    /// Returns a client for the agent. A cached client is used for one minute, unless the URL, the authentication, the
    /// token or the timeout has changed. A new client is cached. Fails if the token is missing, the header name is
    /// invalid, or the card cannot be fetched or used.
    async fn client(&self, app: &App, run: &AgentRun) -> Result<A2aClient, RunFailure> {
        let agent = &run.agent;
        let card_url = agent.card_url.clone().unwrap_or_default();
        let token = app.supervisor().token_for(agent)?.map(SecretString::from);
        let timeout = agent.timeout.duration();
        let is_current = |cached: &CachedClient| {
            let plain = |token: &Option<SecretString>| token.as_ref().map(|token| token.expose_secret().to_owned());
            cached.card_url == card_url
                && cached.auth == agent.card_auth
                && plain(&cached.token) == plain(&token)
                && cached.timeout == timeout
                && cached.created_at.elapsed() < CARD_TTL
        };
        if let Some(cached) = lock(&self.clients).get(&agent.id).filter(|cached| is_current(cached)) {
            return Ok(cached.client.clone());
        }
        let client = discover(agent, token.as_ref()).await?;
        let auth = agent.card_auth.clone();
        let created_at = Instant::now();
        let cached = CachedClient { client: client.clone(), card_url, auth, token, timeout, created_at };
        lock(&self.clients).insert(agent.id.clone(), cached);
        Ok(client)
    }
}

/// Fetches the card of a remote agent as an execution does and returns a client.
///
/// Fails if the token is missing or the card cannot be used.
pub async fn discover_remote_agent(
    agent: &Agent,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<A2aClient, RunFailure> {
    let token = supervisor::check::remote_token(agent, variables)?.map(SecretString::from);
    discover(agent, token.as_ref()).await
}

/// Fetches the card of an agent and returns a client. The timeout of the agent limits each send. Fails permanently if
/// the header name is invalid. Fails like [`to_failure`] if the card cannot be fetched or used.
async fn discover(agent: &Agent, token: Option<&SecretString>) -> Result<A2aClient, RunFailure> {
    let mut options = client_options(agent.card_auth.as_ref().zip(token))?;
    options.limits.send_timeout = agent.timeout.duration();
    A2aClient::discover(agent.card_url.as_deref().unwrap_or_default(), &options)
        .await
        .map_err(|error| to_failure(&error))
}

/// Returns the client options for a remote agent. A bearer token without a header name is sent in `Authorization`.
/// Other credentials are sent in the configured or default header: an API key alone, a bearer token after `Bearer`.
/// Private addresses are allowed, because the operator configured them. Fails permanently if the header name is
/// invalid.
fn client_options(credentials: Option<(&CardAuth, &SecretString)>) -> Result<ClientOptions, RunFailure> {
    let auth = credentials.map(|(auth, token)| match (auth.kind, &auth.header_name) {
        (EndpointAuthType::BearerToken, None) => Ok(ClientAuth::Bearer(token.clone())),
        _ => {
            let name = HeaderName::try_from(auth.header());
            let name = name.map_err(|_| RunFailure::permanent("card_auth.header_name is not a valid header name"))?;
            Ok::<_, RunFailure>(ClientAuth::Header(name, SecretString::from(auth.value(token.expose_secret()))))
        }
    });
    let user_agent = Some(format!("adjutant/{}", env!("CARGO_PKG_VERSION")));
    Ok(ClientOptions { auth: auth.transpose()?, user_agent, ..ClientOptions::default() })
}

/// Sends the message and relays the updates of the task until it ends or awaits input. If the relay already has a task,
/// nothing is sent and that task continues. A lost connection is restored, and missed updates are read from the task.
///
/// A stop request cancels the remote task and returns a stopped result. Fails if the message is invalid or cannot be
/// sent, an error is permanent, or the updates end before a task is known. Fails like [`reconnect`] if the agent cannot
/// be reached.
async fn exchange(
    client: &A2aClient,
    run: &AgentRun,
    recorder: &RunRecorder,
    link: &RemoteLink,
    relay: &mut UpdateRelay<'_>,
) -> Result<RunResult, RunFailure> {
    let mut updates = match &relay.task {
        Some(_) => stream::empty().boxed(),
        None => match send_message(client, build_message(run, link)?, recorder, relay).await? {
            Some(updates) => updates,
            None => return Ok(RunResult { stopped: true, ..RunResult::default() }),
        },
    };
    let mut connection = ConnectionState::default();
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            reason = recorder.stop_requested() => return Ok(cancel_remote_task(client, relay, reason).await),
        };
        let lost_reason = match update {
            Some(Ok(update)) => {
                connection.record_contact();
                let is_complete = matches!(update, StreamResponse::Task(_) | StreamResponse::Message(_));
                let Some(result) = relay.relay(update).await else { continue };
                // Updates that were missed while the connection was lost are in the task.
                if connection.was_lost && !is_complete {
                    relay_missed_updates(client, relay).await;
                }
                return Ok(result);
            }
            Some(Err(error)) if !error.is_transient() => return Err(to_failure(&error)),
            Some(Err(error)) => Some(error),
            None => None,
        };
        let Some(task) = relay.task.clone() else {
            let no_response = || RunFailure::agent("the agent sent no response");
            return Err(lost_reason.map_or_else(no_response, |error| to_failure(&error)));
        };
        let reconnected = tokio::select! {
            reconnected = reconnect(client, &task, relay, &mut connection, lost_reason) => reconnected?,
            reason = recorder.stop_requested() => return Ok(cancel_remote_task(client, relay, reason).await),
        };
        match reconnected {
            Reconnected::Ended(result) => return Ok(*result),
            Reconnected::Streaming(stream) => updates = stream,
            Reconnected::Running => updates = stream::empty().boxed(),
        }
    }
}

/// Sends the message and returns its updates: a stream if the agent supports streaming, otherwise its single response.
/// Fails if the message cannot be sent.
///
/// Returns `None` if a stop is requested before the response. First it waits at most five seconds for an update, and
/// cancels the task of the update unless that has ended.
async fn send_message(
    client: &A2aClient,
    request: SendMessageRequest,
    recorder: &RunRecorder,
    relay: &mut UpdateRelay<'_>,
) -> Result<Option<TaskUpdates>, RunFailure> {
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
    let stop_reason = tokio::select! {
        updates = &mut sending => return updates.map(Some).map_err(|error| to_failure(&error)),
        reason = recorder.stop_requested() => reason,
    };
    // The remote task can be cancelled only after its id is known.
    let first = async { sending.await.ok()?.next().await?.ok() };
    if let Ok(Some(update)) = tokio::time::timeout(CANCEL_TIMEOUT, first).await
        && relay.relay(update).await.is_none()
    {
        cancel_remote_task(client, relay, stop_reason).await;
    }
    Ok(None)
}

/// Cancels the remote task, within five seconds, and returns a stopped result. Failures are only logged. A task of a
/// lost claim is not cancelled, because another node runs it. Without a known task nothing is sent.
async fn cancel_remote_task(client: &A2aClient, relay: &UpdateRelay<'_>, reason: StopReason) -> RunResult {
    if let (Some(id), true) = (relay.task.clone(), reason != StopReason::ClaimLost) {
        let request = CancelTaskRequest { id, metadata: None, tenant: None };
        match tokio::time::timeout(CANCEL_TIMEOUT, client.cancel(request)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(event = "remote_task_not_cancelled", error = %error),
            Err(_) => tracing::warn!(event = "remote_task_not_cancelled", error = "no response"),
        }
    }
    RunResult { stopped: true, ..RunResult::default() }
}

/// The state of the connection to the agent.
struct ConnectionState {
    /// The time of the last update or successful read.
    last_contact: Instant,
    backoff: Backoff,
    /// True if updates may have been missed.
    was_lost: bool,
}

impl Default for ConnectionState {
    fn default() -> Self {
        Self { last_contact: Instant::now(), backoff: RECONNECT_BACKOFF.start(), was_lost: false }
    }
}

impl ConnectionState {
    /// Records that the agent answered, and resets the backoff.
    fn record_contact(&mut self) {
        self.last_contact = Instant::now();
        self.backoff.reset();
    }

    /// Waits for the next delay of the backoff.
    async fn wait(&mut self) {
        tokio::time::sleep(self.backoff.next_delay()).await;
    }
}

/// The state of a remote task after an attempt to reconnect.
enum Reconnected {
    /// The task has ended or awaits input.
    Ended(Box<RunResult>),
    /// The subscription delivers updates.
    Streaming(TaskUpdates),
    /// The task is running, or the agent did not answer. The caller reconnects again.
    Running,
}

/// Waits for the backoff, then subscribes to the task if the agent supports streaming. If that fails or yields no
/// update, reads the task and relays it. A successful read resets the backoff only after an error. Marks the connection
/// as lost. `lost_reason` is the error that ended the updates, or `None` if they ended without an error.
///
/// Returns `Running` if the task that was read is not at its end, or the read failed with a transient error. Fails if
/// the error is not transient, or an error occurs after two minutes without contact.
async fn reconnect(
    client: &A2aClient,
    id: &str,
    relay: &mut UpdateRelay<'_>,
    connection: &mut ConnectionState,
    lost_reason: Option<Error>,
) -> Result<Reconnected, RunFailure> {
    let is_lost = lost_reason.is_some();
    connection.was_lost = true;
    if let Some(error) = lost_reason.filter(|_| connection.last_contact.elapsed() >= UNREACHABLE_TIMEOUT) {
        return Err(to_failure(&error));
    }
    connection.wait().await;
    let streams = client.card().capabilities.streaming == Some(true);
    if streams {
        let request = SubscribeToTaskRequest { id: id.to_owned(), tenant: None };
        // If the subscription fails or is empty, the task is read instead.
        if let Ok(mut updates) = client.subscribe(request).await
            && let Some(first) = updates.next().await
        {
            return Ok(Reconnected::Streaming(stream::iter([first]).chain(updates).boxed()));
        }
    }
    match get_task(client, id).await {
        Ok(task) => {
            let backoff = connection.backoff;
            connection.record_contact();
            // Without an interruption the poll interval of a running task keeps growing.
            if !is_lost {
                connection.backoff = backoff;
            }
            let result = relay.relay_task(task).await;
            Ok(result.map_or(Reconnected::Running, |result| Reconnected::Ended(Box::new(result))))
        }
        Err(error) if !error.is_transient() || connection.last_contact.elapsed() >= UNREACHABLE_TIMEOUT => {
            Err(to_failure(&error))
        }
        Err(_) => Ok(Reconnected::Running),
    }
}

/// Relays the current state of the task. Errors are ignored, because the result is already known.
async fn relay_missed_updates(client: &A2aClient, relay: &mut UpdateRelay<'_>) {
    if let Some(id) = relay.task.clone()
        && let Ok(task) = get_task(client, &id).await
    {
        relay.relay_task(task).await;
    }
}

/// Reads a task without its history.
async fn get_task(client: &A2aClient, id: &str) -> Result<::a2a::types::Task, Error> {
    client.get(GetTaskRequest { id: id.to_owned(), history_length: Some(0), tenant: None }).await
}

/// Returns the request. It has the parts and metadata of the original message, or the input text if there are no parts.
/// The parameters of the agent and then of the run override the metadata. The message id is the execution id, and the
/// context and task are those of the link. The agent is asked to respond immediately.
///
/// Fails permanently if the stored message is malformed.
fn build_message(run: &AgentRun, link: &RemoteLink) -> Result<SendMessageRequest, RunFailure> {
    let invalid = |error: serde_json::Error| RunFailure::permanent(format!("the stored message is invalid: {error}"));
    let original = run.request.message.as_ref();
    let original = original.map(Message::deserialize).transpose().map_err(invalid)?;
    let (parts, metadata) = match original {
        Some(message) if !message.parts.is_empty() => (message.parts, message.metadata.unwrap_or_default()),
        _ => (vec![Part::text(&run.request.input)], HashMap::new()),
    };
    let parameters = run.agent.parameters.clone().into_iter().chain(run.request.parameters.clone());
    let metadata: HashMap<_, _> = metadata.into_iter().chain(parameters).collect();
    let message = Message {
        // The same id in every attempt, so that the agent can detect repetitions.
        message_id: run.id.to_string(),
        context_id: link.context.clone(),
        task_id: link.task.clone(),
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

/// Converts an error of the client to a failure of the attempt. A status of 401, 403 or 404, an invalid address and an
/// unusable card are permanent. Transient errors stay transient. All other errors are failures of the agent.
fn to_failure(error: &Error) -> RunFailure {
    let message = error.to_string();
    match error {
        _ if error.is_transient() => RunFailure::transient(message),
        Error::Refused { status: 401 | 403 | 404, .. } | Error::Address(_) | Error::Card(_) => {
            RunFailure::permanent(message)
        }
        _ => RunFailure::agent(message),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
