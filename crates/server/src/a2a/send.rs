//! Sends messages. A message starts a new task or answers a task that awaits input.

use ::a2a::types::{Message, Role, SendMessageRequest, SendMessageResponse};
use ::a2a::{Error, ErrorKind, Version};
use model::execution::PublicStatus;
use model::output;
use serde_json::{Map, Value, json};
use store::a2a::{A2aRun, pushes};
use store::executions::{A2aTaskRef, OwnerScope};
use store::{Acknowledge, Transaction};
use supervisor::{RunDraft, RunOrigin, Submission, SubmitError};
use uuid::Uuid;

use super::caller::A2aCaller;
use super::cards::BaseUrl;
use super::contexts;
use super::updates::TaskFollower;
use super::{errors, push};
use crate::App;

/// The parameter with the conversation of the assistant.
const CONVERSATION_PARAMETER: &str = "conversation_id";

/// An enqueued message.
pub(crate) struct SubmittedMessage {
    pub(crate) task: Uuid,
    pub(crate) execution: Uuid,
    /// The task and the stored message, if the message starts the task.
    pub(crate) started_task: Option<(A2aTaskRef, store::a2a::A2aTaskMessage)>,
}

impl SubmittedMessage {
    /// Returns whether the message starts its task.
    pub(crate) fn is_first(&self) -> bool {
        self.task == self.execution
    }
}

/// Sends a message. Without `return_immediately` it waits until the execution ends, also with a request for input, or
/// the server stops. Then it returns the task, or the message if a message is the whole answer to a new task. With
/// `return_immediately` it returns the started task. `history_length` limits the messages in the task.
///
/// Fails like [`submit`], or if the task is deleted or the database fails.
pub(crate) async fn send(
    app: &App,
    caller: &A2aCaller,
    base: &BaseUrl,
    request: SendMessageRequest,
) -> Result<SendMessageResponse, Error> {
    let configuration = request.configuration.as_ref();
    let history_length = configuration.and_then(|configuration| configuration.history_length);
    let returns_immediately =
        configuration.and_then(|configuration| configuration.return_immediately).unwrap_or_default();
    // A caller that waits for the end gets the response only after the end is synced.
    let acknowledge = if returns_immediately { Acknowledge::Synced } else { Acknowledge::Committed };
    let sent = submit(app, caller, request, acknowledge).await?;
    let task = sent.task.to_string();
    let is_first = sent.is_first();
    let read = || async {
        let follower = TaskFollower::start(app, base, caller.user.id, &caller.entry.agent.id, sent.task).await;
        follower.map_err(|error| errors::from_store(error, &task))
    };
    // If the server stops, the caller gets the current state. The task continues after a restart.
    let ended = app.supervisor().wait_while_running(sent.execution);
    let ended = if returns_immediately { None } else { app.stopping().run_until_cancelled(ended).await.flatten() };
    let mut follower = match ended.zip(sent.started_task) {
        Some((finished_run, started_task)) => {
            let follower =
                TaskFollower::from_finished_run(app, base, caller.user.id, started_task, &finished_run).await;
            follower.map_err(|error| errors::from_store(error, &task))?
        }
        None => read().await?,
    };
    if !returns_immediately && !follower.is_past(sent.execution) {
        let ended = app.supervisor().wait_for_submitted(OwnerScope::User(caller.user.id), sent.execution);
        if let Some(ended) = app.stopping().run_until_cancelled(ended).await {
            ended.map_err(|error| errors::from_store(error, &task))?;
            follower = read().await?;
        }
    }
    Ok(match follower.projection().answer().filter(|_| is_first && !returns_immediately) {
        Some(message) => SendMessageResponse::Message(message),
        None => SendMessageResponse::Task(follower.task(history_length)),
    })
}

