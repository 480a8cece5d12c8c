//! The life of one execution on this node, from its place to its end: tries, limits, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use background::backoff::Doubling;
use model::agent::{Agent, Seconds};
use model::execution::{Artifact, Category, Exit, Outcome, RunError, State, StateName, Status};
use store::executions::{Claimed, Fence, any_waiting, claim, give_back, queue_again};
use tokio::time::Instant;

use crate::desk::{Desk, Stop};
use crate::registry::Entry;
use crate::runner::{Ended, Request, Run};
use crate::streams::Name;
use crate::{Failure, Supervisor};

/// How long a run may take to end once its grace is over; then the machine is in trouble.
const LAST_PATIENCE: Duration = Duration::from_secs(30);
/// How long a node that stops asks the database again to take an end that it did not take.
const END_PATIENCE: Duration = Duration::from_secs(60);
/// However often it was tried, nobody waits longer for the next try.
const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);
/// Where the category of a failure is looked for.
const LAST_WORDS: usize = 8 << 10;

impl Supervisor {
    /// Carries out what was claimed. When it has ended the agent's next one begins.
    pub(crate) fn begin(&self, claimed: Claimed, mut entry: Entry) {
        let supervisor = self.clone();
        let desk = self.desk_for(&claimed, &entry);
        self.0.tasks.spawn(async move {
            let mut this = Some((claimed, desk));
            while let Some((claimed, desk)) = this {
                let next = supervisor.see_to(&claimed, &desk, &entry, true).await;
                if matches!(next, Next::Unknown) {
                    supervisor.wake(&entry.agent.id);
                }
                this = next.claimed().map(|next| {
                    // The configuration may have changed meanwhile.
                    entry = supervisor.registry().get(&entry.agent.id).unwrap_or_else(|| entry.clone());
                    let desk = supervisor.desk_for(&next, &entry);
                    (next, desk)
                });
            }
        });
    }

    /// Carries out what was claimed, to its end.
    pub(crate) async fn carry_out(&self, claimed: Claimed, entry: &Entry) {
        let desk = self.desk_for(&claimed, entry);
        self.see_to(&claimed, &desk, entry, false).await;
    }

    /// From now on it can be told to stop.
    fn desk_for(&self, claimed: &Claimed, entry: &Entry) -> Desk {
        let parts = (&self.0.store, &self.0.clock, &self.0.wakes, &self.0.running.unwritten);
        let desk = Desk::new(claimed.fence, claimed.stored.execution.clone(), claimed.seq, &entry.agent, parts);
        self.0.running.insert(desk.clone());
        self.0.wakes.wake(desk.id());
        // Whoever stops looks at those at work after it has said that it stops.
        if self.0.stopping.is_cancelled() {
            desk.stop(Stop::Shutdown);
        }
        desk
    }

    async fn see_to(&self, claimed: &Claimed, desk: &Desk, entry: &Entry, more: bool) -> Next {
        let last = self.live(claimed, entry, desk).await;
        let next = self.end(desk, entry, last, more).await;
        self.0.running.remove(desk.id());
        self.after(&desk.execution());
        next
    }

