//! The results of changes to tasks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Task;
use crate::json::present;
use crate::words::words;

/// A task after a change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangedTask)]
pub struct Changed {
    #[serde(flatten)]
    pub task: Task,
    /// Only where a recurring task was completed: the task that follows it, or null after the last one.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Task>)]
    pub next_task: Option<Option<Task>>,
    /// False if the task was like that before.
    #[serde(skip)]
    pub changed: bool,
}

words! {
    /// The kind of a change to a task.
    #[schema(as = TaskChangeKind)]
    pub enum ChangeKind {
        Created = "created",
        Updated = "updated",
        Completed = "completed",
        Deleted = "deleted",
        /// A reminder was set.
        Reminded = "reminded",
    }
}

/// A change that was undone, and its tasks as they are now. Tasks that it had created are shown as they were.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Undone {
    pub undone: ChangeKind,
    pub tasks: Vec<Task>,
    pub count: usize,
}
