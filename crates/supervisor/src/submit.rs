//! What somebody asks an agent for, checked, and made into an execution that can wait in the queue.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use model::agent::{Agent, Override};
use model::execution::{Execution, FollowUp, State};
use model::invalid::Checks;
use model::said::{self, Part};
use model::{Invalid, User};
use serde::Deserialize;
use serde_json::{Map, Value};
use store::executions::New;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::registry::{Entry, Source};
use crate::runner::{Asker, Request};
use crate::{Refused, Supervisor, desk};

/// A run as it is asked for.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExecutionDraft)]
pub struct Draft {
    #[serde(default)]
    pub input: String,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
    /// For administrators, where the agent consents.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// For administrators, where the agent consents.
    #[serde(default)]
    pub envs: Option<BTreeMap<String, String>>,
    /// In seconds; no longer than the agent's own.
    #[serde(default)]
    pub timeout: Option<model::agent::Seconds>,
    /// The message of another agent, as A2A writes it; its text is the input.
    #[serde(skip)]
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

impl Supervisor {
    /// The agent under this id, where the user may run it.
    pub fn agent_for(&self, user: &User, id: &str) -> Result<Entry, Refused> {
        // What is not theirs is not there.
        self.registry().get(id).filter(|entry| entry.is_for(user)).ok_or(Refused::NoAgent)
    }

    /// An execution that can be put into the queue with [`store::executions::submit`]; [`Supervisor::wake`] is to be
    /// called when that is committed, [`Supervisor::forget`] when it was refused.
    pub fn prepare(&self, user: &User, agent_id: &str, draft: Draft, origin: Origin) -> Result<New, Refused> {
        let entry = self.agent_for(user, agent_id)?;
        self.prepare_with(&entry, user, draft, origin)
    }

    /// The same for one whom another door has let in to this agent: who may pass there is said elsewhere than in `allow`.
    pub fn prepare_with(&self, entry: &Entry, user: &User, draft: Draft, origin: Origin) -> Result<New, Refused> {
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
        let (request, spool) = if spooled {
            let spool =
                self.spool().ok_or_else(|| Refused::Broken("there is no place for requests with secrets".into()))?;
            spool.put(id, &request).map_err(|error| Refused::Broken(format!("failed to keep the request: {error}")))?;
            (String::new(), Some(spool.name().to_owned()))
        } else {
            let json = serde_json::to_string(&request).map_err(|error| Refused::Broken(error.to_string()))?;
            (json, None)
        };
        let execution = new_execution(id, agent, input, timeout, now, (origin.schedule_id, origin.session_id), context);
        Ok(New {
            execution,
            owner: user.id,
            request,
            spool,
            follow_up: origin.follow_up,
            message,
            task: None,
            wait_until: later(now, agent.queue_timeout.duration()),
            places: i64::from(agent.places()),
            depth: i64::from(agent.queue_depth),
        })
    }

    /// The queue did not take this: nothing of it is kept.
    pub fn forget(&self, new: &New) {
        if new.spool.is_some()
            && let Some(spool) = self.spool()
        {
            spool.remove(new.execution.id);
        }
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
        if draft.timeout.is_some_and(model::agent::Seconds::is_zero) {
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

fn new_execution(
    id: Uuid,
    agent: &Agent,
    input: String,
    timeout: model::agent::Seconds,
    now: Timestamp,
    (schedule_id, session_id): (Option<Uuid>, Option<Uuid>),
    context: Map<String, Value>,
) -> Execution {
    Execution {
        id,
        agent_id: agent.id.clone(),
        schedule_id,
        session_id,
        state: State::Idle,
        previous_state: None,
        created_at: now,
        start_time: None,
        end_time: None,
        last_state_change: now,
        input,
        process_id: None,
        exit_code: None,
        error_message: None,
        error_category: None,
        outcome: None,
        retry_count: 0,
        max_retries: i64::from(agent.max_retries),
        attempt: 1,
        timeout,
        resource_usage: None,
        context,
        queue_position: None,
        state_transitions: Vec::new(),
        previous_retries: Vec::new(),
    }
}

pub(crate) fn later(now: Timestamp, by: std::time::Duration) -> Timestamp {
    jiff::SignedDuration::try_from(by).ok().and_then(|by| now.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
