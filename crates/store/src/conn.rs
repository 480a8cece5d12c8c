//! A connection to either database. It takes statements with `$1` parameters and returns rows. This is the only file
//! that handles the differences of the two drivers.
//!
//! SQLite runs on the calling thread. A point read takes microseconds, less than a switch to another thread.
//!
//! The futures of PostgreSQL are boxed, because they are large. Otherwise every future that reads or writes would contain
//! one for each statement, and every request and open stream would hold and move it, also with SQLite.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use model::UserId;
use model::clock::from_micros;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr};
use tokio::runtime::{Handle, RuntimeFlavor};
use uuid::Uuid;

use crate::fault::StorageHealth;
use crate::hints::{Hint, HintSet};
use crate::owner_limits::OwnerSlot;
use crate::postgres::PgSession;
use crate::quotas::QuotaLedger;
use crate::sqlite::PooledReader;
use crate::{Error, Result};

/// A connection inside a transaction, or a connection for reads.
#[derive(Debug)]
pub struct Conn {
    pub(crate) driver: DriverConnection,
    pub(crate) hints: HintSet,
    quotas: QuotaChecks,
    health: StorageHealth,
    /// The user whose data the transaction changes, and whose lock it holds.
    owner: Option<UserId>,
    has_failed: bool,
    /// The slot of the user who reads.
    _slot: Option<OwnerSlot>,
}

/// The quotas of users, and the counts of one transaction.
#[derive(Debug)]
pub(crate) struct QuotaChecks {
    ledger: QuotaLedger,
    counted: Vec<UserId>,
}

/// The connection of the database driver.
#[derive(Debug)]
pub(crate) enum DriverConnection {
    Sqlite(rusqlite::Connection),
    SqliteReader(PooledReader),
    Postgres(PgSession),
}

impl Conn {
    pub(crate) fn new(driver: DriverConnection, quotas: QuotaLedger, health: StorageHealth) -> Self {
        let quotas = QuotaChecks { ledger: quotas, counted: Vec::new() };
        Self { driver, hints: HintSet::default(), quotas, health, owner: None, has_failed: false, _slot: None }
    }

    /// Holds the slot until the connection is dropped.
    pub(crate) fn with_slot(self, slot: OwnerSlot) -> Self {
        Self { _slot: Some(slot), ..self }
    }

    /// Returns the user for whom the transaction was begun.
    pub(crate) fn owner(&self) -> Option<UserId> {
        self.owner
    }

    /// Sets the user for whom the transaction was begun.
    pub(crate) fn set_owner(&mut self, owner: Option<UserId>) {
        self.owner = owner;
    }

    /// Returns the quotas of users.
    pub(crate) fn quotas(&self) -> &QuotaLedger {
        &self.quotas.ledger
    }

    /// Returns the time of day of reminders for a day.
    pub fn reminder_time(&self) -> jiff::civil::Time {
        self.quotas.ledger.reminder_time()
    }

    /// Remembers that this transaction has counted rows of the owner.
    pub(crate) fn mark_counted(&mut self, owner: UserId) {
        self.quotas.counted.push(owner);
    }

    /// Removes and returns the owners whose rows this transaction has counted. After a rollback the counts are wrong.
    pub(crate) fn take_counted(&mut self) -> Vec<UserId> {
        std::mem::take(&mut self.quotas.counted)
    }

    /// Queues a hint that is sent to all nodes after the commit. Does nothing outside of a PostgreSQL transaction.
    pub(crate) fn add_hint(&mut self, hint: Hint) {
        if self.is_postgres_transaction() {
            self.hints.add(hint);
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.driver, DriverConnection::Sqlite(_) | DriverConnection::SqliteReader(_))
    }

    /// Returns true outside of transactions.
    pub(crate) fn is_reader(&self) -> bool {
        match &self.driver {
            DriverConnection::Sqlite(_) => false,
            DriverConnection::SqliteReader(_) => true,
            DriverConnection::Postgres(session) => !session.is_transaction(),
        }
    }

    pub(crate) fn is_postgres_transaction(&self) -> bool {
        matches!(&self.driver, DriverConnection::Postgres(session) if session.is_transaction())
    }

