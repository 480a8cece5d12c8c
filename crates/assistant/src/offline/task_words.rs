//! Describes stored tasks in words (TRUST-1). All texts come from the task in the answer of a tool, never from the
//! message of the user.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use model::due::DueDate;
use model::task::{Priority, Task, TaskStatus};
use model::words;
use serde_json::Value;
use tools::ToolArguments;
use uuid::Uuid;

/// Reads a task from the answer of a tool. Fields that an external tool leaves out have their defaults. A due date
/// without an offset is in `zone`. Returns `None` without a title.
pub(super) fn stored_task(task: &Value, zone: &TimeZone) -> Option<Task> {
    let text = |key: &str| task[key].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let status = text("status").and_then(|word| TaskStatus::parse("status", &word).ok());
    let priority = text("priority").and_then(|word| Priority::parse("priority", &word).ok());
    let tags = task["tags"].as_array().into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned));
    Some(Task {
        id: Uuid::nil(),
        title: task["title"].as_str()?.to_owned(),
        description: text("description"),
        status: status.unwrap_or(TaskStatus::Pending),
        priority: priority.unwrap_or_default(),
        due_date: text("due_date").and_then(|due| DueDate::parse("due_date", &due, zone).ok()),
        recurrence: text("recurrence"),
        tags: tags.collect(),
        created_at: Timestamp::UNIX_EPOCH,
        updated_at: Timestamp::UNIX_EPOCH,
        completed_at: text("completed_at").and_then(|at| at.parse().ok()),
    })
}

/// Returns the completed flag, the title and the note of a list line. The note of an open task has its due date,
/// repetition, priority and tags. A completed task has the day of its completion.
pub(super) fn list_line<'v>(task: &'v Value, now: &Zoned) -> (bool, &'v str, Option<String>) {
    let title = task["title"].as_str().unwrap_or_default();
    let Some(stored) = stored_task(task, now.time_zone()) else { return (false, title, None) };
    if stored.status == TaskStatus::Completed {
        let day = stored.completed_at.map(|at| at.to_zoned(now.time_zone().clone()).date());
        let note = day.map(|day| format!("done {}", words::short_day_words(day, now.date())));
        return (true, title, note);
    }
    let note = words::short_task_values(&stored, now).join(", ");
    (false, title, Some(note).filter(|note| !note.is_empty()))
}

/// Describes the stored values of the fields that a call has set: "the due date tomorrow (Wed 18 Nov) at 3pm", "high
/// priority", "no tags".
pub(super) fn changes(arguments: &ToolArguments, task: &Value, now: &Zoned) -> Vec<String> {
    let Some(task) = stored_task(task, now.time_zone()) else { return Vec::new() };
    let mut changes = Vec::new();
    let mut add = |field: &str, change: String| {
        if arguments.contains_key(field) {
            changes.push(change);
        }
    };
    add("title", format!("the title '{}'", task.title));
    add(
        "due_date",
        match &task.due_date {
            Some(due) => format!("the due date {}", words::due_words(due, now)),
            None => "no due date".to_owned(),
        },
    );
    add(
        "recurrence",
        match &task.recurrence {
            Some(rule) => format!("the repetition {}", words::recurrence_words(rule)),
            None => "no repetition".to_owned(),
        },
    );
    add("priority", format!("{} priority", task.priority.as_str()));
    add(
        "tags",
        match task.tags.as_slice() {
            [] => "no tags".to_owned(),
            [tag] => format!("the tag {tag}"),
            tags => format!("the tags {}", words::join_with_and(tags)),
        },
    );
    add(
        "description",
        match &task.description {
            Some(text) => format!("the note '{text}'"),
            None => "no note".to_owned(),
        },
    );
    add(
        "status",
        match task.status {
            TaskStatus::Pending => "an open status".to_owned(),
            TaskStatus::Completed => "a completed status".to_owned(),
        },
    );
    changes
}
