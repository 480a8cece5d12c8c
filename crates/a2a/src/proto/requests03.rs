//! Requests and lists in `a2a.v1`. A task has a name here, not an id, and 0 stands for a history of any length.

use crate::{Error, types};

use super::names;
use super::v03::{
    AuthenticationInfo, CancelTaskRequest, CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest, GetAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigResponse, PushNotificationConfig,
    SendMessageConfiguration, SendMessageRequest, TaskPushNotificationConfig, TaskSubscriptionRequest,
};
use super::values::{from_map, to_map};
use super::{all, list, must, some, some_of, yes};

impl From<types::TaskPushNotificationConfig> for PushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.map(|authentication| AuthenticationInfo {
            schemes: some(authentication.scheme).into_iter().collect(),
            credentials: authentication.credentials.unwrap_or_default(),
        });
        Self {
            id: config.id.unwrap_or_default(),
            url: config.url,
            token: config.token.unwrap_or_default(),
            authentication,
        }
    }
}

impl PushNotificationConfig {
    /// The same for a certain task. 1.x knows one scheme: the first, which is the preferred one.
    fn of_task(self, task_id: String) -> types::TaskPushNotificationConfig {
        let authentication = self.authentication.map(|authentication| types::AuthenticationInfo {
            scheme: authentication.schemes.into_iter().next().unwrap_or_default(),
            credentials: some(authentication.credentials),
        });
        types::TaskPushNotificationConfig {
            url: self.url,
            id: some(self.id),
            task_id,
            token: some(self.token),
            authentication,
            tenant: None,
        }
    }
}

impl From<types::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let name = names::of_config(&config.task_id, config.id.as_deref().unwrap_or_default());
        Self { name, push_notification_config: Some(config.into()) }
    }
}

impl TryFrom<TaskPushNotificationConfig> for types::TaskPushNotificationConfig {
    type Error = Error;

    fn try_from(config: TaskPushNotificationConfig) -> Result<Self, Error> {
        let (task, id) = names::config(&config.name, "name")?;
        let content = config.push_notification_config.unwrap_or_default();
        Ok(Self { id: Some(id), ..content.of_task(task) })
    }
}

impl From<types::TaskPushNotificationConfig> for CreateTaskPushNotificationConfigRequest {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        Self {
            parent: names::of_task(&config.task_id),
            config_id: config.id.clone().unwrap_or_default(),
            config: Some(config.into()),
        }
    }
}

impl TryFrom<CreateTaskPushNotificationConfigRequest> for types::TaskPushNotificationConfig {
    type Error = Error;

    /// The name of what is to be made is not looked at: clients write anything there.
    fn try_from(request: CreateTaskPushNotificationConfigRequest) -> Result<Self, Error> {
        let task = names::parent(&request.parent, "parent")?;
        let config = request.config.and_then(|config| config.push_notification_config);
        let config = config.ok_or_else(|| Error::invalid("config.pushNotificationConfig", "missing"))?.of_task(task);
        match (&config.id, some(request.config_id)) {
            (Some(id), Some(other)) if *id != other => {
                Err(Error::invalid("configId", "is another one than that of the configuration"))
            }
            (None, id) => Ok(Self { id, ..config }),
            _ => Ok(config),
        }
    }
}

impl From<types::SendMessageConfiguration> for SendMessageConfiguration {
    fn from(configuration: types::SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes.unwrap_or_default(),
            push_notification: configuration.task_push_notification_config.map(Into::into),
            history_length: configuration.history_length.unwrap_or_default(),
            blocking: !configuration.return_immediately.unwrap_or_default(),
        }
    }
}

impl From<SendMessageConfiguration> for types::SendMessageConfiguration {
    fn from(configuration: SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: some_of(configuration.accepted_output_modes),
            task_push_notification_config: configuration.push_notification.map(|push| push.of_task(String::new())),
            history_length: length(configuration.history_length),
            return_immediately: yes(!configuration.blocking),
        }
    }
}

impl From<types::SendMessageRequest> for SendMessageRequest {
    /// Without a configuration some servers would not wait for the end, as a request of 1.x does.
    fn from(request: types::SendMessageRequest) -> Self {
        let waits = SendMessageConfiguration { blocking: true, ..Default::default() };
        Self {
            request: Some(request.message.into()),
            configuration: Some(request.configuration.map_or(waits, Into::into)),
            metadata: request.metadata.map(from_map),
        }
    }
}

impl TryFrom<SendMessageRequest> for types::SendMessageRequest {
    type Error = Error;

    fn try_from(request: SendMessageRequest) -> Result<Self, Error> {
        Ok(Self {
            message: must(request.request, "message")?,
            configuration: request.configuration.map(Into::into),
            metadata: to_map(request.metadata, "metadata")?,
            tenant: None,
        })
    }
}