    /// Runs a statement and returns all its rows, in their order. On a multi-threaded runtime, a SQLite reader lets the
    /// other tasks of the thread continue on another thread. Other SQLite connections block the thread. Fails if the
    /// arguments do not match the statement.
    pub(crate) async fn all(&mut self, statement: impl Into<Statement<'_>>) -> Result<Vec<DbRow>> {
        let statement = statement.into();
        let rows = match &mut self.driver {
            DriverConnection::Sqlite(connection) => statement.all_on_sqlite(connection),
            DriverConnection::SqliteReader(reader) => {
                let connection = reader.connection()?;
                run_blocking(|| statement.all_on_sqlite(connection))
            }
            DriverConnection::Postgres(session) => {
                Box::pin(session.run(statement)).await.map(|done| rows_of_postgres(done.rows))
            }
        };
        self.note_fault(rows)
    }

    /// Like [`Conn::all`], for small results: a SQLite reader runs the query inline, which costs less than
    /// [`tokio::task::block_in_place`].
    pub(crate) async fn all_inline(&mut self, statement: impl Into<Statement<'_>>) -> Result<Vec<DbRow>> {
        match &mut self.driver {
            DriverConnection::SqliteReader(reader) => {
                let rows = statement.into().all_on_sqlite(reader.connection()?);
                self.note_fault(rows)
            }
            _ => self.all(statement).await,
        }
    }

    /// Runs a query and returns its first row, or `None` if it has no rows. SQLite runs it inline and does not compute
    /// further rows. Fails if the arguments do not match the statement.
    pub(crate) async fn first(&mut self, statement: impl Into<Statement<'_>>) -> Result<Option<DbRow>> {
        let statement = statement.into();
        let row = match &mut self.driver {
            DriverConnection::Sqlite(connection) => statement.first_on_sqlite(connection),
            DriverConnection::SqliteReader(reader) => statement.first_on_sqlite(reader.connection()?),
            DriverConnection::Postgres(session) => {
                Box::pin(session.run(statement)).await.map(|done| done.rows.into_iter().next().map(DbRow::Postgres))
            }
        };
        self.note_fault(row)
    }

    /// Runs a statement without a result, such as an UPDATE, and returns the number of affected rows. Fails if the
    /// arguments do not match the statement, and on SQLite if the statement returns rows.
    pub(crate) async fn run(&mut self, statement: impl Into<Statement<'_>>) -> Result<u64> {
        let statement = statement.into();
        let done = match &mut self.driver {
            DriverConnection::Sqlite(connection) => statement.run_on_sqlite(connection),
            DriverConnection::SqliteReader(reader) => statement.run_on_sqlite(reader.connection()?),
            DriverConnection::Postgres(session) => Box::pin(session.run(statement)).await.map(|done| done.affected),
        };
        self.note_fault(done)
    }

    /// Like [`Conn::run`], for a statement whose result is not needed. In a transaction of PostgreSQL it costs no round
    /// trip: it is sent together with the next statement or the commit, which fails if it fails.
    pub(crate) async fn run_later(&mut self, statement: impl Into<Statement<'_>>) -> Result<()> {
        match &mut self.driver {
            DriverConnection::Postgres(session) => {
                let done = Box::pin(session.run_later(statement.into())).await;
                self.note_fault(done)
            }
            _ => self.run(statement).await.map(drop),
        }
    }

    /// Runs several statements, separated by semicolons, without arguments. Rows are discarded. Stops at the first
    /// failure. Does not open a transaction.
    pub(crate) async fn batch(&mut self, sql: impl Into<Cow<'static, str>>) -> Result<()> {
        let sql = sql.into();
        let done = match &mut self.driver {
            DriverConnection::Sqlite(connection) => connection.execute_batch(&sql).map_err(Error::from),
            DriverConnection::SqliteReader(reader) => reader.connection()?.execute_batch(&sql).map_err(Error::from),
            DriverConnection::Postgres(session) => Box::pin(session.run_text(&sql)).await.map(drop),
        };
        self.note_fault(done)
    }

    /// Records that a statement has failed, and its storage fault for health checks. Its caller may return another error.
    fn note_fault<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.has_failed = true;
            if matches!(error, Error::Storage(_)) {
                self.health.fail(error);
            }
        }
        result
    }

    /// Returns true if a statement has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }
}

fn rows_of_postgres(rows: Vec<PgRow>) -> Vec<DbRow> {
    rows.into_iter().map(DbRow::Postgres).collect()
}

impl Conn {
    /// Returns the number of rows that the SQLite writer has changed since it was opened, or 0 for other connections.
    pub(crate) fn total_changes(&self) -> u64 {
        if let DriverConnection::Sqlite(connection) = &self.driver { connection.total_changes() } else { 0 }
    }

