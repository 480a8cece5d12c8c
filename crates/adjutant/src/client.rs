//! Sends the requests of commands to a server over HTTP. Without a server, the same router handles them in this
//! process, or in another command that holds the data directory. If that command ends, this one takes its place.

use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use api::Problem;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::io::ReaderStream;
use tower::ServiceExt;

use crate::cli::GlobalOptions;
use crate::config::Config;
use crate::exit::{ExitError, ExitStatus, exit_status, read_error};
use crate::holder::Holder;
use crate::target::{ConnectionTarget, ServerKind, ServerTarget, find_target};
use crate::wire::{self, ExternalServices};
use crate::{commands, output};

/// The time that a message waits for MCP servers to start.
const MCP_START_TIMEOUT: Duration = Duration::from_secs(60);
/// An event stream without data or keep-alive for this time is broken.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The size limit of an event. A result contains all stored output of a run.
pub(crate) const EVENT_LIMIT: sse::SseLimits = sse::SseLimits::per_event(1 << 30);

/// The number of times that a request looks for another process after the one that held the data directory has ended.
const MAX_RECONNECTS: usize = 5;

pub(crate) struct Client {
    global: GlobalOptions,
    /// Replaced if the command that answers requests ends.
    transport: RwLock<Arc<ClientTransport>>,
    /// Held while the transport is replaced.
    reconnecting: tokio::sync::Mutex<()>,
    /// True if messages to the assistant need the configured models.
    needs_models: bool,
    /// The agent that this command runs.
    agent: OnceLock<String>,
    /// Set if this command sends notifications.
    is_notifying: OnceLock<()>,
    /// True with `--json`.
    pub(crate) json: bool,
}

enum ClientTransport {
    Http(ServerTarget),
    /// The lock prevents a server from starting.
    InProcess(Holder),
}

impl ClientTransport {
    /// Returns true if another command answers requests.
    fn is_other_command(&self) -> bool {
        matches!(self, Self::Http(target) if target.kind == ServerKind::Command)
    }
}

/// The body of a request.
enum ClientBody {
    Empty,
    Json(Bytes),
    /// `None` after it was sent.
    Stream(Option<Body>),
}

impl ClientBody {
    /// Returns the body to send, with its content. Can be called again, except for a stream.
    fn take(&mut self) -> Option<Body> {
        match self {
            Self::Empty => None,
            Self::Json(bytes) => Some(Body::from(bytes.clone())),
            Self::Stream(body) => body.take(),
        }
    }
}

/// Why a request has no response.
enum SendError {
    /// No process received the request.
    NotSent(anyhow::Error),
    Other(anyhow::Error),
}

impl From<SendError> for anyhow::Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotSent(error) | SendError::Other(error) => error,
        }
    }
}

/// A server-sent event of an adjutant server.
pub(crate) struct ServerEvent {
    /// Empty if the event has no name.
    pub(crate) name: String,
    pub(crate) data: String,
    /// The id after which the stream can be resumed.
    pub(crate) id: Option<String>,
}

impl ServerEvent {
    /// Returns the data. Fails if it is not a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        read(self.data.as_bytes())
    }
}

/// The events of a response, as they arrive.
pub(crate) struct EventStream {
    body: Body,
    decoder: sse::SseDecoder,
    idle_timeout: Duration,
}

impl EventStream {
    fn new(body: Body, idle_timeout: Duration) -> Self {
        Self { body, decoder: sse::SseDecoder::new(EVENT_LIMIT), idle_timeout }
    }

