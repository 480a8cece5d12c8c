//! The result of an execution that has ended, and the files that it left.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Attempt, Category, Outcome, ResourceUsage, Status, Transition};

/// A file that an agent left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub name: String,
    pub size: u64,
}

/// What came of an execution (S2's ExecutionResult).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExecutionResult {
    pub id: Uuid,
    pub agent_id: String,
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
    pub status: Status,
    pub outcome: Option<Outcome>,
    pub input: String,
    /// Without what must not be kept; where it was too long, its beginning and its end with a mark between.
    pub output: String,
    /// Whether the middle of the output is missing.
    pub truncated: bool,
    pub error: Option<String>,
    pub error_category: Option<Category>,
    /// In milliseconds.
    pub execution_time: i64,
    pub process_id: Option<i64>,
    pub exit_code: Option<i64>,
    pub artifacts: Vec<Artifact>,
    pub previous_retries: Vec<Attempt>,
    pub resource_usage: Option<ResourceUsage>,
    pub state_transitions: Vec<Transition>,
}
