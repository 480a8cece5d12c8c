//! One connection to either database: `$1` statements in, rows out. The only file that knows how the two drivers differ.

use std::borrow::Cow;

use jiff::Timestamp;
use model::clock::from_micros;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Postgres, Row as _, SqlSafeStr, SqlStr, Sqlite, SqliteConnection, Transaction};
use uuid::Uuid;

use crate::sqlite::Reader;
use crate::{Error, Result};

/// A connection inside a transaction, or one to read with.
#[derive(Debug)]
pub struct Conn(pub(crate) Inner);

#[derive(Debug)]
pub(crate) enum Inner {
    Sqlite(SqliteConnection),
    SqliteReader(Reader),
    PostgresTx(Transaction<'static, Postgres>),
    PostgresReader(PoolConnection<Postgres>),
}

/// One expression for the connection of either database, however it is held.
macro_rules! on {
    ($self:ident, $c:ident, sqlite: $sqlite:expr, postgres: $postgres:expr) => {
        match &mut $self.0 {
            Inner::Sqlite(connection) => {
                let $c = connection;
                $sqlite
            }
            Inner::SqliteReader(reader) => {
                let $c = reader.connection()?;
                $sqlite
            }
            Inner::PostgresTx(connection) => {
                let $c = &mut **connection;
                $postgres
            }
            Inner::PostgresReader(connection) => {
                let $c = &mut **connection;
                $postgres
            }
        }
    };
}

impl Conn {
    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.0, Inner::Sqlite(_) | Inner::SqliteReader(_))
    }

    pub(crate) async fn all(&mut self, statement: impl Into<Statement<'_>>) -> Result<Vec<Row>> {
        let (sql, args) = statement.into().take();
        Ok(on!(self, c,
            sqlite: sqlite(sql, &args).fetch_all(c).await?.into_iter().map(Row::Sqlite).collect(),
            postgres: postgres(sql, &args).fetch_all(c).await?.into_iter().map(Row::Postgres).collect()))
    }

    pub(crate) async fn first(&mut self, statement: impl Into<Statement<'_>>) -> Result<Option<Row>> {
        let (sql, args) = statement.into().take();
        Ok(on!(self, c,
            sqlite: sqlite(sql, &args).fetch_optional(c).await?.map(Row::Sqlite),
            postgres: postgres(sql, &args).fetch_optional(c).await?.map(Row::Postgres)))
    }

    /// How many rows the statement touched.
    pub(crate) async fn run(&mut self, statement: impl Into<Statement<'_>>) -> Result<u64> {
        let (sql, args) = statement.into().take();
        Ok(on!(self, c,
            sqlite: sqlite(sql, &args).execute(c).await?.rows_affected(),
            postgres: postgres(sql, &args).execute(c).await?.rows_affected()))
    }

    /// Several statements without arguments or rows, in one trip to the database.
    pub(crate) async fn batch(&mut self, sql: &'static str) -> Result<()> {
        on!(self, c,
            sqlite: sqlx::raw_sql(sql).execute(c).await.map(drop)?,
            postgres: sqlx::raw_sql(sql).execute(c).await.map(drop)?);
        Ok(())
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
        let n = self.args.len();
        self.sql.to_mut().push_str(&format!("${n}"));
        self
    }

    fn take(self) -> (SqlStr, Vec<Arg<'a>>) {
        (AssertSqlSafe(self.sql).into_sql_str(), self.args)
    }
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

type Query<'q, DB> = sqlx::query::Query<'q, DB, <DB as sqlx::Database>::Arguments>;

fn sqlite<'q>(sql: SqlStr, args: &[Arg<'_>]) -> Query<'q, Sqlite> {
    args.iter().fold(sqlx::query(sql), |query, arg| match arg {
        Arg::Text(text) => query.bind(text.as_deref()),
        Arg::Int(number) => query.bind(*number),
    })
}

fn postgres<'q>(sql: SqlStr, args: &[Arg<'_>]) -> Query<'q, Postgres> {
    args.iter().fold(sqlx::query(sql), |query, arg| match arg {
        Arg::Text(text) => query.bind(text.as_deref()),
        Arg::Int(number) => query.bind(*number),
    })
}

#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(sqlx::sqlite::SqliteRow),
    Postgres(sqlx::postgres::PgRow),
}

impl Row {
    pub(crate) fn maybe_text(&self, column: usize) -> Result<Option<String>> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column)?,
            Self::Postgres(row) => row.try_get(column)?,
        })
    }

    pub(crate) fn maybe_int(&self, column: usize) -> Result<Option<i64>> {
        Ok(match self {
            Self::Sqlite(row) => row.try_get(column)?,
            Self::Postgres(row) => row.try_get(column)?,
        })
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
