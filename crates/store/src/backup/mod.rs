//! The whole database as one stream of lines, and back. The format is the same for both databases, so a backup of one
//! can be restored into the other: that is also how an installation moves from SQLite to PostgreSQL.
//!
//! A header names the format and the schema, a line a table its columns, then a line a row; the last line counts the
//! rows and carries a digest, so that half a backup is never taken for a whole one. Restoring is one transaction.

mod tables;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::text::hex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::conn::{Arg, Conn, Row, Statement};
use crate::migrations::VERSION;
use crate::{Error, Result, Snapshot, Store, due, executions, reminders, sessions};

use self::tables::Column::{self, Int, Text};
use self::tables::{TABLES, Table};

pub use self::tables::tables;

const FORMAT: u64 = 1;
/// The first schema that knows who was told what.
const WITH_NOTIFICATIONS: i64 = 5;

/// A backup being written: the database as it was when it began, chunk by chunk.
pub struct Backup {
    conn: Snapshot,
    next: Next,
    rows: u64,
    digest: Sha256,
}

enum Next {
    Header(Timestamp),
    /// Rows of the table behind this key; `None` before its first.
    Rows(usize, Option<Row>),
    Trailer,
    End,
}

impl Backup {
    pub async fn begin(store: &Store, now: Timestamp) -> Result<Self> {
        Ok(Self { conn: store.snapshot().await?, next: Next::Header(now), rows: 0, digest: Sha256::new() })
    }

    /// The next lines, `None` after the last.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let chunk = match std::mem::replace(&mut self.next, Next::End) {
            Next::Header(now) => {
                self.next = Next::Rows(0, None);
                line(&json!({"adjutant_backup": FORMAT, "schema": VERSION, "created_at": now}))
            }
            Next::Rows(index, after) => self.rows_of(index, after).await?,
            Next::Trailer => {
                let digest = hex(&self.digest.clone().finalize());
                return Ok(Some(line(&json!({"rows": self.rows, "sha256": digest}))));
            }
            Next::End => return Ok(None),
        };
        self.digest.update(&chunk);
        Ok(Some(chunk))
    }

    async fn rows_of(&mut self, index: usize, after: Option<Row>) -> Result<String> {
        let Some(table) = TABLES.get(index) else {
            self.next = Next::Trailer;
            return Ok(String::new());
        };
        let mut chunk = String::new();
        if after.is_none() {
            let columns: Vec<_> = table.columns.iter().map(Column::name).collect();
            chunk.push_str(&line(&json!({"table": table.name, "columns": columns})));
        }
        let mut rows = self.conn.all(page_of(table, after.as_ref())?).await?;
        for row in &rows {
            let values = (0..).zip(table.columns).map(|(at, column)| match column {
                Text(_) => row.maybe_text(at).map(Value::from),
                Int(_) => row.maybe_int(at).map(Value::from),
            });
            chunk.push_str(&line(&Value::Array(values.collect::<Result<_>>()?)));
        }
        self.rows += rows.len() as u64;
        let full = rows.len() as i64 == table.at_once;
        self.next = if full { Next::Rows(index, rows.pop()) } else { Next::Rows(index + 1, None) };
        Ok(chunk)
    }
}

fn page_of(table: &Table, after: Option<&Row>) -> Result<Statement<'static>> {
    let key = &table.columns[..table.key];
    let mut select = Statement::default();
    select.push("SELECT ");
    names(&mut select, table.columns);
    select.push(" FROM ").push(table.name);
    if let Some(row) = after {
        select.push(" WHERE (");
        names(&mut select, key);
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
    names(&mut select, key);
    select.push(" LIMIT ").bind(table.at_once);
    Ok(select)
}

fn names(statement: &mut Statement<'_>, columns: &[Column]) {
    for (at, column) in columns.iter().enumerate() {
        statement.push(if at > 0 { ", " } else { "" }).push(column.name());
    }
}

/// Replaces everything in the database with the backup in `file`; says how many rows it had. A file that is not a whole
/// backup changes nothing.
pub async fn restore(store: &Store, file: PathBuf) -> Result<u64> {
    let Verified { rows, schema } = verify(&file).await?;
    store
        .transaction(async move |tx| {
            if !tx.is_sqlite() {
                // Rows that other connections are writing would survive beside the backup.
                for table in TABLES {
                    let mut lock = Statement::default();
                    lock.push("LOCK TABLE ").push(table.name).push(" IN EXCLUSIVE MODE");
                    tx.run(lock).await?;
                }
            }
            let claims = executions::last_claim(tx).await?;
            for table in TABLES.iter().filter(|table| !table.kept) {
                let mut delete = Statement::default();
                delete.push("DELETE FROM ").push(table.name);
                tx.run(delete).await?;
            }
            let mut lines = Lines::open(&file).await?;
            let mut into = None;
            let mut left = rows;
            while left > 0 {
                let Some(value) = lines.next().await? else { return Err(damaged(rows - left)) };
                match (&value, &into) {
                    (Value::Array(values), Some(target)) => {
                        insert(tx, target, values).await?;
                        left -= 1;
                    }
                    _ if value["table"].is_string() => into = Some(Target::of(&value)?),
                    _ => {}
                }
            }
            executions::disown(tx, claims).await?;
            sessions::disown(tx).await?;
            reminders::complete(tx).await?;
            if schema < WITH_NOTIFICATIONS {
                due::forget(tx).await?;
            }
            Ok(rows)
        })
        .await
}