    /// All tries of an execution; how the last one ended.
    async fn live(&self, claimed: &Claimed, entry: &Entry, desk: &Desk) -> Last {
        let request = match self.request(claimed) {
            Ok(request) => request,
            Err(failure) => return Last { failure: Some(failure), ..Last::default() },
        };
        let execution = &claimed.stored.execution;
        let agent = &entry.agent;
        desk.keep_secret(self.known_secrets(agent));
        loop {
            let attempt = desk.execution().attempt();
            let run = Run {
                id: execution.id,
                owner: claimed.stored.owner,
                agent: agent.clone(),
                request: request.clone(),
                attempt,
                started: self.0.clock.now(),
            };
            let last = attempt_once(&run, entry, desk, execution.timeout.duration()).await;
            let Some(delay) = retry_delay(&last, desk, agent) else { return last };
            if let Err(illegal) = desk.try_again(last.exit(execution.timeout)) {
                return Last { failure: Some(Failure::system(illegal.to_string())), ..last };
            }
            if let Err(error) = desk.flush().await {
                tracing::warn!(event = "output_not_written", execution_id = %desk.id(), error = %error);
            }
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                why = desk.stopped() => return Last { stop: Some(why), ..Last::default() },
            }
        }
    }

    /// What the run is given: from its row, or from the spool.
    fn request(&self, claimed: &Claimed) -> Result<Request, Failure> {
        let lost = |error: String| Failure::system(format!("what it was asked for cannot be read: {error}"));
        match (&claimed.stored.request, self.spool()) {
            (Some(json), _) => serde_json::from_str(json).map_err(|error| lost(error.to_string())),
            (None, Some(spool)) => spool.get(claimed.fence.id).map_err(|error| lost(error.to_string())),
            (None, None) => Err(lost("there is no spool".to_owned())),
        }
    }

    /// Writes the end down, gives the place back, and takes the agent's next one in the same transaction.
    async fn end(&self, desk: &Desk, entry: &Entry, last: Last, more: bool) -> Next {
        if last.stop == Some(Stop::Lost) {
            return Next::Unknown;
        }
        let status = last.status();
        let artifacts = last.artifacts.clone();
        let interrupted = last.stop == Some(Stop::Shutdown);
        let batch = desk
            .close(|execution, now| {
                let exit = last.exit(execution.timeout);
                // A completed attempt has run, even if its runner did not report the start.
                if status == Status::Success && *execution.state() == State::Starting {
                    execution.start(None, now)?;
                }
                if interrupted && execution.may_retry() {
                    return execution.queue_again(exit, now);
                }
                execution.end(status, exit, now)
            })
            .await;
        let batch = Arc::new(batch);
        let mut give_up = None;
        loop {
            let next = self.write_end(desk.fence(), batch.clone(), artifacts.clone(), entry, more).await;
            match next {
                Ok((held, next)) => {
                    if held {
                        desk.settle(batch, artifacts);
                    }
                    return next;
                }
                Err(error) => {
                    tracing::error!(event = "execution_end_not_written", execution_id = %desk.id(), error = %error);
                    // Nobody else ends it while this node lives; who comes after it does.
                    let stopping = self.0.stopping.is_cancelled();
                    if stopping && Instant::now() >= *give_up.get_or_insert(Instant::now() + END_PATIENCE) {
                        return Next::Unknown;
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Whether it was still ours to write, and what is next.
    async fn write_end(
        &self,
        fence: Fence,
        batch: Arc<crate::desk::Batch>,
        artifacts: Vec<Artifact>,
        entry: &Entry,
        more: bool,
    ) -> store::Result<(bool, Next)> {
        // The agent may have been changed or removed since this execution started.
        let claimable = if more { self.claimable(&entry.agent.id, 1) } else { None };
        let more = claimable.is_some();
        let agent_id = entry.agent.id.clone();
        let places = i64::from(claimable.as_ref().unwrap_or(entry).agent.places());
        let now = self.0.clock.now();
        let node = self.0.node;
        let spool = self.spool_name();
        self.0
            .store
            .transaction(async move |tx| {
                let held = batch.write(tx, fence, Some(artifacts)).await?;
                if held && batch.execution.state_name() == StateName::Idle {
                    queue_again(tx, fence, now).await?;
                    store::hints::queue(tx, &agent_id);
                }
                give_back(tx, fence.id, node).await?;
                if !more {
                    // Another node may use the slot.
                    store::hints::queue(tx, &agent_id);
                    return Ok((held, Next::Unknown));
                }
                if !any_waiting(tx, &agent_id, now).await? {
                    return Ok((held, Next::Nothing));
                }
                let next = claim(tx, node, &spool, &agent_id, places, 1, now).await?;
                let next = next.into_iter().next().map_or(Next::Unknown, |next| Next::Claimed(Box::new(next)));
                Ok((held, next))
            })
            .await
    }
}

/// What there is to do in a place that was given back.
enum Next {
    Claimed(Box<Claimed>),
    /// Nothing waits. Whoever puts something into the queue sees to it.
    Nothing,
    /// Nobody has looked, or could take it: somebody has to look again.
    Unknown,
}

impl Next {
    fn claimed(self) -> Option<Claimed> {
        if let Self::Claimed(claimed) = self { Some(*claimed) } else { None }
    }
}

/// How a try ended.
#[derive(Clone, Debug, Default)]
struct Last {
    stop: Option<Stop>,
    failure: Option<Failure>,
    exit_code: Option<i64>,
    usage: Option<model::execution::ResourceUsage>,
    artifacts: Vec<Artifact>,
    outcome: Option<Outcome>,
}

impl Last {
    fn status(&self) -> Status {
        match (self.stop, &self.failure) {
            (Some(Stop::Timeout), _) => Status::Timeout,
            (Some(Stop::Cancelled), _) => Status::Cancelled,
            (Some(Stop::Shutdown | Stop::Lost), _) | (None, Some(_)) => Status::Failure,
            (None, None) => Status::Success,
        }
    }

    /// Returns the results of the attempt, which had this long to run.
    fn exit(&self, timeout: Seconds) -> Exit {
        let status = self.status();
        // Only an attempt that ended by itself has an outcome.
        let outcome = self.outcome.filter(|outcome| match outcome {
            Outcome::Rejected => status == Status::Failure && self.stop.is_none(),
            Outcome::Asks | Outcome::NeedsAccess | Outcome::Message => status == Status::Success,
            Outcome::Withdrawn => false,
        });
        Exit { exit_code: self.exit_code, error: self.error(timeout), outcome, resource_usage: self.usage }
    }

    fn error(&self, timeout: Seconds) -> Option<RunError> {
        let (message, category) = match self.stop {
            Some(Stop::Timeout) => (format!("took longer than {} s", timeout.duration().as_secs_f64()), None),
            Some(Stop::Cancelled) => ("cancelled".to_owned(), None),
            Some(Stop::Shutdown | Stop::Lost) => {
                ("adjutant was stopped while it ran".to_owned(), Some(Category::SystemError))
            }
            None => {
                let failure = self.failure.as_ref()?;
                (failure.message.clone(), Some(failure.category))
            }
        };
        Some(RunError { message, category })
    }
}

/// One try, within its time.
async fn attempt_once(run: &Run, entry: &Entry, desk: &Desk, limit: Duration) -> Last {
    let ends_at = Instant::now() + limit;
    let mut running = entry.runner.run(run, desk);
    let mut timed_out = false;
    let ended = tokio::select! {
        ended = &mut running => Some(ended),
        () = tokio::time::sleep_until(ends_at) => {
            timed_out = true;
            desk.stop(Stop::Timeout);
            None
        }
        _ = desk.stopped() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            let patience = run.agent.grace.duration() + LAST_PATIENCE;
            match tokio::time::timeout(patience, running).await {
                Ok(ended) => ended,
                Err(_) => Ended::from(Failure::system("it could not be ended")),
            }
        }
    };
    // A run that ended by itself in the last moment has ended by itself.
    let stop = desk.is_stopped().filter(|_| timed_out || ended.failure.is_some() || ended.stopped);
    let rejected = ended.outcome == Some(Outcome::Rejected);
    let failure = ended.failure.or_else(|| rejected.then(|| Failure::permanent("the agent does not want to do this")));
    let failure = failure.map(|failure| classified(failure, ended.exit_code, &run.agent, desk));
    let failure = failure.map(|failure| Failure { message: desk.redacted(&failure.message), ..failure });
    let Ended { exit_code, usage, artifacts, outcome, .. } = ended;
    Last { stop, failure, exit_code, usage, artifacts, outcome }
}

/// What the agent's configuration says about this failure.
fn classified(failure: Failure, exit_code: Option<i64>, agent: &Agent, desk: &Desk) -> Failure {
    if let Some(code) = exit_code.and_then(|code| i32::try_from(code).ok())
        && let Some(category) = agent.exit_codes.get(&code)
    {
        return Failure { category: *category, ..failure };
    }
    if agent.error_patterns.is_empty() || failure.category == Category::SystemError {
        return failure;
    }
    let words = [desk.said_last(Name::Stderr, LAST_WORDS), desk.said_last(Name::Stdout, LAST_WORDS)];
    let words: Vec<_> = words.iter().chain([&failure.message]).map(|text| text.to_lowercase()).collect();
    let found = agent.error_patterns.iter().find(|pattern| {
        let text = pattern.text.to_lowercase();
        words.iter().any(|words| words.contains(&text))
    });
    match found {
        Some(pattern) => Failure { category: pattern.category, ..failure },
        None => failure,
    }
}

/// How long to wait before it is tried again, if it is.
fn retry_delay(last: &Last, desk: &Desk, agent: &Agent) -> Option<Duration> {
    let execution = desk.execution();
    let transient = last.failure.as_ref().is_some_and(|failure| failure.category == Category::Transient);
    let rejected = last.outcome == Some(Outcome::Rejected);
    if last.stop.is_some() || !transient || rejected || !execution.may_retry() {
        return None;
    }
    Some(delay(agent.retry_delay.duration(), execution.retry_count()))
}

/// Returns the delay after `retries` retries: the configured one, doubled each time up to a quarter of an hour.
fn delay(first: Duration, retries: i64) -> Duration {
    Doubling::new(first, LONGEST_DELAY.max(first)).delay(u64::try_from(retries).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delays_double_up_to_a_quarter_of_an_hour() {
        let delays =
            |first| [0, 1, 2, 10, i64::MAX].map(|retries| delay(Duration::from_secs(first), retries).as_secs());
        assert_eq!(delays(5), [5, 10, 20, 900, 900]);
        assert_eq!(delays(3600), [3600; 5], "a configured delay is never shortened");
        assert_eq!(delays(0), [0; 5]);
    }
}
