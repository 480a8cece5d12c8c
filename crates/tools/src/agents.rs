//! What the tools do with other agents: list them, run one, see what became of it, stop it. All within the user's rights
//! (OPS-6): what is not theirs to run is not there.

use model::agent::ASSISTANT;
use model::execution::{ExecutionRecord, FollowUp};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::executions::Whose;
use store::{Conn, Transaction};
use supervisor::{Draft, Entry, Origin, Refused, Supervisor};
use uuid::Uuid;

use crate::answer::{self, Error, Failure};
use crate::{Answer, Call, Outcome};

/// How much of an agent's output a caller is given.
const MAX_OUTPUT: usize = 4000;

pub(crate) async fn list(call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let mut agents = Vec::new();
    for entry in theirs(&call)? {
        let agent = &entry.agent;
        let (waiting, running) = store::executions::counts(conn, &agent.id).await?;
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
    Ok(Outcome::Done(Answer::done(json!({"success": true, "count": agents.len(), "agents": agents}))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    agent: String,
    #[serde(default)]
    input: String,
    #[serde(default)]
    parameters: Map<String, Value>,
}

/// Returns at once: the run goes on by itself, and the conversation in which it was asked for hears of its end.
pub(crate) async fn run(mut call: Call<'_>, tx: &mut Transaction) -> Result<Outcome, Error> {
    let wanted: Wanted = call.read()?;
    let entry = named(&call, &wanted.agent)?;
    let draft = Draft { input: wanted.input, parameters: Some(wanted.parameters), ..Draft::default() };
    let supervisor = supervisor(&call)?;
    let mut origin = Origin::default();
    if let Some(conversation) = &call.conversation {
        origin.follow_up = Some(FollowUp::Chat);
        origin.context.insert("conversation_id".to_owned(), conversation.to_string().into());
    }
    let submission = supervisor.prepare(&call.user, &entry.agent.id, draft, origin).map_err(refused)?;
    let state = submission.new.execution.state_name();
    let reports_back = submission.new.follow_up.is_some();
    let id = match supervisor.enqueue(tx, submission).await {
        Ok(id) => id,
        Err(error @ store::Error::QueueFull { .. }) => {
            return Err(Error::Failure(Failure::new(answer::UNAVAILABLE, format!("The agent is busy: {error}."))));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Outcome::Done(Answer::done(json!({
        "success": true,
        "execution_id": id,
        "agent_id": entry.agent.id,
        "agent": entry.agent.name,
        "state": state,
        "reports_back": reports_back,
    }))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    execution_id: Uuid,
}

pub(crate) async fn execution(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let One { execution_id } = call.read()?;
    let whose = Whose::Users(call.user.id);
    let execution = store::executions::get(conn, whose, execution_id).await.map_err(no_execution)?;
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
        let result = store::executions::result(conn, whose, execution_id).await.map_err(no_execution)?;
        data["status"] = json!(result.status);
        data["output"] = shortened(&result.output).into();
    }
    Ok(Outcome::Done(Answer::done(data)))
}

pub(crate) async fn cancel(mut call: Call<'_>, tx: &mut Transaction) -> Result<Outcome, Error> {
    let One { execution_id } = call.read()?;
    let whose = Whose::Users(call.user.id);
    let execution = match supervisor(&call)?.cancel(tx, whose, execution_id).await {
        Err(store::Error::Ended) => {
            return Err(Error::Failure(Failure::new(answer::VALIDATION_ERROR, "It has ended already.")));
        }
        result => result.map_err(no_execution)?,
    };
    let data = json!({"success": true, "execution_id": execution.id, "agent_id": execution.agent_id, "state": execution.state_name()});
    Ok(Outcome::Done(Answer::done(data)))
}

/// Whether the user has any agent to run, the assistant itself not counted.
pub(crate) fn are_there(supervisor: &Supervisor, user: &model::User) -> bool {
    supervisor.agents_for(user).iter().any(|entry| entry.agent.id != ASSISTANT)
}

fn theirs(call: &Call<'_>) -> Result<Vec<Entry>, Error> {
    let mut entries = supervisor(call)?.agents_for(&call.user);
    entries.retain(|entry| entry.agent.id != ASSISTANT);
    Ok(entries)
}

/// The agent that is meant: by its id, its name, or a part of either that only one has.
pub(crate) fn named(call: &Call<'_>, name: &str) -> Result<Entry, Error> {
    let wanted = name.trim().to_lowercase();
    let entries = theirs(call)?;
    let exact = entries.iter().find(|entry| entry.agent.id == wanted || entry.agent.name.to_lowercase() == wanted);
    if let Some(entry) = exact {
        return Ok(entry.clone());
    }
    let part = |entry: &&Entry| entry.agent.id.contains(&wanted) || entry.agent.name.to_lowercase().contains(&wanted);
    let found: Vec<_> = entries.iter().filter(part).filter(|_| !wanted.is_empty()).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let known: Vec<_> = entries.iter().map(|entry| entry.agent.id.as_str()).collect();
            let message = format!("There is no agent named '{name}'. There are: {}.", known.join(", "));
            Err(Error::Failure(Failure::new(answer::NOT_FOUND, message)))
        }
        several => {
            let names: Vec<_> = several.iter().map(|entry| entry.agent.id.as_str()).collect();
            let message = format!("'{name}' could be {}.", names.join(" or "));
            Err(Error::Failure(Failure::new(answer::VALIDATION_ERROR, message)))
        }
    }
}

fn supervisor<'a>(call: &Call<'a>) -> Result<&'a Supervisor, Error> {
    let missing = || Error::Failure(Failure::new(answer::UNAVAILABLE, "Agents cannot be run here."));
    call.tools.supervisor.as_ref().ok_or_else(missing)
}

fn refused(refused: Refused) -> Error {
    let code = match refused {
        Refused::NoAgent => answer::NOT_FOUND,
        Refused::Disabled(_) | Refused::NotHere(_) | Refused::Broken(_) => answer::UNAVAILABLE,
        Refused::Forbidden(_) | Refused::TooLarge { .. } | Refused::Invalid(_) => answer::VALIDATION_ERROR,
    };
    Error::Failure(Failure::new(code, refused.to_string()))
}

fn no_execution(error: store::Error) -> Error {
    match error {
        store::Error::NotFound => Error::Failure(Failure::new(answer::NOT_FOUND, "There is no such execution.")),
        other => other.into(),
    }
}

/// The end of a long text is what says how it went.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_OUTPUT {
        return text.to_owned();
    }
    let from = (text.len() - MAX_OUTPUT..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("… {}", &text[from..])
}
