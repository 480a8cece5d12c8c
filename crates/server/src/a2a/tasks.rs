//! Tasks as they stand: one, many, and the wish that one shall end.

use std::time::Duration;

use ::a2a::types::{self, CancelTaskRequest, GetTaskRequest, ListTasksRequest, ListTasksResponse, Task, TaskState};
use ::a2a::{Error, Kind};
use jiff::Timestamp;
use model::execution::Standing;
use serde::Deserialize;
use store::Conn;
use store::a2a::{Filter, Run};
use store::executions::Whose;
use store::page::Cursor;
use uuid::Uuid;

use super::caller::Caller;
use super::cards::Base;
use super::render::{Form, Story, standing_of};
use super::updates::Following;
use super::{contexts, faults};
use crate::App;

/// Tasks a page, where nobody says how many.
const USUAL: i32 = 50;
/// A page that has come to so many bytes ends there: the rest is on the next one.
const MOST_BYTES: usize = 16 << 20;
/// How long an end is waited for after the agent's grace is over.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// How often a task is told to end that goes on in the moment in which it is told.
const TRIES: usize = 3;

pub(crate) async fn get(app: &App, caller: &Caller, base: &Base, request: GetTaskRequest) -> Result<Task, Error> {
    let task = faults::task_id(&request.id)?;
    let following = Following::begin(app, base, caller.user.id, &caller.entry.agent.id, task).await;
    Ok(following.map_err(|error| faults::from_store(error, &request.id))?.task(request.history_length))
}

