//! Version 0.3 as it is spoken in HTTP+JSON: the JSON form of its protobuf messages, which is not that of JSON-RPC. In
//! requests the parts of a message may also come in the form of JSON-RPC, because the words of the specification allow
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
pub use push::SetPush;

impl StreamResponse {
    /// Returns whether the agent says that nothing comes after this.
    pub(crate) fn is_final(&self) -> bool {
        matches!(&self.payload, Some(stream_response::Payload::StatusUpdate(event)) if event.r#final)
    }
}

/// No message of 0.3: the specification lists a path for it and says no more.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListTasksResponse {
    pub tasks: Vec<Task>,
    pub next_page_token: String,
    pub page_size: i32,
    pub total_size: i32,
}

impl From<types::ListTasksResponse> for ListTasksResponse {
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
