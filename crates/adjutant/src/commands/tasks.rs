//! `adjutant tasks`: list, add, done, edit, rm, undo.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::listing::{self, query, short, text};
use crate::cli::{Details, Global, Tasks};
use crate::client::Client;
use crate::exit::{Code, Exit};
use crate::output;

pub(crate) async fn run(global: &Global, command: Tasks) -> anyhow::Result<()> {
    let client = Client::connect(global).await?;
    match command {
        Tasks::List { status, priority, due, tag, search, quiet, limit, cursor } => {
            let filters = [
                ("status", status),
                ("priority", priority),
                ("due", due),
                ("tag", tag),
                ("q", search),
                ("cursor", cursor),
            ];
            let query = query(filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
            list(&client, global, &query, quiet, limit).await
        }
        Tasks::Add { title, details } => add(&client, global, title, details).await,
        Tasks::Done { tasks } => done(&client, global, &tasks).await,
        Tasks::Edit { task, title, details, status, clear } => {
            let mut changes = fields(title, details);
            changes.extend(status.map(|status| ("status".to_owned(), status.into())));
            for field in clear {
                let (name, value) = emptied(&field);
                changes.insert(name.to_owned(), value);
            }
            edit(&client, global, &task, changes).await
        }
        Tasks::Rm { tasks } => remove(&client, global, &tasks).await,
        Tasks::Undo => undo(&client, global).await,
    }
}

async fn list(client: &Client, global: &Global, query: &str, quiet: bool, limit: Option<usize>) -> anyhow::Result<()> {
    if global.json {
        let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        let answer = client.get(&format!("/api/tasks?{query}{limit}")).await?;
        return output::say(&answer.text());
    }
    let tasks = all(client, query, limit.unwrap_or(usize::MAX)).await?;
    if quiet {
        return tasks.iter().try_for_each(|task| output::say(text(task, "id")));
    }
    if tasks.is_empty() {
        output::note("no tasks");
        return Ok(());
    }
    let rows: Vec<_> = tasks.iter().map(row).collect();
    output::table(&["ID", "", "TITLE", "DUE", "PRIORITY", "TAGS"], &rows)
}

/// Every page, up to `limit` tasks.
async fn all(client: &Client, query: &str, limit: usize) -> anyhow::Result<Vec<Value>> {
    listing::all(client, "/api/tasks", "tasks", query, limit).await
}

fn row(task: &Value) -> Vec<String> {
    let tags: Vec<_> = task["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let done = if text(task, "status") == "completed" { "✓" } else { "☐" };
    vec![
        short(text(task, "id")).to_owned(),
        done.to_owned(),
        text(task, "title").to_owned(),
        text(task, "due_date").to_owned(),
        text(task, "priority").to_owned(),
        tags.join(", "),
    ]
}

async fn add(client: &Client, global: &Global, title: String, details: Details) -> anyhow::Result<()> {
    let answer = client.post("/api/tasks", &Value::Object(fields(Some(title), details))).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let task = answer.json()?;
    let due = task["due_date"].as_str().map(|due| format!(", due {due}")).unwrap_or_default();
    output::say(&format!("Added '{}'{due}", text(&task, "title")))
}

async fn done(client: &Client, global: &Global, names: &[String]) -> anyhow::Result<()> {
    let tasks = resolve_all(client, names).await?;
    let answer = match tasks.as_slice() {
        [task] => client.send(Method::POST, &format!("/api/tasks/{}/complete", text(task, "id")), None).await?,
        several => client.post("/api/tasks/complete", &ids(several)).await?,
    };
    if global.json {
        return output::say(&answer.text());
    }
    output::say(&format!("Completed {}", titles(&tasks)))?;
    let answer = answer.json()?;
    match answer["tasks"].as_array() {
        Some(several) => several.iter().try_for_each(say_next),
        None => say_next(&answer),
    }
}

/// When a recurring task that was completed comes again.
fn say_next(task: &Value) -> anyhow::Result<()> {
    match task.get("next_task") {
        None => Ok(()),
        Some(Value::Null) => output::say(&format!("'{}' repeats no more", text(task, "title"))),
        Some(next) => output::say(&format!("'{}' is due again {}", text(next, "title"), text(next, "due_date"))),
    }
}

async fn edit(client: &Client, global: &Global, name: &str, changes: Map<String, Value>) -> anyhow::Result<()> {
    if changes.is_empty() {
        return Err(Exit::new(Code::Usage, "nothing to change: give --title, --due, … or --clear").into());
    }
    let task = resolve(client, name).await?;
    let path = format!("/api/tasks/{}", text(&task, "id"));
    let answer = client.send(Method::PATCH, &path, Some(&Value::Object(changes))).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let task = answer.json()?;
    output::say(&format!("Updated '{}'", text(&task, "title")))?;
    say_next(&task)
}

async fn remove(client: &Client, global: &Global, names: &[String]) -> anyhow::Result<()> {
    let tasks = resolve_all(client, names).await?;
    output::confirm(&format!("Delete {}?", titles(&tasks)), global.yes)?;
    match tasks.as_slice() {
        [task] => client.send(Method::DELETE, &format!("/api/tasks/{}", text(task, "id")), None).await?,
        several => client.post("/api/tasks/delete", &ids(several)).await?,
    };
    if global.json {
        return Ok(());
    }
    output::say(&format!("Deleted {}; `adjutant tasks undo` brings it back", titles(&tasks)))
}

/// Several tasks in one request are one step to undo.
fn ids(tasks: &[Value]) -> Value {
    json!({"ids": tasks.iter().map(|task| &task["id"]).collect::<Vec<_>>()})
}

fn titles(tasks: &[Value]) -> String {
    tasks.iter().map(|task| format!("'{}'", text(task, "title"))).collect::<Vec<_>>().join(", ")
}

async fn undo(client: &Client, global: &Global) -> anyhow::Result<()> {
    let answer = client.send(Method::POST, "/api/tasks/undo", None).await?;
    if global.json {
        return output::say(&answer.text());
    }
    let undone = answer.json()?;
    let tasks = undone["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let verb = if tasks.len() == 1 { "is" } else { "are" };
    let sentence = match undone["undone"].as_str().unwrap_or_default() {
        "created" => "removed again",
        "deleted" => "back",
        "completed" => "open again",
        "reminded" => "without that reminder",
        _ => "as before",
    };
    output::say(&format!("{} {verb} {sentence}", titles(tasks)))
}

async fn resolve_all(client: &Client, names: &[String]) -> anyhow::Result<Vec<Value>> {
    let mut tasks: Vec<Value> = Vec::new();
    for name in names {
        let task = resolve(client, name).await?;
        if !tasks.iter().any(|known| known["id"] == task["id"]) {
            tasks.push(task);
        }
    }
    Ok(tasks)
}

/// The one task that a person means by an id, a part of an id, or a title.
pub(super) async fn resolve(client: &Client, name: &str) -> anyhow::Result<Value> {
    let found = all(client, &query([("status", "all"), ("ref", name)]), usize::MAX).await?;
    let wanted = name.trim().to_lowercase();
    let id = |task: &Value| text(task, "id") == wanted;
    let part_of_id = |task: &Value| text(task, "id").starts_with(&wanted) || text(task, "id").ends_with(&wanted);
    let title = |task: &Value| text(task, "title").to_lowercase() == wanted;
    let open_title = |task: &Value| title(task) && text(task, "status") == "pending";
    let open_part =
        |task: &Value| text(task, "title").to_lowercase().contains(&wanted) && text(task, "status") == "pending";
    let part = |task: &Value| text(task, "title").to_lowercase().contains(&wanted);
    // From the surest reading to the vaguest.
    let readings: [listing::Reading<'_>; 6] = [&id, &open_title, &title, &part_of_id, &open_part, &part];
    listing::one("task", name, &found, &readings, |task| text(task, "title").to_owned())
}

fn fields(title: Option<String>, details: Details) -> Map<String, Value> {
    let Details { description, due, priority, tag, repeat } = details;
    let mut fields = Map::new();
    let texts = [
        ("title", title),
        ("description", description),
        ("due_date", due),
        ("priority", priority),
        ("recurrence", repeat),
    ];
    for (name, value) in texts {
        fields.extend(value.map(|value| (name.to_owned(), value.into())));
    }
    if !tag.is_empty() {
        fields.insert("tags".to_owned(), tag.into());
    }
    fields
}

fn emptied(field: &str) -> (&'static str, Value) {
    match field {
        "due" => ("due_date", Value::Null),
        "repeat" => ("recurrence", Value::Null),
        "tags" => ("tags", json!([])),
        _ => ("description", Value::Null),
    }
}
