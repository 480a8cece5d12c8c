//! Reads the rows of a damaged SQLite file. Never changes the file or its WAL.
//!
//! A table is read from both ends up to the damage. The rows between are found by the row ids in the indexes, and read one
//! by one. A table without row ids is read by each known value of its first key column instead.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Row};

use crate::Result;

/// A row as it is stored.
pub(crate) type SalvagedRow = Vec<Value>;

/// A table to read.
#[derive(Clone, Debug)]
pub(crate) struct SalvageTable {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<&'static str>,
    /// The number of leading columns that form the primary key.
    pub(crate) key: usize,
}

/// The damage of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableDamage {
    /// The number of rows that an index names and that cannot be read.
    pub(crate) unreadable: u64,
    /// True if a part of the table could not be read. Further rows may be lost.
    pub(crate) is_damaged: bool,
}

/// A damaged database file.
pub(crate) struct SalvageSource(Connection);

impl SalvageSource {
    /// Opens the file for reading. The WAL is read too, and stays. Fails if the file is no SQLite database.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let connection = super::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Fails if the first page is unreadable: without the schema there are no tables.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(Self(connection))
    }

    /// Returns the version of the schema, or `None` if it cannot be read.
    pub(crate) fn schema_version(&self) -> Option<i64> {
        self.0.query_row("SELECT max(version) FROM schema_steps", [], |row| row.get(0)).ok()
    }

    /// Passes all readable rows of a table to `sink`, each once, in no order. `parents` are values of the first key
    /// column, for a table without row ids. Fails if `sink` fails.
    pub(crate) fn read_table(
        &self,
        table: &SalvageTable,
        parents: &[String],
        mut sink: impl FnMut(SalvagedRow) -> Result<()>,
    ) -> Result<TableDamage> {
        let has_row_ids = self.0.prepare(&format!("SELECT rowid FROM {}", table.name)).is_ok();
        let mut known = KnownRows::default();
        let mut damage = TableDamage::default();
        let order = if has_row_ids { "rowid".to_owned() } else { table.columns[..table.key].join(", ") };
        let forward = self.query(table, has_row_ids, &format!("ORDER BY {order}"), None);
        if forward.run(&mut known, &mut sink)? {
            return Ok(damage);
        }
        damage.is_damaged = true;
        let backward = order.split(", ").map(|column| format!("{column} DESC")).collect::<Vec<_>>().join(", ");
        self.query(table, has_row_ids, &format!("ORDER BY {backward}"), None).run(&mut known, &mut sink)?;
        if has_row_ids {
            for id in self.indexed_row_ids(table) {
                let is_read = known.ids.contains(&id)
                    || self
                        .query(table, true, "WHERE rowid = ?1", Some(Value::Integer(id)))
                        .run(&mut known, &mut sink)?;
                damage.unreadable += u64::from(!is_read || !known.ids.contains(&id));
            }
            return Ok(damage);
        }
        let first = table.columns[0];
        for parent in parents {
            for direction in ["", " DESC"] {
                let rest = format!("WHERE {first} = ?1 ORDER BY {}{direction}", table.columns[table.key - 1]);
                let parent = Some(Value::Text(parent.clone()));
                if self.query(table, false, &rest, parent).run(&mut known, &mut sink)? {
                    break;
                }
            }
        }
        Ok(damage)
    }

    fn query<'a>(
        &'a self,
        table: &'a SalvageTable,
        has_row_ids: bool,
        rest: &str,
        value: Option<Value>,
    ) -> SalvageQuery<'a> {
        let id = if has_row_ids { "rowid, " } else { "" };
        let sql = format!("SELECT {id}{} FROM {} {rest}", quoted(&table.columns), table.name);
        SalvageQuery { connection: &self.0, table, has_row_ids, sql, value }
    }

    /// Returns the row ids in all complete indexes of a table, as far as they are readable from either end.
    fn indexed_row_ids(&self, table: &SalvageTable) -> BTreeSet<i64> {
        let mut ids = BTreeSet::new();
        let key = &table.columns[..table.key];
        let ascending = quoted(key);
        let descending = key.iter().map(|column| format!("\"{column}\" DESC")).collect::<Vec<_>>().join(", ");
        self.add_row_ids(&format!("SELECT rowid FROM {} ORDER BY {ascending}", table.name), &mut ids);
        self.add_row_ids(&format!("SELECT rowid FROM {} ORDER BY {descending}", table.name), &mut ids);
        let sql = "SELECT name FROM pragma_index_list(?1) WHERE origin = 'c' AND partial = 0";
        let named = self.0.prepare(sql).and_then(|mut select| {
            let names = select.query_map([table.name], |row| row.get::<_, String>(0))?;
            Ok(names.filter_map(std::result::Result::ok).collect::<Vec<_>>())
        });
        for index in named.unwrap_or_default() {
            self.add_row_ids(&format!("SELECT rowid FROM {} INDEXED BY {index}", table.name), &mut ids);
        }
        ids
    }

    /// Adds the row ids of a query until it fails.
    fn add_row_ids(&self, sql: &str, ids: &mut BTreeSet<i64>) {
        let Ok(mut select) = self.0.prepare(sql) else { return };
        let Ok(mut rows) = select.query([]) else { return };
        while let Ok(Some(row)) = rows.next() {
            ids.extend(row.get::<_, i64>(0));
        }
    }
}

/// The rows that were read already.
#[derive(Default)]
struct KnownRows {
    ids: HashSet<i64>,
    /// The keys in a table without row ids.
    keys: HashSet<String>,
}

impl KnownRows {
    /// Adds a row. Returns false if it is known.
    fn add(&mut self, id: Option<i64>, key: &[Value]) -> bool {
        match id {
            Some(id) => self.ids.insert(id),
            None => self.keys.insert(format!("{key:?}")),
        }
    }
}

/// A query for rows of a table.
struct SalvageQuery<'a> {
    connection: &'a Connection,
    table: &'a SalvageTable,
    has_row_ids: bool,
    sql: String,
    value: Option<Value>,
}

impl SalvageQuery<'_> {
    /// Passes the rows that are not known to `sink`, until the query fails or ends. Returns true if it did not fail. Fails if `sink` fails.
    fn run(&self, known: &mut KnownRows, sink: &mut impl FnMut(SalvagedRow) -> Result<()>) -> Result<bool> {
        let Ok(mut select) = self.connection.prepare(&self.sql) else { return Ok(false) };
        let Ok(mut rows) = select.query(rusqlite::params_from_iter(self.value.iter())) else { return Ok(false) };
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
            };
            let Ok((id, values)) = self.read(row) else { return Ok(false) };
            if known.add(id, &values[..self.table.key]) {
                sink(values)?;
            }
        }
    }

    fn read(&self, row: &Row<'_>) -> rusqlite::Result<(Option<i64>, SalvagedRow)> {
        let first = usize::from(self.has_row_ids);
        let id = if self.has_row_ids { Some(row.get(0)?) } else { None };
        let value = |at: usize| {
            Ok(match row.get_ref(at + first)? {
                // Bytes that are no text any more become U+FFFD.
                ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
                other => Value::try_from(other)?,
            })
        };
        Ok((id, (0..self.table.columns.len()).map(value).collect::<rusqlite::Result<_>>()?))
    }
}

/// Returns the names as a list for a statement.
fn quoted(columns: &[&str]) -> String {
    columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
}
