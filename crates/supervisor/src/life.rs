//! The life of one execution on this node, from its place to its end: tries, limits, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use model::agent::Agent;
use model::execution::{Artifact, Category, Execution, Outcome, State};
use store::executions::{Claimed, Fence, any_waiting, claim, give_back, queue_again};
use tokio::time::Instant;

use crate::desk::{Desk, Stop};
use crate::registry::Entry;
use crate::runner::{Ended, Request, Run};
use crate::streams::Name;
use crate::{Failure, Supervisor, lock};

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
        let parts = (&self.0.store, &self.0.clock, &self.0.wakes, &self.0.dirty);
        let desk = Desk::new(claimed.fence, claimed.stored.execution.clone(), claimed.seq, &entry.agent, parts);
        lock(&self.0.at_work).insert(desk.id(), desk.clone());
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
        lock(&self.0.at_work).remove(&desk.id());
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
            let attempt = desk.execution().attempt;
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
            if let Err(illegal) = desk.try_again(|execution| last.note(execution)) {
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
        let state = last.state();
        let artifacts = last.artifacts.clone();
        let interrupted = last.stop == Some(Stop::Shutdown);
        let batch = desk
            .close(|execution, now| {
                last.note(execution);
                // Whatever came of it, it has begun.
                if state == State::Completed && execution.state == State::Starting {
                    execution.enter(State::Running, now)?;
                    execution.start_time = Some(now);
                }
                if interrupted && execution.retry_count < execution.max_retries {
                    execution.enter(State::Failed, now)?;
                    return execution.wait_again(now);
                }
                execution.end(state, now)
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
        // As it is now: an agent that was removed takes nothing more.
        let agent = self.registry().get(&entry.agent.id).map(|current| current.agent);
        let more = more && agent.as_ref().is_some_and(|agent| agent.enabled);
        let agent = agent.as_ref().unwrap_or(&entry.agent);
        let may = more && !self.0.stopping.is_cancelled() && self.takes_from(&agent.id);
        let more = may && self.is_admitted(1);
        let (agent_id, places, now) = (agent.id.clone(), i64::from(agent.places()), self.0.clock.now());
        let (node, spool) = (self.0.node, self.spool_name());
        self.0
            .store
            .write(move |conn| {
                Box::pin(async move {
                    let held = batch.write(conn, fence, Some(artifacts)).await?;
                    if held && batch.execution.state == State::Idle {
                        queue_again(conn, fence, now).await?;
                        store::hints::queue(conn, &agent_id);
                    }
                    give_back(conn, fence.id, node).await?;
                    if !more {
                        // Whoever may take more has a place for it now.
                        store::hints::queue(conn, &agent_id);
                        return Ok((held, Next::Unknown));
                    }
                    if !any_waiting(conn, &agent_id, now).await? {
                        return Ok((held, Next::Nothing));
                    }
                    let next = claim(conn, node, &spool, &agent_id, places, 1, now).await?;
                    let next = next.into_iter().next().map_or(Next::Unknown, |next| Next::Claimed(Box::new(next)));
                    Ok((held, next))
                })
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
    fn state(&self) -> State {
        match (self.stop, &self.failure) {
            (Some(Stop::Timeout), _) => State::Timeout,
            (Some(Stop::Cancelled), _) => State::Cancelled,
            (Some(Stop::Shutdown | Stop::Lost), _) | (None, Some(_)) => State::Failed,
            (None, None) => State::Completed,
        }
    }

    fn note(&self, execution: &mut Execution) {
        execution.exit_code = self.exit_code;
        // Only who came to an end by itself means something by it.
        execution.outcome = self.outcome.filter(|outcome| match outcome {
            Outcome::Rejected => self.state() == State::Failed && self.stop.is_none(),
            Outcome::Asks | Outcome::NeedsAccess | Outcome::Message => self.state() == State::Completed,
            Outcome::Withdrawn => false,
        });
        if self.usage.is_some() {
            execution.resource_usage = self.usage;
        }
        let (message, category) = match self.stop {
            Some(Stop::Timeout) => {
                let limit = execution.timeout.duration().as_secs_f64();
                (format!("took longer than {limit} s"), None)
            }
            Some(Stop::Cancelled) => ("cancelled".to_owned(), None),
            Some(Stop::Shutdown | Stop::Lost) => {
                ("adjutant was stopped while it ran".to_owned(), Some(Category::SystemError))
            }
            None => match &self.failure {
                Some(failure) => (failure.message.clone(), Some(failure.category)),
                None => return,
            },
        };
        execution.error_message = Some(message);
        execution.error_category = category;
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
    if last.stop.is_some() || !transient || rejected || execution.retry_count >= execution.max_retries {
        return None;
    }
    let doubled = 1u32.checked_shl(u32::try_from(execution.retry_count).unwrap_or(31)).unwrap_or(u32::MAX);
    Some(agent.retry_delay.duration().saturating_mul(doubled).min(LONGEST_DELAY.max(agent.retry_delay.duration())))
}
