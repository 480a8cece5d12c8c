//! The work of a node: claims what may run, writes what runs report, renews its lease, and takes over from the dead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use model::agent::Agent;
use store::executions::{Claimed, New, Whose, abandoned, agents_waiting, claim, recover, too_late};
use store::nodes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::guardian;
use crate::registry::Entry;
use crate::submit::later;
use crate::{Stop, Supervisor, lock};

/// How often the tables are looked at although nobody called.
const LOOK: Duration = Duration::from_secs(1);
/// How often reports are written.
const WRITE: Duration = Duration::from_millis(100);
/// How soon a report is written after a time without any.
const HASTE: Duration = Duration::from_millis(20);
/// How long a node is believed to live after it last said so, and how often it says so.
const LEASE: Duration = Duration::from_secs(20);
const RENEWAL: Duration = Duration::from_secs(5);
/// A guardian ends its agents so long before others may take them for dead.
const MARGIN: Duration = Duration::from_secs(5);
/// Claimed for one agent at once.
const AT_ONCE: usize = 32;
/// How often files of executions that are no more are looked for.
const TIDY: Duration = Duration::from_secs(60 * 60);
/// Rows looked after in one transaction.
const BATCH: i64 = 100;

/// What keeps the programs of this node under control: it ends them when it is not told in time that the node lives.
pub(crate) trait Guard: Send + Sync {
    fn renew(&self, for_so_long: Duration);
}

/// What was taken from a queue.
#[derive(Default)]
#[must_use = "nobody else begins it while this node lives"]
pub struct Taken(Vec<(Claimed, Entry)>, Option<Room>);

impl Taken {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Room on this node for what is taken and not at work yet: others who take something meanwhile leave it alone.
struct Room {
    of: Supervisor,
    count: usize,
}

impl Room {
    /// For so many it was needed.
    fn shrink(&mut self, needed: usize) {
        let spare = self.count.saturating_sub(needed);
        *lock(&self.of.0.reserved) -= spare;
        self.count -= spare;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

/// What is known about the execution that a file belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Going,
    Over,
    Gone,
}

impl Supervisor {
    /// Begins to work: takes over what dead nodes left, then runs whatever is in the queue, until [`Supervisor::stop`].
    pub async fn work(&self) -> store::Result<()> {
        let swept = guardian::sweep().await;
        if swept > 0 {
            tracing::warn!(event = "processes_swept", count = swept);
        }
        self.refresh().await?;
        self.join().await?;
        self.0.processes.sweep_scratch();
        self.tidy().await?;
        let guard = self.0.processes.clone();
        guard.renew(LEASE - MARGIN);
        let tasks = &self.0.tasks;
        tasks.spawn(self.clone().dispatch());
        tasks.spawn(self.clone().write_reports());
        tasks.spawn(self.clone().keep_lease(guard));
        tasks.spawn(self.clone().look_after());
        tasks.spawn(self.clone().listen());
        self.call_all();
        Ok(())
    }

    /// Works on the queue of one agent only: for a node that is there for one run and ends after it.
    pub async fn work_only_for(&self, agent_id: &str) -> store::Result<()> {
        let _ = self.0.only.set(agent_id.to_owned());
        self.work().await
    }

    /// Takes nothing more from the queues, and waits until nothing runs here.
    pub async fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
        loop {
            let ended = self.0.ended.notified();
            if self.running() == 0 {
                return;
            }
            let _ = tokio::time::timeout(LOOK, ended).await;
        }
    }

    /// Whether something may be taken from the queue of this agent.
    pub(crate) fn takes_from(&self, agent_id: &str) -> bool {
        !self.0.draining.load(Ordering::Relaxed) && self.0.only.get().is_none_or(|only| only == agent_id)
    }

