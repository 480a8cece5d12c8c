//! Circuit breakers: they stop calls to a service after repeated failures (RES-1).
//!
//! A closed breaker allows all calls. It opens after a number of consecutive failures. An open breaker rejects all
//! calls until the recovery time has passed. Then it is half open and allows a few trial calls. If all of them succeed,
//! it closes; if one fails, it opens again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::Clock;

/// The configuration of a breaker (S0's CircuitBreakerConfig).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// The number of consecutive failures that opens the breaker.
    pub failure_threshold: u32,
    /// The time for which the breaker stays open.
    pub recovery_time: Duration,
    /// The number of trial calls in the half-open state. If all succeed, the breaker closes.
    pub half_open_calls: u32,
}

impl BreakerConfig {
    /// The configuration for a language model.
    pub const MODEL: Self = Self { failure_threshold: 3, recovery_time: Duration::from_secs(60), half_open_calls: 3 };
    /// The configuration for an MCP server.
    pub const MCP_SERVER: Self =
        Self { failure_threshold: 5, recovery_time: Duration::from_secs(30), half_open_calls: 3 };
}

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    Closed,
    Open,
    HalfOpen,
}

impl BreakerState {
    /// Returns the JSON spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The state and the counters of a breaker (S0's CircuitBreakerState).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerSnapshot {
    pub state: BreakerState,
    /// The number of consecutive failures.
    pub failure_count: u32,
    pub last_failure_time: Option<Timestamp>,
    pub last_state_change: Timestamp,
    /// The number of successful trial calls in the half-open state.
    pub consecutive_successes: u32,
}

/// A change of the state, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    pub service: Arc<str>,
    pub old: BreakerState,
    pub new: BreakerState,
    pub failure_count: u32,
    /// The number of failures that opens the breaker.
    pub threshold: u32,
    pub last_error: Option<String>,
}

/// A function that is called on every change of the state. The breaker is locked during the call, so the function must
/// not use it.
pub type BreakerObserver = fn(&BreakerChange);

/// The breaker of one service.
#[derive(Debug)]
pub struct Breaker {
    service: Arc<str>,
    config: BreakerConfig,
    clock: Clock,
    observer: BreakerObserver,
    inner: Mutex<BreakerInner>,
}

#[derive(Debug)]
struct BreakerInner {
    snapshot: BreakerSnapshot,
    last_error: Option<String>,
    /// The trial calls of this half-open state, without those that were abandoned.
    trial_calls: u32,
    /// Counts the changes of the state. Results of calls from an earlier period are ignored.
    period: u64,
}

/// The permission to make one call. Dropping it without a result releases the permission.
#[derive(Debug)]
#[must_use]
pub struct CallPermit {
    breaker: Arc<Breaker>,
    period: u64,
    is_completed: bool,
}

impl Breaker {
    /// Returns a closed breaker without failures. `observer` is called on every change of the state.
    pub fn new(service: &str, config: BreakerConfig, clock: Clock, observer: BreakerObserver) -> Arc<Self> {
        let snapshot = BreakerSnapshot {
            state: BreakerState::Closed,
            failure_count: 0,
            last_failure_time: None,
            last_state_change: clock.now(),
            consecutive_successes: 0,
        };
        let inner = Mutex::new(BreakerInner { snapshot, last_error: None, trial_calls: 0, period: 0 });
        Arc::new(Self { service: service.into(), config, clock, observer, inner })
    }

    /// Returns the name of the service.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the permission to make a call. Returns `None` if the breaker is open, or if all trial calls of the
    /// half-open state are used. Changes an open breaker to half open if the recovery time has passed.
    pub fn try_acquire(self: &Arc<Self>) -> Option<CallPermit> {
        let mut inner = self.lock();
        if inner.snapshot.state == BreakerState::Open && self.is_recovery_over(&inner.snapshot) {
            self.set_state(&mut inner, BreakerState::HalfOpen);
        }
        match inner.snapshot.state {
            BreakerState::Closed => {}
            BreakerState::Open => return None,
            BreakerState::HalfOpen if inner.trial_calls >= self.config.half_open_calls => return None,
            BreakerState::HalfOpen => inner.trial_calls += 1,
        }
        Some(CallPermit { breaker: self.clone(), period: inner.period, is_completed: false })
    }

    /// Returns the current state and counters. An open breaker remains `Open` after the recovery time, until the next
    /// call is requested.
    pub fn snapshot(&self) -> BreakerSnapshot {
        self.lock().snapshot.clone()
    }

    /// Returns the error of the last failure, `None` after the breaker has closed.
    pub fn last_error(&self) -> Option<String> {
        self.lock().last_error.clone()
    }

