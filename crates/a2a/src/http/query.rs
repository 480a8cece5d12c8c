//! The parameters of a request in its query string.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use crate::proto::json;
use crate::types::{ListTaskPushNotificationConfigsRequest, ListTasksRequest};
use crate::{Error, types};

/// The parameters that are known, by their names in camel case; either spelling is read, and others are passed over.
pub(super) struct Query<'a>(Option<&'a str>);

impl<'a> Query<'a> {
    pub(super) fn new(query: Option<&'a str>) -> Self {
        Self(query)
    }

    /// Returns the value of the first parameter of either name that is not empty. Fails if it cannot be decoded.
    fn get(&self, name: &str, snake: &str) -> Result<Option<Cow<'a, str>>, Error> {
        let is_wanted = |key: &str| key == name || key == snake;
        for pair in query::pairs(self.0.unwrap_or_default()) {
            match pair {
                Ok((key, value)) if is_wanted(&key) && !value.is_empty() => return Ok(Some(value)),
                Err(error) if is_wanted(&error.parameter) => {
                    return Err(Error::invalid(name, error.reason.to_string()));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    fn text(&self, name: &str, snake: &str) -> Result<Option<String>, Error> {
        Ok(self.get(name, snake)?.map(Cow::into_owned))
    }

    fn number(&self, name: &str, snake: &str) -> Result<Option<i32>, Error> {
        let Some(text) = self.get(name, snake)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Error::invalid(name, "must be a whole number of 32 bits"))
    }

    fn flag(&self, name: &str, snake: &str) -> Result<Option<bool>, Error> {
        let Some(text) = self.get(name, snake)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Error::invalid(name, "must be true or false"))
    }

    fn time(&self, name: &str, snake: &str) -> Result<Option<DateTime<Utc>>, Error> {
        let Some(text) = self.get(name, snake)? else { return Ok(None) };
        // A plus that was not escaped has become a space.
        let time = DateTime::parse_from_rfc3339(&text.replace(' ', "+"));
        time.map(|time| Some(time.to_utc()))
            .map_err(|_| Error::invalid(name, "must be a time such as 2026-01-02T03:04:05Z"))
    }

    fn state(&self) -> Result<Option<types::TaskState>, Error> {
        let Some(text) = self.get("status", "status")? else { return Ok(None) };
        let state = json::state_named(&text)
            .ok_or_else(|| Error::invalid("status", "must be a state such as TASK_STATE_WORKING"))?;
        Ok(Some(state).filter(|state| *state != types::TaskState::Unspecified))
    }

    pub(super) fn history_length(&self) -> Result<Option<i32>, Error> {
        self.number("historyLength", "history_length")
    }

    pub(super) fn list(&self, tenant: Option<String>) -> Result<ListTasksRequest, Error> {
        Ok(ListTasksRequest {
            context_id: self.text("contextId", "context_id")?,
            status: self.state()?,
            page_size: self.number("pageSize", "page_size")?,
            page_token: self.text("pageToken", "page_token")?,
            history_length: self.history_length()?,
            status_timestamp_after: self.time("statusTimestampAfter", "status_timestamp_after")?,
            include_artifacts: self.flag("includeArtifacts", "include_artifacts")?,
            tenant,
        })
    }

    pub(super) fn list_push(
        &self,
        task_id: String,
        tenant: Option<String>,
    ) -> Result<ListTaskPushNotificationConfigsRequest, Error> {
        let page_size = self.number("pageSize", "page_size")?;
        Ok(ListTaskPushNotificationConfigsRequest {
            task_id,
            page_size,
            page_token: self.text("pageToken", "page_token")?,
            tenant,
        })
    }
}
