//! PostgreSQL: a pool of connections, a transaction a write.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection};

use crate::conn::{Conn, Inner};
use crate::hints::Sender;
use crate::{Commits, Error, Job, Result, Transaction, migrations};

const CONNECTIONS: u32 = 16;
/// How long to wait for a connection before the database counts as away.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Postgres {
    pool: PgPool,
    options: PgConnectOptions,
    hints: Sender,
    waiting: Arc<AtomicUsize>,
}

impl Postgres {
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let options = PgConnectOptions::from_str(url)?
            .application_name("adjutant")
            // A client that dies in the middle must not hold its locks for ever.
            .options([("idle_in_transaction_session_timeout", "60s"), ("lock_timeout", "20s")])
            .disable_statement_logging();
        // A pool would try again for a while and then only say that time is up; the first connection says why.
        options.connect().await?.close().await?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .connect_with(options.clone())
            .await?;
        let mut conn = Conn::new(Inner::PostgresTx(pool.begin().await?));
        migrations::postgres(&mut conn).await?;
        if let Inner::PostgresTx(transaction) = conn.0 {
            transaction.commit().await?;
        }
        let hints = Sender::start(&pool);
        Ok(Self { pool, options, hints, waiting: Arc::default() })
    }

    /// Runs the job in a task of its own: a caller that goes away must not cut a transaction in the middle.
    pub(crate) async fn transaction<T, E, F>(&self, job: F, commits: Commits) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> Job<'t, T, E> + 'static,
    {
        let pool = self.pool.clone();
        let hints = self.hints.clone();
        let waiting = Waiting::new(self.waiting.clone());
        let result = tokio::spawn(async move {
            let _waiting = waiting;
            let transaction = pool.begin().await.map_err(Error::from)?;
            let mut tx = Transaction::new(Conn::new(Inner::PostgresTx(transaction)));
            let value = job(&mut tx).await?;
            let (Conn(inner, told), effects) = tx.into_parts();
            if let Inner::PostgresTx(transaction) = inner
                && let Err(error) = transaction.commit().await
            {
                match error {
                    // The database has answered: it has rolled the transaction back.
                    sqlx::Error::Database(_) => drop(effects),
                    _ => effects.outcome_unknown(),
                }
                return Err(Error::from(error).into());
            }
            hints.send(told);
            commits.send_modify(|count| *count += 1);
            effects.committed();
            Ok(value)
        })
        .await;
        result.map_err(|error| Error::Unavailable(error.to_string()))?
    }

    pub(crate) async fn reader(&self) -> Result<Conn> {
        Ok(Conn::new(Inner::PostgresReader(self.pool.acquire().await?)))
    }

    pub(crate) async fn snapshot(&self) -> Result<Conn> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        Ok(Conn::new(Inner::PostgresTx(self.pool.begin_with(begin).await?)))
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Counts one write until it is dropped, however it ends.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
