//! `adjutant tasks`: list, add, done, edit, rm, undo.

use api::tasks::{
    ChangedTask, CompletedTasks, ListTasks, Task, TaskChangeKind, TaskDraft, TaskIds, TaskPatch, TaskStatus,
    UndoneChange,
};

use super::listing::{self, Named, limit_param, named, or_empty, short_id};
use crate::cli::{GlobalOptions, TaskDetails, TasksCommand};
use crate::client::Client;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

const PATH: &str = "/api/tasks";

/// Connects and runs one subcommand. Fails if the connection or a request fails, or if a name matches no task or
/// several.
pub(crate) async fn run(global: &GlobalOptions, command: TasksCommand) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        TasksCommand::List { status, priority, due, tag, search, quiet, limit, cursor } => {
            let limit = limit.map(limit_param);
            list(client, ListTasks { status, priority, due, tag, q: search, reference: None, limit, cursor }, quiet)
                .await
        }
        TasksCommand::Add { title, details } => add(client, title, details).await,
        TasksCommand::Done { tasks } => done(client, &tasks).await,
        TasksCommand::Edit { task, title, details, status, clear } => {
            edit(client, &task, patch(title, details, status, &clear)).await
        }
        TasksCommand::Rm { tasks } => remove(client, &tasks, global.yes).await,
        TasksCommand::Undo => undo(client).await,
    }
}

/// Prints tasks as a table, as ids (`quiet`), or as JSON.
async fn list(client: &Client, list: ListTasks, quiet: bool) -> anyhow::Result<()> {
    let tasks = listing::items_to_show(client, PATH, list, usize::MAX, quiet, "no tasks").await?;
    let Some(tasks) = tasks else { return Ok(()) };
    let rows: Vec<_> = tasks.iter().map(row).collect();
    output::print_table(&["ID", "", "TITLE", "DUE", "PRIORITY", "TAGS"], &rows)
}

/// Returns the row of a task in a table: short id, `☐` if it is pending, else `✓`, title, due date, priority and tags.
fn row(task: &Task) -> Vec<String> {
    let done = if is_open(task) { "☐" } else { "✓" };
    vec![
        short_id(task.id),
        done.to_owned(),
        task.title.clone(),
        or_empty(task.due_date),
        task.priority.as_str().to_owned(),
        task.tags.join(", "),
    ]
}

/// Adds a task and prints one line with its title and due date, or with `--json` the response of the server. Fails if
/// the server rejects the task.
async fn add(client: &Client, title: String, details: TaskDetails) -> anyhow::Result<()> {
    let TaskDetails { description, due: due_date, priority, tag, repeat: recurrence } = details;
    let draft =
        TaskDraft { title, description, priority, due_date, recurrence, tags: Some(tag), ..TaskDraft::default() };
    client.post(PATH, &draft).await?.show(|task: Task| {
        let due = or_empty(task.due_date.map(|due| format!(", due {due}")));
        output::print_line(&format!("Added '{}'{due}", task.title))
    })
}

/// Completes tasks, several in one request. Prints one line with all titles, then one line for each recurring task with
/// its next due date, or that it has no further occurrence. With `--json`, prints only the response of the server.
/// Names of the same task count once. Fails and completes none if a name cannot be resolved or the server refuses.
async fn done(client: &Client, names: &[String]) -> anyhow::Result<()> {
    let tasks = resolve_all(client, names).await?;
    let completed = format!("Completed {}", titles(&tasks));
    if let [task] = tasks.as_slice() {
        let answer = client.post_empty(&format!("{PATH}/{}/complete", task.id)).await?;
        return answer.show(|task: ChangedTask| {
            output::print_line(&completed)?;
            print_next(&task)
        });
    }
    client.post(&format!("{PATH}/complete"), &ids(&tasks)).await?.show(|answer: CompletedTasks| {
        output::print_line(&completed)?;
        answer.tasks.iter().try_for_each(print_next)
    })
}

/// Prints the next due date of a completed recurring task, or that there is none. Prints nothing for other tasks.
fn print_next(changed: &ChangedTask) -> anyhow::Result<()> {
    match &changed.next_task {
        None => Ok(()),
        Some(None) => output::print_line(&format!("'{}' has no further occurrence", changed.task.title)),
        Some(Some(next)) => output::print_line(&format!("'{}' is due again {}", next.title, or_empty(next.due_date))),
    }
}

