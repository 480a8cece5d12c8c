//! Why the store could not do what it was asked.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this user has nothing under that id")]
    NotFound,
    /// The field whose value is somebody else's already.
    #[error("there is one with this {0} already")]
    Taken(&'static str),
    #[error("{waiting} are waiting already, and no more than {depth} may")]
    QueueFull { waiting: i64, depth: i64 },
    #[error("there are {limit} already, and there may be no more")]
    TooMany { limit: i64 },
    #[error("all places of the agent are taken")]
    NoPlace,
    #[error("it is in the configuration file: change it there")]
    Configured,
    #[error("it has ended already")]
    Ended,
    #[error("it has not ended yet")]
    NotEnded,
    #[error("an execution cannot go from {} to {}", .0.from, .0.to)]
    Illegal(model::execution::Illegal),
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error("the request with this idempotency key is still at work")]
    KeyBusy,
    #[error("the database was written by a newer adjutant (schema {found}, this one knows {known}): update adjutant")]
    NewerSchema { found: i64, known: i64 },
    #[error("the migration {version} of the database differs from the one in this program")]
    ChangedMigration { version: i64 },
    #[error("the data directory {} is in use by another adjutant{}", path.display(), at.as_deref().map(|at| format!(" at {at}")).unwrap_or_default())]
    InUse { path: PathBuf, at: Option<String> },
    #[error("the database URL is not valid: {0}")]
    Url(String),
    #[error("the database is not available: {0}")]
    Unavailable(String),
    #[error("{0}")]
    Backup(String),
    #[error("the file {} could not be used: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("the database refused a statement: {0}")]
    Database(String),
    #[error("a stored value cannot be read: {0}")]
    Corrupt(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<model::execution::Illegal> for Error {
    fn from(illegal: model::execution::Illegal) -> Self {
        Self::Illegal(illegal)
    }
}

impl From<model::execution::ImpossibleRecord> for Error {
    fn from(error: model::execution::ImpossibleRecord) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            // What a connection says that was cut in the middle.
            | sqlx::Error::Protocol(_) => Self::Unavailable(error.to_string()),
            sqlx::Error::Configuration(error) => Self::Url(error.to_string()),
            sqlx::Error::Database(ref inner) if inner.code().is_some_and(|code| may_pass(&code)) => {
                Self::Unavailable(inner.to_string())
            }
            other => Self::Database(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, SystemIoFailure};
        match error.sqlite_error_code() {
            Some(CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | SystemIoFailure) => {
                Self::Unavailable(error.to_string())
            }
            _ => Self::Database(error.to_string()),
        }
    }
}

/// Codes of PostgreSQL for what another try may overcome: 57P0x, it is stopping or starting; 53xxx, it is out of
/// connections, memory or disk; 40001, 40P01 and 55P03, others were in the way.
fn may_pass(code: &str) -> bool {
    code.starts_with("57P0") || code.starts_with("53") || matches!(code, "40001" | "40P01" | "55P03")
}
