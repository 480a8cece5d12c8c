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

use std::time::Duration;

use model::conversation::ConversationId;
use model::{Clock, User, task};
use scheduler::Scheduler;
use serde_json::{Map, Value};
use store::{Conn, Store, Transaction};
use supervisor::Supervisor;
use tokio::time::Instant;

pub use answer::ToolAnswer;
pub use catalog::{ToolKind, ToolNames, ToolSet, ToolSpec, ToolSpecs};
pub use held::{CallTarget, HeldCall, HeldCalls};
pub use prefetch::PrefetchedCalls;

use answer::ToolFailure;
use mcp_client::{ExternalCaller, McpServers};

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
    /// can change something is held. The arguments `user_id` and `confirmation` of a built-in tool are ignored. A
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
            let caller = ExternalCaller {
                servers,
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
