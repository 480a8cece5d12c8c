//! The errors of the store.

use std::path::PathBuf;

use model::quota::QuotaReached;

use crate::fault::StorageFault;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The row does not exist, or belongs to another user.
    #[error("not found")]
    NotFound,
    /// The value of the named field is already in use.
    #[error("this {0} is already in use; choose another")]
    AlreadyExists(&'static str),
    /// The queue of an agent or a session is full. `waiting` is the number of queued executions.
    #[error("{waiting} executions are already waiting, and the queue limit is {depth}")]
    QueueFull { waiting: i64, depth: i64 },
    /// The limit for objects of this kind is reached.
    #[error("the limit of {limit} is reached; delete one first")]
    TooMany { limit: i64 },
    /// An administrator has stopped everything. Nothing starts until it is resumed.
    #[error("{}", model::stop_state::StopState::describe(reason.as_deref()))]
    Stopped { reason: Option<String> },
    /// A value of the request breaks a rule that depends on stored data.
    #[error(transparent)]
    Invalid(#[from] model::Invalid),
    /// A limit of the user is reached.
    #[error(transparent)]
    QuotaReached(#[from] QuotaReached),
    #[error("all slots of the agent are in use; try again later")]
    NoFreeSlot,
    /// The object is read-only, because it comes from the configuration file.
    #[error("it is defined in the configuration file; change it there")]
    DefinedInConfig,
    /// The object has ended, is completed, or has no future occurrence.
    #[error("it has already ended")]
    AlreadyEnded,
    #[error("it has not ended yet")]
    NotEnded,
    #[error("an execution cannot change from {} to {}", .0.from, .0.to)]
    IllegalTransition(model::execution::IllegalTransition),
    #[error("the idempotency key was used for a different request")]
    KeyReused,
    #[error("the request with this idempotency key is still in progress")]
    KeyBusy,
    #[error(
        "the database was written by a newer version of adjutant (schema {found}, this version supports {known}); \
         update adjutant"
    )]
    NewerSchema { found: i64, known: i64 },
    #[error("migration {version} of the database differs from the one in this program")]
    ChangedMigration { version: i64 },
    /// Another process holds the lock of the data directory. `address` is the address that it has published, if any.
    #[error(
        "the data directory {} is in use by another adjutant process{}",
        path.display(),
        address.as_deref().map(|address| format!(" at {address}")).unwrap_or_default()
    )]
    InUse { path: PathBuf, address: Option<String> },
    #[error(
        "the database URL leads to a connection pooler that does not keep settings and prepared statements; set \
         database.pooler = \"transaction\", or use the URL of PostgreSQL itself"
    )]
    Pooler,
    #[error("the database URL is invalid: {0}")]
    InvalidUrl(String),
    /// The database cannot be used until an operator removes the cause.
    #[error("the database cannot be used: {0}")]
    Storage(StorageFault),
    /// The database cannot be used at the moment. A retry may succeed.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// A backup is invalid, incomplete or cannot be restored.
    #[error("{0}")]
    Backup(String),
    #[error("cannot use the file {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// The database rejected a statement. A retry does not help.
    #[error("the database rejected a statement: {0}")]
    Database(String),
    /// A stored value cannot be read, or a value cannot be encoded for storage.
    #[error("a stored value is invalid: {0}")]
    Corrupt(String),
}

/// A result with the error of the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<model::execution::IllegalTransition> for Error {
    fn from(error: model::execution::IllegalTransition) -> Self {
        Self::IllegalTransition(error)
    }
}

impl From<model::execution::ImpossibleRecord> for Error {
    fn from(error: model::execution::ImpossibleRecord) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl From<sqlx::Error> for Error {
    /// Returns [`Error::Unavailable`] for failures of the connection (I/O, TLS, protocol, pool) and for errors of
    /// PostgreSQL that a retry may overcome. Returns [`Error::Storage`] for storage faults, which are also logged,
    /// [`Error::InvalidUrl`] for an invalid configuration, [`Error::Pooler`] for errors of a pooler, and [`Error::Database`] for everything else.
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            // The connection was lost in the middle of a message.
            | sqlx::Error::Protocol(_) => Self::Unavailable(error.to_string()),
            sqlx::Error::Configuration(error) => Self::InvalidUrl(error.to_string()),
            sqlx::Error::Database(inner) => {
                let code = inner.code().unwrap_or_default();
                match StorageFault::of_postgres(&code) {
                    Some(fault) => {
                        tracing::error!(error = %inner, "a storage fault of the database");
                        Self::Storage(fault)
                    }
                    None if is_transient(&code) => Self::Unavailable(inner.to_string()),
                    None if is_of_pooler(&code, inner.message()) => Self::Pooler,
                    None => Self::Database(inner.to_string()),
                }
            }
            other => Self::Database(other.to_string()),
        }
    }
}

impl From<rusqlite::Error> for Error {
    /// Returns [`Error::Storage`] for a storage fault, which is also logged, and [`Error::Unavailable`] if the file cannot
    /// be opened, is busy or locked. Returns [`Error::Database`] for everything else.
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked};
        if let Some(fault) = StorageFault::of_sqlite(&error) {
            tracing::error!(%error, "a storage fault of the database");
            return Self::Storage(fault);
        }
        match error.sqlite_error_code() {
            Some(CannotOpen | DatabaseBusy | DatabaseLocked) => Self::Unavailable(error.to_string()),
            _ => Self::Database(error.to_string()),
        }
    }
}

/// Returns true for errors that only a pooler causes: it rejects a setting, or a prepared statement exists already or no
/// longer.
fn is_of_pooler(code: &str, message: &str) -> bool {
    matches!(code, "42P05" | "26000") || (code == "08P01" && message.contains("startup parameter"))
}

/// Returns true if a statement without effects may be repeated at once: the connection was lost, or the database has
/// resolved a conflict with another transaction.
pub(crate) fn is_repeatable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("40001" | "40P01" | "57P01")),
        _ => false,
    }
}

/// Returns true for PostgreSQL error codes that a retry may overcome: 57P0x (the server stops or starts), 53xxx (out of
/// connections or memory), 57014 (a timeout of the statement), and 40001, 40P01 and 55P03 (conflicts with other
/// transactions).
fn is_transient(code: &str) -> bool {
    code.starts_with("57P0") || code.starts_with("53") || matches!(code, "57014" | "40001" | "40P01" | "55P03")
}
