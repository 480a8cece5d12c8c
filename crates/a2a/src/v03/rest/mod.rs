//! Version 0.3 as it is spoken in HTTP+JSON: the JSON form of its protobuf messages, which is not that of JSON-RPC.
//!
//! There is no `kind`: the name of a member says what is in it. Names are written in camel case and read in snake case,
//! too; members that are not known are passed over. In requests the parts of a message may also come in the form of
//! JSON-RPC, because the words of the specification allow both.

mod message;
mod push;
pub mod python;
mod task;

pub use message::{Configuration, File, Message, Part, SendMessageRequest};
pub use push::{
    Authentication, ListTaskPushNotificationConfigResponse, PushNotificationConfig, SetPush, TaskPushNotificationConfig,
};
pub use task::{
    Artifact, ListTasksResponse, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatus, TaskStatusUpdateEvent,
};

/// A protobuf string that is not given is empty.
fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
