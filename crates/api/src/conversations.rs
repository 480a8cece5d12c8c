//! `/api/conversations`.

pub use model::conversation::{Conversation, Message, MessageRole, ToolCall};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ListPage;

page! {
    /// Conversations.
    Conversations { conversations: Conversation }
}

list! {
    /// Selects conversations.
    ListConversations -> Conversations {
        /// Text in the title or in a message.
        q: String,
    }
}

/// A conversation with one page of its messages.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Transcript {
    #[serde(flatten)]
    pub conversation: Conversation,
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The number of messages on this page.
    pub count: usize,
    /// Selects the next page of messages; null on the last one.
    pub next_cursor: Option<String>,
}

impl ListPage for Transcript {
    type Item = Message;

    fn into_parts(self) -> (Vec<Message>, Option<String>) {
        (self.messages, self.next_cursor)
    }
}

list! {
    /// Selects messages of a conversation.
    ListMessages -> Transcript {}
}