    /// Sets how long SQLite waits for a lock. Has no effect on PostgreSQL. Fails if SQLite rejects the value.
    pub(crate) fn set_busy_timeout(&mut self, timeout: Duration) -> Result<()> {
        match &mut self.driver {
            DriverConnection::Sqlite(connection) => Ok(connection.busy_timeout(timeout)?),
            _ => Ok(()),
        }
    }

    /// Runs transaction statements of SQLite, such as `BEGIN`. Each is prepared once, because they are frequent. Stops
    /// at the first failure. Does nothing on PostgreSQL.
    pub(crate) fn run_cached(&mut self, statements: &[&'static str]) -> Result<()> {
        let connection = match &mut self.driver {
            DriverConnection::Sqlite(connection) => connection,
            DriverConnection::SqliteReader(reader) => reader.connection()?,
            DriverConnection::Postgres(_) => return Ok(()),
        };
        for statement in statements {
            connection.prepare_cached(statement)?.raw_execute()?;
        }
        Ok(())
    }
}

/// Runs a query that may read many rows. On a multi-threaded runtime the other tasks of this thread move to another
/// one.
fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// A statement and its arguments. Its text consists of string literals of this crate only, so no value can become SQL.
#[derive(Debug, Default)]
pub(crate) struct Statement<'a> {
    sql: Cow<'static, str>,
    args: Vec<Arg<'a>>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'static str, args: impl Into<Vec<Arg<'a>>>) -> Self {
        Self { sql: Cow::Borrowed(sql), args: args.into() }
    }

    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    pub(crate) fn args(&self) -> &[Arg<'a>] {
        &self.args
    }

    /// Appends SQL text.
    pub(crate) fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.to_mut().push_str(sql);
        self
    }

    /// Appends the next `$n` and its value.
    pub(crate) fn bind(&mut self, arg: impl Into<Arg<'a>>) -> &mut Self {
        self.args.push(arg.into());
        let _ = write!(self.sql.to_mut(), "${}", self.args.len());
        self
    }

    /// Runs the statement on the calling thread and returns all rows. The prepared statement is cached. Fails like
    /// [`Statement::bind_to`], or if SQLite fails.
    fn all_on_sqlite(&self, connection: &rusqlite::Connection) -> Result<Vec<DbRow>> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        let columns = prepared.column_count();
        self.bind_to(&mut prepared)?;
        let mut rows = prepared.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(read_values(row, columns)?);
        }
        Ok(all)
    }

    /// Runs the statement until its first row. Returns `None` if it has no rows. The prepared statement is cached.
    fn first_on_sqlite(&self, connection: &rusqlite::Connection) -> Result<Option<DbRow>> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        let columns = prepared.column_count();
        self.bind_to(&mut prepared)?;
        let mut rows = prepared.raw_query();
        Ok(rows.next()?.map(|row| read_values(row, columns)).transpose()?)
    }

    fn run_on_sqlite(&self, connection: &rusqlite::Connection) -> Result<u64> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        self.bind_to(&mut prepared)?;
        Ok(prepared.raw_execute()? as u64)
    }

    /// Binds the arguments by number. SQLite treats `$2` as a name and numbers names in order of appearance, but `$2`
    /// has to mean the second argument, as in PostgreSQL. A statement without parameters ignores all arguments.
    /// Otherwise fails with [`Error::Database`] if the numbers of parameters and arguments differ, or if a parameter is
    /// not `$` and a valid number.
    fn bind_to(&self, prepared: &mut rusqlite::Statement<'_>) -> Result<()> {
        let count = prepared.parameter_count();
        for index in 1..=count {
            let number = prepared.parameter_name(index).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let arg = number.and_then(|number| self.args.get(number.checked_sub(1)?));
            let arg = arg.filter(|_| count == self.args.len());
            let arg =
                arg.ok_or_else(|| Error::Database(format!("the arguments do not match the statement: {}", self.sql)))?;
            prepared.raw_bind_parameter(index, arg)?;
        }
        Ok(())
    }

    /// Returns the statement as a query of sqlx, with the arguments bound in order.
    pub(crate) fn for_postgres<'q>(&self) -> sqlx::query::Query<'q, Postgres, <Postgres as sqlx::Database>::Arguments> {
        let query = sqlx::query(AssertSqlSafe(self.sql.clone()).into_sql_str());
        self.args.iter().fold(query, |query, arg| match arg {
            Arg::Text(text) => query.bind(text.as_deref()),
            Arg::Int(number) => query.bind(*number),
        })
    }
}

