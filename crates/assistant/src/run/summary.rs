//! The stored values of a change in words, for the progress of a turn (TRUST-1). They come from the answer of the tool,
//! never from the message.

use jiff::{Timestamp, Zoned};
use model::due::DueDate;
use model::reminder::Reminder;
use model::task::Task;
use model::words::{recurrence_words, short_due_words, short_task_values};
use serde::Deserialize;
use serde_json::Value;

/// Returns the values of the changed task and its reminder: "call mom · due tomorrow at 3pm · every week". Several tasks
/// are counted. Returns `None` if the answer contains no task.
pub(super) fn stored_summary(result: &Value, now: &Zoned) -> Option<String> {
    let several = result["tasks"].as_array().filter(|_| result["task"].is_null());
    if let Some(tasks) = several {
        let noun = if tasks.len() == 1 { "task" } else { "tasks" };
        return Some(format!("{} {noun}", tasks.len()));
    }
    let task = Task::deserialize(&result["task"]).ok()?;
    let mut values = vec![task.title.clone()];
    if let Ok(reminder) = Reminder::deserialize(&result["reminder"]) {
        values.push(format!("reminder {}", time_words(reminder.next_at.unwrap_or(reminder.remind_at), now)));
        values.extend(reminder.recurrence.as_deref().map(recurrence_words));
    } else {
        values.extend(short_task_values(&task, now));
    }
    if let Ok(next) = Task::deserialize(&result["next_task"]) {
        values.extend(next.due_date.map(|due| format!("again {}", short_due_words(&due, now))));
    }
    Some(values.join(" · "))
}

fn time_words(time: Timestamp, now: &Zoned) -> String {
    short_due_words(&DueDate::from_zoned(&time.to_zoned(now.time_zone().clone())), now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn summaries_name_what_was_stored() {
        // TRUST-1
        let now = "2026-03-11T09:30:00Z[UTC]".parse().unwrap();
        let task = |due: &str, rule: Value| {
            json!({
                "id": "0190a6d2-7c00-7000-8000-000000000000", "title": "call mom", "description": null,
                "status": "pending", "priority": "medium", "due_date": due, "recurrence": rule, "tags": [],
                "created_at": "2026-03-11T09:00:00Z", "updated_at": "2026-03-11T09:00:00Z", "completed_at": null,
            })
        };
        let added = json!({"task": task("2026-03-12T15:00:00+00:00", json!("FREQ=WEEKLY"))});
        assert_eq!(stored_summary(&added, &now).unwrap(), "call mom · due tomorrow at 3pm · every week");
        let several = json!({"tasks": [task("2026-03-12", Value::Null), task("2026-03-12", Value::Null)]});
        assert_eq!(stored_summary(&several, &now).unwrap(), "2 tasks");
        assert_eq!(stored_summary(&json!({"agents": []}), &now), None);
    }
}
