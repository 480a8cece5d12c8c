//! A fresh PostgreSQL database a test, on the server that `scripts/check` starts.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

/// Where the server is: `postgres://user@host:port`, without a database.
const SERVER: &str = "ADJUTANT_TEST_POSTGRES";

/// A name that no other test takes, in this process or another.
fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("t{}_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed), RandomState::new().hash_one(0))
}

/// A database nobody else uses; it goes with the server. Fails, rather than skips, where there is no server.
pub async fn database() -> Result<String, String> {
    let server = std::env::var(SERVER).map_err(|_| {
        format!("{SERVER} is not set: run the tests with scripts/check, or eval \"$(scripts/postgres)\"")
    })?;
    let name = fresh_name();
    let create = async {
        let options: PgConnectOptions = format!("{server}/postgres").parse()?;
        let mut admin = options.disable_statement_logging().connect().await?;
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await?;
        admin.close().await
    };
    create.await.map_err(|error: sqlx::Error| format!("no test database on {server}: {error}"))?;
    Ok(format!("{server}/{name}"))
}