/// The user's tasks with this agent, whose status has changed last first.
pub(crate) async fn list(
    app: &App,
    caller: &Caller,
    base: &Base,
    request: ListTasksRequest,
) -> Result<ListTasksResponse, Error> {
    let page_size = request.page_size.unwrap_or(USUAL);
    let cursor = match request.page_token.as_deref().filter(|token| !token.is_empty()) {
        Some(token) => {
            let wrong = |_| Error::invalid("pageToken", "must be the nextPageToken of an earlier answer");
            Some(Cursor::parse(token).map_err(wrong)?)
        }
        None => None,
    };
    let standings = match &request.status {
        None | Some(TaskState::Unspecified) => Vec::new(),
        Some(state) => standing_of(state).into_iter().collect(),
    };
    let changed_since = match request.status_timestamp_after {
        None => None,
        Some(time) => {
            let wrong = |_| Error::invalid("statusTimestampAfter", "must be a time that there is");
            Some(Timestamp::from_microsecond(time.timestamp_micros()).map_err(wrong)?)
        }
    };
    let context_id = request.context_id.filter(|context| !context.is_empty());
    if context_id.as_deref().is_some_and(|id| !contexts::is_one(id)) {
        return Err(Error::invalid("contextId", contexts::RULE));
    }
    let filter = Filter { context_id, standings, changed_since };
    let fault = |error| faults::from_store(error, "");
    let mut reader = app.store().reader().await.map_err(fault)?;
    let owner = caller.user.id;
    let agent_id = &caller.entry.agent.id;
    let listed = store::a2a::tasks(&mut reader, owner, agent_id, &filter, cursor.as_ref(), page_size.into());
    let (page, total) = listed.await.map_err(fault)?;
    // Who holds one reader and waits for another may wait for somebody who does the same.
    drop(reader);
    let mut tasks = Vec::with_capacity(page.rows.len());
    let mut bytes = 0;
    let mut next = page.next;
    let last = page.rows.len().saturating_sub(1);
    for (at, run) in page.rows.iter().enumerate() {
        let task = if request.include_artifacts.unwrap_or_default() {
            Following::begin(app, base, owner, agent_id, run.task.id)
                .await
                .map(|task| task.task(request.history_length))
        } else {
            match app.store().reader().await {
                Ok(mut reader) => in_short(&mut reader, caller, run, request.history_length).await,
                Err(error) => Err(error),
            }
        };
        let task = match task {
            Ok(task) => task,
            // It was removed in this moment.
            Err(store::Error::NotFound) => continue,
            Err(error) => return Err(fault(error)),
        };
        bytes += size(&task);
        tasks.push(task);
        if bytes >= MOST_BYTES && at < last {
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

/// A task without its artifacts: what an agent said at length is not even read.
async fn in_short(conn: &mut Conn, caller: &Caller, last: &Run, history_length: Option<i32>) -> store::Result<Task> {
    let owner = caller.user.id;
    let agent_id = &caller.entry.agent.id;
    let id = last.task.id;
    let (runs, asked) = match history_length {
        Some(0) => (vec![last.clone()], Vec::new()),
        _ => {
            let runs = store::a2a::runs(conn, owner, agent_id, id).await?;
            (runs, store::a2a::messages(conn, owner, agent_id, id).await?)
        }
    };
    let mut story = Story::new(last.task.clone(), Form { in_short: true, ..Form::default() });
    for run in &runs {
        let its = asked.iter().filter(|asked| asked.execution_id == run.execution.id);
        story.begin(run, its.filter_map(|asked| types::Message::deserialize(&asked.message).ok()));
        for event in store::executions::events_in_short(conn, run.execution.id).await? {
            story.tell(&event);
        }
        if !run.execution.is_ended() {
            continue;
        }
        if run.standing().is_asking() && !story.has_begun() {
            let stream = if caller.entry.agent.answers_late() { "file" } else { "stdout" };
            story.said(&store::executions::output(conn, run.execution.id, stream).await?);
        }
        story.end(run, Vec::new());
    }
    Ok(story.task(history_length))
}

/// About how long it is when it is written.
fn size(task: &Task) -> usize {
    let part = |part: &types::Part| match &part.content {
        types::PartContent::Text(text) | types::PartContent::Url(text) => text.len(),
        types::PartContent::Raw(bytes) => bytes.len() * 4 / 3,
        types::PartContent::Data(value) => value.to_string().len(),
    };
    let messages = task.history.iter().flatten().chain(&task.status.message).flat_map(|message| &message.parts);
    let artifacts = task.artifacts.iter().flatten().flat_map(|artifact| &artifact.parts);
    messages.chain(artifacts).map(part).sum()
}

/// Ends a task, and waits for that as long as its agent may take.
pub(crate) async fn cancel(app: &App, caller: &Caller, base: &Base, request: CancelTaskRequest) -> Result<Task, Error> {
    let task = faults::task_id(&request.id)?;
    let fault = |error| faults::from_store(error, &request.id);
    for _ in 0..TRIES {
        let run = match withdraw(app, caller, task).await {
            Ok(Some(run)) => run,
            Ok(None) => return Err(not_cancelable(&request.id)),
            // It asked, or was answered, in this moment.
            Err(store::Error::Ended | store::Error::NotEnded) => continue,
            Err(error) => return Err(fault(error)),
        };
        let execution = &run.execution;
        if run.standing() == Standing::Cancelled && execution.ended().is_some_and(|end| end.exit.outcome.is_some()) {
            app.supervisor().ring(execution.id);
        } else {
            let patience = caller.entry.agent.grace.duration() + LAST_PATIENCE;
            let end = app.supervisor().wait(Whose::Users(caller.user.id), execution.id);
            let _ = tokio::time::timeout(patience, app.stopping().run_until_cancelled(end)).await;
        }
        let following = Following::begin(app, base, caller.user.id, &caller.entry.agent.id, task).await;
        let following = following.map_err(fault)?;
        match following.standing() {
            // It asked before it heard of it, and nobody is going to answer.
            standing if standing.is_asking() => {}
            // It came to its own end before it heard of it.
            standing if standing.is_final() && standing != Standing::Cancelled => break,
            _ => return Ok(following.task(None)),
        }
    }
    Err(not_cancelable(&request.id))
}

/// Says that nobody wants a task any more; nothing where it has ended. [`store::Error::Ended`], [`store::Error::NotEnded`]:
/// it has gone on since it was looked at.
async fn withdraw(app: &App, caller: &Caller, task: Uuid) -> store::Result<Option<Run>> {
    let owner = caller.user.id;
    let agent_id = caller.entry.agent.id.clone();
    let now = app.clock().now();
    let supervisor = app.supervisor().clone();
    let asked = app.store().transaction(async move |tx| {
        let run = store::a2a::task(tx, owner, &agent_id, task).await?;
        match run.standing() {
            Standing::Asks | Standing::NeedsAccess => {
                store::a2a::withdraw(tx, owner, &agent_id, task, now).await.map(Some)
            }
            Standing::Waiting | Standing::Working => {
                let whose = Whose::Users(owner);
                let execution = supervisor.cancel(tx, whose, run.execution.id).await?;
                Ok(Some(Run { execution, ..run }))
            }
            _ => Ok(None),
        }
    });
    asked.await
}

fn not_cancelable(id: &str) -> Error {
    let mut error = Error::new(Kind::TaskNotCancelable, "the task has ended already");
    error.metadata.insert("taskId".to_owned(), id.to_owned());
    error
}
