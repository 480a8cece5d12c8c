//! Push configurations: where a client wants to be told of a task, and what has to be shown there.
//!
//! The address, the token and the credentials are sealed before they are kept; in the clear there are only the host and the
//! name of the scheme. Credentials are never given out again. What is told, and when, is decided in `pump`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::a2a::types::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig,
};
use ::a2a::{Error, Kind, Version};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use model::UserId;
use notify::{Outgoing, Resolver, Unresolved, callback};
use serde::{Deserialize, Serialize};
use store::a2a::pushes::{self, New, Push};
use store::page::Cursor;
use store::{Conn, a2a};
use uuid::Uuid;

use super::caller::Caller;
use super::faults;
use crate::App;
use crate::seal::{Closed, Seals};

/// What pushes are called among the ways out.
pub(crate) const NAME: &str = "a2a:push";

/// On one page, where nothing is said.
const PAGE: i64 = 50;
const LONGEST_ID: usize = 200;
const LONGEST_URL: usize = 4096;
const LONGEST_SCHEME: usize = 50;
const LONGEST_SECRET: usize = 8192;
/// How 0.3 calls a configuration that nobody gave a name; some clients ask for it so.
const UNNAMED: &str = "default";

/// What nobody but the receiver shall see.
#[derive(Serialize, Deserialize)]
struct Secrets {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// Which configuration a delivery is for, and how it is written.
#[derive(Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) task: Uuid,
    pub(crate) id: String,
    /// When it was made: one of the same name that was made later is another.
    pub(crate) made: i64,
    pub(crate) version: String,
}

/// `CreateTaskPushNotificationConfig`: one of the same id takes the place of the one before.
pub(crate) async fn set(
    app: &App,
    caller: &Caller,
    config: TaskPushNotificationConfig,
) -> Result<TaskPushNotificationConfig, Error> {
    let task = faults::task_id(&config.task_id)?;
    let new = prepare(app, caller.version, task, &config)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.clone();
    let now = app.clock().now();
    let kept = new.clone();
    let stored = app.store().transaction(async move |tx| store_with_task(tx, owner, &agent, task, &kept, now).await);
    stored.await.map_err(|error| fault(error, &config.task_id))?;
    let authentication = new.scheme.map(|scheme| AuthenticationInfo { scheme, credentials: None });
    Ok(TaskPushNotificationConfig { id: Some(new.id), authentication, tenant: None, ..config })
}

/// `GetTaskPushNotificationConfig`. Clients of 0.3 need not say which: they get the first.
pub(crate) async fn get(
    app: &App,
    caller: &Caller,
    request: GetTaskPushNotificationConfigRequest,
) -> Result<TaskPushNotificationConfig, Error> {
    let task = faults::task_id(&request.task_id)?;
    if request.id.is_empty() && caller.version != Version::V03 {
        return Err(Error::invalid("id", "must not be empty"));
    }
    check_id(&request.id)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.as_str();
    let fault = |error| fault(error, &request.task_id);
    let mut reader = app.store().reader().await.map_err(fault)?;
    a2a::task(&mut reader, owner, agent, task).await.map_err(fault)?;
    let any = caller.version == Version::V03 && matches!(request.id.as_str(), "" | UNNAMED);
    let found = match pushes::get(&mut reader, owner, agent, task, &request.id).await {
        Err(store::Error::NotFound) if any => {
            pushes::list(&mut reader, owner, agent, task, None, 1).await.map(|page| page.rows.into_iter().next())
        }
        Err(store::Error::NotFound) => Ok(None),
        found => found.map(Some),
    };
    let push = found.map_err(fault)?;
    let push =
        push.ok_or_else(|| Error::new(Kind::NotFound, "the task has no such push notification configuration"))?;
    Ok(shown(&seals(app), push))
}

