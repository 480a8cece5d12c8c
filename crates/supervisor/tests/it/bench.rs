//! A supervisor with its own database and directory, and with configured agents. Checks that all state transitions of its
//! executions are legal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::agent::Agent;
use model::execution::{Execution, ExecutionResult, ExecutionStatus, StateName, Transition};
use model::{Clock, User};
use serde_json::{Value, json};
use store::executions::{ExecutionEvent, OwnerScope};
use store::{Durability, Location, Store};
use supervisor::{
    Admission, RunDraft, RunOrigin, Submission, SubmitError, Supervisor, SupervisorOptions, VariableLookup, guardian,
};
use uuid::Uuid;

use crate::DOUBLE;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Bench {
    pub(crate) supervisor: Supervisor,
    pub(crate) user: User,
    dir: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// The settings of a supervisor for tests.
pub(crate) struct BenchBuilder {
    pub(crate) agents: Value,
    pub(crate) variables: HashMap<String, String>,
    pub(crate) admission: Admission,
    pub(crate) dir: Option<PathBuf>,
}

impl BenchBuilder {
    pub(crate) fn new(agents: Value) -> Self {
        let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { agents, variables: variables.into(), admission: Admission::default(), dir: None }
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Uses an existing data directory.
    pub(crate) fn at(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    /// Returns a supervisor that prepares and reads executions but does not run them.
    pub(crate) async fn build(self) -> Bench {
        let folder = self.dir.is_none().then(|| tempfile::tempdir().unwrap());
        let dir = self.dir.unwrap_or_else(|| folder.as_ref().unwrap().path().to_owned()).canonicalize().unwrap();
        let store = Store::open(&Location::Sqlite(dir.join("db.sqlite")), Durability::Normal).await.unwrap();
        let known = self.variables;
        let variables: VariableLookup = Arc::new(move |name: &str| known.get(name).cloned());
        let supervisor = Supervisor::new(SupervisorOptions {
            agents: agents(self.agents, &variables),
            variables,
            admission: self.admission,
            guardian: guardian::GuardianOptions { program: DOUBLE.into(), ..guardian::GuardianOptions::default() },
            ..SupervisorOptions::new(store, Clock::system(), &dir)
        });
        let user = User::local(jiff::tz::TimeZone::UTC);
        Bench { supervisor, user, dir, _folder: folder }
    }

    /// Returns a started supervisor.
    pub(crate) async fn start(self) -> Bench {
        let bench = self.build().await;
        bench.supervisor.start().await.unwrap();
        bench
    }
}

pub(crate) fn agents(agents: Value, variables: &VariableLookup) -> Vec<Agent> {
    let drafts: Vec<model::agent::AgentDraft> = serde_json::from_value(agents).unwrap();
    drafts
        .into_iter()
        .map(|draft| supervisor::check::validate_agent(draft, &|name: &str| variables(name)).unwrap())
        .collect()
}

/// Returns an agent that runs a shell script. It is read-only by default.
pub(crate) fn script(id: &str, text: &str, more: Value) -> Value {
    agent(id, json!({"executable_path": "/bin/sh", "args": ["-c", text]}), more)
}

/// Returns an agent that runs the test agent with these arguments.
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

pub(crate) fn input_draft(input: &str) -> RunDraft {
    RunDraft { input: input.to_owned(), ..RunDraft::default() }
}

impl Bench {
    pub(crate) async fn new(agents: Value) -> Self {
        BenchBuilder::new(agents).start().await
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

    pub(crate) fn prepare(&self, agent: &str, draft: RunDraft) -> Result<Submission, SubmitError> {
        self.supervisor.prepare(&self.user, agent, draft, RunOrigin::default())
    }

    pub(crate) async fn submit(&self, agent: &str, draft: RunDraft) -> store::Result<Uuid> {
        let submission = self.prepare(agent, draft).unwrap();
        let supervisor = self.supervisor.clone();
        self.store()
            .owner_transaction(submission.new_execution.owner, async move |tx| supervisor.enqueue(tx, submission).await)
            .await
    }

    pub(crate) async fn enqueue(&self, agent: &str, input: &str) -> Uuid {
        self.submit(agent, input_draft(input)).await.unwrap()
    }

    pub(crate) async fn run(&self, agent: &str, input: &str) -> ExecutionResult {
        let id = self.enqueue(agent, input).await;
        self.result(id).await
    }

    pub(crate) async fn run_with(&self, agent: &str, draft: RunDraft) -> ExecutionResult {
        let id = self.submit(agent, draft).await.unwrap();
        self.result(id).await
    }

    pub(crate) async fn get(&self, id: Uuid) -> Execution {
        let mut reader = self.store().reader().await.unwrap();
        store::executions::get(&mut reader, OwnerScope::AllUsers, id).await.unwrap()
    }

    pub(crate) async fn wait(&self, id: Uuid) -> Execution {
        let ended = tokio::time::timeout(TIMEOUT, self.supervisor.wait(OwnerScope::AllUsers, id)).await;
        let Ok(ended) = ended else { panic!("the execution does not end: {:#?}", self.get(id).await) };
        let execution = ended.unwrap();
        assert_legal(execution.state_transitions());
        execution
    }

    pub(crate) async fn result(&self, id: Uuid) -> ExecutionResult {
        self.wait(id).await;
        let mut reader = self.store().reader().await.unwrap();
        store::executions::result(&mut reader, OwnerScope::AllUsers, id).await.unwrap()
    }

    /// Waits until the execution is in this state.
    pub(crate) async fn reaches(&self, id: Uuid, state: StateName) -> Execution {
        let start = std::time::Instant::now();
        loop {
            let execution = self.get(id).await;
            if execution.state_name() == state {
                return execution;
            }
            assert!(start.elapsed() < TIMEOUT, "never {state}: {execution:#?}");
            assert!(!execution.is_ended(), "not {state} but ended: {execution:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn cancel(&self, id: Uuid) -> store::Result<Execution> {
        let supervisor = self.supervisor.clone();
        self.store().transaction(async move |tx| supervisor.cancel(tx, OwnerScope::AllUsers, id).await).await
    }

    pub(crate) async fn output(&self, id: Uuid, stream: &str) -> String {
        let mut reader = self.store().reader().await.unwrap();
        store::executions::output(&mut reader, id, stream).await.unwrap()
    }

    pub(crate) async fn events(&self, id: Uuid) -> Vec<ExecutionEvent> {
        let mut reader = self.store().reader().await.unwrap();
        store::executions::events(&mut reader, id, 0, 1_000_000).await.unwrap()
    }

    pub(crate) async fn all(&self) -> Vec<Execution> {
        let mut reader = self.store().reader().await.unwrap();
        let filter = store::executions::ExecutionFilter::default();
        store::executions::list(&mut reader, OwnerScope::AllUsers, &filter, None, 100_000).await.unwrap().rows
    }

    /// Stops the supervisor and checks that no execution runs. The data directory exists as long as the returned value.
    pub(crate) async fn stop(self) -> Stopped {
        tokio::time::timeout(TIMEOUT, self.supervisor.stop()).await.unwrap();
        for execution in self.all().await {
            assert_legal(execution.state_transitions());
            assert!(execution.is_ended() || execution.state_name() == StateName::Idle, "{execution:#?}");
        }
        Stopped { dir: self.dir, _folder: self._folder }
    }
}

pub(crate) struct Stopped {
    pub(crate) dir: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// Asserts that the transitions are consecutive and allowed.
pub(crate) fn assert_legal(transitions: &[Transition]) {
    let mut at = StateName::Idle;
    for step in transitions {
        assert_eq!(step.from, at, "{transitions:#?}");
        assert!(step.from.can_become(step.to), "{transitions:#?}");
        at = step.to;
    }
    assert!(transitions.windows(2).all(|pair| pair[0].at <= pair[1].at), "{transitions:#?}");
}

pub(crate) fn succeeded(result: &ExecutionResult) -> &str {
    assert_eq!(result.status, ExecutionStatus::Success, "{result:#?}");
    assert_eq!((&result.error, &result.error_category), (&None, &None));
    &result.output
}

pub(crate) fn error(result: &ExecutionResult) -> &str {
    result.error.as_deref().unwrap_or_else(|| panic!("{result:#?}"))
}

/// Waits for a condition. Panics after the timeout.
pub(crate) async fn wait_until(condition: &str, mut is_met: impl AsyncFnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_met().await {
        assert!(start.elapsed() < TIMEOUT, "not met in time: {condition}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
