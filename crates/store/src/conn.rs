//! One connection to either database: `$1` statements in, rows out. The only file that knows how the two drivers differ.
//!
//! SQLite answers on the calling thread: a point read takes microseconds, less than handing it to another thread would.

use std::borrow::Cow;
use std::fmt::Write as _;

use jiff::Timestamp;
use model::clock::from_micros;
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr, Transaction};
use tokio::runtime::{Handle, RuntimeFlavor};
use uuid::Uuid;

use crate::hints::{Hint, Hints};
use crate::sqlite::Reader;
use crate::{Error, Result};

/// A connection inside a transaction, or one to read with.
#[derive(Debug)]
pub struct Conn(pub(crate) Inner, pub(crate) Hints);

#[derive(Debug)]
pub(crate) enum Inner {
    Sqlite(rusqlite::Connection),
    SqliteReader(Reader),
    PostgresTx(Transaction<'static, Postgres>),
    PostgresReader(PoolConnection<Postgres>),
}

impl Conn {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(inner, Hints::default())
    }

    /// Other nodes hear this when the transaction is committed.
    pub(crate) fn hint(&mut self, hint: Hint) {
        if self.is_transaction_of_postgres() {
            self.1.add(hint);
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.0, Inner::Sqlite(_) | Inner::SqliteReader(_))
    }

    pub(crate) fn is_transaction_of_postgres(&self) -> bool {
        matches!(self.0, Inner::PostgresTx(_))
    }

    pub(crate) async fn all(&mut self, statement: impl Into<Statement<'_>>) -> Result<Vec<Row>> {
        let statement = statement.into();
        let rows = match &mut self.0 {
            Inner::Sqlite(connection) => return statement.all_of_sqlite(connection),
            Inner::SqliteReader(reader) => {
                let connection = reader.connection()?;
                return beside_others(|| statement.all_of_sqlite(connection));
            }
            Inner::PostgresTx(connection) => statement.for_postgres().fetch_all(&mut **connection).await,
            Inner::PostgresReader(connection) => statement.for_postgres().fetch_all(&mut **connection).await,
        };
        Ok(rows?.into_iter().map(Row::Postgres).collect())
    }

    /// The same for what is known to be little: to let others go on elsewhere meanwhile would cost more than to read it.
    pub(crate) async fn few(&mut self, statement: impl Into<Statement<'_>>) -> Result<Vec<Row>> {
        match &mut self.0 {
            Inner::SqliteReader(reader) => statement.into().all_of_sqlite(reader.connection()?),
            _ => self.all(statement).await,
        }
    }

    pub(crate) async fn first(&mut self, statement: impl Into<Statement<'_>>) -> Result<Option<Row>> {
        let statement = statement.into();
        let row = match &mut self.0 {
            Inner::Sqlite(connection) => return statement.first_of_sqlite(connection),
            Inner::SqliteReader(reader) => return statement.first_of_sqlite(reader.connection()?),
            Inner::PostgresTx(connection) => statement.for_postgres().fetch_optional(&mut **connection).await,
            Inner::PostgresReader(connection) => statement.for_postgres().fetch_optional(&mut **connection).await,
        };
        Ok(row?.map(Row::Postgres))
    }

    /// How many rows the statement touched.
    pub(crate) async fn run(&mut self, statement: impl Into<Statement<'_>>) -> Result<u64> {
        let statement = statement.into();
        let done = match &mut self.0 {
            Inner::Sqlite(connection) => return statement.run_on_sqlite(connection),
            Inner::SqliteReader(reader) => return statement.run_on_sqlite(reader.connection()?),
            Inner::PostgresTx(connection) => statement.for_postgres().execute(&mut **connection).await,
            Inner::PostgresReader(connection) => statement.for_postgres().execute(&mut **connection).await,
        };
        Ok(done?.rows_affected())
    }

    /// Several statements without arguments or rows.
    pub(crate) async fn batch(&mut self, sql: impl Into<Cow<'static, str>>) -> Result<()> {
        let sql = sql.into();
        let done = match &mut self.0 {
            Inner::Sqlite(connection) => return Ok(connection.execute_batch(&sql)?),
            Inner::SqliteReader(reader) => return Ok(reader.connection()?.execute_batch(&sql)?),
            Inner::PostgresTx(connection) => sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **connection).await,
            Inner::PostgresReader(connection) => sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut **connection).await,
        };
        Ok(done.map(drop)?)
    }
}

impl Conn {
    /// How many rows were changed through the writer's connection since it was opened.
    pub(crate) fn total_changes(&self) -> u64 {
        if let Inner::Sqlite(connection) = &self.0 { connection.total_changes() } else { 0 }
    }

