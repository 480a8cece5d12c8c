//! The handlers of the tools for agents: list the agents, run one, list executions, read one, cancel it. A user sees only the
//! agents that they may run (OPS-6).

use model::agent::{ASSISTANT_ID, AccessType, RunConfirmation};
use model::execution::{ExecutionRecord, FollowUp, StateName};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::executions::{ExecutionFilter, OwnerScope};
use store::{Conn, Transaction};
use supervisor::{AgentEntry, RunDraft, RunOrigin, SubmitError, Supervisor};
use uuid::Uuid;

use crate::answer::{self, Error, ToolFailure};
use crate::catalog::RUN_AGENT;
use crate::{BuiltInCall, HeldCall, ToolAnswer, ToolOutcome, schedules};

/// Longer output of an agent is shortened in the answer.
const MAX_OUTPUT_BYTES: usize = 4000;
/// Longer output of an agent is shortened in a list.
const MAX_EXCERPT_BYTES: usize = 1000;
/// The maximum number of executions in a list.
pub(crate) const MAX_LISTED_EXECUTIONS: i64 = 20;
/// The number of executions that are read for a list, because those of the assistant are left out.
const MAX_SEARCHED_EXECUTIONS: i64 = 100;

/// Lists the agents that the user may run, without the assistant but with disabled agents. Each has the number of its
/// running and waiting executions, of all users. Arguments are ignored. Fails if agents are not available.
pub(crate) async fn list(call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let mut agents = Vec::new();
    for entry in allowed_agents(&call)? {
        let agent = &entry.agent;
        let (waiting, running) = store::executions::queue_counts(conn, &agent.id).await?;
        agents.push(json!({
            "id": agent.id,
            "name": agent.name,
            "description": agent.description,
            "access_type": agent.access_type,
            "enabled": agent.enabled,
            "running": running,
            "waiting": waiting,
        }));
    }
    Ok(ToolOutcome::Done(ToolAnswer::success(json!({"success": true, "count": agents.len(), "agents": agents}))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunArguments {
    agent: String,
    #[serde(default)]
    input: String,
    #[serde(default)]
    parameters: Map<String, Value>,
}

/// Enqueues an execution and returns its id without waiting for it. Its end is reported in the conversation of the
/// call, if there is one. The answer has `reports_back` set in this case. Holds the call instead if a model decided on
/// it and the setting `confirm` of the agent requires a confirmation.
///
/// Fails with `NOT_FOUND` if no agent matches. Fails with `VALIDATION_ERROR` if several match, or if the request is
/// invalid, forbidden or too large. Fails with `UNAVAILABLE` if the agent cannot run now, its queue is full, or
/// everything is stopped, and with `LIMIT_REACHED` if a quota of the user is reached.
pub(crate) async fn run(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let given = call.arguments.clone();
    let arguments: RunArguments = call.parse_arguments()?;
    let entry = find(&call, &arguments.agent)?;
    let draft = RunDraft { input: arguments.input, parameters: Some(arguments.parameters), ..RunDraft::default() };
    let supervisor = supervisor(&call)?;
    let mut origin = RunOrigin::default();
    if let Some(conversation) = &call.conversation {
        origin.follow_up = Some(FollowUp::Chat);
        origin.context.insert("conversation_id".to_owned(), conversation.to_string().into());
    }
    let submission = supervisor.prepare(&call.user, &entry.agent.id, draft, origin).map_err(submit_failure)?;
    let needs_user = match entry.agent.confirm {
        RunConfirmation::Always => true,
        RunConfirmation::Writes => entry.agent.access_type == AccessType::ReadWrite,
        RunConfirmation::Never => false,
    };
    if call.is_unconfirmed_decision(needs_user) {
        let mut held = given;
        held.insert("agent".to_owned(), json!(entry.agent.id));
        return Ok(ToolOutcome::Held(HeldCall::opaque(RUN_AGENT, held)));
    }
    let state = submission.new_execution.execution.state_name();
    let reports_back = submission.new_execution.follow_up.is_some();
    let id = match supervisor.enqueue(tx, submission).await {
        Ok(id) => id,
        Err(error @ store::Error::QueueFull { .. }) => {
            return Err(Error::Failure(ToolFailure::new(answer::UNAVAILABLE, format!("The agent is busy: {error}."))));
        }
        Err(error @ store::Error::Stopped { .. }) => {
            let message = format!("No agent can run: {error}.");
            return Err(Error::Failure(ToolFailure::new(answer::UNAVAILABLE, message)));
        }
        Err(error) => return Err(error.into()),
    };
    let mut data = json!({
        "success": true,
        "execution_id": id,
        "agent_id": entry.agent.id,
        "agent": entry.agent.name,
        "state": state,
        "reports_back": reports_back,
    });
    add_worker_note(&call, &mut data);
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Adds a note to an answer if no server runs, so that nothing starts before one does.
pub(crate) fn add_worker_note(call: &BuiltInCall<'_>, data: &mut Value) {
    if !call.tools.has_worker {
        data["note"] = "No server is running. Nothing starts until 'adjutant serve' runs.".into();
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutionListArguments {
    agent: Option<String>,
    schedule: Option<String>,
    active: Option<bool>,
    limit: Option<i64>,
}

/// Lists executions of the user, the newest first, at most [`MAX_LISTED_EXECUTIONS`]. Executions of the assistant are
/// left out. An ended one has the end of its output with at most [`MAX_EXCERPT_BYTES`], marked as the text of the agent.
/// With `active` set, lists only those that have not ended, or only those that have. Fails if the agent or the schedule
/// is not found or ambiguous, or if the limit is not positive.
pub(crate) async fn executions(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let arguments: ExecutionListArguments = call.parse_arguments()?;
    let limit = arguments.limit.unwrap_or(MAX_LISTED_EXECUTIONS).min(MAX_LISTED_EXECUTIONS);
    if limit < 1 {
        return Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, "limit must be at least 1.")));
    }
    let mut filter = ExecutionFilter::default();
    if let Some(agent) = &arguments.agent {
        filter.agent_id = Some(find(&call, agent)?.agent.id.clone());
    }
    if let Some(schedule) = &arguments.schedule {
        filter.schedule_id = Some(schedules::find(&call, conn, schedule).await?.id);
    }
    let ended = [StateName::Completed, StateName::Failed, StateName::Timeout, StateName::Cancelled];
    filter.states = match arguments.active {
        None => Vec::new(),
        Some(true) => vec![StateName::Idle, StateName::Starting, StateName::Running, StateName::Cleanup],
        Some(false) => ended.to_vec(),
    };
    let scope = OwnerScope::User(call.user.id);
    let mut found = store::executions::list(conn, scope, &filter, None, MAX_SEARCHED_EXECUTIONS).await?.rows;
    found.retain(|execution| execution.agent_id != ASSISTANT_ID);
    found.truncate(usize::try_from(limit).unwrap_or_default());
    let mut executions = Vec::with_capacity(found.len());
    for execution in found {
        let status = execution.ended().map(|end| end.status);
        let record = ExecutionRecord::from(execution);
        let name = supervisor(&call)?.agent(&record.agent_id).map(|entry| entry.agent.name.clone());
        let mut data = json!({
            "execution_id": record.id,
            "agent_id": record.agent_id,
            "agent": name.as_deref().unwrap_or(&record.agent_id),
            "schedule_id": record.schedule_id,
            "input": record.input,
            "state": record.state,
            "status": status,
            "queue_position": record.queue_position,
            "error_message": record.error_message,
            "start_time": record.start_time,
            "end_time": record.end_time,
        });
        if status.is_some() {
            let result = store::executions::result(conn, scope, record.id).await.map_err(execution_error)?;
            data["agent_output"] = shorten(&result.output, MAX_EXCERPT_BYTES).into();
        }
        if let Some(fields) = data.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        executions.push(data);
    }
    let data = json!({"success": true, "count": executions.len(), "executions": executions});
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutionIdArgument {
    execution_id: Uuid,
}

/// Returns the state of an execution of the user. Once it has ended, also its status and the last [`MAX_OUTPUT_BYTES`]
/// of its output. Fails with `NOT_FOUND` if the user has no such execution, and with `VALIDATION_ERROR` if the id is
/// not a UUID.
pub(crate) async fn execution(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let ExecutionIdArgument { execution_id } = call.parse_arguments()?;
    let scope = OwnerScope::User(call.user.id);
    let execution = store::executions::get(conn, scope, execution_id).await.map_err(execution_error)?;
    let execution = ExecutionRecord::from(execution);
    let mut data = json!({
        "success": true,
        "execution_id": execution.id,
        "agent_id": execution.agent_id,
        "state": execution.state,
        "queue_position": execution.queue_position,
        "error_message": execution.error_message,
        "start_time": execution.start_time,
        "end_time": execution.end_time,
    });
    if execution.end_time.is_some() {
        let result = store::executions::result(conn, scope, execution_id).await.map_err(execution_error)?;
        data["status"] = json!(result.status);
        data["output"] = shorten(&result.output, MAX_OUTPUT_BYTES).into();
    }
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Cancels an execution of the user and returns its state. A running one ends later, so its state is still the old one.
/// Fails with `NOT_FOUND` if the user has no such execution, and with `VALIDATION_ERROR` if it has already ended or the
/// id is not a UUID. Fails with `UNAVAILABLE` if agents are not available.
pub(crate) async fn cancel(mut call: BuiltInCall<'_>, tx: &mut Transaction) -> Result<ToolOutcome, Error> {
    let ExecutionIdArgument { execution_id } = call.parse_arguments()?;
    let scope = OwnerScope::User(call.user.id);
    let execution = match supervisor(&call)?.cancel(tx, scope, execution_id).await {
        Err(store::Error::AlreadyEnded) => {
            return Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, "The run has already ended.")));
        }
        result => result.map_err(execution_error)?,
    };
    let data = json!({"success": true, "execution_id": execution.id, "agent_id": execution.agent_id, "state": execution.state_name()});
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Returns true if the user may run any agent other than the assistant.
pub(crate) fn are_available(supervisor: &Supervisor, user: &model::User) -> bool {
    supervisor.agents_for(user).iter().any(|entry| entry.agent.id != ASSISTANT_ID)
}

/// Returns the agents that the user may run, without the assistant. Fails if agents are not available.
fn allowed_agents(call: &BuiltInCall<'_>) -> Result<Vec<AgentEntry>, Error> {
    let mut entries = supervisor(call)?.agents_for(&call.user);
    entries.retain(|entry| entry.agent.id != ASSISTANT_ID);
    Ok(entries)
}

/// Finds an agent that the user may run by its id, its name or a unique part of either, ignoring case. An exact match
/// has priority. Fails with `NOT_FOUND` and the known ids if none matches or `name` is blank, and with
/// `VALIDATION_ERROR` and the matching ids if several match. Fails with `UNAVAILABLE` if agents are not available.
pub(crate) fn find(call: &BuiltInCall<'_>, name: &str) -> Result<AgentEntry, Error> {
    let query = name.trim().to_lowercase();
    let entries = allowed_agents(call)?;
    let exact = entries.iter().find(|entry| entry.agent.id == query || entry.agent.name.to_lowercase() == query);
    if let Some(entry) = exact {
        return Ok(entry.clone());
    }
    let part =
        |entry: &&AgentEntry| entry.agent.id.contains(&query) || entry.agent.name.to_lowercase().contains(&query);
    let found: Vec<_> = entries.iter().filter(part).filter(|_| !query.is_empty()).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let known: Vec<_> = entries.iter().map(|entry| entry.agent.id.as_str()).collect();
            let message = format!("There is no agent named '{name}'. The known agents are: {}.", known.join(", "));
            Err(Error::Failure(ToolFailure::new(answer::NOT_FOUND, message)))
        }
        several => {
            let names: Vec<_> = several.iter().map(|entry| entry.agent.id.as_str()).collect();
            let message = format!("'{name}' is ambiguous. It matches {}.", names.join(" and "));
            Err(Error::Failure(ToolFailure::new(answer::VALIDATION_ERROR, message)))
        }
    }
}

/// Returns the supervisor. Fails if agents are not available on this server.
fn supervisor<'a>(call: &BuiltInCall<'a>) -> Result<&'a Supervisor, Error> {
    let missing = || Error::Failure(ToolFailure::new(answer::UNAVAILABLE, "Agents are not available on this server."));
    call.tools.supervisor.as_ref().ok_or_else(missing)
}

/// Converts the rejection of a request. A missing agent becomes `NOT_FOUND`. An agent that is disabled or not on this
/// node, and an internal error, become `UNAVAILABLE`. A forbidden, invalid or too large request becomes
/// `VALIDATION_ERROR`.
pub(crate) fn submit_failure(error: SubmitError) -> Error {
    let code = match error {
        SubmitError::AgentNotFound => answer::NOT_FOUND,
        SubmitError::AgentDisabled(_) | SubmitError::NotOnThisNode(_) | SubmitError::Internal(_) => answer::UNAVAILABLE,
        SubmitError::Forbidden(_) | SubmitError::InputTooLarge { .. } | SubmitError::Invalid(_) => {
            answer::VALIDATION_ERROR
        }
    };
    Error::Failure(ToolFailure::new(code, error.to_string()))
}

/// Converts an error of the store. The message for a missing object names a run instead of a task.
fn execution_error(error: store::Error) -> Error {
    match error {
        store::Error::NotFound => Error::Failure(ToolFailure::new(answer::NOT_FOUND, "There is no such run.")),
        other => other.into(),
    }
}

/// Returns the end of a long text. The end usually contains the result.
fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let from = (text.len() - max..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("… {}", &text[from..])
}
