//! The result of an ended execution, and its files.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ErrorCategory, ExecutionOutcome, ExecutionStatus, PreviousAttempt, ResourceUsage, Transition};

/// A file that an agent produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub name: String,
    pub size: u64,
}

/// The result of an execution (S2's ExecutionResult).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionResult {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
    pub status: ExecutionStatus,
    pub outcome: Option<ExecutionOutcome>,
    pub input: String,
    /// The redacted output. If it was too long, its start and its end with a mark in between.
    pub output: String,
    /// `true` if the middle of the output is missing.
    pub truncated: bool,
    pub error: Option<String>,
    pub error_category: Option<ErrorCategory>,
    /// In milliseconds.
    pub execution_time: i64,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub artifacts: Vec<Artifact>,
    pub previous_retries: Vec<PreviousAttempt>,
    pub resource_usage: Option<ResourceUsage>,
    pub state_transitions: Vec<Transition>,
}
