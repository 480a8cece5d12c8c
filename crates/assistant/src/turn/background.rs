//! Runs a turn in a background task, for models that wait for a provider. The turn reports events as they happen and
//! continues when the caller disconnects.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use background::backoff::BackoffPolicy;
use futures::FutureExt;
use jiff::Timestamp;
use model::conversation::{ConversationId, Message};
use store::idempotency::{claim, release, save_reply};
use store::turns;
use tracing::Instrument;
use uuid::Uuid;

use super::stream::EventLog;
use super::{
    ConversationLock, History, MAX_HISTORY_MESSAGES, StreamSource, TurnRun, TurnStream, failure, from_reply, to_reply,
};
use crate::{AgentContext, AgentResult, ErrorType, TurnEvent, stopped, system_error};

/// Delays between attempts to acquire the lease of a conversation from another node.
const LEASE_RETRY_BACKOFF: BackoffPolicy = BackoffPolicy::new(Duration::from_millis(20), Duration::from_millis(250));
/// The longest lease of a turn, without its margin.
const MAX_LEASE: Duration = Duration::from_secs(3600);
/// Extra time of a lease for writing the exchange after the time limit of the turn.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// Starts the turn in the background and returns its events. If the key was used before, returns the events of that
/// turn. Otherwise waits, without a time limit, until no other turn of the conversation runs on any node.
///
/// Fails with [`store::Error::KeyReused`] or [`store::Error::KeyBusy`] if the key cannot be used. Fails with
/// [`store::Error::NotFound`] if the conversation belongs to another user. Also fails if the database fails. If this
/// request has claimed the key, it is released before the error is returned.
pub(super) async fn start(run: TurnRun) -> store::Result<TurnStream> {
    if let Some(earlier) = run.claim_key().await? {
        return Ok(earlier);
    }
    let log = Arc::new(EventLog::new(run.turn.request_id.clone()));
    let owner = run.turn.user.id;
    let active = &run.engine.0.active;
    if let Some(key) = &run.turn.key {
        active.insert(owner, key, &log);
    }
    match run.prepare().await {
        Ok(prepared) => {
            let stream = TurnStream::follow(log.clone(), StreamSource::Started);
            let tasks = run.engine.0.tasks.clone();
            tasks.spawn(run.run(prepared, log).in_current_span());
            Ok(stream)
        }
        Err(error) => {
            if let Some(key) = run.turn.key.clone() {
                active.remove(owner, &key);
                run.store().owner_transaction(owner, async move |tx| release(tx, owner, &key).await).await?;
            }
            Err(error)
        }
    }
}

/// A turn that is ready to start. The conversation has been read, and no other turn of it is running.
struct PreparedTurn {
    context: AgentContext,
    asked_at: Timestamp,
    lease: Option<TurnLease>,
}

/// The exclusive right to run a turn of a conversation.
struct TurnLease {
    _on_this_node: ConversationLock,
    /// Identifies the holder to other nodes, if there are any.
    holder: Option<Uuid>,
}

