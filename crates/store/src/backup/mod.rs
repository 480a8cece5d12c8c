//! Backup and restore of the whole database as a stream of JSON lines. The format is the same for both databases, so
//! that a backup of SQLite can be restored into PostgreSQL and vice versa.
//!
//! The first line names the format and the schema. For each table, one line names the columns, and each further line is
//! a row. The last line contains the number of rows and a digest, so that an incomplete backup is detected. A restore
//! is one transaction.

mod recover;
mod tables;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::audit::AuditRecord;
use model::text::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::conn::{Arg, Conn, DbRow, Statement};
use crate::migrations::VERSION;
use crate::{Error, Result, Store, StoreSnapshot, audit, due, executions, reminders, sessions};

use self::tables::BackupColumn::{self, Int, Text};
use self::tables::{BackupTable, TABLES};

pub use self::recover::{RecoveredTable, recover};
pub use self::tables::table_columns;

const FORMAT: u64 = 1;
/// The first schema that records notifications.
const FIRST_SCHEMA_WITH_NOTIFICATIONS: i64 = 5;
/// The first schema that stores the next notification of a due task.
const FIRST_SCHEMA_WITH_DUE_REPETITION: i64 = 11;

/// A backup in progress. It contains the database as of its start.
pub struct Backup {
    conn: StoreSnapshot,
    phase: BackupPhase,
    rows: u64,
    digest: Sha256,
}

/// The part of a backup that is written next.
enum BackupPhase {
    Header(Timestamp),
    /// The rows of the table with this index, after this row. `None` at the start of the table.
    Rows(usize, Option<DbRow>),
    Trailer,
    End,
}

impl Backup {
    /// Starts a backup. Fails with [`Error::Unavailable`] if too many snapshots are open.
    pub async fn begin(store: &Store, now: Timestamp) -> Result<Self> {
        Ok(Self { conn: store.snapshot().await?, phase: BackupPhase::Header(now), rows: 0, digest: Sha256::new() })
    }

    /// Returns the next lines, or `None` at the end: the header, then batches of rows, then the trailer. The text may
    /// be empty. After a failure it returns `None`, and the backup is incomplete.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let chunk = match std::mem::replace(&mut self.phase, BackupPhase::End) {
            BackupPhase::Header(now) => {
                self.phase = BackupPhase::Rows(0, None);
                line(&json!({"adjutant_backup": FORMAT, "schema": VERSION, "created_at": now}))
            }
            BackupPhase::Rows(index, after) => self.next_rows(index, after).await?,
            BackupPhase::Trailer => {
                let digest = hex(&self.digest.clone().finalize());
                return Ok(Some(line(&json!({"rows": self.rows, "sha256": digest}))));
            }
            BackupPhase::End => return Ok(None),
        };
        self.digest.update(&chunk);
        Ok(Some(chunk))
    }

    /// Returns up to one batch of rows of the table `index`, after the row `after`, and counts them. The line with the
    /// columns comes before the first row. Sets the next phase: the same table after a full batch, otherwise the next
    /// one. After the last table, returns an empty text and continues with the trailer. Fails if a column has another
    /// type than [`TABLES`] names.
    async fn next_rows(&mut self, index: usize, after: Option<DbRow>) -> Result<String> {
        let Some(table) = TABLES.get(index) else {
            self.phase = BackupPhase::Trailer;
            return Ok(String::new());
        };
        let mut chunk = String::new();
        if after.is_none() {
            let columns: Vec<_> = table.columns.iter().map(BackupColumn::name).collect();
            chunk.push_str(&line(&json!({"table": table.name, "columns": columns})));
        }
        let mut rows = self.conn.all(select_rows(table, after.as_ref())?).await?;
        for row in &rows {
            let values = (0..).zip(table.columns).map(|(at, column)| match column {
                Text(_) => row.maybe_text(at).map(Value::from),
                Int(_) => row.maybe_int(at).map(Value::from),
            });
            chunk.push_str(&line(&Value::Array(values.collect::<Result<_>>()?)));
        }
        self.rows += rows.len() as u64;
        let is_full = rows.len() as i64 == table.batch_size;
        self.phase = if is_full { BackupPhase::Rows(index, rows.pop()) } else { BackupPhase::Rows(index + 1, None) };
        Ok(chunk)
    }
}

