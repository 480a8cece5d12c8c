//! Requests and push notification configurations in both packages. In 0.3 a task has a resource name instead of an id,
//! and a history length of zero means the whole history.

use super::convert::{ProtoField, convert, message, read};
use super::{names, v1, v03};
use crate::{Error, types};

convert!(v1::AuthenticationInfo = AuthenticationInfo { scheme, credentials });
convert!(
    v1::TaskPushNotificationConfig = TaskPushNotificationConfig { tenant, id, task_id, url, token, authentication }
);
convert!(
    v1::ListTaskPushNotificationConfigsResponse = ListTaskPushNotificationConfigsResponse { configs, next_page_token }
);
convert!(
    v1::SendMessageConfiguration = SendMessageConfiguration {
        accepted_output_modes,
        task_push_notification_config,
        history_length,
        return_immediately
    }
);
convert!(v1::SendMessageRequest = SendMessageRequest { tenant, message, configuration, metadata });
convert!(v1::GetTaskRequest = GetTaskRequest { tenant, id, history_length });
convert!(
    v1::ListTasksRequest = ListTasksRequest {
        tenant,
        context_id,
        status,
        page_size,
        page_token,
        history_length,
        status_timestamp_after,
        include_artifacts
    }
);
convert!(v1::CancelTaskRequest = CancelTaskRequest { tenant, id, metadata });
convert!(v1::SubscribeToTaskRequest = SubscribeToTaskRequest { tenant, id });
convert!(v1::GetTaskPushNotificationConfigRequest = GetTaskPushNotificationConfigRequest { tenant, task_id, id });
convert!(v1::DeleteTaskPushNotificationConfigRequest = DeleteTaskPushNotificationConfigRequest { tenant, task_id, id });
convert!(
    v1::ListTaskPushNotificationConfigsRequest =
        ListTaskPushNotificationConfigsRequest { tenant, task_id, page_size, page_token }
);
convert!(v1::GetExtendedAgentCardRequest = GetExtendedAgentCardRequest { tenant });

convert!(
    v03::ListTaskPushNotificationConfigResponse = ListTaskPushNotificationConfigsResponse { configs, next_page_token }
);

/// Writes the only scheme of 1.x as the first, which is the preferred one.
impl From<types::AuthenticationInfo> for v03::AuthenticationInfo {
    fn from(info: types::AuthenticationInfo) -> Self {
        let schemes = Some(info.scheme).filter(|scheme| !scheme.is_empty());
        Self { schemes: schemes.into_iter().collect(), credentials: info.credentials.write() }
    }
}

impl From<types::TaskPushNotificationConfig> for v03::PushNotificationConfig {
    /// Drops the task and the tenant. Missing fields become empty.
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        Self {
            id: config.id.write(),
            url: config.url,
            token: config.token.write(),
            authentication: config.authentication.map(Into::into),
        }
    }
}

impl v03::PushNotificationConfig {
    /// Returns the configuration for a task, without a tenant. An empty `task_id` means the task that the request
    /// starts. Empty fields become `None`. Of several schemes the first is used. An authentication without scheme and
    /// credentials is dropped.
    pub fn into_task_config(self, task_id: String) -> types::TaskPushNotificationConfig {
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let authentication = self.authentication.map(|info| types::AuthenticationInfo {
            scheme: info.schemes.into_iter().next().unwrap_or_default(),
            credentials: some(info.credentials),
        });
        types::TaskPushNotificationConfig {
            url: self.url,
            id: some(self.id),
            task_id,
            token: some(self.token),
            // Some clients send an empty object instead of none.
            authentication: authentication.filter(|info| !info.scheme.is_empty() || info.credentials.is_some()),
            tenant: None,
        }
    }
}

impl From<types::TaskPushNotificationConfig> for v03::TaskPushNotificationConfig {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        let name = names::config_name(&config.task_id, config.id.as_deref().unwrap_or_default());
        Self { name, push_notification_config: Some(config.into()) }
    }
}

