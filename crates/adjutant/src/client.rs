//! How commands reach the server: over HTTP where one runs, else through the same router in this process. Either way a
//! command is a request and an answer, so both behave alike.

use std::time::Duration;

use anyhow::{Context, anyhow};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, header};
use http_body_util::BodyExt;
use reqwest::Method;
use serde_json::Value;
use store::lock::Lock;
use tower::ServiceExt;

use crate::cli::Global;
use crate::config::Config;
use crate::exit::{Code, Exit};
use crate::{commands, output, wire};

const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for another command that works on the data directory.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Client {
    door: Door,
    token: Option<String>,
    json: bool,
}

enum Door {
    Remote {
        client: reqwest::Client,
        base: String,
    },
    /// The lock keeps a server from starting meanwhile.
    Here {
        router: Router,
        _lock: Lock,
    },
}

/// An answer that was a success.
pub(crate) struct Answer {
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.bytes).context("the server's answer is not JSON")
    }
}

impl Client {
    pub(crate) async fn connect(global: &Global) -> anyhow::Result<Self> {
        let (token, json) = (global.token.clone(), global.json);
        let door = match &global.server {
            Some(url) => remote(url)?,
            None => Self::find(global).await?,
        };
        Ok(Self { door, token, json })
    }

    async fn find(global: &Global) -> anyhow::Result<Door> {
        let config = commands::load(global, None)?;
        let give_up = tokio::time::Instant::now() + LOCK_PATIENCE;
        loop {
            match Lock::take(&config.data_dir) {
                Ok(lock) => return here(&config, global.token.is_some(), lock).await,
                Err(store::Error::InUse { at: Some(url), .. }) => return remote(&url),
                Err(store::Error::InUse { at: None, .. }) if tokio::time::Instant::now() < give_up => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, Some(body.to_string().into())).await
    }

    /// An answer other than a success is an [`Exit`] with the server's sentence; with `--json` its body is printed too.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Bytes>) -> anyhow::Result<Answer> {
        let (status, bytes) = match &self.door {
            Door::Remote { client, base } => self.ask(client, base, method, path, body).await?,
            Door::Here { router, .. } => self.ask_here(router, method, path, body).await?,
        };
        if status < 400 {
            return Ok(Answer { bytes });
        }
        if self.json {
            output::put(&bytes)?;
            output::say("")?;
        }
        let problem: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let detail = problem["detail"].as_str().map_or_else(|| format!("the server answered {status}"), str::to_owned);
        Err(Exit::new(Code::of_status(status), detail).into())
    }

    async fn ask(
        &self,
        client: &reqwest::Client,
        base: &str,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> anyhow::Result<(u16, Bytes)> {
        let mut request = client.request(method, format!("{base}{path}"));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.header(header::CONTENT_TYPE, "application/json").body(body);
        }
        let lost = |error: reqwest::Error| {
            let why = if error.is_connect() { "nothing answers there".to_owned() } else { error.to_string() };
            anyhow!(Exit::new(Code::Unreachable, format!("the server at {base} cannot be reached: {why}")))
        };
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        Ok((status, answer.bytes().await.map_err(lost)?))
    }

    async fn ask_here(
        &self,
        router: &Router,
        method: Method,
        path: &str,
        body: Option<Bytes>,
    ) -> anyhow::Result<(u16, Bytes)> {
        let mut request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(body.map(Body::from).unwrap_or_default())?;
        let answer = router.clone().oneshot(request).await?;
        let status = answer.status().as_u16();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }
}

fn remote(url: &str) -> anyhow::Result<Door> {
    let base = url.trim_end_matches('/').to_owned();
    if !base.starts_with("http://") && !base.starts_with("https://") {
        return Err(Exit::new(
            Code::Usage,
            format!("--server must be a URL such as http://127.0.0.1:7717, not '{url}'"),
        )
        .into());
    }
    let client = reqwest::Client::builder().connect_timeout(CONNECT_PATIENCE).build()?;
    Ok(Door::Remote { client, base })
}

/// Whoever can read the data directory is its owner and acts as the local user; with a token, as the token's.
async fn here(config: &Config, with_token: bool, lock: Lock) -> anyhow::Result<Door> {
    let mut settings = config.server.clone();
    settings.loopback_only = false;
    settings.rate_limit = None;
    settings.max_import_bytes = usize::MAX;
    if !with_token {
        settings.auth = None;
    }
    let app = wire::app(config, settings).await?;
    app.refresh_revocations().await?;
    Ok(Door::Here { router: server::router(app), _lock: lock })
}
