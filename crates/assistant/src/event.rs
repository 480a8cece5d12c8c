//! What happens during a run, as those who watch it are told (S0's StreamEvent; `done` is the server's to send).

use serde::Serialize;
use serde_json::Value;

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Event {
    Thinking { content: String },
    ToolCall { tool_name: String, arguments: Value, status: Status },
    ResponseDelta { delta: String, accumulated: String },
    Error { error_type: ErrorType, message: String, recoverable: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    InProgress,
    Completed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    Timeout,
    ToolExecutionFailed,
    McpUnavailable,
    ModelUnavailable,
    LimitReached,
    Internal,
}

impl Event {
    /// S0's name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Thinking { .. } => "thinking",
            Self::ToolCall { .. } => "tool_call",
            Self::ResponseDelta { .. } => "response_delta",
            Self::Error { .. } => "error",
        }
    }
}

impl ErrorType {
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
