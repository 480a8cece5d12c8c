//! Hints between nodes that share a PostgreSQL database: what has changed, so that nobody waits for their next look.
//!
//! They may be lost, come twice or come late: the tables are the truth, and everyone looks there again now and then. What
//! a transaction has to tell goes out after its commit, together with what others have to tell by then: PostgreSQL commits
//! those that notify one after the other, and no write shall stand in that queue. With SQLite there is one node, and none
//! is sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::conn::Conn;
use crate::{Result, Store};

const CHANNEL: &str = "adjutant";
/// PostgreSQL takes less than 8000 bytes.
const LONGEST: usize = 7000;
/// More than this fits into none.
const MOST: usize = LONGEST / 30;
/// Between two tries to listen again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Something waits in the queue of this agent, or there is a place for it.
    Queue(String),
    /// An execution has come further.
    Execution(Uuid),
    Ended(Uuid),
    /// Somebody wants it cancelled.
    Cancel(Uuid),
    /// Something was said in a session, or it shall end, or has ended.
    Session(Uuid),
    /// Agents were added, changed or removed.
    Agents,
    /// There were too many to name, or some were lost.
    Everything,
}

impl Hint {
    fn write(&self) -> String {
        match self {
            Self::Queue(agent) => format!("q:{agent}"),
            Self::Execution(id) => format!("x:{id}"),
            Self::Ended(id) => format!("e:{id}"),
            Self::Cancel(id) => format!("c:{id}"),
            Self::Session(id) => format!("s:{id}"),
            Self::Agents => "a:".to_owned(),
            Self::Everything => "*:".to_owned(),
        }
    }

    /// What a later version says may not be known here: then anything may have changed.
    fn read(word: &str) -> Self {
        let (kind, of) = word.split_once(':').unwrap_or_default();
        let id = Uuid::try_parse(of);
        match (kind, id) {
            ("q", _) => Self::Queue(of.to_owned()),
            ("x", Ok(id)) => Self::Execution(id),
            ("e", Ok(id)) => Self::Ended(id),
            ("c", Ok(id)) => Self::Cancel(id),
            ("s", Ok(id)) => Self::Session(id),
            ("a", _) => Self::Agents,
            _ => Self::Everything,
        }
    }
}

/// There may be something to run for this agent, once the transaction is committed.
pub fn queue(conn: &mut Conn, agent_id: &str) {
    conn.hint(Hint::Queue(agent_id.to_owned()));
}

/// What a transaction has to tell.
#[derive(Debug, Default)]
pub(crate) struct Hints(Vec<Hint>);

impl Hints {
    pub(crate) fn add(&mut self, hint: Hint) {
        if !self.0.contains(&hint) {
            self.0.push(hint);
        }
    }

    fn is_long(&self) -> bool {
        self.0.len() > MOST
    }
}

/// Sends the hints of this node, one NOTIFY at a time. Ends with the last handle to it.
#[derive(Clone, Debug)]
pub(crate) struct Sender(Arc<Outgoing>);

#[derive(Debug, Default)]
struct Outgoing {
    waiting: Mutex<Hints>,
    bell: Notify,
}

impl Sender {
    pub(crate) fn start(pool: &PgPool) -> Self {
        let outgoing = Arc::new(Outgoing::default());
        let source = Arc::downgrade(&outgoing);
        let pool = pool.clone();
        tokio::spawn(async move {
            while let Some(outgoing) = source.upgrade() {
                let hints = std::mem::take(&mut *outgoing.waiting.lock().unwrap_or_else(PoisonError::into_inner));
                if hints.0.is_empty() {
                    let bell = outgoing.bell.notified();
                    // Nobody keeps what only this task holds on to.
                    let _ = tokio::time::timeout(PAUSE, bell).await;
                } else if let Err(error) = send(&pool, &hints).await {
                    tracing::debug!(error = %error, "hints were not sent");
                }
            }
        });
        Self(outgoing)
    }

    /// To be called when what they hint at is committed.
    pub(crate) fn send(&self, hints: Hints) {
        if hints.0.is_empty() {
            return;
        }
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.is_long() {
            waiting.0 = vec![Hint::Everything];
        } else {
            hints.0.into_iter().for_each(|hint| waiting.add(hint));
        }
        drop(waiting);
        self.0.bell.notify_one();
    }
}

/// Nobody waits for a disk that keeps a hint.
async fn send(pool: &PgPool, hints: &Hints) -> Result<()> {
    let sql = "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)";
    sqlx::query(sql).bind(CHANNEL).bind(text(&hints.0)).execute(pool).await?;
    Ok(())
}

fn text(hints: &[Hint]) -> String {
    let text = hints.iter().map(Hint::write).collect::<Vec<_>>().join(" ");
    if text.len() > LONGEST { Hint::Everything.write() } else { text }
}

/// Hears what other nodes hint at, and this one.
pub struct Listener {
    options: PgConnectOptions,
    listening: Option<PgListener>,
    warned: bool,
}

impl Store {
    /// Nothing where nobody else can be at work.
    pub fn listener(&self) -> Option<Listener> {
        let options = self.postgres()?.options().clone();
        Some(Listener { options, listening: None, warned: false })
    }
}

impl Listener {
    /// The next hints, however long that takes. A connection that breaks is made again, and the first thing that is told
    /// then is that something may have been missed.
    pub async fn next(&mut self) -> Vec<Hint> {
        loop {
            let Some(listening) = &mut self.listening else {
                match self.listen().await {
                    Ok(listening) => {
                        self.listening = Some(listening);
                        self.warned = false;
                        return vec![Hint::Everything];
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut self.warned, true) {
                            tracing::warn!(event = "hints_not_heard", error = %error);
                        }
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                }
            };
            match listening.try_recv().await {
                Ok(Some(first)) => {
                    let mut hints = Hints::default();
                    let mut next = Some(first);
                    while let Some(heard) = next {
                        heard.payload().split(' ').map(Hint::read).for_each(|hint| hints.add(hint));
                        next = listening.next_buffered();
                    }
                    return hints.0;
                }
                Ok(None) | Err(_) => self.listening = None,
            }
        }
    }

    async fn listen(&self) -> Result<PgListener> {
        // A connection of its own: it is never given back.
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
    fn what_is_written_is_read() {
        let id = Uuid::from_u128(7);
        let all = [
            Hint::Queue("code-review".to_owned()),
            Hint::Execution(id),
            Hint::Ended(id),
            Hint::Cancel(id),
            Hint::Session(id),
            Hint::Agents,
            Hint::Everything,
        ];
        let read: Vec<_> = text(&all).split(' ').map(Hint::read).collect();
        assert_eq!(read, all);
        for unknown in ["", "x", "x:nonsense", "z:7", ":"] {
            assert_eq!(Hint::read(unknown), Hint::Everything, "{unknown}");
        }
    }

    #[test]
    fn too_many_are_everything_and_none_is_told_twice() {
        let mut hints = Hints::default();
        (0..1000).for_each(|n| hints.add(Hint::Ended(Uuid::from_u128(n))));
        assert_eq!(text(&hints.0), "*:");
        let mut hints = Hints::default();
        (0..1000).for_each(|_| hints.add(Hint::Agents));
        assert_eq!(text(&hints.0), "a:");
    }
}
