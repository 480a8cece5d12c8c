//! Records the events and the output of one execution while it runs, and carries the request to stop it.
//!
//! Records are collected in memory and written in batches. Writers wait while too much is unwritten.

mod batch;
mod stop;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use model::Clock;
use model::agent::Agent;
use model::execution::{Artifact, AttemptExit, Execution, IllegalTransition, ResourceUsage, StateName};
use model::output::RichOutput;
use redact::{RedactOptions, Redactor};
use store::Store;
use store::executions::{ExecutionEvent, ExecutionEventKind, Fence, RICH_OUTPUT_STREAM};
use tokio::sync::Notify;

pub use self::batch::FinishedRun;
pub(crate) use self::batch::RecordBatch;
pub use self::stop::StopReason;
use self::stop::StopSignal;
use crate::notifiers::ExecutionNotifiers;
use crate::output_buffer::{OutputBuffers, StreamName};

/// Writers wait while more bytes than this are unwritten.
const MAX_UNWRITTEN_BYTES: usize = 1 << 20;
/// The delay before a failed write is retried.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_millis(100);

/// Records one running execution. Cloning is cheap: all clones share one record.
#[derive(Clone)]
pub struct RunRecorder(Arc<RecorderShared>);

struct RecorderShared {
    fence: Fence,
    clock: Clock,
    store: Store,
    notifiers: ExecutionNotifiers,
    stop: StopSignal,
    pending: Mutex<PendingRecord>,
    /// The batch of the last failed write. The lock is held during a write, so that batches are written in order.
    failed_batch: tokio::sync::Mutex<Option<Arc<RecordBatch>>>,
    /// Wakes the task that writes batches.
    unwritten: Arc<Notify>,
    finished_run: OnceLock<FinishedRun>,
    /// The number of streams that low-priority threads read.
    slow_readers: AtomicUsize,
}

/// Events and output that are not written yet.
struct PendingRecord {
    execution: Execution,
    streams: OutputBuffers,
    events: Vec<ExecutionEvent>,
    /// The length of the texts that are not written yet, including those in a batch that is being written.
    unwritten_bytes: usize,
    /// The number of the last event.
    seq: i64,
    /// The execution or its output has changed since the last batch.
    changed: bool,
    /// The last batch was taken. Later events are ignored.
    closed: bool,
    /// Streams and offsets. Written events of the stream from the offset on are replaced by this batch.
    truncations: Vec<(StreamName, i64)>,
    redactor: Redactor,
    /// The maximum number of stored bytes of each stream, and of the rich output, in one attempt.
    max_output: u64,
    /// Bytes stored for earlier attempts.
    earlier_attempts_bytes: i64,
    /// Bytes stored of the rich output of this attempt.
    rich_output_bytes: u64,
    /// Bytes received as rich output in this attempt. This is also the offset of the next event.
    rich_output_offset: u64,
    /// The two events that enqueueing and claiming wrote. `None` once more was written: then the database must be read.
    first_events: Option<[ExecutionEvent; 2]>,
}

impl RunRecorder {
    /// Returns a recorder for a claimed execution. `seq` is the number of its last stored event. `parts` are the store,
    /// the clock, the notifiers of followers, and the wake-up of the task that writes batches.
    pub(crate) fn new(
        fence: Fence,
        execution: Execution,
        seq: i64,
        agent: &Agent,
        parts: (&Store, &Clock, &ExecutionNotifiers, &Arc<Notify>),
    ) -> Self {
        let (store, clock, notifiers, unwritten) = parts;
        let pending = PendingRecord::new(execution, seq, agent.max_output_size, redactor(agent.redact_options()));
        Self(Arc::new(RecorderShared {
            fence,
            clock: clock.clone(),
            store: store.clone(),
            notifiers: notifiers.clone(),
            stop: StopSignal::default(),
            pending: Mutex::new(pending),
            failed_batch: tokio::sync::Mutex::default(),
            unwritten: unwritten.clone(),
            finished_run: OnceLock::new(),
            slow_readers: AtomicUsize::new(0),
        }))
    }

    /// Returns the id of the execution.
    pub fn execution_id(&self) -> uuid::Uuid {
        self.0.fence.id
    }

    /// Redacts these values in everything that is recorded from now on. Must be called before the first output.
    pub fn add_secrets(&self, values: Vec<String>) {
        let mut pending = self.pending();
        if !values.is_empty() {
            pending.redactor = pending.redactor.clone().with_known(values);
            let redactor = pending.redactor.clone();
            pending.streams.redact_with(&redactor);
        }
    }