/// A backup that can be restored.
struct Verified {
    rows: u64,
    schema: i64,
}

/// Reads the file to its end: it is a backup this program can restore, and all of it is there.
async fn verify(file: &Path) -> Result<Verified> {
    let mut lines = Lines::open(file).await?;
    let header = lines.next().await?.unwrap_or_default();
    if header["adjutant_backup"] != json!(FORMAT) {
        return Err(Error::Backup("this is not a backup that adjutant wrote".to_owned()));
    }
    let schema = match header["schema"].as_i64() {
        Some(schema) if (1..=VERSION).contains(&schema) => schema,
        Some(found) if found > VERSION => return Err(Error::NewerSchema { found, known: VERSION }),
        _ => return Err(Error::Backup("the backup does not say of which schema it is".to_owned())),
    };
    let mut rows = 0;
    let mut into = None::<Target>;
    loop {
        let digest = hex(&lines.digest.clone().finalize());
        match (lines.next().await?, &into) {
            (Some(Value::Array(values)), Some(target)) if target.fits(&values) => rows += 1,
            (Some(line), _) if line["table"].is_string() => into = Some(Target::of(&line)?),
            (Some(line), _) if line["rows"] == json!(rows) && line["sha256"] == json!(digest) => {
                return Ok(Verified { rows, schema });
            }
            _ => return Err(damaged(rows)),
        }
    }
}

fn damaged(rows: u64) -> Error {
    Error::Backup(format!("the backup is damaged or cut off behind row {rows}"))
}

/// Where the rows that follow belong.
struct Target {
    table: &'static Table,
    columns: Vec<&'static Column>,
}

impl Target {
    /// A row that has a value of the right kind, or none, for each column.
    fn fits(&self, values: &[Value]) -> bool {
        let fits = |(column, value): (&&Column, &Value)| match column {
            Text(_) => value.is_string() || value.is_null(),
            Int(_) => value.is_i64() || value.is_null(),
        };
        values.len() == self.columns.len() && self.columns.iter().zip(values).all(fits)
    }

    /// The table and columns that a line names.
    fn of(line: &Value) -> Result<Self> {
        let unknown =
            || Error::Backup(format!("the backup has a table or column that this adjutant does not know: {line}"));
        let table = TABLES.iter().find(|table| line["table"] == json!(table.name)).ok_or_else(unknown)?;
        let wanted = line["columns"].as_array().ok_or_else(unknown)?;
        let columns = wanted.iter().map(|name| table.columns.iter().find(|column| *name == json!(column.name())));
        Ok(Self { table, columns: columns.collect::<Option<_>>().ok_or_else(unknown)? })
    }
}

async fn insert(conn: &mut Conn, target: &Target, values: &[Value]) -> Result<()> {
    let Target { table, columns } = target;
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
    insert.push(if table.kept { ") ON CONFLICT DO NOTHING" } else { ")" });
    let inserted = conn.run(insert).await;
    // The digest was right, so somebody has written this backup by hand, against the rules of the tables.
    inserted.map(drop).map_err(|error| match error {
        Error::Database(error) => Error::Backup(format!("a row of {} cannot be restored: {error}", table.name)),
        other => other,
    })
}

/// The lines of a file as JSON, with the digest of what was read so far.
struct Lines {
    path: PathBuf,
    reader: BufReader<tokio::fs::File>,
    digest: Sha256,
}

impl Lines {
    async fn open(path: &Path) -> Result<Self> {
        let file = tokio::fs::File::open(path).await;
        let file = file.map_err(|source| Error::File { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), reader: BufReader::new(file), digest: Sha256::new() })
    }

    async fn next(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).await;
        if read.map_err(|source| Error::File { path: self.path.clone(), source })? == 0 {
            return Ok(None);
        }
        self.digest.update(&line);
        let value = serde_json::from_str(&line);
        value.map(Some).map_err(|_| Error::Backup("the backup has a line that is not JSON".to_owned()))
    }
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}
