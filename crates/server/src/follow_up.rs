//! Reports the end of an execution to the conversation that started it: a message of the assistant and a notification.
//!
//! The row of the execution marks the report as pending. One transaction writes the report and clears the mark, so each
//! execution is reported once, even after a crash. A report never interrupts a turn, and a pending confirmation stays
//! pending.

use std::sync::Arc;
use std::time::Duration;

use assistant::{AgentReport, agent_report_record, renew_confirmation};
use background::reconcile;
use model::conversation::{ConversationId, Message, MessageRole};
use model::execution::FollowUp;
use model::notification::{Notification, NotificationKind};
use model::{Clock, UserId};
use notify::Notifier;
use store::executions::{ExecutionRow, OwnerScope, mark_followed_up, pending_follow_ups};
use store::{Conn, Error, conversations, turns};
use uuid::Uuid;

use crate::App;

/// The longest time between two rounds. It covers executions that ended on a different node or during a turn.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The shortest time between two rounds, so that many ends at once are handled in one round.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// The number of executions that are read at once.
const BATCH_SIZE: i64 = 100;
/// The lease of the conversation. It is longer than the transaction that writes the report.
const TURN_LEASE: Duration = Duration::from_secs(60);

/// Called at every crash point. Tests end the process there.
pub type FollowUpCrashHook = Arc<dyn Fn(FollowUpCrashPoint) + Send + Sync>;

/// A point in the report of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUpCrashPoint {
    /// An ended execution with a pending report was found.
    Found,
    /// Its row is marked as reported. The transaction is open.
    Marked,
    /// The notification is written. The transaction is open.
    Notified,
    /// Everything is written. The transaction is open.
    Written,
    /// The transaction is committed.
    Committed,
}

/// Reports ends of executions until the server stops.
pub async fn run(app: App) {
    run_with_crash_hook(app, Arc::new(|_| ())).await;
}

/// Like [`run`], with a hook for crash tests. A round starts at most 50 ms after the end of an execution on this node,
/// and at least every two seconds. A failed round is logged and repeated.
pub async fn run_with_crash_hook(app: App, crash_hook: FollowUpCrashHook) {
    let wake = || {
        let ended = app.supervisor().next_end();
        async move {
            tokio::time::sleep(DEBOUNCE).await;
            ended.await;
        }
    };
    let work = || async { report_all(&app, &crash_hook).await.map(|()| None) };
    reconcile::run("results_not_told", POLL_INTERVAL, app.stopping(), wake, work).await;
}

/// Reports all pending ends, in batches of 100. Executions with a running turn in their conversation stay pending until
/// the next round. If none of a batch can be reported, the following ones stay pending too. Stops at the first error.
async fn report_all(app: &App, crash_hook: &FollowUpCrashHook) -> store::Result<()> {
    loop {
        let ended = pending_follow_ups(&mut app.store().reader().await?, FollowUp::Chat, BATCH_SIZE).await?;
        let count = ended.len();
        let mut reported = 0;
        for row in ended {
            reported += usize::from(report(app, row, crash_hook).await?);
        }
        // Executions with a turn in their conversation have to wait for the next round.
        if reported == 0 || i64::try_from(count) != Ok(BATCH_SIZE) {
            return Ok(());
        }
    }
}

