//! The registry of agents: those of the configuration file, those added over the API, and the built-in ones.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use model::User;
use model::agent::{ASSISTANT_ID, Agent, AgentSource};
use store::agents::AgentRow;

use crate::runner::Runner;

/// An agent with its runner.
#[derive(Clone)]
pub struct AgentEntry {
    pub agent: Arc<Agent>,
    pub source: AgentSource,
    /// `None` unless the agent was added over the API.
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub runner: Arc<dyn Runner>,
}

impl AgentEntry {
    /// Returns true if the user may use the agent. The assistant is available to all users.
    pub fn is_allowed_for(&self, user: &User) -> bool {
        self.agent.id == ASSISTANT_ID || self.agent.is_allowed_for(user)
    }
}

/// All agents that this node knows. For agents of the API it is a copy: the database is the source of truth.
pub(crate) struct Registry {
    /// The runner of command-line agents.
    processes: Arc<dyn Runner>,
    entries: RwLock<AgentEntries>,
}

#[derive(Default)]
struct AgentEntries {
    /// The runner of remote agents.
    remote_runner: Option<Arc<dyn Runner>>,
    built_in: Vec<AgentEntry>,
    file: Vec<Arc<Agent>>,
    api: Vec<AgentRow>,
    /// All agents by id, after the rules for equal ids were applied.
    all: Arc<BTreeMap<String, AgentEntry>>,
}

impl Registry {
    /// Returns a registry with these agents. `processes` is the runner of command-line agents, and of remote agents
    /// until [`Registry::set_remote_runner`] is called. For equal ids, a built-in agent takes precedence.
    pub(crate) fn new(processes: Arc<dyn Runner>, file: Vec<Agent>, built_in: Vec<(Agent, Arc<dyn Runner>)>) -> Self {
        let built_in = built_in.into_iter().map(|(agent, runner)| AgentEntry {
            agent: Arc::new(agent),
            source: AgentSource::BuiltIn,
            created_at: None,
            updated_at: None,
            runner,
        });
        let entries = AgentEntries {
            built_in: built_in.collect(),
            file: file.into_iter().map(Arc::new).collect(),
            ..AgentEntries::default()
        };
        let registry = Self { processes, entries: RwLock::new(entries) };
        registry.update(|_| {});
        registry
    }

    /// Adds an agent that is part of the program.
    pub(crate) fn add_built_in(&self, agent: Agent, runner: Arc<dyn Runner>) {
        let agent = Arc::new(agent);
        let source = AgentSource::BuiltIn;
        let entry = AgentEntry { agent, source, created_at: None, updated_at: None, runner };
        self.update(|entries| entries.built_in.push(entry));
    }

    /// Sets the runner of remote agents.
    pub(crate) fn set_remote_runner(&self, runner: Arc<dyn Runner>) {
        self.update(|entries| entries.remote_runner = Some(runner));
    }

    /// Replaces the agents of the configuration file.
    pub(crate) fn set_file_agents(&self, agents: Vec<Agent>) {
        self.update(|entries| entries.file = agents.into_iter().map(Arc::new).collect());
    }

    /// Replaces the agents of the API.
    pub(crate) fn set_api_agents(&self, agents: Vec<AgentRow>) {
        self.update(|entries| entries.api = agents);
    }

    pub(crate) fn get(&self, id: &str) -> Option<AgentEntry> {
        self.all().get(id).cloned()
    }

    pub(crate) fn all(&self) -> Arc<BTreeMap<String, AgentEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Returns the agents that the user may run.
    pub(crate) fn allowed_for(&self, user: &User) -> Vec<AgentEntry> {
        self.all().values().filter(|entry| entry.is_allowed_for(user)).cloned().collect()
    }

    /// Applies a change and rebuilds the map of all agents. For equal ids, a built-in agent takes precedence over one
    /// of the configuration file, and that over one of the API. A remote agent gets the remote runner, if that is set,
    /// and otherwise the runner of command-line agents.
    fn update(&self, change: impl FnOnce(&mut AgentEntries)) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut entries);
        let runner = |agent: &Agent| match &entries.remote_runner {
            Some(remote) if agent.is_remote() => remote.clone(),
            _ => self.processes.clone(),
        };
        let mut all = BTreeMap::new();
        for row in &entries.api {
            let entry = AgentEntry {
                agent: Arc::new(row.agent.clone()),
                source: AgentSource::Api,
                created_at: Some(row.created_at),
                updated_at: Some(row.updated_at),
                runner: runner(&row.agent),
            };
            all.insert(row.agent.id.clone(), entry);
        }
        // An agent of the configuration file replaces one of the API with the same id.
        for agent in &entries.file {
            let source = AgentSource::File;
            let runner = runner(agent);
            let entry = AgentEntry { agent: agent.clone(), source, created_at: None, updated_at: None, runner };
            all.insert(agent.id.clone(), entry);
        }
        for entry in &entries.built_in {
            all.insert(entry.agent.id.clone(), entry.clone());
        }
        entries.all = Arc::new(all);
    }
}
