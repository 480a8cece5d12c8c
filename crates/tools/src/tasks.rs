//! What the tools do to tasks. Everything is checked before anything is changed.

use model::Invalid;
use model::task::{Change, Changed, Draft, Filter, FilterDraft, Patch, Task};
use serde::Deserialize;
use serde_json::{Value, json};
use store::Conn;
use store::page::Cursor;
use store::undo::Step;
use uuid::Uuid;

use crate::answer::{Error, Failure, NOT_FOUND};
use crate::catalog::{id_keys, name};
use crate::{Act, Answer, Call, Outcome, Target, Tool};

pub(crate) const MAX_LISTED: i64 = 200;
pub(crate) const MAX_SEVERAL: usize = 1000;
const LISTED: i64 = 100;

pub(crate) async fn add(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let draft: Draft = call.read()?;
    let task = draft.check(call.tools.limits, &call.tools.clock, &call.user)?;
    let mut step = Step::begin(conn, call.user.id).await?;
    store::tasks::create(conn, &mut step, &task).await?;
    Ok(about(&task))
}

pub(crate) async fn list(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        status: Option<String>,
        priority: Option<String>,
        due_date_filter: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        query: Option<String>,
        limit: Option<i64>,
        cursor: Option<String>,
    }
    let Wanted { status, priority, due_date_filter, tags, query, limit, cursor } = call.read()?;
    let filter = Filters { status, priority, due_date_filter, tags, query }.check(&call)?;
    let limit = limit.unwrap_or(LISTED);
    if !(1..=MAX_LISTED).contains(&limit) {
        let message = format!("must be between 1 and {MAX_LISTED}, is {limit}");
        return Err(Invalid::one("limit", "range", message).into());
    }
    let after = cursor.map(|cursor| Cursor::parse(&cursor)).transpose()?;
    let page = store::tasks::list(conn, call.user.id, &filter, after.as_ref(), limit).await?;
    let mut data = json!({"success": true, "tasks": page.rows, "count": page.rows.len()});
    if let Some(next) = page.next {
        data["total"] = store::tasks::count(conn, call.user.id, &filter).await?.into();
        data["next_cursor"] = next.encode().into();
    }
    Ok(Outcome::Done(Answer::done(data)))
}

pub(crate) async fn complete(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let id = call.read::<One>()?.check()?;
    change(&call, conn, id, &Change::complete()).await
}

pub(crate) async fn update(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        task_id: String,
        title: Option<String>,
        description: Option<String>,
        due_date: Option<String>,
        priority: Option<String>,
        status: Option<String>,
        recurrence: Option<String>,
        tags: Option<Vec<String>>,
    }
    let wanted: Wanted = call.read()?;
    let id = One { task_id: wanted.task_id }.check()?;
    // An empty text removes what was there.
    let emptied = |text: String| Some(text).filter(|text| !text.trim().is_empty());
    let patch = Patch {
        title: wanted.title,
        description: wanted.description.map(emptied),
        status: wanted.status,
        priority: wanted.priority,
        due_date: wanted.due_date.map(emptied),
        recurrence: wanted.recurrence.map(emptied),
        tags: wanted.tags,
    };
    let patch = patch.check(call.tools.limits, &call.user)?;
    change(&call, conn, id, &patch).await
}

async fn change(call: &Call<'_>, conn: &mut Conn, id: Uuid, patch: &Change) -> Result<Outcome, Error> {
    let mut step = Step::begin(conn, call.user.id).await?;
    let clock = &call.tools.clock;
    let zone = &call.user.time_zone;
    let Changed { task, next_task, changed } =
        store::recurring::change(conn, &mut step, id, patch, clock, zone).await?;
    let mut data = data(&task);
    data["changed"] = changed.into();
    if let Some(next) = next_task {
        data["next_task"] = json!(next);
    }
    Ok(Outcome::Done(Answer::done(data)))
}

pub(crate) async fn delete(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    let id = call.read::<One>()?.check()?;
    if call.must_ask(false) {
        let task = store::tasks::get(conn, call.user.id, id).await?;
        let names = call.tools.names;
        return Ok(Outcome::Held(Act::one(name(names, Tool::Delete), id_keys(names).0, target(&task))));
    }
    let mut step = Step::begin(conn, call.user.id).await?;
    Ok(about(&store::tasks::delete(conn, &mut step, id).await?))
}

