//! Runs the programs of others: any command-line agent, started, watched, and ended with everything it began.
//!
//! One path for every execution, whoever asks: [`Supervisor::prepare`] → the row → a place → [`Runner::run`] → the end.
//! The table is the truth; everything here can be killed at any moment and goes on from there.

mod admission;
mod capacity;
pub mod check;
pub mod clip;
pub mod command;
mod desk;
mod dispatcher;
pub mod failure;
mod follow;
pub mod guardian;
mod hints;
mod lease;
mod life;
pub mod presets;
mod process;
mod recovery;
mod registry;
mod report_writer;
pub mod rpc;
mod runner;
mod running;
mod sessions;
mod spool;
mod streams;
mod submit;
mod wake;
mod work;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::agent::Agent;
use model::execution::{Execution, Status};
use model::{Clock, Invalid};
use store::executions::Whose;
use store::{Store, Transaction};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use admission::Admission;
pub use clip::{Clip, Clipped};
pub use desk::{Account, Desk, Stop};
pub use failure::Failure;
pub use follow::{Bell, Follower, Told};
pub use registry::Entry;
pub use runner::{Asker, Ended, Request, Run, Runner};
pub use sessions::NewSession;
pub use streams::Name as Stream;
pub use submit::{Draft, Origin, Submission};

use dispatcher::Dispatcher;
use process::Processes;
use registry::Registry;
use running::Running;
use spool::Spool;
use wake::Wakes;

/// Looks a variable of the environment up.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What the supervisor is made of.
pub struct Options {
    pub store: Store,
    pub clock: Clock,
    /// Where requests with secrets wait, and runs have their scratch directories.
    pub data_dir: PathBuf,
    pub variables: Variables,
    pub admission: Admission,
    /// Those of the configuration file.
    pub agents: Vec<Agent>,
    /// Agents that are part of the program, and what carries them out.
    pub built_in: Vec<(Agent, Arc<dyn Runner>)>,
    /// What becomes the guardian of the rest.
    pub guardian: guardian::Options,
}

impl Options {
    /// Without agents and without an environment; whatever else is wanted is said beside it.
    pub fn new(store: Store, clock: Clock, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            store,
            clock,
            data_dir: data_dir.into(),
            variables: Arc::new(|_| None),
            admission: Admission::default(),
            agents: Vec::new(),
            built_in: Vec::new(),
            guardian: guardian::Options::default(),
        }
    }
}

/// A cheap handle.
#[derive(Clone)]
pub struct Supervisor(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    node: Uuid,
    variables: Variables,
    registry: Registry,
    processes: Processes,
    spool: Option<Spool>,
    dispatcher: Dispatcher,
    running: Running,
    wakes: Wakes,
    stopping: CancellationToken,
    tasks: TaskTracker,
}

/// Why an execution was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no such agent")]
    NoAgent,
    #[error("the agent '{0}' is disabled")]
    Disabled(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("the input must have at most {limit} bytes")]
    TooLarge { limit: u64 },
    #[error(transparent)]
    Invalid(Invalid),
    /// This node runs nothing.
    #[error("{0}")]
    NotHere(&'static str),
    #[error("{0}")]
    Broken(String),
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("node", &self.0.node).finish_non_exhaustive()
    }
}

