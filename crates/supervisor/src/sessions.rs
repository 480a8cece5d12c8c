//! Interactive mode: a conversation with one live process. Each message is an execution like any other; the session holds
//! the place of its agent for all of them.

use std::sync::Arc;
use std::time::Duration;

use model::agent::Mode;
use model::session::{Session, State};
use model::{Invalid, User, UserId};
use store::Transaction;
use store::executions::{Whose, claim_in_session, give_back, without_session};
use tokio::time::Instant;
use uuid::Uuid;

use crate::process::live::Conversation;
use crate::registry::Entry;
use crate::submit::later;
use crate::{Refused, Supervisor};

/// How often a session is looked at although nobody called: messages may come from other nodes.
const LOOK: Duration = Duration::from_secs(1);
/// Messages that are ended in one transaction when their session is over.
const BATCH: i64 = 100;

/// A session that can be opened.
#[derive(Clone)]
pub struct NewSession {
    session: Session,
    owner: UserId,
    entry: Entry,
}

impl Supervisor {
    /// Checks that the user may open a session with the agent, and makes one that [`Supervisor::open_session`] takes.
    pub fn prepare_session(&self, user: &User, agent_id: &str) -> Result<NewSession, Refused> {
        let entry = self.agent_for(user, agent_id)?;
        self.prepare_session_with(&entry, user.id)
    }

    /// Like [`Supervisor::prepare_session`], for a caller that has already been authorized for this agent.
    pub fn prepare_session_with(&self, entry: &Entry, owner: UserId) -> Result<NewSession, Refused> {
        if !entry.agent.enabled {
            return Err(Refused::Disabled(entry.agent.id.clone()));
        }
        if entry.agent.mode != Mode::Interactive {
            let message = "must be an agent whose mode is interactive; run others with /api/agents/{id}/executions";
            return Err(Invalid::one("agent_id", "mode", message).into());
        }
        if self.is_resting() {
            return Err(Refused::NotHere("this node runs no agents: open sessions on one that does"));
        }
        let now = self.clock().now();
        let session = Session {
            id: self.clock().id(),
            agent_id: entry.agent.id.clone(),
            state: State::Starting,
            created_at: now,
            last_activity: now,
            expires_at: later(now, entry.agent.session_timeout.duration()),
            ended_at: None,
            error_message: None,
        };
        Ok(NewSession { session, owner, entry: entry.clone() })
    }

    /// Opens a session on this node; its process starts after the commit. Fails with [`store::Error::NoPlace`] if the
    /// agent has no free slot.
    pub async fn open_session(&self, tx: &mut Transaction, new: NewSession) -> store::Result<Session> {
        let NewSession { session, owner, entry } = new;
        let places = i64::from(entry.agent.places());
        store::sessions::open(tx, owner, &session, self.0.node, places).await?;
        let opened = session.clone();
        let supervisor = self.clone();
        tx.after_commit(move || {
            supervisor.0.tasks.spawn(supervisor.clone().hold(session, owner, entry));
        });
        Ok(opened)
    }

    /// Asks a session to close; the node that holds it hears of it after the commit.
    pub async fn close_session(&self, tx: &mut Transaction, whose: Whose, id: Uuid) -> store::Result<()> {
        store::sessions::ask_to_close(tx, whose, id).await?;
        let supervisor = self.clone();
        tx.after_commit(move || supervisor.wake_session(id));
        Ok(())
    }

    /// Has a session of this node look for messages.
    pub(crate) fn wake_session(&self, id: Uuid) {
        self.0.wakes.wake(id);
    }

    /// Waits until a session has ended.
    pub async fn wait_for_session(&self, whose: Whose, id: Uuid) -> store::Result<Session> {
        let wake = self.0.wakes.of(id);
        loop {
            let woken = wake.notified();
            let session = store::sessions::get(&mut self.0.store.reader().await?, whose, id).await?;
            if session.ended_at.is_some() {
                return Ok(session);
            }
            let _ = tokio::time::timeout(LOOK, woken).await;
        }
    }

