//! Creates a new PostgreSQL database for each test, on the server that `scripts/check` starts.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

/// The environment variable with the server: `postgres://user@host:port`, without a database.
const SERVER_VARIABLE: &str = "ADJUTANT_TEST_POSTGRES";

/// Returns a name that is unique across all tests and processes.
fn unique_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed), RandomState::new().hash_one(0))
}

/// Creates an empty database and returns its URL. The database is removed together with the server.
///
/// Fails if no server is configured or it cannot be reached, so that tests are never skipped silently.
pub async fn create_database() -> Result<String, String> {
    let server = std::env::var(SERVER_VARIABLE).map_err(|_| {
        format!("{SERVER_VARIABLE} is not set: run the tests with scripts/check, or eval \"$(scripts/postgres)\"")
    })?;
    let name = unique_name();
    let create = async {
        let options: PgConnectOptions = format!("{server}/postgres").parse()?;
        let mut admin = options.disable_statement_logging().connect().await?;
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await?;
        admin.close().await
    };
    create.await.map_err(|error: sqlx::Error| format!("cannot create a test database on {server}: {error}"))?;
    Ok(format!("{server}/{name}"))
}
