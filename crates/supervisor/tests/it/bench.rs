//! A supervisor over a database of its own in a folder of its own, with agents as somebody would write them down.
//! Whatever it ran, every step of it must have been a legal one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::agent::Agent;
use model::execution::{Execution, ExecutionResult, StateName, Status, Transition};
use model::{Clock, User};
use serde_json::{Value, json};
use store::executions::{Event, Whose};
use store::{Durability, Location, Store};
use supervisor::{Admission, Draft, Options, Origin, Refused, Submission, Supervisor, Variables, guardian};
use uuid::Uuid;

use crate::DOUBLE;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) supervisor: Supervisor,
    pub(crate) user: User,
    dir: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// What a supervisor is made of, before it works.
pub(crate) struct Setting {
    pub(crate) agents: Value,
    pub(crate) variables: HashMap<String, String>,
    pub(crate) admission: Admission,
    pub(crate) dir: Option<PathBuf>,
}

impl Setting {
    pub(crate) fn new(agents: Value) -> Self {
        let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { agents, variables: variables.into(), admission: Admission::default(), dir: None }
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// In a folder that is there, after whoever worked there before.
    pub(crate) fn at(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// One that prepares and reads, but does not work.
    pub(crate) async fn resting(self) -> Bench {
        let folder = self.dir.is_none().then(|| tempfile::tempdir().unwrap());
        let dir = self.dir.unwrap_or_else(|| folder.as_ref().unwrap().path().to_owned()).canonicalize().unwrap();
        let store = Store::open(&Location::Sqlite(dir.join("db.sqlite")), Durability::Normal).await.unwrap();
        let known = self.variables;
        let variables: Variables = Arc::new(move |name: &str| known.get(name).cloned());
        let supervisor = Supervisor::new(Options {
            agents: agents(self.agents, &variables),
            variables,
            admission: self.admission,
            guardian: guardian::Options { program: DOUBLE.into(), ..guardian::Options::default() },
            ..Options::new(store, Clock::system(), &dir)
        });
        let user = User::local(jiff::tz::TimeZone::UTC);
        Bench { supervisor, user, dir, _folder: folder }
    }

    pub(crate) async fn work(self) -> Bench {
        let bench = self.resting().await;
        bench.supervisor.work().await.unwrap();
        bench
    }
}

pub(crate) fn agents(agents: Value, variables: &Variables) -> Vec<Agent> {
    let drafts: Vec<model::agent::Draft> = serde_json::from_value(agents).unwrap();
    drafts.into_iter().map(|draft| supervisor::check::written(draft, &|name: &str| variables(name)).unwrap()).collect()
}

/// A shell script as an agent: read-only unless said otherwise.
pub(crate) fn script(id: &str, text: &str, more: Value) -> Value {
    agent(id, json!({"executable_path": "/bin/sh", "args": ["-c", text]}), more)
}

/// The double doing one thing.
pub(crate) fn doubled(id: &str, arguments: &[&str], more: Value) -> Value {
    agent(id, json!({"executable_path": testkit::agent::program(), "args": arguments}), more)
}

fn agent(id: &str, mut agent: Value, more: Value) -> Value {
    let fields = agent.as_object_mut().unwrap();
    fields.insert("id".to_owned(), id.into());
    fields.insert("grace".to_owned(), 0.3.into());
    fields.extend(more.as_object().unwrap().clone());
    agent
}

pub(crate) fn asking(input: &str) -> Draft {
    Draft { input: input.to_owned(), ..Draft::default() }
}

impl Bench {
    pub(crate) async fn new(agents: Value) -> Self {
        Setting::new(agents).work().await
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn store(&self) -> &Store {
        self.supervisor.store()
    }

    pub(crate) fn prepare(&self, agent: &str, draft: Draft) -> Result<Submission, Refused> {
        self.supervisor.prepare(&self.user, agent, draft, Origin::default())
    }

    pub(crate) async fn submit(&self, agent: &str, draft: Draft) -> store::Result<Uuid> {
        let submission = self.prepare(agent, draft).unwrap();
        let supervisor = self.supervisor.clone();
        self.store().transaction(async move |tx| supervisor.enqueue(tx, submission).await).await
    }

    pub(crate) async fn ask(&self, agent: &str, input: &str) -> Uuid {
        self.submit(agent, asking(input)).await.unwrap()
    }

    pub(crate) async fn run(&self, agent: &str, input: &str) -> ExecutionResult {
        let id = self.ask(agent, input).await;
        self.result(id).await
    }

    pub(crate) async fn run_with(&self, agent: &str, draft: Draft) -> ExecutionResult {
        let id = self.submit(agent, draft).await.unwrap();
        self.result(id).await
    }

    pub(crate) async fn get(&self, id: Uuid) -> Execution {
        let mut reader = self.store().reader().await.unwrap();
        store::executions::get(&mut reader, Whose::Everyones, id).await.unwrap()
    }

    pub(crate) async fn wait(&self, id: Uuid) -> Execution {
        let ended = tokio::time::timeout(PATIENCE, self.supervisor.wait(Whose::Everyones, id)).await;
        let Ok(ended) = ended else { panic!("it does not end: {:#?}", self.get(id).await) };
        let execution = ended.unwrap();
        legal(execution.state_transitions());
        execution
    }

    pub(crate) async fn result(&self, id: Uuid) -> ExecutionResult {
        self.wait(id).await;
        let mut reader = self.store().reader().await.unwrap();
        store::executions::result(&mut reader, Whose::Everyones, id).await.unwrap()
    }

    /// Waits until it is in that state.
    pub(crate) async fn reaches(&self, id: Uuid, state: StateName) -> Execution {
        let start = std::time::Instant::now();
        loop {
            let execution = self.get(id).await;
            if execution.state_name() == state {
                return execution;
            }
            assert!(start.elapsed() < PATIENCE, "never {state}: {execution:#?}");
            assert!(!execution.is_ended(), "not {state} but ended: {execution:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn cancel(&self, id: Uuid) -> store::Result<Execution> {
        let supervisor = self.supervisor.clone();
        self.store().transaction(async move |tx| supervisor.cancel(tx, Whose::Everyones, id).await).await
    }

    pub(crate) async fn output(&self, id: Uuid, stream: &str) -> String {
        let mut reader = self.store().reader().await.unwrap();
        store::executions::output(&mut reader, id, stream).await.unwrap()
    }

    pub(crate) async fn events(&self, id: Uuid) -> Vec<Event> {
        let mut reader = self.store().reader().await.unwrap();
        store::executions::events(&mut reader, id, 0, 1_000_000).await.unwrap()
    }

    pub(crate) async fn all(&self) -> Vec<Execution> {
        let mut reader = self.store().reader().await.unwrap();
        let filter = store::executions::Filter::default();
        store::executions::list(&mut reader, Whose::Everyones, &filter, None, 100_000).await.unwrap().rows
    }

    /// Stops, after which nothing is at work; the folder stays while what is given back lives.
    pub(crate) async fn stop(self) -> Stopped {
        tokio::time::timeout(PATIENCE, self.supervisor.stop()).await.unwrap();
        for execution in self.all().await {
            legal(execution.state_transitions());
            assert!(execution.is_ended() || execution.state_name() == StateName::Idle, "{execution:#?}");
        }
        Stopped { dir: self.dir, _folder: self._folder }
    }
}

pub(crate) struct Stopped {
    pub(crate) dir: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// Each step follows the one before, and the table has it.
pub(crate) fn legal(transitions: &[Transition]) {
    let mut at = StateName::Idle;
    for step in transitions {
        assert_eq!(step.from, at, "{transitions:#?}");
        assert!(step.from.may_become(step.to), "{transitions:#?}");
        at = step.to;
    }
    assert!(transitions.windows(2).all(|pair| pair[0].at <= pair[1].at), "{transitions:#?}");
}

pub(crate) fn succeeded(result: &ExecutionResult) -> &str {
    assert_eq!(result.status, Status::Success, "{result:#?}");
    assert_eq!((&result.error, &result.error_category), (&None, &None));
    &result.output
}

pub(crate) fn error(result: &ExecutionResult) -> &str {
    result.error.as_deref().unwrap_or_else(|| panic!("{result:#?}"))
}

/// Waits for something that must come.
pub(crate) async fn until(what: &str, mut happened: impl AsyncFnMut() -> bool) {
    let start = std::time::Instant::now();
    while !happened().await {
        assert!(start.elapsed() < PATIENCE, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
