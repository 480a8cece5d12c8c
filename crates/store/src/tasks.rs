//! Tasks of users. Every change is recorded as an undo step.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::UserId;
use model::due::DueDate;
use model::reminder::Reminder;
use model::task::{Priority, Task, TaskChange, TaskChangeKind, TaskFilter, TaskStatus};
use uuid::Uuid;

use crate::conn::{Arg, Conn, DbRow, Statement, args};
use crate::page::{Cursor, Page};
use crate::quotas::{self, RowQuota};
use crate::reminders::FollowedReminders;
use crate::undo::UndoStep;
use crate::{Error, Result, due, reminders, task_index, task_sort};

const COLUMNS: &str = "id, title, description, status, priority, due_date, recurrence, tags, created_at, updated_at, \
     completed_at";

/// Adds a task that [`model::task::TaskDraft::check`] has returned. Fails without a change with
/// [`Error::QuotaReached`] if the owner has too many.
pub async fn create(conn: &mut Conn, step: &mut UndoStep, task: &Task) -> Result<()> {
    quotas::check_new(conn, step.owner(), RowQuota::Tasks).await?;
    add(conn, step, task).await
}

/// Adds a task like [`create`], and its reminder in the same undo step. `zone` is the time zone of the owner. Fails
/// without a change with [`Error::QuotaReached`] if the owner has too many tasks or reminders.
pub async fn create_with_reminder(
    conn: &mut Conn,
    step: &mut UndoStep,
    task: &Task,
    reminder: Option<&Reminder>,
    zone: &TimeZone,
) -> Result<()> {
    if reminder.is_some() {
        quotas::check_new(conn, step.owner(), RowQuota::Reminders).await?;
    }
    create(conn, step, task).await?;
    due::set_zone(conn, step.owner(), task, zone).await?;
    if let Some(reminder) = reminder {
        // An undo of the creation removes it together with the task.
        reminders::add_if_new(conn, step.owner(), reminder, task.created_at).await?;
    }
    Ok(())
}

/// Adds a task without a check of the quota.
pub(crate) async fn add(conn: &mut Conn, step: &mut UndoStep, task: &Task) -> Result<()> {
    put(conn, step.owner(), task).await?;
    step.record(conn, TaskChangeKind::Created, task.id, None, &[]).await
}

/// Returns a task. Fails with [`Error::NotFound`] if it does not exist.
pub async fn get(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Task> {
    select(conn, owner, id, false).await?.ok_or(Error::NotFound)
}

/// Returns one page of the tasks of the owner that match all conditions of the filter, in the order of the filter. Tasks
/// with equal values are ordered by id.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    filter: &TaskFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Task>> {
    let candidates = find_candidates(conn, filter).await?;
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM tasks WHERE ");
    push_filter(&mut select, owner, filter, candidates);
    task_sort::push_page(&mut select, filter.sort, after, limit);
    let rows = conn.all(select).await?;
    let tasks = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(tasks, limit, |task| task_sort::cursor(filter.sort, task)))
}

/// Returns the total number of tasks that the filter selects.
pub async fn count(conn: &mut Conn, owner: UserId, filter: &TaskFilter) -> Result<i64> {
    let candidates = find_candidates(conn, filter).await?;
    let mut select = Statement::default();
    select.push("SELECT COUNT(*) FROM tasks WHERE ");
    push_filter(&mut select, owner, filter, candidates);
    conn.all(select).await?.first().map_or(Ok(0), |row| row.int(0))
}

/// Applies a change and returns the task. Locks it until the transaction ends. A change without effect stores and
/// records nothing. Completing a pending task is recorded as `Completed` and drops its scheduled reminders; any other
/// change is recorded as `Updated` and keeps them. Reminders before the due date move with it, and are dropped if it is
/// removed. Does not create the next task of a recurring one; [`crate::recurring::change`] does. Fails with
/// [`Error::NotFound`] if the task does not exist.
pub async fn change(
    conn: &mut Conn,
    step: &mut UndoStep,
    id: Uuid,
    change: &TaskChange,
    now: Timestamp,
) -> Result<Task> {
    change_with_reminders(conn, step, id, change, now).await.map(|(task, _)| task)
}

