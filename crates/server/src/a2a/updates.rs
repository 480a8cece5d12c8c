//! Following a task: all that has happened, then what happens, until it has ended or asks something. Everything is read
//! from the tables: it makes no difference who runs the task, nor whether anybody has been stopped meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use ::a2a::types::{Message, SendMessageRequest, StreamResponse, SubscribeToTaskRequest, Task};
use ::a2a::{Error, Kind, Updates, Version};
use model::UserId;
use model::execution::Standing;
use serde::Deserialize;
use store::Acknowledge;
use store::a2a::Run;
use store::executions::{OfTask, Whose};
use supervisor::{Account, Follower, Told};
use uuid::Uuid;

use super::caller::Caller;
use super::cards::Base;
use super::limits::Open;
use super::render::{Form, Story};
use super::{faults, files, send};
use crate::App;

/// How long a message is waited for that would be all there is to tell.
const PATIENCE: Duration = Duration::from_millis(500);

/// Somebody who follows one task.
pub(crate) struct Following {
    app: App,
    base: Base,
    owner: UserId,
    agent_id: String,
    task: Uuid,
    story: Story,
    /// The execution that is at it.
    run: Run,
    follower: Follower,
    ready: VecDeque<StreamResponse>,
    /// It asks, and shall be followed when it goes on.
    waits: bool,
    /// The place of the stream that it is.
    _place: Option<Open>,
}

impl Following {
    /// Reads all that has happened to a task of the user. [`store::Error::NotFound`]: there is none.
    pub(crate) async fn begin(
        app: &App,
        base: &Base,
        owner: UserId,
        agent_id: &str,
        task: Uuid,
    ) -> store::Result<Self> {
        Self::begin_before(app, base, owner, agent_id, task, None).await
    }

    /// Reads what has happened before this execution, and that there is one: what it does is told next, however fast it was.
    async fn begin_before(
        app: &App,
        base: &Base,
        owner: UserId,
        agent_id: &str,
        task: Uuid,
        fresh: Option<Uuid>,
    ) -> store::Result<Self> {
        let mut reader = app.store().reader().await?;
        let runs = store::a2a::runs(&mut reader, owner, agent_id, task).await?;
        let mut asked = store::a2a::messages(&mut reader, owner, agent_id, task).await?;
        drop(reader);
        let mut runs = runs.into_iter();
        let first = runs.next().ok_or(store::Error::NotFound)?;
        let its = extract(&mut asked, &first);
        let mut this = Self::new(app, base, owner, first, its);
        loop {
            let is_fresh = fresh == Some(this.run.execution.id);
            this.catch_up(is_fresh).await?;
            let Some(run) = runs.next() else { break };
            let its = extract(&mut asked, &run);
            this.follow(run, its);
        }
        // It is all in the first thing that is told.
        this.ready.clear();
        Ok(this)
    }

    /// A task that was begun with this message, and what happened to it.
    pub(crate) async fn of_one(
        app: &App,
        base: &Base,
        owner: UserId,
        (task, message): (OfTask, store::a2a::Message),
        account: &Account,
    ) -> store::Result<Self> {
        let execution = account.execution().clone();
        let artifacts = account.artifacts().to_vec();
        let run = Run { task, execution, artifacts, truncated: account.is_truncated() };
        let mut this = Self::new(app, base, owner, run, vec![message]);
        this.follower.knows_all(account);
        this.catch_up(false).await?;
        this.ready.clear();
        Ok(this)
    }

    fn new(app: &App, base: &Base, owner: UserId, first: Run, asked: Vec<store::a2a::Message>) -> Self {
        let agent_id = first.execution.agent_id.clone();
        let entry = app.supervisor().agent(&agent_id);
        let form = Form { answers_late: entry.is_some_and(|entry| entry.agent.answers_late()), in_short: false };
        let mut story = Story::new(first.task.clone(), form);
        let follower = begin_run(app, &mut story, owner, &first, asked);
        Self {
            app: app.clone(),
            base: base.clone(),
            owner,
            agent_id,
            task: first.task.id,
            story,
            run: first,
            follower,
            ready: VecDeque::new(),
            waits: false,
            _place: None,
        }
    }

