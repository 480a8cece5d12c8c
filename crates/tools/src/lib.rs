//! The toolbox: what an agent can do for a user with tasks and reminders. One set of handlers behind every door: the
//! assistant's own loop, and MCP.
//!
//! The user comes from whoever opened the door, never from the arguments of a call. What destroys is held until somebody
//! has consented; each door asks in its own way.

mod agents;
pub mod answer;
pub mod catalog;
pub mod foreign;
pub mod held;
pub mod mcp;
pub mod record;
mod reminders;
mod schedules;
mod tasks;

use model::conversation::Id;
use model::{Clock, User, task};
use scheduler::Scheduler;
use serde_json::{Map, Value};
use store::{Conn, Store};
use supervisor::Supervisor;
use tokio::time::Instant;

pub use answer::Answer;
pub use catalog::{Names, Offer, Spec, Specs, Tool};
pub use held::{Act, Held, Target};

use answer::Failure;
use foreign::{Caller, Servers};

/// The arguments of a call, by name.
pub type Arguments = Map<String, Value>;

/// What holds for every user.
#[derive(Clone, Debug)]
pub struct Tools {
    pub clock: Clock,
    pub limits: task::Limits,
    pub names: Names,
    pub confirm: Confirm,
    /// MCP servers of others, whose tools are offered beside our own.
    pub servers: Option<Servers>,
    /// What runs other agents; `None`: there are none.
    pub supervisor: Option<Supervisor>,
    /// What runs them at certain times; `None`: nothing does.
    pub scheduler: Option<Scheduler>,
}

/// What waits for a confirmation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confirm {
    /// Every deletion, and every change to several tasks at once.
    #[default]
    Destructive,
    /// Only what touches several tasks at once.
    Bulk,
    Never,
}

/// Whether the user has agreed to exactly this act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    Missing,
    Given,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub enum Outcome {
    Done(Answer),
    /// Nothing was changed: this waits for the user's consent.
    Held(Act),
}

/// The tools in the hand of one user.
pub struct Toolbox<'a> {
    tools: &'a Tools,
    user: &'a User,
    specs: Specs,
    until: Option<Instant>,
    conversation: Option<Id>,
    hold: Hold<'a>,
}

/// What the tools work on.
enum Hold<'a> {
    /// Every call is a transaction of its own.
    Store(&'a Store),
    /// All calls are part of one that the caller commits.
    Transaction(&'a mut Conn),
}

impl Tools {
    pub fn for_user<'a>(&'a self, user: &'a User, store: &'a Store) -> Toolbox<'a> {
        let specs = self.specs(user);
        Toolbox { tools: self, user, specs, until: None, conversation: None, hold: Hold::Store(store) }
    }

    /// Nothing that these tools do is there before the transaction is committed. Those of others are not among them: no
    /// transaction waits for another program.
    pub fn within<'a>(&'a self, user: &'a User, conn: &'a mut Conn) -> Toolbox<'a> {
        let specs = Specs::Ours(self.ours(user));
        Toolbox { tools: self, user, specs, until: None, conversation: None, hold: Hold::Transaction(conn) }
    }

    /// Whether every tool is our own, so that nothing has to be waited for.
    pub fn are_ours(&self) -> bool {
        self.servers.is_none()
    }

    /// Our own tools that this user has.
    pub fn ours(&self, user: &User) -> &'static [Spec] {
        let agents = self.supervisor.as_ref().is_some_and(|supervisor| agents::are_there(supervisor, user));
        let schedules = schedules::are_there(self.scheduler.as_ref(), user);
        let offer = match (agents, schedules) {
            (false, _) => Offer::Tasks,
            (true, false) => Offer::Agents,
            (true, true) => Offer::Schedules,
        };
        catalog::ours(self.names, offer)
    }

    /// To be told when what these tools did is there for all to see: somebody may have to act upon it earlier than
    /// they thought.
    pub fn committed(&self, used: &[Tool]) {
        if used.iter().any(|tool| matches!(tool, Tool::ScheduleAgent | Tool::ResumeSchedule))
            && let Some(scheduler) = &self.scheduler
        {
            scheduler.wake();
        }
    }

    fn specs(&self, user: &User) -> Specs {
        match &self.servers {
            None => Specs::Ours(self.ours(user)),
            Some(servers) => Specs::All(servers.specs(self.ours(user))),
        }
    }
}

