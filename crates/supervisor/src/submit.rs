//! Checks a request for an execution and puts it into the queue of its agent.
//!
//! [`Supervisor::prepare`] does everything that needs no transaction. [`Supervisor::enqueue`] does the rest, including
//! the effects of the commit or the rollback.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use model::agent::{Agent, AgentSource, Override, Seconds};
use model::execution::{Execution, FollowUp};
use model::invalid::Checks;
use model::output::{self, ContentPart};
use model::{Invalid, User};
use serde_json::{Map, Value};
use store::Transaction;
use store::executions::NewExecution;
use uuid::Uuid;

use crate::registry::AgentEntry;
use crate::runner::{Requester, RunRequest};
use crate::spool::SpooledRequest;
use crate::{SubmitError, Supervisor, recorder};

/// A request for an execution, not checked yet.
#[derive(Clone, Debug, Default)]
pub struct RunDraft {
    pub input: String,
    pub parameters: Option<Map<String, Value>>,
    /// Only for administrators, and only if the agent allows it.
    pub working_directory: Option<String>,
    /// Only for administrators, and only if the agent allows it.
    pub envs: Option<BTreeMap<String, String>>,
    /// Limited by the timeout of the agent.
    pub timeout: Option<Seconds>,
    /// The original A2A message. Its text is the input.
    pub message: Option<Value>,
}

/// The cause of an execution, besides the user.
#[derive(Clone, Debug, Default)]
pub struct RunOrigin {
    pub schedule_id: Option<Uuid>,
    pub session_id: Option<Uuid>,
    /// The component that handles the end of the execution.
    pub follow_up: Option<FollowUp>,
    /// Additional fields for the record of the execution.
    pub context: Map<String, Value>,
}

/// A checked request for [`Supervisor::enqueue`]. Its secrets are on disk. Dropping it removes them.
#[derive(Debug)]
pub struct Submission {
    pub new_execution: NewExecution,
    spooled: Option<SpooledRequest>,
}

impl Submission {
    /// Returns the id of the future execution.
    pub fn id(&self) -> Uuid {
        self.new_execution.execution.id
    }
}

impl Supervisor {
    /// Returns the agent with this id. Fails with [`SubmitError::AgentNotFound`] if the user may not run it.
    pub fn agent_for(&self, user: &User, id: &str) -> Result<AgentEntry, SubmitError> {
        // The error does not reveal if the agent exists.
        self.registry().get(id).filter(|entry| entry.is_allowed_for(user)).ok_or(SubmitError::AgentNotFound)
    }

    /// Checks a request and returns a submission for [`Supervisor::enqueue`]. Fails with [`SubmitError::AgentNotFound`]
    /// if the agent does not exist or the user may not run it, and otherwise like [`Supervisor::prepare_with`].
    pub fn prepare(
        &self,
        user: &User,
        agent_id: &str,
        draft: RunDraft,
        origin: RunOrigin,
    ) -> Result<Submission, SubmitError> {
        let entry = self.agent_for(user, agent_id)?;
        self.prepare_with(&entry, user, draft, origin)
    }

    /// Like [`Supervisor::prepare`], for a caller that is already authorized for this agent. The timeout of the draft
    /// is limited to that of the agent. The requester is stored only for built-in agents. A request with secrets,
    /// with variables or with NUL in its input is written to the spool, and the database gets only redacted values.
    /// Dropping the submission removes the file. Fails with:
    /// - [`SubmitError::AgentDisabled`] if the agent is disabled.
    /// - [`SubmitError::InputTooLarge`], [`SubmitError::Forbidden`] or [`SubmitError::Invalid`] if the draft is not
    ///   allowed, or if the runner of the agent rejects it.
    /// - [`SubmitError::NotOnThisNode`] if the request needs the spool and this node runs no agents.
    /// - [`SubmitError::Internal`] if the request cannot be stored.
    pub fn prepare_with(
        &self,
        entry: &AgentEntry,
        user: &User,
        draft: RunDraft,
        origin: RunOrigin,
    ) -> Result<Submission, SubmitError> {
        let agent = &entry.agent;
        if !agent.enabled {
            return Err(SubmitError::AgentDisabled(agent.id.clone()));
        }
        self.check(user, agent, &draft)?;
        let timeout = draft.timeout.map_or(agent.timeout, |wanted| wanted.min(agent.timeout));
        let request = RunRequest {
            input: draft.input,
            parameters: draft.parameters.unwrap_or_default(),
            working_directory: draft.working_directory.map(PathBuf::from),
            envs: draft.envs.unwrap_or_default(),
            requester: (entry.source == AgentSource::BuiltIn).then(|| Requester::from(user)),
            message: draft.message,
        };
        entry.runner.check(&request)?;
        let now = self.clock().now();
        let id = self.clock().id();
        let redactor = recorder::redactor(agent.redact_options()).with_known(self.known_secrets(agent));
        let input = redactor.text(&request.input).replace('\0', "\u{fffd}");
        let mut parameters = Value::Object(request.parameters.clone());
        redactor.json(&mut parameters);
        let mut message = request.message.clone();
        message.iter_mut().for_each(|message| output::redact_message(&redactor, message));
        let clean = input == request.input
            && parameters == Value::Object(request.parameters.clone())
            && message == request.message;
        // Variables that an administrator sets for one run are treated as secrets.
        let spooled = !clean || !request.envs.is_empty();
        let mut context = origin.context;
        if parameters.as_object().is_some_and(|parameters| !parameters.is_empty()) {
            context.insert("parameters".to_owned(), parameters);
        }
        if let Some(directory) = &request.working_directory {
            context.insert("working_directory".to_owned(), directory.to_string_lossy().into());
        }
        if spooled && self.runs_nothing() {
            let message = "the request contains secrets, and this node runs no agents; send it to a node that does, or put \
                           the secrets into the envs of the agent";
            return Err(SubmitError::NotOnThisNode(message));
        }
        let (request, spooled) = if spooled {
            let spool =
                self.spool().ok_or_else(|| SubmitError::Internal("the spool directory is not available".into()))?;
            let file = spool.put(id, &request);
            let file = file.map_err(|error| SubmitError::Internal(format!("failed to store the request: {error}")))?;
            (String::new(), Some(file))
        } else {
            let json = serde_json::to_string(&request).map_err(|error| SubmitError::Internal(error.to_string()))?;
            (json, None)
        };
        let mut execution = Execution::new(id, agent.id.clone(), timeout, now);
        execution.schedule_id = origin.schedule_id;
        execution.session_id = origin.session_id;
        execution.input = input;
        execution.max_retries = i64::from(agent.max_retries);
        execution.context = context;
        let new_execution = NewExecution {
            execution,
            owner: user.id,
            request,
            spool: spooled.as_ref().map(|spooled| spooled.spool().to_owned()),
            follow_up: origin.follow_up,
            message,
            task: None,
            wait_until: later(now, agent.queue_timeout.duration()),
            slots: i64::from(agent.max_concurrency()),
            queue_depth: i64::from(agent.queue_depth),
        };
        Ok(Submission { new_execution, spooled })
    }

