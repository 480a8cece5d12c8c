//! Circuit breakers: what has failed again and again is left alone for a while (RES-1).
//!
//! Closed: calls go through. After so many failures in a row: open, nothing goes through until the recovery time is over.
//! Then half open: so many calls may try; if all succeed it closes, one failure opens it again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::Clock;

/// S0's CircuitBreakerConfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open.
    pub recovery: Duration,
    /// Calls that may try while it is half open; if all succeed it closes.
    pub trials: u32,
}

impl Rules {
    /// For a language model.
    pub const MODEL: Self = Self { failures: 3, recovery: Duration::from_secs(60), trials: 3 };
    /// For an MCP server.
    pub const MCP_SERVER: Self = Self { failures: 5, recovery: Duration::from_secs(30), trials: 3 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Closed,
    Open,
    HalfOpen,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// S0's CircuitBreakerState.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    pub state: State,
    /// Failures in a row.
    pub failure_count: u32,
    pub last_failure_time: Option<Timestamp>,
    pub last_state_change: Timestamp,
    /// While it is half open.
    pub consecutive_successes: u32,
}

/// A change of state, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub service: Arc<str>,
    pub old: State,
    pub new: State,
    pub failure_count: u32,
    /// How many failures it takes.
    pub threshold: u32,
    pub last_error: Option<String>,
}

/// Told of every change of state.
pub type Observer = fn(&Change);

/// The breaker of one service.
#[derive(Debug)]
pub struct Breaker {
    service: Arc<str>,
    rules: Rules,
    clock: Clock,
    observer: Observer,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    now: Snapshot,
    last_error: Option<String>,
    /// Trials of this half-open state; those that were given up do not count.
    trying: u32,
    /// Counts the changes of state: what a call of an earlier one has to say is of no interest any more.
    period: u64,
}

/// The right to make one call. Whoever drops it without saying how the call went gives it back.
#[derive(Debug)]
#[must_use]
pub struct Pass {
    breaker: Arc<Breaker>,
    period: u64,
    used: bool,
}

impl Breaker {
    pub fn new(service: &str, rules: Rules, clock: Clock, observer: Observer) -> Arc<Self> {
        let now = Snapshot {
            state: State::Closed,
            failure_count: 0,
            last_failure_time: None,
            last_state_change: clock.now(),
            consecutive_successes: 0,
        };
        let inner = Mutex::new(Inner { now, last_error: None, trying: 0, period: 0 });
        Arc::new(Self { service: service.into(), rules, clock, observer, inner })
    }

    pub fn service(&self) -> &str {
        &self.service
    }

    /// The right to make a call, unless the service is left alone.
    pub fn admit(self: &Arc<Self>) -> Option<Pass> {
        let mut inner = self.inner();
        if inner.now.state == State::Open && self.is_over(&inner.now) {
            self.change(&mut inner, State::HalfOpen);
        }
        match inner.now.state {
            State::Closed => {}
            State::Open => return None,
            State::HalfOpen if inner.trying >= self.rules.trials => return None,
            State::HalfOpen => inner.trying += 1,
        }
        Some(Pass { breaker: self.clone(), period: inner.period, used: false })
    }

    pub fn snapshot(&self) -> Snapshot {
        self.inner().now.clone()
    }

    /// What was said of the last failure, until it works again.
    pub fn last_error(&self) -> Option<String> {
        self.inner().last_error.clone()
    }

    /// Whether it is not asked at all for now.
    pub fn is_open(&self) -> bool {
        let inner = self.inner();
        inner.now.state == State::Open && !self.is_over(&inner.now)
    }

    fn is_over(&self, now: &Snapshot) -> bool {
        let since = self.clock.now().duration_since(now.last_state_change);
        // A clock that was set back must not keep it open for ever.
        since.is_negative() || since.unsigned_abs() >= self.rules.recovery
    }

    fn ended(&self, period: u64, failure: Option<&str>) {
        let mut inner = self.inner();
        if inner.period != period {
            return;
        }
        let half_open = inner.now.state == State::HalfOpen;
        match failure {
            None if half_open => {
                inner.now.consecutive_successes += 1;
                if inner.now.consecutive_successes >= self.rules.trials {
                    self.change(&mut inner, State::Closed);
                }
            }
            None => inner.now.failure_count = 0,
            Some(error) => {
                inner.now.failure_count = inner.now.failure_count.saturating_add(1);
                inner.now.last_failure_time = Some(self.clock.now());
                inner.last_error = Some(error.to_owned());
                if half_open || inner.now.failure_count >= self.rules.failures {
                    self.change(&mut inner, State::Open);
                }
            }
        }
    }

