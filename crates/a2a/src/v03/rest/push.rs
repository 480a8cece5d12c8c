//! Where to call back.

use serde::{Deserialize, Serialize};

use super::message::or_empty;
use super::some;
use crate::{Error, types, v03};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushNotificationConfig {
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_empty")]
    pub id: String,
    pub url: String,
    #[serde(default, skip_serializing_if = "String::is_empty", deserialize_with = "or_empty")]
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Authentication {
    #[serde(deserialize_with = "or_empty")]
    pub schemes: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_empty")]
    pub credentials: String,
}

/// The task and the configuration are in the name: `tasks/ID/pushNotificationConfigs/ID`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushNotificationConfig {
    pub name: String,
    #[serde(alias = "push_notification_config")]
    pub push_notification_config: PushNotificationConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTaskPushNotificationConfigResponse {
    #[serde(default, deserialize_with = "or_empty")]
    pub configs: Vec<TaskPushNotificationConfig>,
    #[serde(default, alias = "next_page_token", skip_serializing_if = "String::is_empty")]
    pub next_page_token: String,
}

/// What sets one. Implementations disagree how much is wrapped around it: the whole request, what the path leaves of it,
/// or nothing at all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetPush {
    config: Option<Box<SetPush>>,
    #[serde(alias = "config_id")]
    config_id: Option<String>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<PushNotificationConfig>,
    id: Option<String>,
    url: Option<String>,
    token: Option<String>,
    authentication: Option<Authentication>,
}

impl SetPush {
    /// The configuration for the task that the path names.
    pub fn of_task(self, task_id: String) -> Result<types::TaskPushNotificationConfig, Error> {
        let Self { config, config_id, push_notification_config, id, url, token, authentication } = self;
        if let Some(config) = config {
            let mut config = config.of_task(task_id)?;
            config.id = config.id.or(config_id.and_then(some));
            return Ok(config);
        }
        if let Some(push) = push_notification_config {
            return Ok(push.of_task(task_id));
        }
        let url = url.ok_or_else(|| Error::invalid("pushNotificationConfig", "missing"))?;
        let (id, token) = (id.unwrap_or_default(), token.unwrap_or_default());
        Ok(PushNotificationConfig { id, url, token, authentication }.of_task(task_id))
    }
}

impl PushNotificationConfig {
    /// The same for a certain task; empty: the one that is about to begin.
    pub fn of_task(self, task_id: String) -> types::TaskPushNotificationConfig {
        let authentication = self.authentication.map(|login| types::AuthenticationInfo {
            scheme: login.schemes.into_iter().next().unwrap_or_default(),
            credentials: some(login.credentials),
        });
        types::TaskPushNotificationConfig {
            url: self.url,
            id: some(self.id),
            task_id,
            token: some(self.token),
            // Some say that there is none by an empty one.
            authentication: authentication.filter(|login| !login.scheme.is_empty() || login.credentials.is_some()),
            tenant: None,
        }
    }
}

impl From<types::TaskPushNotificationConfig> for PushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.map(|login| Authentication {
            schemes: some(login.scheme).into_iter().collect(),
            credentials: login.credentials.unwrap_or_default(),
        });
        let (id, token) = (config.id.unwrap_or_default(), config.token.unwrap_or_default());
        Self { id, url: config.url, token, authentication }
    }
}

impl From<types::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let id = config.id.as_deref().unwrap_or_default();
        let name = format!("tasks/{}/pushNotificationConfigs/{id}", config.task_id);
        Self { name, push_notification_config: config.into() }
    }
}

impl TryFrom<TaskPushNotificationConfig> for types::TaskPushNotificationConfig {
    type Error = Error;

    fn try_from(config: TaskPushNotificationConfig) -> Result<Self, Error> {
        let (task, id) = config
            .name
            .strip_prefix("tasks/")
            .and_then(|rest| rest.split_once("/pushNotificationConfigs/"))
            .ok_or_else(|| Error::invalid("name", "must be tasks/ID/pushNotificationConfigs/ID"))?;
        let mut made = config.push_notification_config.of_task(task.to_owned());
        made.id = made.id.or_else(|| some(id.to_owned()));
        Ok(made)
    }
}

impl From<types::ListTaskPushNotificationConfigsResponse> for ListTaskPushNotificationConfigResponse {
    fn from(response: types::ListTaskPushNotificationConfigsResponse) -> Self {
        let next_page_token = response.next_page_token.unwrap_or_default();
        Self { configs: v03::into_all(response.configs), next_page_token }
    }
}

impl TryFrom<ListTaskPushNotificationConfigResponse> for types::ListTaskPushNotificationConfigsResponse {
    type Error = Error;

    fn try_from(response: ListTaskPushNotificationConfigResponse) -> Result<Self, Error> {
        let configs = v03::all("configs", response.configs)?;
        Ok(Self { configs, next_page_token: some(response.next_page_token) })
    }
}
