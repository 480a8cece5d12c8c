//! Follows a task: first its history, then its updates, until it ends or awaits input.
//!
//! All events are read from the database, so the follower is independent of the node that runs the task and of
//! restarts.

use std::collections::VecDeque;
use std::time::Duration;

use ::a2a::types::{Message, SendMessageRequest, StreamResponse, SubscribeToTaskRequest, Task};
use ::a2a::{Error, ErrorKind, UpdateStream, Version};
use model::UserId;
use model::execution::PublicStatus;
use serde::Deserialize;
use store::Acknowledge;
use store::a2a::A2aRun;
use store::executions::{A2aTaskRef, OwnerScope};
use supervisor::{ExecutionFollower, FinishedRun, FollowEvent};
use uuid::Uuid;

use super::caller::A2aCaller;
use super::cards::BaseUrl;
use super::projection::{ProjectionOptions, TaskProjection};
use super::{errors, files, send};
use crate::App;
use crate::open_streams::{OpenStream, StreamOwner};

/// The time to wait for a message that would be the whole answer.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_millis(500);

/// Follows one task.
pub(crate) struct TaskFollower {
    app: App,
    base: BaseUrl,
    owner: UserId,
    agent_id: String,
    task: Uuid,
    projection: TaskProjection,
    /// The current run of the task.
    run: A2aRun,
    run_follower: ExecutionFollower,
    /// The updates that [`Self::next`] returns before it waits for further events.
    ready: VecDeque<StreamResponse>,
    /// True if the task awaits input and the stream continues with its next run.
    awaits_next_run: bool,
    /// Counts the stream until the follower is dropped.
    _open_stream: Option<OpenStream>,
}

impl TaskFollower {
    /// Reads the whole history of a task of the user with this agent; later updates come from [`Self::next`]. Fails
    /// with [`store::Error::NotFound`] if the task does not exist. Also fails if the database fails.
    pub(crate) async fn start(
        app: &App,
        base: &BaseUrl,
        owner: UserId,
        agent_id: &str,
        task: Uuid,
    ) -> store::Result<Self> {
        Self::start_before(app, base, owner, agent_id, task, None).await
    }

    /// Reads the history of all runs of a task of the user. Of the execution `fresh` only the first event is read, so
    /// that its updates follow, even if it has already ended. The updates of the history are discarded. Fails with
    /// [`store::Error::NotFound`] if the task does not exist, and if the database fails.
    async fn start_before(
        app: &App,
        base: &BaseUrl,
        owner: UserId,
        agent_id: &str,
        task: Uuid,
        fresh: Option<Uuid>,
    ) -> store::Result<Self> {
        let mut reader = app.store().reader().await?;
        let runs = store::a2a::runs(&mut reader, owner, agent_id, task).await?;
        let mut messages = store::a2a::messages(&mut reader, owner, agent_id, task).await?;
        drop(reader);
        let mut runs = runs.into_iter();
        let first = runs.next().ok_or(store::Error::NotFound)?;
        let run_messages = take_messages(&mut messages, &first);
        let mut this = Self::new(app, base, owner, first, run_messages);
        loop {
            let is_fresh = fresh == Some(this.run.execution.id);
            this.catch_up(is_fresh).await?;
            let Some(run) = runs.next() else { break };
            let run_messages = take_messages(&mut messages, &run);
            this.switch_to(run, run_messages);
        }
        // The first update contains the whole history.
        this.ready.clear();
        Ok(this)
    }

    /// Returns a follower of a task that started with this message and has one finished run. Its events are already
    /// applied, so no updates follow. The events are taken from `finished_run`. Fails if the database fails.
    pub(crate) async fn from_finished_run(
        app: &App,
        base: &BaseUrl,
        owner: UserId,
        (task, message): (A2aTaskRef, store::a2a::A2aTaskMessage),
        finished_run: &FinishedRun,
    ) -> store::Result<Self> {
        let execution = finished_run.execution().clone();
        let artifacts = finished_run.artifacts().to_vec();
        let run = A2aRun { task, execution, artifacts, truncated: finished_run.is_truncated() };
        let mut this = Self::new(app, base, owner, run, vec![message]);
        this.run_follower.set_finished_run(finished_run);
        this.catch_up(false).await?;
        this.ready.clear();
        Ok(this)
    }