    /// Returns `true` if the breaker is open and its recovery time has not passed. A half-open breaker without free
    /// trial calls is not open.
    pub fn is_open(&self) -> bool {
        let inner = self.lock();
        inner.snapshot.state == BreakerState::Open && !self.is_recovery_over(&inner.snapshot)
    }

    /// Returns `true` if the recovery time has passed since the last change of the state, or if the clock was set back
    /// before it.
    fn is_recovery_over(&self, snapshot: &BreakerSnapshot) -> bool {
        let since = self.clock.now().duration_since(snapshot.last_state_change);
        // A clock that is set back must not keep the breaker open forever.
        since.is_negative() || since.unsigned_abs() >= self.config.recovery_time
    }

    /// Counts the result of a call, where `None` is a success. Ignores calls from an earlier period. A failure opens a
    /// half-open breaker, or a closed one that reaches the threshold; its error and time are stored. A success closes a
    /// half-open breaker after `half_open_calls` of them. In a closed one it sets the number of failures to 0.
    fn record_result(&self, period: u64, failure: Option<&str>) {
        let mut inner = self.lock();
        if inner.period != period {
            return;
        }
        let half_open = inner.snapshot.state == BreakerState::HalfOpen;
        match failure {
            None if half_open => {
                inner.snapshot.consecutive_successes += 1;
                if inner.snapshot.consecutive_successes >= self.config.half_open_calls {
                    self.set_state(&mut inner, BreakerState::Closed);
                }
            }
            None => inner.snapshot.failure_count = 0,
            Some(error) => {
                inner.snapshot.failure_count = inner.snapshot.failure_count.saturating_add(1);
                inner.snapshot.last_failure_time = Some(self.clock.now());
                inner.last_error = Some(error.to_owned());
                if half_open || inner.snapshot.failure_count >= self.config.failure_threshold {
                    self.set_state(&mut inner, BreakerState::Open);
                }
            }
        }
    }

