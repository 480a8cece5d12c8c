//! Sending a message: a new task, or the answer to what a task has asked.

use ::a2a::types::{Message, Role, SendMessageRequest, SendMessageResponse};
use ::a2a::{Error, Kind, Version};
use model::execution::Standing;
use model::said;
use serde_json::{Map, Value, json};
use store::a2a::{Run, pushes};
use store::executions::{OfTask, Whose};
use store::{Acknowledge, Transaction};
use supervisor::{Draft, Origin, Refused, Submission};
use uuid::Uuid;

use super::caller::Caller;
use super::cards::Base;
use super::contexts;
use super::updates::Following;
use super::{faults, push};
use crate::App;

/// The parameter that says in which conversation the assistant is spoken to.
const CONVERSATION: &str = "conversation_id";

/// A message that was put into the queue.
pub(crate) struct Sent {
    pub(crate) task: Uuid,
    pub(crate) execution: Uuid,
    /// The task, where it begins with this message, as that is kept.
    pub(crate) begun: Option<(OfTask, store::a2a::Message)>,
}

impl Sent {
    /// Whether the task begins with it.
    pub(crate) fn is_first(&self) -> bool {
        self.task == self.execution
    }
}

/// Sends a message and answers with what came of it, or at once where the caller does not want to wait.
pub(crate) async fn send(
    app: &App,
    caller: &Caller,
    base: &Base,
    request: SendMessageRequest,
) -> Result<SendMessageResponse, Error> {
    let configuration = request.configuration.as_ref();
    let history_length = configuration.and_then(|configuration| configuration.history_length);
    let at_once = configuration.and_then(|configuration| configuration.return_immediately).unwrap_or_default();
    // Where the answer comes with the end, nobody is told before that is on disk.
    let when = if at_once { Acknowledge::Synced } else { Acknowledge::Committed };
    let sent = submit(app, caller, request, when).await?;
    let task = sent.task.to_string();
    let is_first = sent.is_first();
    let read = || async {
        let following = Following::begin(app, base, caller.user.id, &caller.entry.agent.id, sent.task).await;
        following.map_err(|error| faults::from_store(error, &task))
    };
    // Where the server stops the task goes on later, and whoever waits is told how it stands.
    let ended = app.supervisor().while_at_work(sent.execution);
    let ended = if at_once { None } else { app.stopping().run_until_cancelled(ended).await.flatten() };
    let mut following = match ended.zip(sent.begun) {
        Some((account, begun)) => {
            let all = Following::of_one(app, base, caller.user.id, begun, &account).await;
            all.map_err(|error| faults::from_store(error, &task))?
        }
        None => read().await?,
    };
    if !at_once && !following.is_past(sent.execution) {
        let ended = app.supervisor().wait_for_own(Whose::Users(caller.user.id), sent.execution);
        if let Some(ended) = app.stopping().run_until_cancelled(ended).await {
            ended.map_err(|error| faults::from_store(error, &task))?;
            following = read().await?;
        }
    }
    Ok(match following.story().answer().filter(|_| is_first && !at_once) {
        Some(message) => SendMessageResponse::Message(message),
        None => SendMessageResponse::Task(following.task(history_length)),
    })
}

/// Puts a message into the queue of its agent.
pub(crate) async fn submit(
    app: &App,
    caller: &Caller,
    request: SendMessageRequest,
    when: Acknowledge,
) -> Result<Sent, Error> {
    let Place { asked, context } = place(app, caller, &request.message).await?;
    let submission = prepare(app, caller, &context, asked.as_ref(), request.message)?;
    let new = &submission.new;
    let execution = new.execution.id;
    let task = asked.as_ref().map_or(execution, |run| run.task.id);
    let message = new.message.clone().map(|message| store::a2a::Message {
        execution_id: execution,
        message,
        at: new.execution.created_at,
    });
    let begun = new.task.clone().filter(|_| asked.is_none()).zip(message);
    let wanted = request.configuration.and_then(|configuration| configuration.task_push_notification_config);
    let push = wanted.map(|config| push::prepare(app, caller.version, task, &config)).transpose();
    let push = push.map_err(|error| error.inside("taskPushNotificationConfig").inside("configuration"))?;
    // Those who follow the task hear of its next run at once.
    let when = if asked.is_some() { Acknowledge::Synced } else { when };
    enqueue(app, caller, submission, context, asked.map(|asked| asked.execution.id), push, when).await?;
    Ok(Sent { task, execution, begun })
}

/// Where a message belongs.
struct Place {
    /// The run that asked what this answers.
    asked: Option<Run>,
    context: String,
}