fn read_values(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<DbRow> {
    (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<_>>().map(DbRow::Sqlite)
}

impl<'a, const N: usize> From<(&'static str, [Arg<'a>; N])> for Statement<'a> {
    fn from((sql, args): (&'static str, [Arg<'a>; N])) -> Self {
        Self::new(sql, args)
    }
}

/// A value of one of the two column types, or NULL. PostgreSQL needs the type of a NULL.
#[derive(Debug)]
pub(crate) enum Arg<'a> {
    Text(Option<Cow<'a, str>>),
    Int(Option<i64>),
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Text(Some(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Int(Some(number)) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Text(None) | Self::Int(None) => ToSqlOutput::Owned(Value::Null),
        })
    }
}

/// `args![owner, id, now]` returns the arguments of a statement in order.
macro_rules! args {
    ($($value:expr),* $(,)?) => { [$($crate::conn::Arg::from($value)),*] };
}
pub(crate) use args;

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(Cow::Borrowed(text)))
    }
}

impl From<String> for Arg<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(Cow::Owned(text)))
    }
}

impl<'a> From<Option<&'a str>> for Arg<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl<'a> From<Cow<'a, str>> for Arg<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(Some(text))
    }
}

impl From<Option<String>> for Arg<'_> {
    fn from(text: Option<String>) -> Self {
        Self::Text(text.map(Cow::Owned))
    }
}

impl From<Uuid> for Arg<'_> {
    fn from(id: Uuid) -> Self {
        id.to_string().into()
    }
}

impl From<UserId> for Arg<'_> {
    fn from(id: UserId) -> Self {
        id.to_string().into()
    }
}

impl From<&model::conversation::ConversationId> for Arg<'_> {
    fn from(id: &model::conversation::ConversationId) -> Self {
        id.to_string().into()
    }
}

impl From<i64> for Arg<'_> {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Arg<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Timestamp> for Arg<'_> {
    fn from(time: Timestamp) -> Self {
        time.as_microsecond().into()
    }
}

impl From<Option<Timestamp>> for Arg<'_> {
    fn from(time: Option<Timestamp>) -> Self {
        time.map(Timestamp::as_microsecond).into()
    }
}

/// A row of a query result. If a column has another type, the readers fail with [`Error::Corrupt`] on SQLite and with
/// [`Error::Database`] on PostgreSQL. NULL is `None`; readers without `maybe` fail with [`Error::Corrupt`] then.
#[derive(Debug)]
pub(crate) enum DbRow {
    Sqlite(Vec<Value>),
    Postgres(PgRow),
}

impl DbRow {
    /// Returns a text column by its index, or `None` if it is NULL. If the column has another type or does not exist,
    /// fails with [`Error::Corrupt`] on SQLite and with [`Error::Database`] on PostgreSQL.
    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>> {
        match self {
            Self::Sqlite(row) => match row.get(column) {
                Some(Value::Text(text)) => Ok(Some(text.clone())),
                Some(Value::Null) => Ok(None),
                other => Err(Error::Corrupt(format!("column {column} is not text: {other:?}"))),
            },
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    /// Returns an integer column by its index, or `None` if it is NULL. If the column has another type or does not
    /// exist, fails with [`Error::Corrupt`] on SQLite and with [`Error::Database`] on PostgreSQL.
    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => match row.get(column) {
                Some(Value::Integer(number)) => Ok(Some(*number)),
                Some(Value::Null) => Ok(None),
                other => Err(Error::Corrupt(format!("column {column} is not a number: {other:?}"))),
            },
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<String> {
        self.maybe_text(column)?.ok_or_else(|| Error::Corrupt(format!("column {column} is NULL")))
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        self.maybe_int(column)?.ok_or_else(|| Error::Corrupt(format!("column {column} is NULL")))
    }

    /// Returns a time from microseconds. A value out of range becomes the nearest possible time.
    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        self.int(column).map(from_micros)
    }

    pub(crate) fn maybe_time(&self, column: usize) -> Result<Option<Timestamp>> {
        Ok(self.maybe_int(column)?.map(from_micros))
    }

    /// Returns a text column that `parse` has converted, such as an id or JSON. Fails with [`Error::Corrupt`] if the
    /// column is NULL or `parse` fails.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T> {
        parse(&self.text(column)?).map_err(|error| Error::Corrupt(error.to_string()))
    }
}
