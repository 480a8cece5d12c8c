//! Version 0.3 as it is spoken in JSON-RPC: its nouns, and how each becomes one of version 1.x and back.
//!
//! Pure conversions, in both directions, because a server and a client need opposite ones. From 1.x to 0.3 nothing fails:
//! what 0.3 has no place for is left out. From 0.3 to 1.x only what makes no sense there fails, and the error names the
//! field. What can be said in both survives the way there and back unchanged.

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
pub use message::{DataPart, File, FilePart, Message, MessageTag, Part, Role, TextPart};
pub use security::{OAuthFlows, SecurityScheme};
pub(crate) use task::ends_stream;
pub use task::{
    Artifact, ArtifactUpdateTag, StatusUpdateTag, StreamResult, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent, TaskTag,
};

/// What both versions hang on to nearly everything.
pub type Metadata = std::collections::HashMap<String, serde_json::Value>;

/// The word in `kind` that says what an object is. It may be missing where only one is possible.
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

/// Converts every element, or says which one makes no sense.
fn all<A, B: TryFrom<A, Error = crate::Error>>(field: &str, items: Vec<A>) -> Result<Vec<B>, crate::Error> {
    let convert =
        |(place, item)| B::try_from(item).map_err(|error: crate::Error| error.inside(&format!("{field}[{place}]")));
    items.into_iter().enumerate().map(convert).collect()
}

fn into_all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

#[cfg(test)]
mod tests;