impl TryFrom<v03::TaskPushNotificationConfig> for types::TaskPushNotificationConfig {
    type Error = Error;

    fn try_from(config: v03::TaskPushNotificationConfig) -> Result<Self, Error> {
        let content = config.push_notification_config.unwrap_or_default();
        let (task, id) = names::parse_any_config(&config.name, "name")?;
        let content = content.into_task_config(task);
        let id = content.id.clone().or(ProtoField::read(id)?);
        Ok(Self { id, ..content })
    }
}

message!(v03::TaskPushNotificationConfig = TaskPushNotificationConfig);

impl From<types::TaskPushNotificationConfig> for v03::CreateTaskPushNotificationConfigRequest {
    fn from(config: types::TaskPushNotificationConfig) -> Self {
        Self {
            parent: names::task_name(&config.task_id),
            config_id: config.id.clone().unwrap_or_default(),
            config: Some(config.into()),
        }
    }
}

impl TryFrom<v03::CreateTaskPushNotificationConfigRequest> for types::TaskPushNotificationConfig {
    type Error = Error;

    /// Converts a request that creates a configuration. `parent` is the name of a task, optionally followed by
    /// `/pushNotificationConfigs`. `config_id` is used if the configuration has no id. Ignores the name of the new
    /// configuration, because clients set it to arbitrary values. Fails if `parent` has another form, the configuration
    /// is missing, or both ids are set and differ.
    fn try_from(request: v03::CreateTaskPushNotificationConfigRequest) -> Result<Self, Error> {
        let task = names::parse_parent(&request.parent, "parent")?;
        let config = request.config.and_then(|config| config.push_notification_config);
        let config =
            config.ok_or_else(|| Error::invalid("config.pushNotificationConfig", "missing"))?.into_task_config(task);
        match (&config.id, ProtoField::read(request.config_id)?) {
            (Some(id), Some(other)) if *id != other => {
                Err(Error::invalid("configId", "must be the id in the configuration"))
            }
            (None, id) => Ok(Self { id, ..config }),
            _ => Ok(config),
        }
    }
}

impl From<types::SendMessageRequest> for v03::SendMessageRequest {
    /// Converts a message to 0.3, without the tenant. Always sets `blocking`: to false only if `return_immediately` is
    /// set. Without a configuration, some servers do not wait for the end of the task, but 1.x does.
    fn from(request: types::SendMessageRequest) -> Self {
        let blocking = v03::SendMessageConfiguration { blocking: true, ..Default::default() };
        let configuration = request.configuration.map(|configuration| v03::SendMessageConfiguration {
            accepted_output_modes: configuration.accepted_output_modes.write(),
            push_notification: configuration.task_push_notification_config.map(Into::into),
            history_length: configuration.history_length.write(),
            blocking: !configuration.return_immediately.unwrap_or_default(),
        });
        Self {
            request: request.message.write(),
            configuration: Some(configuration.unwrap_or(blocking)),
            metadata: request.metadata.write(),
        }
    }
}

impl TryFrom<v03::SendMessageRequest> for types::SendMessageRequest {
    type Error = Error;

    /// Converts a message of 0.3. A configuration that is not `blocking` sets `return_immediately`. A history length of
    /// zero becomes `None`. Without a configuration there is none. Fails if the message is missing, or a field of the
    /// message or the metadata is invalid.
    fn try_from(request: v03::SendMessageRequest) -> Result<Self, Error> {
        let configuration = |configuration: v03::SendMessageConfiguration| {
            Ok::<_, Error>(types::SendMessageConfiguration {
                accepted_output_modes: ProtoField::read(configuration.accepted_output_modes)?,
                task_push_notification_config: configuration
                    .push_notification
                    .map(|push| push.into_task_config(String::new())),
                history_length: ProtoField::read(configuration.history_length)?,
                return_immediately: ProtoField::read(!configuration.blocking)?,
            })
        };
        Ok(Self {
            message: read(request.request, "message")?,
            configuration: request.configuration.map(configuration).transpose()?,
            metadata: read(request.metadata, "metadata")?,
            tenant: None,
        })
    }
}

