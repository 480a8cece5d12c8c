//! `/api/data`, `/api/backup` and `/api/restore`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The result of an import.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Imported)]
pub struct ImportSummary {
    pub tasks: ImportCount,
    pub reminders: ImportCount,
    pub conversations: ImportCount,
}

/// The counts for one kind of item.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ImportedCount)]
pub struct ImportCount {
    pub added: usize,
    /// Items with an id that already exists.
    pub skipped: usize,
}

/// The result of a restore.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Restored)]
pub struct RestoreSummary {
    /// The number of rows in the backup.
    pub rows: u64,
}