    fn change(&self, inner: &mut Inner, new: State) {
        let old = std::mem::replace(&mut inner.now.state, new);
        inner.now.last_state_change = self.clock.now();
        inner.now.consecutive_successes = 0;
        inner.trying = 0;
        inner.period += 1;
        (self.observer)(&Change {
            service: self.service.clone(),
            old,
            new,
            failure_count: inner.now.failure_count,
            threshold: self.rules.failures,
            last_error: inner.last_error.clone(),
        });
        if new == State::Closed {
            inner.now.failure_count = 0;
            inner.last_error = None;
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass {
    pub fn succeeded(mut self) {
        self.used = true;
        self.breaker.ended(self.period, None);
    }

    pub fn failed(mut self, error: &str) {
        self.used = true;
        self.breaker.ended(self.period, Some(error));
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if !self.used {
            let mut inner = self.breaker.inner();
            if inner.period == self.period && inner.now.state == State::HalfOpen {
                inner.trying -= 1;
            }
        }
    }
}

/// The breakers of all services, by name. A service that is configured anew keeps its breaker.
#[derive(Clone, Debug)]
pub struct Breakers {
    clock: Clock,
    observer: Observer,
    known: Arc<Mutex<BTreeMap<String, Arc<Breaker>>>>,
}

impl Breakers {
    pub fn new(clock: Clock, observer: Observer) -> Self {
        Self { clock, observer, known: Arc::default() }
    }

    pub fn of(&self, service: &str, rules: Rules) -> Arc<Breaker> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Breaker::new(service, rules, self.clock.clone(), self.observer);
        known.entry(service.to_owned()).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(rules: Rules) -> (Clock, Arc<Breaker>) {
        let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
        (clock.clone(), Breaker::new("x", rules, clock, |_| {}))
    }

    fn fail(breaker: &Arc<Breaker>, times: u32) {
        for _ in 0..times {
            breaker.admit().unwrap().failed("no");
        }
    }

    #[test]
    fn opens_after_failures_in_a_row_and_tries_again_in_time() {
        // RES-1
        for (rules, failures, seconds) in [(Rules::MCP_SERVER, 5, 30), (Rules::MODEL, 3, 60)] {
            let (clock, breaker) = breaker(rules);
            fail(&breaker, failures - 1);
            breaker.admit().unwrap().succeeded();
            fail(&breaker, failures - 1);
            assert_eq!(breaker.snapshot().state, State::Closed, "a success in between begins the count again");
            fail(&breaker, 1);
            let open = breaker.snapshot();
            assert_eq!((open.state, open.failure_count), (State::Open, failures));
            assert_eq!(open.last_failure_time, Some(clock.now()));
            clock.advance(Duration::from_millis(seconds * 1000 - 1));
            assert!(breaker.admit().is_none() && breaker.is_open());
            clock.advance(Duration::from_millis(1));
            assert!(!breaker.is_open());
            let trials: Vec<_> = (0..200).filter_map(|_| breaker.admit()).collect();
            assert_eq!(trials.len(), 3);
            let mut trials = trials.into_iter();
            trials.next().unwrap().succeeded();
            assert_eq!(breaker.snapshot().consecutive_successes, 1);
            assert!(breaker.admit().is_none(), "three are three");
            trials.for_each(Pass::succeeded);
            let closed = breaker.snapshot();
            assert_eq!((closed.state, closed.failure_count), (State::Closed, 0));
        }
    }

    #[test]
    fn one_failed_trial_opens_it_again() {
        // RES-1
        let (clock, breaker) = breaker(Rules::MODEL);
        fail(&breaker, 3);
        clock.advance(Duration::from_secs(60));
        let one = breaker.admit().unwrap();
        let other = breaker.admit().unwrap();
        one.failed("still not");
        assert_eq!(breaker.snapshot().state, State::Open);
        other.succeeded();
        assert_eq!(breaker.snapshot().state, State::Open, "what began before says nothing about now");
        clock.advance(Duration::from_secs(60));
        assert!(breaker.admit().is_some());
    }

    #[test]
    fn a_call_that_was_given_up_makes_room_for_another() {
        let (clock, breaker) = breaker(Rules::MODEL);
        fail(&breaker, 3);
        clock.advance(Duration::from_secs(60));
        let mut trials: Vec<_> = (0..3).filter_map(|_| breaker.admit()).collect();
        assert!(breaker.admit().is_none());
        trials.pop();
        assert!(breaker.admit().is_some());
    }

    #[test]
    fn of_200_threads_exactly_3_are_let_through() {
        // RES-1
        let (clock, breaker) = breaker(Rules::MODEL);
        fail(&breaker, 3);
        clock.advance(Duration::from_secs(60));
        let gate = std::sync::Barrier::new(200);
        let passes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| {
                    gate.wait();
                    if let Some(pass) = breaker.admit() {
                        passes.lock().unwrap().push(pass);
                    }
                });
            }
        });
        assert_eq!(passes.into_inner().unwrap().len(), 3);
    }

    #[test]
    fn every_change_is_told() {
        static TOLD: Mutex<Vec<Change>> = Mutex::new(Vec::new());
        let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
        let breakers = Breakers::new(clock.clone(), |change| TOLD.lock().unwrap().push(change.clone()));
        let breaker = breakers.of("mcp_server:notes", Rules::MCP_SERVER);
        fail(&breaker, 5);
        assert!(Arc::ptr_eq(&breaker, &breakers.of("mcp_server:notes", Rules::MCP_SERVER)));
        clock.advance(Duration::from_secs(30));
        (0..3).for_each(|_| breaker.admit().unwrap().succeeded());
        let told = TOLD.lock().unwrap();
        let states: Vec<_> = told.iter().map(|change| (change.old, change.new)).collect();
        let expected = [(State::Closed, State::Open), (State::Open, State::HalfOpen), (State::HalfOpen, State::Closed)];
        assert_eq!(states, expected);
        assert_eq!((told[0].failure_count, told[0].last_error.as_deref()), (5, Some("no")));
    }
}
