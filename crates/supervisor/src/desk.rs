//! Where a run reports while it is carried out, and hears that it shall end.

mod batch;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use model::Clock;
use model::agent::Agent;
use model::execution::{Artifact, Execution, Exit, Illegal, ResourceUsage, StateName};
use model::said::Said;
use redact::{Redactor, What};
use store::Store;
use store::executions::{Event, Fence, Kind, SAID};
use tokio::sync::{Notify, watch};

pub use self::batch::Account;
pub(crate) use self::batch::Batch;
use crate::streams::{Name, Streams};
use crate::wake::Wakes;

/// More than this that is not written yet makes whoever reports wait.
const ENOUGH: usize = 1 << 20;
/// How long until a database that did not take a report is asked again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// A cheap handle to the record of one execution at work.
#[derive(Clone)]
pub struct Desk(Arc<Inner>);

struct Inner {
    fence: Fence,
    clock: Clock,
    store: Store,
    wakes: Wakes,
    stop: watch::Sender<Option<Stop>>,
    notes: Mutex<Notes>,
    /// Held while notes are on their way to the database, so that they arrive in order. What did not arrive is kept.
    writing: tokio::sync::Mutex<Option<Arc<Batch>>>,
    /// Tells the writer that there is something.
    dirty: Arc<Notify>,
    account: OnceLock<Account>,
    /// How many of its streams are read by threads that step back for others.
    behind: AtomicUsize,
}

/// Why a run shall end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Timeout,
    Cancelled,
    /// The node is asked to end.
    Shutdown,
    /// Somebody else has the execution by now: nothing that is still done counts.
    Lost,
}

/// What is not written yet.
struct Notes {
    execution: Execution,
    streams: Streams,
    events: Vec<Event>,
    waiting: usize,
    seq: i64,
    changed: bool,
    /// The last batch was made: nothing counts that comes now.
    closed: bool,
    /// Output from there on is replaced by what follows.
    dropped: Vec<(Name, i64)>,
    redactor: Redactor,
    max_output: u64,
    /// How many bytes are kept of earlier tries.
    earlier: i64,
    /// How many bytes are kept of what is more than text, and where the next of it begins.
    said: (u64, u64),
    /// What was written when it was claimed, where that and what is not written yet is all there is.
    begun: Option<[Event; 2]>,
}

impl Desk {
    pub(crate) fn new(
        fence: Fence,
        execution: Execution,
        seq: i64,
        agent: &Agent,
        parts: (&Store, &Clock, &Wakes, &Arc<Notify>),
    ) -> Self {
        let (store, clock, wakes, dirty) = parts;
        let notes = Notes::new(execution, seq, agent.max_output_size, redactor(agent.redacts()));
        Self(Arc::new(Inner {
            fence,
            clock: clock.clone(),
            store: store.clone(),
            wakes: wakes.clone(),
            stop: watch::Sender::new(None),
            notes: Mutex::new(notes),
            writing: tokio::sync::Mutex::default(),
            dirty: dirty.clone(),
            account: OnceLock::new(),
            behind: AtomicUsize::new(0),
        }))
    }

    pub fn id(&self) -> uuid::Uuid {
        self.0.fence.id
    }

    /// These values must not be seen in anything that is kept. To be said before anything is reported.
    pub fn keep_secret(&self, values: Vec<String>) {
        let mut notes = self.notes();
        if !values.is_empty() {
            notes.redactor = notes.redactor.clone().with_known(values);
            let redactor = notes.redactor.clone();
            notes.streams.redact_with(&redactor);
        }
    }

    /// The text as it may be kept.
    pub fn redacted(&self, text: &str) -> String {
        self.notes().redactor.text(text).replace('\0', "\u{fffd}")
    }

    /// Records the start of the attempt, as this process. Does nothing if the attempt has already started.
    pub fn started(&self, process: Option<u32>) {
        let now = self.0.clock.now();
        let mut notes = self.notes();
        if notes.execution.start(process.map(i64::from), now).is_ok() {
            notes.note_state(StateName::Running, now);
        }
        drop(notes);
        self.0.dirty.notify_one();
    }

    /// Something was said. Waits where more is said than can be written.
    pub async fn output(&self, stream: Name, bytes: &[u8]) {
        self.make_room(stream).await;
        self.output_now(stream, bytes);
    }

