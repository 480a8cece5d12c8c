//! A turn with a model that takes its time: it runs in a task of its own, reports events as they happen, and outlives the
//! connection of its caller.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use background::backoff::Doubling;
use futures::FutureExt;
use jiff::Timestamp;
use model::conversation::{Id, Message};
use store::idempotency::{claim, release, settle};
use store::turns;
use tracing::Instrument;
use uuid::Uuid;

use super::stream::EventLog;
use super::{ConversationLock, HISTORY_LENGTH, History, Source, TurnRun, TurnStream, failure, from_reply, to_reply};
use crate::{AgentContext, AgentResult, ErrorType, TurnEvent, stopped, trouble};

/// Delays between two attempts to take the turn of a conversation that another node holds.
const DELAYS: Doubling = Doubling::new(Duration::from_millis(20), Duration::from_millis(250));
/// A lease of a turn never lasts longer than this.
const MAX_LEASE: Duration = Duration::from_secs(3600);
/// The time that a turn may take beyond its limit, until it is written.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

pub(super) async fn start(run: TurnRun) -> store::Result<TurnStream> {
    if let Some(earlier) = run.earlier().await? {
        return Ok(earlier);
    }
    let log = Arc::new(EventLog::new(run.turn.request_id.clone()));
    let owner = run.turn.user.id;
    let active = &run.engine.0.active;
    if let Some(key) = &run.turn.key {
        active.insert(owner, key, &log);
    }
    match run.begin().await {
        Ok(begun) => {
            let stream = TurnStream::follow(log.clone(), Source::Started);
            let tasks = run.engine.0.tasks.clone();
            tasks.spawn(run.run(begun, log).in_current_span());
            Ok(stream)
        }
        Err(error) => {
            if let Some(key) = run.turn.key.clone() {
                active.remove(owner, &key);
                run.store().transaction(async move |tx| release(tx, owner, &key).await).await?;
            }
            Err(error)
        }
    }
}

/// A turn that may start: the conversation is read, and no other turn of it runs.
struct Begun {
    context: AgentContext,
    asked_at: Timestamp,
    lease: Option<Lease>,
}

/// The right to run the turn of a conversation.
struct Lease {
    _on_this_node: ConversationLock,
    /// Identifies the holder to other nodes, if there are any.
    holder: Option<Uuid>,
}

impl TurnRun {
    /// Claims the key. Returns the stream of the request that has claimed it before, if there is one.
    async fn earlier(&self) -> store::Result<Option<TurnStream>> {
        let Some(key) = self.turn.key.clone() else { return Ok(None) };
        let owner = self.turn.user.id;
        let now = self.clock().now();
        let claimed = key.clone();
        match self.store().transaction(async move |tx| claim(tx, owner, &claimed, now).await).await {
            Ok(None) => Ok(None),
            Ok(Some(reply)) => Ok(Some(TurnStream::replayed(from_reply(&reply)?))),
            Err(store::Error::KeyBusy) => {
                let log = self.engine.0.active.find(owner, &key).ok_or(store::Error::KeyBusy)?;
                Ok(Some(TurnStream::follow(log, Source::Joined)))
            }
            Err(error) => Err(error),
        }
    }

    async fn begin(&self) -> store::Result<Begun> {
        let asked_at = self.clock().now();
        match &self.turn.history {
            History::FromCaller(context) => Ok(Begun { context: (**context).clone(), asked_at, lease: None }),
            History::Stored(id) => {
                let on_this_node = self.engine.0.active.lock(id).await;
                let holder = self.take_lease(id).await?;
                match self.read_history(id).await {
                    Ok(history) => {
                        let context = AgentContext::kept(self.turn.user.clone(), history);
                        let lease = Some(Lease { _on_this_node: on_this_node, holder });
                        Ok(Begun { context, asked_at, lease })
                    }
                    Err(error) => {
                        // The conversation may be another user's, who must not wait for this lease to expire.
                        self.release_lease(id, holder).await?;
                        Err(error)
                    }
                }
            }
        }
    }

