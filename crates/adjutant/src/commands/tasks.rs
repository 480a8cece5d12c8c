//! `adjutant tasks`: list, show, add, done, edit, rm, undo.

mod show;

use api::tasks::{
    ChangedTask, CompletedTasks, ListTasks, Priority, Task, TaskChangeKind, TaskDraft, TaskIds, TaskPatch, TaskStatus,
    UndoneChange,
};
use jiff::Zoned;
use model::words::{is_overdue, recurrence_words, short_due_words, short_task_values};

use super::listing::{self, Named, limit_param, local_now, short_id};
use super::reminders;
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
        TasksCommand::List { status, priority, due, tag, search, sort, quiet, limit, cursor } => {
            let limit = limit.map(limit_param);
            // Ids and JSON keep the order of the server.
            let sort = sort.or_else(|| (!quiet && !client.json).then(|| "due".to_owned()));
            let filter = ListTasks { status, priority, due, tag, q: search, sort, reference: None, limit, cursor };
            list(client, filter, quiet).await
        }
        TasksCommand::Show { task } => show::show(client, &task.join(" ")).await,
        TasksCommand::Add { title, details } => add(client, title.join(" "), details).await,
        TasksCommand::Done { tasks } => done(client, &tasks).await,
        TasksCommand::Edit { task, title, details, add_tag, remove_tag, status, clear } => {
            let tags = TagChange { add: add_tag, remove: remove_tag };
            edit(client, &task.join(" "), patch(title, details, status, &clear), &tags).await
        }
        TasksCommand::Rm { tasks } => remove(client, &tasks, global.yes).await,
        TasksCommand::Undo => undo(client).await,
    }
}

/// The columns of the due date and the priority.
const DUE_COLUMN: usize = 3;
const PRIORITY_COLUMN: usize = 5;

/// Prints tasks as a table, as ids (`quiet`), or as JSON. In the table, overdue dates and high priorities are marked.
async fn list(client: &Client, list: ListTasks, quiet: bool) -> anyhow::Result<()> {
    let tasks = listing::items_to_show(client, PATH, list, usize::MAX, quiet, "no tasks").await?;
    let Some(tasks) = tasks else { return Ok(()) };
    let now = local_now();
    let rows: Vec<_> = tasks.iter().map(|task| row(task, &now)).collect();
    let is_marked = |row: usize, column: usize| match column {
        DUE_COLUMN => is_late(&tasks[row], &now),
        PRIORITY_COLUMN => is_open(&tasks[row]) && tasks[row].priority == Priority::High,
        _ => false,
    };
    output::print_marked_table(&["ID", "", "TITLE", "DUE", "REPEATS", "PRIORITY", "TAGS"], &rows, is_marked)
}

/// Returns true if an open task is overdue.
fn is_late(task: &Task, now: &Zoned) -> bool {
    is_open(task) && task.due_date.as_ref().is_some_and(|due| is_overdue(due, now))
}

/// Returns the row of a task in a table: short id, `☐` if it is pending, else `✓`, title, due date and repetition in
/// words, priority and tags. The due date of an overdue task says so.
fn row(task: &Task, now: &Zoned) -> Vec<String> {
    let lead = if is_late(task, now) { "overdue since " } else { "" };
    let due = task.due_date.as_ref().map(|due| format!("{lead}{}", short_due_words(due, now)));
    let done = if is_open(task) { "☐" } else { "✓" };
    vec![
        short_id(task.id),
        done.to_owned(),
        task.title.clone(),
        due.unwrap_or_default(),
        task.recurrence.as_deref().map(recurrence_words).unwrap_or_default(),
        task.priority.as_str().to_owned(),
        task.tags.join(", "),
    ]
}

