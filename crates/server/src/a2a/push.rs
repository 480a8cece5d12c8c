//! Push configurations: the webhooks of clients and their credentials.
//!
//! The URL, the token and the credentials are sealed before they are stored. Only the origin and the name of the scheme
//! are stored in plain text. The owner can read the URL and the token again, but never the credentials. `push_loop`
//! creates the notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::a2a::types::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig,
};
use ::a2a::{Error, ErrorKind, Version};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderName, HeaderValue};
use jiff::Timestamp;
use model::UserId;
use notify::{CallbackRequest, CallbackResolver, ResolveError, callback};
use serde::{Deserialize, Serialize};
use store::a2a::pushes::{self, NewPushConfig, PushConfig};
use store::page::Cursor;
use store::{Conn, a2a};
use uuid::Uuid;

use super::caller::A2aCaller;
use super::errors;
use crate::App;
use crate::seal::{Sealer, SealingSecrets, UnsealError};

/// The name of push notifications among the callbacks of the notifier.
pub(crate) const PUSH_CALLBACK: &str = "a2a:push";

/// The default number of configurations on a page.
const DEFAULT_PAGE_SIZE: i64 = 50;
/// The number of configurations that are sealed again in one transaction.
const RESEAL_BATCH_SIZE: i64 = 100;
const MAX_ID_BYTES: usize = 200;
const MAX_URL_BYTES: usize = 4096;
const MAX_SCHEME_BYTES: usize = 50;
const MAX_SECRET_BYTES: usize = 8192;
/// The id that some clients of 0.3 use for a configuration without an id.
const DEFAULT_CONFIG_ID: &str = "default";

/// The sealed part of a configuration.
#[derive(Serialize, Deserialize)]
struct PushSecrets {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    credentials: Option<String>,
}

/// The target of a delivery: the configuration and the version of the payload.
#[derive(Serialize, Deserialize)]
pub(crate) struct PushTarget {
    pub(crate) task: Uuid,
    /// The id of the configuration.
    pub(crate) id: String,
    /// The creation time of the configuration, in microseconds. A later configuration with the same id is a different
    /// one.
    #[serde(rename = "made")]
    pub(crate) created_at: i64,
    /// The protocol version of the payload.
    pub(crate) version: String,
}

/// Handles `CreateTaskPushNotificationConfig`. A configuration with the same id is replaced. Returns it with its id and
/// token and without its credentials. A new one causes no notification about an end or a request for input that has
/// already happened.
///
/// Fails like [`prepare`] if the configuration is invalid. Fails if the task does not exist or has 20 other
/// configurations, or the database fails.
pub(crate) async fn set(
    app: &App,
    caller: &A2aCaller,
    config: TaskPushNotificationConfig,
) -> Result<TaskPushNotificationConfig, Error> {
    let task = errors::parse_task_id(&config.task_id)?;
    let new = prepare(app, caller.version, task, &config)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.clone();
    let now = app.clock().now();
    let stored_config = new.clone();
    let stored = app
        .store()
        .owner_transaction(owner, async move |tx| store_with_task(tx, owner, &agent, task, &stored_config, now).await);
    stored.await.map_err(|error| error_from_store(error, &config.task_id))?;
    let authentication = new.scheme.map(|scheme| AuthenticationInfo { scheme, credentials: None });
    Ok(TaskPushNotificationConfig { id: Some(new.id), authentication, tenant: None, ..config })
}

/// Handles `GetTaskPushNotificationConfig`. Returns the configuration like [`visible_config`]. Clients of 0.3 may omit
/// the id or use `default`; if no configuration has that id, they get the oldest one.
///
/// Fails if the id is empty in 1.x, is too long or contains control characters. Fails if the task or the configuration
/// does not exist, or the database fails.
pub(crate) async fn get(
    app: &App,
    caller: &A2aCaller,
    request: GetTaskPushNotificationConfigRequest,
) -> Result<TaskPushNotificationConfig, Error> {
    let task = errors::parse_task_id(&request.task_id)?;
    if request.id.is_empty() && caller.version != Version::V03 {
        return Err(Error::invalid("id", "must not be empty"));
    }
    check_id(&request.id)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.as_str();
    let to_error = |error| error_from_store(error, &request.task_id);
    let mut reader = app.store().owner_reader(owner).await.map_err(to_error)?;
    a2a::current_run(&mut reader, owner, agent, task).await.map_err(to_error)?;
    let accepts_any = caller.version == Version::V03 && matches!(request.id.as_str(), "" | DEFAULT_CONFIG_ID);
    let found = match pushes::get(&mut reader, owner, agent, task, &request.id).await {
        Err(store::Error::NotFound) if accepts_any => {
            pushes::list(&mut reader, owner, agent, task, None, 1).await.map(|page| page.rows.into_iter().next())
        }
        Err(store::Error::NotFound) => Ok(None),
        found => found.map(Some),
    };
    let push = found.map_err(to_error)?;
    let push =
        push.ok_or_else(|| Error::new(ErrorKind::NotFound, "the push notification configuration was not found"))?;
    Ok(visible_config(&sealer(app), push))
}

