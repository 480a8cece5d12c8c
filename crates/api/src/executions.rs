//! `/api/executions`, and the body of `POST /api/agents/{id}/executions`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::agent::Seconds;
pub use model::execution::{
    Artifact, Attempt, ExecutionRecord as Execution, ExecutionResult, ResourceUsage, StateName, Status, Transition,
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
        #[serde(deserialize_with = "crate::page::id")]
        schedule_id: Uuid,
        #[serde(deserialize_with = "crate::page::id")]
        session_id: Uuid,
        /// A state, or `active`: waiting or at work.
        state: String,
        /// Beginning or end of an id.
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
    /// For administrators, if the agent allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// For administrators, if the agent allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envs: Option<BTreeMap<String, String>>,
    /// In seconds; no longer than the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// `true`: responds when the execution has ended. By default an execution is not waited for, and a message in a session
    /// is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    pub wait: Option<bool>,
}

/// An execution that was waited for, with its output.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Done)]
pub struct EndedExecution {
    #[serde(flatten)]
    pub execution: Execution,
    pub status: Status,
    pub output: String,
}

/// Selects events of an execution.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReadEvents {
    /// `false`: only the events so far.
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
    /// Instead of a text: so much output is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_bytes: Option<u64>,
    pub at: Timestamp,
}
