//! Runs one claimed execution on this node to its end: attempts, timeouts, retries and the result.

use std::sync::Arc;
use std::time::Duration;

use background::backoff::BackoffPolicy;
use model::agent::{Agent, Seconds};
use model::execution::{
    Artifact, AttemptExit, ErrorCategory, ExecutionOutcome, ExecutionState, ExecutionStatus, RunError, StateName,
};
use store::executions::{ClaimedExecution, Fence, claim, has_queued, release_slot, requeue};
use tokio::time::Instant;

use crate::output_buffer::StreamName;
use crate::recorder::{RunRecorder, StopReason};
use crate::registry::AgentEntry;
use crate::runner::{AgentRun, RunRequest, RunResult};
use crate::{RunFailure, Supervisor};

/// The longest time between the end of the grace period and the end of the run.
const KILL_TIMEOUT: Duration = Duration::from_secs(30);
/// The time for which a stopping node retries to write the end of an execution.
const END_WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The delay between two tries to write the end of an execution.
const END_WRITE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest delay before a retry, unless a longer one is configured.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15 * 60);
/// The number of bytes at the end of the output that are searched for error patterns.
const CLASSIFIED_BYTES: usize = 8 << 10;

impl Supervisor {
    /// Runs a claimed execution in a new task. It counts as running when this function returns. After its end, the task
    /// continues with the next one of the agent that was claimed for the slot. The next one uses the current
    /// configuration of the agent, or the last known one if the agent was removed. Wakes the dispatcher if the queue
    /// may contain more.
    pub(crate) fn start_execution(&self, claimed: ClaimedExecution, mut entry: AgentEntry) {
        let supervisor = self.clone();
        let recorder = self.recorder_for(&claimed, &entry);
        self.0.tasks.spawn(async move {
            let mut this = Some((claimed, recorder));
            while let Some((claimed, recorder)) = this {
                let next = supervisor.run_to_end(&claimed, &recorder, &entry, true).await;
                if matches!(next, NextInSlot::Unknown) {
                    supervisor.wake(&entry.agent.id);
                }
                this = next.into_claimed().map(|next| {
                    // The configuration may have changed meanwhile.
                    entry = supervisor.registry().get(&entry.agent.id).unwrap_or_else(|| entry.clone());
                    let recorder = supervisor.recorder_for(&next, &entry);
                    (next, recorder)
                });
            }
        });
    }

    /// Runs a claimed message of a session to its end. Claims no further execution.
    pub(crate) async fn run_claimed(&self, claimed: ClaimedExecution, entry: &AgentEntry) {
        let recorder = self.recorder_for(&claimed, entry);
        self.run_to_end(&claimed, &recorder, entry, false).await;
    }

    /// Returns a recorder for the execution. From now on the execution counts as running and can be stopped, and its
    /// followers are notified. On a stopping node, the stop is requested at once.
    fn recorder_for(&self, claimed: &ClaimedExecution, entry: &AgentEntry) -> RunRecorder {
        let parts = (&self.0.store, &self.0.clock, &self.0.notifiers, &self.0.running.unwritten);
        let recorder = RunRecorder::new(claimed.fence, claimed.row.execution.clone(), claimed.seq, &entry.agent, parts);
        self.0.running.insert(recorder.clone());
        self.0.notifiers.notify(recorder.execution_id());
        // `stop` sets the flag before it stops the running executions, so none is missed.
        if self.0.stopping.is_cancelled() {
            recorder.request_stop(StopReason::Shutdown);
        }
        recorder
    }

    /// Runs all attempts and writes the end. Afterwards the execution no longer counts as running, and its followers
    /// are notified. Returns the next execution for the slot. None is claimed if `claim_next` is false.
    async fn run_to_end(
        &self,
        claimed: &ClaimedExecution,
        recorder: &RunRecorder,
        entry: &AgentEntry,
        claim_next: bool,
    ) -> NextInSlot {
        let last = self.run_attempts(claimed, entry, recorder).await;
        let next = self.end(recorder, entry, last, claim_next).await;
        self.0.running.remove(recorder.execution_id());
        self.publish_change(&recorder.execution());
        next
    }

