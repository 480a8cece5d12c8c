//! The results of changes to tasks.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Task;
use crate::json::present;
use crate::reminder::Reminder;
use crate::string_enum::schema_enum;

/// A task after a change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedTask {
    #[serde(flatten)]
    pub task: Task,
    /// Present if a recurring task was completed: the next task, or null after the last occurrence.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Task>)]
    pub next_task: Option<Option<Task>>,
    /// The reminders that the change has dropped: those before a due date that was removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_reminders: Vec<Reminder>,
    /// The reminders before the due date, if it was moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved_reminders: Vec<Reminder>,
    /// False if the change had no effect.
    #[serde(skip)]
    pub changed: bool,
}

schema_enum! {
    /// The kind of a change to a task.
    pub enum TaskChangeKind {
        Created = "created",
        Updated = "updated",
        Completed = "completed",
        Deleted = "deleted",
        /// A reminder was set.
        Reminded = "reminded",
        /// A reminder was changed, snoozed, cancelled or deleted.
        ReminderChanged = "reminder_changed",
    }
}

/// A new task.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreatedTask {
    #[serde(flatten)]
    pub task: Task,
    /// Present if a reminder was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<Reminder>,
}

/// An undone change and the current state of its tasks. Tasks that the change had created are deleted; their last state
/// is included.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Undone)]
pub struct UndoneChange {
    pub undone: TaskChangeKind,
    pub tasks: Vec<Task>,
    pub count: usize,
}
