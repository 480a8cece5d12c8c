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
use store::a2a::{A2aRun, A2aTaskMessage};
use store::executions::{A2aTaskRef, EventPiece, ExecutionEvent, ExecutionEventKind, OwnerScope};
use supervisor::{ExecutionFollower, FinishedRun, FollowEvent};
use uuid::Uuid;

use super::caller::A2aCaller;
use super::cards::BaseUrl;
use super::projection::{MAX_QUESTION_BYTES, ProjectionOptions, TaskProjection, public_status};
use super::tasks::SummaryEnd;
use super::{errors, files, send, tasks};
use crate::App;
use crate::open_streams::{OpenStream, StreamOwner};

/// The size of a task that is sent as a whole in the first update, in bytes. Of a larger one, the artifacts follow as
/// updates. A stream whose client reads nothing may hold so much.
const MAX_SNAPSHOT_BYTES: usize = 16 << 10;
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
    /// The part of the task that the first update does not contain.
    replay: Option<Replay>,
    /// The pieces of an event with rich output so far.
    rich_output: String,
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
        let mut reader = app.store().reader().await?;
        let runs = store::a2a::runs(&mut reader, owner, agent_id, task).await?;
        let messages = store::a2a::messages(&mut reader, owner, agent_id, task).await?;
        drop(reader);
        Self::start_with(app, base, owner, (runs, messages), None).await
    }

    /// Reads the history of these runs of a task. Of the execution `fresh` only the first event is read, so that its
    /// updates follow, even if it has already ended. The updates of the history are discarded. Fails with
    /// [`store::Error::NotFound`] if there are no runs, and if the database fails.
    async fn start_with(
        app: &App,
        base: &BaseUrl,
        owner: UserId,
        (runs, mut messages): (Vec<A2aRun>, Vec<A2aTaskMessage>),
        fresh: Option<Uuid>,
    ) -> store::Result<Self> {
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

    /// Returns a follower for a stream and the task for its first update, with the last `history_length` messages. Of
    /// the execution `fresh` the task contains only the first event. The follower holds no artifacts and no history.
    ///
    /// The artifacts of a large task follow as updates, and only the last messages are part of it. Fails with
    /// [`store::Error::NotFound`] if the task does not exist, and if the database fails.
    async fn start_stream(
        app: &App,
        base: &BaseUrl,
        caller: &A2aCaller,
        task: Uuid,
        (fresh, history_length): (Option<Uuid>, Option<i32>),
    ) -> store::Result<(Self, Task)> {
        let owner = caller.user.id;
        let agent_id = &caller.entry.agent.id;
        let mut reader = app.store().reader().await?;
        let mut runs = store::a2a::runs(&mut reader, owner, agent_id, task).await?;
        let messages = store::a2a::messages(&mut reader, owner, agent_id, task).await?;
        if let Some(at) = runs.iter().position(|run| fresh == Some(run.execution.id)) {
            runs.truncate(at + 1);
        }
        let last = runs.last().ok_or(store::Error::NotFound)?.clone();
        let mut bytes = messages.iter().map(|message| message.message.to_string().len()).sum::<usize>();
        for run in runs.iter().filter(|run| fresh != Some(run.execution.id)) {
            let stored = store::executions::event_bytes(&mut reader, run.execution.id).await?;
            bytes = bytes.saturating_add(usize::try_from(stored).unwrap_or(0));
        }
        if bytes <= MAX_SNAPSHOT_BYTES {
            drop(reader);
            let mut this = Self::start_with(app, base, owner, (runs, messages), fresh).await?;
            let task = this.task(history_length);
            this.projection.forget_content();
            return Ok((this, task));
        }
        let (until, end) = match fresh {
            Some(_) => (1, SummaryEnd::FirstEvent),
            None => {
                let seq = store::executions::last_seq(&mut reader, last.execution.id).await?;
                (seq, SummaryEnd::Event(seq))
            }
        };
        let mut summary = tasks::summary(&mut reader, caller, &runs, &messages, end).await?;
        drop(reader);
        summary.shorten_history(MAX_SNAPSHOT_BYTES, tasks::message_size);
        let task = summary.task(history_length);
        let mut pending: VecDeque<_> = runs.into_iter().map(without_input).collect();
        let first = pending.pop_front().ok_or(store::Error::NotFound)?;
        let mut this = Self::new(app, base, owner, first, Vec::new());
        this.projection.forget_content();
        let awaits_input = fresh.is_none() && last.public_status().awaits_input();
        this.replay = Some(Replay { pending, until, awaits_input });
        Ok((this, task))
    }

    /// Returns a follower of a task that started with this message and has one finished run. Its events are already
    /// applied, so no updates follow. The events are taken from `finished_run`. Fails if the database fails.
    pub(crate) async fn from_finished_run(
        app: &App,
        base: &BaseUrl,
        owner: UserId,
        (task, message): (A2aTaskRef, A2aTaskMessage),
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
    fn new(app: &App, base: &BaseUrl, owner: UserId, first: A2aRun, messages: Vec<A2aTaskMessage>) -> Self {
        let agent_id = first.execution.agent_id.clone();
        let entry = app.supervisor().agent(&agent_id);
        let options = ProjectionOptions {
            answers_at_end: entry.is_some_and(|entry| entry.agent.answers_at_end()),
            ..ProjectionOptions::default()
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
            run: without_input(first),
            run_follower,
            ready: VecDeque::new(),
            awaits_next_run: false,
            replay: None,
            rich_output: String::new(),
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

    /// Returns the next queued update, or waits for one. A replayed task begins with its first run. Returns `None` after the last update of the current run, when
    /// the task has ended or awaits input. Fails if the database fails or the run is deleted.
    pub(crate) async fn next(&mut self) -> store::Result<Option<StreamResponse>> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                if self.ready.is_empty() {
                    // A stream that waits for its client holds no buffer.
                    self.ready = VecDeque::new();
                }
                return Ok(Some(update));
            }
            match self.run_follower.next().await? {
                Some(event) => self.apply(event).await?,
                None => match self.replay.as_mut().and_then(|replay| replay.pending.pop_front()) {
                    Some(run) => self.switch_to(run, Vec::new()),
                    None => return Ok(None),
                },
            }
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
    fn switch_to(&mut self, run: A2aRun, messages: Vec<A2aTaskMessage>) {
        self.run_follower = begin_run(&self.app, &mut self.projection, self.owner, &run, messages);
        self.run = without_input(run);
    }

    /// Applies an event and queues its updates. Usage is ignored. Output may be in pieces, and rich output is applied
    /// with its last piece. Of the updates that the first one already contains, only those of artifacts are queued.
    /// Fails if the database fails or the run is deleted.
    async fn apply(&mut self, event: FollowEvent) -> store::Result<()> {
        let (is_replayed, updates) = match event {
            FollowEvent::Event(event) => {
                (self.is_replayed(event.seq), self.projection.apply(&event).into_iter().collect())
            }
            FollowEvent::Piece(piece) => {
                (self.is_replayed(piece.event.seq), self.apply_piece(piece).into_iter().collect())
            }
            FollowEvent::Usage(_) => return Ok(()),
            FollowEvent::End(execution) => {
                let is_replayed = self.replay.as_ref().is_some_and(Replay::contains_end);
                (is_replayed, self.end_run(execution.id).await?)
            }
        };
        let is_new = |update: &StreamResponse| !is_replayed || matches!(update, StreamResponse::ArtifactUpdate(_));
        self.ready.extend(updates.into_iter().filter(is_new));
        Ok(())
    }

    /// Returns true if the first update contains the event with this number of the current run.
    fn is_replayed(&self, seq: i64) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.contains(seq))
    }

    /// Applies a piece of a long event and returns its update.
    fn apply_piece(&mut self, piece: EventPiece) -> Option<StreamResponse> {
        if piece.event.kind != ExecutionEventKind::RichOutput {
            return self.projection.apply(&piece.event);
        }
        self.rich_output.push_str(&piece.event.text);
        if !piece.is_last {
            return None;
        }
        let text = std::mem::take(&mut self.rich_output);
        self.projection.apply(&ExecutionEvent { text, ..piece.event })
    }

    /// Ends the current run with its files and returns the updates. Reads the run again for that, unless it is already
    /// known as ended. Fails if the database fails or the run is deleted.
    async fn end_run(&mut self, execution: Uuid) -> store::Result<Vec<StreamResponse>> {
        let lacks_question = self.projection.lacks_question();
        if !self.run.execution.is_ended() || lacks_question {
            let mut reader = self.app.store().reader().await?;
            if !self.run.execution.is_ended() {
                // Followers do not know the artifacts of the run.
                let run = store::a2a::run_by_execution(&mut reader, self.owner, &self.agent_id, execution).await?;
                self.run = without_input(run);
            }
            if lacks_question && self.run.public_status().awaits_input() {
                let stream = if self.answers_at_end() { "file" } else { "stdout" };
                let end = store::executions::output_end(&mut reader, execution, stream, MAX_QUESTION_BYTES).await?;
                self.projection.set_question_text(&end);
            }
        }
        let files = files::file_parts(&self.app, &self.base, &self.run).await;
        Ok(self.projection.end_run(&self.run, files))
    }

    fn answers_at_end(&self) -> bool {
        let entry = self.app.supervisor().agent(&self.agent_id);
        entry.is_some_and(|entry| entry.agent.answers_at_end())
    }

    /// Returns a stream of `first` and the following updates. A message is the only update. The stream ends when the
    /// run ends, the task is deleted or the server stops. Any other failure of the database is its last item.
    fn into_updates(self, first: StreamResponse) -> UpdateStream {
        // A message is the only update.
        let rest = (!matches!(first, StreamResponse::Message(_))).then(|| Box::new(self));
        let state = Some((Some(first), rest));
        let updates = futures::stream::unfold(state, |state| async move {
            let (first, follower) = state?;
            if let Some(first) = first {
                return Some((Ok(first), Some((None, follower))));
            }
            let mut follower = follower?;
            let stopping = follower.app.stopping().clone();
            // If the server stops, the stream ends. The task continues, and clients can subscribe again.
            // Boxed, so that a stream that is not read does not hold the state of the wait.
            let next = Box::pin(follower.next_or_next_run());
            match stopping.run_until_cancelled(next).await? {
                Ok(Some(update)) => Some((Ok(update), Some((None, Some(follower))))),
                Ok(None) | Err(store::Error::NotFound) => None,
                Err(error) => Some((Err(errors::from_store(error, &follower.task.to_string())), None)),
            }
        });
        Box::pin(updates)
    }

    /// Returns the next update. If the task awaits input at the start of the stream, waits for its next run before the
    /// first update after that start.
    async fn next_or_next_run(&mut self) -> store::Result<Option<StreamResponse>> {
        if self.awaits_next_run {
            if let Some(update) = self.next().await? {
                return Ok(Some(update));
            }
            self.awaits_next_run = false;
            self.wait_for_next_run().await?;
        }
        self.next().await
    }
}

