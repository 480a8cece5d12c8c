//! `/api/data`, `/api/backup` and `/api/restore`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The result of an import.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    pub tasks: ImportedCount,
    pub reminders: ImportedCount,
    pub conversations: ImportedCount,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ImportedCount {
    pub added: usize,
    /// Items whose id exists already.
    pub skipped: usize,
}

/// The result of a restore.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Restored {
    /// The number of rows in the backup.
    pub rows: u64,
}
