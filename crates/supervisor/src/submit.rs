//! Checks a request for a run and puts it into the queue of its agent.
//!
//! [`Supervisor::prepare`] does everything that needs no transaction; [`Supervisor::enqueue`] does the rest, including what
//! follows the commit or the rollback.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use model::agent::{Agent, Override, Seconds, Source};
use model::execution::{Execution, FollowUp};
use model::invalid::Checks;
use model::said::{self, Part};
use model::{Invalid, User};
use serde_json::{Map, Value};
use store::Transaction;
use store::executions::New;
use uuid::Uuid;

use crate::registry::Entry;
use crate::runner::{Asker, Request};
use crate::spool::SpooledRequest;
use crate::{Refused, Supervisor, desk};

/// A request for a run.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub input: String,
    pub parameters: Option<Map<String, Value>>,
    /// For administrators, if the agent allows it.
    pub working_directory: Option<String>,
    /// For administrators, if the agent allows it.
    pub envs: Option<BTreeMap<String, String>>,
    /// No longer than the agent's own.
    pub timeout: Option<Seconds>,
    /// The message of another agent in the form of A2A; its text is the input.
    pub message: Option<Value>,
}

/// On whose behalf a run is asked for, besides the user.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    /// Who acts upon its end.
    pub follow_up: Option<FollowUp>,
    /// More for the record.
    pub context: Map<String, Value>,
}

/// A checked request that [`Supervisor::enqueue`] puts into the queue. Its secrets are on disk; dropping it removes them.
#[derive(Debug)]
pub struct Submission {
    pub new: New,
    spooled: Option<SpooledRequest>,
}

impl Submission {
    /// Returns the id of the execution to be.
    pub fn id(&self) -> Uuid {
        self.new.execution.id
    }
}

impl Supervisor {
    /// The agent under this id, where the user may run it.
    pub fn agent_for(&self, user: &User, id: &str) -> Result<Entry, Refused> {
        // What is not theirs is not there.
        self.registry().get(id).filter(|entry| entry.is_for(user)).ok_or(Refused::NoAgent)
    }

    /// Checks a request and makes it ready for [`Supervisor::enqueue`].
    pub fn prepare(&self, user: &User, agent_id: &str, draft: Draft, origin: Origin) -> Result<Submission, Refused> {
        let entry = self.agent_for(user, agent_id)?;
        self.prepare_with(&entry, user, draft, origin)
    }

    /// Like [`Supervisor::prepare`], for a caller that has already been authorized for this agent.
    pub fn prepare_with(
        &self,
        entry: &Entry,
        user: &User,
        draft: Draft,
        origin: Origin,
    ) -> Result<Submission, Refused> {
        let agent = &entry.agent;
        if !agent.enabled {
            return Err(Refused::Disabled(agent.id.clone()));
        }
        self.check(user, agent, &draft)?;
        let timeout = draft.timeout.map_or(agent.timeout, |wanted| wanted.min(agent.timeout));
        let request = Request {
            input: draft.input,
            parameters: draft.parameters.unwrap_or_default(),
            working_directory: draft.working_directory.map(PathBuf::from),
            envs: draft.envs.unwrap_or_default(),
            asker: (entry.source == Source::BuiltIn).then(|| Asker::from(user)),
            message: draft.message,
        };
        entry.runner.check(&request)?;
        let now = self.clock().now();
        let id = self.clock().id();
        let redactor = desk::redactor(agent.redacts()).with_known(self.known_secrets(agent));
        let input = redactor.text(&request.input).replace('\0', "\u{fffd}");
        let mut parameters = Value::Object(request.parameters.clone());
        redactor.json(&mut parameters);
        let mut message = request.message.clone();
        message.iter_mut().for_each(|message| said::redact_message(&redactor, message));
        let clean = input == request.input
            && parameters == Value::Object(request.parameters.clone())
            && message == request.message;
        // What an administrator sets for one run is as good as secret.
        let spooled = !clean || !request.envs.is_empty();
        let mut context = origin.context;
        if parameters.as_object().is_some_and(|parameters| !parameters.is_empty()) {
            context.insert("parameters".to_owned(), parameters);
        }
        if let Some(directory) = &request.working_directory {
            context.insert("working_directory".to_owned(), directory.to_string_lossy().into());
        }
        if spooled && self.is_resting() {
            let message = "what has secrets in it is kept on the machine that runs it, and this node runs nothing: ask one \
                           that does, or leave the secrets to the agent's envs";
            return Err(Refused::NotHere(message));
        }
        let (request, spooled) = if spooled {
            let spool =
                self.spool().ok_or_else(|| Refused::Broken("there is no place for requests with secrets".into()))?;
            let file = spool.put(id, &request);
            let file = file.map_err(|error| Refused::Broken(format!("failed to keep the request: {error}")))?;
            (String::new(), Some(file))
        } else {
            let json = serde_json::to_string(&request).map_err(|error| Refused::Broken(error.to_string()))?;
            (json, None)
        };
        let mut execution = Execution::new(id, agent.id.clone(), timeout, now);
        execution.schedule_id = origin.schedule_id;
        execution.session_id = origin.session_id;
        execution.input = input;
        execution.max_retries = i64::from(agent.max_retries);
        execution.context = context;
        let new = New {
            execution,
            owner: user.id,
            request,
            spool: spooled.as_ref().map(|spooled| spooled.spool().to_owned()),
            follow_up: origin.follow_up,
            message,
            task: None,
            wait_until: later(now, agent.queue_timeout.duration()),
            places: i64::from(agent.places()),
            depth: i64::from(agent.queue_depth),
        };
        Ok(Submission { new, spooled })
    }

