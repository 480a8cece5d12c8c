//! The request that sets a push notification configuration, in all forms that clients send.

use serde::Deserialize;

use crate::proto::v03::{AuthenticationInfo, PushNotificationConfig};
use crate::{Error, types};

/// A request that sets a push notification configuration. Clients send the whole request, the part that is not in the
/// path, or only the configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SetPushConfig {
    config: Option<Box<SetPushConfig>>,
    #[serde(alias = "config_id")]
    config_id: Option<String>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<PushNotificationConfig>,
    id: Option<String>,
    url: Option<String>,
    token: Option<String>,
    authentication: Option<AuthenticationInfo>,
}

impl SetPushConfig {
    /// Returns the configuration for the task in the path. `config` takes precedence over `push_notification_config`,
    /// and that over the plain fields. Ignored forms are not checked. `config_id` is used only beside `config`, if that
    /// has no id. Fails if neither a nested configuration nor a URL is present.
    pub fn into_task_config(self, task_id: String) -> Result<types::TaskPushNotificationConfig, Error> {
        let Self { config, config_id, push_notification_config, id, url, token, authentication } = self;
        if let Some(config) = config {
            let mut config = config.into_task_config(task_id)?;
            config.id = config.id.or(config_id.filter(|id| !id.is_empty()));
            return Ok(config);
        }
        if let Some(push) = push_notification_config {
            return Ok(push.into_task_config(task_id));
        }
        let url = url.ok_or_else(|| Error::invalid("pushNotificationConfig", "missing"))?;
        let id = id.unwrap_or_default();
        let token = token.unwrap_or_default();
        Ok(PushNotificationConfig { id, url, token, authentication }.into_task_config(task_id))
    }
}