    /// Returns the next event with data, or none at the end of the stream. Skips events with no data or only
    /// whitespace, and an event that the end of the stream cuts off. Invalid UTF-8 is replaced. Cancel safe: no event
    /// is lost. Fails if the connection breaks, if no data arrives for `idle_timeout`, or if an event exceeds
    /// [`EVENT_LIMIT`].
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<ServerEvent>> {
        loop {
            while self.decoder.advance()? {
                let event = self.decoder.event();
                if !event.data.trim_ascii().is_empty() {
                    return Ok(Some(ServerEvent {
                        name: event.name.to_owned(),
                        data: String::from_utf8_lossy(event.data).into_owned(),
                        id: event.id.map(str::to_owned),
                    }));
                }
            }
            let frame = tokio::time::timeout(self.idle_timeout, self.body.frame()).await;
            let Some(frame) = frame.context("the server has stopped sending data")? else { return Ok(None) };
            if let Ok(bytes) = frame.context("the response of the server was cut off")?.into_data() {
                self.decoder.push(bytes)?;
            }
        }
    }

    /// Returns the id after which the stream can be resumed.
    pub(crate) fn last_id(&self) -> Option<String> {
        self.decoder.last_id().map(str::to_owned)
    }
}

/// The body of a successful response.
pub(crate) struct ClientResponse {
    bytes: Bytes,
    json: bool,
}

impl ClientResponse {
    /// Returns the content. Fails if it is not a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        read(&self.bytes)
    }

    /// Prints the body unchanged.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        output::print_line(&String::from_utf8_lossy(&self.bytes))
    }

    /// Prints the body with `--json`, else passes the content to `show`.
    pub(crate) fn show<T: DeserializeOwned>(&self, show: impl FnOnce(T) -> anyhow::Result<()>) -> anyhow::Result<()> {
        if self.json { self.print() } else { show(self.read()?) }
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(bytes).context("failed to parse the response of the server")
}

/// Returns the path with the parameters as its query string.
pub(crate) fn with_query(path: &str, parameters: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{path}?{}", serde_urlencoded::to_string(parameters)?))
}

impl Client {
    /// Connects to the server, or opens the data directory if none runs. In this process, requests have no timeout and
    /// no model is called. Sends no request to the server.
    ///
    /// Fails if `--server` is not a URL, if the data directory or the database cannot be used, or, without a server, if
    /// the configuration is invalid.
    pub(crate) async fn connect(global: &GlobalOptions) -> anyhow::Result<Self> {
        Ok(Self::new(global, connect_offline(global).await?, false))
    }

    /// Like [`Client::connect`], for messages to the assistant. Without a server, this process or the command that holds
    /// the data directory calls models and MCP servers, and the configured request timeout applies. Waits up to
    /// [`MCP_START_TIMEOUT`] for the MCP servers, and continues without those that are not ready. They are started once
    /// and kept in `services`; the caller stops them, also after a failure. Also fails if a model cannot be set up.
    pub(crate) async fn connect_with_models(
        global: &GlobalOptions,
        services: &mut Option<ExternalServices>,
    ) -> anyhow::Result<Self> {
        let transport = match find_target(global).await? {
            ConnectionTarget::Server(target) => {
                target.ask_holder("/local/models").await?;
                ClientTransport::Http(target)
            }
            ConnectionTarget::DataDir(lock) => {
                let config = commands::load_config(global, None)?;
                let services = services.get_or_insert_with(|| ExternalServices::start(&config));
                services.servers().wait_until_settled(MCP_START_TIMEOUT).await;
                let settings = local_settings(&config);
                let backends = services.backends(&config)?;
                ClientTransport::InProcess(Holder::open(config, settings, backends, true, lock).await?)
            }
        };
        Ok(Self::new(global, transport, true))
    }

    fn new(global: &GlobalOptions, transport: ClientTransport, needs_models: bool) -> Self {
        Self {
            global: global.clone(),
            transport: RwLock::new(Arc::new(transport)),
            reconnecting: tokio::sync::Mutex::default(),
            needs_models,
            agent: OnceLock::new(),
            is_notifying: OnceLock::new(),
            json: global.json,
        }
    }

