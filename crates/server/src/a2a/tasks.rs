//! Gets, lists and cancels tasks.

use std::time::Duration;

use ::a2a::types::{self, CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, Task, TaskState};
use ::a2a::{Error, ErrorKind};
use jiff::Timestamp;
use model::execution::PublicStatus;
use serde::Deserialize;
use store::Conn;
use store::a2a::{A2aRun, A2aTaskFilter, A2aTaskMessage};
use store::executions::OwnerScope;
use store::page::Cursor;
use uuid::Uuid;

use super::caller::A2aCaller;
use super::cards::BaseUrl;
use super::projection::{MAX_QUESTION_BYTES, ProjectionOptions, TaskProjection, public_status};
use super::updates::TaskFollower;
use super::{contexts, errors};
use crate::App;

/// The default number of tasks on a page.
const DEFAULT_PAGE_SIZE: i32 = 50;
/// The size at which a page ends, in bytes. The remaining tasks are on the next page.
const MAX_PAGE_BYTES: usize = 16 << 20;
/// The time to wait for the end of a task after the grace period of its agent.
const CANCEL_MARGIN: Duration = Duration::from_secs(5);
/// The maximum number of attempts to cancel a task that continues concurrently.
const MAX_CANCEL_ATTEMPTS: usize = 3;

/// Handles `GetTask`. Returns the task of this user with this agent, with its artifacts and the last `history_length`
/// messages. Fails with `TaskNotFound` if the task does not exist, or if the database fails.
pub(crate) async fn get(app: &App, caller: &A2aCaller, base: &BaseUrl, request: GetTaskRequest) -> Result<Task, Error> {
    let task = errors::parse_task_id(&request.id)?;
    let follower = TaskFollower::start(app, base, caller.user.id, &caller.entry.agent.id, task).await;
    Ok(follower.map_err(|error| errors::from_store(error, &request.id))?.task(request.history_length))
}

/// Handles `ListTasks`: returns the tasks of the user with this agent, the last changed first. Filters by context,
/// status and time of change; an unspecified status means all. The default page size is 50. Artifacts are included only
/// on request.
///
/// A page ends early when it reaches about 16 MiB; tasks that are deleted meanwhile are left out. Fails if the page
/// token, the time or the context id is invalid, or the database fails.
pub(crate) async fn list(
    app: &App,
    caller: &A2aCaller,
    base: &BaseUrl,
    request: ListTasksRequest,
) -> Result<ListTasksResponse, Error> {
    let page_size = request.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
    let cursor = match request.page_token.as_deref().filter(|token| !token.is_empty()) {
        Some(token) => {
            let invalid = |_| Error::invalid("pageToken", "must be the nextPageToken of an earlier response");
            Some(Cursor::parse(token).map_err(invalid)?)
        }
        None => None,
    };
    let statuses = match &request.status {
        None | Some(TaskState::Unspecified) => Vec::new(),
        Some(state) => public_status(state).into_iter().collect(),
    };
    let changed_since = match request.status_timestamp_after {
        None => None,
        Some(time) => {
            let invalid = |_| Error::invalid("statusTimestampAfter", "must be a valid time");
            Some(Timestamp::from_microsecond(time.timestamp_micros()).map_err(invalid)?)
        }
    };
    let context_id = request.context_id.filter(|context| !context.is_empty());
    if context_id.as_deref().is_some_and(|id| !contexts::is_valid_id(id)) {
        return Err(Error::invalid("contextId", contexts::CONTEXT_ID_RULE));
    }
    let filter = A2aTaskFilter { context_id, statuses, changed_since };
    let to_error = |error| errors::from_store(error, "");
    let owner = caller.user.id;
    let mut reader = app.store().owner_reader(owner).await.map_err(to_error)?;
    let agent_id = &caller.entry.agent.id;
    let listed = store::a2a::list_tasks(&mut reader, owner, agent_id, &filter, cursor.as_ref(), page_size.into());
    let (page, total) = listed.await.map_err(to_error)?;
    // Holding one reader while waiting for another can deadlock.
    drop(reader);
    let mut tasks = Vec::with_capacity(page.rows.len());
    let mut bytes = 0;
    let mut next = page.next;
    let last = page.rows.len().saturating_sub(1);
    for (at, run) in page.rows.iter().enumerate() {
        let task = if request.include_artifacts.unwrap_or_default() {
            TaskFollower::start(app, base, owner, agent_id, run.task.id)
                .await
                .map(|task| task.task(request.history_length))
        } else {
            match app.store().reader().await {
                Ok(mut reader) => task_summary(&mut reader, caller, run, request.history_length).await,
                Err(error) => Err(error),
            }
        };
        let task = match task {
            Ok(task) => task,
            // The task was removed concurrently.
            Err(store::Error::NotFound) => continue,
            Err(error) => return Err(to_error(error)),
        };
        bytes += approximate_size(&task);
        tasks.push(task);
        if bytes >= MAX_PAGE_BYTES && at < last {
            let sort = run.execution.last_state_change().as_microsecond();
            next = Some(Cursor { sort, id: run.execution.id.to_string() });
            break;
        }
    }
    Ok(ListTasksResponse {
        tasks,
        next_page_token: next.as_ref().map(Cursor::encode).unwrap_or_default(),
        page_size,
        total_size: i32::try_from(total).unwrap_or(i32::MAX),
    })
}

