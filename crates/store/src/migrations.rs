//! Migrates the schema in one transaction when the store is opened. Both databases use the same SQL text, except for
//! parts between `-- only: sqlite` or `-- only: postgres` and `-- end`.
//!
//! Several nodes may start at the same time. One of them migrates, and the rest wait. A schema that is newer than this
//! program, or that was created by edited migrations, is rejected and stays unchanged.

use model::text::hex;
use sha2::{Digest, Sha256};

use crate::conn::{Conn, args};
use crate::{Error, Result, StorageFault};

/// All migrations. A released migration is never edited; a new one is added instead.
const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001_tasks_and_conversations.sql")),
    (2, include_str!("migrations/0002_reminders.sql")),
    (3, include_str!("migrations/0003_turns.sql")),
    (4, include_str!("migrations/0004_executions.sql")),
    (5, include_str!("migrations/0005_notifications.sql")),
    (6, include_str!("migrations/0006_schedules.sql")),
    (7, include_str!("migrations/0007_a2a.sql")),
    (8, include_str!("migrations/0008_audit_and_stop.sql")),
    (9, include_str!("migrations/0009_quotas.sql")),
    (10, include_str!("migrations/0010_task_index.sql")),
    (11, include_str!("migrations/0011_repeating_reminders.sql")),
    (12, include_str!("migrations/0012_permissions.sql")),
    (13, include_str!("migrations/0013_task_order.sql")),
];

/// The version of the schema of this program.
pub(crate) const VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Returns the version of the schema of the database. Fails with [`StorageFault::WrongSchema`] if it has no schema.
pub(crate) async fn applied_version(conn: &mut Conn) -> Result<i64> {
    let row = conn.first(("SELECT max(version) FROM schema_steps", [])).await;
    let version = row.map(|row| row.and_then(|row| row.int(0).ok()));
    match version {
        Ok(Some(version)) => Ok(version),
        Ok(None) | Err(Error::Database(_)) => Err(Error::Storage(StorageFault::WrongSchema)),
        Err(error) => Err(error),
    }
}

/// Migrates a SQLite database in a new transaction that excludes other writers. On failure, rolls the transaction back
/// and fails like [`apply`].
pub(crate) async fn sqlite(conn: &mut Conn) -> Result<()> {
    conn.batch("BEGIN IMMEDIATE").await?;
    match apply(conn).await {
        Ok(()) => conn.batch("COMMIT").await,
        Err(error) => {
            conn.batch("ROLLBACK").await?;
            Err(error)
        }
    }
}

/// Migrates a PostgreSQL database in the transaction of the caller. Fails if the schema is newer or was edited.
pub(crate) async fn postgres(conn: &mut Conn) -> Result<()> {
    // An arbitrary number that no other lock of this database uses.
    conn.batch("SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(7717000001)").await?;
    apply(conn).await
}

/// Applies the missing migrations in order and records their digests, in the transaction of the caller. Creates the
/// table of digests if it does not exist. Fails with [`Error::NewerSchema`] if the schema is newer, and with [`Error::ChangedMigration`] if the text of an applied
/// migration has changed since.
async fn apply(conn: &mut Conn) -> Result<()> {
    let table = "CREATE TABLE IF NOT EXISTS schema_steps (version BIGINT NOT NULL PRIMARY KEY, digest TEXT NOT NULL)";
    conn.batch(table).await?;
    let rows = conn.all(("SELECT version, digest FROM schema_steps ORDER BY version", [])).await?;
    let applied = rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?))).collect::<Result<Vec<_>>>()?;
    if let Some((found, _)) = applied.last().filter(|(found, _)| *found > VERSION) {
        return Err(Error::NewerSchema { found: *found, known: VERSION });
    }
    for (version, sql) in MIGRATIONS {
        let digest = hex(&Sha256::digest(sql));
        match applied.iter().find(|(known, _)| known == version) {
            Some((_, known)) if *known == digest => {}
            Some(_) => return Err(Error::ChangedMigration { version: *version }),
            None => {
                conn.batch(for_database(sql, conn.is_sqlite())).await?;
                let insert = "INSERT INTO schema_steps (version, digest) VALUES ($1, $2)";
                conn.run((insert, args![*version, digest])).await?;
            }
        }
    }
    Ok(())
}

/// Returns the SQL of a migration for one database, without the parts for the other one. For PostgreSQL, removes
/// `WITHOUT ROWID`: only SQLite can store the rows in the index of the primary key.
fn for_database(sql: &str, is_sqlite: bool) -> String {
    let excluded = if is_sqlite { "-- only: postgres" } else { "-- only: sqlite" };
    let mut is_excluded = false;
    let mut kept = String::with_capacity(sql.len());
    for line in sql.lines() {
        is_excluded = (is_excluded && line != "-- end") || line == excluded;
        if !is_excluded {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if is_sqlite { kept } else { kept.replace(" WITHOUT ROWID", "") }
}

#[cfg(test)]
mod tests {
    use super::for_database;

    // TASK-5
    #[test]
    fn parts_for_the_other_database_are_removed() {
        let sql = "a WITHOUT ROWID;\n-- only: sqlite\nb;\n-- end\n-- only: postgres\nc;\n-- end\nd;\n";
        let sqlite = for_database(sql, true);
        let postgres = for_database(sql, false);
        assert!(sqlite.contains("a WITHOUT ROWID;") && sqlite.contains("b;") && sqlite.contains("d;"), "{sqlite}");
        assert!(!sqlite.contains("c;"), "{sqlite}");
        assert!(postgres.contains("a;") && postgres.contains("c;") && postgres.contains("d;"), "{postgres}");
        assert!(!postgres.contains("b;"), "{postgres}");
    }
}
