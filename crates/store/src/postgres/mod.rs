//! The PostgreSQL backend: a connection pool, and one transaction for each write.

mod literals;
mod session;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::UserId;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

pub(crate) use self::session::PgSession;
use self::session::{LastFailure, PgConnections};
pub use self::settings::{Pooler, PostgresSettings};
use crate::conn::{Arg, Conn, DriverConnection, args};
use crate::fault::StorageHealth;
use crate::hints::HintSender;
use crate::owner_limits::{OwnerLimits, OwnerSlot};
use crate::quotas::QuotaLedger;
use crate::transaction::Effects;
use crate::{Commits, Error, Job, Result, Transaction, migrations};

/// The idle time after which a connection is tested before it is used.
const TEST_AFTER: Duration = Duration::from_secs(1);
/// The writes of one user that hold a connection: one runs, and the next one waits for its lock in the database. So it
/// starts without a delay when the first one is committed.
const WRITES_PER_OWNER: usize = 2;

/// A connection pool to PostgreSQL.
#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    connections: PgConnections,
    /// One connection for health checks, which is never used for requests.
    health_connections: PgConnections,
    settings: Arc<PostgresSettings>,
    /// `None` if no connection can listen.
    listen_options: Option<PgConnectOptions>,
    hints: HintSender,
    /// The number of writes in progress.
    pending: Arc<AtomicUsize>,
    writes: OwnerLimits,
    quotas: QuotaLedger,
    health: StorageHealth,
}

impl Postgres {
    /// Connects, migrates the schema and starts the background task that sends hints. Fails if a URL is invalid, the server
    /// cannot be reached, the schema is newer, or an applied migration was edited. Fails with [`Error::Pooler`] if the
    /// settings do not fit the pooler.
    pub(crate) async fn open(settings: &PostgresSettings, quotas: QuotaLedger, health: StorageHealth) -> Result<Self> {
        let options = settings.connect_options()?;
        let listen_options = settings.listen_options()?;
        // A pool retries and then reports only a timeout. A single connection reports the reason.
        options.connect().await?.close().await?;
        let last_failure = LastFailure::default();
        let pool = pool_options(settings, settings.max_connections, last_failure.clone());
        let pool = pool.connect_with(options.clone()).await?;
        let health_pool = pool_options(settings, 1, last_failure.clone()).connect_lazy_with(options);
        let hints = HintSender::start(&pool);
        let connections = PgConnections { pool, pooler: settings.pooler, last_failure };
        let postgres = Self {
            health_connections: PgConnections { pool: health_pool, ..connections.clone() },
            connections,
            hints,
            settings: Arc::new(settings.clone()),
            listen_options,
            pending: Arc::default(),
            writes: OwnerLimits::new(WRITES_PER_OWNER.min(settings.max_connections as usize / 4)),
            quotas,
            health,
        };
        if postgres.listen_options.is_none() {
            tracing::warn!(event = "hints_not_heard", error = "database.direct_url is not set");
        }
        let mut conn = postgres.begin(None).await?;
        postgres.check_settings(&mut conn).await?;
        migrations::postgres(&mut conn).await?;
        postgres.commit(conn, Effects::default()).await?;
        Ok(postgres)
    }

    /// Fails with [`Error::Pooler`] if a connection does not have the settings that were sent when it was opened.
    async fn check_settings(&self, conn: &mut Conn) -> Result<()> {
        for (name, value) in self.settings.session_settings() {
            let found = conn.first(("SELECT setting FROM pg_settings WHERE name = $1", args![name])).await?;
            if found.map(|row| row.text(0)).transpose()? != Some(value.to_string()) {
                return Err(Error::Pooler);
            }
        }
        Ok(())
    }

    /// Begins a transaction for this owner.
    async fn begin(&self, owner: Option<UserId>) -> Result<Conn> {
        let begin = self.settings.begin_statements(owner);
        let mut conn = self.conn(PgSession::begin(&self.connections, &begin).await?);
        conn.set_owner(owner);
        Ok(conn)
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
            let mut tx = Transaction::new(postgres.begin(owner).await?);
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
        match tokio::time::timeout(self.settings.lock_timeout, self.writes.acquire(owner)).await {
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
        if let DriverConnection::Postgres(session) = driver
            && let Err(error) = session.commit().await
        {
            match error {
                // The database has answered, so it has rolled the transaction back.
                sqlx::Error::Database(_) => drop(effects),
                _ => effects.outcome_unknown(),
            }
            let error = Error::from(error);
            if matches!(error, Error::Storage(_)) {
                self.health.fail(&error);
            }
            return Err(error);
        }
        self.hints.send(hints);
        Ok(effects)
    }

    /// Returns a connection for reads. Fails if none becomes available in time.
    pub(crate) async fn reader(&self) -> Result<Conn> {
        Ok(self.conn(PgSession::reader(&self.connections).await?))
    }

    /// Returns the connection for health checks. It accepts writes, too. Fails if it is not available in time.
    pub(crate) async fn health_reader(&self) -> Result<Conn> {
        Ok(self.conn(PgSession::reader(&self.health_connections).await?))
    }

    /// Returns a connection in a read-only transaction that sees no later writes.
    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Ok(self.conn(PgSession::begin(&self.connections, begin).await?))
    }

    fn conn(&self, session: PgSession) -> Conn {
        Conn::new(DriverConnection::Postgres(session), self.quotas.clone(), self.health.clone())
    }

    /// Returns the options of a connection that listens for hints, or `None` behind a pooler without a direct URL.
    pub(crate) fn listen_options(&self) -> Option<&PgConnectOptions> {
        self.listen_options.as_ref()
    }

    /// Returns the number of connections with which one user may read at once: a quarter of all.
    pub(crate) fn reads_per_owner(&self) -> usize {
        self.settings.max_connections as usize / 4
    }

    /// Returns the number of writes in progress.
    pub(crate) fn pending_writes(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }
}

/// Returns the options of a pool. A connection is tested before use if it was idle for long, or already when another one was
/// found to be lost. The others are not tested, because that costs a round trip.
fn pool_options(settings: &PostgresSettings, max_connections: u32, last_failure: LastFailure) -> PgPoolOptions {
    let options = PgPoolOptions::new().max_connections(max_connections).acquire_timeout(settings.acquire_timeout);
    options.test_before_acquire(false).before_acquire(move |connection, state| {
        let is_suspect = state.idle_for >= TEST_AFTER || last_failure.is_within(state.idle_for);
        Box::pin(async move {
            if is_suspect {
                connection.ping().await?;
            }
            Ok(true)
        })
    })
}

/// Sends a statement as text through the pool, without a transaction. Fails if the database fails.
pub(crate) async fn send_text(pool: &PgPool, sql: &str, args: &[Arg<'_>]) -> Result<()> {
    let text = literals::with_literals(sql, args)?;
    sqlx::raw_sql(AssertSqlSafe(text)).execute(pool).await?;
    Ok(())
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