/// The part of a large task before the start of its stream. Its artifacts are sent as updates.
struct Replay {
    /// The runs after the current one.
    pending: VecDeque<A2aRun>,
    /// The number of the last event of the last run that the first update contains.
    until: i64,
    /// The last run has ended because the task awaits input.
    awaits_input: bool,
}

impl Replay {
    /// Returns true if the first update contains the event with this number of the current run.
    fn contains(&self, seq: i64) -> bool {
        !self.pending.is_empty() || seq <= self.until
    }

    /// Returns true if the first update contains the end of the current run. The end of the whole task is sent again
    /// after its artifacts, so that every stream of an ended task ends with it.
    fn contains_end(&self) -> bool {
        !self.pending.is_empty() || self.awaits_input
    }
}

/// Returns the run without its input, which may be large and is not part of updates.
fn without_input(mut run: A2aRun) -> A2aRun {
    run.execution.input = String::new();
    run
}

/// Begins the next run of `projection` and returns a follower of its events, from the first one. The follower of an
/// ended run does not wait for more. Stored messages that cannot be parsed are left out.
fn begin_run(
    app: &App,
    projection: &mut TaskProjection,
    owner: UserId,
    run: &A2aRun,
    messages: Vec<A2aTaskMessage>,
) -> ExecutionFollower {
    let messages = messages.iter().filter_map(|message| Message::deserialize(&message.message).ok());
    projection.begin_run(run, messages);
    let mut follower = app.supervisor().follow(OwnerScope::User(owner), run.execution.id, 0).in_pieces();
    if run.execution.is_ended() {
        follower.set_ended(without_input(run.clone()).execution);
    }
    follower
}

