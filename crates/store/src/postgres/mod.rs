//! The PostgreSQL backend: a connection pool, and one transaction for each write.

mod transaction;

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::UserId;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};

pub(crate) use self::transaction::PgTransaction;
use self::transaction::begin_statements;
use crate::conn::{Conn, DriverConnection};
use crate::fault::StorageHealth;
use crate::hints::HintSender;
use crate::owner_limits::{OwnerLimits, OwnerSlot};
use crate::quotas::QuotaLedger;
use crate::transaction::Effects;
use crate::{Commits, Error, Job, Result, Transaction, migrations};

const MAX_CONNECTIONS: u32 = 16;
/// The longest wait for a connection before the database counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait for the turn of an owner, and for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// The writes of one user that hold a connection: one runs, and the next one waits for its lock in the database. So it
/// starts without a delay when the first one is committed.
const WRITES_PER_OWNER: usize = 2;

/// A connection pool to PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pool: PgPool,
    /// One connection for health checks, which is never used for requests.
    health_pool: PgPool,
    options: PgConnectOptions,
    hints: HintSender,
    /// The number of writes in progress.
    pending: Arc<AtomicUsize>,
    writes: OwnerLimits,
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
        let pool_options = PgPoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT);
        let pool = pool_options.clone().max_connections(MAX_CONNECTIONS).connect_with(options.clone()).await?;
        let health_pool = pool_options.max_connections(1).connect_lazy_with(options.clone());
        let transaction = PgTransaction::begin(&pool, &begin_statements(None)).await?;
        let mut conn = Conn::new(DriverConnection::PostgresTx(transaction), quotas.clone(), health.clone());
        migrations::postgres(&mut conn).await?;
        if let DriverConnection::PostgresTx(transaction) = conn.driver {
            transaction.commit().await?;
        }
        let hints = HintSender::start(&pool);
        let writes = OwnerLimits::new(WRITES_PER_OWNER);
        Ok(Self { pool, health_pool, options, hints, pending: Arc::default(), writes, quotas, health })
    }

    /// Runs the job in a separate task, so that dropping the returned future does not interrupt the transaction. After
    /// the commit, queues its hints, increments `commits`, runs its effects and returns the value of the job. A job for
    /// an owner first waits for its turn, without a connection.
    ///
    /// Fails with the error of the job or of the commit, after the effects of the rollback. If the connection is lost during
    /// the commit, no effects run. Fails with [`Error::Unavailable`] if the job panics, its turn does not come in time or
    /// no connection is free in time.
    pub(crate) async fn transaction<T, E, F>(&self, owner: Option<UserId>, job: F, commits: Commits) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> Job<'t, T, E> + 'static,
    {
        let postgres = self.clone();
        let pending = PendingWrite::new(self.pending.clone());
        let result = tokio::spawn(async move {
            let _pending = pending;
            let _slot = postgres.wait_for_turn(owner).await?;
            let transaction = PgTransaction::begin(&postgres.pool, &begin_statements(owner)).await?;
            let mut conn = postgres.conn(DriverConnection::PostgresTx(transaction));
            conn.set_owner(owner);
            let mut tx = Transaction::new(conn);
            let value = job(&mut tx).await?;
            let (conn, effects) = tx.into_parts();
            let effects = postgres.commit(conn, effects).await?;
            commits.send_modify(|count| *count += 1);
            effects.committed();
            Ok(value)
        })
        .await;
        result.map_err(|error| Error::Unavailable(error.to_string()))?
    }

    /// Waits until the owner may use another connection for a write. Fails if that takes too long.
    async fn wait_for_turn(&self, owner: Option<UserId>) -> Result<Option<OwnerSlot>> {
        let Some(owner) = owner else { return Ok(None) };
        match tokio::time::timeout(LOCK_TIMEOUT, self.writes.acquire(owner)).await {
            Ok(slot) => Ok(Some(slot)),
            Err(_) => Err(Error::Unavailable("too many writes of this user are waiting".to_owned())),
        }
    }

    /// Commits, queues the hints and returns the effects of the commit. On failure runs the effects of the rollback, unless
    /// the outcome is unknown. Fails without a commit if a statement has failed and the job has ignored that, because
    /// PostgreSQL would roll back.
    async fn commit(&self, conn: Conn, effects: Effects) -> Result<Effects> {
        if conn.has_failed() {
            return Err(Error::Unavailable("a statement of the transaction has failed".to_owned()));
        }
        let Conn { driver, hints, .. } = conn;
        if let DriverConnection::PostgresTx(transaction) = driver
            && let Err(error) = transaction.commit().await
        {
            match error {
                // The database has answered, so it has rolled the transaction back.
                sqlx::Error::Database(_) => drop(effects),
                _ => effects.outcome_unknown(),
            }
            return Err(error.into());
        }
        self.hints.send(hints);
        Ok(effects)
    }

    /// Returns a connection for reads. Fails if none becomes available in time.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        Ok(self.conn(DriverConnection::PostgresReader(self.pool.acquire().await?)))
    }

    /// Returns the connection for health checks. It accepts writes, too. Fails if it is not available in time.
    pub(crate) async fn health_reader(&self) -> Result<Conn> {
        Ok(self.conn(DriverConnection::PostgresReader(self.health_pool.acquire().await?)))
    }

    /// Returns a connection in a read-only transaction that sees no later writes.
    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Ok(self.conn(DriverConnection::PostgresTx(PgTransaction::begin(&self.pool, begin).await?)))
    }

    fn conn(&self, driver: DriverConnection) -> Conn {
        Conn::new(driver, self.quotas.clone(), self.health.clone())
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Returns the number of connections with which one user may read at once: a quarter of all.
    pub(crate) fn reads_per_owner(&self) -> usize {
        MAX_CONNECTIONS as usize / 4
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