    /// Returns a follower of the first run, before any of its events. `messages` are those of the run. If the agent
    /// does not exist any more, all its output counts as the answer.
    fn new(app: &App, base: &BaseUrl, owner: UserId, first: A2aRun, messages: Vec<store::a2a::A2aTaskMessage>) -> Self {
        let agent_id = first.execution.agent_id.clone();
        let entry = app.supervisor().agent(&agent_id);
        let options = ProjectionOptions {
            answers_at_end: entry.is_some_and(|entry| entry.agent.answers_at_end()),
            without_artifacts: false,
        };
        let mut projection = TaskProjection::new(first.task.clone(), options);
        let run_follower = begin_run(app, &mut projection, owner, &first, messages);
        Self {
            app: app.clone(),
            base: base.clone(),
            owner,
            agent_id,
            task: first.task.id,
            projection,
            run: first,
            run_follower,
            ready: VecDeque::new(),
            awaits_next_run: false,
            _open_stream: None,
        }
    }

    /// Applies the existing events of the run and queues their updates. With `only_first` applies only the first event,
    /// which is the queued state. Fails if the database fails or the run is deleted.
    async fn catch_up(&mut self, only_first: bool) -> store::Result<()> {
        while let Some(event) = self.run_follower.next_existing().await? {
            self.apply(event).await?;
            if only_first {
                break;
            }
        }
        Ok(())
    }

    /// Returns the task in its current state. `None` means the whole history.
    pub(crate) fn task(&self, history_length: Option<i32>) -> Task {
        self.projection.task(history_length)
    }

    /// Returns the projection of the task.
    pub(crate) fn projection(&self) -> &TaskProjection {
        &self.projection
    }

    /// Returns the last execution of the task.
    pub(crate) fn execution(&self) -> Uuid {
        self.run.execution.id
    }

    /// Returns whether this execution has ended, or the follower is at another execution of the task.
    pub(crate) fn is_past(&self, execution: Uuid) -> bool {
        self.run.execution.id != execution || self.run.execution.is_ended()
    }

    /// Returns the status of the current run as it was last read.
    pub(crate) fn public_status(&self) -> PublicStatus {
        self.run.public_status()
    }