/// Changes a task. Prints its title, and the next due date if the change completes a recurring task, or with `--json`
/// the response of the server. Fails with a usage error if the patch is empty. Also fails if `name` matches no task or
/// several, or if the server rejects the patch.
async fn edit(client: &Client, name: &str, patch: TaskPatch) -> anyhow::Result<()> {
    if patch == TaskPatch::default() {
        return Err(ExitError::new(ExitStatus::Usage, "nothing to change: give --title, --due, … or --clear").into());
    }
    let task = resolve(client, name).await?;
    client.patch(&format!("{PATH}/{}", task.id), &patch).await?.show(|changed: ChangedTask| {
        output::print_line(&format!("Updated '{}'", changed.task.title))?;
        print_next(&changed)
    })
}

/// Deletes tasks after a confirmation, unless `yes` is set, several in one request. Names of the same task count once.
/// Fails and deletes none if a name cannot be resolved, the deletion is not confirmed or the server refuses. Otherwise
/// prints one line with all titles and a hint to undo, or nothing with `--json`.
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
    output::print_line(&format!(
        "Deleted {}; `adjutant tasks undo` restores {}",
        titles(&tasks),
        if tasks.len() == 1 { "it" } else { "them" }
    ))
}

/// Returns the body of a request for several tasks, which is one undo step.
fn ids(tasks: &[Task]) -> TaskIds {
    TaskIds { ids: tasks.iter().map(Named::id).collect() }
}

fn titles(tasks: &[Task]) -> String {
    tasks.iter().map(|task| format!("'{}'", task.title)).collect::<Vec<_>>().join(", ")
}

/// Undoes the last change. Prints one line with the titles of the affected tasks and the effect, or with `--json` the
/// response of the server. Fails if the server refuses, for example because there is no change to undo.
async fn undo(client: &Client) -> anyhow::Result<()> {
    client.post_empty(&format!("{PATH}/undo")).await?.show(|undone: UndoneChange| {
        let verb = if undone.tasks.len() == 1 { "is" } else { "are" };
        let sentence = match undone.undone {
            TaskChangeKind::Created => "removed again",
            TaskChangeKind::Deleted => "restored",
            TaskChangeKind::Completed => "open again",
            TaskChangeKind::Reminded => "without that reminder",
            TaskChangeKind::Updated | TaskChangeKind::ReminderChanged => "as before",
        };
        output::print_line(&format!("{} {verb} {sentence}", titles(&undone.tasks)))
    })
}

named!("task": Task, |task| task.id, task.title);

async fn resolve_all(client: &Client, names: &[String]) -> anyhow::Result<Vec<Task>> {
    listing::resolve_each(names, async |name| resolve(client, name).await).await
}

/// Returns the task that `name` selects, ignoring case. The first of these kinds of match decides:
///
/// - The id, then the title of an open task, then any title.
/// - The beginning or end of an id, then a part of the title of an open task, then a part of any title.
///
/// Fails if no task matches, or if several match in the same way.
pub(super) async fn resolve(client: &Client, name: &str) -> anyhow::Result<Task> {
    let list = ListTasks { reference: Some(name.to_owned()), ..all_tasks() };
    let found = listing::all_items(client, PATH, list, usize::MAX).await?;
    // From the most to the least specific.
    let matchers: [listing::ItemMatcher<Task>; 6] = [
        Named::has_id,
        |task, title| is_open(task) && task.has_title(title),
        Named::has_title,
        Named::has_part,
        |task, part| is_open(task) && task.title.to_lowercase().contains(part),
        |task, part| task.title.to_lowercase().contains(part),
    ];
    listing::select_one(name, &found, &matchers).cloned()
}

fn is_open(task: &Task) -> bool {
    task.status == TaskStatus::Pending
}

/// Selects tasks of every status.
pub(super) fn all_tasks() -> ListTasks {
    ListTasks { status: Some("all".to_owned()), ..ListTasks::default() }
}

/// Returns the patch for the flags. Absent flags change nothing. The fields in `clear` (`due`, `repeat`, `tags`) are
/// removed, even if a flag sets them; any other name in `clear` removes the description.
fn patch(title: Option<String>, details: TaskDetails, status: Option<String>, clear: &[String]) -> TaskPatch {
    let TaskDetails { description, due, priority, tag, repeat } = details;
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
