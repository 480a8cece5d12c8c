//! How the tests put executions into the queue, claim and end them.

use model::UserId;
use model::agent::Seconds;
use model::execution::{Execution, ExecutionRecord, Exit, Status};
use store::executions::{Claimed, Fence, Left, New, Whose};
use uuid::Uuid;

use crate::Bench;

impl Bench {
    /// An execution of `owner` that is not stored yet, of an agent with one place, a second after the last one.
    pub fn run(&self, owner: UserId, agent: &str) -> New {
        self.clock.advance(std::time::Duration::from_secs(1));
        let now = self.now();
        let mut execution = Execution::new(self.clock.id(), agent, Seconds::new(60), now);
        execution.input = "do it".to_owned();
        execution.max_retries = 2;
        let wait_until = now + std::time::Duration::from_secs(1800);
        New {
            execution,
            owner,
            request: "{}".to_owned(),
            spool: None,
            follow_up: None,
            message: None,
            task: None,
            wait_until,
            places: 1,
            depth: 1000,
        }
    }

    pub async fn submit(&self, new: New) -> store::Result<Uuid> {
        let id = new.execution.id;
        self.transaction(async move |tx| store::executions::submit(tx, &new).await).await?;
        Ok(id)
    }

    /// A node that works.
    pub async fn node(&self) -> Uuid {
        let node = self.clock.id();
        let now = self.now();
        let until = now + std::time::Duration::from_secs(30);
        self.transaction(async move |tx| store::nodes::join(tx, node, now, until).await).await.unwrap();
        node
    }

    pub async fn claim(&self, node: Uuid, agent: &str, places: i64, limit: i64) -> Vec<Claimed> {
        let agent = agent.to_owned();
        let now = self.now();
        self.transaction(async move |tx| store::executions::claim(tx, node, "here", &agent, places, limit, now).await)
            .await
            .unwrap()
    }

    pub async fn save(&self, fence: Fence, execution: &Execution, left: Option<Left>) -> bool {
        let execution = execution.clone();
        self.transaction(async move |tx| store::executions::save(tx, fence, &execution, left.as_ref()).await)
            .await
            .unwrap()
    }

    /// Ends an execution at work, and gives its place back.
    pub async fn finish(&self, claimed: &Claimed, left: Left) -> Execution {
        let mut execution = claimed.stored.execution.clone();
        let fence = claimed.fence;
        let now = self.now();
        execution.start(None, now).unwrap();
        execution.end(Status::Success, Exit::default(), now).unwrap();
        assert!(self.save(fence, &execution, Some(left)).await);
        self.transaction(async move |tx| store::executions::give_back(tx, fence.id, fence.node).await).await.unwrap();
        execution
    }

    pub async fn execution(&self, id: Uuid) -> Execution {
        let mut reader = self.store.reader().await.unwrap();
        store::executions::get(&mut reader, Whose::Everyones, id).await.unwrap()
    }

    /// Reads an execution in its flat form.
    pub async fn record(&self, id: Uuid) -> ExecutionRecord {
        self.execution(id).await.into()
    }
}
