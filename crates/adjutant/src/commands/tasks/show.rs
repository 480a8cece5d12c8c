//! `adjutant tasks show`: one task with everything it has.

use api::reminders::{ListReminders, Reminder};
use api::tasks::{Task, TaskStatus};
use model::words::{due_words, recurrence_words};
use serde_json::{Value, json};

use super::{PATH, is_late, resolve};
use crate::client::Client;
use crate::commands::listing::{self, local_now, time_in_words};
use crate::commands::reminders;
use crate::output;

/// Prints a task with its scheduled reminders, one value in a line, dates and repetitions in words. With `--json`, prints
/// the task as the server returns it, with `reminders`. Fails if no task matches or several do.
pub(super) async fn show(client: &Client, name: &str) -> anyhow::Result<()> {
    let task = resolve(client, name).await?;
    let list = ListReminders { task_id: Some(task.id), ..ListReminders::default() };
    let reminders = listing::all_items(client, reminders::PATH, list, usize::MAX).await?;
    if client.json {
        let mut shown: Value = client.get(&format!("{PATH}/{}", task.id)).await?.read()?;
        shown["reminders"] = json!(reminders);
        return output::print_line(&shown.to_string());
    }
    lines(&task, &reminders).iter().try_for_each(|line| output::print_line(line))
}

/// Returns the title and one line for each value that the task has.
fn lines(task: &Task, reminders: &[Reminder]) -> Vec<String> {
    let now = local_now();
    let mut lines = vec![task.title.clone()];
    let mut add = |name: &str, value: Option<String>| lines.extend(value.map(|value| format!("  {name:<12} {value}")));
    let status = match (task.status, task.completed_at) {
        (TaskStatus::Completed, Some(at)) => format!("completed {}", time_in_words(at)),
        (status, _) => status.as_str().to_owned(),
    };
    add("status", Some(status));
    let lead = if is_late(task, &now) { "overdue since " } else { "" };
    add("due", task.due_date.as_ref().map(|due| format!("{lead}{}", due_words(due, &now))));
    add("repeats", task.recurrence.as_deref().map(recurrence_words));
    add("priority", Some(task.priority.as_str().to_owned()));
    add("tags", Some(task.tags.join(", ")).filter(|tags| !tags.is_empty()));
    let description = task.description.as_deref().map(|text| text.replace('\n', "\n               "));
    add("description", description);
    for reminder in reminders {
        add("reminder", Some(reminders::summary(reminder)));
    }
    add("created", Some(time_in_words(task.created_at)));
    add("changed", Some(time_in_words(task.updated_at)).filter(|_| task.updated_at != task.created_at));
    add("id", Some(task.id.to_string()));
    lines
}