/// Removes and returns the messages of this run.
fn take_messages(messages: &mut Vec<A2aTaskMessage>, run: &A2aRun) -> Vec<A2aTaskMessage> {
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
    let start = (Some(sent.execution), history_length);
    let (mut follower, first) = TaskFollower::start_stream(app, base, caller, task, start).await.map_err(to_error)?;
    follower._open_stream = Some(open_stream);
    if caller.entry.runner.answers_by_message() && sent.is_first() {
        follower.wait_for_content().await.map_err(to_error)?;
    }
    let only_message = follower.projection.answer().map(StreamResponse::Message);
    Ok(follower.into_updates(only_message.unwrap_or(StreamResponse::Task(first))))
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
    let started = TaskFollower::start_stream(app, base, caller, task, (None, None)).await;
    let (mut follower, first) = started.map_err(|error| errors::from_store(error, &request.id))?;
    let status = public_status(&first.status.state).unwrap_or(PublicStatus::Working);
    // In 0.3 subscribing to an ended task returns its final state.
    if status.is_final() && caller.version == Version::V10 {
        let message = format!("the task has ended with status {status}");
        return Err(Error::new(ErrorKind::UnsupportedOperation, message));
    }
    follower.awaits_next_run = status.awaits_input();
    follower._open_stream = Some(open_stream);
    Ok(follower.into_updates(StreamResponse::Task(first)))
}
