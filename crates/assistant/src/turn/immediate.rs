//! A turn in one transaction: the conversation is read, tools are called, the exchange and the record for the idempotency key
//! are written, or nothing of it happened.
//!
//! The model and the tools must not wait for anything but the database: on SQLite the turn runs on the thread that writes.

use std::sync::Arc;

use store::Transaction;
use store::idempotency::{claim, settle};
use tracing::Instrument;

use super::{HISTORY_LENGTH, History, TurnRun, TurnStream, failure, from_reply, to_reply};
use crate::{AgentContext, AgentResult, ErrorType, TurnEvent, timed_out, trouble};

/// The result of the transaction.
enum Ran {
    Now(Box<AgentResult>, Vec<TurnEvent>),
    /// Like `Now`, with all events as they were recorded under the key.
    Recorded(Vec<TurnEvent>),
    /// Another request with the same key has run the turn before.
    Before(Vec<TurnEvent>),
}

pub(super) async fn start(run: TurnRun) -> store::Result<TurnStream> {
    let limit = run.time_limit();
    let run = Arc::new(run);
    let in_job = run.clone();
    let span = tracing::Span::current();
    let job = async move |tx: &mut Transaction| in_job.in_transaction(tx).instrument(span).await;
    let result = match tokio::time::timeout(limit, run.store().transaction(job)).await {
        Ok(Ok(Ran::Before(events))) => return Ok(TurnStream::replayed(events)),
        Ok(Ok(Ran::Recorded(events))) => return Ok(TurnStream::finished(events)),
        Ok(Ok(Ran::Now(result, mut events))) => {
            events.push(TurnEvent::Done(Arc::new(run.outcome(*result))));
            return Ok(TurnStream::finished(events));
        }
        Ok(Err(store::Error::Unavailable(cause))) => {
            tracing::error!(
                event = "error_occurred",
                error_type = "unavailable",
                error_message = cause,
                recoverable = true
            );
            AgentResult::failed(ErrorType::McpUnavailable, trouble())
        }
        Ok(Err(error)) => return Err(error),
        Err(_) => AgentResult::failed(ErrorType::Timeout, timed_out()),
    };
    let failure = failure(&result);
    Ok(TurnStream::finished(vec![failure, TurnEvent::Done(Arc::new(run.outcome(result)))]))
}

impl TurnRun {
    async fn in_transaction(&self, tx: &mut Transaction) -> store::Result<Ran> {
        let turn = &self.turn;
        let owner = turn.user.id;
        let now = self.clock().now();
        if let Some(key) = &turn.key
            && let Some(reply) = claim(tx, owner, key, now).await?
        {
            return Ok(Ran::Before(from_reply(&reply)?));
        }
        let stored;
        let context = match &turn.history {
            History::Stored(id) => {
                let history = store::conversations::open(tx, owner, id, HISTORY_LENGTH).await?;
                stored = AgentContext::kept(turn.user.clone(), history);
                &stored
            }
            History::FromCaller(context) => context,
        };
        let mut events = Vec::with_capacity(8);
        let mut toolbox = self.tools.within(&context.user, tx).in_conversation(turn.history.id());
        let result = self.runner.stream(context, &turn.request, &mut toolbox, &mut |event| events.push(event)).await?;
        if let Some(id) = turn.history.id() {
            let exchange = self.exchange(now, &result);
            store::conversations::append(tx, owner, id, &exchange, self.clock().now()).await?;
        }
        if let Some(key) = &turn.key {
            let done = TurnEvent::Done(Arc::new(self.outcome(result.clone())));
            let recorded: Vec<_> = events.iter().cloned().chain([done]).collect();
            settle(tx, owner, key, now, &to_reply(&recorded)?).await?;
            return Ok(Ran::Recorded(recorded));
        }
        Ok(Ran::Now(Box::new(result), events))
    }
}