/// Handles `ListTaskPushNotificationConfigs`. Returns the configurations like [`visible_config`], oldest first. A
/// missing or zero page size means 50.
///
/// Fails if the task does not exist or the database fails. Fails if the page size is not between 0 and 100, or the page
/// token is not from an earlier response.
pub(crate) async fn list(
    app: &App,
    caller: &A2aCaller,
    request: ListTaskPushNotificationConfigsRequest,
) -> Result<ListTaskPushNotificationConfigsResponse, Error> {
    let task = errors::parse_task_id(&request.task_id)?;
    let limit = match request.page_size {
        Some(size @ 1..=::a2a::validate::MAX_PAGE_SIZE) => i64::from(size),
        // In protobuf zero means a missing value.
        None | Some(0) => DEFAULT_PAGE_SIZE,
        Some(_) => {
            return Err(Error::invalid(
                "pageSize",
                format!("must be between 1 and {}", ::a2a::validate::MAX_PAGE_SIZE),
            ));
        }
    };
    let token = request.page_token.as_deref().filter(|token| !token.is_empty());
    let invalid = |_| Error::invalid("pageToken", "must be the nextPageToken of an earlier response");
    let after = token.map(Cursor::parse).transpose().map_err(invalid)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.as_str();
    let to_error = |error| error_from_store(error, &request.task_id);
    let mut reader = app.store().owner_reader(owner).await.map_err(to_error)?;
    a2a::current_run(&mut reader, owner, agent, task).await.map_err(to_error)?;
    let page = pushes::list(&mut reader, owner, agent, task, after.as_ref(), limit).await.map_err(to_error)?;
    let sealer = sealer(app);
    let configs = page.rows.into_iter().map(|push| visible_config(&sealer, push)).collect();
    Ok(ListTaskPushNotificationConfigsResponse { configs, next_page_token: page.next.map(|next| next.encode()) })
}

/// Handles `DeleteTaskPushNotificationConfig`. Deleting a missing configuration succeeds. Fails if the task does not
/// exist, the id is too long or contains control characters, or the database fails.
pub(crate) async fn delete(
    app: &App,
    caller: &A2aCaller,
    request: DeleteTaskPushNotificationConfigRequest,
) -> Result<(), Error> {
    let task = errors::parse_task_id(&request.task_id)?;
    check_id(&request.id)?;
    let owner = caller.user.id;
    let agent = caller.entry.agent.id.clone();
    let id = request.id;
    let removed = app.store().owner_transaction(owner, async move |tx| {
        a2a::current_run(tx, owner, &agent, task).await?;
        pushes::remove(tx, owner, &agent, task, &id).await
    });
    removed.await.map(drop).map_err(|error| error_from_store(error, &request.task_id))
}

/// Returns the id of a configuration unchanged. Fails if it is too long or contains control characters. An empty id is
/// valid.
fn check_id(id: &str) -> Result<&str, Error> {
    if id.len() > MAX_ID_BYTES || id.contains(char::is_control) {
        return Err(Error::invalid("id", format!("must have at most {MAX_ID_BYTES} bytes and no control characters")));
    }
    Ok(id)
}

