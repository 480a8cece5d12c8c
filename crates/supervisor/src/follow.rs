//! Following an execution: what has happened, then what happens, until its end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use model::execution::{Execution, ResourceUsage, StateName};
use store::executions::{Event, Kind, Whose};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::Supervisor;
use crate::desk::Account;

/// Events read at once.
const AT_ONCE: i64 = 100;
/// At first: most executions have no more, and are read in one go then.
const FIRST: i64 = store::executions::FEW;
/// How often the table is looked at although nobody called: what runs on another node does not.
const LOOK: Duration = Duration::from_millis(500);

/// What a follower is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Event(Event),
    Usage(ResourceUsage),
    /// It has ended, and there is nothing more.
    End(Box<Execution>),
}

/// Somebody who follows one execution.
pub struct Follower {
    supervisor: Supervisor,
    whose: Whose,
    id: Uuid,
    after: i64,
    wake: Arc<Notify>,
    ready: std::collections::VecDeque<Told>,
    usage: Option<ResourceUsage>,
    told: Heard,
    /// What is there already is all that is wanted.
    so_far: bool,
    over: bool,
    /// How it ended, where that is known.
    ended: Option<Execution>,
}

impl Supervisor {
    /// Follows an execution from behind the event with this number.
    pub fn follow(&self, whose: Whose, id: Uuid, after: i64) -> Follower {
        Follower {
            supervisor: self.clone(),
            whose,
            id,
            after,
            wake: self.0.wakes.of(id),
            ready: std::collections::VecDeque::new(),
            usage: None,
            told: Heard::default(),
            so_far: false,
            over: false,
            ended: None,
        }
    }

    /// Rings when an execution may have changed, also one that has ended: its task may go on.
    pub fn bell(&self, id: Uuid) -> Bell {
        Bell { wake: self.0.wakes.of(id), every: self.look_every() }
    }

    /// Those who follow this execution shall look.
    pub fn ring(&self, id: Uuid) {
        self.0.wakes.wake(id);
    }

    /// Waits for the end of an execution.
    pub async fn wait(&self, whose: Whose, id: Uuid) -> store::Result<Execution> {
        self.wait_for(whose, id, false).await
    }

    /// The same for one that the caller has just put into the queue.
    pub async fn wait_for_own(&self, whose: Whose, id: Uuid) -> store::Result<Execution> {
        self.wait_for(whose, id, true).await
    }

    async fn wait_for(&self, whose: Whose, id: Uuid, mut is_theirs: bool) -> store::Result<Execution> {
        let wake = self.0.wakes.of(id);
        loop {
            if is_theirs {
                self.while_at_work(id).await;
            }
            let woken = wake.notified();
            tokio::pin!(woken);
            // From now on no call is missed.
            woken.as_mut().enable();
            let execution = store::executions::get(&mut self.0.store.reader().await?, whose, id).await?;
            if execution.is_ended() {
                return Ok(execution);
            }
            is_theirs = true;
            let _ = tokio::time::timeout(self.look_every(), woken).await;
        }
    }

    /// Waits while an execution is at work on this node, and says what happened, where all of that is known here: else it
    /// stands in the tables.
    pub async fn while_at_work(&self, id: Uuid) -> Option<Account> {
        let desk = self.desk(id)?;
        let wake = self.0.wakes.of(id);
        loop {
            let woken = wake.notified();
            tokio::pin!(woken);
            // There is one more call when it has left its desk.
            woken.as_mut().enable();
            if self.desk(id).is_none() {
                return desk.account().cloned();
            }
            let _ = tokio::time::timeout(self.look_every(), woken).await;
        }
    }

    /// Waits until an agent has nothing at work and nothing in its queue (S2's WaitForCompletion).
    pub async fn wait_for_agent(&self, agent_id: &str) -> store::Result<()> {
        loop {
            let ended = self.0.running.ended.notified();
            let counts = store::executions::counts(&mut self.0.store.reader().await?, agent_id).await?;
            if counts == (0, 0) {
                return Ok(());
            }
            let _ = tokio::time::timeout(self.look_every(), ended).await;
        }
    }

    fn look_every(&self) -> Duration {
        if self.0.store.is_shared() { LOOK } else { LOOK * 4 }
    }
}

/// Only a hint: the table is the truth.
pub struct Bell {
    wake: Arc<Notify>,
    every: Duration,
}

impl Bell {
    /// Is over when it rings after this was called, and after a while anyway.
    pub fn next(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut rung = Box::pin(self.wake.clone().notified_owned());
        rung.as_mut().enable();
        let every = self.every;
        async move {
            let _ = tokio::time::timeout(every, rung).await;
        }
    }
}

impl Follower {
    /// Whom it follows.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// It has ended like this: that need not be read.
    pub fn knows(&mut self, ended: Execution) {
        self.ended = Some(ended);
    }

