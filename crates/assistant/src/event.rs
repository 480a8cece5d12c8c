//! The events of a turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::turn::TurnOutcome;

/// One event of a turn. It is serialized only for the record of an idempotency key. Every interface has its own format.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEvent {
    Thinking {
        content: String,
    },
    ToolCall {
        tool_name: String,
        arguments: Value,
        status: ToolCallStatus,
        /// The stored values in words, after a change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    ResponseDelta {
        delta: String,
        /// The whole reply so far, including `delta`.
        accumulated: String,
    },
    Error {
        error_type: ErrorType,
        message: String,
        /// `false` if the error ended the turn.
        recoverable: bool,
    },
    /// The last event of every turn. The exchange of a stored conversation has been written, unless the outcome reports
    /// a failure.
    Done(#[serde(with = "shared")] Arc<TurnOutcome>),
}

/// The progress of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    InProgress,
    Completed,
    Failed,
}

impl ToolCallStatus {
    /// Returns the name that interfaces use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// The category of an error in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    Timeout,
    ToolExecutionFailed,
    /// An external server, or the database with the tasks.
    McpUnavailable,
    ModelUnavailable,
    /// The turn needs too many tool calls.
    LimitReached,
    Internal,
}

/// Serializes a shared outcome like an owned one.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::turn::TurnOutcome;

    pub(super) fn serialize<S: Serializer>(outcome: &Arc<TurnOutcome>, serializer: S) -> Result<S::Ok, S::Error> {
        TurnOutcome::serialize(outcome, serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<TurnOutcome>, D::Error> {
        TurnOutcome::deserialize(deserializer).map(Arc::new)
    }
}

impl ErrorType {
    /// Returns the name that interfaces and logs use, such as `tool_execution_failed`. It equals the serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::ToolExecutionFailed => "tool_execution_failed",
            Self::McpUnavailable => "mcp_unavailable",
            Self::ModelUnavailable => "model_unavailable",
            Self::LimitReached => "limit_reached",
            Self::Internal => "internal",
        }
    }
}
