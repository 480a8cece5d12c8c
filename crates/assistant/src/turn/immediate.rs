//! Runs a turn in one transaction: reads the conversation, calls tools, and writes the exchange and the record for the
//! idempotency key. If the transaction fails, the turn has no effect. A turn that exceeds its time limit is reported as
//! a failure, but its transaction can still commit.
//!
//! The model and the tools must not wait for anything but the database. On SQLite the transaction runs on the writer
//! thread. A query that takes long would delay all other writes. So the turn first runs on a connection for reads, up to
//! its first change, and the transaction reuses what was read there.

use std::borrow::Cow;
use std::sync::Arc;

use store::Transaction;
use store::idempotency::{claim, save_reply};
use tools::PrefetchedCalls;
use tracing::Instrument;

use super::{History, MAX_HISTORY_MESSAGES, TurnRun, TurnStream, failure, from_reply, to_reply};
use crate::{AgentContext, AgentResult, ErrorType, TurnEvent, system_error, timed_out};

/// The result of the transaction.
enum TransactionResult {
    Finished(Box<AgentResult>, Vec<TurnEvent>),
    /// Like `Finished`, with all events as they were recorded under the key.
    Recorded(Vec<TurnEvent>),
    /// An earlier request with the same key completed the turn.
    Replayed(Vec<TurnEvent>),
}

/// The data that a turn has read before its transaction.
#[derive(Default)]
struct Prefetch {
    /// The stored conversation. `None` if it was not read.
    context: Option<AgentContext>,
    calls: PrefetchedCalls,
}

