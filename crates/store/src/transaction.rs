//! A database transaction, and the effects that wait for its outcome.
//!
//! Code inside a transaction must not act on the outside world: the transaction may still be rolled back. It registers
//! an effect instead. Effects run on the thread that learns the outcome or in a task of the runtime, so they must be short
//! and must not block; they may spawn tasks.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::AssertUnwindSafe;

use crate::conn::Conn;

/// A connection inside a transaction. It derefs to [`Conn`], so every function of this crate accepts it.
#[derive(Debug)]
pub struct Transaction {
    conn: Conn,
    effects: Effects,
    erases: bool,
}

impl Transaction {
    pub(crate) fn new(conn: Conn) -> Self {
        Self { conn, effects: Effects::default(), erases: false }
    }

    /// Requests that no file keeps the data that this transaction deletes. SQLite truncates its WAL soon after the
    /// commit. Has no effect on PostgreSQL.
    pub fn erase_from_disk(&mut self) {
        self.erases = true;
    }

    /// Returns true if [`Transaction::erase_from_disk`] was called since the last call of this function.
    pub(crate) fn take_erases(&mut self) -> bool {
        std::mem::take(&mut self.erases)
    }

    /// Registers an effect that runs once the transaction is committed, even if the caller has stopped waiting for it.
    /// Effects run in the order in which they were registered.
    pub fn after_commit(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.after_commit.push(Box::new(effect));
    }

    /// Registers an effect that runs if the transaction is rolled back. Neither this nor an effect of
    /// [`Transaction::after_commit`] runs if the connection to PostgreSQL is lost during the commit: its
    /// outcome is unknown then.
    pub fn on_rollback(&mut self, effect: impl FnOnce() + Send + 'static) {
        self.effects.on_rollback.push(Box::new(effect));
    }

    /// Removes and returns the effects registered so far.
    pub(crate) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// Returns the connection and the registered effects.
    pub(crate) fn into_parts(self) -> (Conn, Effects) {
        (self.conn, self.effects)
    }
}

impl Deref for Transaction {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

/// The work of one transaction: any `async move |tx| { … }` with a `Send` future.
///
/// The trait exists because `AsyncFnOnce` cannot express the `Send` bound.
pub trait Job<'t, T, E>: FnOnce(&'t mut Transaction) -> <Self as Job<'t, T, E>>::Future + Send {
    type Future: Future<Output = Result<T, E>> + Send + 't;
}

impl<'t, T, E, F, R> Job<'t, T, E> for F
where
    F: FnOnce(&'t mut Transaction) -> R + Send,
    R: Future<Output = Result<T, E>> + Send + 't,
{
    type Future = R;
}

type Effect = Box<dyn FnOnce() + Send>;

/// The effects of one transaction. Dropping them counts as a rollback.
#[derive(Default)]
pub(crate) struct Effects {
    after_commit: Vec<Effect>,
    on_rollback: Vec<Effect>,
}

impl Effects {
    /// Removes the effects of a rollback, because the transaction is committed. Dropping the rest has no effect.
    pub(crate) fn without_rollback(mut self) -> Self {
        self.on_rollback.clear();
        self
    }

    /// Runs the effects of a commit.
    pub(crate) fn committed(mut self) {
        self.on_rollback.clear();
        run(std::mem::take(&mut self.after_commit));
    }

    /// Drops all effects because the outcome of the commit is unknown.
    pub(crate) fn outcome_unknown(mut self) {
        self.on_rollback.clear();
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        run(std::mem::take(&mut self.on_rollback));
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = (self.after_commit.len(), self.on_rollback.len());
        f.debug_tuple("Effects").field(&counts.0).field(&counts.1).finish()
    }
}

/// Runs each effect. A panic in one must not end the thread, which other transactions depend on.
fn run(effects: Vec<Effect>) {
    for effect in effects {
        if std::panic::catch_unwind(AssertUnwindSafe(effect)).is_err() {
            tracing::error!(event = "transaction_effect_panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn effects(committed: &Arc<AtomicUsize>, rolled_back: &Arc<AtomicUsize>) -> Effects {
        let mut effects = Effects::default();
        for (list, count) in [(&mut effects.after_commit, committed), (&mut effects.on_rollback, rolled_back)] {
            for _ in 0..2 {
                let count = count.clone();
                list.push(Box::new(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                }));
            }
        }
        effects
    }

    #[test]
    fn exactly_one_outcome_runs_its_effects() {
        let committed = Arc::new(AtomicUsize::new(0));
        let rolled_back = Arc::new(AtomicUsize::new(0));
        let seen = || (committed.load(Ordering::Relaxed), rolled_back.load(Ordering::Relaxed));
        effects(&committed, &rolled_back).committed();
        assert_eq!(seen(), (2, 0));
        drop(effects(&committed, &rolled_back));
        assert_eq!(seen(), (2, 2));
        effects(&committed, &rolled_back).outcome_unknown();
        assert_eq!(seen(), (2, 2));
    }

    #[test]
    fn a_panicking_effect_does_not_stop_the_next_ones() {
        let committed = Arc::new(AtomicUsize::new(0));
        let mut effects = effects(&committed, &Arc::default());
        effects.after_commit.insert(0, Box::new(|| panic!("on purpose")));
        effects.committed();
        assert_eq!(committed.load(Ordering::Relaxed), 2);
    }
}