    /// Runs all attempts of an execution and returns the result of the last one. Adds the secrets of the agent to the
    /// recorder. Waits before each retry. A stop during this wait ends the execution; the result contains only the
    /// stop. A failed write before the wait is logged. Returns a system failure without an attempt if the request
    /// cannot be read, and one instead of a retry if the state of the execution does not allow it.
    async fn run_attempts(
        &self,
        claimed: &ClaimedExecution,
        entry: &AgentEntry,
        recorder: &RunRecorder,
    ) -> AttemptResult {
        let request = match self.request(claimed) {
            Ok(request) => request,
            Err(failure) => return AttemptResult { failure: Some(failure), ..AttemptResult::default() },
        };
        let execution = &claimed.row.execution;
        let agent = &entry.agent;
        recorder.add_secrets(self.known_secrets(agent));
        loop {
            let attempt = recorder.execution().attempt();
            let run = AgentRun {
                id: execution.id,
                owner: claimed.row.owner,
                agent: agent.clone(),
                request: request.clone(),
                attempt,
                started_at: self.0.clock.now(),
            };
            let last = run_attempt(&run, entry, recorder, execution.timeout.duration()).await;
            let Some(delay) = retry_delay(&last, recorder, agent) else { return last };
            if let Err(illegal) = recorder.start_retry(last.exit(execution.timeout)) {
                return AttemptResult { failure: Some(RunFailure::system(illegal.to_string())), ..last };
            }
            if let Err(error) = recorder.flush().await {
                tracing::warn!(event = "output_not_written", execution_id = %recorder.execution_id(), error = %error);
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                reason = recorder.stop_requested() => {
                    let cancel_error = Some(recorder.cancel_error());
                    return AttemptResult { stop: Some(reason), cancel_error, ..AttemptResult::default() };
                }
            }
        }
    }

    /// Reads the request of the execution from its row, or from the spool if the row has none. Fails with a system
    /// failure if the request cannot be read or parsed, or if the spool is not available.
    fn request(&self, claimed: &ClaimedExecution) -> Result<RunRequest, RunFailure> {
        let lost = |error: String| RunFailure::system(format!("the request cannot be read: {error}"));
        match (&claimed.row.request, self.spool()) {
            (Some(json), _) => serde_json::from_str(json).map_err(|error| lost(error.to_string())),
            (None, Some(spool)) => spool.get(claimed.fence.id).map_err(|error| lost(error.to_string())),
            (None, None) => Err(lost("the spool directory is not available".to_owned())),
        }
    }