    /// All that has happened: nothing need be read.
    pub fn knows_all(&mut self, account: &Account) {
        let news = account.events().filter_map(|event| self.told.news(event.clone()));
        self.ready.extend(news.map(Told::Event));
        self.ready.extend(account.execution().state().resource_usage().map(Told::Usage));
        self.over = true;
        self.ready.push_back(Told::End(Box::new(account.execution().clone())));
    }

    /// Tells what has happened so far, and nothing after that.
    #[must_use]
    pub fn so_far(mut self) -> Self {
        self.so_far = true;
        self
    }

    /// The next thing that has happened already; nothing where there is none at the moment.
    pub async fn next_so_far(&mut self) -> store::Result<Option<Told>> {
        while self.ready.is_empty() && !self.over {
            let before = self.after;
            self.read().await?;
            if self.after == before {
                break;
            }
            // It may be that nothing of what was read is told.
        }
        Ok(self.ready.pop_front())
    }

    /// The next thing to tell; nothing after the end.
    pub async fn next(&mut self) -> store::Result<Option<Told>> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(Some(told));
            }
            if self.over {
                return Ok(None);
            }
            let wake = self.wake.clone();
            let woken = wake.notified();
            tokio::pin!(woken);
            // From now on no call is missed, also while the tables are read.
            woken.as_mut().enable();
            if self.read().await? {
                continue;
            }
            if self.so_far {
                self.over = true;
            } else {
                let _ = tokio::time::timeout(self.supervisor.look_every(), woken).await;
            }
        }
    }

    /// Whether there was anything new.
    async fn read(&mut self) -> store::Result<bool> {
        let mut reader = self.supervisor.0.store.reader().await?;
        // The execution first: when it has ended, all its events are there.
        let execution = match self.ended.take() {
            Some(ended) => ended,
            None => store::executions::get(&mut reader, self.whose, self.id).await?,
        };
        let limit = if self.after == 0 { FIRST } else { AT_ONCE };
        let events = store::executions::events(&mut reader, self.id, self.after, limit).await?;
        drop(reader);
        let more = i64::try_from(events.len()).is_ok_and(|found| found >= limit);
        for event in events {
            self.after = event.seq;
            if let Some(event) = self.told.news(event) {
                self.ready.push_back(Told::Event(event));
            }
        }
        let usage = execution.state().resource_usage();
        if usage != self.usage
            && let Some(usage) = usage
        {
            self.usage = Some(usage);
            self.ready.push_back(Told::Usage(usage));
        }
        if execution.is_ended() {
            if more {
                self.ended = Some(execution);
            } else {
                self.over = true;
                self.ready.push_back(Told::End(Box::new(execution)));
            }
        }
        Ok(more || !self.ready.is_empty())
    }
}

/// What a follower was told of each stream.
#[derive(Default)]
pub(crate) struct Heard(HashMap<String, UpTo>);

impl Heard {
    /// What of it was not told yet: at its end, the last part of a long output takes the place of glimpses of it.
    pub(crate) fn news(&mut self, mut event: Event) -> Option<Event> {
        if event.kind == Kind::State {
            if event.text == StateName::Starting.as_str() {
                self.0.clear();
            }
            return Some(event);
        }
        let told = self.0.entry(event.stream.clone()).or_default();
        let length = match event.kind {
            Kind::Gap => event.text.parse().unwrap_or(0),
            _ => i64::try_from(event.text.len()).unwrap_or(i64::MAX),
        };
        let end = event.start.saturating_add(length);
        // Each begins behind the one before, unless it takes the place of what was told.
        told.replaced |= told.any && event.start <= told.start;
        match event.kind {
            Kind::Gap => {
                // Where what was told last ended is known only about: what is replaced in it has another length.
                let from = event.start.max(told.end);
                if end < from {
                    // It ends inside of what was told last, and the rest of that follows.
                    told.start = told.start.max(end);
                }
                if end <= from {
                    return None;
                }
                (event.start, event.text) = (from, (end - from).to_string());
                *told = UpTo { any: true, start: end - 1, end, replaced: false };
            }
            // What was told last is not divided, so what follows it is new.
            _ if told.replaced && event.start == told.start => {
                told.replaced = false;
                return None;
            }
            _ if told.replaced && end <= told.end => return None,
            // Unless that is too long ago: then all that can be said is that something is missing.
            _ if told.replaced && event.start < told.end => {
                (event.kind, event.text) = (Kind::Gap, (end - told.end).to_string());
                let begins = std::mem::replace(&mut event.start, told.end).min(told.end);
                *told = UpTo { any: true, start: begins.max(told.start), end, replaced: false };
            }
            _ => *told = UpTo { any: true, start: event.start, end, replaced: false },
        }
        Some(event)
    }
}

/// Up to where a stream was told.
#[derive(Clone, Copy, Default)]
struct UpTo {
    any: bool,
    /// Where the last of it began.
    start: i64,
    end: i64,
    /// What comes next was told before, until it comes to what was told last.
    replaced: bool,
}