    /// A session from its opening to its end.
    async fn hold(self, mut session: Session, owner: UserId, mut entry: Entry) {
        let wake = self.0.wakes.of(session.id);
        let conversation =
            Arc::new(Conversation::new(self.0.processes.clone(), session.id, owner, entry.agent.clone()));
        entry.runner = conversation.clone();
        let opened = if entry.agent.keep_alive { conversation.start().await } else { Ok(()) };
        session.state = State::Ready;
        let mut end = opened.err().map(|failure| (State::Failed, Some(failure.message)));
        let mut written = None;
        while end.is_none() {
            // Only what has changed: a session may wait for hours.
            if written.as_ref() != Some(&session) {
                match self.save_session(&session).await {
                    Ok(()) => written = Some(session.clone()),
                    Err(true) => {
                        end = Some((State::Closed, None));
                        break;
                    }
                    Err(false) => {}
                }
            }
            let woken = wake.notified();
            match self.next_message(&session).await {
                Next::Close => end = Some((State::Closed, None)),
                Next::Message(claimed) => {
                    session.state = State::Busy;
                    let _ = self.save_session(&session).await;
                    self.carry_out(*claimed, &entry).await;
                    let now = self.clock().now();
                    session.last_activity = now;
                    session.expires_at = later(now, entry.agent.session_timeout.duration());
                    session.state = State::Ready;
                    if let Some(why) = conversation.broken().await {
                        end = Some((State::Failed, Some(why)));
                    }
                }
                Next::Nothing => {
                    let left = session.expires_at.as_microsecond() - self.clock().now().as_microsecond();
                    if left <= 0 {
                        end =
                            Some((State::Expired, Some("nothing was said for longer than session_timeout".to_owned())));
                        continue;
                    }
                    let until = Instant::now() + Duration::from_micros(left.unsigned_abs()).min(LOOK);
                    tokio::select! {
                        () = woken => {}
                        () = tokio::time::sleep_until(until) => {}
                        why = conversation.ends() => end = Some((State::Failed, Some(why))),
                        () = self.0.stopping.cancelled() => {
                            end = Some((State::Failed, Some("adjutant was stopped".to_owned())));
                        }
                    }
                }
            }
        }
        conversation.close().await;
        let (state, error_message) = end.unwrap_or((State::Closed, None));
        session.state = state;
        session.error_message = error_message;
        session.ended_at = Some(self.clock().now());
        self.end_session(session).await;
    }

    async fn next_message(&self, session: &Session) -> Next {
        let id = session.id;
        let node = self.0.node;
        let now = self.clock().now();
        let looked = self.0.store.transaction(async move |tx| {
            let kept = store::sessions::get(tx, Whose::Everyones, id).await?;
            if kept.state == State::Closing || kept.ended_at.is_some() {
                return Ok(Next::Close);
            }
            let claimed = claim_in_session(tx, node, id, now).await?;
            Ok(claimed.map_or(Next::Nothing, |claimed| Next::Message(Box::new(claimed))))
        });
        match looked.await {
            Ok(next) => next,
            Err(store::Error::NotFound) => Next::Close,
            Err(error) => {
                tracing::warn!(event = "session_not_read", session_id = %id, error = %error);
                Next::Nothing
            }
        }
    }

    /// `Err(true)`: it is not this node's any more.
    async fn save_session(&self, session: &Session) -> Result<(), bool> {
        let node = self.0.node;
        let kept = session.clone();
        let saved = self.0.store.transaction(async move |tx| store::sessions::save(tx, node, &kept).await);
        match saved.await {
            Ok(true) => {
                self.0.wakes.wake(session.id);
                Ok(())
            }
            Ok(false) => Err(true),
            Err(error) => {
                tracing::warn!(event = "session_not_written", session_id = %session.id, error = %error);
                Err(false)
            }
        }
    }

    async fn end_session(&self, session: Session) {
        let node = self.0.node;
        let now = self.clock().now();
        let id = session.id;
        let kept = session.clone();
        let ended = self.0.store.transaction(async move |tx| {
            store::sessions::save(tx, node, &kept).await?;
            give_back(tx, kept.id, node).await?;
            store::hints::queue(tx, &kept.agent_id);
            without_session(tx, now, BATCH).await
        });
        match ended.await {
            Ok(ended) => ended.iter().for_each(|execution| self.after(execution)),
            Err(error) => tracing::error!(event = "session_end_not_written", session_id = %id, error = %error),
        }
        self.0.wakes.wake(id);
        self.0.running.ended.notify_waiters();
        self.wake(&session.agent_id);
    }
}

enum Next {
    Close,
    Message(Box<store::executions::Claimed>),
    Nothing,
}