/// Returns a task without its artifacts. `last` is its last run; with a history length of zero no other run is read.
/// The output is read from the database only if the task awaits input and nothing else contains the question. Stored
/// messages that cannot be parsed are left out. Fails if the database fails.
async fn task_summary(
    conn: &mut Conn,
    caller: &A2aCaller,
    last: &A2aRun,
    history_length: Option<i32>,
) -> store::Result<Task> {
    let owner = caller.user.id;
    let agent_id = &caller.entry.agent.id;
    let id = last.task.id;
    let (runs, messages) = match history_length {
        Some(0) => (vec![last.clone()], Vec::new()),
        _ => {
            let runs = store::a2a::runs(conn, owner, agent_id, id).await?;
            (runs, store::a2a::messages(conn, owner, agent_id, id).await?)
        }
    };
    Ok(summary(conn, caller, &runs, &messages, SummaryEnd::Now).await?.task(history_length))
}

/// The end of a summary in the last run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SummaryEnd {
    /// All that is stored.
    Now,
    /// The event with this number, and the end of the run if it was known before.
    Event(i64),
    /// The first event.
    FirstEvent,
}

/// Computes a task without its artifacts from these runs, up to `end`. Fails if there are no runs or the database fails.
pub(crate) async fn summary(
    conn: &mut Conn,
    caller: &A2aCaller,
    runs: &[A2aRun],
    messages: &[A2aTaskMessage],
    end: SummaryEnd,
) -> store::Result<TaskProjection> {
    let first = runs.first().ok_or(store::Error::NotFound)?;
    let mut projection = TaskProjection::new(
        first.task.clone(),
        ProjectionOptions { without_artifacts: true, ..ProjectionOptions::default() },
    );
    for (at, run) in runs.iter().enumerate() {
        let run_messages = messages.iter().filter(|message| message.execution_id == run.execution.id);
        let run_messages = run_messages.filter_map(|message| types::Message::deserialize(&message.message).ok());
        projection.begin_run(run, run_messages);
        let end = if at + 1 == runs.len() { end } else { SummaryEnd::Now };
        let until = match end {
            SummaryEnd::Now => i64::MAX,
            SummaryEnd::Event(seq) => seq,
            SummaryEnd::FirstEvent => 1,
        };
        for event in store::executions::status_events(conn, run.execution.id).await? {
            if event.seq <= until {
                projection.apply(&event);
            }
        }
        if end == SummaryEnd::FirstEvent || !run.execution.is_ended() {
            continue;
        }
        if run.public_status().awaits_input() && !projection.has_content() {
            let stream = if caller.entry.agent.answers_at_end() { "file" } else { "stdout" };
            let end = store::executions::output_end(conn, run.execution.id, stream, MAX_QUESTION_BYTES).await?;
            projection.set_question_text(&end);
        }
        projection.end_run(run, Vec::new());
    }
    Ok(projection)
}

/// Returns the approximate encoded size of a task in bytes. It counts only the content of the history, the status
/// message and the artifacts, with bytes as base64.
fn approximate_size(task: &Task) -> usize {
    let messages = task.history.iter().flatten().chain(&task.status.message).map(message_size);
    let artifacts = task.artifacts.iter().flatten().flat_map(|artifact| &artifact.parts);
    messages.chain(artifacts.map(part_size)).sum()
}

