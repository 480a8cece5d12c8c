//! `adjutant reminders`: list, add, rm.

use std::collections::HashMap;

use api::reminders::{ListReminders, Reminder, ReminderDraft};
use uuid::Uuid;

use super::listing::{self, Named, named, saturating, short, when};
use super::tasks;
use crate::cli::{Global, Reminders};
use crate::client::Client;
use crate::output;

const PATH: &str = "/api/reminders";

pub(crate) async fn run(global: &Global, command: Reminders) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        Reminders::List { status, task, quiet, limit, cursor } => {
            let task_id = match task {
                Some(name) => Some(tasks::resolve(client, &name).await?.id),
                None => None,
            };
            list(client, ListReminders { status, task_id, limit: limit.map(saturating), cursor }, quiet).await
        }
        Reminders::Add { task, at, every, times } => add(client, &task, at, every, times).await,
        Reminders::Rm { reminders } => remove(client, &reminders, global.yes).await,
    }
}

async fn list(client: &Client, list: ListReminders, quiet: bool) -> anyhow::Result<()> {
    let reminders = listing::to_show(client, PATH, list, usize::MAX, quiet, "no reminders").await?;
    let Some(reminders) = reminders else { return Ok(()) };
    let tasks = listing::all(client, "/api/tasks", tasks::every(), usize::MAX).await?;
    let titles = tasks.into_iter().map(|task| (task.id, task.title)).collect();
    let rows: Vec<_> = reminders.iter().map(|reminder| row(reminder, &titles)).collect();
    output::table(&["ID", "TASK", "AT", "REPEATS", "FIRED", "STATUS"], &rows)
}

fn row(reminder: &Reminder, titles: &HashMap<Uuid, String>) -> Vec<String> {
    vec![
        short(reminder.id),
        titles.get(&reminder.task_id).cloned().unwrap_or_else(|| "(deleted)".to_owned()),
        when(reminder.remind_at),
        repeats(reminder).unwrap_or_default(),
        reminder.fired_count.to_string(),
        reminder.status.as_str().to_owned(),
    ]
}

fn repeats(reminder: &Reminder) -> Option<String> {
    let minutes = reminder.repeat_interval_minutes?;
    Some(match reminder.repeat_count {
        Some(count) => format!("every {minutes} min, {count} times"),
        None => format!("every {minutes} min until done"),
    })
}

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
        output::say(&format!("Reminder for '{}' at {}{repeats}", task.title, when(reminder.remind_at)))
    })
}

named!("reminder": Reminder, |it| it.id, format!("{}, {}", when(it.remind_at), it.status.as_str()));

async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let list = ListReminders { status: Some("all".to_owned()), ..ListReminders::default() };
    let known = listing::all(client, PATH, list, usize::MAX).await?;
    let resolve = async |name: &str| listing::one(name, &known, &[Named::has_id, Named::has_part]).cloned();
    let found = listing::each(names, resolve).await?;
    let what = if found.len() == 1 { "the reminder".to_owned() } else { format!("{} reminders", found.len()) };
    output::confirm(&format!("Remove {what}?"), yes)?;
    for reminder in &found {
        client.delete(&format!("{PATH}/{}", reminder.id)).await?;
    }
    if client.json { Ok(()) } else { output::say(&format!("Removed {what}")) }
}