    /// Puts an execution into the queue of its agent or session and returns its id. Claims it for this node if it can
    /// start immediately. If executions are queued before it, claims the first of the queue instead, as far as slots
    /// are free.
    ///
    /// After the commit the claimed executions start, or the dispatcher or the session is woken. On a rollback the
    /// secrets of the request are removed from the disk. Fails with [`store::Error::QueueFull`] if the queue is full,
    /// and with [`store::Error::Stopped`] while everything is stopped.
    /// If it continues an A2A task, fails with [`store::Error::NotFound`] if the task does not exist, and with
    /// [`store::Error::AlreadyEnded`] or [`store::Error::NotEnded`] if the task does not wait for an answer.
    pub async fn enqueue(&self, tx: &mut Transaction, submission: Submission) -> store::Result<Uuid> {
        let Submission { new_execution: new, spooled } = submission;
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

    /// Checks the draft. Fails with the first of these that applies:
    /// - [`SubmitError::Invalid`] if the parts of the message cannot be read.
    /// - [`SubmitError::InputTooLarge`] if the input or the parts of the message exceed `max_input_size`.
    /// - [`SubmitError::Forbidden`] if `working_directory` is set or `envs` is not empty, and the user is no
    ///   administrator or the agent does not allow it.
    /// - [`SubmitError::Invalid`] with all violations: a parameter name that is empty or contains `}}`, a timeout of 0,
    ///   a working directory that does not exist, or a variable name that is empty, contains `=` or NUL, or begins with
    ///   `ADJUTANT_`.
    fn check(&self, user: &User, agent: &Agent, draft: &RunDraft) -> Result<(), SubmitError> {
        let mut checks = Checks::default();
        let parts = draft.message.as_ref().map_or(Ok(Vec::new()), output::parse_message_parts);
        let parts =
            parts.map_err(|error| Invalid::one("message.parts", "parts", format!("cannot be read: {error}")))?;
        let size = draft.input.len().max(parts.iter().map(ContentPart::size).sum());
        if size as u64 > agent.max_input_size {
            return Err(SubmitError::InputTooLarge { limit: agent.max_input_size });
        }
        for name in draft.parameters.iter().flat_map(Map::keys) {
            if name.is_empty() || name.contains("}}") {
                checks.fail("parameters", "name", "must have names that are not empty and do not contain }}");
            }
        }
        if draft.timeout.is_some_and(Seconds::is_zero) {
            checks.fail("timeout", "range", "must be greater than 0");
        }
        for (field, given, required) in [
            ("working_directory", draft.working_directory.is_some(), Override::WorkingDirectory),
            ("envs", draft.envs.as_ref().is_some_and(|envs| !envs.is_empty()), Override::Envs),
        ] {
            if given && !user.is_admin() {
                return Err(SubmitError::Forbidden(format!("{field} needs the scope adjutant:admin")));
            }
            if given && !agent.overrides.contains(&required) {
                let message =
                    format!("the agent does not allow {field} to be set for a run; add it to its `overrides`");
                return Err(SubmitError::Forbidden(message));
            }
        }
        if let Some(directory) = &draft.working_directory
            && !std::path::Path::new(directory).is_dir()
        {
            checks.fail("working_directory", "directory", "must be an existing directory");
        }
        for name in draft.envs.iter().flat_map(BTreeMap::keys) {
            if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("ADJUTANT_") {
                checks.fail(format!("envs.{name}"), "name", "must not be empty, contain =, or begin with ADJUTANT_");
            }
        }
        Ok(checks.finish(Some(()))?)
    }
}

impl From<Invalid> for SubmitError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

/// Returns `now` plus a duration, limited to the latest representable time.
pub(crate) fn later(now: Timestamp, by: std::time::Duration) -> Timestamp {
    jiff::SignedDuration::try_from(by).ok().and_then(|by| now.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
