//! Parameters of requests, and push notification configurations.

use serde::{Deserialize, Serialize};

use super::{Message, Metadata};
use crate::{Error, types};

/// Parameters of `message/send` and `message/stream`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageSendParams {
    pub message: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<MessageSendConfiguration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageSendConfiguration {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_output_modes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_notification_config: Option<PushNotificationConfig>,
}

/// Parameters of `tasks/get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskQueryParams {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_length: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Parameters of methods that name only a task: cancel, resubscribe, list push configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskIdParams {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// Parameters of getting and deleting a push configuration. Without an id, the first one of the task is returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushParams {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_notification_config_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPushNotificationConfig {
    pub task_id: String,
    pub push_notification_config: PushNotificationConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushNotificationConfig {
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<PushNotificationAuthenticationInfo>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushNotificationAuthenticationInfo {
    pub schemes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

/// Converts the length of the history of 0.3 to 1.x. In 0.3 zero means the whole history, in 1.x it means none.
fn history_length(history_length: Option<i32>) -> Option<i32> {
    history_length.filter(|length| *length != 0)
}

impl From<types::SendMessageRequest> for MessageSendParams {
    fn from(request: types::SendMessageRequest) -> Self {
        let configuration = request.configuration.map(MessageSendConfiguration::from);
        Self { message: request.message.into(), configuration, metadata: request.metadata }
    }
}

impl TryFrom<MessageSendParams> for types::SendMessageRequest {
    type Error = Error;

    /// Converts the parameters of a message of 0.3. There is no tenant. Fails if a part of the message is invalid. The
    /// error names the field.
    fn try_from(params: MessageSendParams) -> Result<Self, Error> {
        Ok(Self {
            message: types::Message::try_from(params.message).map_err(|error| error.nested_in("message"))?,
            configuration: params.configuration.map(types::SendMessageConfiguration::from),
            metadata: params.metadata,
            tenant: None,
        })
    }
}

impl From<types::SendMessageConfiguration> for MessageSendConfiguration {
    /// Converts a configuration of 1.x. `blocking` is the opposite of `return_immediately`, and is missing if that is
    /// missing. A history length of zero is kept, although it means the whole history in 0.3.
    fn from(configuration: types::SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes,
            blocking: configuration.return_immediately.map(|immediately| !immediately),
            history_length: configuration.history_length,
            push_notification_config: configuration.task_push_notification_config.map(PushNotificationConfig::from),
        }
    }
}

impl From<MessageSendConfiguration> for types::SendMessageConfiguration {
    /// Converts a configuration of 0.3. `return_immediately` is the opposite of `blocking`, and is missing if that is
    /// missing. A history length of zero becomes `None`. The push configuration gets an empty task id.
    fn from(configuration: MessageSendConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes,
            return_immediately: configuration.blocking.map(|blocking| !blocking),
            history_length: history_length(configuration.history_length),
            task_push_notification_config: configuration
                .push_notification_config
                .map(|push| push.into_task_config(String::new())),
        }
    }
}

impl From<types::GetTaskRequest> for TaskQueryParams {
    fn from(request: types::GetTaskRequest) -> Self {
        Self { id: request.id, history_length: request.history_length, metadata: None }
    }
}

impl From<TaskQueryParams> for types::GetTaskRequest {
    fn from(params: TaskQueryParams) -> Self {
        Self { id: params.id, history_length: history_length(params.history_length), tenant: None }
    }
}

impl From<types::CancelTaskRequest> for TaskIdParams {
    fn from(request: types::CancelTaskRequest) -> Self {
        Self { id: request.id, metadata: request.metadata }
    }
}

impl From<TaskIdParams> for types::CancelTaskRequest {
    fn from(params: TaskIdParams) -> Self {
        Self { id: params.id, metadata: params.metadata, tenant: None }
    }
}

impl From<types::SubscribeToTaskRequest> for TaskIdParams {
    fn from(request: types::SubscribeToTaskRequest) -> Self {
        Self { id: request.id, metadata: None }
    }
}

impl From<TaskIdParams> for types::SubscribeToTaskRequest {
    fn from(params: TaskIdParams) -> Self {
        Self { id: params.id, tenant: None }
    }
}

impl From<types::ListTaskPushNotificationConfigsRequest> for TaskIdParams {
    fn from(request: types::ListTaskPushNotificationConfigsRequest) -> Self {
        Self { id: request.task_id, metadata: None }
    }
}

impl From<TaskIdParams> for types::ListTaskPushNotificationConfigsRequest {
    fn from(params: TaskIdParams) -> Self {
        Self { task_id: params.id, page_size: None, page_token: None, tenant: None }
    }
}

impl From<types::GetTaskPushNotificationConfigRequest> for PushParams {
    fn from(request: types::GetTaskPushNotificationConfigRequest) -> Self {
        let id = Some(request.id).filter(|id| !id.is_empty());
        Self { id: request.task_id, push_notification_config_id: id, metadata: None }
    }
}

impl From<PushParams> for types::GetTaskPushNotificationConfigRequest {
    /// A missing id becomes an empty one. The handler then returns the first configuration of the task.
    fn from(params: PushParams) -> Self {
        Self { task_id: params.id, id: params.push_notification_config_id.unwrap_or_default(), tenant: None }
    }
}

impl From<types::DeleteTaskPushNotificationConfigRequest> for PushParams {
    fn from(request: types::DeleteTaskPushNotificationConfigRequest) -> Self {
        Self { id: request.task_id, push_notification_config_id: Some(request.id), metadata: None }
    }
}

impl TryFrom<PushParams> for types::DeleteTaskPushNotificationConfigRequest {
    type Error = Error;

    fn try_from(params: PushParams) -> Result<Self, Error> {
        let missing = || Error::invalid("pushNotificationConfigId", "missing");
        Ok(Self { task_id: params.id, id: params.push_notification_config_id.ok_or_else(missing)?, tenant: None })
    }
}

impl From<types::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        Self { task_id: config.task_id.clone(), push_notification_config: config.into() }
    }
}

impl From<TaskPushNotificationConfig> for types::TaskPushNotificationConfig {
    fn from(config: TaskPushNotificationConfig) -> Self {
        config.push_notification_config.into_task_config(config.task_id)
    }
}

impl From<types::TaskPushNotificationConfig> for PushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.map(PushNotificationAuthenticationInfo::from);
        Self { url: config.url, id: config.id, token: config.token, authentication }
    }
}

impl PushNotificationConfig {
    /// Returns the configuration for a task, without a tenant. An empty `task_id` means the task that the request
    /// starts. Of several schemes the first is used; without one the scheme is empty.
    pub fn into_task_config(self, task_id: String) -> types::TaskPushNotificationConfig {
        let authentication = self.authentication.map(types::AuthenticationInfo::from);
        types::TaskPushNotificationConfig {
            url: self.url,
            id: self.id,
            task_id,
            token: self.token,
            authentication,
            tenant: None,
        }
    }
}

impl From<types::AuthenticationInfo> for PushNotificationAuthenticationInfo {
    fn from(info: types::AuthenticationInfo) -> Self {
        let schemes = Some(info.scheme).filter(|scheme| !scheme.is_empty());
        Self { schemes: schemes.into_iter().collect(), credentials: info.credentials }
    }
}

impl From<PushNotificationAuthenticationInfo> for types::AuthenticationInfo {
    /// Takes the first scheme, which is the preferred one. 1.x has only one.
    fn from(info: PushNotificationAuthenticationInfo) -> Self {
        Self { scheme: info.schemes.into_iter().next().unwrap_or_default(), credentials: info.credentials }
    }
}