    /// Closes the recorder, writes the end of the execution, releases its slot, and claims the next one of the agent in
    /// the same transaction. Returns the next one. An execution that a shutdown interrupted goes back to the queue if
    /// it has attempts left. A successful attempt counts as started, even if its runner did not report the start.
    ///
    /// Returns `Unknown` at once if the claim was lost. Writes nothing if another node has taken over the execution
    /// meanwhile. Failed writes are logged and retried every second. Only a stopping node gives up, after
    /// [`END_WRITE_TIMEOUT`], and returns `Unknown`; the execution is then recovered as that of a dead node.
    async fn end(
        &self,
        recorder: &RunRecorder,
        entry: &AgentEntry,
        last: AttemptResult,
        claim_next: bool,
    ) -> NextInSlot {
        if last.stop == Some(StopReason::ClaimLost) {
            return NextInSlot::Unknown;
        }
        let status = last.status();
        let artifacts = last.artifacts.clone();
        let interrupted = last.stop == Some(StopReason::Shutdown);
        let batch = recorder
            .close(|execution, now| {
                let exit = last.exit(execution.timeout);
                // A completed attempt has run, even if its runner did not report the start.
                if status == ExecutionStatus::Success && *execution.state() == ExecutionState::Starting {
                    execution.start(None, now)?;
                }
                if interrupted && execution.can_retry() {
                    return execution.requeue(exit, now);
                }
                execution.end(status, exit, now)
            })
            .await;
        let batch = Arc::new(batch);
        let mut give_up_at = None;
        loop {
            let next = self.write_end(recorder.fence(), batch.clone(), artifacts.clone(), entry, claim_next).await;
            match next {
                Ok((is_ours, next)) => {
                    if is_ours {
                        recorder.mark_finished(batch, artifacts);
                    }
                    return next;
                }
                Err(error) => {
                    let id = recorder.execution_id();
                    tracing::error!(event = "execution_end_not_written", execution_id = %id, error = %error);
                    // No other node ends it while this node is alive. After that, recovery does.
                    let stopping = self.0.stopping.is_cancelled();
                    if stopping && Instant::now() >= *give_up_at.get_or_insert(Instant::now() + END_WRITE_TIMEOUT) {
                        return NextInSlot::Unknown;
                    }
                    tokio::time::sleep(END_WRITE_RETRY_DELAY).await;
                }
            }
        }
    }

    /// Writes the end in one transaction. Returns whether this node still held the claim, and the next execution. An
    /// execution in the state idle goes back to the queue at once. Releases the slot in any case. Claims the next
    /// execution only if `claim_next` is set and this node may start executions of the agent. Otherwise sends a hint
    /// about the queue and returns `Unknown`. Returns `Empty` if the queue is empty, and `Unknown` if nothing could be
    /// claimed. Fails if the database fails.
    async fn write_end(
        &self,
        fence: Fence,
        batch: Arc<crate::recorder::RecordBatch>,
        artifacts: Vec<Artifact>,
        entry: &AgentEntry,
        claim_next: bool,
    ) -> store::Result<(bool, NextInSlot)> {
        // The agent may have been changed or removed since this execution started.
        let claimable = if claim_next { self.claimable(&entry.agent.id, 1) } else { None };
        let can_claim = claimable.is_some();
        let agent_id = entry.agent.id.clone();
        let slots = i64::from(claimable.as_ref().unwrap_or(entry).agent.max_concurrency());
        let now = self.0.clock.now();
        let node = self.0.node;
        let spool = self.spool_name();
        self.0
            .store
            .transaction(async move |tx| {
                let is_ours = batch.write(tx, fence, Some(artifacts)).await?;
                if is_ours && batch.execution.state_name() == StateName::Idle {
                    requeue(tx, fence, now).await?;
                    store::hints::queue_changed(tx, &agent_id);
                }
                release_slot(tx, fence.id, node).await?;
                if !can_claim {
                    // Another node may use the slot.
                    store::hints::queue_changed(tx, &agent_id);
                    return Ok((is_ours, NextInSlot::Unknown));
                }
                if !has_queued(tx, &agent_id, now).await? {
                    return Ok((is_ours, NextInSlot::Empty));
                }
                let next = claim(tx, node, &spool, &agent_id, slots, 1, now).await?;
                let next =
                    next.into_iter().next().map_or(NextInSlot::Unknown, |next| NextInSlot::Claimed(Box::new(next)));
                Ok((is_ours, next))
            })
            .await
    }
}

/// The next execution for a slot that was released.
enum NextInSlot {
    Claimed(Box<ClaimedExecution>),
    /// The queue is empty. Enqueueing an execution claims it.
    Empty,
    /// The queue was not read, or nothing could be claimed. The dispatcher has to read it again.
    Unknown,
}

impl NextInSlot {
    fn into_claimed(self) -> Option<ClaimedExecution> {
        if let Self::Claimed(claimed) = self { Some(*claimed) } else { None }
    }
}

