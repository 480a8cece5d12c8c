//! Hints between nodes that share a PostgreSQL database. A hint names a change, so that other nodes do not wait for
//! their next poll.
//!
//! A hint may be lost, repeated or late. The tables are authoritative, and every reader polls them. The hints of a
//! transaction are sent after its commit, in one batch with the hints of other transactions. PostgreSQL serializes the
//! commits of transactions that notify, so a write must not send its own hints. With SQLite only one node exists, and
//! no hints are sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::conn::{Conn, args};
use crate::postgres::send_text;
use crate::{Result, Store};

const CHANNEL: &str = "adjutant";
/// The longest payload, in bytes. PostgreSQL accepts less than 8000.
const MAX_PAYLOAD: usize = 7000;
/// More hints than this do not fit into a payload.
const MAX_HINTS: usize = MAX_PAYLOAD / 30;
/// The delay between two attempts to listen again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A change that other nodes may react to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The queue of this agent has a new execution, or a slot became free.
    Queue(String),
    /// An execution has a new state or new events.
    Execution(Uuid),
    /// An execution has ended.
    Ended(Uuid),
    /// The cancellation of an execution was requested.
    Cancel(Uuid),
    /// A session has a new message, has to close, or has ended.
    Session(Uuid),
    /// Agents were added, changed or removed.
    Agents,
    /// Everything was stopped or resumed.
    Stop,
    /// Anything may have changed: the hints were too many, or some were lost.
    Everything,
}

impl Hint {
    /// Returns the letter of the kind, a colon and the subject. [`Hint::decode`] reads it.
    fn encode(&self) -> String {
        match self {
            Self::Queue(agent) => format!("q:{agent}"),
            Self::Execution(id) => format!("x:{id}"),
            Self::Ended(id) => format!("e:{id}"),
            Self::Cancel(id) => format!("c:{id}"),
            Self::Session(id) => format!("s:{id}"),
            Self::Agents => "a:".to_owned(),
            Self::Stop => "t:".to_owned(),
            Self::Everything => "*:".to_owned(),
        }
    }

    /// Reads the text that [`Hint::encode`] returns. Returns [`Hint::Everything`] for any other text: an unknown kind,
    /// as of a later version, a missing colon or an invalid id.
    fn decode(text: &str) -> Self {
        let (kind, subject) = text.split_once(':').unwrap_or_default();
        let id = Uuid::try_parse(subject);
        match (kind, id) {
            ("q", _) => Self::Queue(subject.to_owned()),
            ("x", Ok(id)) => Self::Execution(id),
            ("e", Ok(id)) => Self::Ended(id),
            ("c", Ok(id)) => Self::Cancel(id),
            ("s", Ok(id)) => Self::Session(id),
            ("a", _) => Self::Agents,
            ("t", _) => Self::Stop,
            _ => Self::Everything,
        }
    }
}

/// Sends [`Hint::Queue`] for the agent after the commit. Does nothing on SQLite.
pub fn queue_changed(conn: &mut Conn, agent_id: &str) {
    conn.add_hint(Hint::Queue(agent_id.to_owned()));
}

/// A set of hints in order of insertion.
#[derive(Debug, Default)]
pub(crate) struct HintSet(Vec<Hint>);

impl HintSet {
    /// Adds a hint unless the set contains it.
    pub(crate) fn add(&mut self, hint: Hint) {
        if !self.0.contains(&hint) {
            self.0.push(hint);
        }
    }

    fn is_full(&self) -> bool {
        self.0.len() > MAX_HINTS
    }
}

/// Sends the hints of this node in a background task, one NOTIFY at a time. The task ends with the last handle.
#[derive(Clone, Debug)]
pub(crate) struct HintSender(Arc<HintQueue>);

#[derive(Debug, Default)]
struct HintQueue {
    waiting: Mutex<HintSet>,
    added: Notify,
}

impl HintSender {
    /// Starts the background task and returns a handle to it. Must be called inside a tokio runtime. Hints that cannot
    /// be sent are lost; the failure is logged at debug level. The task ends within a second after the last handle is
    /// dropped.
    pub(crate) fn start(pool: &PgPool) -> Self {
        let queue = Arc::new(HintQueue::default());
        let weak = Arc::downgrade(&queue);
        let pool = pool.clone();
        tokio::spawn(async move {
            while let Some(queue) = weak.upgrade() {
                let hints = std::mem::take(&mut *queue.waiting.lock().unwrap_or_else(PoisonError::into_inner));
                if hints.0.is_empty() {
                    let added = queue.added.notified();
                    // The timeout lets the task notice that no other handle exists.
                    let _ = tokio::time::timeout(RETRY_DELAY, added).await;
                } else if let Err(error) = send(&pool, &hints).await {
                    tracing::debug!(error = %error, "cannot send hints");
                }
            }
        });
        Self(queue)
    }

