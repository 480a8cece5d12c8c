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
use store::{Conn, Store, Transaction};
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
    Transaction(&'a mut Transaction),
}

impl Tools {
    pub fn for_user<'a>(&'a self, user: &'a User, store: &'a Store) -> Toolbox<'a> {
        let specs = self.specs(user);
        Toolbox { tools: self, user, specs, until: None, conversation: None, hold: Hold::Store(store) }
    }

    /// Nothing that these tools do is there before the transaction is committed. Those of others are not among them: no
    /// transaction waits for another program.
    pub fn within<'a>(&'a self, user: &'a User, tx: &'a mut Transaction) -> Toolbox<'a> {
        let specs = Specs::Ours(self.ours(user));
        Toolbox { tools: self, user, specs, until: None, conversation: None, hold: Hold::Transaction(tx) }
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
        let user = self.user.clone();
        let conversation = self.conversation.clone();
        let call = Call { tools: self.tools, user, tool, arguments, consent, conversation };
        // The futures are boxed because they are large.
        match &mut self.hold {
            Hold::Transaction(tx) => Box::pin(call.write(tx)).await,
            Hold::Store(store) if spec.read_only => Box::pin(call.read_only(&mut store.reader().await?)).await,
            Hold::Store(store) => {
                let tools = self.tools.clone();
                let Call { user, tool, arguments, conversation, .. } = call;
                let job = async move |tx: &mut Transaction| {
                    let call = Call { tools: &tools, user, tool, arguments, consent, conversation };
                    call.write(tx).await
                };
                store.transaction(job).await
            }
        }
    }
}

fn outcome(result: Result<Outcome, answer::Error>) -> store::Result<Outcome> {
    match result {
        Ok(outcome) => Ok(outcome),
        Err(answer::Error::Failure(failure)) => Ok(Outcome::Done(Answer::failed(failure))),
        Err(answer::Error::Store(error)) => Err(error),
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
    /// Carries out a call inside a transaction.
    async fn write(self, tx: &mut Transaction) -> store::Result<Outcome> {
        let result = match self.tool {
            Tool::Add => tasks::add(self, tx).await,
            Tool::Complete => tasks::complete(self, tx).await,
            Tool::Update => tasks::update(self, tx).await,
            Tool::Delete => tasks::delete(self, tx).await,
            Tool::CompleteSeveral | Tool::DeleteSeveral => tasks::several(self, tx).await,
            Tool::Remind => reminders::schedule(self, tx).await,
            Tool::Undo => tasks::undo(self, tx).await,
            Tool::RunAgent => agents::run(self, tx).await,
            Tool::CancelExecution => agents::cancel(self, tx).await,
            Tool::ScheduleAgent => schedules::create(self, tx).await,
            Tool::PauseSchedule => schedules::pause(self, tx).await,
            Tool::ResumeSchedule => schedules::resume(self, tx).await,
            Tool::List | Tool::ListAgents | Tool::GetExecution | Tool::ListSchedules => {
                return self.read_only(tx).await;
            }
        };
        outcome(result)
    }

    /// Carries out a call that changes nothing. Fails for any other: its connection may be unable to write.
    async fn read_only(self, conn: &mut Conn) -> store::Result<Outcome> {
        outcome(match self.tool {
            Tool::List => tasks::list(self, conn).await,
            Tool::ListAgents => agents::list(self, conn).await,
            Tool::GetExecution => agents::execution(self, conn).await,
            Tool::ListSchedules => schedules::list(self, conn).await,
            other => return Err(store::Error::Database(format!("the tool {other:?} is not read-only"))),
        })
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
