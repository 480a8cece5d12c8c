//! `/api/reminders`.

pub use model::reminder::{Draft as ReminderDraft, Reminder, Status};
use uuid::Uuid;

page! {
    /// Reminders.
    Reminders { reminders: Reminder }
}

list! {
    /// Selects reminders.
    ListReminders -> Reminders {
        /// `scheduled` (default), `done`, `dropped` or `all`.
        status: String,
        /// Those of one task.
        #[serde(deserialize_with = "crate::page::id")]
        task_id: Uuid,
    }
}