/// Validates and seals a configuration. [`store_with_task`] stores the result. Without an id, the id is that of the
/// task in 0.3, otherwise a new one. An empty scheme means `Bearer`. Empty tokens and credentials count as missing.
///
/// Fails with an error that names the field in these cases. A failure to seal is logged and `Internal`.
///
/// - The id has more than 200 bytes or control characters, or the scheme is malformed or has more than 50 bytes.
/// - The URL has more than 4,096 bytes or is not HTTP or HTTPS. Without the permission in the settings it also fails
///   for `localhost` and private IP addresses. Other names are checked only before a delivery.
/// - The token or the credentials have more than 8,192 bytes or are not valid in a header.
pub(crate) fn prepare(
    app: &App,
    version: Version,
    task: Uuid,
    config: &TaskPushNotificationConfig,
) -> Result<NewPushConfig, Error> {
    let id = match config.id.as_deref().filter(|id| !id.is_empty()) {
        Some(id) => check_id(id)?.to_owned(),
        // In 0.3 a task has one configuration without an id. The next one replaces it.
        None if version == Version::V03 => task.to_string(),
        None => app.clock().id().to_string(),
    };
    if config.url.len() > MAX_URL_BYTES {
        return Err(Error::invalid("url", format!("must have at most {MAX_URL_BYTES} bytes")));
    }
    let allow_private = app.active_config().settings.a2a.allow_private_webhooks;
    let url = callback::parse_url(&config.url, allow_private).map_err(|message| Error::invalid("url", message))?;
    let token = config.token.clone().filter(|token| !token.is_empty());
    let given = config.authentication.as_ref();
    let scheme = given.map(|given| given.scheme.trim()).map(|scheme| if scheme.is_empty() { "Bearer" } else { scheme });
    let credentials = given.and_then(|given| given.credentials.clone()).filter(|credentials| !credentials.is_empty());
    if scheme.is_some_and(|scheme| !is_auth_scheme(scheme)) {
        return Err(Error::invalid(
            "authentication.scheme",
            "must be the name of an authentication scheme such as Bearer",
        ));
    }
    for (field, secret) in [("token", &token), ("authentication.credentials", &credentials)] {
        if secret.as_ref().is_some_and(|secret| secret.len() > MAX_SECRET_BYTES || header_value(secret).is_none()) {
            let message = format!("must be a valid header value of at most {MAX_SECRET_BYTES} bytes");
            return Err(Error::invalid(field, message));
        }
    }
    let secrets = PushSecrets { url: config.url.clone(), token, credentials };
    let sealed = serde_json::to_vec(&secrets)
        .map_err(Into::into)
        .and_then(|json| sealer(app).seal(&json, &seal_context(task, &id)));
    let sealed = sealed.map_err(|error| {
        tracing::error!(event = "push_not_sealed", error = %error);
        Error::new(ErrorKind::Internal, "the configuration cannot be stored; see the server log")
    })?;
    let url = callback::origin(&url);
    let scheme = scheme.map(str::to_owned);
    Ok(NewPushConfig { id, url, sealed, scheme, version: version.as_str().to_owned() })
}

/// Stores a configuration, in the transaction that enqueues the task or in a separate one. Fails with
/// [`store::Error::NotFound`] if the task does not exist, and with [`store::Error::TooMany`] if it has too many
/// configurations.
pub(crate) async fn store_with_task(
    conn: &mut Conn,
    owner: UserId,
    agent_id: &str,
    task: Uuid,
    new: &NewPushConfig,
    now: Timestamp,
) -> store::Result<()> {
    pushes::set(conn, owner, agent_id, task, new, now).await
}

/// Returns the function that resolves the targets of deliveries with [`resolve`]. It holds a weak reference to the app,
/// and fails with a transient error once the app is dropped.
pub(crate) fn callback_resolver(app: &App) -> CallbackResolver {
    let app = Arc::new(app.downgrade());
    let warned = Arc::new(AtomicBool::new(false));
    Arc::new(move |target| {
        let app = app.clone();
        let warned = warned.clone();
        Box::pin(async move {
            let app = app.upgrade().ok_or_else(|| ResolveError::Transient("this node is stopping".to_owned()))?;
            resolve(&app, &target, &warned).await
        })
    })
}

/// Returns the HTTP request for a stored target. The token is in `X-A2A-Notification-Token` and
/// `A2A-Notification-Token`. The credentials are in `Authorization`, if both a scheme and credentials are stored. The
/// content type is JSON in 0.3, otherwise A2A JSON.
///
/// Fails with `Removed` if the target is malformed or its configuration was deleted or given up, and with `Transient`
/// if the database fails. Fails with `OtherNode` if this node cannot unseal it, because the key is missing or the text
/// is damaged. `warned` limits the warning about the latter to one per process.
async fn resolve(app: &App, target: &str, warned: &AtomicBool) -> Result<CallbackRequest, ResolveError> {
    let target: PushTarget = serde_json::from_str(target).map_err(|_| ResolveError::Removed)?;
    let found = async {
        let mut reader = app.store().reader().await?;
        pushes::find(&mut reader, target.task, &target.id, model::clock::from_micros(target.created_at)).await
    };
    let transient = |error: store::Error| ResolveError::Transient(error.to_string());
    let push = found.await.map_err(transient)?.ok_or(ResolveError::Removed)?;
    let secrets = unseal(&sealer(app), &push).map_err(|error| {
        let message = match error {
            UnsealError::UnknownKey => "the target is sealed with a key that this node does not have",
            UnsealError::Corrupt => "the target cannot be decrypted",
        };
        if !warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(event = "push_sealed_elsewhere", "{message}; such deliveries are left to other nodes");
        }
        ResolveError::OtherNode(message.to_owned())
    })?;
    let mut headers = Vec::new();
    if let Some(token) = secrets.token.as_deref().and_then(header_value) {
        // The versions and their clients use different names.
        headers.push((HeaderName::from_static("x-a2a-notification-token"), token.clone()));
        headers.push((HeaderName::from_static("a2a-notification-token"), token));
    }
    let authorization = push.scheme.zip(secrets.credentials).map(|(scheme, secret)| format!("{scheme} {secret}"));
    headers.extend(authorization.as_deref().and_then(header_value).map(|value| (AUTHORIZATION, value)));
    Ok(CallbackRequest {
        url: secrets.url,
        content_type: match target.version.as_str() {
            "0.3" => "application/json",
            _ => "application/a2a+json",
        },
        headers,
        allow_private: app.active_config().settings.a2a.allow_private_webhooks,
    })
}

