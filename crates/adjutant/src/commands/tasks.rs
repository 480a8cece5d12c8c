//! `adjutant tasks`: list, add, done, edit, rm, undo.

use api::tasks::{
    ChangeKind, ChangedTask, CompletedTasks, ListTasks, Status, Task, TaskDraft, TaskIds, TaskPatch, Undone,
};

use super::listing::{self, Named, named, or_empty, saturating, short};
use crate::cli::{Details, Global, Tasks};
use crate::client::Client;
use crate::exit::{Code, Exit};
use crate::output;

const PATH: &str = "/api/tasks";

pub(crate) async fn run(global: &Global, command: Tasks) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        Tasks::List { status, priority, due, tag, search, quiet, limit, cursor } => {
            let limit = limit.map(saturating);
            list(client, ListTasks { status, priority, due, tag, q: search, reference: None, limit, cursor }, quiet)
                .await
        }
        Tasks::Add { title, details } => add(client, title, details).await,
        Tasks::Done { tasks } => done(client, &tasks).await,
        Tasks::Edit { task, title, details, status, clear } => {
            edit(client, &task, patch(title, details, status, &clear)).await
        }
        Tasks::Rm { tasks } => remove(client, &tasks, global.yes).await,
        Tasks::Undo => undo(client).await,
    }
}

async fn list(client: &Client, list: ListTasks, quiet: bool) -> anyhow::Result<()> {
    let tasks = listing::to_show(client, PATH, list, usize::MAX, quiet, "no tasks").await?;
    let Some(tasks) = tasks else { return Ok(()) };
    let rows: Vec<_> = tasks.iter().map(row).collect();
    output::table(&["ID", "", "TITLE", "DUE", "PRIORITY", "TAGS"], &rows)
}

fn row(task: &Task) -> Vec<String> {
    let done = if is_open(task) { "☐" } else { "✓" };
    vec![
        short(task.id),
        done.to_owned(),
        task.title.clone(),
        or_empty(task.due_date),
        task.priority.as_str().to_owned(),
        task.tags.join(", "),
    ]
}

async fn add(client: &Client, title: String, details: Details) -> anyhow::Result<()> {
    let Details { description, due: due_date, priority, tag, repeat: recurrence } = details;
    let draft = TaskDraft { title, description, priority, due_date, recurrence, tags: Some(tag) };
    client.post(PATH, &draft).await?.show(|task: Task| {
        let due = or_empty(task.due_date.map(|due| format!(", due {due}")));
        output::say(&format!("Added '{}'{due}", task.title))
    })
}

async fn done(client: &Client, names: &[String]) -> anyhow::Result<()> {
    let tasks = resolve_all(client, names).await?;
    let completed = format!("Completed {}", titles(&tasks));
    if let [task] = tasks.as_slice() {
        let answer = client.post_empty(&format!("{PATH}/{}/complete", task.id)).await?;
        return answer.show(|task: ChangedTask| {
            output::say(&completed)?;
            say_next(&task)
        });
    }
    client.post(&format!("{PATH}/complete"), &ids(&tasks)).await?.show(|answer: CompletedTasks| {
        output::say(&completed)?;
        answer.tasks.iter().try_for_each(say_next)
    })
}

/// Prints when a recurring task that was completed is due again.
fn say_next(changed: &ChangedTask) -> anyhow::Result<()> {
    match &changed.next_task {
        None => Ok(()),
        Some(None) => output::say(&format!("'{}' repeats no more", changed.task.title)),
        Some(Some(next)) => output::say(&format!("'{}' is due again {}", next.title, or_empty(next.due_date))),
    }
}

async fn edit(client: &Client, name: &str, patch: TaskPatch) -> anyhow::Result<()> {
    if patch == TaskPatch::default() {
        return Err(Exit::new(Code::Usage, "nothing to change: give --title, --due, … or --clear").into());
    }
    let task = resolve(client, name).await?;
    client.patch(&format!("{PATH}/{}", task.id), &patch).await?.show(|changed: ChangedTask| {
        output::say(&format!("Updated '{}'", changed.task.title))?;
        say_next(&changed)
    })
}

async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let tasks = resolve_all(client, names).await?;
    output::confirm(&format!("Delete {}?", titles(&tasks)), yes)?;
    match tasks.as_slice() {
        [task] => client.delete(&format!("{PATH}/{}", task.id)).await?,
        several => client.post(&format!("{PATH}/delete"), &ids(several)).await?,
    };
    if client.json {
        return Ok(());
    }
    output::say(&format!("Deleted {}; `adjutant tasks undo` brings it back", titles(&tasks)))
}

/// Returns the body of a request about several tasks, which is one step to undo.
fn ids(tasks: &[Task]) -> TaskIds {
    TaskIds { ids: tasks.iter().map(Named::id).collect() }
}

fn titles(tasks: &[Task]) -> String {
    tasks.iter().map(|task| format!("'{}'", task.title)).collect::<Vec<_>>().join(", ")
}

async fn undo(client: &Client) -> anyhow::Result<()> {
    client.post_empty(&format!("{PATH}/undo")).await?.show(|undone: Undone| {
        let verb = if undone.tasks.len() == 1 { "is" } else { "are" };
        let sentence = match undone.undone {
            ChangeKind::Created => "removed again",
            ChangeKind::Deleted => "back",
            ChangeKind::Completed => "open again",
            ChangeKind::Reminded => "without that reminder",
            ChangeKind::Updated => "as before",
        };
        output::say(&format!("{} {verb} {sentence}", titles(&undone.tasks)))
    })
}

named!("task": Task, |task| task.id, task.title);

async fn resolve_all(client: &Client, names: &[String]) -> anyhow::Result<Vec<Task>> {
    listing::each(names, async |name| resolve(client, name).await).await
}

/// Returns the task with this id, this title, or this part of an id or of a title.
pub(super) async fn resolve(client: &Client, name: &str) -> anyhow::Result<Task> {
    let list = ListTasks { reference: Some(name.to_owned()), ..every() };
    let found = listing::all(client, PATH, list, usize::MAX).await?;
    // From the surest reading to the vaguest.
    let readings: [listing::Reading<Task>; 6] = [
        Named::has_id,
        |task, title| is_open(task) && task.has_title(title),
        Named::has_title,
        Named::has_part,
        |task, part| is_open(task) && task.title.to_lowercase().contains(part),
        |task, part| task.title.to_lowercase().contains(part),
    ];
    listing::one(name, &found, &readings).cloned()
}

fn is_open(task: &Task) -> bool {
    task.status == Status::Pending
}

/// Selects the tasks of every status.
pub(super) fn every() -> ListTasks {
    ListTasks { status: Some("all".to_owned()), ..ListTasks::default() }
}

fn patch(title: Option<String>, details: Details, status: Option<String>, clear: &[String]) -> TaskPatch {
    let Details { description, due, priority, tag, repeat } = details;
    let mut patch = TaskPatch {
        title,
        description: description.map(Some),
        status,
        priority,
        due_date: due.map(Some),
        recurrence: repeat.map(Some),
        tags: Some(tag).filter(|tags| !tags.is_empty()),
    };
    for field in clear {
        match field.as_str() {
            "due" => patch.due_date = Some(None),
            "repeat" => patch.recurrence = Some(None),
            "tags" => patch.tags = Some(Vec::new()),
            _ => patch.description = Some(None),
        }
    }
    patch
}
