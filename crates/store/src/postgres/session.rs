//! A connection of the pool, for reads or for one transaction.
//!
//! Statements are prepared and cached, except behind a pooler. Statements whose result is not needed wait for the next
//! round trip, which may be the commit.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use futures::stream::BoxStream;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgQueryResult, PgRow};
use sqlx::{AssertSqlSafe, Either, Executor, Postgres};
use tokio::runtime::Handle;

use super::literals::with_literals;
use super::settings::Pooler;
use crate::conn::Statement;
use crate::error::is_repeatable;
use crate::{Error, Result};

/// How often the begin of a transaction is tried. Nothing has run before, so a repetition is safe.
const BEGIN_ATTEMPTS: usize = 3;

/// A pool, and the kind of pooler before the server. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct PgConnections {
    pub(super) pool: PgPool,
    pub(super) pooler: Pooler,
    pub(super) last_failure: LastFailure,
}

/// The time at which a connection was found to be lost. The connections that were idle then are suspect.
#[derive(Clone, Debug, Default)]
pub(super) struct LastFailure(Arc<Mutex<Option<Instant>>>);

impl LastFailure {
    fn record(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns true if a connection was lost within this time.
    pub(super) fn is_within(&self, time: Duration) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= time)
    }
}

/// A connection that is returned to the pool when it is dropped. An open transaction is rolled back then.
#[derive(Debug)]
pub(crate) struct PgSession {
    /// `None` after the end of a transaction.
    connection: Option<PoolConnection<Postgres>>,
    is_transaction: bool,
    connections: PgConnections,
    /// Statements for the next round trip, each with its semicolon.
    waiting: String,
}

/// The rows of a statement, and the number of rows that it has affected.
#[derive(Debug, Default)]
pub(crate) struct PgOutcome {
    pub(crate) rows: Vec<PgRow>,
    pub(crate) affected: u64,
}

impl PgSession {
    /// Takes a connection for reads. Fails if none is free in time.
    pub(crate) async fn reader(connections: &PgConnections) -> Result<Self> {
        let connection = Some(connections.pool.acquire().await?);
        let connections = connections.clone();
        Ok(Self { connection, is_transaction: false, connections, waiting: String::new() })
    }

    /// Takes a connection and runs `begin` on it, which opens the transaction. Tries again on another connection if this one
    /// was lost, or on a conflict with other transactions. Fails if no connection is free in time.
    pub(crate) async fn begin(connections: &PgConnections, begin: &str) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let mut session = Self::reader(connections).await?;
            session.is_transaction = true;
            let begun = sqlx::raw_sql(AssertSqlSafe(begin)).execute(session.connection()?).await;
            match begun {
                Ok(_) => return Ok(session),
                Err(error) if attempt < BEGIN_ATTEMPTS && is_repeatable(&error) => {
                    connections.last_failure.record();
                    attempt += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn is_transaction(&self) -> bool {
        self.is_transaction
    }

    /// Returns the connection. Fails if the transaction has ended.
    fn connection(&mut self) -> Result<&mut sqlx::PgConnection> {
        let connection = self.connection.as_deref_mut();
        connection.ok_or_else(|| Error::Unavailable("the transaction has ended".to_owned()))
    }

    /// Runs the waiting statements and this one, in one round trip. Outside of a transaction tries once more on another
    /// connection if this one was lost. Fails if one of the statements fails.
    pub(crate) async fn run(&mut self, statement: Statement<'_>) -> Result<PgOutcome> {
        match self.try_run(&statement).await? {
            Err(error) if !self.is_transaction && is_repeatable(&error) => {
                self.connections.last_failure.record();
                *self = Self::reader(&self.connections).await?;
                Ok(self.try_run(&statement).await??)
            }
            done => Ok(done?),
        }
    }

    async fn try_run(&mut self, statement: &Statement<'_>) -> Result<sqlx::Result<PgOutcome>> {
        if self.connections.pooler == Pooler::None && self.waiting.is_empty() {
            let results = Executor::fetch_many(self.connection()?, statement.for_postgres());
            return Ok(outcome_of_last(results).await);
        }
        let text = std::mem::take(&mut self.waiting) + &with_literals(statement.sql(), statement.args())?;
        let results = Executor::fetch_many(self.connection()?, sqlx::raw_sql(AssertSqlSafe(text)));
        Ok(outcome_of_last(results).await)
    }

    /// Runs the waiting statements and these, without arguments, in one round trip.
    pub(crate) async fn run_text(&mut self, sql: &str) -> Result<PgOutcome> {
        let text = std::mem::take(&mut self.waiting) + sql;
        let results = Executor::fetch_many(self.connection()?, sqlx::raw_sql(AssertSqlSafe(text)));
        Ok(outcome_of_last(results).await?)
    }

    /// Lets a statement wait for the next round trip of the transaction. Outside of a transaction, runs it at once.
    pub(crate) async fn run_later(&mut self, statement: Statement<'_>) -> Result<()> {
        if !self.is_transaction {
            return self.run(statement).await.map(drop);
        }
        self.waiting.push_str(&with_literals(statement.sql(), statement.args())?);
        self.waiting.push(';');
        Ok(())
    }

    /// Runs the waiting statements and commits, in one round trip. If the error is not one of the database, the outcome is
    /// unknown.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        let text = std::mem::take(&mut self.waiting) + "COMMIT";
        let Some(connection) = self.connection.as_deref_mut() else { return Ok(()) };
        sqlx::raw_sql(AssertSqlSafe(text)).execute(connection).await?;
        self.is_transaction = false;
        Ok(())
    }
}

impl Drop for PgSession {
    /// Rolls an open transaction back in a background task, because the caller should not wait for the round trip.
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take().filter(|_| self.is_transaction) else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            if sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await.is_err() {
                connection.close_on_drop();
            }
        });
    }
}

/// Returns the outcome of the last statement. Fails with the first error.
async fn outcome_of_last(
    mut results: BoxStream<'_, sqlx::Result<Either<PgQueryResult, PgRow>>>,
) -> sqlx::Result<PgOutcome> {
    let mut last = PgOutcome::default();
    let mut rows = Vec::new();
    while let Some(result) = results.try_next().await? {
        match result {
            Either::Right(row) => rows.push(row),
            Either::Left(done) => last = PgOutcome { rows: std::mem::take(&mut rows), affected: done.rows_affected() },
        }
    }
    Ok(last)
}
