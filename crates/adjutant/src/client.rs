//! Sends the requests of commands: over HTTP to a server, or without one to the same router in this process. Both behave
//! alike.

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
use server::app::Equipment;
use store::lock::Lock;
use supervisor::Supervisor;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio_util::io::ReaderStream;
use tower::ServiceExt;

use crate::cli::Global;
use crate::config::{Config, data_dir};
use crate::exit::{Code, Exit, unreadable};
use crate::wire::{self, Outside};
use crate::{commands, output};

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a message waits for MCP servers to start.
const SERVERS_PATIENCE: Duration = Duration::from_secs(60);
/// A stream of events that says nothing for so long, not even that it is alive, is broken.
const SILENCE: Duration = Duration::from_secs(60);
/// The largest event of a server that is ours: a result contains all the output that is kept of a run.
pub(crate) const EVENT_LIMIT: sse::Limits = sse::Limits::per_event(1 << 30);

pub(crate) struct Client {
    door: Door,
    token: Option<String>,
    /// True with `--json`.
    pub(crate) json: bool,
}

enum Door {
    Remote {
        client: reqwest::Client,
        base: String,
    },
    /// The lock keeps a server from starting meanwhile.
    Here {
        router: Router,
        app: App,
        _lock: Lock,
    },
}

/// An event of a server that is ours.
pub(crate) struct Event {
    /// Empty if the stream names none.
    pub(crate) name: String,
    pub(crate) data: String,
    /// The id after which the stream can be resumed.
    pub(crate) id: Option<String>,
}

impl Event {
    /// Returns the data. Fails if it is not a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        read(self.data.as_bytes())
    }
}

/// The events of a response, as they arrive.
pub(crate) struct EventStream {
    body: Body,
    decoder: sse::Decoder,
    patience: Duration,
}

impl EventStream {
    fn new(body: Body, patience: Duration) -> Self {
        Self { body, decoder: sse::Decoder::new(EVENT_LIMIT), patience }
    }

    /// Returns the next event with data, or nothing at the end of the stream. No event is lost if the caller stops
    /// waiting.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            while self.decoder.advance()? {
                let event = self.decoder.event();
                if !event.data.trim_ascii().is_empty() {
                    return Ok(Some(Event {
                        name: event.name.to_owned(),
                        data: String::from_utf8_lossy(event.data).into_owned(),
                        id: event.id.map(str::to_owned),
                    }));
                }
            }
            let frame = tokio::time::timeout(self.patience, self.body.frame()).await;
            let Some(frame) = frame.context("the server has fallen silent")? else { return Ok(None) };
            if let Ok(bytes) = frame.context("the server's answer was cut off")?.into_data() {
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
pub(crate) struct Answer {
    bytes: Bytes,
    json: bool,
}

impl Answer {
    /// Returns the content. Fails if it is not a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        read(&self.bytes)
    }

    /// Prints the body as it was received.
    pub(crate) fn print(&self) -> anyhow::Result<()> {
        output::say(&String::from_utf8_lossy(&self.bytes))
    }

    /// Prints the body with `--json`, else passes the content to `show`.
    pub(crate) fn show<T: DeserializeOwned>(&self, show: impl FnOnce(T) -> anyhow::Result<()>) -> anyhow::Result<()> {
        if self.json { self.print() } else { show(self.read()?) }
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(bytes).context("failed to read the server's answer")
}

/// Returns the path with the parameters as its query string.
pub(crate) fn with_query(path: &str, parameters: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{path}?{}", serde_urlencoded::to_string(parameters)?))
}

impl Client {
    pub(crate) async fn connect(global: &Global) -> anyhow::Result<Self> {
        let door = match find(global).await? {
            Place::Server { client, base } => Door::Remote { client, base },
            Place::Here(lock) => {
                let config = commands::load(global, None)?;
                let mut settings = own(&config, global);
                settings.request_timeout = Duration::MAX;
                here(&config, settings, wire::alone(), lock).await?
            }
        };
        Ok(Self { door, token: global.token.clone(), json: global.json })
    }

    /// To talk to the assistant. Without a server this program asks models and MCP servers itself; `outside` keeps them
    /// from one message to the next.
    pub(crate) async fn to_chat(global: &Global, outside: &mut Option<Outside>) -> anyhow::Result<Self> {
        let door = match find(global).await? {
            Place::Server { client, base } => Door::Remote { client, base },
            Place::Here(lock) => {
                let config = commands::load(global, None)?;
                let outside = outside.get_or_insert_with(|| Outside::start(&config));
                outside.servers().settled(SERVERS_PATIENCE).await;
                here(&config, own(&config, global), outside.equipment(&config)?, lock).await?
            }
        };
        Ok(Self { door, token: global.token.clone(), json: global.json })
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, Some(json(body)?)).await
    }

    /// Sends a `POST` without a body.
    pub(crate) async fn post_empty(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, None).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Answer> {
        self.send(Method::PATCH, path, Some(json(body)?)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::DELETE, path, None).await
    }

    /// Sends a file of any size.
    pub(crate) async fn upload(&self, path: &str, file: tokio::fs::File) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, Some(Body::from_stream(ReaderStream::new(file)))).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Body>) -> anyhow::Result<Answer> {
        let answer = self.exchange(method, path, body).await?;
        let bytes = answer.collect().await.context("the server's answer was cut off")?.to_bytes();
        Ok(Answer { bytes, json: self.json })
    }

    /// Sends a `POST` and returns the events of its response.
    pub(crate) async fn events(&self, path: &str, body: &impl Serialize) -> anyhow::Result<EventStream> {
        let body = self.exchange(Method::POST, path, Some(json(body)?)).await?;
        Ok(EventStream::new(body, Duration::MAX))
    }

    /// Returns the events at this path that follow the one with this id.
    pub(crate) async fn follow(&self, path: &str, after: Option<&str>) -> anyhow::Result<EventStream> {
        let mut request = Request::builder().method(Method::GET);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        Ok(EventStream::new(self.exchange_as(request, path, None).await?, SILENCE))
    }

    /// Returns the supervisor that runs agents in this process. None with a server.
    pub(crate) fn supervisor(&self) -> Option<&Supervisor> {
        match &self.door {
            Door::Remote { .. } => None,
            Door::Here { app, .. } => Some(app.supervisor()),
        }
    }

    /// Returns the notifier that fires reminders in this process. None with a server.
    pub(crate) fn notifier(&self) -> Option<&Notifier> {
        match &self.door {
            Door::Remote { .. } => None,
            Door::Here { app, .. } => Some(app.notifier()),
        }
    }

    /// Writes a response of any size to `out` and returns its length in bytes.
    pub(crate) async fn download(&self, path: &str, out: &mut (impl AsyncWrite + Unpin)) -> anyhow::Result<u64> {
        let mut answer = self.exchange(Method::GET, path, None).await?;
        let mut written = 0;
        while let Some(frame) = answer.frame().await {
            if let Ok(bytes) = frame.context("the server's answer was cut off")?.into_data() {
                out.write_all(&bytes).await?;
                written += bytes.len() as u64;
            }
        }
        out.flush().await?;
        Ok(written)
    }

    /// Returns the body of the response. Fails with an [`Exit`] if it is not a success; `--json` prints its body too.
    async fn exchange(&self, method: Method, path: &str, body: Option<Body>) -> anyhow::Result<Body> {
        self.exchange_as(Request::builder().method(method), path, body).await
    }

    async fn exchange_as(&self, mut request: Builder, path: &str, body: Option<Body>) -> anyhow::Result<Body> {
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let (status, answer) = match &self.door {
            Door::Remote { client, base } => {
                let body = body.map(|body| reqwest::Body::wrap_stream(body.into_data_stream())).unwrap_or_default();
                let request = request.uri(format!("{base}{path}")).body(body)?;
                let answer = client.execute(request.try_into()?).await.map_err(|error| lost(base, &error))?;
                (answer.status(), Body::new(reqwest::Body::from(answer)))
            }
            Door::Here { router, .. } => {
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
            output::say(&String::from_utf8_lossy(&bytes))?;
        }
        let (kind, detail) = match serde_json::from_slice::<Problem<'_>>(&bytes) {
            Ok(problem) => (problem.short_type().to_owned(), problem.detail.into_owned()),
            Err(_) => (String::new(), format!("the server answered {status}")),
        };
        Err(Exit::new(Code::of_problem(status.as_u16(), &kind), detail).into())
    }
}