    /// Queues hints, without duplicates, and wakes the background task. The caller has committed the changes that they
    /// name. If more than [`MAX_HINTS`] are already waiting, [`Hint::Everything`] replaces all of them and the new
    /// ones. Has no effect if `hints` is empty.
    pub(crate) fn send(&self, hints: HintSet) {
        if hints.0.is_empty() {
            return;
        }
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_full() {
            waiting.0 = vec![Hint::Everything];
        } else {
            hints.0.into_iter().for_each(|hint| waiting.add(hint));
        }
        drop(waiting);
        self.0.added.notify_one();
    }
}

/// Sends one NOTIFY. It does not wait for the disk, because a hint may be lost.
async fn send(pool: &PgPool, hints: &HintSet) -> Result<()> {
    let sql = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";
    send_text(pool, sql, &args![CHANNEL, payload(&hints.0)]).await
}

/// Returns the payload of a NOTIFY. If the hints do not fit, it contains only [`Hint::Everything`].
fn payload(hints: &[Hint]) -> String {
    let text = hints.iter().map(Hint::encode).collect::<Vec<_>>().join(" ");
    if text.len() > MAX_PAYLOAD { Hint::Everything.encode() } else { text }
}

/// Receives the hints of all nodes, including this one.
pub struct HintListener {
    options: PgConnectOptions,
    listening: Option<PgListener>,
    has_warned: bool,
}

impl Store {
    /// Returns a listener for hints, or `None` with SQLite and behind a pooler without a direct URL.
    pub fn hint_listener(&self) -> Option<HintListener> {
        let options = self.postgres()?.listen_options()?.clone();
        Some(HintListener { options, listening: None, has_warned: false })
    }
}

impl HintListener {
    /// Waits for the next hints and returns them without duplicates, in order. Returns only [`Hint::Everything`] after
    /// the first connection and after each reconnection, because hints may have been lost. Reconnects if the connection
    /// is lost, with a delay of one second after each failure. Only the first failure since the last connection is
    /// logged. Waits without a limit and never fails.
    pub async fn next(&mut self) -> Vec<Hint> {
        loop {
            let Some(listening) = &mut self.listening else {
                match self.listen().await {
                    Ok(listening) => {
                        self.listening = Some(listening);
                        self.has_warned = false;
                        return vec![Hint::Everything];
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut self.has_warned, true) {
                            tracing::warn!(event = "hints_not_heard", error = %error);
                        }
                        tokio::time::sleep(RETRY_DELAY).await;
                        continue;
                    }
                }
            };
            match listening.try_recv().await {
                Ok(Some(first)) => {
                    let mut hints = HintSet::default();
                    let mut next = Some(first);
                    while let Some(notification) = next {
                        notification.payload().split(' ').map(Hint::decode).for_each(|hint| hints.add(hint));
                        next = listening.next_buffered();
                    }
                    return hints.0;
                }
                Ok(None) | Err(_) => self.listening = None,
            }
        }
    }

    /// Opens a connection that listens for hints. Fails if the server cannot be reached.
    async fn listen(&self) -> Result<PgListener> {
        // A separate connection, because the listener holds it forever.
        let pool = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let mut listener = PgListener::connect_with(&pool.connect_with(self.options.clone()).await?).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_decoded_as_encoded() {
        let id = Uuid::from_u128(7);
        let all = [
            Hint::Queue("code-review".to_owned()),
            Hint::Execution(id),
            Hint::Ended(id),
            Hint::Cancel(id),
            Hint::Session(id),
            Hint::Agents,
            Hint::Stop,
            Hint::Everything,
        ];
        let decoded: Vec<_> = payload(&all).split(' ').map(Hint::decode).collect();
        assert_eq!(decoded, all);
        for unknown in ["", "x", "x:nonsense", "z:7", ":"] {
            assert_eq!(Hint::decode(unknown), Hint::Everything, "{unknown}");
        }
    }

    #[test]
    fn too_many_hints_become_everything_and_duplicates_are_dropped() {
        let mut hints = HintSet::default();
        (0..1000).for_each(|n| hints.add(Hint::Ended(Uuid::from_u128(n))));
        assert_eq!(payload(&hints.0), "*:");
        let mut hints = HintSet::default();
        (0..1000).for_each(|_| hints.add(Hint::Agents));
        assert_eq!(payload(&hints.0), "a:");
    }
}