    /// Begins, divides and ends transactions of SQLite, again and again: each of these is prepared once.
    pub(crate) fn mark(&mut self, steps: &[&'static str]) -> Result<()> {
        let connection = match &mut self.0 {
            Inner::Sqlite(connection) => connection,
            Inner::SqliteReader(reader) => reader.connection()?,
            Inner::PostgresTx(_) | Inner::PostgresReader(_) => return Ok(()),
        };
        for step in steps {
            connection.prepare_cached(step)?.raw_execute()?;
        }
        Ok(())
    }
}

/// Lets the other tasks of this thread go on elsewhere meanwhile: a search may look at every row a user has.
fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// A statement and its arguments. Its text is made of literals of this crate only, so no value can become SQL.
#[derive(Debug, Default)]
pub(crate) struct Statement<'a> {
    sql: Cow<'static, str>,
    args: Vec<Arg<'a>>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'static str, args: impl Into<Vec<Arg<'a>>>) -> Self {
        Self { sql: Cow::Borrowed(sql), args: args.into() }
    }

    pub(crate) fn push(&mut self, sql: &'static str) -> &mut Self {
        self.sql.to_mut().push_str(sql);
        self
    }

    /// Adds the next `$n` and its value.
    pub(crate) fn bind(&mut self, arg: impl Into<Arg<'a>>) -> &mut Self {
        self.args.push(arg.into());
        let _ = write!(self.sql.to_mut(), "${}", self.args.len());
        self
    }

    fn all_of_sqlite(&self, connection: &rusqlite::Connection) -> Result<Vec<Row>> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        let columns = prepared.column_count();
        self.bind_to(&mut prepared)?;
        let mut rows = prepared.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(values(row, columns)?);
        }
        Ok(all)
    }

    fn first_of_sqlite(&self, connection: &rusqlite::Connection) -> Result<Option<Row>> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        let columns = prepared.column_count();
        self.bind_to(&mut prepared)?;
        let mut rows = prepared.raw_query();
        Ok(rows.next()?.map(|row| values(row, columns)).transpose()?)
    }

    fn run_on_sqlite(&self, connection: &rusqlite::Connection) -> Result<u64> {
        let mut prepared = connection.prepare_cached(&self.sql)?;
        self.bind_to(&mut prepared)?;
        Ok(prepared.raw_execute()? as u64)
    }

    /// SQLite takes `$2` for a name and counts names as they come; PostgreSQL means the second argument, and so do we.
    fn bind_to(&self, prepared: &mut rusqlite::Statement<'_>) -> Result<()> {
        let count = prepared.parameter_count();
        for index in 1..=count {
            let number = prepared.parameter_name(index).and_then(|name| name.strip_prefix('$')?.parse::<usize>().ok());
            let arg = number.and_then(|number| self.args.get(number.checked_sub(1)?));
            let arg = arg.filter(|_| count == self.args.len());
            let arg = arg.ok_or_else(|| Error::Database(format!("the arguments do not fit: {}", self.sql)))?;
            prepared.raw_bind_parameter(index, arg)?;
        }
        Ok(())
    }

    fn for_postgres<'q>(self) -> sqlx::query::Query<'q, Postgres, <Postgres as sqlx::Database>::Arguments> {
        let query = sqlx::query(AssertSqlSafe(self.sql).into_sql_str());
        self.args.iter().fold(query, |query, arg| match arg {
            Arg::Text(text) => query.bind(text.as_deref()),
            Arg::Int(number) => query.bind(*number),
        })
    }
}

fn values(row: &rusqlite::Row<'_>, columns: usize) -> rusqlite::Result<Row> {
    (0..columns).map(|column| row.get(column)).collect::<rusqlite::Result<_>>().map(Row::Sqlite)
}

impl<'a, const N: usize> From<(&'static str, [Arg<'a>; N])> for Statement<'a> {
    fn from((sql, args): (&'static str, [Arg<'a>; N])) -> Self {
        Self::new(sql, args)
    }
}

/// The two types that columns have, or nothing of that type: PostgreSQL wants to know which.
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

/// `args![owner, id, now]`: the arguments of a statement, in order.
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

impl From<model::UserId> for Arg<'_> {
    fn from(id: model::UserId) -> Self {
        id.to_string().into()
    }
}

impl From<&model::conversation::Id> for Arg<'_> {
    fn from(id: &model::conversation::Id) -> Self {
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

#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(Vec<Value>),
    Postgres(sqlx::postgres::PgRow),
}

impl Row {
    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>> {
        match self {
            Self::Sqlite(row) => match row.get(column) {
                Some(Value::Text(text)) => Ok(Some(text.clone())),
                Some(Value::Null) => Ok(None),
                other => Err(Error::Corrupt(format!("column {column} is no text: {other:?}"))),
            },
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>> {
        match self {
            Self::Sqlite(row) => match row.get(column) {
                Some(Value::Integer(number)) => Ok(Some(*number)),
                Some(Value::Null) => Ok(None),
                other => Err(Error::Corrupt(format!("column {column} is no number: {other:?}"))),
            },
            Self::Postgres(row) => Ok(row.try_get(column)?),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<String> {
        self.maybe_text(column)?.ok_or_else(|| Error::Corrupt(format!("column {column} is empty")))
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        self.maybe_int(column)?.ok_or_else(|| Error::Corrupt(format!("column {column} is empty")))
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp> {
        self.int(column).map(from_micros)
    }

    pub(crate) fn maybe_time(&self, column: usize) -> Result<Option<Timestamp>> {
        Ok(self.maybe_int(column)?.map(from_micros))
    }

    /// A column whose text is written and read by the model, such as an id or JSON.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &self,
        column: usize,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T> {
        parse(&self.text(column)?).map_err(|error| Error::Corrupt(error.to_string()))
    }
}
