//! A test bench: a scheduler with its own database, a manual clock and scripted agents.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::agent::{AccessType, Agent};
use model::execution::Execution;
use model::schedule::{Decision, DecisionKind, Schedule, ScheduleDraft};
use model::{Clock, User};
use scheduler::{CrashHook, ScheduleEvent, ScheduleNotice, ScheduleNoticeSink, Scheduler, SchedulerOptions};
use serde_json::{Value, json};
use store::executions::OwnerScope;
use store::schedules;
use store::{Durability, Job, Location, Store, Transaction};
use supervisor::{Admission, AgentRun, RunFailure, RunRecorder, RunResult, Runner, Supervisor};
use tokio::sync::Notify;
use uuid::Uuid;

pub(crate) const START: &str = "2026-01-10T12:00:00Z";
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) scheduler: Scheduler,
    pub(crate) supervisor: Supervisor,
    pub(crate) clock: Clock,
    pub(crate) user: User,
    pub(crate) location: Location,
    pub(crate) notices: Arc<RecordedNotices>,
    /// Ends the runs with the input `hold`.
    pub(crate) gate: Arc<Notify>,
    pub(crate) dir: tempfile::TempDir,
}

/// Records the notices instead of sending them.
#[derive(Default)]
pub(crate) struct RecordedNotices(Mutex<Vec<(ScheduleEvent, String)>>);

impl RecordedNotices {
    pub(crate) fn take(&self) -> Vec<(ScheduleEvent, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl ScheduleNoticeSink for RecordedNotices {
    fn send<'a>(&'a self, _: &'a mut Transaction, notice: &'a ScheduleNotice) -> BoxFuture<'a, store::Result<()>> {
        self.0.lock().unwrap().push((notice.event, notice.text.clone()));
        Box::pin(async { Ok(()) })
    }
}

/// Follows its input: `ok` succeeds, `fail` fails, and `hold` waits until the gate opens or a stop is requested.
struct ScriptedRunner(Arc<Notify>);

impl Runner for ScriptedRunner {
    fn run<'a>(&'a self, run: &'a AgentRun, recorder: &'a RunRecorder) -> BoxFuture<'a, RunResult> {
        Box::pin(async move {
            let opened = self.0.notified();
            recorder.record_start(None);
            match run.request.input.as_str() {
                "fail" => RunFailure::agent("it would not work").into(),
                "hold" => tokio::select! {
                    () = opened => RunResult::default(),
                    _ = recorder.stop_requested() => RunResult { stopped: true, ..RunResult::default() },
                },
                _ => RunResult::default(),
            }
        })
    }
}

pub(crate) fn agent(id: &str, max_concurrency: u32, queue_depth: u32, enabled: bool) -> Agent {
    let draft = model::agent::AgentDraft {
        id: Some(id.into()),
        executable_path: Some("/bin/cat".into()),
        access_type: Some(AccessType::ReadOnly),
        max_concurrent_executions: Some(max_concurrency),
        queue_depth: Some(queue_depth),
        enabled: Some(enabled),
        ..model::agent::AgentDraft::default()
    };
    draft.check().unwrap()
}

