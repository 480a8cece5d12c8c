//! The toolbox: the tools that models and MCP clients can call for a user. The assistant and the MCP server share one
//! set of handlers.
//!
//! The user is set by the code that creates the toolbox, never by the arguments of a call. A destructive call is held
//! until the user has confirmed it. The assistant and the MCP server ask for the confirmation in different forms.

mod agents;
pub mod answer;
pub mod call_log;
pub mod catalog;
pub mod held;
pub mod mcp;
pub mod mcp_client;
mod prefetch;
mod reminders;
mod schedules;
mod tasks;
mod update_several;
mod word_arguments;

use std::collections::HashMap;
use std::time::Duration;

use model::audit::{Actor, AuditAction, AuditRecord};
use model::conversation::ConversationId;
use model::permission::Permission;
use model::{Clock, User, UserId, task};
use scheduler::Scheduler;
use serde_json::{Map, Value};
use store::{Conn, Store, Transaction};
use supervisor::Supervisor;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use understand::{FieldReader, UtteranceParser};
use uuid::Uuid;

pub use answer::ToolAnswer;
pub use catalog::{ToolKind, ToolNames, ToolSet, ToolSpec, ToolSpecs};
pub use held::{CallTarget, HeldCall, HeldCalls};
pub use prefetch::PrefetchedCalls;

use answer::ToolFailure;
use mcp_client::{ExternalCaller, ExternalTool, McpServers};

/// The arguments of a tool call, by name.
pub type ToolArguments = Map<String, Value>;

/// The configuration and the dependencies of the tools. The same for all users.
#[derive(Clone, Debug)]
pub struct Tools {
    pub clock: Clock,
    pub limits: task::TaskLimits,
    pub names: ToolNames,
    pub confirmation: ConfirmationPolicy,
    /// The external MCP servers. Their tools are offered in addition to the built-in ones.
    pub servers: Option<McpServers>,
    /// Runs other agents. `None` if agents are not available.
    pub supervisor: Option<Supervisor>,
    /// Runs agents on a schedule. `None` if schedules are not available.
    pub scheduler: Option<Scheduler>,
    /// False if no server runs, so that agents, schedules and reminders wait for one.
    pub has_worker: bool,
    /// Parses times and repetitions that a call gives in words.
    pub parser: UtteranceParser,
}

/// The calls that need a confirmation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfirmationPolicy {
    /// Every deletion, and every change to several tasks.
    #[default]
    Destructive,
    /// Only changes to several tasks.
    Bulk,
    /// None.
    Never,
}

/// Records who decided on a call, and whether the user has confirmed it (SEC-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The user has confirmed exactly this call.
    Given,
    /// The runtime has recognised the call in the user's own message.
    UserRequest,
    /// A language model decided on the call.
    ModelDecision,
    /// A language model decided on the call after it had read text of an external tool or an agent. Such text may
    /// contain instructions of another person.
    AfterForeignText,
}

/// The outcome of a tool call.
#[derive(Clone, Debug)]
pub enum ToolOutcome {
    Done(ToolAnswer),
    /// The call was not carried out. It waits for a confirmation.
    Held(HeldCall),
}

/// The tools of one user.
pub struct Toolbox<'a> {
    tools: &'a Tools,
    user: &'a User,
    specs: ToolSpecs,
    deadline: Option<Instant>,
    /// Gets the progress of external tools, as text.
    progress: Option<UnboundedSender<String>>,
    conversation: Option<ConversationId>,
    access: DataAccess<'a>,
    prefetched: PrefetchedCalls,
    /// The time that the prefetched answers took which were used since [`Toolbox::take_prefetch_time`].
    prefetch_time: Duration,
}