/// Enqueues a message for its agent, with its push configuration. `acknowledge` selects the durability of a new task;
/// an answer to a question is always synced.
///
/// Fails like [`resolve_target`], [`prepare_submission`] and [`enqueue`]. Fails if the push configuration is invalid,
/// with fields below `configuration.taskPushNotificationConfig`.
pub(crate) async fn submit(
    app: &App,
    caller: &A2aCaller,
    request: SendMessageRequest,
    acknowledge: Acknowledge,
) -> Result<SubmittedMessage, Error> {
    let MessageTarget { answered_run, context } = resolve_target(app, caller, &request.message).await?;
    let submission = prepare_submission(app, caller, &context, answered_run.as_ref(), request.message)?;
    let new = &submission.new_execution;
    let execution = new.execution.id;
    let task = answered_run.as_ref().map_or(execution, |run| run.task.id);
    let message = new.message.clone().map(|message| store::a2a::A2aTaskMessage {
        execution_id: execution,
        message,
        at: new.execution.created_at,
    });
    let started_task = new.task.clone().filter(|_| answered_run.is_none()).zip(message);
    let push_config = request.configuration.and_then(|configuration| configuration.task_push_notification_config);
    let push = push_config.map(|config| push::prepare(app, caller.version, task, &config)).transpose();
    let push = push.map_err(|error| error.nested_in("taskPushNotificationConfig").nested_in("configuration"))?;
    // Followers of the task see its next run immediately, so it must be synced first.
    let acknowledge = if answered_run.is_some() { Acknowledge::Synced } else { acknowledge };
    let answered_execution = answered_run.map(|run| run.execution.id);
    enqueue(app, caller, submission, context, answered_execution, push, acknowledge).await?;
    Ok(SubmittedMessage { task, execution, started_task })
}

/// The task and context of a message.
struct MessageTarget {
    /// The run that awaits this message as input.
    answered_run: Option<A2aRun>,
    context: String,
}

/// Returns the target of a message. A message without a task id starts a task, in the given context or a new one. Empty
/// ids count as missing.
///
/// Fails if the role is that of an agent, or the context id is invalid or not that of the task. Fails if the caller has
/// no such task with the agent, the task does not await input, or the database fails.
async fn resolve_target(app: &App, caller: &A2aCaller, message: &Message) -> Result<MessageTarget, Error> {
    if message.role == Role::Agent {
        return Err(Error::invalid("message.role", "must be the role of the user"));
    }
    let requested_context = message.context_id.as_deref().filter(|id| !id.is_empty());
    if requested_context.is_some_and(|id| !contexts::is_valid_id(id)) {
        return Err(Error::invalid("message.contextId", contexts::CONTEXT_ID_RULE));
    }
    let Some(id) = message.task_id.as_deref().filter(|id| !id.is_empty()) else {
        let context = requested_context.map_or_else(|| app.clock().id().to_string(), str::to_owned);
        return Ok(MessageTarget { answered_run: None, context });
    };
    let task = errors::parse_task_id(id)?;
    let to_error = |error| errors::from_store(error, id);
    let mut reader = app.store().owner_reader(caller.user.id).await.map_err(to_error)?;
    let run =
        store::a2a::current_run(&mut reader, caller.user.id, &caller.entry.agent.id, task).await.map_err(to_error)?;
    if requested_context.is_some_and(|context| context != run.task.context_id) {
        return Err(Error::invalid("message.contextId", "must be the context of the task"));
    }
    if !run.public_status().awaits_input() {
        return Err(not_awaiting_input(caller.version, run.public_status()));
    }
    let context = run.task.context_id.clone();
    Ok(MessageTarget { answered_run: Some(run), context })
}

/// Returns the error for a message to a task that does not await input. `status` selects the text: the task has ended
/// or is running. In 0.3 it is an invalid `message.taskId`, in 1.x an unsupported operation.
fn not_awaiting_input(version: Version, status: PublicStatus) -> Error {
    let message = match status.is_final() {
        true => format!("the task has ended with status {status}; send the message without a task id"),
        false => "the task is running and does not await input; wait until it has ended".to_owned(),
    };
    match version {
        Version::V03 => Error::invalid("message.taskId", message),
        Version::V10 => Error::new(ErrorKind::UnsupportedOperation, message),
    }
}

