//! A scheduler over a database of its own, with a clock that is moved by hand and agents that do as they are told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::agent::{AccessType, Agent};
use model::execution::Execution;
use model::schedule::{Decision, Draft, Kind, Schedule};
use model::{Clock, User};
use scheduler::{Event, News, Notices, Options, Scheduler, Witness};
use serde_json::{Value, json};
use store::executions::Whose;
use store::schedules;
use store::{Durability, Job, Location, Store, Transaction};
use supervisor::{Admission, Desk, Ended, Failure, Run, Runner, Supervisor};
use tokio::sync::Notify;
use uuid::Uuid;

pub(crate) const START: &str = "2026-01-10T12:00:00Z";
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) scheduler: Scheduler,
    pub(crate) supervisor: Supervisor,
    pub(crate) clock: Clock,
    pub(crate) user: User,
    pub(crate) location: Location,
    pub(crate) news: Arc<Told>,
    pub(crate) gate: Arc<Notify>,
    pub(crate) dir: tempfile::TempDir,
}

/// What people would have been told.
#[derive(Default)]
pub(crate) struct Told(Mutex<Vec<(Event, String)>>);

impl Told {
    pub(crate) fn take(&self) -> Vec<(Event, String)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Notices for Told {
    fn tell<'a>(&'a self, _: &'a mut Transaction, news: &'a News) -> BoxFuture<'a, store::Result<()>> {
        self.0.lock().unwrap().push((news.event, news.text.clone()));
        Box::pin(async { Ok(()) })
    }
}

/// Does what its input says: `ok`, `fail`, or `hold` until the gate opens or it is told to stop.
struct Obedient(Arc<Notify>);

impl Runner for Obedient {
    fn run<'a>(&'a self, run: &'a Run, desk: &'a Desk) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let opened = self.0.notified();
            desk.started(None);
            match run.request.input.as_str() {
                "fail" => Failure::agent("it would not work").into(),
                "hold" => tokio::select! {
                    () = opened => Ended::default(),
                    _ = desk.stopped() => Ended { stopped: true, ..Ended::default() },
                },
                _ => Ended::default(),
            }
        })
    }
}