    /// Returns the next queued update, or waits for one. Returns `None` after the last update of the current run, when
    /// the task has ended or awaits input. Fails if the database fails or the run is deleted.
    pub(crate) async fn next(&mut self) -> store::Result<Option<StreamResponse>> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(Some(update));
            }
            let Some(event) = self.run_follower.next().await? else { return Ok(None) };
            self.apply(event).await?;
        }
    }

    /// Waits at most half a second until the task has an answer, an artifact or a status message, or the run has ended.
    /// The updates of all events until then are queued. Fails if the database fails or the run is deleted.
    async fn wait_for_content(&mut self) -> store::Result<()> {
        let deadline = tokio::time::Instant::now() + FIRST_MESSAGE_TIMEOUT;
        while !self.projection.has_content() {
            // The timeout covers only the wait. Received events are always applied.
            let Ok(event) = tokio::time::timeout_at(deadline, self.run_follower.next()).await else { break };
            let Some(event) = event? else { break };
            self.apply(event).await?;
        }
        Ok(())
    }

    /// Waits without a time limit until a task that awaits input continues or is cancelled. Then switches to the run
    /// after the current one, or queues the final update. Fails if the database fails or the task does not exist any
    /// more.
    pub(crate) async fn wait_for_next_run(&mut self) -> store::Result<()> {
        let notifier = self.app.supervisor().change_notifier(self.run.execution.id);
        loop {
            let changed = notifier.changed();
            let mut reader = self.app.store().reader().await?;
            let run = store::a2a::current_run(&mut reader, self.owner, &self.agent_id, self.task).await?;
            if run.execution.id != self.run.execution.id {
                // Continues with the run after the current one, so that no run is skipped.
                let runs = store::a2a::runs(&mut reader, self.owner, &self.agent_id, self.task).await?;
                let messages = store::a2a::messages(&mut reader, self.owner, &self.agent_id, self.task).await?;
                drop(reader);
                let current = runs.iter().position(|run| run.execution.id == self.run.execution.id);
                let run = runs.into_iter().nth(current.map_or(0, |at| at + 1)).unwrap_or(run);
                let messages =
                    messages.into_iter().filter(|message| message.execution_id == run.execution.id).collect();
                self.switch_to(run, messages);
                return Ok(());
            }
            drop(reader);
            if !run.public_status().awaits_input() {
                self.run = run;
                self.ready.extend(self.projection.end_run(&self.run, Vec::new()));
                return Ok(());
            }
            changed.await;
        }
    }

    /// Switches to the next run of the task.
    fn switch_to(&mut self, run: A2aRun, messages: Vec<store::a2a::A2aTaskMessage>) {
        self.run_follower = begin_run(&self.app, &mut self.projection, self.owner, &run, messages);
        self.run = run;
    }

    /// Applies an event and queues its updates. Usage is ignored. At the end of a run it includes the files of the run.
    /// It reads the run again for them, unless it is already known as ended. Fails if the database fails or the run is
    /// deleted.
    async fn apply(&mut self, event: FollowEvent) -> store::Result<()> {
        match event {
            FollowEvent::Event(event) => self.ready.extend(self.projection.apply(&event)),
            FollowEvent::Usage(_) => {}
            FollowEvent::End(execution) => {
                if !self.run.execution.is_ended() {
                    // Followers do not know the artifacts of the run.
                    let mut reader = self.app.store().reader().await?;
                    self.run =
                        store::a2a::run_by_execution(&mut reader, self.owner, &self.agent_id, execution.id).await?;
                }
                let files = files::file_parts(&self.app, &self.base, &self.run).await;
                self.ready.extend(self.projection.end_run(&self.run, files));
            }
        }
        Ok(())
    }

    /// Returns a stream of `first` and the following updates. A message is the only update. The stream ends when the
    /// run ends, the task is deleted or the server stops. Any other failure of the database is its last item.
    fn into_updates(self, first: StreamResponse) -> UpdateStream {
        // A message is the only update.
        let rest = (!matches!(first, StreamResponse::Message(_))).then_some(self);
        let state = Some((Some(first), rest));
        let updates = futures::stream::unfold(state, |state| async move {
            let (first, follower) = state?;
            if let Some(first) = first {
                return Some((Ok(first), Some((None, follower))));
            }
            let mut follower = follower?;
            let stopping = follower.app.stopping().clone();
            // If the server stops, the stream ends. The task continues, and clients can subscribe again.
            match stopping.run_until_cancelled(follower.next_or_next_run()).await? {
                Ok(Some(update)) => Some((Ok(update), Some((None, Some(follower))))),
                Ok(None) | Err(store::Error::NotFound) => None,
                Err(error) => Some((Err(errors::from_store(error, &follower.task.to_string())), None)),
            }
        });
        Box::pin(updates)
    }

    /// Returns the next update. If the task awaits input at the start of the stream, waits for its next run first.
    async fn next_or_next_run(&mut self) -> store::Result<Option<StreamResponse>> {
        if self.awaits_next_run {
            self.awaits_next_run = false;
            self.wait_for_next_run().await?;
        }
        self.next().await
    }
}

/// Begins the next run of `projection` and returns a follower of its events, from the first one. The follower of an
/// ended run does not wait for more. Stored messages that cannot be parsed are left out.
fn begin_run(
    app: &App,
    projection: &mut TaskProjection,
    owner: UserId,
    run: &A2aRun,
    messages: Vec<store::a2a::A2aTaskMessage>,
) -> ExecutionFollower {
    let messages = messages.iter().filter_map(|message| Message::deserialize(&message.message).ok());
    projection.begin_run(run, messages);
    let mut follower = app.supervisor().follow(OwnerScope::User(owner), run.execution.id, 0);
    if run.execution.is_ended() {
        follower.set_ended(run.execution.clone());
    }
    follower
}