/// Returns the submission for a message, with the A2A task and the context. The stored message contains both ids. The
/// input consists of the texts, data and URLs of the parts. For the assistant the context selects the conversation.
/// Logs the message.
///
/// Fails if the agent is disabled, the input is invalid or too large for it, or this node cannot accept the message.
fn prepare_submission(
    app: &App,
    caller: &A2aCaller,
    context: &str,
    answered_run: Option<&A2aRun>,
    mut message: Message,
) -> Result<Submission, Error> {
    message.context_id = Some(context.to_owned());
    let internal = |error: serde_json::Error| errors::internal(&error.to_string());
    let given = serde_json::to_value(&message).map_err(internal)?;
    let input = output::parts_to_text(&output::parse_message_parts(&given).map_err(internal)?);
    let parameters = contexts::conversation_id(&caller.entry, caller.user.id, context);
    let parameters = parameters.map(|id| Map::from_iter([(CONVERSATION_PARAMETER.to_owned(), json!(id))]));
    let draft = RunDraft { input, parameters, message: Some(given), ..RunDraft::default() };
    let prepared = app.supervisor().prepare_with(&caller.entry, &caller.user, draft, RunOrigin::default());
    let mut submission = prepared.map_err(errors::from_submit_error)?;
    let new = &mut submission.new_execution;
    let agent_id = &new.execution.agent_id;
    let execution_id = new.execution.id;
    let binding = caller.binding.as_str();
    let task = answered_run.map_or(execution_id, |run| run.task.id);
    if let Some(Value::Object(stored)) = &mut new.message {
        stored.insert("taskId".to_owned(), task.to_string().into());
    }
    tracing::info!(event = "a2a_message", agent_id, binding, task_id = %task, execution_id = %execution_id);
    new.task = Some(A2aTaskRef { id: task, context_id: context.to_owned() });
    Ok(submission)
}

/// Enqueues the message in one transaction, with a session if the agent requires one, and with its push configuration.
/// Followers of `answered_execution`, which awaits this message, are woken after the commit.
///
/// Fails if the queue is full, no slot for a session is free, or the task has too many push configurations. Fails like
/// [`not_awaiting_input`] if another message has answered meanwhile. Fails if the session cannot be opened on this
/// node, or the database fails.
async fn enqueue(
    app: &App,
    caller: &A2aCaller,
    mut submission: Submission,
    context: String,
    answered_execution: Option<Uuid>,
    push: Option<pushes::NewPushConfig>,
    acknowledge: Acknowledge,
) -> Result<(), Error> {
    let task = submission.new_execution.task.as_ref().map(|task| task.id).unwrap_or_default();
    // Used only if the context has no open session.
    let new_session = contexts::needs_session(&caller.entry)
        .then(|| app.supervisor().prepare_session_with(&caller.entry, caller.user.id));
    let app_in_job = app.clone();
    let job = async move |tx: &mut Transaction| -> Result<(), EnqueueError> {
        let app = app_in_job;
        let owner = submission.new_execution.owner;
        let agent = submission.new_execution.execution.agent_id.clone();
        let now = submission.new_execution.execution.created_at;
        if let Some(new_session) = new_session {
            let session = contexts::open_session(tx, &app, owner, &agent, &context, new_session).await?;
            submission.new_execution.execution.session_id = Some(session);
        }
        app.supervisor().enqueue(tx, submission).await?;
        if let Some(push) = &push {
            push::store_with_task(tx, owner, &agent, task, push, now).await?;
        }
        // Wakes the followers that wait for the answer.
        if let Some(execution) = answered_execution {
            tx.after_commit(move || app.supervisor().notify_followers(execution));
        }
        Ok(())
    };
    app.store().owner_transaction_acknowledged(caller.user.id, acknowledge, job).await.map_err(|error| match error {
        EnqueueError::Submit(error) => errors::from_submit_error(error),
        // Another message has answered the question in the meantime.
        EnqueueError::Store(store::Error::AlreadyEnded) => not_awaiting_input(caller.version, PublicStatus::Completed),
        EnqueueError::Store(store::Error::NotEnded) => not_awaiting_input(caller.version, PublicStatus::Working),
        EnqueueError::Store(error) => push::error_from_store(error, &task.to_string()),
    })
}

/// The reason why a message was not enqueued.
pub(crate) enum EnqueueError {
    Submit(SubmitError),
    Store(store::Error),
}

impl From<SubmitError> for EnqueueError {
    fn from(error: SubmitError) -> Self {
        Self::Submit(error)
    }
}

impl From<store::Error> for EnqueueError {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}
