//! Runs agents: starts them, records their output, and ends them with every process that they started.
//!
//! Every execution takes the same path, whichever interface requested it: [`Supervisor::prepare`] → the row in the
//! queue → a slot → [`Runner::run`] → the end.
//! The database is the source of truth. The process can be killed at any moment and resumes from the database.

mod admission;
mod api_grants;
mod attempts;
mod capacity;
pub mod check;
pub mod clip;
pub mod command;
mod delivered;
mod dispatcher;
pub mod failure;
mod follow;
pub mod guardian;
mod hints;
mod lease;
mod lifecycle;
mod notifiers;
mod output_buffer;
pub mod presets;
mod process;
mod recorder;
mod recovery;
mod registry;
mod report_writer;
pub mod rpc;
mod runner;
mod running;
mod sessions;
mod spool;
mod stop_all;
mod submit;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::agent::Agent;
use model::execution::{Execution, ExecutionStatus};
use model::stop_state::StopState;
use model::{Clock, Invalid, UserId};
use store::executions::OwnerScope;
use store::{Store, Transaction};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

pub use admission::Admission;
pub use api_grants::ServerAddress;
pub use clip::{ClippedText, HeadTailBuffer};
pub use failure::RunFailure;
pub use follow::{ChangeNotifier, ExecutionFollower, FollowEvent};
pub use output_buffer::StreamName;
pub use process::network_policy;
pub use recorder::{FinishedRun, RunRecorder, StopReason};
pub use registry::AgentEntry;
pub use runner::{AgentRun, Requester, RunRequest, RunResult, Runner};
pub use sessions::NewSession;
pub use submit::{RunDraft, RunOrigin, Submission};

use dispatcher::Dispatcher;
use notifiers::ExecutionNotifiers;
use process::Processes;
use registry::Registry;
use running::Running;
use spool::Spool;

/// Returns the value of an environment variable, if it is set.
pub type VariableLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The parts of a [`Supervisor`].
pub struct SupervisorOptions {
    pub store: Store,
    pub clock: Clock,
    /// The directory of the spool, of scratch directories and of artifacts.
    pub data_dir: PathBuf,
    pub variables: VariableLookup,
    pub admission: Admission,
    /// The agents of the configuration file.
    pub agents: Vec<Agent>,
    /// Agents that are part of the program, each with its runner.
    pub built_in: Vec<(Agent, Arc<dyn Runner>)>,
    /// Starts the guardian of agent processes.
    pub guardian: guardian::GuardianOptions,
}

impl SupervisorOptions {
    /// Returns options without agents and without limits of the machine, with an empty environment and the default
    /// guardian.
    pub fn new(store: Store, clock: Clock, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            store,
            clock,
            data_dir: data_dir.into(),
            variables: Arc::new(|_| None),
            admission: Admission::default(),
            agents: Vec::new(),
            built_in: Vec::new(),
            guardian: guardian::GuardianOptions::default(),
        }
    }
}

/// Runs executions on this node. Cloning is cheap: all clones share one state.
#[derive(Clone)]
pub struct Supervisor(Arc<SupervisorShared>);

struct SupervisorShared {
    store: Store,
    clock: Clock,
    /// Identifies this process among the nodes. New at every start.
    node: Uuid,
    variables: VariableLookup,
    registry: Registry,
    processes: Processes,
    /// `None` if the spool cannot be opened.
    spool: Option<Spool>,
    dispatcher: Dispatcher,
    running: Running,
    notifiers: ExecutionNotifiers,
    /// Claims of this node that do not run, with the number of rounds of maintenance that have found them.
    unknown_claims: Mutex<HashMap<Uuid, u32>>,
    /// The state that was read last. `None` unless everything is stopped.
    stop_state: Mutex<Option<StopState>>,
    /// Cancelled by [`Supervisor::stop`].
    stopping: CancellationToken,
    /// All background tasks, runs and sessions.
    tasks: TaskTracker,
}

/// Why a request for an execution or a session was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    #[error("there is no such agent")]
    AgentNotFound,
    #[error("the agent '{0}' is disabled")]
    AgentDisabled(String),
    #[error("{0}")]
    Forbidden(String),
    #[error("the input must have at most {limit} bytes")]
    InputTooLarge { limit: u64 },
    #[error(transparent)]
    Invalid(Invalid),
    /// This node does not run agents.
    #[error("{0}")]
    NotOnThisNode(&'static str),
    /// The request could not be stored.
    #[error("{0}")]
    Internal(String),
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("node", &self.0.node).finish_non_exhaustive()
    }
}