impl Bench {
    pub(crate) async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(dir.path().join("adjutant.db"));
        Self::open(location, dir, None).await
    }

    pub(crate) async fn postgres() -> Self {
        let url = testkit::postgres::create_database().await.unwrap();
        Self::open(Location::postgres(url), tempfile::tempdir().unwrap(), None).await
    }

    pub(crate) async fn open(location: Location, dir: tempfile::TempDir, crash_hook: Option<CrashHook>) -> Self {
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let clock = Clock::manual(START.parse().unwrap());
        let gate = Arc::<Notify>::default();
        let notices = Arc::<RecordedNotices>::default();
        let runner: Arc<dyn Runner> = Arc::new(ScriptedRunner(gate.clone()));
        let agents = [agent("many", 1000, 100_000, true), agent("few", 1, 1, true), agent("off", 1, 10, false)];
        let supervisor = Supervisor::new(supervisor::SupervisorOptions {
            store,
            clock: clock.clone(),
            data_dir: dir.path().to_owned(),
            variables: Arc::new(|_| None),
            admission: Admission::default(),
            agents: Vec::new(),
            built_in: agents.map(|agent| (agent, runner.clone())).into(),
            guardian: supervisor::guardian::GuardianOptions::default(),
        });
        let options = SchedulerOptions { supervisor: supervisor.clone(), notices: notices.clone(), crash_hook };
        let user = User::local(jiff::tz::TimeZone::UTC);
        Self { scheduler: Scheduler::new(options), supervisor, clock, user, location, notices, gate, dir }
    }

    /// Opens another scheduler on the same database, like a second node.
    pub(crate) async fn second_node(&self, crash_hook: Option<CrashHook>) -> Self {
        Self::open(self.location.clone(), tempfile::tempdir().unwrap(), crash_hook).await
    }

    /// Starts the supervisor, so that enqueued executions run.
    pub(crate) async fn with_running_agents(self) -> Self {
        self.supervisor.start().await.unwrap();
        self
    }

    pub(crate) fn store(&self) -> &Store {
        self.supervisor.store()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn transaction<T, F>(&self, job: F) -> store::Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&mut Transaction) -> store::Result<T> + for<'t> Job<'t, T, store::Error> + 'static,
    {
        self.store().owner_transaction(self.user.id, job).await
    }

    pub(crate) fn draft(&self, fields: Value) -> ScheduleDraft {
        let mut draft = json!({"name": format!("s{}", self.clock.id()), "agent_id": "many"});
        draft.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        model::json::from_value(draft).unwrap()
    }

    pub(crate) async fn create(&self, fields: Value) -> Schedule {
        let checked = self.scheduler.check(&self.user, self.draft(fields)).unwrap();
        let scheduler = self.scheduler.clone();
        let owner = self.user.id;
        self.transaction(async move |tx| scheduler.create(tx, owner, &checked).await).await.unwrap()
    }

    pub(crate) async fn change(&self, id: Uuid, patch: Value) -> Schedule {
        let patch = model::json::from_value(patch).unwrap();
        let checked = self.scheduler.check_change(&self.user, &self.get(id).await, patch).unwrap();
        let scheduler = self.scheduler.clone();
        let job = self.transaction(async move |tx| scheduler.change(tx, OwnerScope::AllUsers, id, &checked).await);
        job.await.unwrap()
    }

    /// Changes the agent of a schedule without validation.
    pub(crate) async fn set_agent(&self, id: Uuid, agent: &str) {
        let agent = agent.to_owned();
        let now = self.now();
        let job = self.transaction(async move |tx| {
            let row = schedules::lock_row(tx, OwnerScope::AllUsers, id, now).await?;
            let mut settings = row.schedule.settings.clone();
            settings.agent_id = agent;
            let fire_at = row.schedule.next_execution.unwrap();
            let next = schedules::NextOccurrence { due_at: row.due_at.unwrap(), fire_at };
            schedules::update(tx, &row, &settings, Some(next), now).await
        });
        job.await.unwrap();
    }

    pub(crate) async fn pause(&self, id: Uuid, reason: &'static str) -> Schedule {
        let scheduler = self.scheduler.clone();
        let job = self.transaction(async move |tx| scheduler.pause(tx, OwnerScope::AllUsers, id, Some(reason)).await);
        job.await.unwrap()
    }

    pub(crate) async fn resume(&self, id: Uuid) -> store::Result<Schedule> {
        let scheduler = self.scheduler.clone();
        self.transaction(async move |tx| scheduler.resume(tx, OwnerScope::AllUsers, id).await).await
    }

    pub(crate) async fn run_now(&self, id: Uuid) -> store::Result<Uuid> {
        let row =
            schedules::get_row(&mut self.store().reader().await.unwrap(), OwnerScope::AllUsers, id, self.now()).await;
        let submission = self.scheduler.prepare_run(&row.unwrap()).unwrap();
        let scheduler = self.scheduler.clone();
        self.transaction(async move |tx| scheduler.run_now(tx, OwnerScope::AllUsers, id, submission).await).await
    }

    pub(crate) async fn get(&self, id: Uuid) -> Schedule {
        schedules::get(&mut self.store().reader().await.unwrap(), OwnerScope::AllUsers, id, self.now()).await.unwrap()
    }

    /// Returns the decisions, oldest first.
    pub(crate) async fn history(&self, id: Uuid) -> Vec<Decision> {
        let mut reader = self.store().reader().await.unwrap();
        let page = schedules::history(&mut reader, OwnerScope::AllUsers, id, None, 1_000_000).await.unwrap();
        page.rows.into_iter().rev().collect()
    }

    pub(crate) async fn decision_kinds(&self, id: Uuid) -> Vec<DecisionKind> {
        self.history(id).await.iter().map(|decision| decision.kind).collect()
    }

    /// Returns the executions, oldest first.
    pub(crate) async fn executions(&self, id: Uuid) -> Vec<Execution> {
        let mut reader = self.store().reader().await.unwrap();
        let filter = store::executions::ExecutionFilter {
            schedule_id: Some(id),
            ..store::executions::ExecutionFilter::default()
        };
        let page = store::executions::list(&mut reader, OwnerScope::AllUsers, &filter, None, 1_000_000).await.unwrap();
        page.rows.into_iter().rev().collect()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Advances the clock and fires the due schedules.
    pub(crate) async fn advance_and_fire(&self, seconds: u64) {
        self.advance(seconds);
        self.scheduler.fire_due().await.unwrap();
    }

    /// Returns the number of requests in the spool of this node.
    pub(crate) fn spool_file_count(&self) -> usize {
        let files = std::fs::read_dir(self.dir.path().join("spool")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "json")).count()
    }

    /// Cancels an execution.
    pub(crate) async fn cancel(&self, id: Uuid) {
        let supervisor = self.supervisor.clone();
        self.transaction(async move |tx| supervisor.cancel(tx, OwnerScope::AllUsers, id).await).await.unwrap();
    }

    /// Waits until all executions of the schedule have ended, and handles their ends.
    pub(crate) async fn wait_until_ended(&self, id: Uuid) {
        for execution in self.executions(id).await {
            let ended =
                tokio::time::timeout(WAIT_TIMEOUT, self.supervisor.wait(OwnerScope::AllUsers, execution.id)).await;
            ended.unwrap().unwrap();
        }
        self.scheduler.follow_up().await.unwrap();
    }
}

/// Waits until a condition holds. Panics after a timeout.
pub(crate) async fn until(condition: &str, mut happened: impl AsyncFnMut() -> bool) {
    let start = std::time::Instant::now();
    while !happened().await {
        assert!(start.elapsed() < WAIT_TIMEOUT, "timed out: {condition}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
