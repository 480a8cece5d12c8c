//! Brings the schema up to date when the store is opened, from one text for both databases.
//!
//! Two nodes may start at once: PostgreSQL serialises them by an advisory lock, SQLite by the lock of the data
//! directory. A schema newer than this program is refused untouched.

use std::path::Path;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection, SqlSafeStr};

use crate::{Error, Result};

/// Every step of the schema. A step that was released is never edited; the next one is added.
const STEPS: &[(i64, &str, &str)] =
    &[(1, "tasks and conversations", include_str!("migrations/0001_tasks_and_conversations.sql"))];

/// The version of the schema that this program writes.
pub(crate) const VERSION: i64 = STEPS[STEPS.len() - 1].0;

pub(crate) async fn sqlite(path: &Path) -> Result<()> {
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut conn = options.journal_mode(SqliteJournalMode::Wal).disable_statement_logging().connect().await?;
    migrator().run_direct(None, &mut conn, false).await.map_err(refused)?;
    conn.close().await?;
    Ok(())
}

pub(crate) async fn postgres(pool: &PgPool) -> Result<()> {
    migrator().run(pool).await.map_err(refused)
}

fn migrator() -> Migrator {
    let steps = STEPS.iter().map(|&(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(steps.collect())
}

fn refused(error: MigrateError) -> Error {
    match error {
        MigrateError::VersionMissing(found) => Error::NewerSchema { found, known: VERSION },
        MigrateError::VersionMismatch(version) => Error::ChangedMigration { version },
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => Error::Corrupt(other.to_string()),
    }
}