/// Applies a change like [`change`]. Also returns the reminders that have moved.
pub(crate) async fn change_with_reminders(
    conn: &mut Conn,
    step: &mut UndoStep,
    id: Uuid,
    change: &TaskChange,
    now: Timestamp,
) -> Result<(Task, FollowedReminders)> {
    let owner = step.owner();
    let before = select(conn, owner, id, true).await?.ok_or(Error::NotFound)?;
    let after = change.apply(&before, now);
    let mut followed = FollowedReminders::default();
    if after != before {
        put(conn, owner, &after).await?;
        let completed = before.status == TaskStatus::Pending && after.status == TaskStatus::Completed;
        let kind = if completed { TaskChangeKind::Completed } else { TaskChangeKind::Updated };
        if completed {
            followed.before = reminders::drop_for_task(conn, owner, id).await?;
        } else if after.due_date != before.due_date {
            followed = reminders::follow_due_date(conn, owner, &after, now).await?;
        }
        step.record(conn, kind, id, Some(&before), &followed.before).await?;
    }
    Ok((after, followed))
}

/// Deletes a task, drops its reminders, and returns it as it was. Fails with [`Error::NotFound`] if it does not exist.
pub async fn delete(conn: &mut Conn, step: &mut UndoStep, id: Uuid) -> Result<Task> {
    let owner = step.owner();
    let before = select(conn, owner, id, true).await?.ok_or(Error::NotFound)?;
    remove(conn, owner, id).await?;
    let dropped = reminders::drop_for_task(conn, owner, id).await?;
    step.record(conn, TaskChangeKind::Deleted, id, Some(&before), &dropped).await?;
    Ok(before)
}

/// Adds a task. Returns false if the owner already has one with this id.
pub(crate) async fn add_if_new(conn: &mut Conn, step: &mut UndoStep, task: &Task) -> Result<bool> {
    let added = conn.run(insert(step.owner(), task, " ON CONFLICT (owner, id) DO NOTHING")?).await? == 1;
    if added {
        step.record(conn, TaskChangeKind::Created, task.id, None, &[]).await?;
    }
    Ok(added)
}

/// Stores a task and replaces the one with the same id, including its times. Records no undo step. A new due time
/// causes a notification, unless it is not after the last change of the task (`updated_at`). An unchanged due time
/// keeps its mark. The occurrences of a new rule cause notifications from now on.
pub(crate) async fn put(conn: &mut Conn, owner: UserId, task: &Task) -> Result<()> {
    let replace = " ON CONFLICT (owner, id) DO UPDATE SET title = excluded.title, description = excluded.description, \
                   status = excluded.status, priority = excluded.priority, due_date = excluded.due_date, \
                   due_at = excluded.due_at, recurrence = excluded.recurrence, tags = excluded.tags, \
                   tag_keys = excluded.tag_keys, title_key = excluded.title_key, search = excluded.search, \
                   created_at = excluded.created_at, updated_at = excluded.updated_at, \
                   completed_at = excluded.completed_at, due_told = CASE WHEN excluded.due_at = tasks.due_at \
                   THEN tasks.due_told ELSE excluded.due_told END, \
                   due_next = CASE WHEN excluded.due_at = tasks.due_at \
                   AND COALESCE(excluded.recurrence, '') = COALESCE(tasks.recurrence, '') \
                   THEN tasks.due_next ELSE excluded.due_next END";
    conn.run_later(insert(owner, task, replace)?).await
}

