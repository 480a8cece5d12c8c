//! Conversations and their messages: the record of what was said and which tools ran.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Invalid, text};

/// The longest message of the chat endpoints, in characters (S0).
pub const MAX_INPUT: usize = 5000;
/// The longest message of `/agent/run`, in characters (S4).
pub const MAX_AGENT_MESSAGE: usize = 2000;
const MAX_TITLE: usize = 80;

/// A UUID, or `conv_` and 1 to 64 letters and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Id(String);

impl FromStr for Id {
    type Err = Invalid;

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

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl TryFrom<String> for Id {
    type Error = Invalid;

    fn try_from(id: String) -> Result<Self, Invalid> {
        id.parse()
    }
}

impl From<Uuid> for Id {
    fn from(id: Uuid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Conversation {
    #[schema(value_type = String, examples("conv_123abc"))]
    pub id: Id,
    /// The beginning of its first message.
    pub title: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub message_count: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub id: Uuid,
    pub role: Role,
    pub content: String,
    pub timestamp: Timestamp,
    #[serde(default)]
    pub tool_calls: Vec<ToolCall>,
    /// What waits for the user's confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub pending: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    System,
}

impl Role {
    pub fn parse(field: &str, text: &str) -> Result<Self, Invalid> {
        match text {
            "user" => Ok(Self::User),
            "assistant" => Ok(Self::Assistant),
            "system" => Ok(Self::System),
            _ => Err(Invalid::one(field, "one_of", "must be user, assistant or system")),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// S1's ToolCallRecord: one call of a tool and what came of it.
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
    /// Holds a conversation that was made elsewhere to the rules of those made here.
    pub fn check(self) -> Result<Self, Invalid> {
        Ok(Self { title: title(&self.title), ..self })
    }
}

impl Message {
    /// Holds a message that was made elsewhere to the rules of those made here.
    pub fn check(self) -> Result<Self, Invalid> {
        Ok(Self { content: text::required("content", &self.content, usize::MAX)?, ..self })
    }
}

/// A message for the chat: cleaned, 1 to `max` characters.
pub fn input(field: &str, message: &str, max: usize) -> Result<String, Invalid> {
    text::required(field, message, max)
}

/// A title from the first message: its first line, cut at a word.
pub fn title(first_message: &str) -> String {
    let line = text::clean_line(first_message.trim().lines().next().unwrap_or_default());
    match line.char_indices().nth(MAX_TITLE) {
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
            assert_eq!(good.parse::<Id>().unwrap().to_string(), good);
        }
        for bad in ["", "conv_", "conv_a-b", "conv_é", "CONV_1", "123", &format!("conv_{}", "a".repeat(65))] {
            assert!(bad.parse::<Id>().is_err(), "{bad}");
        }
    }

    #[test]
    fn messages_have_their_own_limits() {
        // CHAT-4
        assert!(input("input", &"é".repeat(MAX_INPUT), MAX_INPUT).is_ok());
        assert!(input("input", &"é".repeat(MAX_INPUT + 1), MAX_INPUT).is_err());
        assert!(input("message", &"é".repeat(MAX_AGENT_MESSAGE + 1), MAX_AGENT_MESSAGE).is_err());
        assert!(Role::parse("role", "tool").is_err());
    }

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        assert_eq!(title("\n add milk\nand bread"), "add milk");
        let long = title(&"word ".repeat(40));
        assert!(long.ends_with("word…") && long.chars().count() <= MAX_TITLE + 1, "{long}");
    }
}