/// The result of an attempt.
#[derive(Clone, Debug, Default)]
struct AttemptResult {
    /// `None` if the attempt ended by itself, even if a stop was requested shortly before.
    stop: Option<StopReason>,
    /// The error of the execution if it was cancelled.
    cancel_error: Option<String>,
    failure: Option<RunFailure>,
    exit_code: Option<i64>,
    usage: Option<model::execution::ResourceUsage>,
    artifacts: Vec<Artifact>,
    outcome: Option<ExecutionOutcome>,
}

impl AttemptResult {
    /// Returns the status of the execution. A stop takes precedence over a failure. A shutdown and a lost claim count
    /// as failures. Success means neither a stop nor a failure.
    fn status(&self) -> ExecutionStatus {
        match (self.stop, &self.failure) {
            (Some(StopReason::Timeout), _) => ExecutionStatus::Timeout,
            (Some(StopReason::Cancelled), _) => ExecutionStatus::Cancelled,
            (Some(StopReason::Shutdown | StopReason::ClaimLost), _) | (None, Some(_)) => ExecutionStatus::Failure,
            (None, None) => ExecutionStatus::Success,
        }
    }

    /// Returns the exit of the attempt as it is recorded. `timeout` appears in the message of a timeout. The outcome
    /// `Rejected` is kept only for a failure without a stop, `Withdrawn` never, and any other outcome only for a
    /// success.
    fn exit(&self, timeout: Seconds) -> AttemptExit {
        let status = self.status();
        // Only an attempt that ended by itself has an outcome.
        let outcome = self.outcome.filter(|outcome| match outcome {
            ExecutionOutcome::Rejected => status == ExecutionStatus::Failure && self.stop.is_none(),
            ExecutionOutcome::InputRequired | ExecutionOutcome::AuthRequired | ExecutionOutcome::Message => {
                status == ExecutionStatus::Success
            }
            ExecutionOutcome::Withdrawn => false,
        });
        AttemptExit { exit_code: self.exit_code, error: self.error(timeout), outcome, resource_usage: self.usage }
    }

    /// Returns the error of the attempt, or `None` if it succeeded. A stop takes precedence over a failure. A timeout
    /// and a cancellation have no category. A shutdown and a lost claim are system errors.
    fn error(&self, timeout: Seconds) -> Option<RunError> {
        let (message, category) = match self.stop {
            Some(StopReason::Timeout) => (format!("took longer than {} s", timeout.duration().as_secs_f64()), None),
            Some(StopReason::Cancelled) => (self.cancel_error.clone().unwrap_or_default(), None),
            Some(StopReason::Shutdown | StopReason::ClaimLost) => {
                ("adjutant was stopped while it ran".to_owned(), Some(ErrorCategory::SystemError))
            }
            None => {
                let failure = self.failure.as_ref()?;
                (failure.message.clone(), Some(failure.category))
            }
        };
        Some(RunError { message, category })
    }
}