    /// Hears what the run has done so far, or only the first of it, which is that it waits.
    async fn catch_up(&mut self, only_first: bool) -> store::Result<()> {
        while let Some(told) = self.follower.next_so_far().await? {
            self.hear(told).await?;
            if only_first {
                break;
            }
        }
        Ok(())
    }

    /// The task as it stands.
    pub(crate) fn task(&self, history_length: Option<i32>) -> Task {
        self.story.task(history_length)
    }

    pub(crate) fn story(&self) -> &Story {
        &self.story
    }

    /// The last of its executions.
    pub(crate) fn execution(&self) -> Uuid {
        self.run.execution.id
    }

    /// Whether this execution of it has ended.
    pub(crate) fn is_past(&self, execution: Uuid) -> bool {
        self.run.execution.id != execution || self.run.execution.is_ended()
    }

    /// How it stands, as far as it was told.
    pub(crate) fn standing(&self) -> Standing {
        self.run.standing()
    }

    /// The next thing that happens; nothing once the task has ended or asks.
    pub(crate) async fn next(&mut self) -> store::Result<Option<StreamResponse>> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(Some(update));
            }
            let Some(told) = self.follower.next().await? else { return Ok(None) };
            self.hear(told).await?;
        }
    }

    /// Waits a moment for something that is more than a state. All that is heard meanwhile is told next.
    async fn until_begun(&mut self) -> store::Result<()> {
        let end = tokio::time::Instant::now() + PATIENCE;
        while !self.story.has_begun() {
            // Only the waiting is cut short: what was heard is told.
            let Ok(told) = tokio::time::timeout_at(end, self.follower.next()).await else { break };
            let Some(told) = told? else { break };
            self.hear(told).await?;
        }
        Ok(())
    }

    /// Waits until a task that asks goes on, or does not want to any more.
    pub(crate) async fn go_on(&mut self) -> store::Result<()> {
        let bell = self.app.supervisor().bell(self.run.execution.id);
        loop {
            let rings = bell.next();
            let mut reader = self.app.store().reader().await?;
            let run = store::a2a::task(&mut reader, self.owner, &self.agent_id, self.task).await?;
            if run.execution.id != self.run.execution.id {
                // One after the other: what came between is told too.
                let runs = store::a2a::runs(&mut reader, self.owner, &self.agent_id, self.task).await?;
                let asked = store::a2a::messages(&mut reader, self.owner, &self.agent_id, self.task).await?;
                drop(reader);
                let this = runs.iter().position(|run| run.execution.id == self.run.execution.id);
                let run = runs.into_iter().nth(this.map_or(0, |at| at + 1)).unwrap_or(run);
                let asked = asked.into_iter().filter(|message| message.execution_id == run.execution.id).collect();
                self.follow(run, asked);
                return Ok(());
            }
            drop(reader);
            if !run.standing().is_asking() {
                self.run = run;
                self.ready.extend(self.story.end(&self.run, Vec::new()));
                return Ok(());
            }
            rings.await;
        }
    }

    /// From now on this execution is followed.
    fn follow(&mut self, run: Run, asked: Vec<store::a2a::Message>) {
        self.follower = begin_run(&self.app, &mut self.story, self.owner, &run, asked);
        self.run = run;
    }

    async fn hear(&mut self, told: Told) -> store::Result<()> {
        match told {
            Told::Event(event) => self.ready.extend(self.story.tell(&event)),
            Told::Usage(_) => {}
            Told::End(execution) => {
                if !self.run.execution.is_ended() {
                    // What it has left is not known to those who follow.
                    let mut reader = self.app.store().reader().await?;
                    self.run = store::a2a::run(&mut reader, self.owner, &self.agent_id, execution.id).await?;
                }
                let files = files::parts(&self.app, &self.base, &self.run).await;
                self.ready.extend(self.story.end(&self.run, files));
            }
        }
        Ok(())
    }

    /// Tells this first, and then what happens.
    fn updates(self, first: StreamResponse) -> Updates {
        // A message is all there is to tell.
        let rest = (!matches!(first, StreamResponse::Message(_))).then_some(self);
        let state = Some((Some(first), rest));
        let updates = futures::stream::unfold(state, |state| async move {
            let (first, following) = state?;
            if let Some(first) = first {
                return Some((Ok(first), Some((None, following))));
            }
            let mut following = following?;
            let stopping = following.app.stopping().clone();
            // The task goes on without those who follow, and they come back to it.
            match stopping.run_until_cancelled(following.further()).await? {
                Ok(Some(update)) => Some((Ok(update), Some((None, Some(following))))),
                Ok(None) | Err(store::Error::NotFound) => None,
                Err(error) => Some((Err(faults::from_store(error, &following.task.to_string())), None)),
            }
        });
        Box::pin(updates)
    }

    /// The next thing that happens. A task that asked when it was first told is waited for.
    async fn further(&mut self) -> store::Result<Option<StreamResponse>> {
        if self.waits {
            self.waits = false;
            self.go_on().await?;
        }
        self.next().await
    }
}