/// Completes or deletes several tasks as one step.
pub(crate) async fn several(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wanted {
        task_ids: Option<Vec<String>>,
        status: Option<String>,
        priority: Option<String>,
        due_date_filter: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        query: Option<String>,
    }
    let Wanted { task_ids, status, priority, due_date_filter, tags, query } = call.read()?;
    let filters = Filters { status, priority, due_date_filter, tags, query };
    let tasks = match task_ids {
        Some(ids) => named(&call, conn, ids).await?,
        // Everything must be asked for by name: an empty call is a mistake.
        None if filters.are_none() => {
            let message = "must be given, or a filter; status: all means every task";
            return Err(Invalid::one(id_keys(call.tools.names).1, "required", message).into());
        }
        None => matching(&call, conn, filters).await?,
    };
    if tasks.is_empty() {
        return Err(Error::Failure(Failure::new(NOT_FOUND, "There is no such task.")));
    }
    if call.must_ask(true) {
        let names = call.tools.names;
        let targets = tasks.iter().map(target).collect();
        return Ok(Outcome::Held(Act::several(name(names, call.tool), id_keys(names).1, targets)));
    }
    let mut step = Step::begin(conn, call.user.id).await?;
    let mut changed = Vec::with_capacity(tasks.len());
    let clock = &call.tools.clock;
    let zone = &call.user.time_zone;
    for task in tasks {
        changed.push(match call.tool {
            Tool::DeleteSeveral => json!(store::tasks::delete(conn, &mut step, task.id).await?),
            _ => json!(store::recurring::change(conn, &mut step, task.id, &Change::complete(), clock, zone).await?),
        });
    }
    let data = json!({"success": true, "count": changed.len(), "tasks": changed});
    Ok(Outcome::Done(Answer::done(data)))
}

/// Those of them that are there: what is gone already needs no more doing.
async fn named(call: &Call<'_>, conn: &mut Conn, ids: Vec<String>) -> Result<Vec<Task>, Error> {
    if ids.len() > MAX_SEVERAL {
        return Err(too_many(ids.len()));
    }
    let mut tasks: Vec<Task> = Vec::with_capacity(ids.len());
    for task_id in ids {
        let id = One { task_id }.check()?;
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

async fn matching(call: &Call<'_>, conn: &mut Conn, filters: Filters) -> Result<Vec<Task>, Error> {
    let filter = filters.check(call)?;
    let limit = i64::try_from(MAX_SEVERAL).unwrap_or(i64::MAX);
    let page = store::tasks::list(conn, call.user.id, &filter, None, limit).await?;
    if page.next.is_some() {
        return Err(too_many(MAX_SEVERAL + 1));
    }
    Ok(page.rows)
}

fn too_many(count: usize) -> Error {
    let message = format!("must be at most {MAX_SEVERAL} at once, are {count} or more");
    Invalid::one("tasks", "max_items", message).into()
}

pub(crate) async fn undo(mut call: Call<'_>, conn: &mut Conn) -> Result<Outcome, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    call.read::<Nothing>()?;
    let undone = match store::undo::undo(conn, call.user.id).await {
        Ok(undone) => undone,
        Err(store::Error::NotFound) => {
            return Err(Error::Failure(Failure::new(NOT_FOUND, "There is nothing to undo.")));
        }
        Err(error) => return Err(error.into()),
    };
    let data = json!({"success": true, "undone": undone.undone, "tasks": undone.tasks, "count": undone.count});
    Ok(Outcome::Done(Answer::done(data)))
}

/// An argument that names one task.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    task_id: String,
}

impl One {
    fn check(self) -> Result<Uuid, Invalid> {
        Uuid::try_parse(self.task_id.trim()).map_err(|_| Invalid::one("task_id", "uuid", "must be a UUID"))
    }
}

struct Filters {
    status: Option<String>,
    priority: Option<String>,
    due_date_filter: Option<String>,
    tags: Vec<String>,
    query: Option<String>,
}

impl Filters {
    fn are_none(&self) -> bool {
        let given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.trim().is_empty());
        let Self { status, priority, due_date_filter, tags, query } = self;
        ![status, priority, due_date_filter, query].into_iter().any(given) && tags.is_empty()
    }

    fn check(&self, call: &Call<'_>) -> Result<Filter, Invalid> {
        // Models like to send an empty text for nothing.
        let given =
            |text: &'_ Option<String>| text.as_deref().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let status = given(&self.status);
        let priority = given(&self.priority);
        let due = given(&self.due_date_filter);
        let query = given(&self.query);
        let draft = FilterDraft {
            status: status.as_deref(),
            priority: priority.as_deref(),
            due: due.as_deref(),
            tags: &self.tags,
            q: query.as_deref(),
            reference: None,
        };
        draft.check(call.tools.clock.now(), &call.user)
    }
}

fn target(task: &Task) -> Target {
    Target { id: json!(task.id), title: task.title.clone() }
}

fn about(task: &Task) -> Outcome {
    Outcome::Done(Answer::done(data(task)))
}

fn data(task: &Task) -> Value {
    json!({"success": true, "task_id": task.id, "title": task.title, "status": task.status, "task": task})
}
