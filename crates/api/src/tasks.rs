//! `/api/tasks`.

pub use model::task::{
    ChangedTask, CreatedTask, Priority, Task, TaskChangeKind, TaskDraft, TaskPatch, TaskStatus, UndoneChange,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

page! {
    /// Tasks.
    Tasks { tasks: Task }
}

list! {
    /// Selects tasks.
    ListTasks -> Tasks {
        /// `pending` (default), `completed` or `all`.
        status: String,
        /// `low`, `medium` or `high`.
        priority: String,
        /// `today`, `tomorrow`, `this_week`, `overdue`, a date, a range such as `2026-01-01..2026-01-31`, or words such as
        /// `friday` or `next week`.
        due: String,
        /// A tag. Case is ignored.
        tag: String,
        /// Text in the title or the description.
        q: String,
        /// `created` (default, oldest first), `due` (earliest first, tasks without a due date last) or `priority` (high
        /// first, then by due date).
        sort: String,
        /// The start or end of an id, or a part of a title.
        #[serde(rename = "ref")]
        #[param(rename = "ref")]
        reference: String,
    }
}

/// The ids of several tasks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Several)]
pub struct TaskIds {
    #[schema(value_type = Vec<Uuid>, min_items = 1, max_items = 1000)]
    pub ids: Vec<String>,
}

page! {
    /// Completed tasks. A recurring task has its next occurrence.
    #[schema(as = Completed)]
    CompletedTasks { tasks: ChangedTask }
}