impl Supervisor {
    pub fn new(options: Options) -> Self {
        let node = options.clock.id();
        let spool = match Spool::open(&options.data_dir, options.clock.id()) {
            Ok(spool) => Some(spool),
            Err(error) => {
                tracing::error!(event = "spool_unusable", error = %error);
                None
            }
        };
        let processes = Processes::new(options.guardian, options.data_dir, options.variables.clone());
        Self(Arc::new(Inner {
            registry: Registry::new(Arc::new(processes.clone()), options.agents, options.built_in),
            processes,
            store: options.store,
            clock: options.clock,
            node,
            variables: options.variables,
            spool,
            dispatcher: Dispatcher::new(options.admission),
            running: Running::default(),
            wakes: Wakes::default(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Where this node keeps what is not in the database.
    pub fn data_dir(&self) -> &std::path::Path {
        self.0.processes.data_dir()
    }

    /// Adds an agent that is part of the program, and what carries it out.
    pub fn build_in(&self, agent: Agent, runner: Arc<dyn Runner>) {
        self.registry().build_in(agent, runner);
    }

    /// What carries out the agents that have a card elsewhere.
    pub fn set_elsewhere(&self, runner: Arc<dyn Runner>) {
        self.registry().set_elsewhere(runner);
    }

    /// The token that is shown to an agent elsewhere, if any, as it is at the moment.
    pub fn token_for(&self, agent: &Agent) -> Result<Option<String>, Failure> {
        check::token(agent, &|name| (self.0.variables)(name))
    }

    /// Every agent there is.
    pub fn agents(&self) -> Vec<Entry> {
        self.registry().all().values().cloned().collect()
    }

    /// The agents that the user may run.
    pub fn agents_for(&self, user: &model::User) -> Vec<Entry> {
        self.registry().of(user)
    }

    /// The agents of the configuration file and the limits of the machine, when they are read again.
    pub fn reload(&self, agents: Vec<Agent>, admission: Admission) {
        self.registry().set_file(agents);
        self.0.dispatcher.capacity.set_admission(admission);
        self.wake_all();
    }

    /// Reads the agents of the API again.
    pub async fn refresh(&self) -> store::Result<()> {
        self.read_agents().await?;
        self.wake_all();
        Ok(())
    }

    async fn read_agents(&self) -> store::Result<()> {
        let kept = store::agents::all(&mut self.0.store.reader().await?).await?;
        self.registry().set_api(kept);
        Ok(())
    }

    /// What somebody wrote down, as an agent: with its preset, and with a program and a directory that are there.
    pub fn check_agent(&self, draft: model::agent::Draft) -> Result<Agent, Invalid> {
        let variables = |name: &str| (self.0.variables)(name);
        let agent = check::written(draft, &variables)?;
        check::here(&agent, &variables)?;
        Ok(agent)
    }

    /// The agent under this id, whoever asks.
    pub fn agent(&self, id: &str) -> Option<Entry> {
        self.registry().get(id)
    }

    /// The largest input that any agent takes, in bytes.
    pub fn largest_input(&self) -> u64 {
        self.registry().all().values().map(|entry| entry.agent.max_input_size).max().unwrap_or_default()
    }

    /// What `env:NAME` or `file:PATH` stands for at the moment; nothing where that is empty or not there.
    pub fn secret(&self, reference: &str) -> Option<String> {
        referred(reference, &|name| (self.0.variables)(name)).ok()
    }

    /// Has the dispatcher look at the queue of this agent.
    pub(crate) fn wake(&self, agent_id: &str) {
        self.0.dispatcher.wake([agent_id.to_owned()]);
    }

    /// Cancels an execution: ends it if it waits, and stops it after the commit if it runs on this node. Fails with
    /// [`store::Error::Ended`] if it has ended.
    pub async fn cancel(&self, tx: &mut Transaction, whose: Whose, id: Uuid) -> store::Result<Execution> {
        let execution = store::executions::cancel(tx, whose, id, self.0.clock.now()).await?;
        let cancelled = execution.clone();
        let supervisor = self.clone();
        tx.after_commit(move || {
            if let Some(desk) = supervisor.desk(cancelled.id) {
                desk.stop(Stop::Cancelled);
            }
            supervisor.after(&cancelled);
        });
        Ok(execution)
    }

    /// Where a file is that a run left on this machine. Only what its result names may be asked for.
    pub fn artifact(&self, id: Uuid, name: &str) -> PathBuf {
        self.0.processes.artifacts(id).join(name)
    }

    /// Why nothing starts at the moment, if so.
    pub fn refusal(&self) -> Option<String> {
        self.0.dispatcher.capacity.refusal()
    }

    /// Waits for the next end of an execution that this node hears of. Only a hint: one may end elsewhere.
    pub fn next_end(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.running.ended.notified()
    }

    /// How many have ended on this node, by how.
    pub fn ended(&self) -> impl Iterator<Item = (Status, u64)> {
        self.0.running.ended_by_status()
    }

    /// How many run on this node.
    pub fn running(&self) -> usize {
        self.0.running.count()
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub(crate) fn spool(&self) -> Option<&Spool> {
        self.0.spool.as_ref()
    }

    /// Removes the request of an execution from the spool, if it is there.
    pub(crate) fn remove_spooled(&self, id: Uuid) {
        if let Some(spool) = self.spool() {
            spool.remove(id);
        }
    }

    fn desk(&self, id: Uuid) -> Option<Desk> {
        self.0.running.get(id)
    }

    /// Has the dispatcher look at all queues.
    fn wake_all(&self) {
        self.0.dispatcher.wake(self.registry().all().keys().cloned());
    }

    pub(crate) fn spool_name(&self) -> String {
        self.spool().map(|spool| spool.name().to_owned()).unwrap_or_default()
    }

    /// Tells everyone who may wait for this that it has changed.
    pub(crate) fn after(&self, execution: &Execution) {
        self.0.wakes.wake(execution.id);
        if let Some(end) = execution.ended() {
            let status = end.status;
            self.0.running.count_end(status);
            let id = execution.id;
            let agent_id = &execution.agent_id;
            let duration_ms = end.execution_time();
            tracing::info!(event = "execution_ended", execution_id = %id, agent_id, status = %status, duration_ms);
            self.remove_spooled(execution.id);
            self.0.running.ended.notify_waiters();
        }
    }

    /// The values behind the references in an agent's variables, as far as they are there.
    pub(crate) fn known_secrets(&self, agent: &Agent) -> Vec<String> {
        let shown = agent.card_auth.iter().map(|auth| &auth.token);
        agent.envs.values().chain(shown).flat_map(|value| references(value, &self.0.variables)).collect()
    }
}

/// What a reference stands for, or why it stands for nothing; never what is there.
fn referred(reference: &str, variables: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let value = match reference.split_once(':') {
        Some(("env", name)) => variables(name).ok_or_else(|| format!("the variable {name}, which is not set")),
        Some(("file", path)) => {
            std::fs::read_to_string(path).map_err(|error| format!("the file {path}, which cannot be read: {error}"))
        }
        _ => Err("nothing: it must be env:NAME or file:PATH".to_owned()),
    };
    match value?.trim() {
        "" => Err(format!("{reference}, which is empty")),
        value => Ok(value.to_owned()),
    }
}

/// What a text refers to.
fn references(value: &str, variables: &Variables) -> Vec<String> {
    if let Some(name) = value.strip_prefix("env:") {
        return variables(name).into_iter().collect();
    }
    if let Some(path) = value.strip_prefix("file:") {
        return std::fs::read_to_string(path).map(|text| text.trim().to_owned()).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((_, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        found.extend(variables(name));
        rest = behind;
    }
    found
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
