//! `/api/executions`, and the body of `POST /api/agents/{id}/executions`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::agent::Seconds;
pub use model::execution::{
    Artifact, ExecutionRecord as Execution, ExecutionResult, ExecutionStatus, PreviousAttempt, ResourceUsage,
    StateName, Transition,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

page! {
    /// Executions.
    Executions { executions: Execution }
}

list! {
    /// Selects executions.
    ListExecutions -> Executions {
        agent_id: String,
        #[serde(deserialize_with = "crate::page::deserialize_uuid")]
        schedule_id: Uuid,
        #[serde(deserialize_with = "crate::page::deserialize_uuid")]
        session_id: Uuid,
        /// A state, or `active` for all executions that have not ended.
        state: String,
        /// The start or end of an id.
        #[serde(rename = "ref")]
        #[param(rename = "ref")]
        reference: String,
    }
}

/// A request to run an agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = ExecutionDraft)]
pub struct ExecutionDraft {
    pub input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
    /// Only for operators, and only if the agent allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Only for operators, and only if the agent allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envs: Option<BTreeMap<String, String>>,
    /// In seconds, at most the timeout of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// `true`: responds when the execution has ended. The default is `false` for an execution and `true` for a message
    /// in a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    pub wait: Option<bool>,
}

/// An ended execution with its output.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Done)]
pub struct EndedExecution {
    #[serde(flatten)]
    pub execution: Execution,
    pub status: ExecutionStatus,
    pub output: String,
}

/// Selects events of an execution.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventParams {
    /// `false`: returns only the events so far.
    pub follow: Option<bool>,
}

/// The data of a `state` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateEvent {
    pub state: String,
    pub at: Timestamp,
}

/// The data of an `output` event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputEvent {
    /// `stdout`, `stderr` or `file`.
    pub stream: String,
    pub text: String,
    /// The size of output that is not available, instead of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_bytes: Option<u64>,
    pub at: Timestamp,
}