/// Returns a query for one batch of rows of a table in the order of its key. The batch begins after the row `after`, or
/// at the start. Fails with [`Error::Corrupt`] if a key column of that row is NULL or has another type.
fn select_rows(table: &BackupTable, after: Option<&DbRow>) -> Result<Statement<'static>> {
    let key = &table.columns[..table.key];
    let mut select = Statement::default();
    select.push("SELECT ");
    push_names(&mut select, table.columns);
    select.push(" FROM ").push(table.name);
    if let Some(row) = after {
        select.push(" WHERE (");
        push_names(&mut select, key);
        select.push(") > (");
        for (at, column) in key.iter().enumerate() {
            if at > 0 {
                select.push(", ");
            }
            match column {
                Text(_) => select.bind(row.text(at)?),
                Int(_) => select.bind(row.int(at)?),
            };
        }
        select.push(")");
    }
    select.push(" ORDER BY ");
    push_names(&mut select, key);
    select.push(" LIMIT ").bind(table.batch_size);
    Ok(select)
}

/// Adds the names of the columns.
fn push_names(statement: &mut Statement<'_>, columns: &[BackupColumn]) {
    for (at, column) in columns.iter().enumerate() {
        statement.push(if at > 0 { ", " } else { "" }).push(column.name());
    }
}

/// Replaces the content of the database with the backup in `file`, in one transaction. Revoked tokens that the database
/// has stay revoked. Its audit log and a stop of everything stay too; records of the backup are added to the log.
/// `record` is added to the log, with the number of rows as its value after the change. All slots are released. Executions and sessions that were running in the backup become abandoned,
/// and current claims become invalid. If the backup is older than notifications, past due times cause none. Returns the
/// number of rows in the backup. Fails without a change: with [`Error::File`] if the file cannot be read, with
/// [`Error::NewerSchema`], and with [`Error::Backup`] if the backup is invalid or incomplete or a row violates a
/// constraint.
pub async fn restore(store: &Store, file: PathBuf, record: Option<AuditRecord>) -> Result<u64> {
    let VerifiedBackup { rows, schema } = verify(&file).await?;
    store
        .transaction(async move |tx| {
            if !tx.is_sqlite() {
                // Without the locks, rows of concurrent writers would remain beside the backup.
                for table in TABLES {
                    let mut lock = Statement::default();
                    lock.push("LOCK TABLE ").push(table.name).push(" IN EXCLUSIVE MODE");
                    tx.run(lock).await?;
                }
            }
            let max_token = executions::max_lease_token(tx).await?;
            for table in TABLES.iter().filter(|table| !table.keep_existing) {
                let mut delete = Statement::default();
                delete.push("DELETE FROM ").push(table.name);
                tx.run(delete).await?;
            }
            let mut lines = BackupLines::open(&file).await?;
            let mut target = None;
            let mut remaining = rows;
            while remaining > 0 {
                let Some(value) = lines.next().await? else { return Err(damaged(rows - remaining)) };
                match (&value, &target) {
                    (Value::Array(values), Some(target)) => {
                        insert(tx, target, values).await?;
                        remaining -= 1;
                    }
                    _ if value["table"].is_string() => target = Some(RestoreTarget::from_line(&value)?),
                    _ => {}
                }
            }
            executions::invalidate_claims(tx, max_token).await?;
            sessions::invalidate_claims(tx).await?;
            reminders::fill_missing_times(tx).await?;
            if schema < FIRST_SCHEMA_WITH_NOTIFICATIONS {
                due::mark_past_notified(tx).await?;
            }
            if schema < FIRST_SCHEMA_WITH_DUE_REPETITION {
                due::fill_missing_times(tx).await?;
            }
            if let Some(record) = record {
                audit::record(tx, &record.with_after(&json!({"rows": rows}))).await?;
            }
            tx.quotas().forget_all();
            Ok(rows)
        })
        .await
}

/// A complete and valid backup.
struct VerifiedBackup {
    rows: u64,
    schema: i64,
}

/// Reads the whole file and checks that it is a complete backup of a known schema. Returns its number of rows and its
/// schema. Ignores text after the trailer. Fails with [`Error::File`] if the file cannot be read, and with
/// [`Error::NewerSchema`] if its schema is newer. Fails with [`Error::Backup`] if the header, a line, a table, a column
/// or a value is invalid. Fails likewise if the trailer is missing, or its number of rows or digest differs.
async fn verify(file: &Path) -> Result<VerifiedBackup> {
    let mut lines = BackupLines::open(file).await?;
    let header = lines.next().await?.unwrap_or_default();
    if header["adjutant_backup"] != json!(FORMAT) {
        return Err(Error::Backup("this is not a backup of adjutant".to_owned()));
    }
    let schema = match header["schema"].as_i64() {
        Some(schema) if (1..=VERSION).contains(&schema) => schema,
        Some(found) if found > VERSION => return Err(Error::NewerSchema { found, known: VERSION }),
        _ => return Err(Error::Backup("the backup does not name its schema".to_owned())),
    };
    let mut rows = 0;
    let mut target = None::<RestoreTarget>;
    loop {
        let digest = hex(&lines.digest.clone().finalize());
        match (lines.next().await?, &target) {
            (Some(Value::Array(values)), Some(target)) if target.accepts(&values) => rows += 1,
            (Some(line), _) if line["table"].is_string() => target = Some(RestoreTarget::from_line(&line)?),
            (Some(line), _) if line["rows"] == json!(rows) && line["sha256"] == json!(digest) => {
                return Ok(VerifiedBackup { rows, schema });
            }
            _ => return Err(damaged(rows)),
        }
    }
}

