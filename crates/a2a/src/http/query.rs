//! What stands behind the question mark.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use percent_encoding::percent_decode_str;

use super::v10;
use crate::types::{ListTaskPushNotificationConfigsRequest, ListTasksRequest};
use crate::{Error, types};

/// The parameters that are known, by their names in camel case; either spelling is read, and others are passed over.
pub(super) struct Query<'a>(Option<&'a str>);

impl<'a> Query<'a> {
    pub(super) fn new(query: Option<&'a str>) -> Self {
        Self(query)
    }

    /// The value of the first that is given and not empty.
    fn get(&self, name: &str, snake: &str) -> Result<Option<Cow<'a, str>>, Error> {
        for pair in self.0.unwrap_or_default().split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if value.is_empty() || (key != name && key != snake) {
                continue;
            }
            let value = if value.contains('+') { Cow::Owned(value.replace('+', " ")) } else { Cow::Borrowed(value) };
            let decoded = match value {
                Cow::Borrowed(value) => percent_decode_str(value).decode_utf8(),
                Cow::Owned(ref value) => {
                    percent_decode_str(value).decode_utf8().map(|text| Cow::Owned(text.into_owned()))
                }
            };
            return decoded.map(Some).map_err(|_| Error::invalid(name, "not UTF-8"));
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
        let state =
            v10::named(&text).ok_or_else(|| Error::invalid("status", "must be a state such as TASK_STATE_WORKING"))?;
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