    pub(crate) async fn make_room(&self, stream: Name) {
        while !self.has_room(stream) {
            if let Err(error) = self.flush().await {
                tracing::warn!(event = "output_not_written", execution_id = %self.id(), error = %error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    pub(crate) fn has_room(&self, stream: Name) -> bool {
        let notes = self.notes();
        notes.waiting < ENOUGH || notes.closed || notes.streams.is_past_head(stream)
    }

    /// The beginning and the end of something of which so many bytes between them are not kept.
    pub(crate) async fn output_ends(&self, stream: Name, head: &[u8], missing: u64, tail: &[u8]) {
        for piece in head.chunks(MAX_EVENT) {
            self.output(stream, piece).await;
        }
        if missing > 0 {
            let now = self.0.clock.now();
            self.notes().skip(stream, missing, now);
        }
        for piece in tail.chunks(MAX_EVENT) {
            self.output(stream, piece).await;
        }
    }

    /// Whether more was said than can be written at the moment.
    pub(crate) fn is_full(&self) -> bool {
        self.notes().waiting >= ENOUGH
    }

    /// As long as it lives there may be more in a pipe than was heard: whoever reads it steps back for others.
    pub(crate) fn behind(&self) -> Behind {
        self.0.behind.fetch_add(1, Ordering::Relaxed);
        Behind(self.clone())
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.0.behind.load(Ordering::Relaxed) > 0
    }

    /// How many bytes were said so far.
    pub(crate) fn heard(&self) -> u64 {
        self.notes().streams.heard()
    }

    /// Something was said by an agent that is not read from while this is written.
    pub fn output_now(&self, stream: Name, bytes: &[u8]) {
        let now = self.0.clock.now();
        self.notes().say(stream, bytes, now);
        self.0.dirty.notify_one();
    }

    /// Something was said that is more than text. Waits where more is said than can be written. Of what is too long to be
    /// kept nothing is.
    pub async fn say(&self, mut said: Said) {
        while self.is_full() && !self.notes().closed {
            if let Err(error) = self.flush().await {
                tracing::warn!(event = "output_not_written", execution_id = %self.id(), error = %error);
                tokio::time::sleep(PAUSE).await;
            }
        }
        let redactor = self.notes().redactor.clone();
        said.redact(&redactor);
        let text = match serde_json::to_string(&said) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(event = "output_not_written", execution_id = %self.id(), error = %error);
                return;
            }
        };
        let now = self.0.clock.now();
        self.notes().say_more(text, now);
        self.0.dirty.notify_one();
    }

    /// Nothing has come for a moment: what is held back is shown as far as that is safe.
    pub fn pause(&self, stream: Name) {
        let now = self.0.clock.now();
        if self.notes().pause(stream, now) {
            self.0.dirty.notify_one();
        }
    }

    /// Records the resources that the attempt has used so far.
    pub fn usage(&self, usage: ResourceUsage) {
        let mut notes = self.notes();
        notes.execution.measure(usage);
        notes.changed = true;
        drop(notes);
        self.0.dirty.notify_one();
    }

    /// The end of what was said so far, as it may be kept: for finding out what went wrong.
    pub fn said_last(&self, stream: Name, bytes: usize) -> String {
        self.notes().streams.last(stream, bytes)
    }

    /// Waits until the run shall end.
    pub async fn stopped(&self) -> Stop {
        let mut stop = self.0.stop.subscribe();
        loop {
            if let Some(why) = *stop.borrow_and_update() {
                return why;
            }
            if stop.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether the run shall end.
    pub fn is_stopped(&self) -> Option<Stop> {
        *self.0.stop.borrow()
    }

    /// Asks the run to end; what was asked first counts.
    pub(crate) fn stop(&self, why: Stop) {
        self.0.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(why);
            first
        });
    }

    pub(crate) fn fence(&self) -> Fence {
        self.0.fence
    }

    pub(crate) fn execution(&self) -> Execution {
        self.notes().execution.clone()
    }

    /// Fails the current attempt and starts the next one with empty output. The rest of the output is attributed to the
    /// attempt that failed.
    pub(crate) fn try_again(&self, exit: Exit) -> Result<(), Illegal> {
        let now = self.0.clock.now();
        let mut notes = self.notes();
        notes.finish_streams(now);
        notes.execution.retry(exit, now)?;
        notes.note_state(StateName::Failed, now);
        notes.note_state(StateName::Starting, now);
        notes.earlier += notes.kept();
        notes.said = (0, 0);
        notes.streams = Streams::new(notes.max_output, &notes.redactor);
        drop(notes);
        self.0.dirty.notify_one();
        Ok(())
    }

    /// Writes what is new. Nothing, where that is nothing. An execution that is somebody else's by now is stopped.
    pub(crate) async fn flush(&self) -> store::Result<()> {
        let mut unwritten = self.0.writing.lock().await;
        let batch = match unwritten.take() {
            Some(batch) => batch,
            None => match self.notes().take(self.0.clock.now()) {
                Some(batch) => Arc::new(batch),
                None => return Ok(()),
            },
        };
        let fence = self.0.fence;
        let again = batch.clone();
        let size = batch.size;
        let written = self.0.store.transaction(async move |tx| batch.write(tx, fence, None).await).await;
        if written.is_err() {
            *unwritten = Some(again);
        }
        let held = written?;
        let mut notes = self.notes();
        notes.waiting = notes.waiting.saturating_sub(size);
        drop(notes);
        self.0.wakes.wake(fence.id);
        if !held {
            self.stop(Stop::Lost);
        }
        Ok(())
    }

    /// The last batch, for whoever writes the end: what was written before has arrived, or is part of it.
    pub(crate) async fn close(&self, end: impl FnOnce(&mut Execution, Timestamp) -> Result<(), Illegal>) -> Batch {
        let unwritten = self.0.writing.lock().await.take();
        let now = self.0.clock.now();
        let mut notes = self.notes();
        notes.finish_streams(now);
        // The table allows every end. If it did not, the execution would keep its state.
        if let Err(illegal) = end(&mut notes.execution, now) {
            tracing::error!(event = "execution_state_illegal", execution_id = %self.id(), error = %illegal);
        }
        let state = notes.execution.state_name();
        notes.note_state(state, now);
        notes.closed = true;
        let last = notes.batch();
        match unwritten {
            Some(first) => last.behind(&first),
            None => last,
        }
    }

    /// The last batch was written.
    pub(crate) fn settle(&self, batch: Arc<Batch>, artifacts: Vec<Artifact>) {
        if let Some(begun) = self.notes().begun.take().filter(|_| batch.execution.is_ended()) {
            let _ = self.0.account.set(Account { begun, batch, artifacts });
        }
    }

    /// All that happened, where it has ended and that is known here.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.0.account.get()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Behind(Desk);

impl Drop for Behind {
    fn drop(&mut self) {
        self.0.0.behind.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Notes {
    fn new(execution: Execution, seq: i64, max_output: u64, redactor: Redactor) -> Self {
        let state = |seq, state: StateName, at| Event {
            seq,
            kind: Kind::State,
            stream: String::new(),
            start: 0,
            at,
            text: state.as_str().to_owned(),
        };
        // Only its first claim is the second thing that happened to it.
        let begun = (seq == 2).then(|| {
            let starting = state(2, StateName::Starting, execution.last_state_change());
            [state(1, StateName::Idle, execution.created_at), starting]
        });
        Self {
            begun,
            execution,
            streams: Streams::new(max_output, &redactor),
            events: Vec::new(),
            waiting: 0,
            seq,
            changed: false,
            closed: false,
            dropped: Vec::new(),
            redactor,
            max_output,
            earlier: 0,
            said: (0, 0),
        }
    }

    /// How many bytes are kept of this try.
    fn kept(&self) -> i64 {
        self.streams.kept() + i64::try_from(self.said.0).unwrap_or(i64::MAX)
    }

    fn note_state(&mut self, state: StateName, now: Timestamp) {
        self.push(Kind::State, "", 0, state.as_str().to_owned(), now);
    }

    fn say(&mut self, stream: Name, bytes: &[u8], now: Timestamp) {
        if let Some((start, text)) = self.streams.push(stream, bytes) {
            self.go_on(stream, start, text, now);
        }
        self.changed = true;
    }

    /// What is more than text stands whole where it was said, or not at all.
    fn say_more(&mut self, text: String, now: Timestamp) {
        // What was said before it is told before it, as far as that can be known.
        for stream in Name::ALL.iter().copied() {
            self.pause(stream, now);
        }
        let (kept, start) = self.said;
        let length = text.len() as u64;
        let fits = kept + length <= self.max_output;
        self.said = (kept + if fits { length } else { 0 }, start + length);
        let start = i64::try_from(start).unwrap_or(i64::MAX);
        match fits {
            true => self.push(Kind::Said, SAID, start, text, now),
            false => self.push(Kind::Gap, SAID, start, length.to_string(), now),
        }
    }

    fn skip(&mut self, stream: Name, bytes: u64, now: Timestamp) {
        if let Some((start, text)) = self.streams.skip(stream, bytes) {
            self.go_on(stream, start, text, now);
        }
        self.changed = true;
    }

    fn pause(&mut self, stream: Name, now: Timestamp) -> bool {
        match self.streams.pause(stream) {
            Some((start, text)) => {
                self.go_on(stream, start, text, now);
                true
            }
            None => false,
        }
    }

    /// More of the beginning of a stream: one event with what was said just before, if that is not written yet.
    fn go_on(&mut self, stream: Name, start: i64, text: String, now: Timestamp) {
        let text = storable(text);
        if let Some(last) = self.events.last_mut()
            && last.kind == Kind::Output
            && last.stream == stream.as_str()
            && last.text.len() + text.len() <= MAX_EVENT
        {
            last.text.push_str(&text);
            self.waiting += text.len();
            self.changed = true;
            return;
        }
        self.push(Kind::Output, stream.as_str(), start, text, now);
    }

    /// An event of its own: followers know what they were told by where events begin.
    fn push(&mut self, kind: Kind, stream: &str, start: i64, text: String, now: Timestamp) {
        let text = storable(text);
        self.changed = true;
        self.waiting += text.len();
        self.seq += 1;
        self.events.push(Event { seq: self.seq, kind, stream: stream.to_owned(), start, at: now, text });
    }

    /// What is new, if anything.
    fn take(&mut self, now: Timestamp) -> Option<Batch> {
        if self.closed {
            return None;
        }
        for stream in Name::ALL.iter().copied() {
            let Some(glimpse) = self.streams.glimpse(stream) else { continue };
            if let Some(from) = glimpse.drop_from {
                self.dropped.push((stream, from));
            }
            if let Some((start, bytes)) = glimpse.gap {
                self.push(Kind::Gap, stream.as_str(), start, bytes.to_string(), now);
            }
            self.push(Kind::Output, stream.as_str(), glimpse.start, glimpse.text, now);
        }
        self.changed.then(|| {
            self.begun = None;
            self.batch()
        })
    }

    fn finish_streams(&mut self, now: Timestamp) {
        for stream in Name::ALL.iter().copied() {
            let rest = self.streams.finish(stream);
            if let Some(from) = rest.drop_from {
                self.dropped.push((stream, from));
                self.events.retain(|event| event.stream != stream.as_str() || event.start < from);
            }
            for piece in rest.pieces {
                match piece {
                    crate::streams::Piece::Gap { start, bytes } => {
                        self.push(Kind::Gap, stream.as_str(), start, bytes.to_string(), now);
                    }
                    crate::streams::Piece::Text { start, text } => {
                        self.push(Kind::Output, stream.as_str(), start, text, now);
                    }
                }
            }
        }
    }

    fn batch(&mut self) -> Batch {
        self.changed = false;
        Batch {
            size: self.events.iter().map(|event| event.text.len()).sum(),
            execution: self.execution.clone(),
            events: std::mem::take(&mut self.events),
            dropped: std::mem::take(&mut self.dropped),
            truncated: self.streams.is_truncated() || self.said.0 < self.said.1,
            output_bytes: self.earlier + self.kept(),
        }
    }
}

/// As it will stand in the tables.
fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// The longest text of one event.
const MAX_EVENT: usize = 64 << 10;

/// One automaton for each choice there is, shared by all.
pub(crate) fn redactor(what: What) -> Redactor {
    use std::sync::LazyLock;
    static ALL: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: true, emails: true }));
    static SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: true, emails: false }));
    static EMAILS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: false, emails: true }));
    static NOTHING: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: false, emails: false }));
    match (what.secrets, what.emails) {
        (true, true) => ALL.clone(),
        (true, false) => SECRETS.clone(),
        (false, true) => EMAILS.clone(),
        (false, false) => NOTHING.clone(),
    }
}