    /// Changes the state, starts a new period, resets the trial calls and calls the observer. Closing also clears the
    /// failures and the last error, after the observer was called.
    fn set_state(&self, inner: &mut BreakerInner, new: BreakerState) {
        let old = std::mem::replace(&mut inner.snapshot.state, new);
        inner.snapshot.last_state_change = self.clock.now();
        inner.snapshot.consecutive_successes = 0;
        inner.trial_calls = 0;
        inner.period += 1;
        (self.observer)(&BreakerChange {
            service: self.service.clone(),
            old,
            new,
            failure_count: inner.snapshot.failure_count,
            threshold: self.config.failure_threshold,
            last_error: inner.last_error.clone(),
        });
        if new == BreakerState::Closed {
            inner.snapshot.failure_count = 0;
            inner.last_error = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BreakerInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPermit {
    /// Records a successful call.
    pub fn succeeded(mut self) {
        self.is_completed = true;
        self.breaker.record_result(self.period, None);
    }

    /// Records a failed call.
    pub fn failed(mut self, error: &str) {
        self.is_completed = true;
        self.breaker.record_result(self.period, Some(error));
    }
}

impl Drop for CallPermit {
    /// Returns an unused trial call to the breaker, if its state has not changed.
    fn drop(&mut self) {
        if !self.is_completed {
            let mut inner = self.breaker.lock();
            if inner.period == self.period && inner.snapshot.state == BreakerState::HalfOpen {
                inner.trial_calls -= 1;
            }
        }
    }
}

/// The breakers of all services, by name. A service keeps its breaker when its configuration is reloaded.
#[derive(Clone, Debug)]
pub struct Breakers {
    clock: Clock,
    observer: BreakerObserver,
    by_service: Arc<Mutex<BTreeMap<String, Arc<Breaker>>>>,
}

impl Breakers {
    /// Returns an empty collection. `observer` is called on every change of a state.
    pub fn new(clock: Clock, observer: BreakerObserver) -> Self {
        Self { clock, observer, by_service: Arc::default() }
    }

    /// Returns the breaker of the service. Creates it with `config` on the first call.
    pub fn get_or_create(&self, service: &str, config: BreakerConfig) -> Arc<Breaker> {
        let mut by_service = self.by_service.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Breaker::new(service, config, self.clock.clone(), self.observer);
        by_service.entry(service.to_owned()).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(config: BreakerConfig) -> (Clock, Arc<Breaker>) {
        let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
        (clock.clone(), Breaker::new("x", config, clock, |_| {}))
    }

    fn fail(breaker: &Arc<Breaker>, times: u32) {
        for _ in 0..times {
            breaker.try_acquire().unwrap().failed("no");
        }
    }

    #[test]
    fn a_breaker_opens_after_consecutive_failures_and_recovers() {
        // RES-1
        for (config, failures, seconds) in [(BreakerConfig::MCP_SERVER, 5, 30), (BreakerConfig::MODEL, 3, 60)] {
            let (clock, breaker) = breaker(config);
            fail(&breaker, failures - 1);
            breaker.try_acquire().unwrap().succeeded();
            fail(&breaker, failures - 1);
            assert_eq!(breaker.snapshot().state, BreakerState::Closed, "a success resets the count");
            fail(&breaker, 1);
            let open = breaker.snapshot();
            assert_eq!((open.state, open.failure_count), (BreakerState::Open, failures));
            assert_eq!(open.last_failure_time, Some(clock.now()));
            clock.advance(Duration::from_millis(seconds * 1000 - 1));
            assert!(breaker.try_acquire().is_none() && breaker.is_open());
            clock.advance(Duration::from_millis(1));
            assert!(!breaker.is_open());
            let trials: Vec<_> = (0..200).filter_map(|_| breaker.try_acquire()).collect();
            assert_eq!(trials.len(), 3);
            let mut trials = trials.into_iter();
            trials.next().unwrap().succeeded();
            assert_eq!(breaker.snapshot().consecutive_successes, 1);
            assert!(breaker.try_acquire().is_none(), "only three trial calls are allowed");
            trials.for_each(CallPermit::succeeded);
            let closed = breaker.snapshot();
            assert_eq!((closed.state, closed.failure_count), (BreakerState::Closed, 0));
        }
    }

    #[test]
    fn a_failed_trial_call_opens_the_breaker_again() {
        // RES-1
        let (clock, breaker) = breaker(BreakerConfig::MODEL);
        fail(&breaker, 3);
        clock.advance(Duration::from_secs(60));
        let first = breaker.try_acquire().unwrap();
        let second = breaker.try_acquire().unwrap();
        first.failed("still not");
        assert_eq!(breaker.snapshot().state, BreakerState::Open);
        second.succeeded();
        assert_eq!(breaker.snapshot().state, BreakerState::Open, "a result from an earlier period is ignored");
        clock.advance(Duration::from_secs(60));
        assert!(breaker.try_acquire().is_some());
    }

    #[test]
    fn an_abandoned_call_releases_its_permission() {
        let (clock, breaker) = breaker(BreakerConfig::MODEL);
        fail(&breaker, 3);
        clock.advance(Duration::from_secs(60));
        let mut trials: Vec<_> = (0..3).filter_map(|_| breaker.try_acquire()).collect();
        assert!(breaker.try_acquire().is_none());
        trials.pop();
        assert!(breaker.try_acquire().is_some());
    }

    #[test]
    fn exactly_3_of_200_threads_make_a_trial_call() {
        // RES-1
        let (clock, breaker) = breaker(BreakerConfig::MODEL);
        fail(&breaker, 3);
        clock.advance(Duration::from_secs(60));
        let gate = std::sync::Barrier::new(200);
        let permits = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..200 {
                scope.spawn(|| {
                    gate.wait();
                    if let Some(permit) = breaker.try_acquire() {
                        permits.lock().unwrap().push(permit);
                    }
                });
            }
        });
        assert_eq!(permits.into_inner().unwrap().len(), 3);
    }

    #[test]
    fn every_change_is_reported_to_the_observer() {
        static CHANGES: Mutex<Vec<BreakerChange>> = Mutex::new(Vec::new());
        let clock = Clock::manual("2026-01-01T00:00:00Z".parse().unwrap());
        let breakers = Breakers::new(clock.clone(), |change| CHANGES.lock().unwrap().push(change.clone()));
        let breaker = breakers.get_or_create("mcp_server:notes", BreakerConfig::MCP_SERVER);
        fail(&breaker, 5);
        assert!(Arc::ptr_eq(&breaker, &breakers.get_or_create("mcp_server:notes", BreakerConfig::MCP_SERVER)));
        clock.advance(Duration::from_secs(30));
        (0..3).for_each(|_| breaker.try_acquire().unwrap().succeeded());
        let changes = CHANGES.lock().unwrap();
        let states: Vec<_> = changes.iter().map(|change| (change.old, change.new)).collect();
        let expected = [
            (BreakerState::Closed, BreakerState::Open),
            (BreakerState::Open, BreakerState::HalfOpen),
            (BreakerState::HalfOpen, BreakerState::Closed),
        ];
        assert_eq!(states, expected);
        assert_eq!((changes[0].failure_count, changes[0].last_error.as_deref()), (5, Some("no")));
    }
}