async fn place(app: &App, caller: &Caller, message: &Message) -> Result<Place, Error> {
    if message.role == Role::Agent {
        return Err(Error::invalid("message.role", "must be the user's"));
    }
    let wanted = message.context_id.as_deref().filter(|id| !id.is_empty());
    if wanted.is_some_and(|id| !contexts::is_one(id)) {
        return Err(Error::invalid("message.contextId", contexts::RULE));
    }
    let Some(id) = message.task_id.as_deref().filter(|id| !id.is_empty()) else {
        let context = wanted.map_or_else(|| app.clock().id().to_string(), str::to_owned);
        return Ok(Place { asked: None, context });
    };
    let task = faults::task_id(id)?;
    let fault = |error| faults::from_store(error, id);
    let mut reader = app.store().reader().await.map_err(fault)?;
    let run = store::a2a::task(&mut reader, caller.user.id, &caller.entry.agent.id, task).await.map_err(fault)?;
    if wanted.is_some_and(|context| context != run.task.context_id) {
        return Err(Error::invalid("message.contextId", "is not the context of the task"));
    }
    if !run.standing().is_asking() {
        return Err(not_asking(caller.version, run.standing()));
    }
    let context = run.task.context_id.clone();
    Ok(Place { asked: Some(run), context })
}

/// Nothing was asked that could be answered. In 0.3 that is an error of whoever names the task.
fn not_asking(version: Version, standing: Standing) -> Error {
    let why = match standing.is_final() {
        true => format!("the task has ended, it is {standing}: send the message without a task"),
        false => "the task is at work and has asked nothing: wait until it has ended".to_owned(),
    };
    match version {
        Version::V03 => Error::invalid("message.taskId", why),
        Version::V10 => Error::new(Kind::UnsupportedOperation, why),
    }
}

/// The execution to be.
fn prepare(
    app: &App,
    caller: &Caller,
    context: &str,
    asked: Option<&Run>,
    mut message: Message,
) -> Result<Submission, Error> {
    message.context_id = Some(context.to_owned());
    let broken = |error: serde_json::Error| faults::internal(&error.to_string());
    let given = serde_json::to_value(&message).map_err(broken)?;
    let input = said::as_input(&said::parts_of(&given).map_err(broken)?);
    let parameters = contexts::conversation(&caller.entry, caller.user.id, context);
    let parameters = parameters.map(|id| Map::from_iter([(CONVERSATION.to_owned(), json!(id))]));
    let draft = Draft { input, parameters, message: Some(given), ..Draft::default() };
    let prepared = app.supervisor().prepare_with(&caller.entry, &caller.user, draft, Origin::default());
    let mut submission = prepared.map_err(faults::from_refused)?;
    let new = &mut submission.new;
    let agent_id = &new.execution.agent_id;
    let execution_id = new.execution.id;
    let binding = caller.binding.as_str();
    let task = asked.map_or(execution_id, |run| run.task.id);
    if let Some(Value::Object(kept)) = &mut new.message {
        kept.insert("taskId".to_owned(), task.to_string().into());
    }
    tracing::info!(event = "a2a_message", agent_id, binding, task_id = %task, execution_id = %execution_id);
    new.task = Some(OfTask { id: task, context_id: context.to_owned() });
    Ok(submission)
}

/// Puts the message into the queue in one transaction, with the session that it may need and its push configuration.
/// `asked` is the execution whose question the message answers.
async fn enqueue(
    app: &App,
    caller: &Caller,
    mut submission: Submission,
    context: String,
    asked: Option<Uuid>,
    push: Option<pushes::New>,
    when: Acknowledge,
) -> Result<(), Error> {
    let task = submission.new.task.as_ref().map(|task| task.id).unwrap_or_default();
    // Only needed if the context has no open session.
    let spare = contexts::needs_session(&caller.entry)
        .then(|| app.supervisor().prepare_session_with(&caller.entry, caller.user.id));
    let in_job = app.clone();
    let job = async move |tx: &mut Transaction| -> Result<(), NotSent> {
        let app = in_job;
        let owner = submission.new.owner;
        let agent = submission.new.execution.agent_id.clone();
        let now = submission.new.execution.created_at;
        if let Some(spare) = spare {
            let session = contexts::session(tx, &app, owner, &agent, &context, spare).await?;
            submission.new.execution.session_id = Some(session);
        }
        app.supervisor().enqueue(tx, submission).await?;
        if let Some(push) = &push {
            push::store_with_task(tx, owner, &agent, task, push, now).await?;
        }
        // Those who have waited for the answer follow the next execution.
        if let Some(asked) = asked {
            tx.after_commit(move || app.supervisor().ring(asked));
        }
        Ok(())
    };
    app.store().transaction_acknowledged(when, job).await.map_err(|error| match error {
        NotSent::Refused(refused) => faults::from_refused(refused),
        // Another message has answered the question meanwhile.
        NotSent::Store(store::Error::Ended) => not_asking(caller.version, Standing::Completed),
        NotSent::Store(store::Error::NotEnded) => not_asking(caller.version, Standing::Working),
        NotSent::Store(error) => push::fault(error, &task.to_string()),
    })
}

/// Why a message did not enter the queue.
pub(crate) enum NotSent {
    Refused(Refused),
    Store(store::Error),
}

impl From<Refused> for NotSent {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<store::Error> for NotSent {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}