/// `ListTaskPushNotificationConfigs`.
pub(crate) async fn list(
    app: &App,
    caller: &Caller,
    request: ListTaskPushNotificationConfigsRequest,
) -> Result<ListTaskPushNotificationConfigsResponse, Error> {
    let task = faults::task_id(&request.task_id)?;
    let limit = match request.page_size {
        Some(size @ 1..=::a2a::check::PAGE) => i64::from(size),
        // In protobuf nothing is 0.
        None | Some(0) => PAGE,
        Some(_) => return Err(Error::invalid("pageSize", format!("must be between 1 and {}", ::a2a::check::PAGE))),
    };
    let token = request.page_token.as_deref().filter(|token| !token.is_empty());
    let wrong = |_| Error::invalid("pageToken", "must be the nextPageToken of an earlier answer");
    let after = token.map(Cursor::parse).transpose().map_err(wrong)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.as_str();
    let fault = |error| fault(error, &request.task_id);
    let mut reader = app.store().reader().await.map_err(fault)?;
    a2a::task(&mut reader, owner, agent, task).await.map_err(fault)?;
    let page = pushes::list(&mut reader, owner, agent, task, after.as_ref(), limit).await.map_err(fault)?;
    let seals = seals(app);
    let configs = page.rows.into_iter().map(|push| shown(&seals, push)).collect();
    Ok(ListTaskPushNotificationConfigsResponse { configs, next_page_token: page.next.map(|next| next.encode()) })
}

/// `DeleteTaskPushNotificationConfig`. One that is not there is as good as deleted.
pub(crate) async fn delete(
    app: &App,
    caller: &Caller,
    request: DeleteTaskPushNotificationConfigRequest,
) -> Result<(), Error> {
    let task = faults::task_id(&request.task_id)?;
    check_id(&request.id)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.clone();
    let id = request.id;
    let removed = app.store().transaction(async move |tx| {
        a2a::task(tx, owner, &agent, task).await?;
        pushes::remove(tx, owner, &agent, task, &id).await
    });
    removed.await.map(drop).map_err(|error| fault(error, &request.task_id))
}

/// What no configuration is called.
fn check_id(id: &str) -> Result<&str, Error> {
    if id.len() > LONGEST_ID || id.contains(char::is_control) {
        return Err(Error::invalid("id", format!("must be a line of at most {LONGEST_ID} bytes")));
    }
    Ok(id)
}

/// What a client wants, checked and sealed: to be kept by [`store_with_task`]. The error names the field.
pub(crate) fn prepare(
    app: &App,
    version: Version,
    task: Uuid,
    config: &TaskPushNotificationConfig,
) -> Result<New, Error> {
    let id = match config.id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => check_id(id)?.to_owned(),
        // There a task has one such, which the next takes the place of.
        None if version == Version::V03 => task.to_string(),
        None => app.clock().id().to_string(),
    };
    if config.url.len() > LONGEST_URL {
        return Err(Error::invalid("url", format!("must have at most {LONGEST_URL} bytes")));
    }
    let allow_private = app.in_force().settings.a2a.allow_private_webhooks;
    let url = callback::address(&config.url, allow_private).map_err(|says| Error::invalid("url", says))?;
    let token = config.token.clone().filter(|token| !token.is_empty());
    let given = config.authentication.as_ref();
    let scheme = given.map(|given| given.scheme.trim()).map(|scheme| if scheme.is_empty() { "Bearer" } else { scheme });
    let credentials = given.and_then(|given| given.credentials.clone()).filter(|credentials| !credentials.is_empty());
    if scheme.is_some_and(|scheme| !is_scheme(scheme)) {
        return Err(Error::invalid("authentication.scheme", "must be the name of a scheme such as Bearer"));
    }
    for (field, secret) in [("token", &token), ("authentication.credentials", &credentials)] {
        if secret.as_ref().is_some_and(|secret| secret.len() > LONGEST_SECRET || header(secret).is_none()) {
            let says = format!("must fit into the header of a request, and have at most {LONGEST_SECRET} bytes");
            return Err(Error::invalid(field, says));
        }
    }
    let secrets = Secrets { url: config.url.clone(), token, credentials };
    let sealed =
        serde_json::to_vec(&secrets).map_err(Into::into).and_then(|json| seals(app).seal(&json, &place(task, &id)));
    let sealed = sealed.map_err(|error| {
        tracing::error!(event = "push_not_sealed", error = %error);
        Error::new(Kind::Internal, "the configuration cannot be kept here; the log says why")
    })?;
    let url = callback::origin(&url);
    let scheme = scheme.map(str::to_owned);
    Ok(New { id, url, sealed, scheme, version: version.as_str().to_owned() })
}