/// Reports the end of one execution. Returns `false` if a turn is running in its conversation; then nothing was done.
/// Returns `true` without a report if the execution was deleted or is already reported. An execution without a valid
/// conversation id causes only a notification. The report has the name of the agent, or its id if the agent was
/// removed. Fails if the database fails.
async fn report(app: &App, row: ExecutionRow, crash_hook: &FollowUpCrashHook) -> store::Result<bool> {
    crash_hook(FollowUpCrashPoint::Found);
    let execution = row.execution;
    let owner = row.owner;
    let conversation: Option<ConversationId> =
        execution.context.get("conversation_id").and_then(|id| id.as_str()).and_then(|id| id.parse().ok());
    // A running turn of this node has read the history already and would miss the report.
    let _turn = match conversation.as_ref().map(|id| app.turns().try_lock(id)) {
        Some(None) => return Ok(false),
        turn => turn.flatten(),
    };
    let result =
        store::executions::result(&mut app.store().reader().await?, OwnerScope::User(owner), execution.id).await;
    let result = match result {
        Ok(result) => result,
        // The owner has erased it.
        Err(Error::NotFound) => return Ok(true),
        Err(error) => return Err(error),
    };
    let agent = app.supervisor().agents().into_iter().find(|entry| entry.agent.id == execution.agent_id);
    let name = agent.map_or(execution.agent_id, |entry| entry.agent.name.clone());
    let report = AgentReport::new(&name, result.status, &result.output, result.error.as_deref());
    let clock = app.clock().clone();
    let notifier = app.notifier().clone();
    let end = EndReport {
        execution: execution.id,
        owner,
        conversation,
        report,
        clock,
        notifier,
        crash_hook: crash_hook.clone(),
    };
    let is_written = app.store().owner_transaction(owner, async move |tx| end.write(tx).await).await?;
    if is_written {
        crash_hook(FollowUpCrashPoint::Committed);
    }
    Ok(is_written)
}

/// The report of the end of one execution.
struct EndReport {
    execution: Uuid,
    owner: UserId,
    conversation: Option<ConversationId>,
    report: AgentReport,
    clock: Clock,
    notifier: Notifier,
    crash_hook: FollowUpCrashHook,
}

impl EndReport {
    /// Writes the report, if no other node has written it. Returns `false` if a different node runs a turn in the
    /// conversation. Then nothing was done. Otherwise returns `true`, also for a report that was already written.
    /// `crash_hook` is called after each step. Fails if the database fails.
    async fn write(self, conn: &mut Conn) -> store::Result<bool> {
        let now = self.clock.now();
        let holder = self.clock.id();
        if let Some(id) = &self.conversation
            && !turns::acquire(conn, id, holder, now, now + TURN_LEASE).await?
        {
            return Ok(false);
        }
        let is_first = mark_followed_up(conn, self.execution).await?;
        if is_first {
            (self.crash_hook)(FollowUpCrashPoint::Marked);
            self.notify(conn).await?;
            (self.crash_hook)(FollowUpCrashPoint::Notified);
        }
        if let Some(id) = &self.conversation {
            if is_first {
                self.add_message(conn, id).await?;
            }
            turns::release(conn, id, holder).await?;
        }
        (self.crash_hook)(FollowUpCrashPoint::Written);
        Ok(true)
    }

    /// Notifies the owner, because the conversation may not be open. Fails if the database fails.
    async fn notify(&self, conn: &mut Conn) -> store::Result<()> {
        let mut notification =
            Notification::new(&self.clock, NotificationKind::Execution, &self.report.title, &self.report.text);
        notification.execution_id = Some(self.execution);
        self.notifier.notify(conn, self.owner, &notification).await.map(drop)
    }

    /// Adds the message to the conversation, unless the conversation was deleted. If the last message has a pending
    /// confirmation that can be renewed, the new message repeats its question and keeps it pending. Fails if the
    /// database fails.
    async fn add_message(&self, conn: &mut Conn, id: &ConversationId) -> store::Result<()> {
        let last = match conversations::read_history(conn, self.owner, id, 1).await {
            Ok(messages) => messages.into_iter().next_back(),
            Err(Error::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        let pending = last.as_ref().and_then(renew_confirmation);
        let (pending, question) = pending.unzip();
        let content = match question {
            Some(question) => format!("{}\n\n{question}", self.report.text),
            None => self.report.text.clone(),
        };
        let message_id = self.clock.id();
        let now = self.clock.now();
        let message = Message {
            id: message_id,
            role: MessageRole::Assistant,
            content,
            timestamp: now,
            tool_calls: vec![agent_report_record(self.execution)],
            pending,
        };
        conversations::append_to_existing(conn, self.owner, id, &message, now).await.map(drop)
    }
}
