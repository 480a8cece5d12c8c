//! The settings of connections to PostgreSQL.

use std::str::FromStr;
use std::time::Duration;

use model::UserId;
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use crate::Result;

/// The timeout of transactions that do nothing. A client that hangs must not hold its locks forever.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The kind of pooler between this program and PostgreSQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing, or something that keeps one server connection for each of our connections.
    #[default]
    None,
    /// A pooler that gives each transaction another server connection. So a connection has no state: no settings, no
    /// prepared statements, no LISTEN.
    Transaction,
}

/// The database and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresSettings {
    /// A `postgres://` URL.
    pub url: String,
    pub pooler: Pooler,
    /// The URL of the server itself, for LISTEN. `None` uses `url`; behind a pooler, nodes then poll instead.
    pub direct_url: Option<String>,
    /// The largest number of connections of this node, without the ones for health checks and LISTEN.
    pub max_connections: u32,
    /// The longest wait for a free connection.
    pub acquire_timeout: Duration,
    /// The longest wait of a write for its turn, and of a statement for a lock.
    pub lock_timeout: Duration,
    /// The longest time of a statement. `None` does not limit it.
    pub statement_timeout: Option<Duration>,
}

impl PostgresSettings {
    /// Returns the default settings for this database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            pooler: Pooler::None,
            direct_url: None,
            max_connections: 16,
            acquire_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(20),
            statement_timeout: Some(Duration::from_secs(60)),
        }
    }

    /// Returns the options of the connections for requests. Fails if the URL is invalid.
    pub(super) fn connect_options(&self) -> Result<PgConnectOptions> {
        let options = named_options(&self.url)?;
        Ok(match self.pooler {
            Pooler::None => options.options(self.session_settings()),
            // A pooler rejects settings that it does not know.
            Pooler::Transaction => options.extra_float_digits(None),
        })
    }

    /// Returns the options of the connection that listens, or `None` if there is no direct connection. Fails if the URL is
    /// invalid.
    pub(super) fn listen_options(&self) -> Result<Option<PgConnectOptions>> {
        match (&self.direct_url, self.pooler) {
            (Some(url), _) => named_options(url).map(Some),
            (None, Pooler::None) => named_options(&self.url).map(Some),
            (None, Pooler::Transaction) => Ok(None),
        }
    }

    /// Returns the statements that begin a transaction for this owner. The lock of the owner is part of them, so that it
    /// needs no round trip of its own. The isolation level does not depend on the defaults of the server.
    pub(super) fn begin_statements(&self, owner: Option<UserId>) -> String {
        let mut sql = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
        if self.pooler == Pooler::Transaction {
            for (name, value) in self.session_settings() {
                sql.push_str(&format!("; SET LOCAL {name} = {value}"));
            }
        }
        if let Some(owner) = owner {
            // A user id consists of hexadecimal digits and dashes.
            sql.push_str(&format!("; SELECT pg_advisory_xact_lock(hashtextextended('{owner}', 0))"));
        }
        sql
    }

    /// Returns the names and values of the settings of each connection, in milliseconds. 0 is no limit.
    pub(super) fn session_settings(&self) -> [(&'static str, u128); 3] {
        [
            ("idle_in_transaction_session_timeout", IDLE_TIMEOUT.as_millis()),
            ("lock_timeout", self.lock_timeout.as_millis()),
            ("statement_timeout", self.statement_timeout.unwrap_or_default().as_millis()),
        ]
    }
}

fn named_options(url: &str) -> Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?.application_name("adjutant").disable_statement_logging())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_pooler_every_transaction_sets_its_timeouts() {
        // OPS-5
        let direct = PostgresSettings::new("postgres://db/x");
        assert_eq!(direct.begin_statements(None), "BEGIN ISOLATION LEVEL READ COMMITTED");
        assert!(direct.listen_options().unwrap().is_some());
        let pooled = PostgresSettings { pooler: Pooler::Transaction, statement_timeout: None, ..direct };
        let begin = pooled.begin_statements(Some(UserId::LOCAL));
        assert!(
            begin.contains("; SET LOCAL lock_timeout = 20000; SET LOCAL statement_timeout = 0; SELECT pg_adv"),
            "{begin}"
        );
        assert!(pooled.listen_options().unwrap().is_none());
        let direct_url = Some("postgres://server/x".to_owned());
        assert!(PostgresSettings { direct_url, ..pooled }.listen_options().unwrap().is_some());
    }
}
