//! `adjutant reminders`: list, add, edit, snooze, rm.

use std::collections::HashMap;

use api::reminders::{ListReminders, Reminder, ReminderDraft, ReminderPatch, SnoozeRequest};
use model::words::recurrence_words;
use uuid::Uuid;

use super::listing::{self, Named, limit_param, named, or_empty, short_id, time_in_words};
use super::{joined, tasks};
use crate::cli::{GlobalOptions, ReminderRepetition, RemindersCommand};
use crate::client::Client;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

pub(super) const PATH: &str = "/api/reminders";

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
        RemindersCommand::Add { task, at, before, repetition } => {
            let ReminderRepetition { every, recurrence, times } = repetition;
            let draft = ReminderDraft {
                task_id: String::new(),
                remind_at: joined(&at),
                before_minutes: before,
                recurrence,
                repeat_interval_minutes: every,
                repeat_count: times,
            };
            add(client, &task, draft).await
        }
        RemindersCommand::Edit { reminder, at, before, repetition, once } => {
            let ReminderRepetition { every, recurrence, times } = repetition;
            let patch = ReminderPatch {
                remind_at: at,
                before_minutes: before,
                recurrence: recurrence.map(Some).or(once.then_some(None)),
                repeat_interval_minutes: every.map(Some).or(once.then_some(None)),
                repeat_count: times.map(Some),
            };
            edit(client, &reminder, patch).await
        }
        RemindersCommand::Snooze { reminder, until } => snooze(client, &reminder, until.join(" ")).await,
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
    output::print_table(&["ID", "TASK", "NEXT", "REPEATS", "BEFORE", "FIRED", "STATUS"], &rows)
}

/// Returns the row of a reminder in a table: short id, task, next time or else first time, repetition, time before the due
/// date, number of notifications sent, and status. `titles` are the titles of tasks by id; a missing task is shown as deleted.
fn row(reminder: &Reminder, titles: &HashMap<Uuid, String>) -> Vec<String> {
    vec![
        short_id(reminder.id),
        titles.get(&reminder.task_id).cloned().unwrap_or_else(|| "(deleted)".to_owned()),
        time_in_words(reminder.next_at.unwrap_or(reminder.remind_at)),
        repeats(reminder).unwrap_or_default(),
        or_empty(reminder.before_minutes.map(before)),
        reminder.fired_count.to_string(),
        reminder.status.as_str().to_owned(),
    ]
}

/// Describes the repetition, or returns none if the reminder does not repeat.
fn repeats(reminder: &Reminder) -> Option<String> {
    let (rule, end) = match (&reminder.recurrence, reminder.repeat_interval_minutes) {
        (Some(rule), _) => (recurrence_words(rule), ""),
        (None, Some(minutes)) => (format!("every {minutes} min"), " until done"),
        (None, None) => return None,
    };
    Some(match reminder.repeat_count {
        Some(count) => format!("{rule}, {count} times"),
        None => format!("{rule}{end}"),
    })
}

/// Returns a reminder in one line: its next or only time, its repetition and its distance to the due date.
pub(super) fn summary(reminder: &Reminder) -> String {
    let time = time_in_words(reminder.next_at.unwrap_or(reminder.remind_at));
    let repeats = repeats(reminder).map(|repeats| format!(", {repeats}")).unwrap_or_default();
    let before = reminder.before_minutes.map(|minutes| format!(", {} before the due date", before(minutes)));
    format!("{time}{repeats}{}", before.unwrap_or_default())
}

/// Prints a note if no server runs, because nothing rings then.
pub(super) fn note_without_server(client: &Client) {
    if !client.has_server() {
        output::note("no server is running; reminders ring only while one does: start it with `adjutant serve`");
    }
}

/// Formats the minutes before a due date: whole days, whole hours, or minutes.
fn before(minutes: i64) -> String {
    match minutes {
        0 => "0 min".to_owned(),
        _ if minutes % 1440 == 0 => format!("{} d", minutes / 1440),
        _ if minutes % 60 == 0 => format!("{} h", minutes / 60),
        _ => format!("{minutes} min"),
    }
}