/// Runs one attempt, with `limit` as its timeout. After the timeout or a stop, the runner has the grace period of the
/// agent and [`KILL_TIMEOUT`] to end. After that it is dropped, and the attempt has a system failure. A stop counts if
/// it was a timeout, if the runner reports that it was stopped, or if the attempt failed. The outcome `Rejected`
/// without a failure is a permanent failure. A failure is classified by [`classify`], and its message is redacted.
async fn run_attempt(run: &AgentRun, entry: &AgentEntry, recorder: &RunRecorder, limit: Duration) -> AttemptResult {
    let ends_at = Instant::now() + limit;
    let mut running = entry.runner.run(run, recorder);
    let mut timed_out = false;
    let ended = tokio::select! {
        ended = &mut running => Some(ended),
        () = tokio::time::sleep_until(ends_at) => {
            timed_out = true;
            recorder.request_stop(StopReason::Timeout);
            None
        }
        _ = recorder.stop_requested() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            let timeout = run.agent.grace.duration() + KILL_TIMEOUT;
            match tokio::time::timeout(timeout, running).await {
                Ok(ended) => ended,
                Err(_) => RunResult::from(RunFailure::system("the agent could not be stopped")),
            }
        }
    };
    // A run that ended by itself just before the stop does not count as stopped.
    let stop = recorder.stop_reason().filter(|_| timed_out || ended.failure.is_some() || ended.stopped);
    let rejected = ended.outcome == Some(ExecutionOutcome::Rejected);
    let failure = ended.failure.or_else(|| rejected.then(|| RunFailure::permanent("the agent rejected the request")));
    let failure = failure.map(|failure| classify(failure, ended.exit_code, &run.agent, recorder));
    let failure = failure.map(|failure| RunFailure { message: recorder.redact(&failure.message), ..failure });
    let RunResult { exit_code, usage, artifacts, outcome, .. } = ended;
    AttemptResult { stop, cancel_error: Some(recorder.cancel_error()), failure, exit_code, usage, artifacts, outcome }
}

/// Returns the failure with the category that the agent's `exit_codes` or `error_patterns` assign to it. An exit code
/// takes precedence and also applies to system failures; patterns do not. The first configured pattern counts that
/// occurs in the message or in the last 8 KiB of the error output or the standard output, ignoring case. Without a
/// match, the failure is returned unchanged.
fn classify(failure: RunFailure, exit_code: Option<i64>, agent: &Agent, recorder: &RunRecorder) -> RunFailure {
    if let Some(code) = exit_code.and_then(|code| i32::try_from(code).ok())
        && let Some(category) = agent.exit_codes.get(&code)
    {
        return RunFailure { category: *category, ..failure };
    }
    if agent.error_patterns.is_empty() || failure.category == ErrorCategory::SystemError {
        return failure;
    }
    let outputs = [StreamName::Stderr, StreamName::Stdout].map(|stream| recorder.last_output(stream, CLASSIFIED_BYTES));
    let texts: Vec<_> = outputs.iter().chain([&failure.message]).map(|text| text.to_lowercase()).collect();
    let found = agent.error_patterns.iter().find(|pattern| {
        let pattern = pattern.text.to_lowercase();
        texts.iter().any(|text| text.contains(&pattern))
    });
    match found {
        Some(pattern) => RunFailure { category: pattern.category, ..failure },
        None => failure,
    }
}

/// Returns the delay before the next attempt, or `None` if there is no further attempt. Only transient failures are
/// retried, and only if the run was not stopped or rejected and has retries left. The delay doubles with each retry,
/// up to 15 minutes. A longer configured delay is used as it is.
fn retry_delay(last: &AttemptResult, recorder: &RunRecorder, agent: &Agent) -> Option<Duration> {
    let execution = recorder.execution();
    let transient = last.failure.as_ref().is_some_and(|failure| failure.category == ErrorCategory::Transient);
    let rejected = last.outcome == Some(ExecutionOutcome::Rejected);
    if last.stop.is_some() || !transient || rejected || !execution.can_retry() {
        return None;
    }
    Some(delay(agent.retry_delay.duration(), execution.retry_count()))
}

/// Returns the delay after `retries` retries: `first`, doubled each time up to 15 minutes. A longer `first` is never
/// shortened.
fn delay(first: Duration, retries: i64) -> Duration {
    BackoffPolicy::new(first, MAX_RETRY_DELAY.max(first)).delay(u64::try_from(retries).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_double_up_to_15_minutes() {
        // SUP-6
        let delays =
            |first| [0, 1, 2, 10, i64::MAX].map(|retries| delay(Duration::from_secs(first), retries).as_secs());
        assert_eq!(delays(5), [5, 10, 20, 900, 900]);
        assert_eq!(delays(3600), [3600; 5], "a configured delay is never shortened");
        assert_eq!(delays(0), [0; 5]);
    }
}