impl From<types::GetTaskRequest> for v03::GetTaskRequest {
    fn from(request: types::GetTaskRequest) -> Self {
        Self { name: names::task_name(&request.id), history_length: request.history_length.write() }
    }
}

impl TryFrom<v03::GetTaskRequest> for types::GetTaskRequest {
    type Error = Error;

    fn try_from(request: v03::GetTaskRequest) -> Result<Self, Error> {
        let id = names::parse_task(&request.name, "name")?;
        Ok(Self { id, history_length: ProtoField::read(request.history_length)?, tenant: None })
    }
}

/// Implements the conversions of a request that contains only the name of a task.
macro_rules! convert_task_request {
    ($theirs:ident = $ours:ident { $($extra:ident: $value:expr),* }) => {
        impl From<types::$ours> for v03::$theirs {
            fn from(request: types::$ours) -> Self {
                Self { name: names::task_name(&request.id) }
            }
        }

        impl TryFrom<v03::$theirs> for types::$ours {
            type Error = Error;

            fn try_from(request: v03::$theirs) -> Result<Self, Error> {
                Ok(Self { id: names::parse_task(&request.name, "name")?, $($extra: $value),* })
            }
        }
    };
}

convert_task_request!(CancelTaskRequest = CancelTaskRequest { metadata: None, tenant: None });
convert_task_request!(TaskSubscriptionRequest = SubscribeToTaskRequest { tenant: None });

/// Implements the conversions of a request that contains only the name of a push configuration.
macro_rules! convert_config_request {
    ($name:ident) => {
        impl From<types::$name> for v03::$name {
            fn from(request: types::$name) -> Self {
                Self { name: names::config_name(&request.task_id, &request.id) }
            }
        }

        impl TryFrom<v03::$name> for types::$name {
            type Error = Error;

            fn try_from(request: v03::$name) -> Result<Self, Error> {
                let (task_id, id) = names::parse_config(&request.name, "name")?;
                Ok(Self { task_id, id, tenant: None })
            }
        }
    };
}

convert_config_request!(GetTaskPushNotificationConfigRequest);
convert_config_request!(DeleteTaskPushNotificationConfigRequest);

impl From<types::ListTaskPushNotificationConfigsRequest> for v03::ListTaskPushNotificationConfigRequest {
    fn from(request: types::ListTaskPushNotificationConfigsRequest) -> Self {
        Self {
            parent: names::task_name(&request.task_id),
            page_size: request.page_size.write(),
            page_token: request.page_token.write(),
        }
    }
}

impl TryFrom<v03::ListTaskPushNotificationConfigRequest> for types::ListTaskPushNotificationConfigsRequest {
    type Error = Error;

    /// Converts a request that lists configurations. A page size of zero and an empty token become `None`. `parent` is
    /// the name of a task, optionally followed by `/pushNotificationConfigs`. Fails if it has another form.
    fn try_from(request: v03::ListTaskPushNotificationConfigRequest) -> Result<Self, Error> {
        Ok(Self {
            task_id: names::parse_parent(&request.parent, "parent")?,
            page_size: ProtoField::read(request.page_size)?,
            page_token: ProtoField::read(request.page_token)?,
            tenant: None,
        })
    }
}

impl From<types::GetExtendedAgentCardRequest> for v03::GetAgentCardRequest {
    fn from(_: types::GetExtendedAgentCardRequest) -> Self {
        Self {}
    }
}

impl TryFrom<v03::GetAgentCardRequest> for types::GetExtendedAgentCardRequest {
    type Error = Error;

    fn try_from(_: v03::GetAgentCardRequest) -> Result<Self, Error> {
        Ok(Self { tenant: None })
    }
}
