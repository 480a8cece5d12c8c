//! Conversations and their messages, including the tool calls.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Invalid, text};

/// The maximum length of a message to the chat endpoints (S0).
pub const MAX_CHAT_INPUT_CHARS: usize = 5000;
/// The maximum length of a message to `/agent/run` (S4).
pub const MAX_AGENT_MESSAGE_CHARS: usize = 2000;
const MAX_TITLE_CHARS: usize = 80;

/// The id of a conversation: a UUID, or `conv_` followed by 1 to 64 letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ConversationId(String);

impl FromStr for ConversationId {
    type Err = Invalid;

    /// Parses an id. A UUID must have hyphens and becomes lower case. The other form is `conv_` and 1 to 64 ASCII
    /// letters and digits, in unchanged case. Fails for everything else.
    fn from_str(id: &str) -> Result<Self, Invalid> {
        if id.len() == 36
            && let Ok(uuid) = Uuid::try_parse(id)
        {
            return Ok(Self(uuid.to_string()));
        }
        match id.strip_prefix("conv_") {
            Some(name) if (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                Ok(Self(id.to_owned()))
            }
            _ => {
                let message = "must be a UUID, or conv_ followed by 1 to 64 letters and digits";
                Err(Invalid::one("conversation_id", "conversation_id", message))
            }
        }
    }
}

impl From<ConversationId> for String {
    fn from(id: ConversationId) -> Self {
        id.0
    }
}

impl TryFrom<String> for ConversationId {
    type Error = Invalid;

    fn try_from(id: String) -> Result<Self, Invalid> {
        id.parse()
    }
}

impl From<Uuid> for ConversationId {
    fn from(id: Uuid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The stored messages between a user and the assistant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    #[schema(value_type = String, examples("conv_123abc"))]
    pub id: ConversationId,
    /// The start of the first message.
    pub title: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub message_count: i64,
}

/// One entry of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub id: Uuid,
    pub role: MessageRole,
    pub content: String,
    pub timestamp: Timestamp,
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// The tool call that waits for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub pending: Option<Value>,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Role)]
pub enum MessageRole {
    User,
    Assistant,
    System,
}

impl MessageRole {
    /// Parses a role. Fails if the text is not one of the three roles.
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        match text {
            "user" => Ok(Self::User),
            "assistant" => Ok(Self::Assistant),
            "system" => Ok(Self::System),
            _ => Err(Invalid::one(field, "one_of", "must be user, assistant or system")),
        }
    }

    /// Returns the JSON spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// One call of a tool and its result (S1's ToolCallRecord).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolCall {
    pub tool_name: String,
    #[schema(value_type = Object)]
    pub parameters: Value,
    #[schema(value_type = Object)]
    pub result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub duration_ms: u64,
}

impl Conversation {
    /// Returns the imported conversation with a title that satisfies the rules for titles. Never fails.
    pub fn check(self) -> Result<Self, Invalid> {
        Ok(Self { title: title_from_message(&self.title), ..self })
    }
}

impl Message {
    /// Returns the imported message with cleaned content. Fails if the content is empty.
    pub fn check(self) -> Result<Self, Invalid> {
        Ok(Self { content: text::required("content", &self.content, usize::MAX)?, ..self })
    }
}

/// Returns the cleaned text of a chat message. Fails if it does not have 1 to `max` characters.
pub fn clean_message(field: &str, message: &str, max: usize) -> Result<String, Invalid> {
    text::required(field, message, max)
}

/// Returns a title for a conversation: the first line of its first message that is not blank, as a cleaned line. A
/// title of more than 80 characters is cut and ends with `…`. The cut is at the last space within the first 80
/// characters, or after them if there is none. Empty for a blank message.
pub fn title_from_message(first_message: &str) -> String {
    let line = text::clean_line(first_message.trim().lines().next().unwrap_or_default());
    match line.char_indices().nth(MAX_TITLE_CHARS) {
        None => line,
        Some((end, _)) => {
            let cut = &line[..end];
            let cut = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
            format!("{cut}…")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_or_conv_names() {
        // CHAT-4
        for good in ["conv_123abc", "0190a6d2-7c00-7000-8000-000000000000", &format!("conv_{}", "a".repeat(64))] {
            assert_eq!(good.parse::<ConversationId>().unwrap().to_string(), good);
        }
        for bad in ["", "conv_", "conv_a-b", "conv_é", "CONV_1", "123", &format!("conv_{}", "a".repeat(65))] {
            assert!(bad.parse::<ConversationId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn message_length_limits_depend_on_the_endpoint() {
        // CHAT-4
        assert!(clean_message("input", &"é".repeat(MAX_CHAT_INPUT_CHARS), MAX_CHAT_INPUT_CHARS).is_ok());
        assert!(clean_message("input", &"é".repeat(MAX_CHAT_INPUT_CHARS + 1), MAX_CHAT_INPUT_CHARS).is_err());
        assert!(clean_message("message", &"é".repeat(MAX_AGENT_MESSAGE_CHARS + 1), MAX_AGENT_MESSAGE_CHARS).is_err());
        assert!(MessageRole::parse("role", "tool").is_err());
    }

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        assert_eq!(title_from_message("\n add milk\nand bread"), "add milk");
        let long = title_from_message(&"word ".repeat(40));
        assert!(long.ends_with("word…") && long.chars().count() <= MAX_TITLE_CHARS + 1, "{long}");
    }
}