impl Toolbox<'_> {
    /// What there is to call.
    pub fn specs(&self) -> &Specs {
        &self.specs
    }

    /// What is begun here and ends later is told in this conversation, which is kept.
    #[must_use]
    pub fn in_conversation(mut self, id: Option<&Id>) -> Self {
        self.conversation = id.cloned();
        self
    }

    /// Nobody waits for an answer that comes later than this.
    pub fn end_by(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// The MCP servers whose tools cannot be used at the moment.
    pub fn missing(&self) -> Vec<String> {
        self.tools.servers.as_ref().map(Servers::missing).unwrap_or_default()
    }

    /// Carries one call out. What the caller did wrong is an [`Answer`]; an error is the database's.
    pub async fn call(&mut self, name: &str, mut arguments: Arguments, consent: Consent) -> store::Result<Outcome> {
        let specs = self.specs.clone();
        let spec = specs.iter().find(|spec| spec.name == name);
        if let (Some(spec), Some(servers)) = (spec, &self.tools.servers)
            && let Some(foreign) = &spec.foreign
        {
            let caller =
                Caller { servers, user: self.user, confirm: self.tools.confirm, specs: &specs, until: self.until };
            return Ok(Box::pin(caller.call(spec, foreign, arguments, consent)).await);
        }
        let Some((spec, Some(tool))) = spec.map(|spec| (spec, spec.tool)) else {
            let failure = Failure::new(answer::UNKNOWN_TOOL, format!("There is no tool named '{name}'."));
            return Ok(Outcome::Done(Answer::failed(failure)));
        };
        // Whose tasks these are, and whether the user agreed, is not for the caller to say.
        arguments.remove("user_id");
        arguments.remove("confirmation");
        catalog::rename(self.tools.names, &mut arguments);
        let (user, conversation) = (self.user.clone(), self.conversation.clone());
        let call = Call { tools: self.tools, user, tool, arguments, consent, conversation };
        // Put aside: this has room for every tool there is, and whoever waits for it is moved about with all of that.
        match &mut self.hold {
            Hold::Transaction(conn) => Box::pin(call.carry_out(conn)).await,
            Hold::Store(store) if spec.read_only => Box::pin(call.carry_out(&mut store.reader().await?)).await,
            Hold::Store(store) => {
                let tools = self.tools.clone();
                let Call { user, tool, arguments, conversation, .. } = call;
                let outcome = store
                    .write(move |conn| {
                        Box::pin(async move {
                            let call = Call { tools: &tools, user, tool, arguments, consent, conversation };
                            call.carry_out(conn).await
                        })
                    })
                    .await;
                self.tools.committed(&[tool]);
                outcome
            }
        }
    }
}

/// One call on its way to its handler.
struct Call<'a> {
    tools: &'a Tools,
    user: User,
    tool: Tool,
    arguments: Arguments,
    consent: Consent,
    /// Where it is made, if that is kept.
    conversation: Option<Id>,
}

impl Call<'_> {
    async fn carry_out(self, conn: &mut Conn) -> store::Result<Outcome> {
        let result = match self.tool {
            Tool::Add => tasks::add(self, conn).await,
            Tool::List => tasks::list(self, conn).await,
            Tool::Complete => tasks::complete(self, conn).await,
            Tool::Update => tasks::update(self, conn).await,
            Tool::Delete => tasks::delete(self, conn).await,
            Tool::CompleteSeveral | Tool::DeleteSeveral => tasks::several(self, conn).await,
            Tool::Remind => reminders::schedule(self, conn).await,
            Tool::Undo => tasks::undo(self, conn).await,
            Tool::ListAgents => agents::list(self, conn).await,
            Tool::RunAgent => agents::run(self, conn).await,
            Tool::GetExecution => agents::execution(self, conn).await,
            Tool::CancelExecution => agents::cancel(self, conn).await,
            Tool::ScheduleAgent => schedules::create(self, conn).await,
            Tool::ListSchedules => schedules::list(self, conn).await,
            Tool::PauseSchedule => schedules::pause(self, conn).await,
            Tool::ResumeSchedule => schedules::resume(self, conn).await,
        };
        match result {
            Ok(outcome) => Ok(outcome),
            Err(answer::Error::Failure(failure)) => Ok(Outcome::Done(Answer::failed(failure))),
            Err(answer::Error::Store(error)) => Err(error),
        }
    }

    /// The arguments as the handler wants them.
    fn read<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, answer::Error> {
        // Absent and null are the same to most models.
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.retain(|_, value| !value.is_null());
        Ok(model::json::from_value(Value::Object(arguments))?)
    }

    fn must_ask(&self, several: bool) -> bool {
        self.consent == Consent::Missing
            && match self.tools.confirm {
                Confirm::Never => false,
                Confirm::Bulk => several,
                Confirm::Destructive => several || self.tool == Tool::Delete,
            }
    }
}
