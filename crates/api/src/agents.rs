//! `/api/agents`.

use jiff::Timestamp;
use model::agent::{self, AccessType, InputPattern, Mode, OutputPattern, Seconds};
pub use model::agent::{Draft as AgentDraft, Source};
use model::execution::StateName;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// An agent with all of its configuration. Administrators see this.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AgentConfiguration {
    #[serde(flatten)]
    pub agent: agent::Agent,
    pub source: Source,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

/// An agent as users see it who are not administrators.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AgentSummary {
    pub id: String,
    pub name: String,
    pub description: String,
    pub agent_type: String,
    pub mode: Mode,
    pub input_pattern: InputPattern,
    pub output_pattern: OutputPattern,
    pub access_type: AccessType,
    pub max_concurrent_executions: u32,
    pub timeout: Seconds,
    pub max_input_size: u64,
    pub enabled: bool,
    pub source: Source,
}

/// An agent, as far as the user may see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Agent {
    Configuration(Box<AgentConfiguration>),
    Summary(AgentSummary),
}

impl Agent {
    pub fn id(&self) -> &str {
        match self {
            Self::Configuration(whole) => &whole.agent.id,
            Self::Summary(summary) => &summary.id,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Configuration(whole) => &whole.agent.name,
            Self::Summary(summary) => &summary.name,
        }
    }

    pub fn source(&self) -> Source {
        match self {
            Self::Configuration(whole) => whole.source,
            Self::Summary(summary) => summary.source,
        }
    }

    /// Returns the configuration, which only administrators see.
    pub fn configuration(&self) -> Option<&agent::Agent> {
        match self {
            Self::Configuration(whole) => Some(&whole.agent),
            Self::Summary(_) => None,
        }
    }

    /// Returns what every user may see.
    pub fn summary(&self) -> AgentSummary {
        match self {
            Self::Configuration(whole) => AgentSummary::new(&whole.agent, whole.source),
            Self::Summary(summary) => summary.clone(),
        }
    }
}

/// Not derived: a flattened struct cannot have maps with numbers as keys.
impl<'de> Deserialize<'de> for AgentConfiguration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Origin {
            source: Source,
            created_at: Option<Timestamp>,
            updated_at: Option<Timestamp>,
        }

        let fields = Value::deserialize(deserializer)?;
        let Origin { source, created_at, updated_at } = Origin::deserialize(&fields).map_err(D::Error::custom)?;
        let agent = serde_json::from_value(fields).map_err(D::Error::custom)?;
        Ok(Self { agent, source, created_at, updated_at })
    }
}

impl<'de> Deserialize<'de> for Agent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Value::deserialize(deserializer)?;
        // Only the configuration names a program.
        let agent = match fields.get("executable_path") {
            Some(_) => serde_json::from_value(fields).map(Self::Configuration),
            None => serde_json::from_value(fields).map(Self::Summary),
        };
        agent.map_err(D::Error::custom)
    }
}

impl AgentSummary {
    pub fn new(agent: &agent::Agent, source: Source) -> Self {
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
    /// The reason why nothing new starts at the moment, if there is one.
    pub held_back: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourcePoolMetrics {
    pub limit: u32,
    pub running: i64,
    pub waiting: i64,
    /// From 0 to 1.
    pub utilisation: f64,
}

/// Selects when the status is returned.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AwaitStatus {
    /// `idle`: as soon as the agent has nothing running and nothing waiting.
    #[param(value_type = Option<String>)]
    pub wait: Option<Await>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Await {
    Idle,
}
