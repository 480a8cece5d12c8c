//! Notifications: messages to a user that are stored in the product.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Clock, string_enum::schema_enum};

/// Longer titles are cut. They are shown on small screens and used in e-mail subjects and environment variables.
pub const MAX_TITLE_CHARS: usize = 300;
/// Longer texts are cut.
pub const MAX_TEXT_CHARS: usize = 4000;

schema_enum! {
    /// The cause of a notification.
    pub enum NotificationKind {
        /// A reminder fired, or a task is due.
        Reminder = "reminder",
        Execution = "execution",
        Schedule = "schedule",
    }
}

/// A message to a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notification {
    pub id: Uuid,
    pub kind: NotificationKind,
    /// A single line.
    pub title: String,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_id: Option<Uuid>,
    pub created_at: Timestamp,
    pub read_at: Option<Timestamp>,
}

impl Notification {
    /// Returns an unread notification with a new id and the current time. It refers to no task, execution or schedule.
    /// White space in the title becomes single spaces; the text is trimmed. A longer title is cut to
    /// [`MAX_TITLE_CHARS`] characters and a longer text to [`MAX_TEXT_CHARS`]. The last of these characters is `…`
    /// then.
    pub fn new(clock: &Clock, kind: NotificationKind, title: &str, text: &str) -> Self {
        let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
        Self {
            id: clock.id(),
            kind,
            title: cut(&line, MAX_TITLE_CHARS),
            text: cut(text.trim(), MAX_TEXT_CHARS),
            task_id: None,
            execution_id: None,
            schedule_id: None,
            created_at: clock.now(),
            read_at: None,
        }
    }
}

/// Cuts `text` to at most `max_chars` characters. The last one is `…` then.
fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some(_) => text.chars().take(max_chars - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn notifications_have_a_stable_json_shape() {
        // TASK-4
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let mut notification = Notification::new(&clock, NotificationKind::Reminder, "Reminder:\n milk ", " Buy it. ");
        notification.id = Uuid::nil();
        notification.task_id = Some(Uuid::nil());
        let shape = json!({
            "id": Uuid::nil(), "kind": "reminder", "title": "Reminder: milk", "text": "Buy it.", "task_id": Uuid::nil(),
            "created_at": "2026-01-10T12:00:00Z", "read_at": null,
        });
        assert_eq!(serde_json::to_value(&notification).unwrap(), shape);
        assert_eq!(serde_json::from_value::<Notification>(shape).unwrap(), notification);
    }

    #[test]
    fn long_titles_are_cut() {
        let clock = Clock::system();
        for (given, expected) in [(299, 299), (300, 300), (301, 300)] {
            let title = Notification::new(&clock, NotificationKind::Schedule, &"ä".repeat(given), "").title;
            assert_eq!((title.chars().count(), title.ends_with('…')), (expected, given > expected));
        }
    }
}
