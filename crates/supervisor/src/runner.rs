//! The interface between the supervisor and the code that runs agents: command-line programs, the built-in assistant,
//! remote agents.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::agent::Agent;
use model::execution::{Artifact, ExecutionOutcome, ResourceUsage};
use model::{Invalid, User, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::RunFailure;
use crate::recorder::RunRecorder;

/// Runs attempts of executions, each to its end.
pub trait Runner: Send + Sync + 'static {
    /// Checks a request before it is enqueued. Fails with the violations if the agent cannot handle it.
    fn check(&self, _: &RunRequest) -> Result<(), Invalid> {
        Ok(())
    }

    /// Returns true if the agent may answer with a [`RichOutput::Message`](model::output::RichOutput::Message).
    /// Followers then wait a moment for it.
    fn answers_by_message(&self) -> bool {
        false
    }

    /// Runs one attempt and returns its result. When the future completes, everything that the attempt started has
    /// ended. It completes soon after [`RunRecorder::stop_requested`] does.
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult>;
}

/// One attempt of an execution, with everything that the runner needs.
#[derive(Clone, Debug)]
pub struct AgentRun {
    pub id: Uuid,
    pub owner: UserId,
    pub agent: Arc<Agent>,
    pub request: RunRequest,
    /// The number of the attempt. The first one is 1.
    pub attempt: i64,
    pub started_at: Timestamp,
}

/// The input of an execution. Stored as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRequest {
    pub input: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub envs: BTreeMap<String, String>,
    /// The user that a built-in agent acts for.
    #[serde(rename = "asker", default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
    /// The original A2A message, for agents that can use more than the text in `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// Properties of the requesting user besides the id, at the time of the request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requester {
    pub scopes: Vec<String>,
    pub time_zone: Option<String>,
}

impl From<&User> for Requester {
    fn from(user: &User) -> Self {
        Self { scopes: user.scopes.clone(), time_zone: user.time_zone.iana_name().map(str::to_owned) }
    }
}

impl Requester {
    /// Returns the user with this id. `time_zone` applies if the requester has no time zone or an unknown one.
    pub fn into_user(self, id: UserId, time_zone: TimeZone) -> User {
        let known = self.time_zone.and_then(|name| TimeZone::get(&name).ok());
        User { id, scopes: self.scopes, time_zone: known.unwrap_or(time_zone) }
    }
}

/// The result of one attempt, as a runner returns it.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// `None` if the attempt succeeded.
    pub failure: Option<RunFailure>,
    /// The attempt ended because it was requested to stop.
    pub stopped: bool,
    pub exit_code: Option<i64>,
    pub usage: Option<ResourceUsage>,
    pub artifacts: Vec<Artifact>,
    /// Details of the end, for example that the agent asks for input.
    pub outcome: Option<ExecutionOutcome>,
}

impl From<RunFailure> for RunResult {
    fn from(failure: RunFailure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}
