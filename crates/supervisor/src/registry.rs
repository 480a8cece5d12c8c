//! The agents there are: those of the configuration file, those added over the API, and those built in.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use model::User;
use model::agent::{ASSISTANT, Agent, Source};
use store::agents::Kept;

use crate::runner::Runner;

/// An agent and what carries it out.
#[derive(Clone)]
pub struct Entry {
    pub agent: Arc<Agent>,
    pub source: Source,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub runner: Arc<dyn Runner>,
}

impl Entry {
    /// Everyone may talk to the assistant; the rest is for those whom the agent names.
    pub fn is_for(&self, user: &User) -> bool {
        self.agent.id == ASSISTANT || self.agent.lets(user)
    }
}

/// What is known at the moment. The table is the truth for those of the API; this is a copy that is refreshed.
pub(crate) struct Registry {
    processes: Arc<dyn Runner>,
    entries: RwLock<Entries>,
}

#[derive(Default)]
struct Entries {
    /// For agents elsewhere.
    elsewhere: Option<Arc<dyn Runner>>,
    built_in: Vec<Entry>,
    file: Vec<Arc<Agent>>,
    api: Vec<Kept>,
    all: Arc<BTreeMap<String, Entry>>,
}

impl Registry {
    pub(crate) fn new(processes: Arc<dyn Runner>, file: Vec<Agent>, built_in: Vec<(Agent, Arc<dyn Runner>)>) -> Self {
        let built_in = built_in.into_iter().map(|(agent, runner)| Entry {
            agent: Arc::new(agent),
            source: Source::BuiltIn,
            created_at: None,
            updated_at: None,
            runner,
        });
        let entries = Entries {
            built_in: built_in.collect(),
            file: file.into_iter().map(Arc::new).collect(),
            ..Entries::default()
        };
        let registry = Self { processes, entries: RwLock::new(entries) };
        registry.change(|_| {});
        registry
    }

    /// One more that is part of the program.
    pub(crate) fn build_in(&self, agent: Agent, runner: Arc<dyn Runner>) {
        let agent = Arc::new(agent);
        let source = Source::BuiltIn;
        let entry = Entry { agent, source, created_at: None, updated_at: None, runner };
        self.change(|entries| entries.built_in.push(entry));
    }

    /// What carries out agents that run elsewhere.
    pub(crate) fn set_elsewhere(&self, runner: Arc<dyn Runner>) {
        self.change(|entries| entries.elsewhere = Some(runner));
    }

    /// Those of the configuration, when it is read again.
    pub(crate) fn set_file(&self, agents: Vec<Agent>) {
        self.change(|entries| entries.file = agents.into_iter().map(Arc::new).collect());
    }

    /// Those of the API, as the table has them.
    pub(crate) fn set_api(&self, agents: Vec<Kept>) {
        self.change(|entries| entries.api = agents);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Entry> {
        self.all().get(id).cloned()
    }

    pub(crate) fn all(&self) -> Arc<BTreeMap<String, Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Those that the user may run.
    pub(crate) fn of(&self, user: &User) -> Vec<Entry> {
        self.all().values().filter(|entry| entry.is_for(user)).cloned().collect()
    }

    fn change(&self, change: impl FnOnce(&mut Entries)) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut entries);
        let runner = |agent: &Agent| match &entries.elsewhere {
            Some(elsewhere) if agent.is_elsewhere() => elsewhere.clone(),
            _ => self.processes.clone(),
        };
        let mut all = BTreeMap::new();
        for kept in &entries.api {
            let entry = Entry {
                agent: Arc::new(kept.agent.clone()),
                source: Source::Api,
                created_at: Some(kept.created_at),
                updated_at: Some(kept.updated_at),
                runner: runner(&kept.agent),
            };
            all.insert(kept.agent.id.clone(), entry);
        }
        // What the operator wrote down wins over what came over the API under the same id.
        for agent in &entries.file {
            let source = Source::File;
            let runner = runner(agent);
            let entry = Entry { agent: agent.clone(), source, created_at: None, updated_at: None, runner };
            all.insert(agent.id.clone(), entry);
        }
        for entry in &entries.built_in {
            all.insert(entry.agent.id.clone(), entry.clone());
        }
        entries.all = Arc::new(all);
    }
}