impl From<types::GetTaskRequest> for GetTaskRequest {
    fn from(request: types::GetTaskRequest) -> Self {
        Self { name: names::of_task(&request.id), history_length: request.history_length.unwrap_or_default() }
    }
}

impl TryFrom<GetTaskRequest> for types::GetTaskRequest {
    type Error = Error;

    fn try_from(request: GetTaskRequest) -> Result<Self, Error> {
        let id = names::task(&request.name, "name")?;
        Ok(Self { id, history_length: length(request.history_length), tenant: None })
    }
}

fn length(length: i32) -> Option<i32> {
    Some(length).filter(|length| *length != 0)
}

impl From<types::CancelTaskRequest> for CancelTaskRequest {
    fn from(request: types::CancelTaskRequest) -> Self {
        Self { name: names::of_task(&request.id) }
    }
}

impl TryFrom<CancelTaskRequest> for types::CancelTaskRequest {
    type Error = Error;

    fn try_from(request: CancelTaskRequest) -> Result<Self, Error> {
        Ok(Self { id: names::task(&request.name, "name")?, metadata: None, tenant: None })
    }
}

impl From<types::SubscribeToTaskRequest> for TaskSubscriptionRequest {
    fn from(request: types::SubscribeToTaskRequest) -> Self {
        Self { name: names::of_task(&request.id) }
    }
}

impl TryFrom<TaskSubscriptionRequest> for types::SubscribeToTaskRequest {
    type Error = Error;

    fn try_from(request: TaskSubscriptionRequest) -> Result<Self, Error> {
        Ok(Self { id: names::task(&request.name, "name")?, tenant: None })
    }
}

impl From<types::GetTaskPushNotificationConfigRequest> for GetTaskPushNotificationConfigRequest {
    fn from(request: types::GetTaskPushNotificationConfigRequest) -> Self {
        Self { name: names::of_config(&request.task_id, &request.id) }
    }
}

impl TryFrom<GetTaskPushNotificationConfigRequest> for types::GetTaskPushNotificationConfigRequest {
    type Error = Error;

    fn try_from(request: GetTaskPushNotificationConfigRequest) -> Result<Self, Error> {
        let (task_id, id) = names::config(&request.name, "name")?;
        Ok(Self { task_id, id, tenant: None })
    }
}

impl From<types::DeleteTaskPushNotificationConfigRequest> for DeleteTaskPushNotificationConfigRequest {
    fn from(request: types::DeleteTaskPushNotificationConfigRequest) -> Self {
        Self { name: names::of_config(&request.task_id, &request.id) }
    }
}

impl TryFrom<DeleteTaskPushNotificationConfigRequest> for types::DeleteTaskPushNotificationConfigRequest {
    type Error = Error;

    fn try_from(request: DeleteTaskPushNotificationConfigRequest) -> Result<Self, Error> {
        let (task_id, id) = names::config(&request.name, "name")?;
        Ok(Self { task_id, id, tenant: None })
    }
}

impl From<types::ListTaskPushNotificationConfigsRequest> for ListTaskPushNotificationConfigRequest {
    fn from(request: types::ListTaskPushNotificationConfigsRequest) -> Self {
        Self {
            parent: names::of_task(&request.task_id),
            page_size: request.page_size.unwrap_or_default(),
            page_token: request.page_token.unwrap_or_default(),
        }
    }
}

impl TryFrom<ListTaskPushNotificationConfigRequest> for types::ListTaskPushNotificationConfigsRequest {
    type Error = Error;

    fn try_from(request: ListTaskPushNotificationConfigRequest) -> Result<Self, Error> {
        Ok(Self {
            task_id: names::parent(&request.parent, "parent")?,
            page_size: length(request.page_size),
            page_token: some(request.page_token),
            tenant: None,
        })
    }
}

impl From<types::ListTaskPushNotificationConfigsResponse> for ListTaskPushNotificationConfigResponse {
    fn from(response: types::ListTaskPushNotificationConfigsResponse) -> Self {
        Self { configs: list(response.configs), next_page_token: response.next_page_token.unwrap_or_default() }
    }
}

impl TryFrom<ListTaskPushNotificationConfigResponse> for types::ListTaskPushNotificationConfigsResponse {
    type Error = Error;

    fn try_from(response: ListTaskPushNotificationConfigResponse) -> Result<Self, Error> {
        Ok(Self { configs: all(response.configs, "configs")?, next_page_token: some(response.next_page_token) })
    }
}

impl From<types::GetExtendedAgentCardRequest> for GetAgentCardRequest {
    fn from(_: types::GetExtendedAgentCardRequest) -> Self {
        Self {}
    }
}

impl From<GetAgentCardRequest> for types::GetExtendedAgentCardRequest {
    fn from(_: GetAgentCardRequest) -> Self {
        Self { tenant: None }
    }
}