/// Runs the turn in one transaction, returns its events and calls the hook. An earlier turn with the same key is
/// replayed without a call of the hook. If the database is unavailable, logs this and returns an
/// [`ErrorType::McpUnavailable`] failure. Returns an [`ErrorType::Timeout`] failure if the time limit passes. The
/// transaction is then not stopped and can still commit. Fails with all other errors of the store.
pub(super) async fn start(run: TurnRun) -> store::Result<TurnStream> {
    let limit = run.time_limit();
    let run = Arc::new(run);
    let in_job = run.clone();
    let span = tracing::Span::current();
    let turn = async {
        let prefetch = run.prefetch().await;
        let job = async move |tx: &mut Transaction| in_job.in_transaction(tx, prefetch).instrument(span).await;
        run.store().owner_transaction(run.turn.user.id, job).await
    };
    let result = match tokio::time::timeout(limit, turn).await {
        Ok(Ok(TransactionResult::Replayed(events))) => return Ok(TurnStream::replayed(events)),
        Ok(Ok(TransactionResult::Recorded(events))) => return Ok(run.finished(events)),
        Ok(Ok(TransactionResult::Finished(result, mut events))) => {
            events.push(TurnEvent::Done(Arc::new(run.outcome(*result))));
            return Ok(run.finished(events));
        }
        Ok(Err(error @ (store::Error::Unavailable(_) | store::Error::Storage(_)))) => {
            tracing::error!(
                event = "error_occurred",
                error_type = "unavailable",
                error_message = %error,
                recoverable = true
            );
            AgentResult::failed(ErrorType::McpUnavailable, system_error())
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => AgentResult::failed(ErrorType::Timeout, timed_out()),
    };
    let failure = failure(&result);
    Ok(run.finished(vec![failure, TurnEvent::Done(Arc::new(run.outcome(result)))]))
}

impl TurnRun {
    /// Returns the stream of these events and reports the end of the turn.
    fn finished(&self, events: Vec<TurnEvent>) -> TurnStream {
        let stream = TurnStream::finished(events);
        if let Some(outcome) = stream.try_outcome() {
            self.report_end(&outcome);
        }
        stream
    }

    /// Reads the conversation and runs the turn up to its first change, without logs. Returns nothing if the database
    /// fails or the conversation belongs to another user. The transaction reports that.
    async fn prefetch(&self) -> Prefetch {
        self.read_ahead().await.unwrap_or_default()
    }

    async fn read_ahead(&self) -> store::Result<Prefetch> {
        let turn = &self.turn;
        let mut reader = self.store().owner_reader(turn.user.id).await?;
        let context = match &turn.history {
            History::FromCaller(context) => Cow::Borrowed(&**context),
            History::Stored(id) => {
                let owner = turn.user.id;
                let history = store::conversations::read_history(&mut reader, owner, id, MAX_HISTORY_MESSAGES).await?;
                Cow::Owned(AgentContext::stored(turn.user.clone(), history))
            }
        };
        let mut toolbox = self.tools.for_user_reading(&context.user, &mut reader);
        // Ends with an error at the first change. The transaction runs the turn again.
        let _ = self.runner.stream(&context, &turn.request, &mut toolbox, &mut |_| ()).await;
        let calls = toolbox.into_prefetched();
        let context = match context {
            Cow::Owned(stored) => Some(stored),
            Cow::Borrowed(_) => None,
        };
        Ok(Prefetch { context, calls })
    }

    /// Claims the key, reads the history if it has changed since the prefetch, runs the turn, appends the exchange to a stored conversation and records the
    /// events under the key. Creates the conversation if it does not exist. Without a key, returns `Finished`, whose
    /// events do not contain [`TurnEvent::Done`]. With a key, returns `Recorded` with all events, or `Replayed` without
    /// a run if the key has events already. A failure of the model or of a tool is part of the result.
    ///
    /// Fails with [`store::Error::KeyReused`] or [`store::Error::KeyBusy`] if the key cannot be used. Fails with
    /// [`store::Error::NotFound`] if the conversation belongs to another user, and with [`store::Error::Corrupt`] if
    /// events cannot be encoded or decoded. Also fails if the database fails.
    async fn in_transaction(&self, tx: &mut Transaction, prefetch: Prefetch) -> store::Result<TransactionResult> {
        let turn = &self.turn;
        let owner = turn.user.id;
        let now = self.clock().now();
        if let Some(key) = &turn.key
            && let Some(reply) = claim(tx, owner, key, now).await?
        {
            return Ok(TransactionResult::Replayed(from_reply(&reply)?));
        }
        let mut calls = prefetch.calls;
        let context = match &turn.history {
            History::FromCaller(context) => Cow::Borrowed(&**context),
            History::Stored(id) => {
                let last = prefetch.context.as_ref().and_then(|context| context.history.last()).map(|last| last.id);
                let changed = store::conversations::open_if_changed(tx, owner, id, MAX_HISTORY_MESSAGES, last).await?;
                Cow::Owned(match (prefetch.context, changed) {
                    (Some(context), None) => context,
                    (_, history) => {
                        // Another turn has ended since, or nothing was read.
                        calls = PrefetchedCalls::default();
                        AgentContext::stored(turn.user.clone(), history.unwrap_or_default())
                    }
                })
            }
        };
        let mut events = Vec::with_capacity(8);
        let mut toolbox = self.tools.for_user_in(&context.user, tx, calls).in_conversation(turn.history.id());
        let result = self.runner.stream(&context, &turn.request, &mut toolbox, &mut |event| events.push(event)).await?;
        if let Some(id) = turn.history.id() {
            let exchange = self.exchange(now, &result);
            store::conversations::append(tx, owner, id, &exchange, self.clock().now()).await?;
        }
        if let Some(key) = &turn.key {
            let done = TurnEvent::Done(Arc::new(self.outcome(result.clone())));
            let recorded: Vec<_> = events.iter().cloned().chain([done]).collect();
            save_reply(tx, owner, key, now, &to_reply(&recorded)?).await?;
            return Ok(TransactionResult::Recorded(recorded));
        }
        Ok(TransactionResult::Finished(Box::new(result), events))
    }
}

#[cfg(test)]
mod tests;
