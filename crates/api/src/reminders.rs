//! `/api/reminders`.

pub use model::reminder::{Reminder, ReminderDraft, ReminderPatch, ReminderStatus, SnoozeRequest};
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
        /// Only reminders of this task.
        #[serde(deserialize_with = "crate::page::deserialize_uuid")]
        task_id: Uuid,
    }
}
