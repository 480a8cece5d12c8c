//! The request that sets a push notification configuration, in every form that clients send.

use serde::Deserialize;

use crate::proto::v03::{AuthenticationInfo, PushNotificationConfig};
use crate::{Error, types};

/// Implementations disagree how much is wrapped around the configuration: the whole request, the part of it that the path
/// does not name, or nothing at all.
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
    authentication: Option<AuthenticationInfo>,
}

impl SetPush {
    /// Returns the configuration for the task that the path names.
    pub fn of_task(self, task_id: String) -> Result<types::TaskPushNotificationConfig, Error> {
        let Self { config, config_id, push_notification_config, id, url, token, authentication } = self;
        if let Some(config) = config {
            let mut config = config.of_task(task_id)?;
            config.id = config.id.or(config_id.filter(|id| !id.is_empty()));
            return Ok(config);
        }
        if let Some(push) = push_notification_config {
            return Ok(push.of_task(task_id));
        }
        let url = url.ok_or_else(|| Error::invalid("pushNotificationConfig", "missing"))?;
        let id = id.unwrap_or_default();
        let token = token.unwrap_or_default();
        Ok(PushNotificationConfig { id, url, token, authentication }.of_task(task_id))
    }
}
