//! Requests and lists in `lf.a2a.v1`.

use crate::{Error, types};

use super::shared::TaskState;
use super::v1::{
    AuthenticationInfo, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, SendMessageConfiguration,
    SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig,
};
use super::values::{from_map, from_time, to_map, to_time};
use super::{all, list, must, some, some_of, state, yes};

impl From<types::TaskPushNotificationConfig> for TaskPushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.map(|authentication| AuthenticationInfo {
            scheme: authentication.scheme,
            credentials: authentication.credentials.unwrap_or_default(),
        });
        Self {
            tenant: config.tenant.unwrap_or_default(),
            id: config.id.unwrap_or_default(),
            task_id: config.task_id,
            url: config.url,
            token: config.token.unwrap_or_default(),
            authentication,
        }
    }
}

impl From<TaskPushNotificationConfig> for types::TaskPushNotificationConfig {
    fn from(config: TaskPushNotificationConfig) -> Self {
        let authentication = config.authentication.map(|authentication| types::AuthenticationInfo {
            scheme: authentication.scheme,
            credentials: some(authentication.credentials),
        });
        Self {
            url: config.url,
            id: some(config.id),
            task_id: config.task_id,
            token: some(config.token),
            authentication,
            tenant: some(config.tenant),
        }
    }
}

impl From<types::SendMessageConfiguration> for SendMessageConfiguration {
    fn from(configuration: types::SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: configuration.accepted_output_modes.unwrap_or_default(),
            task_push_notification_config: configuration.task_push_notification_config.map(Into::into),
            history_length: configuration.history_length,
            return_immediately: configuration.return_immediately.unwrap_or_default(),
        }
    }
}

impl From<SendMessageConfiguration> for types::SendMessageConfiguration {
    fn from(configuration: SendMessageConfiguration) -> Self {
        Self {
            accepted_output_modes: some_of(configuration.accepted_output_modes),
            task_push_notification_config: configuration.task_push_notification_config.map(Into::into),
            history_length: configuration.history_length,
            return_immediately: yes(configuration.return_immediately),
        }
    }
}

impl From<types::SendMessageRequest> for SendMessageRequest {
    fn from(request: types::SendMessageRequest) -> Self {
        Self {
            tenant: request.tenant.unwrap_or_default(),
            message: Some(request.message.into()),
            configuration: request.configuration.map(Into::into),
            metadata: request.metadata.map(from_map),
        }
    }
}

impl TryFrom<SendMessageRequest> for types::SendMessageRequest {
    type Error = Error;

    fn try_from(request: SendMessageRequest) -> Result<Self, Error> {
        Ok(Self {
            message: must(request.message, "message")?,
            configuration: request.configuration.map(Into::into),
            metadata: to_map(request.metadata, "metadata")?,
            tenant: some(request.tenant),
        })
    }
}

impl From<types::GetTaskRequest> for GetTaskRequest {
    fn from(request: types::GetTaskRequest) -> Self {
        Self { tenant: request.tenant.unwrap_or_default(), id: request.id, history_length: request.history_length }
    }
}

impl From<GetTaskRequest> for types::GetTaskRequest {
    fn from(request: GetTaskRequest) -> Self {
        Self { id: request.id, history_length: request.history_length, tenant: some(request.tenant) }
    }
}

impl From<types::ListTasksRequest> for ListTasksRequest {
    fn from(request: types::ListTasksRequest) -> Self {
        Self {
            tenant: request.tenant.unwrap_or_default(),
            context_id: request.context_id.unwrap_or_default(),
            status: TaskState::from(request.status.unwrap_or_default()).into(),
            page_size: request.page_size,
            page_token: request.page_token.unwrap_or_default(),
            history_length: request.history_length,
            status_timestamp_after: request.status_timestamp_after.and_then(from_time),
            include_artifacts: request.include_artifacts,
        }
    }
}

impl TryFrom<ListTasksRequest> for types::ListTasksRequest {
    type Error = Error;

    fn try_from(request: ListTasksRequest) -> Result<Self, Error> {
        Ok(Self {
            context_id: some(request.context_id),
            status: Some(state(request.status, "status")?).filter(|state| *state != types::TaskState::Unspecified),
            page_size: request.page_size,
            page_token: some(request.page_token),
            history_length: request.history_length,
            status_timestamp_after: to_time(request.status_timestamp_after, "statusTimestampAfter")?,
            include_artifacts: request.include_artifacts,
            tenant: some(request.tenant),
        })
    }
}

impl From<types::ListTasksResponse> for ListTasksResponse {
    fn from(response: types::ListTasksResponse) -> Self {
        Self {
            tasks: list(response.tasks),
            next_page_token: response.next_page_token,
            page_size: response.page_size,
            total_size: response.total_size,
        }
    }
}