pub(crate) fn agent(id: &str, places: u32, queue_depth: u32, enabled: bool) -> Agent {
    let draft = model::agent::Draft {
        id: Some(id.into()),
        executable_path: Some("/bin/cat".into()),
        access_type: Some(AccessType::ReadOnly),
        max_concurrent_executions: Some(places),
        queue_depth: Some(queue_depth),
        enabled: Some(enabled),
        ..model::agent::Draft::default()
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
        let url = testkit::postgres::database().await.unwrap();
        Self::open(Location::Postgres(url), tempfile::tempdir().unwrap(), None).await
    }

    pub(crate) async fn open(location: Location, dir: tempfile::TempDir, witness: Option<Witness>) -> Self {
        let store = Store::open(&location, Durability::Normal).await.unwrap();
        let clock = Clock::manual(START.parse().unwrap());
        let gate = Arc::<Notify>::default();
        let news = Arc::<Told>::default();
        let runner: Arc<dyn Runner> = Arc::new(Obedient(gate.clone()));
        let agents = [agent("many", 1000, 100_000, true), agent("few", 1, 1, true), agent("off", 1, 10, false)];
        let supervisor = Supervisor::new(supervisor::Options {
            store,
            clock: clock.clone(),
            data_dir: dir.path().to_owned(),
            variables: Arc::new(|_| None),
            admission: Admission::default(),
            agents: Vec::new(),
            built_in: agents.map(|agent| (agent, runner.clone())).into(),
            guardian: supervisor::guardian::Options::default(),
        });
        let options = Options { supervisor: supervisor.clone(), notices: news.clone(), witness };
        let user = User::local(jiff::tz::TimeZone::UTC);
        Self { scheduler: Scheduler::new(options), supervisor, clock, user, location, news, gate, dir }
    }

    /// Another scheduler on the same data, as another node has it.
    pub(crate) async fn beside(&self, witness: Option<Witness>) -> Self {
        Self::open(self.location.clone(), tempfile::tempdir().unwrap(), witness).await
    }

    /// Lets the agents run.
    pub(crate) async fn working(self) -> Self {
        self.supervisor.work().await.unwrap();
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
        self.store().transaction(job).await
    }

    pub(crate) fn draft(&self, fields: Value) -> Draft {
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
        let job = self.transaction(async move |tx| scheduler.change(tx, Whose::Everyones, id, &checked).await);
        job.await.unwrap()
    }

    /// Lets a schedule name an agent that it could not be made with.
    pub(crate) async fn repoint(&self, id: Uuid, agent: &str) {
        let agent = agent.to_owned();
        let now = self.now();
        let job = self.transaction(async move |tx| {
            let kept = schedules::lock(tx, Whose::Everyones, id, now).await?;
            let mut settings = kept.schedule.settings.clone();
            settings.agent_id = agent;
            let at = kept.schedule.next_execution.unwrap();
            let next = schedules::Next { due_at: kept.due_at.unwrap(), at };
            schedules::change(tx, &kept, &settings, Some(next), now).await
        });
        job.await.unwrap();
    }

    pub(crate) async fn pause(&self, id: Uuid, reason: &'static str) -> Schedule {
        let scheduler = self.scheduler.clone();
        let job = self.transaction(async move |tx| scheduler.pause(tx, Whose::Everyones, id, Some(reason)).await);
        job.await.unwrap()
    }

    pub(crate) async fn resume(&self, id: Uuid) -> store::Result<Schedule> {
        let scheduler = self.scheduler.clone();
        self.transaction(async move |tx| scheduler.resume(tx, Whose::Everyones, id).await).await
    }

    pub(crate) async fn run_now(&self, id: Uuid) -> store::Result<Uuid> {
        let kept = schedules::look(&mut self.store().reader().await.unwrap(), Whose::Everyones, id, self.now()).await;
        let submission = self.scheduler.prepare_run(&kept.unwrap()).unwrap();
        let scheduler = self.scheduler.clone();
        self.transaction(async move |tx| scheduler.run_now(tx, Whose::Everyones, id, submission).await).await
    }

    pub(crate) async fn get(&self, id: Uuid) -> Schedule {
        schedules::get(&mut self.store().reader().await.unwrap(), Whose::Everyones, id, self.now()).await.unwrap()
    }

    /// The oldest first.
    pub(crate) async fn history(&self, id: Uuid) -> Vec<Decision> {
        let mut reader = self.store().reader().await.unwrap();
        let page = schedules::history(&mut reader, Whose::Everyones, id, None, 1_000_000).await.unwrap();
        page.rows.into_iter().rev().collect()
    }

    pub(crate) async fn kinds(&self, id: Uuid) -> Vec<Kind> {
        self.history(id).await.iter().map(|decision| decision.kind).collect()
    }

    /// The oldest first.
    pub(crate) async fn executions(&self, id: Uuid) -> Vec<Execution> {
        let mut reader = self.store().reader().await.unwrap();
        let filter = store::executions::Filter { schedule_id: Some(id), ..store::executions::Filter::default() };
        let page = store::executions::list(&mut reader, Whose::Everyones, &filter, None, 1_000_000).await.unwrap();
        page.rows.into_iter().rev().collect()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// So much later, with whatever is due then.
    pub(crate) async fn after(&self, seconds: u64) {
        self.advance(seconds);
        self.scheduler.fire_due().await.unwrap();
    }

    /// How many requests with secrets wait in this node's files.
    pub(crate) fn spooled(&self) -> usize {
        let files = std::fs::read_dir(self.dir.path().join("spool")).into_iter().flatten().flatten();
        files.filter(|file| file.path().extension().is_some_and(|end| end == "json")).count()
    }

    /// Ends an execution that waits.
    pub(crate) async fn cancel(&self, id: Uuid) {
        let supervisor = self.supervisor.clone();
        self.transaction(async move |tx| supervisor.cancel(tx, Whose::Everyones, id).await).await.unwrap();
    }

    /// Waits until nothing of the schedule runs, and acts upon that.
    pub(crate) async fn ended(&self, id: Uuid) {
        for execution in self.executions(id).await {
            let ended = tokio::time::timeout(PATIENCE, self.supervisor.wait(Whose::Everyones, execution.id)).await;
            ended.unwrap().unwrap();
        }
        self.scheduler.follow_up().await.unwrap();
    }
}

/// Waits for something that must come.
pub(crate) async fn until(what: &str, mut happened: impl AsyncFnMut() -> bool) {
    let start = std::time::Instant::now();
    while !happened().await {
        assert!(start.elapsed() < PATIENCE, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
