//! What an agent was asked for in a conversation comes back to it: a message of the assistant, and a notification.
//!
//! The row of the execution says that this is still to be done, and the same transaction that tells it says that it was:
//! it is told once, whoever dies meanwhile. Never in the middle of a turn, and what waits for a confirmation goes on
//! waiting for it.

use std::sync::Arc;
use std::time::Duration;

use assistant::{Report, still_pending};
use background::reconcile;
use model::conversation::{Id, Message, Role};
use model::execution::FollowUp;
use model::notification::{Kind, Notification};
use model::{Clock, UserId};
use notify::Notifier;
use store::executions::{Stored, Whose, followed_up, to_follow_up};
use store::{Conn, Error, conversations, turns};
use uuid::Uuid;

use crate::App;

/// The longest time between two rounds: an execution may have ended on another node, or in the middle of a turn.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The shortest time between two rounds, so that many ends at once are one.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Told in one go.
const BATCH: i64 = 100;
/// More than the transaction takes in which it is told.
const TURN: Duration = Duration::from_secs(60);

/// Is told where the telling of an end is; tests end the process there.
pub type Witness = Arc<dyn Fn(Point) + Send + Sync>;

/// Where the telling of an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It was seen that an execution has ended that is to be told of.
    Seen,
    /// Its row says that it was told, in a transaction that goes on.
    Marked,
    /// The notification is written, in a transaction that goes on.
    Notified,
    /// Everything is written, in a transaction that goes on.
    Written,
    /// The transaction is committed.
    Committed,
}

/// Runs until the server stops.
pub async fn run(app: App) {
    run_before(app, Arc::new(|_| ())).await;
}

/// The same, before a witness.
pub async fn run_before(app: App, witness: Witness) {
    let wake = || {
        let ended = app.supervisor().next_end();
        async move {
            tokio::time::sleep(DEBOUNCE).await;
            ended.await;
        }
    };
    let work = || async { tell_all(&app, &witness).await.map(|()| None) };
    reconcile::run("results_not_told", POLL_INTERVAL, app.stopping(), wake, work).await;
}

async fn tell_all(app: &App, witness: &Witness) -> store::Result<()> {
    loop {
        let ended = to_follow_up(&mut app.store().reader().await?, FollowUp::Chat, BATCH).await?;
        let count = ended.len();
        let mut told = 0;
        for stored in ended {
            told += usize::from(tell(app, stored, witness).await?);
        }
        // Those in whose conversation somebody speaks have to wait.
        if told == 0 || i64::try_from(count) != Ok(BATCH) {
            return Ok(());
        }
    }
}

/// `false`: it has to wait.
async fn tell(app: &App, stored: Stored, witness: &Witness) -> store::Result<bool> {
    witness(Point::Seen);
    let execution = stored.execution;
    let owner = stored.owner;
    let conversation: Option<Id> =
        execution.context.get("conversation_id").and_then(|id| id.as_str()).and_then(|id| id.parse().ok());
    // A turn of this node that is under way will read what was said before it began, and no more.
    let _turn = match conversation.as_ref().map(|id| app.turns().try_lock(id)) {
        Some(None) => return Ok(false),
        turn => turn.flatten(),
    };
    let result = store::executions::result(&mut app.store().reader().await?, Whose::Users(owner), execution.id).await;
    let result = match result {
        Ok(result) => result,
        // Its owner has erased it.
        Err(Error::NotFound) => return Ok(true),
        Err(error) => return Err(error),
    };
    let agent = app.supervisor().agents().into_iter().find(|entry| entry.agent.id == execution.agent_id);
    let name = agent.map_or(execution.agent_id, |entry| entry.agent.name.clone());
    let report = Report::of(&name, result.status, &result.output, result.error.as_deref());
    let clock = app.clock().clone();
    let notifier = app.notifier().clone();
    let news = News { execution: execution.id, owner, conversation, report, clock, notifier, witness: witness.clone() };
    let told = app.store().transaction(async move |tx| news.write(tx).await).await?;
    if told {
        witness(Point::Committed);
    }
    Ok(told)
}

/// The end of one execution, to be told.
struct News {
    execution: Uuid,
    owner: UserId,
    conversation: Option<Id>,
    report: Report,
    clock: Clock,
    notifier: Notifier,
    witness: Witness,
}

impl News {
    /// `false`: another node is at a turn of the conversation, and nothing was done.
    async fn write(self, conn: &mut Conn) -> store::Result<bool> {
        let now = self.clock.now();
        let holder = self.clock.id();
        if let Some(id) = &self.conversation
            && !turns::take(conn, id, holder, now, now + TURN).await?
        {
            return Ok(false);
        }
        let first = followed_up(conn, self.execution).await?;
        if first {
            (self.witness)(Point::Marked);
            self.notify(conn).await?;
            (self.witness)(Point::Notified);
        }
        if let Some(id) = &self.conversation {
            if first {
                self.say(conn, id).await?;
            }
            turns::give_back(conn, id, holder).await?;
        }
        (self.witness)(Point::Written);
        Ok(true)
    }

    /// Whoever is not looking at the conversation is told all the same.
    async fn notify(&self, conn: &mut Conn) -> store::Result<()> {
        let mut notification = Notification::new(&self.clock, Kind::Execution, &self.report.title, &self.report.text);
        notification.execution_id = Some(self.execution);
        self.notifier.tell(conn, self.owner, &notification).await.map(drop)
    }

    /// Adds the message, unless the conversation is gone.
    async fn say(&self, conn: &mut Conn, id: &Id) -> store::Result<()> {
        let last = match conversations::open(conn, self.owner, id, 1).await {
            Ok(messages) => messages.into_iter().next_back(),
            Err(Error::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        let pending = last.and_then(|message| message.pending).as_ref().and_then(still_pending);
        let (pending, question) = pending.unzip();
        let content = match question {
            Some(question) => format!("{}\n\n{question}", self.report.text),
            None => self.report.text.clone(),
        };
        let id_of_message = self.clock.id();
        let now = self.clock.now();
        let message = Message {
            id: id_of_message,
            role: Role::Assistant,
            content,
            timestamp: now,
            tool_calls: Vec::new(),
            pending,
        };
        conversations::add(conn, self.owner, id, &message, now).await.map(drop)
    }
}