/// Returns the statement that inserts a task. `on_conflict` is the SQL clause for an existing id. A due time that is not
/// after the last change of the task counts as notified. Fails with [`Error::Corrupt`] if the tags cannot be encoded.
fn insert<'a>(owner: UserId, task: &'a Task, on_conflict: &'static str) -> Result<Statement<'a>> {
    let tags = serde_json::to_string(&task.tags).map_err(|error| Error::Corrupt(error.to_string()))?;
    let due_at = task.due_date.as_ref().and_then(DueDate::timestamp);
    let notified = due_at.filter(|at| *at <= task.updated_at);
    // The notifier skips the occurrences that count as notified.
    let due_next = due_at.filter(|_| notified.is_none() || task.recurrence.is_some());
    let values = args![
        owner,
        task.id,
        task.title.as_str(),
        task.description.as_deref(),
        task.status.as_str(),
        task.priority.as_str(),
        task.due_date.map(|due| due.to_string()),
        due_at,
        task.recurrence.as_deref(),
        tags,
        tag_keys(&task.tags),
        task.title.to_lowercase(),
        search_text(task),
        task.created_at,
        task.updated_at,
        task.completed_at,
        notified,
        due_next,
    ];
    let mut statement = Statement::new(
        "INSERT INTO tasks (owner, id, title, description, status, priority, due_date, due_at, recurrence, tags, \
         tag_keys, title_key, search, created_at, updated_at, completed_at, due_told, due_next) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
        values,
    );
    statement.push(on_conflict);
    Ok(statement)
}

/// Deletes the row of a task.
pub(crate) async fn remove(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<()> {
    conn.run(("DELETE FROM tasks WHERE owner = $1 AND id = $2", args![owner, id])).await.map(drop)
}

/// Returns a task, or `None` if it does not exist. With `lock`, locks the row until the transaction ends. SQLite has
/// only one writer and needs no lock.
pub(crate) async fn select(conn: &mut Conn, owner: UserId, id: Uuid, lock: bool) -> Result<Option<Task>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM tasks WHERE owner = ").bind(owner).push(" AND id = ").bind(id);
    if lock && !conn.is_sqlite() {
        select.push(" FOR UPDATE");
    }
    conn.first(select).await?.as_ref().map(read).transpose()
}

/// Returns the tasks with these ids that exist, in no particular order.
pub(crate) async fn select_several(conn: &mut Conn, owner: UserId, ids: &[Uuid]) -> Result<Vec<Task>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM tasks WHERE owner = ").bind(owner).push(" AND id IN (");
    for (at, id) in ids.iter().enumerate() {
        select.push(if at > 0 { ", " } else { "" }).bind(*id);
    }
    select.push(")");
    conn.all(select).await?.iter().map(read).collect()
}

/// Returns the tasks that may match the text or the reference of the filter, by [`task_index::candidates`]. Returns
/// `None` if there is neither, and for a reference that may be a part of an id.
async fn find_candidates(conn: &mut Conn, filter: &TaskFilter) -> Result<Option<String>> {
    let name = filter.reference.as_ref().filter(|reference| !may_be_id(reference));
    match filter.text.as_ref().or(name) {
        Some(text) => task_index::candidates(conn, &text.to_lowercase()).await,
        None => Ok(None),
    }
}

