//! Notifications: what a user is told without having asked at that moment.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Clock, words::words};

/// Longer ones are cut: they are read on small screens, and go into subjects and variables.
pub const MAX_TITLE_CHARS: usize = 300;
pub const MAX_TEXT_CHARS: usize = 4000;

words! {
    #[schema(as = NotificationKind)]
    pub enum Kind {
        /// A reminder spoke up, or a task is due.
        Reminder = "reminder",
        Execution = "execution",
        Schedule = "schedule",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notification {
    pub id: Uuid,
    pub kind: Kind,
    /// One line.
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
    pub fn new(clock: &Clock, kind: Kind, title: &str, text: &str) -> Self {
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

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        // The last one makes place for the mark.
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_has_the_shape_that_others_rely_on() {
        // TASK-4
        let clock = Clock::manual("2026-01-10T12:00:00Z".parse().unwrap());
        let mut notification = Notification::new(&clock, Kind::Reminder, "Reminder:\n milk ", " Buy it. ");
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
    fn long_ones_are_cut() {
        let clock = Clock::system();
        for (given, kept) in [(299, 299), (300, 300), (301, 300)] {
            let title = Notification::new(&clock, Kind::Schedule, &"ä".repeat(given), "").title;
            assert_eq!((title.chars().count(), title.ends_with('…')), (kept, given > kept));
        }
    }
}