    /// Puts an execution into the queue of its agent or session, and claims it for this node if it can start at once.
    ///
    /// After the commit the execution starts, or the dispatcher or the session is woken. On a rollback the secrets of the
    /// request are removed from the disk. Fails with [`store::Error::QueueFull`] if the queue is full, and for a task of
    /// A2A with [`store::Error::Ended`] or [`store::Error::NotEnded`] if the task does not wait for an answer.
    pub async fn enqueue(&self, tx: &mut Transaction, submission: Submission) -> store::Result<Uuid> {
        let Submission { new, spooled } = submission;
        let claimed = self.submit_and_claim(tx, &new).await?;
        if let Some(spooled) = spooled {
            let id = spooled.keep();
            let supervisor = self.clone();
            tx.on_rollback(move || supervisor.remove_spooled(id));
        }
        let supervisor = self.clone();
        let session = new.execution.session_id;
        let agent_id = new.execution.agent_id;
        tx.after_commit(move || match session {
            Some(session) => supervisor.wake_session(session),
            None if claimed.is_empty() => supervisor.wake(&agent_id),
            None => supervisor.start_claimed(claimed),
        });
        Ok(new.execution.id)
    }

    fn check(&self, user: &User, agent: &Agent, draft: &Draft) -> Result<(), Refused> {
        let mut checks = Checks::default();
        let parts = draft.message.as_ref().map_or(Ok(Vec::new()), said::parts_of);
        let parts =
            parts.map_err(|error| Invalid::one("message.parts", "parts", format!("cannot be read: {error}")))?;
        let size = draft.input.len().max(parts.iter().map(Part::size).sum());
        if size as u64 > agent.max_input_size {
            return Err(Refused::TooLarge { limit: agent.max_input_size });
        }
        for name in draft.parameters.iter().flat_map(Map::keys) {
            if name.is_empty() || name.contains("}}") {
                checks.fail("parameters", "name", "must have names that can stand between {{ and }}");
            }
        }
        if draft.timeout.is_some_and(Seconds::is_zero) {
            checks.fail("timeout", "range", "must be greater than 0");
        }
        for (field, given, consent) in [
            ("working_directory", draft.working_directory.is_some(), Override::WorkingDirectory),
            ("envs", draft.envs.as_ref().is_some_and(|envs| !envs.is_empty()), Override::Envs),
        ] {
            if given && !user.is_admin() {
                return Err(Refused::Forbidden(format!("{field} needs the scope adjutant:admin")));
            }
            if given && !agent.overrides.contains(&consent) {
                let message = format!("the agent does not let {field} be changed for a run (its `overrides`)");
                return Err(Refused::Forbidden(message));
            }
        }
        if let Some(directory) = &draft.working_directory
            && !std::path::Path::new(directory).is_dir()
        {
            checks.fail("working_directory", "directory", "must be a directory that is there");
        }
        for name in draft.envs.iter().flat_map(BTreeMap::keys) {
            if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("ADJUTANT_") {
                checks.fail(format!("envs.{name}"), "name", "must not be empty, have = in it, or begin with ADJUTANT_");
            }
        }
        Ok(checks.finish(Some(()))?)
    }
}

impl From<Invalid> for Refused {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

pub(crate) fn later(now: Timestamp, by: std::time::Duration) -> Timestamp {
    jiff::SignedDuration::try_from(by).ok().and_then(|by| now.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
