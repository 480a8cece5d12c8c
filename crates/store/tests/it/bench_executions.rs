//! Helpers of the test bench that enqueue, claim and end executions.

use model::UserId;
use model::agent::Seconds;
use model::execution::{AttemptExit, Execution, ExecutionRecord, ExecutionStatus};
use store::executions::{ClaimedExecution, Fence, NewExecution, OutputSummary, OwnerScope};
use uuid::Uuid;

use crate::Bench;

impl Bench {
    /// Returns an execution that is not stored yet, of an agent with one slot, one second after the previous one.
    pub fn new_execution(&self, owner: UserId, agent: &str) -> NewExecution {
        self.clock.advance(std::time::Duration::from_secs(1));
        let now = self.now();
        let mut execution = Execution::new(self.clock.id(), agent, Seconds::new(60), now);
        execution.input = "do it".to_owned();
        execution.max_retries = 2;
        let wait_until = now + std::time::Duration::from_secs(1800);
        NewExecution {
            execution,
            owner,
            request: "{}".to_owned(),
            spool: None,
            follow_up: None,
            message: None,
            task: None,
            wait_until,
            slots: 1,
            queue_depth: 1000,
        }
    }

    pub async fn enqueue(&self, new: NewExecution) -> store::Result<Uuid> {
        let id = new.execution.id;
        self.store.owner_transaction(new.owner, async move |tx| store::executions::enqueue(tx, &new).await).await?;
        Ok(id)
    }

    /// Adds a node with a lease of 30 seconds.
    pub async fn node(&self) -> Uuid {
        let node = self.clock.id();
        let now = self.now();
        let until = now + std::time::Duration::from_secs(30);
        self.transaction(async move |tx| store::nodes::join(tx, node, now, until).await).await.unwrap();
        node
    }

    pub async fn claim(&self, node: Uuid, agent: &str, slots: i64, limit: i64) -> Vec<ClaimedExecution> {
        let agent = agent.to_owned();
        let now = self.now();
        self.transaction(async move |tx| store::executions::claim(tx, node, "here", &agent, slots, limit, now).await)
            .await
            .unwrap()
    }

    pub async fn save(&self, fence: Fence, execution: &Execution, output: Option<OutputSummary>) -> bool {
        let execution = execution.clone();
        self.transaction(async move |tx| store::executions::save(tx, fence, &execution, output.as_ref()).await)
            .await
            .unwrap()
    }

    /// Ends a claimed execution and releases its slot.
    pub async fn finish(&self, claimed: &ClaimedExecution, output: OutputSummary) -> Execution {
        let mut execution = claimed.row.execution.clone();
        let fence = claimed.fence;
        let now = self.now();
        execution.start(None, now).unwrap();
        execution.end(ExecutionStatus::Success, AttemptExit::default(), now).unwrap();
        assert!(self.save(fence, &execution, Some(output)).await);
        self.transaction(async move |tx| store::executions::release_slot(tx, fence.id, fence.node).await)
            .await
            .unwrap();
        execution
    }

    pub async fn execution(&self, id: Uuid) -> Execution {
        let mut reader = self.store.reader().await.unwrap();
        store::executions::get(&mut reader, OwnerScope::AllUsers, id).await.unwrap()
    }

    /// Reads an execution in its flat form.
    pub async fn record(&self, id: Uuid) -> ExecutionRecord {
        self.execution(id).await.into()
    }
}