    /// Prepares the run of an agent. Without a server, this process or the command that holds the data directory runs
    /// its executions. This process then also serves other commands. Fails if the supervisor cannot start.
    pub(crate) async fn run_agent(&self, agent_id: &str) -> anyhow::Result<()> {
        let _ = self.agent.set(agent_id.to_owned());
        for _ in 0..MAX_RECONNECTS {
            let transport = self.transport();
            match prepare_run(&transport, agent_id).await {
                Err(error) if transport.is_other_command() && exit_status(&error) == ExitStatus::Unreachable => {
                    // Also prepares the run.
                    self.reconnect(&transport).await?;
                }
                done => return done,
            }
        }
        Ok(())
    }

    /// Returns true if a server answers requests. It continues when this command ends.
    pub(crate) fn has_server(&self) -> bool {
        matches!(&*self.transport(), ClientTransport::Http(target) if target.kind == ServerKind::Server)
    }

    /// Returns the data directory if this process holds it.
    pub(crate) fn holder(&self) -> Option<Holder> {
        match &*self.transport() {
            ClientTransport::Http(_) => None,
            ClientTransport::InProcess(holder) => Some(holder.clone()),
        }
    }

    /// Sends reminders and notifications while this command runs. Has no effect with a server. Fails if the command that
    /// holds the data directory cannot be reached.
    pub(crate) async fn send_notifications(&self) -> anyhow::Result<()> {
        let _ = self.is_notifying.set(());
        send_notifications(&self.transport()).await
    }

