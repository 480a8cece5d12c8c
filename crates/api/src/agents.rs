//! The types of `/api/agents`: agents, their load, and the parameters of requests. Operators see the whole
//! configuration of an agent, other users a summary.

use jiff::Timestamp;
use model::agent::{self, AccessType, AgentMode, InputPattern, OutputPattern, Seconds};
pub use model::agent::{AgentDraft, AgentSource};
use model::execution::StateName;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// An agent with its whole configuration, for operators.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentConfiguration {
    #[serde(flatten)]
    pub agent: agent::Agent,
    pub source: AgentSource,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

/// The part of an agent that every user may see.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentSummary {
    pub id: String,
    pub name: String,
    pub description: String,
    pub agent_type: String,
    pub mode: AgentMode,
    pub input_pattern: InputPattern,
    pub output_pattern: OutputPattern,
    pub access_type: AccessType,
    pub max_concurrent_executions: u32,
    pub timeout: Seconds,
    pub max_input_size: u64,
    pub enabled: bool,
    pub source: AgentSource,
}

/// An agent, with the details that the user may see.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Agent {
    Configuration(Box<AgentConfiguration>),
    Summary(AgentSummary),
}

impl Agent {
    /// Returns the id of the agent.
    pub fn id(&self) -> &str {
        match self {
            Self::Configuration(whole) => &whole.agent.id,
            Self::Summary(summary) => &summary.id,
        }
    }

    /// Returns the name of the agent.
    pub fn name(&self) -> &str {
        match self {
            Self::Configuration(whole) => &whole.agent.name,
            Self::Summary(summary) => &summary.name,
        }
    }

    /// Returns the origin of the configuration.
    pub fn source(&self) -> AgentSource {
        match self {
            Self::Configuration(whole) => whole.source,
            Self::Summary(summary) => summary.source,
        }
    }

    /// Returns the configuration, `None` if the user is not an operator.
    pub fn configuration(&self) -> Option<&agent::Agent> {
        match self {
            Self::Configuration(whole) => Some(&whole.agent),
            Self::Summary(_) => None,
        }
    }

    /// Returns the part that every user may see.
    pub fn summary(&self) -> AgentSummary {
        match self {
            Self::Configuration(whole) => AgentSummary::new(&whole.agent, whole.source),
            Self::Summary(summary) => summary.clone(),
        }
    }
}

/// Not derived, because a flattened struct cannot have maps with numeric keys.
impl<'de> Deserialize<'de> for AgentConfiguration {
    /// Deserializes the configuration and its origin from one object. Missing times are `None`. Unknown fields of the
    /// object itself are ignored; in some nested objects, such as `session` and `limits`, they are errors. Fails if
    /// `source` or a required field of the agent is missing or invalid.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct AgentOrigin {
            source: AgentSource,
            created_at: Option<Timestamp>,
            updated_at: Option<Timestamp>,
        }

        let fields = Value::deserialize(deserializer)?;
        let AgentOrigin { source, created_at, updated_at } =
            AgentOrigin::deserialize(&fields).map_err(D::Error::custom)?;
        let agent = serde_json::from_value(fields).map_err(D::Error::custom)?;
        Ok(Self { agent, source, created_at, updated_at })
    }
}

impl<'de> Deserialize<'de> for Agent {
    /// Deserializes a configuration if `executable_path` is present, even as `null`, otherwise a summary. Fails if a
    /// required field of that form is missing or invalid.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Value::deserialize(deserializer)?;
        // Only a configuration has this field.
        let agent = match fields.get("executable_path") {
            Some(_) => serde_json::from_value(fields).map(Self::Configuration),
            None => serde_json::from_value(fields).map(Self::Summary),
        };
        agent.map_err(D::Error::custom)
    }
}

impl AgentSummary {
    /// Returns the part of an agent that every user may see. `source` is the origin of its configuration, which the
    /// agent itself does not contain.
    pub fn new(agent: &agent::Agent, source: AgentSource) -> Self {
        Self {
            id: agent.id.clone(),
            name: agent.name.clone(),
            description: agent.description.clone(),
            agent_type: agent.agent_type.clone(),
            mode: agent.mode,
            input_pattern: agent.input_pattern,
            output_pattern: agent.output_pattern,
            access_type: agent.access_type,
            max_concurrent_executions: agent.max_concurrent_executions,
            timeout: agent.timeout,
            max_input_size: agent.max_input_size,
            enabled: agent.enabled,
            source,
        }
    }
}

page! {
    /// Agents. There is only one page.
    Agents { agents: Agent }
}

list! {
    /// Selects agents. All of them are on one page, so `limit` and `cursor` have no effect.
    ListAgents -> Agents {}
}

/// The load of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentStatus {
    pub agent_id: String,
    pub enabled: bool,
    pub state: StateName,
    pub running: i64,
    pub queue_length: i64,
    pub pool: ResourcePoolMetrics,
    /// The reason why no execution can start at the moment, if there is one.
    pub held_back: Option<String>,
    /// Absent for agents without a local program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<AgentIsolation>,
}

/// The protections of the server and of other runs from an agent on this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentIsolation {
    /// The protections in force, with their mechanisms.
    pub enforced: Vec<String>,
    /// The protections that this system does not enforce.
    pub not_enforced: Vec<String>,
}

/// The use of the execution slots of an agent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourcePoolMetrics {
    pub limit: u32,
    pub running: i64,
    pub waiting: i64,
    /// From 0 to 1.
    pub utilisation: f64,
}

/// Selects the time of the response.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentStatusParams {
    /// `idle`: responds as soon as the agent has no running and no queued execution.
    #[param(value_type = Option<String>)]
    pub wait: Option<AwaitedState>,
}

/// The state of an agent to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwaitedState {
    Idle,
}