/// The database access of a toolbox.
enum DataAccess<'a> {
    /// Every call uses its own transaction.
    Store(&'a Store),
    /// All calls use one transaction, which the caller commits. Prefetched answers are used.
    Transaction(&'a mut Transaction),
    /// Only calls that change nothing are possible. Their answers are prefetched for a transaction.
    Reader(&'a mut Conn),
}

impl Tools {
    /// Returns the toolbox of a user. Every call uses its own transaction.
    pub fn for_user<'a>(&'a self, user: &'a User, store: &'a Store) -> Toolbox<'a> {
        self.toolbox(user, self.specs(user), DataAccess::Store(store))
    }

    /// Returns the built-in tools of a user in one transaction. Their effects are visible after the commit. External
    /// tools are not included, because a transaction must not wait for another program. The first read-only calls get
    /// the prefetched answers.
    pub fn for_user_in<'a>(
        &'a self,
        user: &'a User,
        tx: &'a mut Transaction,
        prefetched: PrefetchedCalls,
    ) -> Toolbox<'a> {
        let specs = ToolSpecs::BuiltIn(self.built_in(user));
        Toolbox { prefetched, ..self.toolbox(user, specs, DataAccess::Transaction(tx)) }
    }

    /// Returns the built-in tools of a user to prefetch answers for [`Tools::for_user_in`]. Calls of tools that change
    /// data fail.
    pub fn for_user_reading<'a>(&'a self, user: &'a User, reader: &'a mut Conn) -> Toolbox<'a> {
        self.toolbox(user, ToolSpecs::BuiltIn(self.built_in(user)), DataAccess::Reader(reader))
    }

    fn toolbox<'a>(&'a self, user: &'a User, specs: ToolSpecs, access: DataAccess<'a>) -> Toolbox<'a> {
        Toolbox {
            tools: self,
            user,
            specs,
            deadline: None,
            progress: None,
            conversation: None,
            access,
            prefetched: PrefetchedCalls::default(),
            prefetch_time: Duration::ZERO,
        }
    }

    /// Returns true if no external tools are configured, so that no call waits for another program.
    pub fn are_all_built_in(&self) -> bool {
        self.servers.is_none()
    }

    /// Returns the built-in tools that the user may call. Those for tasks are always included. Those for agents are
    /// included if the user may run any agent besides the assistant. Those for schedules also need an administrator and
    /// a scheduler.
    pub fn built_in(&self, user: &User) -> &'static [ToolSpec] {
        let agents = self.supervisor.as_ref().is_some_and(|supervisor| agents::are_available(supervisor, user));
        let schedules = schedules::are_available(self.scheduler.as_ref(), user);
        let set = match (agents, schedules) {
            (false, _) => ToolSet::Tasks,
            (true, false) => ToolSet::Agents,
            (true, true) => ToolSet::Schedules,
        };
        catalog::built_in(self.names, set)
    }

    /// Returns the longest time that a call of an external tool may take without progress, or zero if there are no
    /// external servers.
    pub fn max_call_time(&self) -> Duration {
        self.servers.as_ref().map(McpServers::max_call_timeout).unwrap_or_default()
    }

    /// Returns the built-in tools of the user, and the external tools if any are configured.
    fn specs(&self, user: &User) -> ToolSpecs {
        match &self.servers {
            None => ToolSpecs::BuiltIn(self.built_in(user)),
            Some(servers) => ToolSpecs::All(servers.specs(self.built_in(user))),
        }
    }
}