fn json(body: &impl Serialize) -> anyhow::Result<Body> {
    Ok(Body::from(serde_json::to_vec(body)?))
}

pub(crate) fn lost(base: &str, error: &reqwest::Error) -> anyhow::Error {
    let why = if error.is_connect() { "nothing answers there".to_owned() } else { error.to_string() };
    anyhow!(Exit::new(Code::Unreachable, format!("the server at {base} cannot be reached: {why}")))
}

/// Where a command does its work.
pub(crate) enum Place {
    Server {
        client: reqwest::Client,
        base: String,
    },
    /// No server runs on the data directory, and none can start while this is held.
    Here(Lock),
}

/// The server that was named, or the one that holds the data directory, or else the directory itself. The configuration
/// is needed only for the last: a client need not know the server's secrets.
pub(crate) async fn find(global: &Global) -> anyhow::Result<Place> {
    if let Some(url) = &global.server {
        return remote(url);
    }
    match wire::lock(&data_dir(global)).await {
        Ok(lock) => Ok(Place::Here(lock)),
        Err(store::Error::InUse { at: Some(url), .. }) => remote(&url),
        Err(error) => Err(error.into()),
    }
}

fn remote(url: &str) -> anyhow::Result<Place> {
    let base = url.trim_end_matches('/').to_owned();
    if !base.starts_with("http://") && !base.starts_with("https://") {
        let message = format!("--server must be a URL such as http://127.0.0.1:7717, not '{url}'");
        return Err(Exit::new(Code::Usage, message).into());
    }
    Ok(Place::Server { client: http(&base).connect_timeout(CONNECT_PATIENCE).build()?, base })
}

/// A proxy has no business between two programs on one machine, nor with the token they exchange.
pub(crate) fn http(url: &str) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder();
    let here = reqwest::Url::parse(url).is_ok_and(|url| match url.host_str() {
        Some("localhost") => true,
        Some(host) => host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        None => false,
    });
    if here { builder.no_proxy() } else { builder }
}

/// Whoever can read the data directory is its owner and acts as the local user; with a token, as the token's.
fn own(config: &Config, global: &Global) -> server::Settings {
    let mut settings = config.server.clone();
    settings.loopback_only = false;
    settings.rate_limit = None;
    settings.max_import_bytes = usize::MAX;
    if global.token.is_none() {
        settings.auth = None;
    }
    settings
}

async fn here(config: &Config, settings: server::Settings, equipment: Equipment, lock: Lock) -> anyhow::Result<Door> {
    let app = wire::app(config, settings, equipment).await?;
    Ok(Door::Here { router: server::router(app.clone()), app, _lock: lock })
}

/// Opens a file to send.
pub(crate) async fn open(file: &Path) -> anyhow::Result<tokio::fs::File> {
    tokio::fs::File::open(file).await.map_err(|error| unreadable(file, &error).into())
}