/// Returns the approximate encoded size of the content of a message in bytes.
pub(crate) fn message_size(message: &types::Message) -> usize {
    message.parts.iter().map(part_size).sum()
}

fn part_size(part: &types::Part) -> usize {
    match &part.content {
        types::PartContent::Text(text) | types::PartContent::Url(text) => text.len(),
        types::PartContent::Raw(bytes) => bytes.len() * 4 / 3,
        types::PartContent::Data(value) => value.to_string().len(),
    }
}

/// Handles `CancelTask`: cancels a task and waits for its end, at most for the grace period of the agent and five
/// seconds. Returns the task, which may still be running after that or if the server stops. A task that asks for input
/// meanwhile is cancelled again.
///
/// Fails with `TaskNotCancelable` if the task has ended, ends with another status before the cancellation takes effect,
/// or three attempts fail. Fails if the task does not exist or the database fails.
pub(crate) async fn cancel(
    app: &App,
    caller: &A2aCaller,
    base: &BaseUrl,
    request: CancelTaskRequest,
) -> Result<Task, Error> {
    let task = errors::parse_task_id(&request.id)?;
    let to_error = |error| errors::from_store(error, &request.id);
    for _ in 0..MAX_CANCEL_ATTEMPTS {
        let run = match request_cancel(app, caller, task).await {
            Ok(Some(run)) => run,
            Ok(None) => return Err(not_cancelable(&request.id)),
            // The task changed its state concurrently.
            Err(store::Error::AlreadyEnded | store::Error::NotEnded) => continue,
            Err(error) => return Err(to_error(error)),
        };
        let execution = &run.execution;
        if run.public_status() == PublicStatus::Cancelled
            && execution.ended().is_some_and(|end| end.exit.outcome.is_some())
        {
            app.supervisor().notify_followers(execution.id);
        } else {
            let end_timeout = caller.entry.agent.grace.duration() + CANCEL_MARGIN;
            let end = app.supervisor().wait(OwnerScope::User(caller.user.id), execution.id);
            let _ = tokio::time::timeout(end_timeout, app.stopping().run_until_cancelled(end)).await;
        }
        let follower = TaskFollower::start(app, base, caller.user.id, &caller.entry.agent.id, task).await;
        let follower = follower.map_err(to_error)?;
        match follower.public_status() {
            // The task asked for input before the cancellation took effect. It is cancelled again.
            status if status.awaits_input() => {}
            // The task ended before the cancellation took effect.
            status if status.is_final() && status != PublicStatus::Cancelled => break,
            _ => return Ok(follower.task(None)),
        }
    }
    Err(not_cancelable(&request.id))
}

/// Requests the cancellation of a task and returns its run, or `None` if the task has ended. A task that awaits input
/// is cancelled at once. A queued or running one is cancelled by the supervisor, which may take time.
///
/// Fails with [`store::Error::NotFound`] if the task does not exist. Fails with [`store::Error::AlreadyEnded`] or
/// [`store::Error::NotEnded`] if it changed its state concurrently. Fails if the database fails.
async fn request_cancel(app: &App, caller: &A2aCaller, task: Uuid) -> store::Result<Option<A2aRun>> {
    let owner = caller.user.id;
    let agent_id = caller.entry.agent.id.clone();
    let now = app.clock().now();
    let supervisor = app.supervisor().clone();
    let cancelled = app.store().owner_transaction(owner, async move |tx| {
        let run = store::a2a::current_run(tx, owner, &agent_id, task).await?;
        match run.public_status() {
            PublicStatus::InputRequired | PublicStatus::AuthRequired => {
                store::a2a::withdraw(tx, owner, &agent_id, task, now).await.map(Some)
            }
            PublicStatus::Waiting | PublicStatus::Working => {
                let scope = OwnerScope::User(owner);
                let execution = supervisor.cancel(tx, scope, run.execution.id).await?;
                Ok(Some(A2aRun { execution, ..run }))
            }
            _ => Ok(None),
        }
    });
    cancelled.await
}

/// Returns the error for a task that has already ended, with its id in the metadata.
fn not_cancelable(id: &str) -> Error {
    let mut error = Error::new(ErrorKind::TaskNotCancelable, "the task has already ended");
    error.metadata.insert("taskId".to_owned(), id.to_owned());
    error
}