    fn transport(&self) -> Arc<ClientTransport> {
        self.transport.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the transport after the command that answered requests has ended: with another such command, or with
    /// the data directory. Repeats the preparations of this command. Returns the current transport if another request has
    /// replaced `failed`. Fails like [`Client::connect`].
    async fn reconnect(&self, failed: &Arc<ClientTransport>) -> anyhow::Result<Arc<ClientTransport>> {
        let _guard = self.reconnecting.lock().await;
        let current = self.transport();
        if !Arc::ptr_eq(&current, failed) {
            return Ok(current);
        }
        let transport = connect_offline(&self.global).await?;
        if self.needs_models {
            match &transport {
                ClientTransport::Http(target) => target.ask_holder("/local/models").await?,
                ClientTransport::InProcess(holder) => holder.use_models().await?,
            }
        }
        if let Some(agent) = self.agent.get() {
            prepare_run(&transport, agent).await?;
        }
        if self.is_notifying.get().is_some() {
            send_notifications(&transport).await?;
        }
        let transport = Arc::new(transport);
        *self.transport.write().unwrap_or_else(PoisonError::into_inner) = transport.clone();
        Ok(transport)
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<ClientResponse> {
        self.send(Method::GET, path, ClientBody::Empty).await
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<ClientResponse> {
        self.send(Method::POST, path, json(body)?).await
    }

    /// Sends a `POST` without a body.
    pub(crate) async fn post_empty(&self, path: &str) -> anyhow::Result<ClientResponse> {
        self.send(Method::POST, path, ClientBody::Empty).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> anyhow::Result<ClientResponse> {
        self.send(Method::PATCH, path, json(body)?).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<ClientResponse> {
        self.send(Method::DELETE, path, ClientBody::Empty).await
    }

    /// Sends a file of any size.
    pub(crate) async fn upload(&self, path: &str, file: tokio::fs::File) -> anyhow::Result<ClientResponse> {
        let body = Body::from_stream(ReaderStream::new(file));
        self.send(Method::POST, path, ClientBody::Stream(Some(body))).await
    }

    /// Sends a request and reads the whole response. Fails if the response is not a success or is cut off.
    async fn send(&self, method: Method, path: &str, body: ClientBody) -> anyhow::Result<ClientResponse> {
        let answer = self.exchange(method, path, body).await?;
        let bytes = answer.collect().await.context("the response of the server was cut off")?.to_bytes();
        Ok(ClientResponse { bytes, json: self.json })
    }

    /// Sends a `POST` and returns the events of its response. The stream has no idle timeout. Fails if the response is
    /// not a success.
    pub(crate) async fn events(&self, path: &str, body: &impl Serialize) -> anyhow::Result<EventStream> {
        let body = self.exchange(Method::POST, path, json(body)?).await?;
        Ok(EventStream::new(body, Duration::MAX))
    }

    /// Returns the events at this path that follow the one with the id `after`, or all events. The stream fails if it
    /// is idle for [`IDLE_TIMEOUT`]. Fails if the response is not a success.
    pub(crate) async fn follow(&self, path: &str, after: Option<&str>) -> anyhow::Result<EventStream> {
        let body = self.exchange_after(Method::GET, path, ClientBody::Empty, after).await?;
        Ok(EventStream::new(body, IDLE_TIMEOUT))
    }

    /// Writes the response to a `GET`, of any size, to `out` and returns its length in bytes. Fails if the response is
    /// not a success or is cut off, or if `out` cannot be written; `out` may then contain a part of it. The error names the
    /// fault of the database if the server reports one.
    pub(crate) async fn download(&self, path: &str, out: &mut (impl AsyncWrite + Unpin)) -> anyhow::Result<u64> {
        let mut answer = self.exchange(Method::GET, path, ClientBody::Empty).await?;
        let mut written = 0;
        while let Some(frame) = answer.frame().await {
            let frame = match frame.context("the response of the server was cut off") {
                Ok(frame) => frame,
                Err(error) => return Err(self.database_fault().await.unwrap_or(error)),
            };
            if let Ok(bytes) = frame.into_data() {
                out.write_all(&bytes).await?;
                written += bytes.len() as u64;
            }
        }
        out.flush().await?;
        Ok(written)
    }

    /// Returns the fault of the database that the server reports, or `None` if it reports none or does not answer.
    async fn database_fault(&self) -> Option<anyhow::Error> {
        let transport = self.transport();
        let answer = self.exchange_once(&transport, &Method::GET, "/health", None, None).await.ok()?;
        let bytes = answer.1.collect().await.ok()?.to_bytes();
        let health: api::health::Health = serde_json::from_slice(&bytes).ok()?;
        let fault = health.dependencies.database.error?;
        Some(ExitError::new(ExitStatus::Failed, fault).into())
    }

    /// Returns the body of the response. Fails with an [`ExitError`] if it is not a success; `--json` prints its body
    /// too.
    async fn exchange(&self, method: Method, path: &str, body: ClientBody) -> anyhow::Result<Body> {
        self.exchange_after(method, path, body, None).await
    }

    /// Sends a request and returns the body of a 2xx response. `after` is the id of the last event. If the command that
    /// answers requests has ended, tries the next process: always if the request was not sent, else for a `GET`.
    ///
    /// Fails with [`ExitStatus::Unreachable`] if the server cannot be reached. Fails with the code of
    /// [`ExitStatus::from_problem`] for any other status. The message is the detail of the problem, else the status.
    /// With `--json`, the body of the error is also printed to standard output.
    async fn exchange_after(
        &self,
        method: Method,
        path: &str,
        mut body: ClientBody,
        after: Option<&str>,
    ) -> anyhow::Result<Body> {
        let mut transport = self.transport();
        let mut attempts = 0;
        let (status, answer) = loop {
            attempts += 1;
            let can_reconnect =
                transport.is_other_command() && attempts <= MAX_RECONNECTS && !matches!(body, ClientBody::Stream(_));
            match self.exchange_once(&transport, &method, path, body.take(), after).await {
                Err(SendError::NotSent(_)) if can_reconnect => transport = self.reconnect(&transport).await?,
                Err(SendError::Other(_)) if can_reconnect && method == Method::GET => {
                    transport = self.reconnect(&transport).await?;
                }
                done => break done?,
            }
        };
        if status.is_success() {
            return Ok(answer);
        }
        let bytes = answer.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        if self.json {
            output::print_line(&String::from_utf8_lossy(&bytes))?;
        }
        let (kind, detail) = match serde_json::from_slice::<Problem<'_>>(&bytes) {
            Ok(problem) => (problem.short_type().to_owned(), problem.detail.into_owned()),
            Err(_) => (String::new(), format!("the server returned {status}")),
        };
        Err(ExitError::new(ExitStatus::from_problem(status.as_u16(), &kind), detail).into())
    }

    /// Sends a request with the token to one process, and returns the status and the body of the response. Every body is
    /// sent as `application/json`.
    async fn exchange_once(
        &self,
        transport: &ClientTransport,
        method: &Method,
        path: &str,
        body: Option<Body>,
        after: Option<&str>,
    ) -> Result<(StatusCode, Body), SendError> {
        let other = |error: anyhow::Error| SendError::Other(error);
        let mut request = Request::builder().method(method.clone());
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        if let Some(token) = &self.global.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        match transport {
            ClientTransport::Http(target) => {
                let body = body.map(|body| reqwest::Body::wrap_stream(body.into_data_stream())).unwrap_or_default();
                let request = request.uri(format!("{}{path}", target.base)).body(body).map_err(|e| other(e.into()))?;
                let request = request.try_into().map_err(|error: reqwest::Error| other(error.into()))?;
                let answer = target.client.execute(request).await.map_err(|error| {
                    let unreachable = target.unreachable(&error).into();
                    if error.is_connect() { SendError::NotSent(unreachable) } else { SendError::Other(unreachable) }
                })?;
                Ok((answer.status(), Body::new(reqwest::Body::from(answer))))
            }
            ClientTransport::InProcess(holder) => {
                let request = request.uri(path).header(header::HOST, "localhost").body(body.unwrap_or_default());
                let answer = holder.router().oneshot(request.map_err(|error| other(error.into()))?).await;
                let answer = answer.map_err(|never| match never {})?;
                Ok((answer.status(), answer.into_body()))
            }
        }
    }
}

/// Connects to the server, or opens the data directory if none runs. No model is called in this process.
async fn connect_offline(global: &GlobalOptions) -> anyhow::Result<ClientTransport> {
    Ok(match find_target(global).await? {
        ConnectionTarget::Server(target) => ClientTransport::Http(target),
        ConnectionTarget::DataDir(lock) => {
            let config = commands::load_config(global, None)?;
            let mut settings = local_settings(&config);
            settings.request_timeout = Duration::MAX;
            ClientTransport::InProcess(Holder::open(config, settings, wire::offline_backends(), false, lock).await?)
        }
    })
}

/// Makes the process that answers requests run executions of an agent. A server does so anyway. This process also
/// serves other commands from now on, because it holds the data directory for a long time.
async fn prepare_run(transport: &ClientTransport, agent_id: &str) -> anyhow::Result<()> {
    match transport {
        ClientTransport::Http(target) => target.ask_holder(&format!("/local/agents/{agent_id}")).await,
        ClientTransport::InProcess(holder) => {
            holder.listen().await;
            holder.run_agent(agent_id).await
        }
    }
}

/// Makes the process that answers requests send reminders and notifications. A server does so anyway.
async fn send_notifications(transport: &ClientTransport) -> anyhow::Result<()> {
    match transport {
        ClientTransport::Http(target) => target.ask_holder("/local/notifications").await,
        ClientTransport::InProcess(holder) => {
            holder.send_notifications().await;
            Ok(())
        }
    }
}

fn json(body: &impl Serialize) -> anyhow::Result<ClientBody> {
    Ok(ClientBody::Json(serde_json::to_vec(body)?.into()))
}

/// Returns the settings for requests in this process: without a rate limit, an import limit and the check of the
/// `Host`. A caller without a token is the local user: a process that can read the data directory can do everything
/// anyway. With a token, it acts as the user of that token.
pub(crate) fn local_settings(config: &Config) -> server::ServerSettings {
    let mut settings = config.server.clone();
    settings.loopback_only = false;
    settings.rate_limit = None;
    settings.max_import_bytes = usize::MAX;
    settings.is_token_optional = true;
    settings
}

/// Opens a file for an upload. Fails if it does not exist or cannot be read.
pub(crate) async fn open_file(file: &Path) -> anyhow::Result<tokio::fs::File> {
    tokio::fs::File::open(file).await.map_err(|error| read_error(file, &error).into())
}