impl Toolbox<'_> {
    /// Returns the tools that can be called.
    pub fn specs(&self) -> &ToolSpecs {
        &self.specs
    }

    /// Sets the stored conversation of the calls. Executions that a call starts report their end there.
    #[must_use]
    pub fn in_conversation(mut self, id: Option<&ConversationId>) -> Self {
        self.conversation = id.cloned();
        self
    }

    /// Sets the time until which calls of external tools may take.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Returns false if no server runs. Agents, schedules and reminders wait for one then.
    pub fn has_worker(&self) -> bool {
        self.tools.has_worker
    }

    /// Returns the longest time that a call of an external tool may take without progress.
    pub fn max_call_time(&self) -> Duration {
        self.tools.max_call_time()
    }

    /// Sets the receiver of the progress of external tools.
    pub fn set_progress(&mut self, progress: Option<UnboundedSender<String>>) {
        self.progress = progress;
    }

    /// Returns the titles of those of our own tasks that exist, by id. Fails if the database fails.
    pub async fn titles(&mut self, ids: &[Uuid]) -> store::Result<HashMap<Uuid, String>> {
        let owner = self.user.id;
        match &mut self.access {
            _ if ids.is_empty() => Ok(HashMap::new()),
            DataAccess::Store(store) => read_titles(&mut store.owner_reader(owner).await?, owner, ids).await,
            DataAccess::Transaction(tx) => read_titles(tx, owner, ids).await,
            DataAccess::Reader(reader) => read_titles(reader, owner, ids).await,
        }
    }

    /// Exempts an external tool from confirmations for this user, and adds an audit record. Returns false if the tool
    /// does not exist or cannot be exempted. Fails if the database fails.
    pub async fn allow_always(&mut self, name: &str) -> store::Result<bool> {
        let spec = self.specs.iter().find(|spec| spec.name == name);
        let Some(external) = spec.and_then(|spec| spec.external.clone()).filter(|external| external.can_allow()) else {
            return Ok(false);
        };
        let DataAccess::Store(store) = self.access else { return Ok(false) };
        let clock = self.tools.clock.clone();
        let owner = self.user.id;
        let permission = Permission::new(&clock, &*external.tool.server, external.tool.name.as_str());
        let job = async move |tx: &mut Transaction| {
            if store::permissions::add(tx, owner, &permission).await? {
                let actor = Actor::tool_user(owner);
                let record = AuditRecord::new(&clock, actor, AuditAction::PermissionGranted, permission.id);
                store::audit::record(tx, &record.with_after(&permission)).await?;
            }
            Ok(true)
        };
        store.owner_transaction(owner, job).await
    }

    /// Returns true if this toolbox prefetches answers. The calls are repeated in a transaction and logged there.
    pub fn is_prefetching(&self) -> bool {
        matches!(self.access, DataAccess::Reader(_))
    }

    /// Returns the answers that the calls got, for a transaction.
    pub fn into_prefetched(self) -> PrefetchedCalls {
        self.prefetched
    }

    /// Returns how long the prefetched answers took that were used since the last call of this function.
    pub fn take_prefetch_time(&mut self) -> Duration {
        std::mem::take(&mut self.prefetch_time)
    }

    /// Returns the names of the MCP servers that cannot be used at the moment.
    pub fn unavailable_servers(&self) -> Vec<String> {
        self.tools.servers.as_ref().map(McpServers::unavailable).unwrap_or_default()
    }

    /// Carries out one call, or holds it until the user confirms it. With [`Consent::AfterForeignText`] every call that
    /// can change something is held. Times and repetitions in words are replaced by exact values. The arguments `user_id` and `confirmation` of a built-in tool are ignored. A
    /// built-in tool uses the transaction of the toolbox, else its own. A read-only one then needs none, and may get a
    /// prefetched answer. Mistakes of the caller, unknown tools, and all failures of external tools are reported in the
    /// [`ToolAnswer`]. Fails if the database fails, or if a toolbox that only reads is to change data.
    pub async fn call(
        &mut self,
        name: &str,
        mut arguments: ToolArguments,
        consent: Consent,
    ) -> store::Result<ToolOutcome> {
        let specs = self.specs.clone();
        let spec = specs.iter().find(|spec| spec.name == name);
        if let (Some(spec), Some(servers)) = (spec, &self.tools.servers)
            && let Some(external) = &spec.external
        {
            let is_allowed = match self.access {
                DataAccess::Store(store) => is_allowed(store, self.user.id, external, consent).await,
                DataAccess::Transaction(_) | DataAccess::Reader(_) => false,
            };
            let caller = ExternalCaller {
                servers,
                is_allowed,
                progress: self.progress.as_ref(),
                user: self.user,
                confirmation: self.tools.confirmation,
                specs: &specs,
                deadline: self.deadline,
            };
            return Ok(Box::pin(caller.call(spec, external, arguments, consent)).await);
        }
        let Some((spec, Some(kind))) = spec.map(|spec| (spec, spec.kind)) else {
            let failure = ToolFailure::new(answer::UNKNOWN_TOOL, format!("The tool '{name}' does not exist."));
            return Ok(ToolOutcome::Done(ToolAnswer::failed(failure)));
        };
        // The caller must not choose the user or give the confirmation.
        arguments.remove("user_id");
        arguments.remove("confirmation");
        let now = self.tools.clock.now().to_zoned(self.user.time_zone.clone());
        word_arguments::resolve(kind, &mut arguments, &FieldReader::new(now, self.tools.parser));
        if consent == Consent::AfterForeignText && !spec.read_only && !kind.resolves_targets() {
            return Ok(ToolOutcome::Held(HeldCall::opaque(name, arguments)));
        }
        catalog::rename_arguments(self.tools.names, &mut arguments);
        let user = self.user.clone();
        let conversation = self.conversation.clone();
        let call = BuiltInCall { tools: self.tools, user, kind, arguments, consent, conversation };
        // The futures are boxed because they are large.
        match &mut self.access {
            DataAccess::Transaction(tx) if spec.read_only => {
                if let Some((outcome, duration)) = self.prefetched.take(kind, &call.arguments) {
                    self.prefetch_time += duration;
                    return Ok(outcome);
                }
                Box::pin(call.read_only(tx)).await
            }
            DataAccess::Transaction(tx) => Box::pin(call.write(tx)).await,
            DataAccess::Reader(reader) => {
                let arguments = call.arguments.clone();
                let started = std::time::Instant::now();
                let outcome = Box::pin(call.read_only(reader)).await?;
                self.prefetched.add(kind, arguments, outcome.clone(), started.elapsed());
                Ok(outcome)
            }
            DataAccess::Store(store) if spec.read_only => {
                let mut reader = store.owner_reader(call.user.id).await?;
                Box::pin(call.read_only(&mut reader)).await
            }
            DataAccess::Store(store) => {
                let tools = self.tools.clone();
                let BuiltInCall { user, kind, arguments, conversation, .. } = call;
                let owner = user.id;
                let job = async move |tx: &mut Transaction| {
                    let call = BuiltInCall { tools: &tools, user, kind, arguments, consent, conversation };
                    call.write(tx).await
                };
                store.owner_transaction(owner, job).await
            }
        }
    }
}

