//! Interactive sessions: a conversation with one agent process. Each message is an execution. The session holds the
//! slot of its agent for all of them.

use std::sync::Arc;
use std::time::Duration;

use model::agent::AgentMode;
use model::session::{Session, SessionState};
use model::{Invalid, User, UserId};
use store::Transaction;
use store::executions::{OwnerScope, claim_in_session, end_without_session, release_slot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::process::conversation::AgentConversation;
use crate::registry::AgentEntry;
use crate::submit::later;
use crate::{SubmitError, Supervisor};

/// The longest time between two reads of a session without a notification. Messages may come from other nodes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of messages that are ended in one transaction after the end of their session.
const BATCH_SIZE: i64 = 100;

/// A checked session that is ready to be opened.
#[derive(Clone)]
pub struct NewSession {
    session: Session,
    owner: UserId,
    entry: AgentEntry,
}

impl Supervisor {
    /// Returns a session for [`Supervisor::open_session`]. Fails with [`SubmitError::AgentNotFound`] if the user may
    /// not use the agent, and otherwise like [`Supervisor::prepare_session_with`].
    pub fn prepare_session(&self, user: &User, agent_id: &str) -> Result<NewSession, SubmitError> {
        let entry = self.agent_for(user, agent_id)?;
        self.prepare_session_with(&entry, user.id)
    }

    /// Like [`Supervisor::prepare_session`], for a caller that is already authorized for this agent. The session
    /// expires after the `session_timeout` of the agent. Fails with [`SubmitError::AgentDisabled`] if the agent is
    /// disabled, with [`SubmitError::Invalid`] if it is not interactive, and with [`SubmitError::NotOnThisNode`] if
    /// this node runs no agents.
    pub fn prepare_session_with(&self, entry: &AgentEntry, owner: UserId) -> Result<NewSession, SubmitError> {
        if !entry.agent.enabled {
            return Err(SubmitError::AgentDisabled(entry.agent.id.clone()));
        }
        if entry.agent.mode != AgentMode::Interactive {
            let message =
                "must be an agent with mode = \"interactive\"; for this agent use /api/agents/{id}/executions";
            return Err(Invalid::one("agent_id", "mode", message).into());
        }
        if self.runs_nothing() {
            return Err(SubmitError::NotOnThisNode("this node runs no agents; open the session on a node that does"));
        }
        let now = self.clock().now();
        let session = Session {
            id: self.clock().id(),
            agent_id: entry.agent.id.clone(),
            state: SessionState::Starting,
            created_at: now,
            last_activity: now,
            expires_at: later(now, entry.agent.session_timeout.duration()),
            ended_at: None,
            error_message: None,
        };
        Ok(NewSession { session, owner, entry: entry.clone() })
    }

    /// Opens a session on this node and returns it in the state `Starting`. It holds a slot of its agent from now on.
    /// Its process starts after the commit. Fails with [`store::Error::NoFreeSlot`] if the agent has no free slot or
    /// the node was declared dead, and with [`store::Error::Stopped`] while everything is stopped.
    pub async fn open_session(&self, tx: &mut Transaction, new: NewSession) -> store::Result<Session> {
        let NewSession { session, owner, entry } = new;
        let slots = i64::from(entry.agent.max_concurrency());
        store::sessions::open(tx, owner, &session, self.0.node, slots).await?;
        let opened = session.clone();
        let supervisor = self.clone();
        tx.after_commit(move || {
            supervisor.0.tasks.spawn(supervisor.clone().run_session(session, owner, entry));
        });
        Ok(opened)
    }

    /// Requests a session to close. The node that runs it is notified after the commit. Fails if the session is not
    /// found or has ended.
    pub async fn close_session(&self, tx: &mut Transaction, scope: OwnerScope, id: Uuid) -> store::Result<()> {
        store::sessions::request_close(tx, scope, id).await?;
        let supervisor = self.clone();
        tx.after_commit(move || supervisor.wake_session(id));
        Ok(())
    }

    /// Makes a session of this node read its messages.
    pub(crate) fn wake_session(&self, id: Uuid) {
        self.0.notifiers.notify(id);
    }

    /// Waits for the end of a session and returns it. Also polls, because it may run on another node. Fails if the
    /// database fails or the session is not found in this scope.
    pub async fn wait_for_session(&self, scope: OwnerScope, id: Uuid) -> store::Result<Session> {
        let notify = self.0.notifiers.get(id);
        loop {
            let notified = notify.notified();
            let session = store::sessions::get(&mut self.0.store.reader().await?, scope, id).await?;
            if session.ended_at.is_some() {
                return Ok(session);
            }
            let _ = tokio::time::timeout(POLL_INTERVAL, notified).await;
        }
    }

    /// Runs a session from its opening to its end, one message after the other. Each message extends the session by
    /// `session_timeout`. Failed writes of its state are logged and repeated with the next change or poll.
    /// The session ends in one of these states:
    /// - `Closed`: it was closed, or another node has taken it over.
    /// - `Expired`: it was idle for longer than `session_timeout`.
    /// - `Failed`: this node stops. With `keep_alive` also: its process cannot start or exits, or a message fails or is
    ///   stopped.
    ///
    /// Ends the process and its queued messages, and releases the slot. A message in progress is completed first,
    /// unless the node stops it.
    async fn run_session(self, mut session: Session, owner: UserId, mut entry: AgentEntry) {
        let notify = self.0.notifiers.get(session.id);
        let conversation =
            Arc::new(AgentConversation::new(self.0.processes.clone(), session.id, owner, entry.agent.clone()));
        entry.runner = conversation.clone();
        let opened = if entry.agent.keep_alive { conversation.start().await } else { Ok(()) };
        session.state = SessionState::Ready;
        let mut end = opened.err().map(|failure| (SessionState::Failed, Some(failure.message)));
        let mut written = None;
        while end.is_none() {
            // Write only changes: a session may be idle for hours.
            if written.as_ref() != Some(&session) {
                match self.save_session(&session).await {
                    Ok(()) => written = Some(session.clone()),
                    Err(true) => {
                        end = Some((SessionState::Closed, None));
                        break;
                    }
                    Err(false) => {}
                }
            }
            let notified = notify.notified();
            match self.next_message(&session).await {
                NextMessage::Close => end = Some((SessionState::Closed, None)),
                NextMessage::Message(claimed) => {
                    session.state = SessionState::Busy;
                    let _ = self.save_session(&session).await;
                    self.run_claimed(*claimed, &entry).await;
                    let now = self.clock().now();
                    session.last_activity = now;
                    session.expires_at = later(now, entry.agent.session_timeout.duration());
                    session.state = SessionState::Ready;
                    if let Some(reason) = conversation.failure_reason().await {
                        end = Some((SessionState::Failed, Some(reason)));
                    }
                }
                NextMessage::None => {
                    let now = self.clock().now();
                    if session.last_activity > now {
                        // The clock was set back.
                        session.last_activity = now;
                        session.expires_at = later(now, entry.agent.session_timeout.duration());
                    }
                    let left = session.expires_at.as_microsecond() - now.as_microsecond();
                    if left <= 0 {
                        end = Some((
                            SessionState::Expired,
                            Some("the session was idle for longer than session_timeout".to_owned()),
                        ));
                        continue;
                    }
                    let until = Instant::now() + Duration::from_micros(left.unsigned_abs()).min(POLL_INTERVAL);
                    tokio::select! {
                        () = notified => {}
                        () = tokio::time::sleep_until(until) => {}
                        reason = conversation.wait_for_exit() => end = Some((SessionState::Failed, Some(reason))),
                        () = self.0.stopping.cancelled() => {
                            end = Some((SessionState::Failed, Some("adjutant was stopped".to_owned())));
                        }
                    }
                }
            }
        }
        conversation.close().await;
        let (state, error_message) = end.unwrap_or((SessionState::Closed, None));
        session.state = state;
        session.error_message = error_message;
        session.ended_at = Some(self.clock().now());
        self.end_session(session).await;
    }

    /// Claims the next message of a session. Returns `NextMessage::Close` if the session is closing, has ended or does
    /// not exist. Returns `NextMessage::None` if no message may run now, or if the database fails, which is logged.
    async fn next_message(&self, session: &Session) -> NextMessage {
        let id = session.id;
        let node = self.0.node;
        let now = self.clock().now();
        let supervisor = self.clone();
        let claim = self.0.store.transaction(async move |tx| {
            let stored = store::sessions::get_for_claim(tx, id).await?;
            if stored.state == SessionState::Closing || stored.ended_at.is_some() {
                return Ok(NextMessage::Close);
            }
            if supervisor.0.dispatcher.holds_sessions() {
                return Ok(NextMessage::None);
            }
            let claimed = claim_in_session(tx, node, id, now).await?;
            Ok(claimed.map_or(NextMessage::None, |claimed| NextMessage::Message(Box::new(claimed))))
        });
        match claim.await {
            Ok(next) => next,
            Err(store::Error::NotFound) => NextMessage::Close,
            Err(error) => {
                tracing::warn!(event = "session_not_read", session_id = %id, error = %error);
                NextMessage::None
            }
        }
    }

    /// Writes the session and notifies its followers. Fails with `true` if the session has ended or another node has
    /// taken it over. Fails with `false` if the database fails, which is logged.
    async fn save_session(&self, session: &Session) -> Result<(), bool> {
        let node = self.0.node;
        let row = session.clone();
        let saved = self.0.store.transaction(async move |tx| store::sessions::save(tx, node, &row).await);
        match saved.await {
            Ok(true) => {
                self.0.notifiers.notify(session.id);
                Ok(())
            }
            Ok(false) => Err(true),
            Err(error) => {
                tracing::warn!(event = "session_not_written", session_id = %session.id, error = %error);
                Err(false)
            }
        }
    }

    /// Writes the end of a session, releases its slot, and ends queued messages of ended sessions, at most
    /// [`BATCH_SIZE`]. Then wakes the followers and the dispatcher. A failed write is logged and not retried.
    async fn end_session(&self, session: Session) {
        let node = self.0.node;
        let now = self.clock().now();
        let id = session.id;
        let row = session.clone();
        let ended = self.0.store.transaction(async move |tx| {
            store::sessions::save(tx, node, &row).await?;
            release_slot(tx, row.id, node).await?;
            store::hints::queue_changed(tx, &row.agent_id);
            end_without_session(tx, now, BATCH_SIZE).await
        });
        match ended.await {
            Ok(ended) => ended.iter().for_each(|execution| self.publish_change(execution)),
            Err(error) => tracing::error!(event = "session_end_not_written", session_id = %id, error = %error),
        }
        self.0.notifiers.notify(id);
        self.0.running.ended.notify_waiters();
        self.wake(&session.agent_id);
    }
}

/// The next action of a session.
enum NextMessage {
    Close,
    Message(Box<store::executions::ClaimedExecution>),
    /// No message is queued, or the database failed.
    None,
}
