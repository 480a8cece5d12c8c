//! The PostgreSQL backend: a connection pool, and one transaction for each write.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};

use crate::conn::{Conn, DriverConnection};
use crate::fault::StorageHealth;
use crate::hints::HintSender;
use crate::quotas::QuotaLedger;
use crate::{Commits, Error, Job, Result, Transaction, migrations};

const MAX_CONNECTIONS: u32 = 16;
/// The longest wait for a connection before the database counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection pool to PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pool: PgPool,
    options: PgConnectOptions,
    hints: HintSender,
    /// The number of writes in progress.
    pending: Arc<AtomicUsize>,
    quotas: QuotaLedger,
    health: StorageHealth,
}

impl Postgres {
    /// Connects, migrates the schema and starts the background task that sends hints. All connections abort
    /// transactions that are idle for 60 seconds, and statements that wait 20 seconds for a lock. Fails if the URL is
    /// invalid, the server cannot be reached, the schema is newer, or an applied migration was edited.
    pub(crate) async fn open(url: &str, quotas: QuotaLedger, health: StorageHealth) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("adjutant")
            // A client that hangs inside a transaction must not hold its locks forever.
            .options([("idle_in_transaction_session_timeout", "60s"), ("lock_timeout", "20s")])
            .disable_statement_logging();
        // A pool retries and then reports only a timeout. A single connection reports the reason.
        options.connect().await?.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_with(options.clone())
            .await?;
        let mut conn = Conn::new(DriverConnection::PostgresTx(pool.begin().await?), quotas.clone(), health.clone());
        migrations::postgres(&mut conn).await?;
        if let DriverConnection::PostgresTx(transaction) = conn.driver {
            transaction.commit().await?;
        }
        let hints = HintSender::start(&pool);
        Ok(Self { pool, options, hints, pending: Arc::default(), quotas, health })
    }

    /// Runs the job in a separate task, so that dropping the returned future does not interrupt the transaction. After
    /// the commit, queues its hints, increments `commits`, runs its effects and returns the value of the job. Fails
    /// with the error of the job or of the commit, after the effects of the rollback. If the connection is lost during
    /// the commit, no effects run. Fails with [`Error::Unavailable`] if the job panics or no connection is free in
    /// time.
    pub(crate) async fn transaction<T, E, F>(&self, job: F, commits: Commits) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> Job<'t, T, E> + 'static,
    {
        let pool = self.pool.clone();
        let hints = self.hints.clone();
        let quotas = self.quotas.clone();
        let pending = PendingWrite::new(self.pending.clone());
        let health = self.health.clone();
        let result = tokio::spawn(async move {
            let _pending = pending;
            let transaction = pool.begin().await.map_err(Error::from)?;
            let mut tx = Transaction::new(Conn::new(DriverConnection::PostgresTx(transaction), quotas, health));
            let value = job(&mut tx).await?;
            let (Conn { driver, hints: new_hints, .. }, effects) = tx.into_parts();
            if let DriverConnection::PostgresTx(transaction) = driver
                && let Err(error) = transaction.commit().await
            {
                match error {
                    // The database has answered, so it has rolled the transaction back.
                    sqlx::Error::Database(_) => drop(effects),
                    _ => effects.outcome_unknown(),
                }
                return Err(Error::from(error).into());
            }
            hints.send(new_hints);
            commits.send_modify(|count| *count += 1);
            effects.committed();
            Ok(value)
        })
        .await;
        result.map_err(|error| Error::Unavailable(error.to_string()))?
    }

    /// Returns a connection for reads. Fails if none becomes available in time.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        Ok(Conn::new(
            DriverConnection::PostgresReader(self.pool.acquire().await?),
            self.quotas.clone(),
            self.health.clone(),
        ))
    }

    /// Returns a connection in a read-only transaction that sees no later health.
    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Ok(Conn::new(
            DriverConnection::PostgresTx(self.pool.begin_with(begin).await?),
            self.quotas.clone(),
            self.health.clone(),
        ))
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Returns the number of writes in progress.
    pub(crate) fn pending_writes(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }
}

/// Counts one write until it is dropped.
struct PendingWrite(Arc<AtomicUsize>);

impl PendingWrite {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for PendingWrite {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