/// Adds a task and prints one line with its title and the values that were set, or with `--json` the response of the
/// server. Prints a note if the task is due at a time and no server runs. Fails if the server rejects the task.
async fn add(client: &Client, title: String, details: TaskDetails) -> anyhow::Result<()> {
    let TaskDetails { description, due: due_date, priority, tag, repeat: recurrence } = details;
    let draft =
        TaskDraft { title, description, priority, due_date, recurrence, tags: Some(tag), ..TaskDraft::default() };
    client.post(PATH, &draft).await?.show(|task: Task| {
        output::print_line(&format!("Added '{}'{}", task.title, values(&task)))?;
        if task.due_date.is_some_and(|due| due.timestamp().is_some_and(|at| at > local_now().timestamp())) {
            reminders::note_without_server(client);
        }
        Ok(())
    })
}

/// Returns the values of a task for the end of a line: ", due tomorrow at 3pm, every week".
fn values(task: &Task) -> String {
    short_task_values(task, &local_now()).iter().map(|value| format!(", {value}")).collect()
}

/// Completes tasks, several in one request. Names those that were done already. Prints one line with all titles, then one line for each recurring task with
/// its next due date, or that it has no further occurrence. With `--json`, prints only the response of the server.
/// Names of the same task count once. Fails and completes none if a name cannot be resolved or the server refuses.
async fn done(client: &Client, names: &[String]) -> anyhow::Result<()> {
    let tasks = resolve_all(client, names).await?;
    let open: Vec<_> = tasks.iter().filter(|task| is_open(task)).cloned().collect();
    let done: Vec<_> = tasks.iter().filter(|task| !is_open(task)).cloned().collect();
    let mut lines = Vec::new();
    if !open.is_empty() {
        lines.push(format!("Completed {}", titles(&open)));
    }
    if !done.is_empty() {
        lines.push(format!("{} {} done already", titles(&done), if done.len() == 1 { "was" } else { "were" }));
    }
    let completed = lines.join("\n");
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
        Some(Some(next)) => {
            let due = next.due_date.map(|due| short_due_words(&due, &local_now())).unwrap_or_default();
            output::print_line(&format!("'{}' is due again {due}", next.title))
        }
    }
}

/// Tags to add and to remove.
struct TagChange {
    add: Vec<String>,
    remove: Vec<String>,
}

impl TagChange {
    fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Returns the tags after the change. Case and a leading `#` are ignored.
    fn apply(&self, tags: &[String]) -> Vec<String> {
        let key = |tag: &str| tag.trim().trim_start_matches('#').to_lowercase();
        let is_removed = |tag: &&String| self.remove.iter().any(|removed| key(removed) == key(tag));
        tags.iter().filter(|tag| !is_removed(tag)).chain(&self.add).cloned().collect()
    }
}

/// Changes a task. Prints its title and values, and the next due date if the change completes a recurring task, or with `--json`
/// the response of the server. Fails with a usage error if the patch is empty. Also fails if `name` matches no task or
/// several, or if the server rejects the patch.
async fn edit(client: &Client, name: &str, mut patch: TaskPatch, tags: &TagChange) -> anyhow::Result<()> {
    if patch == TaskPatch::default() && tags.is_empty() {
        return Err(ExitError::new(ExitStatus::Usage, "nothing to change: give --title, --due, … or --clear").into());
    }
    let task = resolve(client, name).await?;
    if !tags.is_empty() {
        patch.tags = Some(tags.apply(patch.tags.as_deref().unwrap_or(&task.tags)));
    }
    client.patch(&format!("{PATH}/{}", task.id), &patch).await?.show(|changed: ChangedTask| {
        output::print_line(&format!("Updated '{}'{}", changed.task.title, values(&changed.task)))?;
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

impl Named for Task {
    const KIND: &str = "task";

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn details(&self) -> String {
        let status = if is_open(self) { "" } else { ", completed" };
        format!("{}{status}{}", self.title, values(self))
    }
}

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
    listing::select_or_suggest(client, PATH, name, (&found, &matchers), all_tasks()).await
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
