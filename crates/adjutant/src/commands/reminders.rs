//! `adjutant reminders`: list, add, rm.

use std::collections::HashMap;

use api::reminders::{ListReminders, Reminder, ReminderDraft};
use uuid::Uuid;

use super::listing::{self, Named, limit_param, local_time, named, short_id};
use super::tasks;
use crate::cli::{GlobalOptions, RemindersCommand};
use crate::client::Client;
use crate::output;

const PATH: &str = "/api/reminders";

/// Connects and runs one subcommand. Fails if the connection or a request fails, or if a name matches no task or
/// reminder, or several.
pub(crate) async fn run(global: &GlobalOptions, command: RemindersCommand) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        RemindersCommand::List { status, task, quiet, limit, cursor } => {
            let task_id = match task {
                Some(name) => Some(tasks::resolve(client, &name).await?.id),
                None => None,
            };
            list(client, ListReminders { status, task_id, limit: limit.map(limit_param), cursor }, quiet).await
        }
        RemindersCommand::Add { task, at, every, times } => add(client, &task, at, every, times).await,
        RemindersCommand::Rm { reminders } => remove(client, &reminders, global.yes).await,
    }
}

/// Prints one page of the server as JSON with `--json`, ids (`quiet`), or a table with the titles of the tasks. Ids and
/// table have all reminders unless `list` has a limit. Prints a note instead of an empty table. For a table, all tasks
/// of the user are read.
async fn list(client: &Client, list: ListReminders, quiet: bool) -> anyhow::Result<()> {
    let reminders = listing::items_to_show(client, PATH, list, usize::MAX, quiet, "no reminders").await?;
    let Some(reminders) = reminders else { return Ok(()) };
    let tasks = listing::all_items(client, "/api/tasks", tasks::all_tasks(), usize::MAX).await?;
    let titles = tasks.into_iter().map(|task| (task.id, task.title)).collect();
    let rows: Vec<_> = reminders.iter().map(|reminder| row(reminder, &titles)).collect();
    output::print_table(&["ID", "TASK", "AT", "REPEATS", "FIRED", "STATUS"], &rows)
}

/// Returns the row of a reminder in a table: short id, task, time, repetition, number of notifications sent, and
/// status. `titles` are the titles of tasks by id; a missing task is shown as deleted.
fn row(reminder: &Reminder, titles: &HashMap<Uuid, String>) -> Vec<String> {
    vec![
        short_id(reminder.id),
        titles.get(&reminder.task_id).cloned().unwrap_or_else(|| "(deleted)".to_owned()),
        local_time(reminder.remind_at),
        repeats(reminder).unwrap_or_default(),
        reminder.fired_count.to_string(),
        reminder.status.as_str().to_owned(),
    ]
}

/// Describes the repetition, or returns none if the reminder does not repeat.
fn repeats(reminder: &Reminder) -> Option<String> {
    let minutes = reminder.repeat_interval_minutes?;
    Some(match reminder.repeat_count {
        Some(count) => format!("every {minutes} min, {count} times"),
        None => format!("every {minutes} min until done"),
    })
}

/// Adds a reminder for the task with this name. Prints one line with the title, its time and repetition, or with
/// `--json` the response of the server. The server parses `remind_at`. Without `repeat_interval_minutes` it does not
/// repeat. Fails if no task matches or several do, or if the server rejects the reminder.
async fn add(
    client: &Client,
    task: &str,
    remind_at: String,
    repeat_interval_minutes: Option<i64>,
    repeat_count: Option<i64>,
) -> anyhow::Result<()> {
    let task = tasks::resolve(client, task).await?;
    let draft = ReminderDraft { task_id: task.id.to_string(), remind_at, repeat_interval_minutes, repeat_count };
    client.post(PATH, &draft).await?.show(|reminder: Reminder| {
        let repeats = repeats(&reminder).map(|repeats| format!(", {repeats}")).unwrap_or_default();
        output::print_line(&format!(
            "Added a reminder for '{}' at {}{repeats}",
            task.title,
            local_time(reminder.remind_at)
        ))
    })
}

named!("reminder": Reminder, |it| it.id, format!("{}, {}", local_time(it.remind_at), it.status.as_str()));

/// Removes reminders of any status, selected by id or by the beginning or end of an id, after a confirmation, unless
/// `yes` is set. Fails and removes none if a name cannot be resolved or the removal is not confirmed. Stops at the
/// first request that fails; the reminders before it stay removed, and nothing is printed. Otherwise prints one line
/// with their number, or nothing with `--json`.
async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let list = ListReminders { status: Some("all".to_owned()), ..ListReminders::default() };
    let known = listing::all_items(client, PATH, list, usize::MAX).await?;
    let resolve = async |name: &str| listing::select_one(name, &known, &[Named::has_id, Named::has_part]).cloned();
    let found = listing::resolve_each(names, resolve).await?;
    let removed = if found.len() == 1 { "the reminder".to_owned() } else { format!("{} reminders", found.len()) };
    output::confirm(&format!("Remove {removed}?"), yes)?;
    for reminder in &found {
        client.delete(&format!("{PATH}/{}", reminder.id)).await?;
    }
    if client.json { Ok(()) } else { output::print_line(&format!("Removed {removed}")) }
}