/// Returns true if the text consists of characters of ids only.
fn may_be_id(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// Adds the conditions that the owner has the task and that the filter matches. With `candidates`, only these tasks are
/// read. All conditions of the filter must match, also all tags. Text is compared ignoring case. `text` matches a part
/// of the title or the description. A reference matches a prefix or a suffix of the id, or a part of the title. `due`
/// never matches a task without a due date. It compares due times with `from_at` and `to_at`, and due days with
/// `from_day` and `to_day`. The start is included and the end is not.
fn push_filter<'a>(select: &mut Statement<'a>, owner: UserId, filter: &'a TaskFilter, candidates: Option<String>) {
    match candidates {
        // The plus prevents SQLite from reading all tasks of the owner by an index.
        Some(rows) => {
            select.push("rowid IN (SELECT value FROM json_each(").bind(rows).push(")) AND +owner = ").bind(owner)
        }
        None => select.push("owner = ").bind(owner),
    };
    if let Some(status) = filter.status {
        select.push(" AND status = ").bind(status.as_str());
    }
    if let Some(priority) = filter.priority {
        select.push(" AND priority = ").bind(priority.as_str());
    }
    for tag in &filter.tags {
        select
            .push(" AND tag_keys LIKE ")
            .bind(contains_pattern(&format!("\n{}\n", tag.to_lowercase())))
            .push(" ESCAPE '\\'");
    }
    if let Some(text) = &filter.text {
        select.push(" AND search LIKE ").bind(contains_pattern(&text.to_lowercase())).push(" ESCAPE '\\'");
    }
    if let Some(reference) = &filter.reference {
        let reference = reference.to_lowercase();
        let name = escape_like(&reference);
        if may_be_id(&reference) {
            select.push(" AND (id LIKE ").bind(format!("{name}%")).push(" ESCAPE '\\'");
            select.push(" OR id LIKE ").bind(format!("%{name}")).push(" ESCAPE '\\'");
            select.push(" OR title_key LIKE ").bind(format!("%{name}%")).push(" ESCAPE '\\')");
        } else {
            // PostgreSQL has an index of `search`.
            select.push(" AND search LIKE ").bind(format!("%{name}%")).push(" ESCAPE '\\'");
            select.push(" AND title_key LIKE ").bind(format!("%{name}%")).push(" ESCAPE '\\'");
        }
    }
    if let Some(period) = &filter.due {
        select.push(" AND due_date IS NOT NULL AND ((due_at IS NULL");
        push_range(select, "due_date", period.from_day.map(|d| d.to_string()), period.to_day.map(|d| d.to_string()));
        select.push(") OR (due_at IS NOT NULL");
        push_range(select, "due_at", period.from_at, period.to_at);
        select.push("))");
    }
}

/// Adds the condition that the column is at least `from` and less than `to`. `None` sets no limit.
fn push_range<'a, T: Into<Arg<'a>>>(select: &mut Statement<'a>, column: &'static str, from: Option<T>, to: Option<T>) {
    if let Some(from) = from {
        select.push(" AND ").push(column).push(" >= ").bind(from);
    }
    if let Some(to) = to {
        select.push(" AND ").push(column).push(" < ").bind(to);
    }
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<Task> {
    let due_date = row.maybe_text(5)?.map(|due| DueDate::parse("due_date", &due, &TimeZone::UTC)).transpose();
    Ok(Task {
        id: row.parsed(0, Uuid::try_parse)?,
        title: row.text(1)?,
        description: row.maybe_text(2)?,
        status: row.parsed(3, |word| TaskStatus::parse("status", word))?,
        priority: row.parsed(4, |word| Priority::parse("priority", word))?,
        due_date: due_date.map_err(|error| Error::Corrupt(error.to_string()))?,
        recurrence: row.maybe_text(6)?,
        tags: row.parsed(7, |json| serde_json::from_str(json))?,
        created_at: row.time(8)?,
        updated_at: row.time(9)?,
        completed_at: row.maybe_time(10)?,
    })
}

/// Returns the title and the description in lower case, for searches.
fn search_text(task: &Task) -> String {
    format!("{}\n{}", task.title, task.description.as_deref().unwrap_or_default()).to_lowercase()
}

/// Returns the tags in lower case, each between line breaks, so that a search finds only complete tags.
fn tag_keys(tags: &[String]) -> String {
    let mut keys = String::from("\n");
    for tag in tags {
        keys.push_str(&tag.to_lowercase());
        keys.push('\n');
    }
    keys
}

/// Returns a LIKE pattern for text that contains `part`.
pub(crate) fn contains_pattern(part: &str) -> String {
    format!("%{}%", escape_like(part))
}

/// Escapes the wildcards of LIKE with backslashes.
pub(crate) fn escape_like(part: &str) -> String {
    part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}
