//! `adjutant reminders`: list, add, rm.

use std::collections::HashMap;

use reqwest::Method;
use serde_json::{Map, Value};

use super::listing::{self, query, short, text, when};
use super::tasks;
use crate::cli::{Global, Reminders};
use crate::client::Client;
use crate::output;

pub(crate) async fn run(global: &Global, command: Reminders) -> anyhow::Result<()> {
    let client = Client::connect(global).await?;
    match command {
        Reminders::List { status, task, quiet, limit, cursor } => {
            let task = match task {
                Some(name) => Some(text(&tasks::resolve(&client, &name).await?, "id").to_owned()),
                None => None,
            };
            let filters = [("status", status), ("task_id", task), ("cursor", cursor)];
            let query = query(filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
            list(&client, global, &query, quiet, limit).await
        }
        Reminders::Add { task, at, every, times } => add(&client, global, &task, at, every, times).await,
        Reminders::Rm { reminders } => remove(&client, global, &reminders).await,
    }
}

async fn list(client: &Client, global: &Global, query: &str, quiet: bool, limit: Option<usize>) -> anyhow::Result<()> {
    if global.json {
        let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        return output::say(&client.get(&format!("/api/reminders?{query}{limit}")).await?.text());
    }
    let reminders = all(client, query, limit.unwrap_or(usize::MAX)).await?;
    if quiet {
        return reminders.iter().try_for_each(|reminder| output::say(text(reminder, "id")));
    }
    if reminders.is_empty() {
        output::note("no reminders");
        return Ok(());
    }
    let titles = titles(client).await?;
    let rows: Vec<_> = reminders.iter().map(|reminder| row(reminder, &titles)).collect();
    output::table(&["ID", "TASK", "AT", "REPEATS", "FIRED", "STATUS"], &rows)
}

async fn all(client: &Client, query: &str, limit: usize) -> anyhow::Result<Vec<Value>> {
    listing::all(client, "/api/reminders", "reminders", query, limit).await
}

/// What the tasks are called.
async fn titles(client: &Client) -> anyhow::Result<HashMap<String, String>> {
    let tasks = listing::all(client, "/api/tasks", "tasks", "status=all", usize::MAX).await?;
    Ok(tasks.iter().map(|task| (text(task, "id").to_owned(), text(task, "title").to_owned())).collect())
}

fn row(reminder: &Value, titles: &HashMap<String, String>) -> Vec<String> {
    vec![
        short(text(reminder, "id")).to_owned(),
        titles.get(text(reminder, "task_id")).cloned().unwrap_or_else(|| "(deleted)".to_owned()),
        when(&reminder["remind_at"]),
        repeats(reminder),
        reminder["fired_count"].to_string(),
        text(reminder, "status").to_owned(),
    ]
}

fn repeats(reminder: &Value) -> String {
    match (reminder["repeat_interval_minutes"].as_i64(), reminder["repeat_count"].as_i64()) {
        (Some(minutes), Some(count)) => format!("every {minutes} min, {count} times"),
        (Some(minutes), None) => format!("every {minutes} min until done"),
        _ => String::new(),
    }
}

async fn add(
    client: &Client,
    global: &Global,
    task: &str,
    at: String,
    every: Option<i64>,
    times: Option<i64>,
) -> anyhow::Result<()> {
    let task = tasks::resolve(client, task).await?;
    let mut draft = Map::new();
    draft.insert("task_id".to_owned(), task["id"].clone());
    draft.insert("remind_at".to_owned(), at.into());
    for (name, number) in [("repeat_interval_minutes", every), ("repeat_count", times)] {
        draft.extend(number.map(|number| (name.to_owned(), number.into())));
    }
    let answer = client.post("/api/reminders", &Value::Object(draft)).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let reminder = answer.json()?;
    let repeats = Some(repeats(&reminder)).filter(|repeats| !repeats.is_empty());
    let repeats = repeats.map(|repeats| format!(", {repeats}")).unwrap_or_default();
    output::say(&format!("Reminder for '{}' at {}{repeats}", text(&task, "title"), when(&reminder["remind_at"])))
}

async fn remove(client: &Client, global: &Global, names: &[String]) -> anyhow::Result<()> {
    let known = all(client, "status=all", usize::MAX).await?;
    let mut found: Vec<Value> = Vec::new();
    for name in names {
        let wanted = name.trim().to_lowercase();
        let id = |reminder: &Value| text(reminder, "id") == wanted;
        let part = |reminder: &Value| listing::is_part(text(reminder, "id"), &wanted);
        let title = |reminder: &Value| format!("{}, {}", when(&reminder["remind_at"]), text(reminder, "status"));
        let reminder = listing::one("reminder", name, &known, &[&id, &part], title)?;
        if !found.contains(&reminder) {
            found.push(reminder);
        }
    }
    let what = if found.len() == 1 { "the reminder".to_owned() } else { format!("{} reminders", found.len()) };
    output::confirm(&format!("Remove {what}?"), global.yes)?;
    for reminder in &found {
        client.send(Method::DELETE, &format!("/api/reminders/{}", text(reminder, "id")), None).await?;
    }
    if global.json { Ok(()) } else { output::say(&format!("Removed {what}")) }
}