impl TryFrom<ListTasksResponse> for types::ListTasksResponse {
    type Error = Error;

    fn try_from(response: ListTasksResponse) -> Result<Self, Error> {
        Ok(Self {
            tasks: all(response.tasks, "tasks")?,
            next_page_token: response.next_page_token,
            page_size: response.page_size,
            total_size: response.total_size,
        })
    }
}

impl From<types::CancelTaskRequest> for CancelTaskRequest {
    fn from(request: types::CancelTaskRequest) -> Self {
        Self { tenant: request.tenant.unwrap_or_default(), id: request.id, metadata: request.metadata.map(from_map) }
    }
}

impl TryFrom<CancelTaskRequest> for types::CancelTaskRequest {
    type Error = Error;

    fn try_from(request: CancelTaskRequest) -> Result<Self, Error> {
        Ok(Self { id: request.id, metadata: to_map(request.metadata, "metadata")?, tenant: some(request.tenant) })
    }
}

impl From<types::SubscribeToTaskRequest> for SubscribeToTaskRequest {
    fn from(request: types::SubscribeToTaskRequest) -> Self {
        Self { tenant: request.tenant.unwrap_or_default(), id: request.id }
    }
}

impl From<SubscribeToTaskRequest> for types::SubscribeToTaskRequest {
    fn from(request: SubscribeToTaskRequest) -> Self {
        Self { id: request.id, tenant: some(request.tenant) }
    }
}

impl From<types::GetTaskPushNotificationConfigRequest> for GetTaskPushNotificationConfigRequest {
    fn from(request: types::GetTaskPushNotificationConfigRequest) -> Self {
        Self { tenant: request.tenant.unwrap_or_default(), task_id: request.task_id, id: request.id }
    }
}

impl From<GetTaskPushNotificationConfigRequest> for types::GetTaskPushNotificationConfigRequest {
    fn from(request: GetTaskPushNotificationConfigRequest) -> Self {
        Self { task_id: request.task_id, id: request.id, tenant: some(request.tenant) }
    }
}

impl From<types::DeleteTaskPushNotificationConfigRequest> for DeleteTaskPushNotificationConfigRequest {
    fn from(request: types::DeleteTaskPushNotificationConfigRequest) -> Self {
        Self { tenant: request.tenant.unwrap_or_default(), task_id: request.task_id, id: request.id }
    }
}

impl From<DeleteTaskPushNotificationConfigRequest> for types::DeleteTaskPushNotificationConfigRequest {
    fn from(request: DeleteTaskPushNotificationConfigRequest) -> Self {
        Self { task_id: request.task_id, id: request.id, tenant: some(request.tenant) }
    }
}

impl From<types::ListTaskPushNotificationConfigsRequest> for ListTaskPushNotificationConfigsRequest {
    fn from(request: types::ListTaskPushNotificationConfigsRequest) -> Self {
        Self {
            task_id: request.task_id,
            page_size: request.page_size.unwrap_or_default(),
            page_token: request.page_token.unwrap_or_default(),
            tenant: request.tenant.unwrap_or_default(),
        }
    }
}

impl From<ListTaskPushNotificationConfigsRequest> for types::ListTaskPushNotificationConfigsRequest {
    fn from(request: ListTaskPushNotificationConfigsRequest) -> Self {
        Self {
            task_id: request.task_id,
            page_size: Some(request.page_size).filter(|size| *size != 0),
            page_token: some(request.page_token),
            tenant: some(request.tenant),
        }
    }
}

impl From<types::ListTaskPushNotificationConfigsResponse> for ListTaskPushNotificationConfigsResponse {
    fn from(response: types::ListTaskPushNotificationConfigsResponse) -> Self {
        Self { configs: list(response.configs), next_page_token: response.next_page_token.unwrap_or_default() }
    }
}

impl From<ListTaskPushNotificationConfigsResponse> for types::ListTaskPushNotificationConfigsResponse {
    fn from(response: ListTaskPushNotificationConfigsResponse) -> Self {
        Self { configs: list(response.configs), next_page_token: some(response.next_page_token) }
    }
}

impl From<types::GetExtendedAgentCardRequest> for GetExtendedAgentCardRequest {
    fn from(request: types::GetExtendedAgentCardRequest) -> Self {
        Self { tenant: request.tenant.unwrap_or_default() }
    }
}

impl From<GetExtendedAgentCardRequest> for types::GetExtendedAgentCardRequest {
    fn from(request: GetExtendedAgentCardRequest) -> Self {
        Self { tenant: some(request.tenant) }
    }
}
