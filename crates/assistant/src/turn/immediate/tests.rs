//! Turns whose data changes between the prefetch and the transaction.

use std::time::Instant;

use jiff::tz::TimeZone;
use model::{Clock, User};
use store::tasks;
use store::undo::UndoStep;
use store::{Durability, Location, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tools::{ConfirmationPolicy, ToolNames, Tools};
use understand::UtteranceParser;

use super::*;
use crate::offline::OfflineModel;
use crate::turn::TurnEngine;
use crate::{AgentRunner, ModelChain, TurnLimits, TurnRequest};

struct Bench {
    engine: TurnEngine,
    store: Store,
    clock: Clock,
    user: User,
    _dir: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&Location::Sqlite(dir.path().join("db")), Durability::Normal).await.unwrap();
        let clock = Clock::system();
        let engine = TurnEngine::new(store.clone(), clock.clone(), TaskTracker::new());
        let user = User::local(TimeZone::UTC);
        Self { engine, store, clock, user, _dir: dir }
    }

    fn turn(&self, message: &str) -> Arc<TurnRun> {
        let tools = Tools {
            clock: self.clock.clone(),
            limits: model::task::TaskLimits::default(),
            names: ToolNames::Task,
            confirmation: ConfirmationPolicy::Destructive,
            servers: None,
            supervisor: None,
            scheduler: None,
            has_worker: true,
            parser: UtteranceParser::default(),
        };
        let models = ModelChain::from(Arc::new(OfflineModel) as Arc<dyn crate::ChatModel>);
        let request = TurnRequest::new(message.to_owned(), &self.user, UtteranceParser::default(), self.clock.now());
        let turn = super::super::Turn {
            user: self.user.clone(),
            request,
            history: History::Stored("conv_1".parse().unwrap()),
            key: None,
            request_id: "req_0".to_owned(),
            started: Instant::now(),
            include_utterance: false,
            cancelled: CancellationToken::new(),
            on_end: None,
        };
        let runner = AgentRunner { models, limits: TurnLimits::default() };
        Arc::new(TurnRun { engine: self.engine.clone(), runner, tools, turn })
    }

    /// Runs the transaction of a turn.
    async fn run(&self, turn: Arc<TurnRun>, prefetch: Prefetch) -> AgentResult {
        let job = async move |tx: &mut Transaction| turn.in_transaction(tx, prefetch).await;
        match self.store.owner_transaction(self.user.id, job).await.unwrap() {
            TransactionResult::Finished(result, _) => *result,
            _ => panic!("the turn has no key"),
        }
    }

    async fn say(&self, message: &str) -> AgentResult {
        let turn = self.turn(message);
        let prefetch = turn.prefetch().await;
        self.run(turn, prefetch).await
    }

    async fn rename_only_task(&self, title: &str) {
        let owner = self.user.id;
        let patch = model::task::TaskPatch { title: Some(title.to_owned()), ..Default::default() };
        let change = patch.check(model::task::TaskLimits::default(), &self.user).unwrap();
        let now = self.clock.now();
        let rename = async move |tx: &mut Transaction| {
            let page = tasks::list(tx, owner, &Default::default(), None, 1).await?;
            let mut step = UndoStep::begin(tx, owner).await?;
            tasks::change(tx, &mut step, page.rows[0].id, &change, now).await
        };
        self.store.owner_transaction::<_, store::Error, _>(owner, rename).await.unwrap();
    }
}

// CHAT-7
#[tokio::test(flavor = "multi_thread")]
async fn the_transaction_reuses_the_lookups_of_the_prefetch() {
    let bench = Bench::new().await;
    bench.say("add buy milk").await;
    let turn = bench.turn("mark the milk task as done");
    let prefetch = turn.prefetch().await;
    // Another request renames the task. The transaction would not find it by its old name.
    bench.rename_only_task("buy eggs").await;
    let result = bench.run(turn, prefetch).await;
    assert_eq!(result.tool_calls.last().unwrap().tool_name, "complete_task", "{}", result.response);
    assert_eq!(result.tool_calls.last().unwrap().result["task"]["title"], "buy eggs");
}

// CHAT-7
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_ended_after_the_prefetch_is_part_of_the_history() {
    let bench = Bench::new().await;
    bench.say("add buy milk").await;
    let turn = bench.turn("mark it as done");
    let prefetch = turn.prefetch().await;
    bench.say("add buy bread").await;
    let result = bench.run(turn, prefetch).await;
    assert_eq!(result.response, "Great! I've marked 'buy bread' as complete.");
}
