//! Whatever can carry an execution out: a process of a command-line agent, the built-in assistant, an agent elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::agent::Agent;
use model::execution::{Artifact, Outcome, ResourceUsage};
use model::{Invalid, User, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Failure;
use crate::desk::Desk;

/// Carries executions out, each to its end.
pub trait Runner: Send + Sync + 'static {
    /// Whether this can be asked for. What is wrong with it is named before it waits in the queue.
    fn check(&self, _: &Request) -> Result<(), Invalid> {
        Ok(())
    }

    /// Whether it may say [`Said::Message`](model::said::Said::Message): whoever follows waits a moment for that then.
    fn answers_by_message(&self) -> bool {
        false
    }

    /// Runs one. Everything it began has ended when this does, and it ends soon after [`Desk::stopped`] does.
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended>;
}

/// One run, with everything that it is given.
#[derive(Clone, Debug)]
pub struct Run {
    pub id: Uuid,
    pub owner: UserId,
    pub agent: Arc<Agent>,
    pub request: Request,
    /// Which try this is, from 1.
    pub attempt: i64,
    pub started: Timestamp,
}

/// What somebody asks an agent for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub input: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub envs: BTreeMap<String, String>,
    /// For agents that act as the user themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<Asker>,
    /// The message of another agent, as A2A writes it, for those who understand more than the text in `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Value>,
}

/// What is known about a user beyond the id, at the time of asking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asker {
    pub scopes: Vec<String>,
    pub time_zone: Option<String>,
}

impl From<&User> for Asker {
    fn from(user: &User) -> Self {
        Self { scopes: user.scopes.clone(), time_zone: user.time_zone.iana_name().map(str::to_owned) }
    }
}

impl Asker {
    /// The user again, who is in `time_zone` where nothing else is known.
    pub fn user(self, id: UserId, time_zone: TimeZone) -> User {
        let known = self.time_zone.and_then(|name| TimeZone::get(&name).ok());
        User { id, scopes: self.scopes, time_zone: known.unwrap_or(time_zone) }
    }
}

/// How a run ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Nothing where all is well.
    pub failure: Option<Failure>,
    /// Whether it ended because it was asked to.
    pub stopped: bool,
    pub exit_code: Option<i64>,
    pub usage: Option<ResourceUsage>,
    pub artifacts: Vec<Artifact>,
    /// What this end means beyond that.
    pub outcome: Option<Outcome>,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}