/// Returns the error for a backup that is invalid after this number of rows.
fn damaged(rows: u64) -> Error {
    Error::Backup(format!("the backup is damaged or incomplete after row {rows}"))
}

/// The table and the columns of the following rows.
struct RestoreTarget {
    table: &'static BackupTable,
    columns: Vec<&'static BackupColumn>,
}

impl RestoreTarget {
    /// Returns true if the row has a value of the right type, or NULL, for each column.
    fn accepts(&self, values: &[Value]) -> bool {
        let matches = |(column, value): (&&BackupColumn, &Value)| match column {
            Text(_) => value.is_string() || value.is_null(),
            Int(_) => value.is_i64() || value.is_null(),
        };
        values.len() == self.columns.len() && self.columns.iter().zip(values).all(matches)
    }

    /// Reads the table and the columns from a line. A line may name fewer columns than the table has, in any order.
    /// Fails with [`Error::Backup`] if the table or a column is unknown, or if the columns are missing.
    fn from_line(line: &Value) -> Result<Self> {
        let unknown = || {
            Error::Backup(format!(
                "the backup has a table or column that this version of adjutant does not know: {line}"
            ))
        };
        let table = TABLES.iter().find(|table| line["table"] == json!(table.name)).ok_or_else(unknown)?;
        let names = line["columns"].as_array().ok_or_else(unknown)?;
        let columns = names.iter().map(|name| table.columns.iter().find(|column| *name == json!(column.name())));
        Ok(Self { table, columns: columns.collect::<Option<_>>().ok_or_else(unknown)? })
    }
}

/// Inserts one row of a backup; `values` are in the order of the columns of `target`. Skips it if the table keeps
/// existing rows and has one with the same key. Fails with [`Error::Backup`] if the database rejects the row, and with
/// [`Error::Unavailable`] if it cannot be used.
async fn insert(conn: &mut Conn, target: &RestoreTarget, values: &[Value]) -> Result<()> {
    let RestoreTarget { table, columns } = target;
    let mut insert = Statement::default();
    insert.push("INSERT INTO ").push(table.name).push(" (");
    for (at, column) in columns.iter().enumerate() {
        insert.push(if at > 0 { ", " } else { "" }).push(column.name());
    }
    insert.push(") VALUES (");
    for (at, column) in columns.iter().enumerate() {
        insert.push(if at > 0 { ", " } else { "" });
        let value = values.get(at).unwrap_or(&Value::Null);
        insert.bind(match column {
            Text(_) => Arg::from(value.as_str()),
            Int(_) => Arg::from(value.as_i64()),
        });
    }
    insert.push(if table.keep_existing { ") ON CONFLICT DO NOTHING" } else { ")" });
    let inserted = conn.run(insert).await;
    // The digest is correct, so the backup was edited by hand and violates a constraint.
    inserted.map(drop).map_err(|error| match error {
        Error::Database(error) => Error::Backup(format!("a row of {} cannot be restored: {error}", table.name)),
        other => other,
    })
}

/// Reads the lines of a file as JSON and computes the digest of all lines read so far.
struct BackupLines {
    path: PathBuf,
    reader: BufReader<tokio::fs::File>,
    digest: Sha256,
}

impl BackupLines {
    /// Opens the file. Fails with [`Error::File`] if that is not possible.
    async fn open(path: &Path) -> Result<Self> {
        let file = tokio::fs::File::open(path).await;
        let file = file.map_err(|source| Error::File { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(file), digest: Sha256::new() })
    }

    /// Returns the next line as JSON, or `None` at the end of the file. Adds it to the digest, also if it is invalid.
    /// Fails with [`Error::Backup`] if it is not JSON, and with [`Error::File`] if the file cannot be read or is not
    /// UTF-8.
    async fn next(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).await;
        if read.map_err(|source| Error::File { path: self.path.clone(), source })? == 0 {
            return Ok(None);
        }
        self.digest.update(&line);
        let value = serde_json::from_str(&line);
        value.map(Some).map_err(|_| Error::Backup("the backup contains a line that is not JSON".to_owned()))
    }
}

/// Returns a JSON value as one line.
fn line(value: &Value) -> String {
    format!("{value}\n")
}
