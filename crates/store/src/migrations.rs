//! Brings the schema up to date when the store is opened, from one text for both databases, in one transaction.
//!
//! Two nodes may start at once: whoever comes second waits and finds nothing to do. A schema newer than this program, or
//! one whose steps were edited, is refused untouched.

use std::borrow::Cow;

use model::text::hex;
use sha2::{Digest, Sha256};

use crate::conn::{Conn, args};
use crate::{Error, Result};

/// Every step of the schema. A step that was released is never edited; the next one is added.
const STEPS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001_tasks_and_conversations.sql")),
    (2, include_str!("migrations/0002_reminders.sql")),
    (3, include_str!("migrations/0003_turns.sql")),
    (4, include_str!("migrations/0004_executions.sql")),
    (5, include_str!("migrations/0005_notifications.sql")),
    (6, include_str!("migrations/0006_schedules.sql")),
    (7, include_str!("migrations/0007_a2a.sql")),
];

/// The version of the schema that this program writes.
pub(crate) const VERSION: i64 = STEPS[STEPS.len() - 1].0;

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

/// In a transaction that the caller commits.
pub(crate) async fn postgres(conn: &mut Conn) -> Result<()> {
    // Any number will do that nothing else in the database uses.
    conn.batch("SELECT pg_advisory_xact_lock(7717000001)").await?;
    apply(conn).await
}

async fn apply(conn: &mut Conn) -> Result<()> {
    let table = "CREATE TABLE IF NOT EXISTS schema_steps (version BIGINT NOT NULL PRIMARY KEY, digest TEXT NOT NULL)";
    conn.batch(table).await?;
    let rows = conn.all(("SELECT version, digest FROM schema_steps ORDER BY version", [])).await?;
    let applied = rows.iter().map(|row| Ok((row.int(0)?, row.text(1)?))).collect::<Result<Vec<_>>>()?;
    if let Some((found, _)) = applied.last().filter(|(found, _)| *found > VERSION) {
        return Err(Error::NewerSchema { found: *found, known: VERSION });
    }
    for (version, sql) in STEPS {
        let digest = hex(&Sha256::digest(sql));
        match applied.iter().find(|(known, _)| known == version) {
            Some((_, known)) if *known == digest => {}
            Some(_) => return Err(Error::ChangedMigration { version: *version }),
            None => {
                // SQLite keeps a table and its key apart otherwise, and writes both.
                let sql = if conn.is_sqlite() { Cow::Borrowed(*sql) } else { sql.replace(" WITHOUT ROWID", "").into() };
                conn.batch(sql).await?;
                let insert = "INSERT INTO schema_steps (version, digest) VALUES ($1, $2)";
                conn.run((insert, args![*version, digest])).await?;
            }
        }
    }
    Ok(())
}
