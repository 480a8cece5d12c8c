//! `/api/tasks`.

pub use model::task::{
    ChangeKind, Changed as ChangedTask, Draft as TaskDraft, Patch as TaskPatch, Priority, Status, Task, Undone,
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
        /// `today`, `tomorrow`, `this_week`, `overdue`, a date, or days such as `2026-01-01..2026-01-31`.
        due: String,
        /// A tag, in any case.
        tag: String,
        /// Text in the title or the description.
        q: String,
        /// Beginning or end of an id, or part of a title.
        #[serde(rename = "ref")]
        #[param(rename = "ref")]
        reference: String,
    }
}

/// Several tasks at once.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Several)]
pub struct TaskIds {
    #[schema(value_type = Vec<Uuid>, min_items = 1, max_items = 1000)]
    pub ids: Vec<String>,
}

page! {
    /// Tasks that were completed. A recurring one has the task that follows it.
    #[schema(as = Completed)]
    CompletedTasks { tasks: ChangedTask }
}
