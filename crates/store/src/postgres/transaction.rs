//! One transaction on a connection of the pool. It is rolled back if it is dropped.

use model::UserId;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Postgres};
use tokio::runtime::Handle;

use crate::error::is_repeatable;
use crate::{Error, Result};

/// How often the begin of a transaction is tried. Nothing has run before, so a repetition is safe.
const BEGIN_ATTEMPTS: usize = 3;

/// An open transaction.
#[derive(Debug)]
pub(crate) struct PgTransaction {
    /// `None` after the end.
    connection: Option<PoolConnection<Postgres>>,
}

impl PgTransaction {
    /// Takes a connection and runs `begin` on it, which opens the transaction. Tries again on another connection if this one
    /// was lost, or on a conflict with other transactions. Fails if no connection is free in time.
    pub(crate) async fn begin(pool: &PgPool, begin: &str) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let mut transaction = Self { connection: Some(pool.acquire().await?) };
            let begun = sqlx::raw_sql(AssertSqlSafe(begin)).execute(transaction.connection()?).await;
            match begun {
                Ok(_) => return Ok(transaction),
                Err(error) if attempt < BEGIN_ATTEMPTS && is_repeatable(&error) => attempt += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the connection. Fails if the transaction has ended.
    pub(crate) fn connection(&mut self) -> Result<&mut PgConnection> {
        let connection = self.connection.as_deref_mut();
        connection.ok_or_else(|| Error::Unavailable("the transaction has ended".to_owned()))
    }

    /// Commits. If the error is not one of the database, the outcome is unknown.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        if let Some(mut connection) = self.connection.take()
            && let Err(error) = sqlx::raw_sql("COMMIT").execute(&mut *connection).await
        {
            connection.close_on_drop();
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for PgTransaction {
    /// Rolls back in a background task, because the caller should not wait for the round trip.
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            if sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await.is_err() {
                connection.close_on_drop();
            }
        });
    }
}

/// Returns the statements that begin a transaction for this owner. The lock of the owner is part of them, so that it needs
/// no round trip of its own. The isolation level does not depend on the defaults of the server.
pub(crate) fn begin_statements(owner: Option<UserId>) -> String {
    let mut sql = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
    if let Some(owner) = owner {
        // A user id consists of hexadecimal digits and dashes.
        sql.push_str(&format!("; SELECT pg_advisory_xact_lock(hashtextextended('{owner}', 0))"));
    }
    sql
}