/// Returns the configuration for its owner, with the token and the scheme but without the credentials. If this node
/// cannot unseal it, the URL is only the origin and the token is missing.
fn visible_config(sealer: &Sealer, push: PushConfig) -> TaskPushNotificationConfig {
    let secrets = unseal(sealer, &push).unwrap_or(PushSecrets { url: push.url, token: None, credentials: None });
    TaskPushNotificationConfig {
        url: secrets.url,
        id: Some(push.id),
        task_id: push.task_id.to_string(),
        token: secrets.token,
        authentication: push.scheme.map(|scheme| AuthenticationInfo { scheme, credentials: None }),
        tenant: None,
    }
}

/// Returns the sealed part of a configuration. Fails if this node does not have the key or the text is damaged.
fn unseal(sealer: &Sealer, push: &PushConfig) -> Result<PushSecrets, UnsealError> {
    let plain = sealer.open(&push.sealed, &seal_context(push.task_id, &push.id))?;
    serde_json::from_slice(&plain).map_err(|_| UnsealError::Corrupt)
}

/// Returns the sealer with the keys of the active configuration.
fn sealer(app: &App) -> Sealer {
    let config = app.active_config();
    let auth = config.settings.auth.as_ref();
    let secrets = SealingSecrets {
        sealing_key: config.settings.sealing_key.clone(),
        token_secrets: auth.map_or_else(Vec::new, |auth| {
            [&auth.secret, &auth.previous_secret].into_iter().flatten().cloned().collect()
        }),
        is_shared: app.store().is_shared(),
    };
    Sealer::new(secrets, app.supervisor().data_dir())
}

/// Seals the configurations of all users with the current key, if another known key was used. Afterwards the other key
/// can be removed. A failure is logged; the next start or reload repeats the work.
pub(crate) async fn reseal_all(app: App) {
    match reseal_pages(&app).await {
        Ok(0) => {}
        Ok(count) => tracing::info!(event = "push_resealed", count, "sealed push configurations with the current key"),
        Err(error) => tracing::warn!(event = "push_not_resealed", error),
    }
}

/// Returns the number of configurations that were sealed again. Fails if the database or the key file fails.
async fn reseal_pages(app: &App) -> Result<usize, String> {
    let sealer = sealer(app);
    let mut count = 0;
    let mut last: Option<PushConfig> = None;
    loop {
        let page =
            async { pushes::all_after(&mut app.store().reader().await?, last.as_ref(), RESEAL_BATCH_SIZE).await };
        let page = page.await.map_err(|error: store::Error| error.to_string())?;
        let Some(end) = page.last().cloned() else { return Ok(count) };
        let mut changes = Vec::new();
        for push in page {
            let resealed = sealer.reseal(&push.sealed, &seal_context(push.task_id, &push.id));
            if let Some(sealed) = resealed.map_err(|error| error.to_string())? {
                changes.push((push, sealed));
            }
        }
        if !changes.is_empty() {
            let replaced = app.store().transaction(async move |tx| {
                let mut replaced = 0;
                for (push, sealed) in &changes {
                    replaced += usize::from(pushes::replace_sealed(tx, push, sealed).await?);
                }
                Ok(replaced)
            });
            count += replaced.await.map_err(|error: store::Error| error.to_string())?;
        }
        last = Some(end);
    }
}

/// Returns the context that the sealed text is bound to.
fn seal_context(task: Uuid, id: &str) -> String {
    format!("push {task} {id}")
}

/// Returns whether this is a token as defined in RFC 9110, of at most 50 bytes.
fn is_auth_scheme(scheme: &str) -> bool {
    let is_token_char = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !scheme.is_empty() && scheme.len() <= MAX_SCHEME_BYTES && scheme.chars().all(is_token_char)
}

/// Returns the text as a header value, or `None` if it has invalid characters or surrounding whitespace.
fn header_value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok().filter(|_| text.trim() == text)
}

/// Converts an error of the store to an A2A error. `task` is the requested id. Too many configurations are an invalid
/// `taskId`. Other errors are converted by [`errors::from_store`].
pub(crate) fn error_from_store(error: store::Error, task: &str) -> Error {
    match error {
        store::Error::TooMany { limit } => {
            let message =
                format!("the task already has {limit} push notification configurations; delete one of them first");
            Error::invalid("taskId", message)
        }
        other => errors::from_store(other, task),
    }
}
