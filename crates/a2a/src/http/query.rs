//! The parameters of a request in its query string.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use crate::proto::json;
use crate::types::{ListTaskPushNotificationConfigsRequest, ListTasksRequest};
use crate::{Error, types};

/// The query string of a request. Names are accepted in camel case and snake case. Unknown parameters are ignored.
pub(super) struct Query<'a>(Option<&'a str>);

impl<'a> Query<'a> {
    pub(super) fn new(query: Option<&'a str>) -> Self {
        Self(query)
    }

    /// Returns the first non-empty value of the parameter, or `None`. `snake` is its other accepted name. Fails with
    /// `InvalidParams` if an earlier or this value of the parameter cannot be decoded. Other parameters are not
    /// checked.
    fn get(&self, name: &str, snake: &str) -> Result<Option<Cow<'a, str>>, Error> {
        let is_match = |key: &str| key == name || key == snake;
        for pair in query::pairs(self.0.unwrap_or_default()) {
            match pair {
                Ok((key, value)) if is_match(&key) && !value.is_empty() => return Ok(Some(value)),
                Err(error) if is_match(&error.parameter) => {
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

    /// Returns the parameter as a number. Fails if it is not a 32-bit integer.
    fn number(&self, name: &str, snake: &str) -> Result<Option<i32>, Error> {
        let Some(text) = self.get(name, snake)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Error::invalid(name, "must be a 32-bit integer"))
    }

    /// Returns the parameter as a flag. Fails if it is neither `true` nor `false`.
    fn flag(&self, name: &str, snake: &str) -> Result<Option<bool>, Error> {
        let Some(text) = self.get(name, snake)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| Error::invalid(name, "must be true or false"))
    }

    /// Returns the parameter as a time in RFC 3339. Fails if it has another form.
    fn time(&self, name: &str, snake: &str) -> Result<Option<DateTime<Utc>>, Error> {
        let Some(text) = self.get(name, snake)? else { return Ok(None) };
        // An unescaped plus was decoded as a space.
        let time = DateTime::parse_from_rfc3339(&text.replace(' ', "+"));
        time.map(|time| Some(time.to_utc()))
            .map_err(|_| Error::invalid(name, "must be a time such as 2026-01-02T03:04:05Z"))
    }

    /// Returns the state to filter by, or `None` if it is missing or unspecified. Fails if it is unknown.
    fn state(&self) -> Result<Option<types::TaskState>, Error> {
        let Some(text) = self.get("status", "status")? else { return Ok(None) };
        let state = json::parse_state(&text)
            .ok_or_else(|| Error::invalid("status", "must be a state such as TASK_STATE_WORKING"))?;
        Ok(Some(state).filter(|state| *state != types::TaskState::Unspecified))
    }

    /// Returns the requested length of the history. Fails if it is not an integer.
    pub(super) fn history_length(&self) -> Result<Option<i32>, Error> {
        self.number("historyLength", "history_length")
    }

    /// Returns the request that lists tasks. Missing and empty parameters are `None`. Fails with `InvalidParams` if a
    /// parameter has a wrong type. Ranges are not checked here.
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

    /// Returns the request that lists push configurations. Missing and empty parameters are `None`. Fails with
    /// `InvalidParams` if the page size is not an integer. Its range is not checked here.
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