    /// Ends what runs, hands the rest back, and returns when that is done.
    pub async fn stop(&self) {
        self.0.stopping.cancel();
        let desks: Vec<_> = lock(&self.0.at_work).values().cloned().collect();
        for desk in desks {
            desk.stop(Stop::Shutdown);
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
        self.0.processes.stop().await;
        let node = self.0.node;
        let left = self.0.store.write(move |conn| Box::pin(nodes::leave(conn, node))).await;
        if let Err(error) = left {
            tracing::warn!(event = "node_not_signed_off", error = %error);
        }
    }

    async fn join(&self) -> store::Result<()> {
        let (node, now) = (self.0.node, self.0.clock.now());
        let alone = !self.0.store.is_shared();
        self.0
            .store
            .write(move |conn| {
                Box::pin(async move {
                    let now = nodes::judge(conn, now).await?;
                    nodes::join(conn, node, now, later(now, LEASE)).await?;
                    // Whoever holds the lock of the data directory is the only one.
                    if alone { nodes::bury_others(conn, node).await } else { nodes::bury(conn, now).await }
                })
            })
            .await?;
        self.take_over().await
    }

    /// Removes the files of executions that are over, or no more: requests with secrets, scratch directories, artifacts.
    pub(crate) async fn tidy(&self) -> store::Result<()> {
        if let Some(spool) = self.spool() {
            for id in spool.ids() {
                if self.life_of(id).await? != Life::Going {
                    spool.remove(id);
                }
            }
        }
        for id in self.0.processes.left_scratch() {
            if self.life_of(id).await? != Life::Going && !self.is_open_session(id).await? {
                self.0.processes.remove_scratch(id);
            }
        }
        for id in self.0.processes.kept_artifacts() {
            if self.life_of(id).await? == Life::Gone {
                self.0.processes.remove_artifacts(id);
            }
        }
        Ok(())
    }

    async fn life_of(&self, id: Uuid) -> store::Result<Life> {
        match store::executions::get(&mut self.0.store.reader().await?, Whose::Everyones, id).await {
            Ok(execution) if execution.end_time.is_none() => Ok(Life::Going),
            Ok(_) => Ok(Life::Over),
            Err(store::Error::NotFound) => Ok(Life::Gone),
            Err(error) => Err(error),
        }
    }

    async fn is_open_session(&self, id: Uuid) -> store::Result<bool> {
        match store::sessions::get(&mut self.0.store.reader().await?, Whose::Everyones, id).await {
            Ok(session) => Ok(session.ended_at.is_none()),
            Err(store::Error::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Claims whenever somebody calls, and now and then anyway.
    async fn dispatch(self) {
        let stopping = self.0.stopping.clone();
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = self.0.call.notified() => {}
                _ = look.tick() => {
                    if let Err(error) = self.look().await {
                        tracing::warn!(event = "queue_not_read", error = %error);
                    }
                }
            }
            let calls: Vec<_> = std::mem::take(&mut *lock(&self.0.calls)).into_iter().collect();
            for agent in calls {
                if let Err(error) = self.claim_for(&agent).await {
                    tracing::warn!(event = "queue_not_claimed", agent_id = agent, error = %error);
                }
            }
        }
    }

    /// What others have put into the queue, or what has become due.
    async fn look(&self) -> store::Result<()> {
        let waiting = agents_waiting(&mut self.0.store.reader().await?, self.0.clock.now()).await?;
        lock(&self.0.calls).extend(waiting);
        Ok(())
    }

    async fn claim_for(&self, agent_id: &str) -> store::Result<()> {
        if self.registry().get(agent_id).is_none() && self.takes_from(agent_id) {
            return self.end_orphans(agent_id).await;
        }
        let (supervisor, id) = (self.clone(), agent_id.to_owned());
        let taken = self.0.store.write(move |conn| Box::pin(async move { supervisor.take(conn, &id).await })).await?;
        self.begin_all(taken);
        Ok(())
    }

    /// Puts an execution into the queue of its agent and takes what may run of that. [`Supervisor::begin_all`] is to be
    /// called when that is committed; where nothing was taken, [`Supervisor::wake`].
    pub async fn submit(&self, conn: &mut store::Conn, new: &New) -> store::Result<Taken> {
        let entry = self.may_take(&new.execution.agent_id);
        let room = entry.as_ref().map(|_| self.reserve(1)).filter(|room| room.count > 0);
        let claimed = store::a2a::submit_to(conn, new, room.as_ref().map(|_| self.0.node)).await?;
        match (claimed, entry) {
            (Some(claimed), Some(entry)) => Ok(Taken(vec![(claimed, entry)], room)),
            (None, Some(entry)) if new.execution.session_id.is_none() => {
                drop(room);
                self.take_with(conn, entry).await
            }
            _ => Ok(Taken::default()),
        }
    }

    /// Takes what may run of the agent's queue. [`Supervisor::begin_all`] is to be called when that is committed. Whoever
    /// puts something into a queue can do so in the same transaction, and must call [`Supervisor::wake`] otherwise.
    pub async fn take(&self, conn: &mut store::Conn, agent_id: &str) -> store::Result<Taken> {
        match self.may_take(agent_id) {
            Some(entry) => self.take_with(conn, entry).await,
            None => Ok(Taken::default()),
        }
    }

    /// The agent, where something of its queue may run here now.
    fn may_take(&self, agent_id: &str) -> Option<Entry> {
        let may = self.takes_from(agent_id) && !self.0.stopping.is_cancelled();
        let entry = self.registry().get(agent_id).filter(|entry| may && entry.agent.enabled);
        entry.filter(|_| self.is_admitted(0))
    }

    async fn take_with(&self, conn: &mut store::Conn, entry: Entry) -> store::Result<Taken> {
        let mut room = self.reserve(AT_ONCE);
        let limit = i64::try_from(room.count).unwrap_or(i64::MAX);
        let (spool, places, now) = (self.spool_name(), i64::from(entry.agent.places()), self.0.clock.now());
        let claimed = claim(conn, self.0.node, &spool, &entry.agent.id, places, limit, now).await?;
        room.shrink(claimed.len());
        Ok(Taken(claimed.into_iter().map(|claimed| (claimed, entry.clone())).collect(), Some(room)))
    }

    /// Carries out what was taken.
    pub fn begin_all(&self, taken: Taken) {
        let Taken(claimed, _room) = taken;
        for (claimed, entry) in claimed {
            self.begin(claimed, entry);
        }
    }

    /// The agent is gone for which these wait. Where there are several nodes it may be in the configuration of another:
    /// what nobody takes ends with its patience.
    async fn end_orphans(&self, agent_id: &str) -> store::Result<()> {
        if self.0.store.is_shared() {
            return Ok(());
        }
        let (id, now) = (agent_id.to_owned(), self.0.clock.now());
        let ended = self.0.store.write(move |conn| {
            Box::pin(
                async move { store::executions::end_waiting(conn, &id, "its agent was removed", now, BATCH).await },
            )
        });
        for execution in ended.await? {
            self.after(&execution);
        }
        Ok(())
    }

    async fn refresh_quietly(&self) -> store::Result<()> {
        let kept = store::agents::all(&mut self.0.store.reader().await?).await?;
        self.registry().set_api(kept);
        Ok(())
    }

    /// Whether the machine has room; `leaving` of those at work are about to end.
    pub(crate) fn is_admitted(&self, leaving: usize) -> bool {
        let running = self.running().saturating_sub(leaving);
        let refusal = lock(&self.0.admission).refusal(running);
        let admitted = refusal.is_none();
        let mut known = lock(&self.0.refusal);
        if known.is_none()
            && let Some(why) = &refusal
        {
            tracing::warn!(event = "executions_held_back", reason = why);
        }
        *known = refusal;
        admitted
    }

    /// Room for as many more as may run on this node, at most `wanted`.
    fn reserve(&self, wanted: usize) -> Room {
        let most = lock(&self.0.admission).max_running;
        let mut reserved = lock(&self.0.reserved);
        let free = most.map_or(usize::MAX, |most| most.saturating_sub(self.running() + *reserved));
        let count = free.min(wanted);
        *reserved += count;
        Room { of: self.clone(), count }
    }

    async fn write_reports(self) {
        let done = self.done();
        loop {
            tokio::select! {
                () = done.cancelled() => return,
                () = self.0.dirty.notified() => {}
            }
            // What ends at once is written once.
            tokio::time::sleep(HASTE).await;
            let desks: Vec<_> = lock(&self.0.at_work).values().cloned().collect();
            for desk in desks {
                if let Err(error) = desk.flush().await {
                    tracing::warn!(event = "output_not_written", execution_id = %desk.id(), error = %error);
                }
            }
            tokio::time::sleep(WRITE - HASTE).await;
        }
    }

    /// Ends when the node stops and nothing is at work any more.
    fn done(&self) -> CancellationToken {
        let (stopping, supervisor, done) = (self.0.stopping.clone(), self.clone(), CancellationToken::new());
        let token = done.clone();
        self.0.tasks.spawn(async move {
            stopping.cancelled().await;
            while supervisor.running() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            token.cancel();
        });
        done
    }

    async fn keep_lease(self, guard: impl Guard) {
        let done = self.done();
        loop {
            tokio::select! {
                () = done.cancelled() => return,
                () = tokio::time::sleep(RENEWAL) => {}
            }
            match self.renew().await {
                // Only what the others believe is promised to the guardian.
                Ok(true) => guard.renew(LEASE - MARGIN),
                Ok(false) => {
                    tracing::error!(event = "lease_lost", message = "this node was taken for dead; it begins anew");
                    let desks: Vec<_> = lock(&self.0.at_work).values().cloned().collect();
                    desks.iter().for_each(|desk| desk.stop(Stop::Lost));
                    if let Err(error) = self.join().await {
                        tracing::error!(event = "lease_not_renewed", error = %error);
                    }
                }
                Err(error) => tracing::error!(event = "lease_not_renewed", error = %error),
            }
        }
    }

    async fn renew(&self) -> store::Result<bool> {
        if !self.0.store.is_shared() {
            return Ok(true);
        }
        let (node, now) = (self.0.node, self.0.clock.now());
        let renewed = self.0.store.write(move |conn| {
            Box::pin(async move {
                let now = nodes::judge(conn, now).await?;
                nodes::renew(conn, node, later(now, LEASE)).await
            })
        });
        renewed.await
    }

    /// What no signal tells: cancellations from other nodes, those that wait too long, nodes that died.
    pub(crate) async fn look_after(self) {
        let stopping = self.0.stopping.clone();
        let warned = AtomicBool::new(false);
        let mut tidied = Instant::now();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            if tidied.elapsed() >= TIDY {
                tidied = Instant::now();
                if let Err(error) = self.tidy().await {
                    tracing::warn!(event = "files_not_tidied", error = %error);
                }
            }
            match self.look_around().await {
                Ok(()) => warned.store(false, Ordering::Relaxed),
                Err(error) if !warned.swap(true, Ordering::Relaxed) => {
                    tracing::warn!(event = "executions_not_looked_after", error = %error);
                }
                Err(_) => {}
            }
        }
    }

    async fn look_around(&self) -> store::Result<()> {
        self.stop_cancelled().await?;
        let now = self.0.clock.now();
        let impatient = store::executions::any_too_late(&mut self.0.store.reader().await?, now).await?;
        if impatient {
            let ended =
                self.0.store.write(move |conn| Box::pin(async move { too_late(conn, now, BATCH).await })).await?;
            ended.iter().for_each(|execution| self.after(execution));
        }
        if self.0.store.is_shared() {
            self.refresh_quietly().await?;
            let buried = self.0.store.write(move |conn| {
                Box::pin(async move {
                    let now = nodes::judge(conn, now).await?;
                    nodes::bury(conn, now).await
                })
            });
            if buried.await? > 0 {
                self.take_over().await?;
            }
        }
        Ok(())
    }

    /// What dead nodes had at work ends here, or goes back into the queue.
    async fn take_over(&self) -> store::Result<()> {
        loop {
            let (now, supervisor) = (self.0.clock.now(), self.clone());
            let taken = self.0.store.write(move |conn| {
                Box::pin(async move {
                    let mut taken = Vec::new();
                    store::sessions::abandon(conn, now).await?;
                    for stored in abandoned(conn, BATCH).await? {
                        let retry_at = supervisor.retry_at(&stored.execution, now);
                        taken.push(recover(conn, stored, "adjutant was stopped while it ran", retry_at, now).await?);
                    }
                    Ok(taken)
                })
            });
            let taken = taken.await?;
            for execution in &taken {
                tracing::warn!(event = "execution_recovered", execution_id = %execution.id, state = %execution.state);
                self.after(execution);
                self.wake(&execution.agent_id);
            }
            if taken.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
                return Ok(());
            }
        }
    }

    /// When an interrupted execution is tried again, if it is.
    fn retry_at(&self, execution: &model::execution::Execution, now: Timestamp) -> Option<Timestamp> {
        if execution.retry_count >= execution.max_retries {
            return None;
        }
        let agent = self.registry().get(&execution.agent_id).map(|entry| entry.agent);
        let delay = agent.map_or(Duration::from_secs(1), |agent: std::sync::Arc<Agent>| agent.retry_delay.duration());
        now.checked_add(SignedDuration::try_from(delay).unwrap_or_default()).ok()
    }

    pub(crate) fn spool_name(&self) -> String {
        self.spool().map(|spool| spool.name().to_owned()).unwrap_or_default()
    }
}