impl TurnRun {
    /// Claims the key in its own transaction. Returns `None` if the turn has no key or the key is new. Otherwise
    /// returns the stream of the earlier request: its record, or its events so far if it still runs on this node.
    ///
    /// Fails with [`store::Error::KeyBusy`] if that request has not ended and does not run on this node. Fails with
    /// [`store::Error::KeyReused`] if the key belongs to a different request. Also fails if the record is corrupt or
    /// the database fails.
    async fn claim_key(&self) -> store::Result<Option<TurnStream>> {
        let Some(key) = self.turn.key.clone() else { return Ok(None) };
        let owner = self.turn.user.id;
        let now = self.clock().now();
        let claimed = key.clone();
        match self.store().owner_transaction(owner, async move |tx| claim(tx, owner, &claimed, now).await).await {
            Ok(None) => Ok(None),
            Ok(Some(reply)) => Ok(Some(TurnStream::replayed(from_reply(&reply)?))),
            Err(store::Error::KeyBusy) => {
                let log = self.engine.0.active.find(owner, &key).ok_or(store::Error::KeyBusy)?;
                Ok(Some(TurnStream::follow(log, StreamSource::Joined)))
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the lock of the conversation on this node, then for its lease, and reads the conversation. A
    /// conversation of the caller needs neither. Fails if the conversation belongs to another user or the database
    /// fails. The lock and the lease are released after a failure.
    async fn prepare(&self) -> store::Result<PreparedTurn> {
        let asked_at = self.clock().now();
        match &self.turn.history {
            History::FromCaller(context) => Ok(PreparedTurn { context: (**context).clone(), asked_at, lease: None }),
            History::Stored(id) => {
                let on_this_node = self.engine.0.active.lock(id).await;
                let holder = self.acquire_lease(id).await?;
                match self.read_history(id).await {
                    Ok(history) => {
                        let context = AgentContext::stored(self.turn.user.clone(), history);
                        let lease = Some(TurnLease { _on_this_node: on_this_node, holder });
                        Ok(PreparedTurn { context, asked_at, lease })
                    }
                    Err(error) => {
                        // The conversation may belong to another user. Its turns must not wait for the lease to expire.
                        self.release_lease(id, holder).await?;
                        Err(error)
                    }
                }
            }
        }
    }

    async fn read_history(&self, id: &ConversationId) -> store::Result<Vec<Message>> {
        let mut reader = self.store().owner_reader(self.turn.user.id).await?;
        store::conversations::open(&mut reader, self.turn.user.id, id, MAX_HISTORY_MESSAGES).await
    }

    /// Waits, without a time limit, until no other node runs a turn of this conversation. The lease lasts for the time
    /// limit of the turn and of external tools, at most [`MAX_LEASE`], plus [`LEASE_MARGIN`]. The lease of a crashed node expires. Returns
    /// the holder of the new lease, or `None` if the store is not shared between nodes. Fails if the database fails.
    async fn acquire_lease(&self, id: &ConversationId) -> store::Result<Option<Uuid>> {
        if !self.store().is_shared() {
            return Ok(None);
        }
        let holder = self.clock().id();
        let lease = self.time_limit().saturating_add(self.tools.max_call_time()).min(MAX_LEASE) + LEASE_MARGIN;
        let mut backoff = LEASE_RETRY_BACKOFF.start();
        loop {
            let id = id.clone();
            let now = self.clock().now();
            let acquire = self.store().owner_transaction(self.turn.user.id, async move |tx| {
                turns::acquire(tx, &id, holder, now, now + lease).await
            });
            if acquire.await? {
                return Ok(Some(holder));
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Releases the lease of this holder. Has no effect if the store is not shared.
    async fn release_lease(&self, id: &ConversationId, holder: Option<Uuid>) -> store::Result<()> {
        let Some(holder) = holder else { return Ok(()) };
        let id = id.clone();
        self.store().owner_transaction(self.turn.user.id, async move |tx| turns::release(tx, &id, holder).await).await
    }

    /// Runs the turn to its end, stores the exchange, calls the hook, and sends [`TurnEvent::Done`] last. A panic, a
    /// failure of the database and a failure to store the exchange are logged. They add an `Error` event and make the
    /// outcome an [`ErrorType::Internal`] failure. A cancelled turn also fails with this type, but without an `Error`
    /// event. If the exchange cannot be stored, the lease and the key are not released.
    async fn run(self, prepared: PreparedTurn, log: Arc<EventLog>) {
        let turn = &self.turn;
        let mut toolbox = self.tools.for_user(&prepared.context.user, self.store()).in_conversation(turn.history.id());
        let mut report = |event| log.push(event);
        let running = self.runner.stream(&prepared.context, &turn.request, &mut toolbox, &mut report);
        let running = turn.cancelled.run_until_cancelled(running);
        // Readers must see an end, even after a panic.
        let mut result = match AssertUnwindSafe(running).catch_unwind().await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(error))) => self.log_failure(&error.to_string(), &log),
            Ok(None) => AgentResult::failed(ErrorType::Internal, stopped()),
            Err(_) => self.log_failure("panic", &log),
        };
        drop(toolbox);
        let mut outcome = self.outcome(result.clone());
        if let Err(error) = Box::pin(self.store_exchange(&prepared, &log, &outcome)).await {
            result = self.log_failure(&error.to_string(), &log);
            outcome = self.outcome(result);
        }
        drop(prepared);
        self.report_end(&outcome);
        log.push(TurnEvent::Done(Arc::new(outcome)));
        if let Some(key) = &turn.key {
            self.engine.0.active.remove(turn.user.id, key);
        }
    }

    /// Writes the exchange, releases the lease and records the events under the key, in one transaction. A conversation
    /// of the caller is not written. The recorded events are those of the log and a final [`TurnEvent::Done`]. Fails,
    /// without any effect, if the events cannot be serialized, the conversation belongs to another user, or the
    /// database fails.
    async fn store_exchange(
        &self,
        prepared: &PreparedTurn,
        log: &EventLog,
        outcome: &super::TurnOutcome,
    ) -> store::Result<()> {
        let owner = self.turn.user.id;
        let now = self.clock().now();
        let exchange = self.exchange(prepared.asked_at, &outcome.result);
        let id = self.turn.history.id().cloned();
        let holder = prepared.lease.as_ref().and_then(|lease| lease.holder);
        let record = match &self.turn.key {
            None => None,
            Some(key) => {
                let mut events = log.events().clone();
                events.push(TurnEvent::Done(Arc::new(outcome.clone())));
                Some((key.clone(), to_reply(&events)?))
            }
        };
        let write = self.store().owner_transaction(owner, async move |tx| {
            if let Some(id) = &id {
                store::conversations::append(tx, owner, id, &exchange, now).await?;
                if let Some(holder) = holder {
                    turns::release(tx, id, holder).await?;
                }
            }
            match &record {
                Some((key, reply)) => save_reply(tx, owner, key, now, reply).await,
                None => Ok(()),
            }
        });
        write.await
    }

    /// Logs an internal failure, adds it to the events and returns the result of the failed turn.
    fn log_failure(&self, error_message: &str, log: &EventLog) -> AgentResult {
        tracing::error!(event = "error_occurred", error_type = "internal", error_message, recoverable = false);
        let result = AgentResult::failed(ErrorType::Internal, system_error());
        log.push(failure(&result));
        result
    }
}