/// Removes and returns the messages of this run.
fn take_messages(messages: &mut Vec<store::a2a::A2aTaskMessage>, run: &A2aRun) -> Vec<store::a2a::A2aTaskMessage> {
    messages.extract_if(.., |message| message.execution_id == run.execution.id).collect()
}

/// Counts one more stream of the caller. Fails with `Busy` if the limit is reached.
pub(crate) fn open_stream(app: &App, caller: &A2aCaller) -> Result<OpenStream, Error> {
    let owner = match caller.is_anonymous {
        true => StreamOwner::Anonymous(caller.entry.agent.id.clone()),
        false => StreamOwner::User(caller.user.id),
    };
    app.open_stream(owner).map_err(|reached| {
        let message = match caller.is_anonymous {
            true => "too many anonymous callers have open streams with this agent; try again later".to_owned(),
            false => reached.to_string(),
        };
        Error::new(ErrorKind::Busy, message)
    })
}

/// Handles `SendStreamingMessage`: sends a message and returns the task and its updates until the run ends. If the
/// agent may answer with a message, waits at most half a second for it in a new task. That message is then the only
/// update.
///
/// Fails if the caller has too many streams, like [`send::submit`], or if the database fails.
pub(crate) async fn stream(
    app: &App,
    caller: &A2aCaller,
    base: &BaseUrl,
    request: SendMessageRequest,
) -> Result<UpdateStream, Error> {
    let history_length = request.configuration.as_ref().and_then(|configuration| configuration.history_length);
    let open_stream = open_stream(app, caller)?;
    let sent = send::submit(app, caller, request, Acknowledge::Synced).await?;
    let task = sent.task;
    let to_error = |error| errors::from_store(error, &task.to_string());
    let owner = caller.user.id;
    let agent_id = &caller.entry.agent.id;
    let follower = TaskFollower::start_before(app, base, owner, agent_id, task, Some(sent.execution)).await;
    let mut follower = follower.map_err(to_error)?;
    follower._open_stream = Some(open_stream);
    let first = StreamResponse::Task(follower.task(history_length));
    if caller.entry.runner.answers_by_message() && sent.is_first() {
        follower.wait_for_content().await.map_err(to_error)?;
    }
    let only_message = follower.projection.answer().map(StreamResponse::Message);
    Ok(follower.into_updates(only_message.unwrap_or(first)))
}

/// Handles `SubscribeToTask`: returns the task and its updates from now on. If the task awaits input, the stream
/// continues with its next run. For an ended task in 0.3, only the task is returned.
///
/// Fails with `Busy` if the caller has too many streams, and with `UnsupportedOperation` if the task has ended in 1.x.
/// Fails if the task does not exist or the database fails.
pub(crate) async fn subscribe(
    app: &App,
    caller: &A2aCaller,
    base: &BaseUrl,
    request: SubscribeToTaskRequest,
) -> Result<UpdateStream, Error> {
    let task = errors::parse_task_id(&request.id)?;
    let open_stream = open_stream(app, caller)?;
    let follower = TaskFollower::start(app, base, caller.user.id, &caller.entry.agent.id, task).await;
    let mut follower = follower.map_err(|error| errors::from_store(error, &request.id))?;
    let status = follower.public_status();
    // In 0.3 subscribing to an ended task returns its final state.
    if status.is_final() && caller.version == Version::V10 {
        let message = format!("the task has ended with status {status}");
        return Err(Error::new(ErrorKind::UnsupportedOperation, message));
    }
    follower.awaits_next_run = status.awaits_input();
    follower._open_stream = Some(open_stream);
    let first = StreamResponse::Task(follower.task(None));
    Ok(follower.into_updates(first))
}
