//! The types of version 0.3 in HTTP+JSON: the JSON form of its protobuf messages, which differs from JSON-RPC.
//!
//! In requests, the parts of a message are also accepted in the form of JSON-RPC. The text of the specification allows
//! both.

mod push;
pub mod python;

use serde::Serialize;

use crate::proto::v03::stream_response;
pub use crate::proto::v03::{
    CreateTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigResponse, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task, TaskPushNotificationConfig,
};
use crate::types;
pub use push::SetPushConfig;

impl StreamResponse {
    /// Returns whether the agent marks this update as the last.
    pub(crate) fn is_final(&self) -> bool {
        matches!(&self.payload, Some(stream_response::Payload::StatusUpdate(event)) if event.r#final)
    }
}

/// A page of tasks. 0.3 has a path for listing tasks, but does not define the message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResponse {
    pub tasks: Vec<Task>,
    pub next_page_token: String,
    pub page_size: i32,
    pub total_size: i32,
}

impl From<types::ListTasksResponse> for ListTasksResponse {
    /// Converts a page of 1.x. All fields are the same.
    fn from(response: types::ListTasksResponse) -> Self {
        Self {
            tasks: response.tasks.into_iter().map(Task::from).collect(),
            next_page_token: response.next_page_token,
            page_size: response.page_size,
            total_size: response.total_size,
        }
    }
}

#[cfg(test)]
mod tests;
