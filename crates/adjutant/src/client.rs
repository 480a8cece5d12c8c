//! Sends the requests of commands to a server over HTTP. Without a server, the same router handles them in this
//! process.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use api::Problem;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::request::Builder;
use axum::http::{Request, header};
use http_body_util::BodyExt;
use notify::Notifier;
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use server::App;
use server::app::Backends;
use store::lock::DataDirLock;
use supervisor::Supervisor;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::io::ReaderStream;
use tower::ServiceExt;

use crate::cli::GlobalOptions;
use crate::config::{Config, data_dir};
use crate::exit::{ExitError, ExitStatus, read_error};
use crate::wire::{self, ExternalServices};
use crate::{commands, output};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time that a message waits for MCP servers to start.
const MCP_START_TIMEOUT: Duration = Duration::from_secs(60);
/// An event stream without data or keep-alive for this time is broken.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The size limit of an event. A result contains all stored output of a run.
pub(crate) const EVENT_LIMIT: sse::SseLimits = sse::SseLimits::per_event(1 << 30);

pub(crate) struct Client {
    transport: ClientTransport,
    token: Option<String>,
    /// True with `--json`.
    pub(crate) json: bool,
}

enum ClientTransport {
    Http {
        client: reqwest::Client,
        base: String,
    },
    /// The lock prevents a server from starting.
    InProcess {
        router: Router,
        app: App,
        _lock: DataDirLock,
    },
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
        let transport = match find_target(global).await? {
            ConnectionTarget::Server { client, base } => ClientTransport::Http { client, base },
            ConnectionTarget::DataDir(lock) => {
                let config = commands::load_config(global, None)?;
                let mut settings = local_settings(&config, global);
                settings.request_timeout = Duration::MAX;
                open_in_process(&config, settings, wire::offline_backends(), lock).await?
            }
        };
        Ok(Self { transport, token: global.token.clone(), json: global.json })
    }

    /// Like [`Client::connect`], for messages to the assistant. Without a server, this process calls models and MCP
    /// servers, and the configured request timeout applies. Waits up to [`MCP_START_TIMEOUT`] for the MCP servers, and
    /// continues without those that are not ready. They are started once and kept in `services`; the caller stops them,
    /// also after a failure. Also fails if a model cannot be set up.
    pub(crate) async fn connect_with_models(
        global: &GlobalOptions,
        services: &mut Option<ExternalServices>,
    ) -> anyhow::Result<Self> {
        let transport = match find_target(global).await? {
            ConnectionTarget::Server { client, base } => ClientTransport::Http { client, base },
            ConnectionTarget::DataDir(lock) => {
                let config = commands::load_config(global, None)?;
                let services = services.get_or_insert_with(|| ExternalServices::start(&config));
                services.servers().wait_until_settled(MCP_START_TIMEOUT).await;
                open_in_process(&config, local_settings(&config, global), services.backends(&config)?, lock).await?
            }
        };
        Ok(Self { transport, token: global.token.clone(), json: global.json })
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<ClientResponse> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<ClientResponse> {
        self.send(Method::POST, path, Some(json(body)?)).await
    }

    /// Sends a `POST` without a body.
    pub(crate) async fn post_empty(&self, path: &str) -> anyhow::Result<ClientResponse> {
        self.send(Method::POST, path, None).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> anyhow::Result<ClientResponse> {
        self.send(Method::PATCH, path, Some(json(body)?)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<ClientResponse> {
        self.send(Method::DELETE, path, None).await
    }

    /// Sends a file of any size.
    pub(crate) async fn upload(&self, path: &str, file: tokio::fs::File) -> anyhow::Result<ClientResponse> {
        self.send(Method::POST, path, Some(Body::from_stream(ReaderStream::new(file)))).await
    }

    /// Sends a request and reads the whole response. Fails if the response is not a success or is cut off.
    async fn send(&self, method: Method, path: &str, body: Option<Body>) -> anyhow::Result<ClientResponse> {
        let answer = self.exchange(method, path, body).await?;
        let bytes = answer.collect().await.context("the response of the server was cut off")?.to_bytes();
        Ok(ClientResponse { bytes, json: self.json })
    }

    /// Sends a `POST` and returns the events of its response. The stream has no idle timeout. Fails if the response is
    /// not a success.
    pub(crate) async fn events(&self, path: &str, body: &impl Serialize) -> anyhow::Result<EventStream> {
        let body = self.exchange(Method::POST, path, Some(json(body)?)).await?;
        Ok(EventStream::new(body, Duration::MAX))
    }

    /// Returns the events at this path that follow the one with the id `after`, or all events. The stream fails if it
    /// is idle for [`IDLE_TIMEOUT`]. Fails if the response is not a success.
    pub(crate) async fn follow(&self, path: &str, after: Option<&str>) -> anyhow::Result<EventStream> {
        let mut request = Request::builder().method(Method::GET);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        Ok(EventStream::new(self.exchange_as(request, path, None).await?, IDLE_TIMEOUT))
    }

    /// Returns the supervisor that runs agents in this process. None with a server.
    pub(crate) fn supervisor(&self) -> Option<&Supervisor> {
        match &self.transport {
            ClientTransport::Http { .. } => None,
            ClientTransport::InProcess { app, .. } => Some(app.supervisor()),
        }
    }

    /// Returns the notifier that fires reminders in this process. None with a server.
    pub(crate) fn notifier(&self) -> Option<&Notifier> {
        match &self.transport {
            ClientTransport::Http { .. } => None,
            ClientTransport::InProcess { app, .. } => Some(app.notifier()),
        }
    }

    /// Writes the response to a `GET`, of any size, to `out` and returns its length in bytes. Fails if the response is
    /// not a success or is cut off, or if `out` cannot be written; `out` may then contain a part of it.
    pub(crate) async fn download(&self, path: &str, out: &mut (impl AsyncWrite + Unpin)) -> anyhow::Result<u64> {
        let mut answer = self.exchange(Method::GET, path, None).await?;
        let mut written = 0;
        while let Some(frame) = answer.frame().await {
            if let Ok(bytes) = frame.context("the response of the server was cut off")?.into_data() {
                out.write_all(&bytes).await?;
                written += bytes.len() as u64;
            }
        }
        out.flush().await?;
        Ok(written)
    }

    /// Returns the body of the response. Fails with an [`ExitError`] if it is not a success; `--json` prints its body
    /// too.
    async fn exchange(&self, method: Method, path: &str, body: Option<Body>) -> anyhow::Result<Body> {
        self.exchange_as(Request::builder().method(method), path, body).await
    }

    /// Completes `request` with the token and the body, sends it and returns the body of a 2xx response. Every body is
    /// sent as `application/json`.
    ///
    /// Fails with [`ExitStatus::Unreachable`] if the server cannot be reached. Fails with the code of
    /// [`ExitStatus::from_problem`] for any other status. The message is the detail of the problem, else the status.
    /// With `--json`, the body of the error is also printed to standard output.
    async fn exchange_as(&self, mut request: Builder, path: &str, body: Option<Body>) -> anyhow::Result<Body> {
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let (status, answer) = match &self.transport {
            ClientTransport::Http { client, base } => {
                let body = body.map(|body| reqwest::Body::wrap_stream(body.into_data_stream())).unwrap_or_default();
                let request = request.uri(format!("{base}{path}")).body(body)?;
                let answer =
                    client.execute(request.try_into()?).await.map_err(|error| unreachable_server(base, &error))?;
                (answer.status(), Body::new(reqwest::Body::from(answer)))
            }
            ClientTransport::InProcess { router, .. } => {
                let request = request.uri(path).header(header::HOST, "localhost").body(body.unwrap_or_default())?;
                let answer = router.clone().oneshot(request).await?;
                (answer.status(), answer.into_body())
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
}

fn json(body: &impl Serialize) -> anyhow::Result<Body> {
    Ok(Body::from(serde_json::to_vec(body)?))
}

/// Returns the error for a request that did not reach the server.
pub(crate) fn unreachable_server(base: &str, error: &reqwest::Error) -> anyhow::Error {
    let why = if error.is_connect() { "the connection failed".to_owned() } else { error.to_string() };
    anyhow!(ExitError::new(ExitStatus::Unreachable, format!("the server at {base} cannot be reached: {why}")))
}

/// The server or data directory that a command uses.
pub(crate) enum ConnectionTarget {
    Server {
        client: reqwest::Client,
        base: String,
    },
    /// No server uses the data directory, and none can start while the lock is held.
    DataDir(DataDirLock),
}

/// Returns the server of `--server`, else the server that uses the data directory, else the locked data directory.
/// Reads no configuration: a client does not need the secrets of the server. Connects to no server.
///
/// Fails if `--server` is not a URL, if another command holds the data directory for too long, or if the data directory
/// cannot be locked.
pub(crate) async fn find_target(global: &GlobalOptions) -> anyhow::Result<ConnectionTarget> {
    if let Some(url) = &global.server {
        return server_target(url);
    }
    match wire::lock_data_dir(&data_dir(global)).await {
        Ok(lock) => Ok(ConnectionTarget::DataDir(lock)),
        Err(store::Error::InUse { address: Some(url), .. }) => server_target(&url),
        Err(error) => Err(error.into()),
    }
}

/// Returns a server at this URL, without trailing slashes. Its client has a timeout for connections only. Fails with a
/// usage error if the URL does not start with `http://` or `https://`. Does not connect.
fn server_target(url: &str) -> anyhow::Result<ConnectionTarget> {
    let base = url.trim_end_matches('/').to_owned();
    if !base.starts_with("http://") && !base.starts_with("https://") {
        let message = format!("--server must be a URL such as http://127.0.0.1:7717, not '{url}'");
        return Err(ExitError::new(ExitStatus::Usage, message).into());
    }
    Ok(ConnectionTarget::Server { client: http_client(&base).connect_timeout(CONNECT_TIMEOUT).build()?, base })
}

/// Returns a client builder for this URL. If the host is `localhost` or a loopback address, requests bypass proxies,
/// which must not see the token. A text that is not a URL does not fail here.
pub(crate) fn http_client(url: &str) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder();
    let is_local = reqwest::Url::parse(url).is_ok_and(|url| match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    });
    if is_local { builder.no_proxy() } else { builder }
}

/// Returns the settings for requests in this process: without a rate limit, an import limit and the check of the
/// `Host`. Authentication is off without a token: a process that can read the data directory acts as the local user.
/// With a token, it acts as the user of that token.
fn local_settings(config: &Config, global: &GlobalOptions) -> server::ServerSettings {
    let mut settings = config.server.clone();
    settings.loopback_only = false;
    settings.rate_limit = None;
    settings.max_import_bytes = usize::MAX;
    if global.token.is_none() {
        settings.auth = None;
    }
    settings
}

/// Builds the application in this process. The lock is held as long as the transport exists.
async fn open_in_process(
    config: &Config,
    settings: server::ServerSettings,
    backends: Backends,
    lock: DataDirLock,
) -> anyhow::Result<ClientTransport> {
    let app = wire::build_app(config, settings, backends).await?;
    Ok(ClientTransport::InProcess { router: server::router(app.clone()), app, _lock: lock })
}

/// Opens a file for an upload. Fails if it does not exist or cannot be read.
pub(crate) async fn open_file(file: &Path) -> anyhow::Result<tokio::fs::File> {
    tokio::fs::File::open(file).await.map_err(|error| read_error(file, &error).into())
}