/// Adds a reminder for the task with this name. Prints one line with the title, its time and repetition, or with
/// `--json` the response of the server, which parses the time. Fails if no task matches or several do, or if the server
/// rejects the reminder.
async fn add(client: &Client, task: &str, draft: ReminderDraft) -> anyhow::Result<()> {
    let task = tasks::resolve(client, task).await?;
    let draft = ReminderDraft { task_id: task.id.to_string(), ..draft };
    client.post(PATH, &draft).await?.show(|reminder: Reminder| {
        output::print_line(&format!("Added a reminder for '{}' {}", task.title, times(&reminder)))?;
        note_without_server(client);
        Ok(())
    })
}

/// Changes a reminder. Prints one line with its time and repetition, or with `--json` the response of the server. Fails
/// with a usage error if the patch is empty. Also fails if no reminder matches or several do, or if the server rejects
/// the patch.
async fn edit(client: &Client, name: &str, patch: ReminderPatch) -> anyhow::Result<()> {
    if patch.is_empty() {
        let message = "nothing to change: give --at, --before, --every, --recurrence, --times or --once";
        return Err(ExitError::new(ExitStatus::Usage, message).into());
    }
    let found = resolve(client, &[name.to_owned()]).await?;
    for reminder in found {
        client.patch(&format!("{PATH}/{}", reminder.id), &patch).await?.show(|reminder: Reminder| {
            output::print_line(&format!("Changed the reminder to one {}", times(&reminder)))
        })?;
    }
    Ok(())
}

/// Moves the next notification of a reminder. Prints one line with the time, or with `--json` the response of the server.
/// Fails if no reminder matches or several do, or if the server rejects the time.
async fn snooze(client: &Client, name: &str, until: String) -> anyhow::Result<()> {
    for reminder in resolve(client, &[name.to_owned()]).await? {
        let request = SnoozeRequest { until: until.clone() };
        client.post(&format!("{PATH}/{}/snooze", reminder.id), &request).await?.show(|reminder: Reminder| {
            output::print_line(&format!("Snoozed the reminder until {}", or_empty(reminder.next_at.map(time_in_words))))
        })?;
    }
    Ok(())
}

/// Describes the next time of a reminder and its repetition.
fn times(reminder: &Reminder) -> String {
    let repeats = repeats(reminder).map(|repeats| format!(", {repeats}")).unwrap_or_default();
    let relative = reminder.before_minutes.map(|minutes| format!(", {} before the due date", before(minutes)));
    let next = or_empty(reminder.next_at.map(time_in_words));
    format!("for {next}{repeats}{}", relative.unwrap_or_default())
}

/// Returns the reminders of any status that the names select: ids, or the beginning or end of an id. Fails if a name
/// matches none or several.
async fn resolve(client: &Client, names: &[String]) -> anyhow::Result<Vec<Reminder>> {
    let list = ListReminders { status: Some("all".to_owned()), ..ListReminders::default() };
    let known = listing::all_items(client, PATH, list, usize::MAX).await?;
    let resolve = async |name: &str| listing::select_one(name, &known, &[Named::has_id, Named::has_part]).cloned();
    listing::resolve_each(names, resolve).await
}

named!("reminder": Reminder, |it| it.id, format!("{}, {}", time_in_words(it.remind_at), it.status.as_str()), short_id(it.id));

/// Removes reminders of any status, selected by id or by the beginning or end of an id, after a confirmation, unless
/// `yes` is set. Fails and removes none if a name cannot be resolved or the removal is not confirmed. Stops at the
/// first request that fails; the reminders before it stay removed, and nothing is printed. Otherwise prints one line
/// with their number, or nothing with `--json`.
async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let found = resolve(client, names).await?;
    let removed = if found.len() == 1 { "the reminder".to_owned() } else { format!("{} reminders", found.len()) };
    output::confirm(&format!("Remove {removed}?"), yes)?;
    for reminder in &found {
        client.delete(&format!("{PATH}/{}", reminder.id)).await?;
    }
    if client.json { Ok(()) } else { output::print_line(&format!("Removed {removed}")) }
}