impl Supervisor {
    /// Returns a supervisor that does not run anything yet. [`Supervisor::start`] starts it. If the spool cannot be
    /// opened, this is logged, and requests with secrets are rejected.
    pub fn new(options: SupervisorOptions) -> Self {
        let node = options.clock.id();
        let spool = match Spool::open(&options.data_dir, options.clock.id()) {
            Ok(spool) => Some(spool),
            Err(error) => {
                tracing::error!(event = "spool_unusable", error = %error);
                None
            }
        };
        let processes = Processes::new(options.guardian, options.data_dir, options.variables.clone());
        Self(Arc::new(SupervisorShared {
            registry: Registry::new(Arc::new(processes.clone()), options.agents, options.built_in),
            processes,
            store: options.store,
            clock: options.clock,
            node,
            variables: options.variables,
            spool,
            dispatcher: Dispatcher::new(options.admission),
            running: Running::default(),
            notifiers: ExecutionNotifiers::default(),
            unknown_claims: Mutex::default(),
            stop_state: Mutex::default(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Returns the directory for data that is not stored in the database.
    pub fn data_dir(&self) -> &std::path::Path {
        self.0.processes.data_dir()
    }

    /// Adds an agent that is part of the program, with its runner.
    pub fn add_built_in(&self, agent: Agent, runner: Arc<dyn Runner>) {
        self.registry().add_built_in(agent, runner);
    }

    /// Sets the runner of remote agents.
    pub fn set_remote_runner(&self, runner: Arc<dyn Runner>) {
        self.registry().set_remote_runner(runner);
    }

    /// Returns the current token for requests to a remote agent, if one is configured. Fails if the variable or
    /// the file with the token cannot be read.
    pub fn token_for(&self, agent: &Agent) -> Result<Option<String>, RunFailure> {
        check::remote_token(agent, &|name| (self.0.variables)(name))
    }

    /// Returns all agents that this node knows.
    pub fn agents(&self) -> Vec<AgentEntry> {
        self.registry().all().values().cloned().collect()
    }

    /// Returns the agents that the user may run.
    pub fn agents_for(&self, user: &model::User) -> Vec<AgentEntry> {
        self.registry().allowed_for(user)
    }

    /// Sets the files and directories that agents do not see: the configuration and the secrets that it refers to. The
    /// data directory is always hidden.
    pub fn set_hidden_paths(&self, paths: Vec<PathBuf>) {
        self.0.processes.set_hidden(paths);
    }

    /// Sets the address of the server that agents with `api_access` may use.
    pub fn set_server_address(&self, address: ServerAddress) {
        self.0.processes.api_grants().set_server(address);
    }

    /// Returns the owner of a run of this node that may use the server with this token. `run` is the id of an execution or
    /// of a session.
    pub fn api_owner(&self, run: Uuid, token: &str) -> Option<UserId> {
        self.0.processes.api_grants().owner(run, token)
    }

    /// Returns the protections of agents on this system. Starts the guardian if necessary. Fails if it cannot be started.
    pub async fn protections(&self) -> Result<guardian::Protections, RunFailure> {
        self.0.processes.protections().await
    }

    /// Replaces the agents of the configuration file and the limits of this node.
    pub fn reload(&self, agents: Vec<Agent>, admission: Admission) {
        self.registry().set_file_agents(agents);
        self.0.dispatcher.capacity.set_admission(admission);
        self.wake_all();
    }

    /// Reads the agents that were added over the API from the database. Fails if the database fails.
    pub async fn refresh_agents(&self) -> store::Result<()> {
        self.read_agents().await?;
        self.wake_all();
        Ok(())
    }

    async fn read_agents(&self) -> store::Result<()> {
        let rows = store::agents::all(&mut self.0.store.reader().await?).await?;
        self.registry().set_api_agents(rows);
        Ok(())
    }

    /// Returns the agent that the draft and its preset describe. Fails if the draft is invalid, or if its program, its
    /// working directory or its token is missing on this machine.
    pub fn check_agent(&self, draft: model::agent::AgentDraft) -> Result<Agent, Invalid> {
        let variables = |name: &str| (self.0.variables)(name);
        let agent = check::validate_agent(draft, &variables)?;
        check::check_available(&agent, &variables)?;
        Ok(agent)
    }

    /// Returns the agent with this id, without a check of permissions.
    pub fn agent(&self, id: &str) -> Option<AgentEntry> {
        self.registry().get(id)
    }

    /// Returns the largest `max_input_size` of all agents, in bytes.
    pub fn max_input_size(&self) -> u64 {
        self.registry().all().values().map(|entry| entry.agent.max_input_size).max().unwrap_or_default()
    }

    /// Returns the current value of `env:NAME` or `file:PATH`, or `None` if it is empty or missing.
    pub fn resolve_secret(&self, reference: &str) -> Option<String> {
        resolve_reference(reference, &|name| (self.0.variables)(name)).ok()
    }

    /// Makes the dispatcher read the queue of this agent.
    pub(crate) fn wake(&self, agent_id: &str) {
        self.0.dispatcher.wake([agent_id.to_owned()]);
    }

    /// Cancels an execution and returns it. Ends it if it is queued. Otherwise records the request for its node and
    /// returns the execution, which still runs. After the commit, stops it if it runs on this node, and wakes its
    /// followers. Fails with [`store::Error::NotFound`] if it is not in this scope, and with
    /// [`store::Error::AlreadyEnded`] if it has ended.
    pub async fn cancel(&self, tx: &mut Transaction, scope: OwnerScope, id: Uuid) -> store::Result<Execution> {
        let execution = store::executions::cancel(tx, scope, id, self.0.clock.now()).await?;
        let cancelled = execution.clone();
        let supervisor = self.clone();
        tx.after_commit(move || {
            if let Some(recorder) = supervisor.recorder_of(cancelled.id) {
                recorder.request_cancel(None);
            }
            supervisor.publish_change(&cancelled);
        });
        Ok(execution)
    }

    /// Returns the path of an artifact of an execution on this machine. `name` must come from the result of the
    /// execution: it is not checked here.
    pub fn artifact_path(&self, id: Uuid, name: &str) -> PathBuf {
        self.0.processes.artifacts_dir(id).join(name)
    }

    /// Returns the reason why no execution starts on this node at the moment, if there is one.
    pub fn admission_refusal(&self) -> Option<String> {
        self.0.dispatcher.capacity.refusal()
    }

    /// Returns a future that completes when this node learns of the next end of an execution. It is only a hint: an
    /// execution on another node may end without a notification here.
    pub fn next_end(&self) -> tokio::sync::futures::Notified<'_> {
        self.0.running.ended.notified()
    }

    /// Yields the number of executions that have ended on this node, for each status.
    pub fn ended_counts(&self) -> impl Iterator<Item = (ExecutionStatus, u64)> {
        self.0.running.ended_by_status()
    }

    /// Returns the number of executions that run on this node.
    pub fn running_count(&self) -> usize {
        self.0.running.count()
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Returns the clock.
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

    /// Returns the recorder of an execution that runs on this node.
    fn recorder_of(&self, id: Uuid) -> Option<RunRecorder> {
        self.0.running.get(id)
    }

    /// Makes the dispatcher read all queues.
    fn wake_all(&self) {
        self.0.dispatcher.wake(self.registry().all().keys().cloned());
    }

    pub(crate) fn spool_name(&self) -> String {
        self.spool().map(|spool| spool.name().to_owned()).unwrap_or_default()
    }

    /// Wakes the followers of an execution. If it has ended, also counts and logs the end, removes its request from the
    /// spool, and wakes the tasks that wait for an end.
    pub(crate) fn publish_change(&self, execution: &Execution) {
        self.0.notifiers.notify(execution.id);
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

    /// Returns the values that the agent's variables and its token refer to. Missing values are left out.
    pub(crate) fn known_secrets(&self, agent: &Agent) -> Vec<String> {
        let tokens = agent.card_auth.iter().map(|auth| &auth.token);
        agent.envs.values().chain(tokens).flat_map(|value| referenced_values(value, &self.0.variables)).collect()
    }
}

/// Returns the value of `env:NAME` or `file:PATH` without surrounding spaces. Fails with a reason if the variable is
/// not set, the file cannot be read, the value is empty, or the reference has another form. The reason names the
/// reference and never contains the value.
fn resolve_reference(reference: &str, variables: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let value = match reference.split_once(':') {
        Some(("env", name)) => variables(name).ok_or_else(|| format!("the variable {name}, which is not set")),
        Some(("file", path)) => {
            std::fs::read_to_string(path).map_err(|error| format!("the file {path}, which cannot be read: {error}"))
        }
        _ => Err("an unsupported source: it must be env:NAME or file:PATH".to_owned()),
    };
    match value?.trim() {
        "" => Err(format!("{reference}, which is empty")),
        value => Ok(value.to_owned()),
    }
}

/// Returns the values of all references in a text: `env:NAME`, `file:PATH`, or any number of `${NAME}`. The content of
/// a file is returned without surrounding spaces. Spaces in a name or a path belong to it. Missing variables and
/// unreadable files are left out. The search ends at a `${` that is not closed. A text without references gives an
/// empty list.
fn referenced_values(value: &str, variables: &VariableLookup) -> Vec<String> {
    if let Some(name) = value.strip_prefix("env:") {
        return variables(name).into_iter().collect();
    }
    if let Some(path) = value.strip_prefix("file:") {
        return std::fs::read_to_string(path).map(|text| text.trim().to_owned()).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut rest = value;
    while let Some((_, after)) = rest.split_once("${") {
        let Some((name, remaining)) = after.split_once('}') else { break };
        found.extend(variables(name));
        rest = remaining;
    }
    found
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