/// The next execution of a story, and who follows it.
fn begin_run(app: &App, story: &mut Story, owner: UserId, run: &Run, asked: Vec<store::a2a::Message>) -> Follower {
    let asked = asked.iter().filter_map(|asked| Message::deserialize(&asked.message).ok());
    story.begin(run, asked);
    let mut follower = app.supervisor().follow(Whose::Users(owner), run.execution.id, 0);
    if run.execution.is_ended() {
        follower.knows(run.execution.clone());
    }
    follower
}

/// What this execution was asked.
fn extract(asked: &mut Vec<store::a2a::Message>, run: &Run) -> Vec<store::a2a::Message> {
    asked.extract_if(.., |message| message.execution_id == run.execution.id).collect()
}

/// A place for one more stream.
fn place(app: &App, caller: &Caller) -> Result<Open, Error> {
    let place = app.a2a().streams.open(caller.user.id, &caller.entry.agent.id);
    place.ok_or_else(|| Error::new(Kind::Busy, "you have too many streams open with this agent; close some"))
}

/// What happens to a task that is begun, or goes on, with a message.
pub(crate) async fn stream(
    app: &App,
    caller: &Caller,
    base: &Base,
    request: SendMessageRequest,
) -> Result<Updates, Error> {
    let history_length = request.configuration.as_ref().and_then(|configuration| configuration.history_length);
    let place = place(app, caller)?;
    let sent = send::submit(app, caller, request, Acknowledge::Synced).await?;
    let task = sent.task;
    let fault = |error| faults::from_store(error, &task.to_string());
    let owner = caller.user.id;
    let agent_id = &caller.entry.agent.id;
    let following = Following::begin_before(app, base, owner, agent_id, task, Some(sent.execution)).await;
    let mut following = following.map_err(fault)?;
    following._place = Some(place);
    let first = StreamResponse::Task(following.task(history_length));
    if caller.entry.runner.answers_by_message() && sent.is_first() {
        following.until_begun().await.map_err(fault)?;
    }
    let alone = following.story.answer().map(StreamResponse::Message);
    Ok(following.updates(alone.unwrap_or(first)))
}

/// What happens to a task from now on.
pub(crate) async fn subscribe(
    app: &App,
    caller: &Caller,
    base: &Base,
    request: SubscribeToTaskRequest,
) -> Result<Updates, Error> {
    let task = faults::task_id(&request.id)?;
    let place = place(app, caller)?;
    let following = Following::begin(app, base, caller.user.id, &caller.entry.agent.id, task).await;
    let mut following = following.map_err(|error| faults::from_store(error, &request.id))?;
    let standing = following.standing();
    // In 0.3 whoever comes too late is told how it ended.
    if standing.is_final() && caller.version == Version::V10 {
        let message = format!("the task has ended: it is {standing}");
        return Err(Error::new(Kind::UnsupportedOperation, message));
    }
    following.waits = standing.is_asking();
    following._place = Some(place);
    let first = StreamResponse::Task(following.task(None));
    Ok(following.updates(first))
}