    /// Returns the text as it may be stored: secrets are redacted and NUL characters are replaced.
    pub fn redact(&self, text: &str) -> String {
        self.pending().redactor.text(text).replace('\0', "\u{fffd}")
    }

    /// Records the start of the attempt with the id of its process, if it has one. Does nothing if the attempt has
    /// already started or the execution has ended.
    pub fn record_start(&self, process: Option<u32>) {
        let now = self.0.clock.now();
        let mut pending = self.pending();
        if pending.execution.start(process.map(i64::from), now).is_ok() {
            pending.push_state(StateName::Running, now);
        }
        drop(pending);
        self.0.unwritten.notify_one();
    }

    /// Records output. Waits first if too much is unwritten.
    pub async fn output(&self, stream: StreamName, bytes: &[u8]) {
        self.wait_for_capacity(stream).await;
        self.output_now(stream, bytes);
    }

    /// Waits until output of this stream can be recorded, see [`RunRecorder::has_capacity`]. Meanwhile writes batches.
    /// Failed writes are logged and retried after [`RETRY_DELAY`], without a time limit.
    pub(crate) async fn wait_for_capacity(&self, stream: StreamName) {
        while !self.has_capacity(stream) {
            if let Err(error) = self.flush().await {
                tracing::warn!(event = "output_not_written", execution_id = %self.execution_id(), error = %error);
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Returns true if output of this stream can be recorded without waiting: less than the maximum is unwritten, the
    /// recorder is closed, or the head of the stream is full, so that only its last bytes are kept in memory.
    pub(crate) fn has_capacity(&self, stream: StreamName) -> bool {
        let pending = self.pending();
        pending.unwritten_bytes < MAX_UNWRITTEN_BYTES || pending.closed || pending.streams.is_past_head(stream)
    }

    /// Records the head and the tail of an output, in pieces of at most 64 KiB. `missing` bytes between them are not
    /// available. If `missing` is not 0, the head of the stream ends there, and a gap is stored. Waits if too much is
    /// unwritten.
    pub(crate) async fn output_excerpt(&self, stream: StreamName, head: &[u8], missing: u64, tail: &[u8]) {
        for piece in head.chunks(MAX_EVENT_BYTES) {
            self.output(stream, piece).await;
        }
        if missing > 0 {
            let now = self.0.clock.now();
            self.pending().skip(stream, missing, now);
        }
        for piece in tail.chunks(MAX_EVENT_BYTES) {
            self.output(stream, piece).await;
        }
    }

    /// Returns true if too much is unwritten.
    pub(crate) fn is_buffer_full(&self) -> bool {
        self.pending().unwritten_bytes >= MAX_UNWRITTEN_BYTES
    }

    /// Returns a guard. While it lives, a low-priority thread reads a stream, so its pipe may hold unread output.
    pub(crate) fn mark_slow_reader(&self) -> SlowReader {
        self.0.slow_readers.fetch_add(1, Ordering::Relaxed);
        SlowReader(self.clone())
    }

    pub(crate) fn has_slow_reader(&self) -> bool {
        self.0.slow_readers.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of bytes of output received in this attempt.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.pending().streams.received_bytes()
    }

    /// Records output without waiting. The caller must limit the amount: it does not read from the agent meanwhile.
    pub fn output_now(&self, stream: StreamName, bytes: &[u8]) {
        let now = self.0.clock.now();
        self.pending().push_output(stream, bytes, now);
        self.0.unwritten.notify_one();
    }

    /// Records structured output as one event, redacted. Waits first if too much is unwritten, and meanwhile writes
    /// batches and retries failed writes. Output that exceeds the limit of the attempt is replaced as a whole by a gap.
    /// Output that cannot be serialized is logged and dropped.
    pub async fn rich_output(&self, mut output: RichOutput) {
        while self.is_buffer_full() && !self.pending().closed {
            if let Err(error) = self.flush().await {
                tracing::warn!(event = "output_not_written", execution_id = %self.execution_id(), error = %error);
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
        let redactor = self.pending().redactor.clone();
        output.redact(&redactor);
        let text = match serde_json::to_string(&output) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(event = "output_not_written", execution_id = %self.execution_id(), error = %error);
                return;
            }
        };
        let now = self.0.clock.now();
        self.pending().push_rich_output(text, now);
        self.0.unwritten.notify_one();
    }

    /// Publishes the unfinished line of a stream as far as it cannot contain part of a secret. Does nothing if the head
    /// of the stream is full. Call it when the stream has been quiet for a moment.
    pub fn release_partial_line(&self, stream: StreamName) {
        let now = self.0.clock.now();
        if self.pending().release_partial_line(stream, now) {
            self.0.unwritten.notify_one();
        }
    }

    /// Records the resources that the attempt has used so far. The usage is ignored if the attempt has not started.
    pub fn record_usage(&self, usage: ResourceUsage) {
        let mut pending = self.pending();
        pending.execution.record_usage(usage);
        pending.changed = true;
        drop(pending);
        self.0.unwritten.notify_one();
    }

    /// Returns the last bytes of a stream, redacted. Used to classify failures.
    pub fn last_output(&self, stream: StreamName, bytes: usize) -> String {
        self.pending().streams.last(stream, bytes)
    }

    pub(crate) fn fence(&self) -> Fence {
        self.0.fence
    }

    pub(crate) fn execution(&self) -> Execution {
        self.pending().execution.clone()
    }

    /// Fails the current attempt and starts the next one with empty output. Output that is still buffered belongs to
    /// the failed attempt. Adds the state events `Failed` and `Starting`, and resets the limits of the output. Fails if
    /// the execution has ended; the buffered output is recorded even then. Does not check that a retry is left.
    pub(crate) fn start_retry(&self, exit: AttemptExit) -> Result<(), IllegalTransition> {
        let now = self.0.clock.now();
        let mut pending = self.pending();
        pending.finish_streams(now);
        pending.execution.retry(exit, now)?;
        pending.push_state(StateName::Failed, now);
        pending.push_state(StateName::Starting, now);
        pending.earlier_attempts_bytes += pending.stored_bytes();
        pending.rich_output_bytes = 0;
        pending.rich_output_offset = 0;
        pending.streams = OutputBuffers::new(pending.max_output, &pending.redactor);
        drop(pending);
        self.0.unwritten.notify_one();
        Ok(())
    }

    /// Writes the batch of the last failed write, or otherwise everything unwritten, if anything. Then wakes the
    /// followers. Stops the run if another node has taken over the execution. Fails if the database fails; the batch is
    /// then kept for the next call.
    pub(crate) async fn flush(&self) -> store::Result<()> {
        let mut failed_batch = self.0.failed_batch.lock().await;
        let batch = match failed_batch.take() {
            Some(batch) => batch,
            None => match self.pending().take_batch(self.0.clock.now()) {
                Some(batch) => Arc::new(batch),
                None => return Ok(()),
            },
        };
        let fence = self.0.fence;
        let retried = batch.clone();
        let size = batch.size;
        let written = self.0.store.transaction(async move |tx| batch.write(tx, fence, None).await).await;
        if written.is_err() {
            *failed_batch = Some(retried);
        }
        let is_ours = written?;
        let mut pending = self.pending();
        pending.unwritten_bytes = pending.unwritten_bytes.saturating_sub(size);
        drop(pending);
        self.0.notifiers.notify(fence.id);
        if !is_ours {
            self.request_stop(StopReason::ClaimLost);
        }
        Ok(())
    }

    /// Ends the streams, ends the execution in memory with `end`, and returns the last batch. The caller writes it. It
    /// contains the final state event, and the batch of a failed write before it, if there is one. Later records are
    /// not written any more. If `end` fails, the error is logged and the execution keeps its state.
    pub(crate) async fn close(
        &self,
        end: impl FnOnce(&mut Execution, Timestamp) -> Result<(), IllegalTransition>,
    ) -> RecordBatch {
        let failed_batch = self.0.failed_batch.lock().await.take();
        let now = self.0.clock.now();
        let mut pending = self.pending();
        pending.finish_streams(now);
        // The transition table allows every end. If it did not, the execution would keep its state.
        if let Err(illegal) = end(&mut pending.execution, now) {
            tracing::error!(event = "execution_state_illegal", execution_id = %self.execution_id(), error = %illegal);
        }
        let state = pending.execution.state_name();
        pending.push_state(state, now);
        pending.closed = true;
        let last = pending.batch();
        match failed_batch {
            Some(first) => last.merge_after(&first),
            None => last,
        }
    }

    /// Keeps the complete record of the run in memory, if the last batch contains all of it and the execution has
    /// ended. Otherwise does nothing. Call it after the last batch was written.
    pub(crate) fn mark_finished(&self, batch: Arc<RecordBatch>, artifacts: Vec<Artifact>) {
        if let Some(first_events) = self.pending().first_events.take().filter(|_| batch.execution.is_ended()) {
            let _ = self.0.finished_run.set(FinishedRun { first_events, batch, artifacts });
        }
    }

    /// Returns the complete record of the run, if it has ended and the record is available in memory.
    pub(crate) fn finished_run(&self) -> Option<&FinishedRun> {
        self.0.finished_run.get()
    }

    fn pending(&self) -> MutexGuard<'_, PendingRecord> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks that a low-priority thread reads a stream of the recorder.
pub(crate) struct SlowReader(RunRecorder);

impl Drop for SlowReader {
    fn drop(&mut self) {
        self.0.0.slow_readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PendingRecord {
    /// Returns an empty record. `seq` is the number of the last stored event. Restores the two events before the claim
    /// if it is 2: then the execution was claimed for the first time, and no other events are stored.
    fn new(execution: Execution, seq: i64, max_output: u64, redactor: Redactor) -> Self {
        let state = |seq, state: StateName, at| ExecutionEvent {
            seq,
            kind: ExecutionEventKind::State,
            stream: String::new(),
            start: 0,
            at,
            text: state.as_str().to_owned(),
        };
        // Event 2 is the first claim. After a later claim, more events are in the database.
        let first_events = (seq == 2).then(|| {
            let starting = state(2, StateName::Starting, execution.last_state_change());
            [state(1, StateName::Idle, execution.created_at), starting]
        });
        Self {
            first_events,
            execution,
            streams: OutputBuffers::new(max_output, &redactor),
            events: Vec::new(),
            unwritten_bytes: 0,
            seq,
            changed: false,
            closed: false,
            truncations: Vec::new(),
            redactor,
            max_output,
            earlier_attempts_bytes: 0,
            rich_output_bytes: 0,
            rich_output_offset: 0,
        }
    }

    /// Returns the number of bytes stored for this attempt.
    fn stored_bytes(&self) -> i64 {
        self.streams.stored_bytes() + i64::try_from(self.rich_output_bytes).unwrap_or(i64::MAX)
    }

    fn push_state(&mut self, state: StateName, now: Timestamp) {
        self.push(ExecutionEventKind::State, "", 0, state.as_str().to_owned(), now);
    }

    fn push_output(&mut self, stream: StreamName, bytes: &[u8], now: Timestamp) {
        if let Some((start, text)) = self.streams.push(stream, bytes) {
            self.append_output(stream, start, text, now);
        }
        self.changed = true;
    }

    /// Adds structured output as one event, or a gap if the rich output of the attempt exceeds `max_output` with it.
    /// First publishes the unfinished lines of all streams, so that events stay in order.
    fn push_rich_output(&mut self, text: String, now: Timestamp) {
        // Text that arrived earlier gets an earlier event, as far as it can be released.
        for stream in StreamName::ALL.iter().copied() {
            self.release_partial_line(stream, now);
        }
        let length = text.len() as u64;
        let fits = self.rich_output_bytes + length <= self.max_output;
        let start = i64::try_from(self.rich_output_offset).unwrap_or(i64::MAX);
        self.rich_output_bytes += if fits { length } else { 0 };
        self.rich_output_offset += length;
        match fits {
            true => self.push(ExecutionEventKind::RichOutput, RICH_OUTPUT_STREAM, start, text, now),
            false => self.push(ExecutionEventKind::Gap, RICH_OUTPUT_STREAM, start, length.to_string(), now),
        }
    }

    /// Skips bytes of a stream that are not available. Ends the head of the stream and adds its rest.
    fn skip(&mut self, stream: StreamName, bytes: u64, now: Timestamp) {
        if let Some((start, text)) = self.streams.skip(stream, bytes) {
            self.append_output(stream, start, text, now);
        }
        self.changed = true;
    }

    /// Returns true if part of a line was released.
    fn release_partial_line(&mut self, stream: StreamName, now: Timestamp) -> bool {
        match self.streams.release_partial_line(stream) {
            Some((start, text)) => {
                self.append_output(stream, start, text, now);
                true
            }
            None => false,
        }
    }

    /// Adds output of the head of a stream, with NUL characters replaced. Extends the last event if it is output of the
    /// same stream, not written yet, and at most [`MAX_EVENT_BYTES`] long with it. Otherwise adds an event.
    fn append_output(&mut self, stream: StreamName, start: i64, text: String, now: Timestamp) {
        let text = storable(text);
        if let Some(last) = self.events.last_mut()
            && last.kind == ExecutionEventKind::Output
            && last.stream == stream.as_str()
            && last.text.len() + text.len() <= MAX_EVENT_BYTES
        {
            last.text.push_str(&text);
            self.unwritten_bytes += text.len();
            self.changed = true;
            return;
        }
        self.push(ExecutionEventKind::Output, stream.as_str(), start, text, now);
    }

    /// Adds a separate event with the next number. NUL characters are replaced. Followers identify delivered output by
    /// the offset at which an event starts.
    fn push(&mut self, kind: ExecutionEventKind, stream: &str, start: i64, text: String, now: Timestamp) {
        let text = storable(text);
        self.changed = true;
        self.unwritten_bytes += text.len();
        self.seq += 1;
        self.events.push(ExecutionEvent { seq: self.seq, kind, stream: stream.to_owned(), start, at: now, text });
    }

    /// Returns everything that is not written yet, or `None` if nothing has changed or the recorder is closed. Adds the
    /// next provisional output of streams with a full head, with the gap before it. Clears `first_events` if a batch is
    /// returned, because the last batch then no longer contains the complete record.
    fn take_batch(&mut self, now: Timestamp) -> Option<RecordBatch> {
        if self.closed {
            return None;
        }
        for stream in StreamName::ALL.iter().copied() {
            let Some(provisional) = self.streams.provisional_output(stream) else { continue };
            if let Some(from) = provisional.truncate_from {
                self.truncations.push((stream, from));
            }
            if let Some((start, bytes)) = provisional.gap {
                self.push(ExecutionEventKind::Gap, stream.as_str(), start, bytes.to_string(), now);
            }
            self.push(ExecutionEventKind::Output, stream.as_str(), provisional.start, provisional.text, now);
        }
        self.changed.then(|| {
            self.first_events = None;
            self.batch()
        })
    }

    /// Ends all streams and adds events for the output that remains, including gaps. A final tail replaces the
    /// provisional output of its stream: unwritten events are removed here, written ones by the truncation of the next
    /// batch.
    fn finish_streams(&mut self, now: Timestamp) {
        for stream in StreamName::ALL.iter().copied() {
            let rest = self.streams.finish(stream);
            if let Some(from) = rest.truncate_from {
                self.truncations.push((stream, from));
                self.events.retain(|event| event.stream != stream.as_str() || event.start < from);
            }
            for piece in rest.pieces {
                match piece {
                    crate::output_buffer::OutputPiece::Gap { start, bytes } => {
                        self.push(ExecutionEventKind::Gap, stream.as_str(), start, bytes.to_string(), now);
                    }
                    crate::output_buffer::OutputPiece::Text { start, text } => {
                        self.push(ExecutionEventKind::Output, stream.as_str(), start, text, now);
                    }
                }
            }
        }
    }

    /// Moves the events and truncations into a batch. Their bytes count as unwritten until the batch is written.
    fn batch(&mut self) -> RecordBatch {
        self.changed = false;
        RecordBatch {
            size: self.events.iter().map(|event| event.text.len()).sum(),
            execution: self.execution.clone(),
            events: std::mem::take(&mut self.events),
            truncations: std::mem::take(&mut self.truncations),
            truncated: self.streams.is_truncated() || self.rich_output_bytes < self.rich_output_offset,
            output_bytes: self.earlier_attempts_bytes + self.stored_bytes(),
        }
    }
}

/// Returns the text without NUL characters, which PostgreSQL cannot store.
fn storable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// The maximum length of the text of one event, in bytes.
const MAX_EVENT_BYTES: usize = 64 << 10;

/// Returns the redactor for these options. Redactors are built once and shared, because building one is expensive.
pub(crate) fn redactor(options: RedactOptions) -> Redactor {
    use std::sync::LazyLock;
    static ALL: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(RedactOptions { secrets: true, emails: true }));
    static SECRETS: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::new(RedactOptions { secrets: true, emails: false }));
    static EMAILS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(RedactOptions { secrets: false, emails: true }));
    static NOTHING: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::new(RedactOptions { secrets: false, emails: false }));
    match (options.secrets, options.emails) {
        (true, true) => ALL.clone(),
        (true, false) => SECRETS.clone(),
        (false, true) => EMAILS.clone(),
        (false, false) => NOTHING.clone(),
    }
}
