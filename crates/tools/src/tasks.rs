//! The handlers of the tools for tasks. They validate all arguments before they change anything. Like all handlers,
//! they fail with a message for the caller, or if the database fails.

use model::Invalid;
use model::task::{ChangedTask, Task, TaskChange, TaskDraft, TaskFilter, TaskFilterDraft, TaskPatch, TaskSort};
use serde::Deserialize;
use serde_json::{Value, json};
use store::Conn;
use store::page::Cursor;
use store::undo::UndoStep;
use uuid::Uuid;

use crate::answer::{Error, NOT_FOUND, ToolFailure};
use crate::catalog::{UNDO, task_id_arguments, tool_name};
use crate::{BuiltInCall, CallTarget, HeldCall, ToolAnswer, ToolArguments, ToolKind, ToolOutcome};

/// The largest page of a list.
pub(crate) const MAX_LIST_LIMIT: i64 = 200;
/// The maximum number of tasks that one call changes.
pub(crate) const MAX_BULK_TASKS: usize = 1000;
/// The size of a page if the call gives none.
const DEFAULT_LIST_LIMIT: i64 = 100;

/// Adds one task, with a reminder if a time for it is given. Both are one undo step. The answer contains the reminder.
/// Fails if a field is invalid.
pub(crate) async fn add(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let draft: TaskDraft = call.parse_arguments()?;
    let (task, reminder) =
        draft.check_with_reminder(call.tools.limits, &call.tools.clock, &call.user, conn.reminder_time())?;
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    let zone = &call.user.time_zone;
    store::tasks::create_with_reminder(conn, &mut step, &task, reminder.as_ref(), zone).await?;
    let mut data = task_data(&task);
    if let Some(reminder) = reminder {
        data["reminder"] = json!(reminder);
    }
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Returns one page of tasks, [`DEFAULT_LIST_LIMIT`] by default and at most [`MAX_LIST_LIMIT`]. Without a status, only
/// open tasks are listed. `count` is the size of the page. `total` and `next_cursor` are set only if more tasks follow.
/// Fails if a filter, the limit or the cursor is invalid, or if an argument is unknown.
pub(crate) async fn list(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ListArguments {
        status: Option<String>,
        priority: Option<String>,
        due_date_filter: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        query: Option<String>,
        sort: Option<String>,
        limit: Option<i64>,
        cursor: Option<String>,
    }
    let ListArguments { status, priority, due_date_filter, tags, query, sort, limit, cursor } =
        call.parse_arguments()?;
    let mut filter = FilterArguments { status, priority, due_date_filter, tags, query }.check(&call)?;
    let sort = sort.filter(|sort| !sort.trim().is_empty());
    filter.sort = sort.map_or(Ok(TaskSort::Due), |sort| TaskSort::parse("sort", &sort))?;
    let limit = limit.unwrap_or(DEFAULT_LIST_LIMIT);
    if !(1..=MAX_LIST_LIMIT).contains(&limit) {
        let message = format!("must be between 1 and {MAX_LIST_LIMIT}, but is {limit}");
        return Err(Invalid::one("limit", "range", message).into());
    }
    let after = cursor.map(|cursor| Cursor::parse(&cursor)).transpose()?;
    let page = store::tasks::list(conn, call.user.id, &filter, after.as_ref(), limit).await?;
    let mut data = json!({"success": true, "tasks": page.rows, "count": page.rows.len()});
    if let Some(next) = page.next {
        data["total"] = store::tasks::count(conn, call.user.id, &filter).await?.into();
        data["next_cursor"] = next.encode().into();
    }
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

pub(crate) async fn complete(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let id = call.parse_arguments::<TaskIdArgument>()?.check()?;
    change_one(&call, conn, id, &TaskChange::complete()).await
}

/// Changes one task. An absent argument keeps the value. A blank description, due date or recurrence removes it, and a
/// list of tags replaces all tags. Fails if the id or a field is invalid, an argument is unknown, or the task does not
/// exist.
pub(crate) async fn update(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let (id, change) = call.parse_arguments::<TaskUpdate>()?.check(&call)?;
    change_one(&call, conn, id, &change).await
}

/// Changes one task of the user as one undo step. The answer contains the task, and `changed`, which is false if it
/// already had these values. If a recurring task was completed, it contains `next_task`, which is null without a
/// further occurrence. If a due date was moved or removed, it contains the reminders that are before it:
/// `moved_reminders` with their new times, and `dropped_reminders`. Fails if the task does not exist.
async fn change_one(
    call: &BuiltInCall<'_>,
    conn: &mut Conn,
    id: Uuid,
    patch: &TaskChange,
) -> Result<ToolOutcome, Error> {
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    let clock = &call.tools.clock;
    let zone = &call.user.time_zone;
    let changed_task = store::recurring::change(conn, &mut step, id, patch, clock, zone).await?;
    let ChangedTask { task, next_task, changed, dropped_reminders, moved_reminders } = changed_task;
    let mut data = task_data(&task);
    data["changed"] = changed.into();
    if let Some(next) = next_task {
        data["next_task"] = json!(next);
    }
    for (name, reminders) in [("dropped_reminders", dropped_reminders), ("moved_reminders", moved_reminders)] {
        if !reminders.is_empty() {
            data[name] = json!(reminders);
        }
    }
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Deletes one task, or holds the call if it needs a confirmation. The deletion can be undone. Fails in both cases if
/// the id is not a UUID or the task does not exist.
pub(crate) async fn delete(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    let id = call.parse_arguments::<TaskIdArgument>()?.check()?;
    if call.needs_confirmation(false) {
        let task = store::tasks::get(conn, call.user.id, id).await?;
        let names = call.tools.names;
        return Ok(ToolOutcome::Held(HeldCall::single(
            tool_name(names, ToolKind::Delete),
            task_id_arguments(names).0,
            call_target(&task),
        )));
    }
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    Ok(task_outcome(&store::tasks::delete(conn, &mut step, id).await?))
}

/// Completes or deletes several tasks in one undo step, or holds the call with the resolved ids if it needs a
/// confirmation. If ids are given, filters are ignored, and ids of missing tasks are skipped. A filter without a status
/// selects only open tasks. `count` in the answer includes tasks that were already completed. Fails if neither ids nor
/// filters are given, an id or a filter is invalid, no task is found, or there are more than [`MAX_BULK_TASKS`].
pub(crate) async fn change_several(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct BulkArguments {
        task_ids: Option<Vec<String>>,
        status: Option<String>,
        priority: Option<String>,
        due_date_filter: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        query: Option<String>,
    }
    let BulkArguments { task_ids, status, priority, due_date_filter, tags, query } = call.parse_arguments()?;
    let filters = FilterArguments { status, priority, due_date_filter, tags, query };
    let tasks = match task_ids {
        Some(ids) => tasks_by_id(&call, conn, ids).await?,
        // A call without ids and filters is a mistake. All tasks must be selected explicitly.
        None if filters.are_empty() => {
            let message = "must be given unless a filter is given; use status: all to select every task";
            return Err(Invalid::one(task_id_arguments(call.tools.names).1, "required", message).into());
        }
        None => tasks_by_filter(&call, conn, filters).await?,
    };
    if tasks.is_empty() {
        return Err(Error::Failure(ToolFailure::new(NOT_FOUND, "There is no such task.")));
    }
    if call.needs_confirmation(true) {
        let names = call.tools.names;
        let targets = tasks.iter().map(call_target).collect();
        return Ok(ToolOutcome::Held(HeldCall::bulk(tool_name(names, call.kind), task_id_arguments(names).1, targets)));
    }
    let mut step = UndoStep::begin(conn, call.user.id).await?;
    let mut changed = Vec::with_capacity(tasks.len());
    let clock = &call.tools.clock;
    let zone = &call.user.time_zone;
    for task in tasks {
        changed.push(match call.kind {
            ToolKind::DeleteSeveral => json!(store::tasks::delete(conn, &mut step, task.id).await?),
            _ => json!(store::recurring::change(conn, &mut step, task.id, &TaskChange::complete(), clock, zone).await?),
        });
    }
    let data = json!({"success": true, "count": changed.len(), "tasks": changed});
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// Returns the tasks of the user with these ids, in their order and without duplicates. Ids of missing tasks are
/// skipped. Fails if an id is not a UUID, or if there are more than [`MAX_BULK_TASKS`] ids, including duplicates.
async fn tasks_by_id(call: &BuiltInCall<'_>, conn: &mut Conn, ids: Vec<String>) -> Result<Vec<Task>, Error> {
    if ids.len() > MAX_BULK_TASKS {
        return Err(too_many(ids.len()));
    }
    let mut tasks: Vec<Task> = Vec::with_capacity(ids.len());
    for task_id in ids {
        let id = TaskIdArgument { task_id }.check()?;
        if tasks.iter().any(|task| task.id == id) {
            continue;
        }
        match store::tasks::get(conn, call.user.id, id).await {
            Ok(task) => tasks.push(task),
            Err(store::Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(tasks)
}

/// Returns all tasks that match the filters, only open ones if no status is given. Fails if a filter is invalid, or if
/// more than [`MAX_BULK_TASKS`] match.
async fn tasks_by_filter(
    call: &BuiltInCall<'_>,
    conn: &mut Conn,
    filters: FilterArguments,
) -> Result<Vec<Task>, Error> {
    let filter = filters.check(call)?;
    let limit = i64::try_from(MAX_BULK_TASKS).unwrap_or(i64::MAX);
    let page = store::tasks::list(conn, call.user.id, &filter, None, limit).await?;
    if page.next.is_some() {
        return Err(too_many(MAX_BULK_TASKS + 1));
    }
    Ok(page.rows)
}

pub(crate) fn too_many(count: usize) -> Error {
    let message = format!("must be at most {MAX_BULK_TASKS} in one call, but are {count} or more");
    Invalid::one("tasks", "max_items", message).into()
}

/// Undoes the last change of the user. The answer contains its kind and the tasks. Holds the call if a model decided on
/// it and the undo would remove tasks, because an undo cannot be undone. Fails with `NOT_FOUND` if there is nothing to
/// undo, and with `VALIDATION_ERROR` if the call has arguments.
pub(crate) async fn undo(mut call: BuiltInCall<'_>, conn: &mut Conn) -> Result<ToolOutcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoArguments {}
    call.parse_arguments::<NoArguments>()?;
    let removes_tasks = store::undo::would_remove_tasks(conn, call.user.id).await?;
    if call.is_unconfirmed_decision(removes_tasks) {
        return Ok(ToolOutcome::Held(HeldCall::opaque(UNDO, ToolArguments::new())));
    }
    let undone = match store::undo::undo(conn, call.user.id).await {
        Ok(undone) => undone,
        Err(store::Error::NotFound) => {
            return Err(Error::Failure(ToolFailure::new(NOT_FOUND, "There is nothing to undo.")));
        }
        Err(error) => return Err(error.into()),
    };
    let data = json!({"success": true, "undone": undone.undone, "tasks": undone.tasks, "count": undone.count});
    Ok(ToolOutcome::Done(ToolAnswer::success(data)))
}

/// The arguments that change one task: its id and the new values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskUpdate {
    task_id: String,
    title: Option<String>,
    description: Option<String>,
    due_date: Option<String>,
    priority: Option<String>,
    status: Option<String>,
    recurrence: Option<String>,
    tags: Option<Vec<String>>,
}

impl TaskUpdate {
    /// Returns the id of the task and the validated change. A blank description, due date or recurrence removes the
    /// value. Fails if the id or a field is invalid, or if no field is given.
    pub(crate) fn check(self, call: &BuiltInCall<'_>) -> Result<(Uuid, TaskChange), Invalid> {
        let id = TaskIdArgument { task_id: self.task_id }.check()?;
        // An empty text removes the value.
        let none_if_empty = |text: String| Some(text).filter(|text| !text.trim().is_empty());
        let patch = TaskPatch {
            title: self.title,
            description: self.description.map(none_if_empty),
            status: self.status,
            priority: self.priority,
            due_date: self.due_date.map(none_if_empty),
            recurrence: self.recurrence.map(none_if_empty),
            tags: self.tags,
        };
        Ok((id, patch.check(call.tools.limits, &call.user)?))
    }
}

/// The argument that selects one task.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskIdArgument {
    task_id: String,
}

impl TaskIdArgument {
    fn check(self) -> Result<Uuid, Invalid> {
        Uuid::try_parse(self.task_id.trim()).map_err(|_| Invalid::one("task_id", "uuid", "must be a UUID"))
    }
}

/// The arguments that select tasks.
struct FilterArguments {
    status: Option<String>,
    priority: Option<String>,
    due_date_filter: Option<String>,
    tags: Vec<String>,
    query: Option<String>,
}

impl FilterArguments {
    /// Returns true if no filter is given. Blank texts count as absent.
    fn are_empty(&self) -> bool {
        let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
        let Self { status, priority, due_date_filter, tags, query } = self;
        ![status, priority, due_date_filter, query].into_iter().any(given) && tags.is_empty()
    }

    /// Converts the filters. Blank texts count as absent. Without a status, only open tasks match. Days such as "today"
    /// refer to now in the time zone of the user. Fails if a filter is invalid.
    fn check(&self, call: &BuiltInCall<'_>) -> Result<TaskFilter, Invalid> {
        // Models often send an empty text for an absent value.
        let given =
            |text: &'_ Option<String>| text.as_deref().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let status = given(&self.status);
        let priority = given(&self.priority);
        let due = given(&self.due_date_filter);
        let query = given(&self.query);
        let draft = TaskFilterDraft {
            status: status.as_deref(),
            priority: priority.as_deref(),
            due: due.as_deref(),
            tags: &self.tags,
            q: query.as_deref(),
            reference: None,
            sort: None,
        };
        draft.check(call.tools.clock.now(), &call.user)
    }
}

pub(crate) fn call_target(task: &Task) -> CallTarget {
    CallTarget { id: json!(task.id), title: task.title.clone() }
}

fn task_outcome(task: &Task) -> ToolOutcome {
    ToolOutcome::Done(ToolAnswer::success(task_data(task)))
}

fn task_data(task: &Task) -> Value {
    json!({"success": true, "task_id": task.id, "title": task.title, "status": task.status, "task": task})
}