    async fn read_history(&self, id: &Id) -> store::Result<Vec<Message>> {
        let mut reader = self.store().reader().await?;
        store::conversations::open(&mut reader, self.turn.user.id, id, HISTORY_LENGTH).await
    }

    /// Waits until no other node runs a turn of this conversation. The lease of a node that died expires. Returns `None` if
    /// there are no other nodes.
    async fn take_lease(&self, id: &Id) -> store::Result<Option<Uuid>> {
        if !self.store().is_shared() {
            return Ok(None);
        }
        let holder = self.clock().id();
        let lease = self.time_limit().min(MAX_LEASE) + LEASE_MARGIN;
        let mut backoff = DELAYS.start();
        loop {
            let id = id.clone();
            let now = self.clock().now();
            let take = self.store().transaction(async move |tx| turns::take(tx, &id, holder, now, now + lease).await);
            if take.await? {
                return Ok(Some(holder));
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn release_lease(&self, id: &Id, holder: Option<Uuid>) -> store::Result<()> {
        let Some(holder) = holder else { return Ok(()) };
        let id = id.clone();
        self.store().transaction(async move |tx| turns::give_back(tx, &id, holder).await).await
    }

    /// Runs the turn to its end. [`TurnEvent::Done`] promises that the exchange is stored, so it comes last.
    async fn run(self, begun: Begun, log: Arc<EventLog>) {
        let turn = &self.turn;
        let mut toolbox = self.tools.for_user(&begun.context.user, self.store()).in_conversation(turn.history.id());
        let mut report = |event| log.push(event);
        let running = self.runner.stream(&begun.context, &turn.request, &mut toolbox, &mut report);
        let running = turn.cancelled.run_until_cancelled(running);
        // Readers must see an end, whatever happens here.
        let mut result = match AssertUnwindSafe(running).catch_unwind().await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(error))) => self.fail(&error.to_string(), &log),
            Ok(None) => AgentResult::failed(ErrorType::Internal, stopped()),
            Err(_) => self.fail("panic", &log),
        };
        drop(toolbox);
        let mut outcome = self.outcome(result.clone());
        if let Err(error) = Box::pin(self.store_exchange(&begun, &log, &outcome)).await {
            result = self.fail(&error.to_string(), &log);
            outcome = self.outcome(result);
        }
        drop(begun);
        log.push(TurnEvent::Done(Arc::new(outcome)));
        if let Some(key) = &turn.key {
            self.engine.0.active.remove(turn.user.id, key);
        }
    }

    /// Writes the exchange, gives the lease back and records the events under the key, in one transaction.
    async fn store_exchange(&self, begun: &Begun, log: &EventLog, outcome: &super::TurnOutcome) -> store::Result<()> {
        let owner = self.turn.user.id;
        let now = self.clock().now();
        let exchange = self.exchange(begun.asked_at, &outcome.result);
        let id = self.turn.history.id().cloned();
        let holder = begun.lease.as_ref().and_then(|lease| lease.holder);
        let record = match &self.turn.key {
            None => None,
            Some(key) => {
                let mut events = log.events().clone();
                events.push(TurnEvent::Done(Arc::new(outcome.clone())));
                Some((key.clone(), to_reply(&events)?))
            }
        };
        let write = self.store().transaction(async move |tx| {
            if let Some(id) = &id {
                store::conversations::append(tx, owner, id, &exchange, now).await?;
                if let Some(holder) = holder {
                    turns::give_back(tx, id, holder).await?;
                }
            }
            match &record {
                Some((key, reply)) => settle(tx, owner, key, now, reply).await,
                None => Ok(()),
            }
        });
        write.await
    }

    fn fail(&self, error_message: &str, log: &EventLog) -> AgentResult {
        tracing::error!(event = "error_occurred", error_type = "internal", error_message, recoverable = false);
        let result = AgentResult::failed(ErrorType::Internal, trouble());
        log.push(failure(&result));
        result
    }
}