/// Returns true if the user has exempted this external tool from confirmations. After foreign text, no tool is exempt.
/// Returns false if the database fails, so that the call is held.
async fn is_allowed(store: &Store, owner: UserId, external: &ExternalTool, consent: Consent) -> bool {
    if !external.can_allow() || consent == Consent::AfterForeignText {
        return false;
    }
    let Ok(mut reader) = store.owner_reader(owner).await else { return false };
    let tool = &external.tool;
    store::permissions::is_allowed(&mut reader, owner, &tool.server, &tool.name).await.unwrap_or_default()
}

/// Returns the titles of the tasks of a user that exist, by id.
async fn read_titles(conn: &mut Conn, owner: UserId, ids: &[Uuid]) -> store::Result<HashMap<Uuid, String>> {
    let mut titles = HashMap::with_capacity(ids.len());
    for id in ids {
        match store::tasks::get(conn, owner, *id).await {
            Ok(task) => drop(titles.insert(*id, task.title)),
            Err(store::Error::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(titles)
}

/// Turns a failure of the caller into an answer. Fails only if the database fails.
fn into_outcome(result: Result<ToolOutcome, answer::Error>) -> store::Result<ToolOutcome> {
    match result {
        Ok(outcome) => Ok(outcome),
        Err(answer::Error::Failure(failure)) => Ok(ToolOutcome::Done(ToolAnswer::failed(failure))),
        Err(answer::Error::Store(error)) => Err(error),
    }
}

/// A call of a built-in tool.
struct BuiltInCall<'a> {
    tools: &'a Tools,
    user: User,
    kind: ToolKind,
    arguments: ToolArguments,
    consent: Consent,
    /// The stored conversation in which the call is made.
    conversation: Option<ConversationId>,
}

impl BuiltInCall<'_> {
    /// Carries out a call inside a transaction. Mistakes of the caller are part of the outcome. Fails if the database
    /// fails.
    async fn write(self, tx: &mut Transaction) -> store::Result<ToolOutcome> {
        let result = match self.kind {
            ToolKind::Add => tasks::add(self, tx).await,
            ToolKind::Complete => tasks::complete(self, tx).await,
            ToolKind::Update => tasks::update(self, tx).await,
            ToolKind::Delete => tasks::delete(self, tx).await,
            ToolKind::CompleteSeveral | ToolKind::DeleteSeveral => tasks::change_several(self, tx).await,
            ToolKind::Remind => reminders::schedule(self, tx).await,
            ToolKind::UpdateReminder => reminders::update(self, tx).await,
            ToolKind::CancelReminder => reminders::cancel(self, tx).await,
            ToolKind::SnoozeReminder => reminders::snooze(self, tx).await,
            ToolKind::Undo => tasks::undo(self, tx).await,
            ToolKind::UpdateSeveral => update_several::update(self, tx).await,
            ToolKind::RunAgent => agents::run(self, tx).await,
            ToolKind::CancelExecution => agents::cancel(self, tx).await,
            ToolKind::ScheduleAgent => schedules::create(self, tx).await,
            ToolKind::PauseSchedule => schedules::pause(self, tx).await,
            ToolKind::ResumeSchedule => schedules::resume(self, tx).await,
            ToolKind::UpdateSchedule => schedules::changes::update(self, tx).await,
            ToolKind::DeleteSchedule => schedules::changes::delete(self, tx).await,
            ToolKind::RunSchedule => schedules::changes::run(self, tx).await,
            ToolKind::ListReminders
            | ToolKind::ListExecutions
            | ToolKind::ExplainSchedule
            | ToolKind::List
            | ToolKind::ListAgents
            | ToolKind::GetExecution
            | ToolKind::ListSchedules => {
                return self.read_only(tx).await;
            }
        };
        into_outcome(result)
    }

    /// Carries out a read-only call. Mistakes of the caller are part of the outcome. Fails if the database fails, and
    /// for tools that change data, because the connection may be unable to write.
    async fn read_only(self, conn: &mut Conn) -> store::Result<ToolOutcome> {
        into_outcome(match self.kind {
            ToolKind::List => tasks::list(self, conn).await,
            ToolKind::ListReminders => reminders::list(self, conn).await,
            ToolKind::ListAgents => agents::list(self, conn).await,
            ToolKind::GetExecution => agents::execution(self, conn).await,
            ToolKind::ListSchedules => schedules::list(self, conn).await,
            ToolKind::ListExecutions => agents::executions(self, conn).await,
            ToolKind::ExplainSchedule => schedules::changes::explain(self, conn).await,
            other => return Err(store::Error::Database(format!("the tool {other:?} is not read-only"))),
        })
    }

    /// Takes the arguments and parses them into the type of the handler. A null value counts as absent. Fails if they
    /// do not match the type.
    fn parse_arguments<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, answer::Error> {
        // Most models do not distinguish absent values from null.
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.retain(|_, value| !value.is_null());
        Ok(model::json::from_value(Value::Object(arguments))?)
    }

    /// Returns true if a change to tasks must be held: it is not confirmed, and the policy requires it. `is_bulk` is
    /// true for a change to several tasks. [`ConfirmationPolicy::Destructive`] holds these and every
    /// [`ToolKind::Delete`]. After foreign text, the change is held under every policy.
    fn needs_confirmation(&self, is_bulk: bool) -> bool {
        match self.consent {
            Consent::Given => false,
            Consent::AfterForeignText => true,
            Consent::UserRequest | Consent::ModelDecision => match self.tools.confirmation {
                ConfirmationPolicy::Never => false,
                ConfirmationPolicy::Bulk => is_bulk,
                ConfirmationPolicy::Destructive => is_bulk || self.kind == ToolKind::Delete,
            },
        }
    }

    /// Returns true if a model decided on the call, so that it must be held if `needs_user` is set. After foreign text
    /// the call must be held in any case.
    fn is_unconfirmed_decision(&self, needs_user: bool) -> bool {
        match self.consent {
            Consent::Given | Consent::UserRequest => false,
            Consent::ModelDecision => needs_user,
            Consent::AfterForeignText => true,
        }
    }
}
