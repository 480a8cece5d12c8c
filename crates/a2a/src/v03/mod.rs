//! The types of version 0.3 in JSON-RPC, and their conversions to and from version 1.x.
//!
//! The conversions are pure. A conversion to 0.3 never fails; it omits values that 0.3 cannot express. A conversion to
//! 1.x fails only for invalid values, and the error names the field. Values that both versions can express survive a
//! round trip unchanged.

mod card;
mod configs;
mod message;
pub mod rest;
mod security;
mod task;

pub(crate) use card::has_extended;
pub use card::{AgentCapabilities, AgentCard, AgentInterface, AgentSkill};
pub use configs::{
    MessageSendConfiguration, MessageSendParams, PushNotificationAuthenticationInfo, PushNotificationConfig,
    PushParams, TaskIdParams, TaskPushNotificationConfig, TaskQueryParams,
};
pub use message::{DataPart, FileContent, FilePart, Message, MessageTag, Part, Role, TextPart};
pub use security::{OAuthFlows, SecurityScheme};
pub(crate) use task::ends_stream;
pub use task::{
    Artifact, ArtifactUpdateTag, StatusUpdateTag, StreamResult, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent, TaskTag,
};

/// Free-form metadata, which most objects of both versions have.
pub type Metadata = std::collections::HashMap<String, serde_json::Value>;

/// Defines the value of `kind`, which names the type of an object. It is optional where only one type is possible.
macro_rules! tag {
    ($name:ident, $word:literal) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            #[default]
            #[serde(rename = $word)]
            It,
        }
    };
}
use tag;

/// Converts every element. Fails with an error that names the invalid element.
fn all<A, B: TryFrom<A, Error = crate::Error>>(field: &str, items: Vec<A>) -> Result<Vec<B>, crate::Error> {
    let convert =
        |(index, item)| B::try_from(item).map_err(|error: crate::Error| error.nested_in(&format!("{field}[{index}]")));
    items.into_iter().enumerate().map(convert).collect()
}

fn into_all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

#[cfg(test)]
mod tests;