/// Keeps it in the transaction in which the task is put into the queue, or in one of its own.
/// [`store::Error::NotFound`]: there is no such task.
pub(crate) async fn store_with_task(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    task: Uuid,
    new: &New,
    now: Timestamp,
) -> store::Result<()> {
    pushes::set(conn, owner, agent_id, task, new, now).await
}

/// Says where deliveries go.
pub(crate) fn resolver(app: &App) -> Resolver {
    let app = Arc::new(app.downgrade());
    let warned = Arc::new(AtomicBool::new(false));
    Arc::new(move |target| {
        let app = app.clone();
        let warned = warned.clone();
        Box::pin(async move {
            let app = app.upgrade().ok_or_else(|| Unresolved::Later("this node stops".to_owned()))?;
            resolve(&app, &target, &warned).await
        })
    })
}

async fn resolve(app: &App, target: &str, warned: &AtomicBool) -> Result<Outgoing, Unresolved> {
    let target: Target = serde_json::from_str(target).map_err(|_| Unresolved::Gone)?;
    let found = async {
        let mut reader = app.store().reader().await?;
        pushes::find(&mut reader, target.task, &target.id, model::clock::from_micros(target.made)).await
    };
    let later = |error: store::Error| Unresolved::Later(error.to_string());
    let push = found.await.map_err(later)?.ok_or(Unresolved::Gone)?;
    let secrets = open(&seals(app), &push).map_err(|closed| {
        let says = match closed {
            Closed::OtherKey => "where it goes is sealed with a key that this node does not have",
            Closed::Broken => "where it goes cannot be read",
        };
        if !warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(event = "push_sealed_elsewhere", "{says}; deliveries of this kind are left to other nodes");
        }
        Unresolved::Elsewhere(says.to_owned())
    })?;
    let mut headers = Vec::new();
    if let Some(token) = secrets.token.as_deref().and_then(header) {
        // The versions and their clients do not agree on what it is called.
        headers.push((HeaderName::from_static("x-a2a-notification-token"), token.clone()));
        headers.push((HeaderName::from_static("a2a-notification-token"), token));
    }
    let authorization = push.scheme.zip(secrets.credentials).map(|(scheme, secret)| format!("{scheme} {secret}"));
    headers.extend(authorization.as_deref().and_then(header).map(|value| (AUTHORIZATION, value)));
    Ok(Outgoing {
        url: secrets.url,
        content_type: match target.version.as_str() {
            "0.3" => "application/json",
            _ => "application/a2a+json",
        },
        headers,
        allow_private: app.in_force().settings.a2a.allow_private_webhooks,
    })
}

/// As its owner sees it. What this node cannot open is shown as far as it is known.
fn shown(seals: &Seals, push: Push) -> TaskPushNotificationConfig {
    let secrets = open(seals, &push).unwrap_or(Secrets { url: push.url, token: None, credentials: None });
    TaskPushNotificationConfig {
        url: secrets.url,
        id: Some(push.id),
        task_id: push.task_id.to_string(),
        token: secrets.token,
        authentication: push.scheme.map(|scheme| AuthenticationInfo { scheme, credentials: None }),
        tenant: None,
    }
}

fn open(seals: &Seals, push: &Push) -> Result<Secrets, Closed> {
    let plain = seals.open(&push.sealed, &place(push.task_id, &push.id))?;
    serde_json::from_slice(&plain).map_err(|_| Closed::Broken)
}

fn seals(app: &App) -> Seals {
    let secret = app.in_force().settings.auth.as_ref().and_then(|auth| auth.secret.clone());
    Seals::new(secret, app.supervisor().data_dir())
}

/// What its seal is good for.
fn place(task: Uuid, id: &str) -> String {
    format!("push {task} {id}")
}

/// A token of RFC 9110.
fn is_scheme(scheme: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !scheme.is_empty() && scheme.len() <= LONGEST_SCHEME && scheme.chars().all(fits)
}

fn header(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok().filter(|_| text.trim() == text)
}

pub(crate) fn fault(error: store::Error, task: &str) -> Error {
    match error {
        store::Error::TooMany { limit } => {
            let says = format!("the task has {limit} push notification configurations; delete one of them first");
            Error::invalid("taskId", says)
        }
        other => faults::from_store(other, task),
    }
}
