//! Recovers a damaged SQLite database: copies every readable row into a new database, whose backup can be restored.

use std::path::{Path, PathBuf};

use rusqlite::types::Value as SqlValue;
use serde_json::Value;
use tokio::sync::mpsc;

use super::tables::{BackupColumn, TABLES};
use super::{RestoreTarget, insert};
use crate::migrations::VERSION;
use crate::sqlite::{SalvageSource, SalvageTable, SalvagedRow, TableDamage};
use crate::{Durability, Error, Location, Result, Store};

/// The number of rows in one transaction.
const BATCH_SIZE: usize = 500;
/// The number of batches that are read ahead.
const QUEUE_CAPACITY: usize = 4;

/// The outcome of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredTable {
    pub name: &'static str,
    pub saved: u64,
    /// Rows that could not be read, or that violate a constraint.
    pub lost: u64,
    /// True if a part of the table could not be read. Further rows may be lost.
    pub is_damaged: bool,
}

/// A message of the reading thread.
enum SalvageMessage {
    /// Rows of the table with this index.
    Rows(usize, Vec<SalvagedRow>),
    /// The end of the table with this index.
    TableEnd(usize, TableDamage),
}

/// Copies every readable row of the SQLite file `damaged` into a new database `recovered`, and returns it with the outcome
/// of each table. Does not change the damaged file and its WAL. No other process may use it. Fails if the file is no SQLite
/// database, if its schema cannot be read or is of another version, or if the new database cannot be written.
pub async fn recover(damaged: &Path, recovered: PathBuf) -> Result<(Store, Vec<RecoveredTable>)> {
    let store = Store::open(&Location::Sqlite(recovered), Durability::Normal).await?;
    let (sender, mut messages) = mpsc::channel(QUEUE_CAPACITY);
    let damaged = damaged.to_owned();
    let reading = tokio::task::spawn_blocking(move || read_all(&damaged, &sender));
    let mut outcome = Vec::new();
    let mut saved = 0;
    let mut rejected = 0;
    while let Some(message) = messages.recv().await {
        match message {
            SalvageMessage::Rows(index, rows) => {
                let count = rows.len() as u64;
                let inserted = insert_rows(&store, index, rows).await?;
                saved += inserted;
                rejected += count - inserted;
            }
            SalvageMessage::TableEnd(index, damage) => {
                let name = TABLES[index].name;
                let lost = damage.unreadable + std::mem::take(&mut rejected);
                let saved = std::mem::take(&mut saved);
                outcome.push(RecoveredTable { name, saved, lost, is_damaged: damage.is_damaged });
            }
        }
    }
    reading.await.map_err(|error| Error::Unavailable(error.to_string()))??;
    Ok((store, outcome))
}

/// Reads all tables and sends their rows. Fails like [`recover`].
fn read_all(damaged: &Path, sender: &mpsc::Sender<SalvageMessage>) -> Result<()> {
    let source = SalvageSource::open(damaged)?;
    if let Some(found) = source.schema_version().filter(|found| *found != VERSION) {
        return Err(match found > VERSION {
            true => Error::NewerSchema { found, known: VERSION },
            false => Error::Backup(format!(
                "the database has schema {found}; this version of adjutant recovers schema {VERSION} only"
            )),
        });
    }
    // The executions, whose events are in a table without row ids.
    let mut executions = Vec::new();
    let send =
        |message| sender.blocking_send(message).map_err(|_| Error::Unavailable("the copy has failed".to_owned()));
    for (index, table) in TABLES.iter().enumerate() {
        let columns = table.columns.iter().map(BackupColumn::name).collect();
        let salvage = SalvageTable { name: table.name, columns, key: table.key };
        let mut batch = Vec::new();
        let parents = if table.name == "executions" { Vec::new() } else { executions.clone() };
        let damage = source.read_table(&salvage, &parents, |row| {
            if let (true, Some(SqlValue::Text(id))) = (table.name == "executions", row.first()) {
                executions.push(id.clone());
            }
            batch.push(row);
            match batch.len() == BATCH_SIZE {
                true => send(SalvageMessage::Rows(index, std::mem::take(&mut batch))),
                false => Ok(()),
            }
        })?;
        send(SalvageMessage::Rows(index, batch))?;
        send(SalvageMessage::TableEnd(index, damage))?;
    }
    Ok(())
}

/// Inserts rows into the new database and returns their number. Skips rows that violate a constraint, and rows with a value
/// of another type than [`TABLES`] names.
async fn insert_rows(store: &Store, index: usize, rows: Vec<SalvagedRow>) -> Result<u64> {
    let inserted = store.transaction(async move |tx| -> Result<u64> {
        let table = &TABLES[index];
        let target = RestoreTarget { table, columns: table.columns.iter().collect() };
        let mut inserted = 0;
        for row in rows {
            let values: Vec<_> = row.into_iter().map(to_json).collect();
            if !target.accepts(&values) {
                continue;
            }
            match insert(tx, &target, &values).await {
                Ok(()) => inserted += 1,
                Err(Error::Backup(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(inserted)
    });
    inserted.await
}

/// Returns a value as in a backup. Other types become a boolean, which no column accepts.
fn to_json(value: SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => number.into(),
        SqlValue::Text(text) => text.into(),
        SqlValue::Real(_) | SqlValue::Blob(_) => Value::Bool(false),
    }
}
