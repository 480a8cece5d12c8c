//! Reminders, each under its owner and for one of that owner's tasks; and those of everyone whose time has come.

use jiff::Timestamp;
use model::UserId;
use model::reminder::{Reminder, Status};
use model::task::{self, Task};
use uuid::Uuid;

use crate::conn::{Conn, Row, Statement, args};
use crate::page::{Cursor, Page};
use crate::undo::Step;
use crate::{Error, Result, tasks};

const COLUMNS: &str = "id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, status";

/// What has a task that is to be done: others have nobody to remind.
const OF_A_PENDING_TASK: &str = "EXISTS (SELECT 1 FROM tasks WHERE tasks.owner = reminders.owner \
     AND tasks.id = reminders.task_id AND tasks.status = 'pending')";

/// A reminder whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub owner: UserId,
    pub reminder: Reminder,
    pub at: Timestamp,
}

/// Adds a reminder that [`model::reminder::Draft::check`] made; gives the task it is for. [`Error::Ended`]: that task is
/// completed.
pub async fn create(conn: &mut Conn, step: &mut Step, reminder: &Reminder, now: Timestamp) -> Result<Task> {
    let owner = step.owner();
    let task = tasks::select(conn, owner, reminder.task_id, true).await?.ok_or(Error::NotFound)?;
    if task.status == task::Status::Completed {
        return Err(Error::Ended);
    }
    add_if_new(conn, owner, reminder, now).await?;
    step.record_reminder(conn, reminder).await?;
    Ok(task)
}

pub async fn get(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Reminder> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner).push(" AND id = ").bind(id);
    conn.first(select).await?.as_ref().map(read).transpose()?.ok_or(Error::NotFound)
}

/// Removes a reminder for good.
pub async fn delete(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<()> {
    match remove(conn, owner, &id.to_string()).await? {
        true => Ok(()),
        false => Err(Error::NotFound),
    }
}

pub(crate) async fn remove(conn: &mut Conn, owner: UserId, id: &str) -> Result<bool> {
    Ok(conn.run(("DELETE FROM reminders WHERE owner = $1 AND id = $2", args![owner, id])).await? == 1)
}

/// Which reminders a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// `None` shows all.
    pub status: Option<Status>,
    pub task_id: Option<Uuid>,
}

pub(crate) async fn remove_of_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    conn.run(("DELETE FROM reminders WHERE owner = $1 AND task_id = $2", args![owner, task])).await.map(drop)
}

/// All of one task, oldest first.
pub(crate) async fn of_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<Vec<Reminder>> {
    let sql = "SELECT id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, status \
               FROM reminders WHERE owner = $1 AND task_id = $2 ORDER BY id";
    conn.all((sql, args![owner, task])).await?.iter().map(read).collect()
}

/// One page, oldest first.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    filter: &Filter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Reminder>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner);
    if let Some(status) = filter.status {
        select.push(" AND status = ").bind(status.as_str());
    }
    if let Some(task) = filter.task_id {
        select.push(" AND task_id = ").bind(task);
    }
    if let Some(cursor) = after {
        select.push(" AND id > ").bind(cursor.id.as_str());
    }
    select.push(" ORDER BY id LIMIT ").bind(limit + 1);
    let reminders = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(reminders, limit, |reminder| Cursor { sort: 0, id: reminder.id.to_string() }))
}

/// Adds the reminder unless the owner has one under that id; says whether it did.
pub(crate) async fn add_if_new(conn: &mut Conn, owner: UserId, reminder: &Reminder, now: Timestamp) -> Result<bool> {
    let insert = "INSERT INTO reminders (owner, id, task_id, remind_at, repeat_interval_minutes, repeat_count, \
                  fired_count, status, created_at, next_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                  ON CONFLICT (owner, id) DO NOTHING";
    let values = args![
        owner,
        reminder.id,
        reminder.task_id,
        reminder.remind_at,
        reminder.repeat_interval_minutes,
        reminder.repeat_count,
        reminder.fired_count,
        reminder.status.as_str(),
        now,
        reminder.next_at(now),
    ];
    Ok(conn.run((insert, values)).await? == 1)
}

/// Drops what a task still had scheduled; gives the ids.
pub(crate) async fn drop_of_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<Vec<String>> {
    let sql = "UPDATE reminders SET status = 'dropped' WHERE owner = $1 AND task_id = $2 AND status = 'scheduled' \
               RETURNING id";
    conn.all((sql, args![owner, task])).await?.iter().map(|row| row.text(0)).collect()
}

/// Drops all that have no task to be done: they came in without it.
pub(crate) async fn drop_strays(conn: &mut Conn, owner: UserId) -> Result<()> {
    let mut update = Statement::default();
    update.push("UPDATE reminders SET status = 'dropped' WHERE owner = ").bind(owner);
    update.push(" AND status = 'scheduled' AND NOT ").push(OF_A_PENDING_TASK);
    conn.run(update).await.map(drop)
}

/// Takes back that these were dropped. Their time may have come meanwhile: then they are late.
pub(crate) async fn take_up(conn: &mut Conn, owner: UserId, ids: &[String]) -> Result<()> {
    for id in ids {
        let mut update = Statement::default();
        update.push("UPDATE reminders SET status = 'scheduled' WHERE owner = ").bind(owner).push(" AND id = ");
        update.bind(id.as_str()).push(" AND status = 'dropped' AND ").push(OF_A_PENDING_TASK);
        conn.run(update).await?;
    }
    Ok(())
}

/// Gives those of an older schema a time to speak up.
pub(crate) async fn complete(conn: &mut Conn) -> Result<()> {
    conn.run(("UPDATE reminders SET next_at = remind_at WHERE next_at IS NULL", [])).await.map(drop)
}

/// Whose time has come, the oldest first. Everyone's.
pub async fn due(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<Due>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(", owner, next_at FROM reminders WHERE status = 'scheduled'");
    select.push(" AND next_at <= ").bind(now).push(" ORDER BY next_at LIMIT ").bind(limit);
    let rows = conn.all(select).await?;
    rows.iter()
        .map(|row| Ok(Due { owner: row.parsed(7, str::parse)?, reminder: read(row)?, at: row.time(8)? }))
        .collect()
}

/// When the next one of all speaks up.
pub async fn next(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(next_at) FROM reminders WHERE status = 'scheduled'";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Takes the firing for the caller, whose transaction tells the user: gives the reminder as it is now and its task.
/// `None`: somebody else has it, or it was moved, removed or dropped meanwhile.
pub async fn fire(conn: &mut Conn, due: &Due, now: Timestamp) -> Result<Option<(Reminder, Task)>> {
    let mut reminder = due.reminder.clone();
    let next = reminder.fire(now).unwrap_or(due.at);
    let sql = "UPDATE reminders SET fired_count = $5, status = $6, next_at = $7 WHERE owner = $1 AND id = $2 \
               AND next_at = $3 AND fired_count = $4 AND status = 'scheduled'";
    let fired = due.reminder.fired_count;
    let values = args![due.owner, reminder.id, due.at, fired, reminder.fired_count, reminder.status.as_str(), next];
    if conn.run((sql, values)).await? == 0 {
        return Ok(None);
    }
    let task = tasks::select(conn, due.owner, reminder.task_id, false).await?;
    Ok(task.map(|task| (reminder, task)))
}

fn read(row: &Row) -> Result<Reminder> {
    Ok(Reminder {
        id: row.parsed(0, Uuid::try_parse)?,
        task_id: row.parsed(1, Uuid::try_parse)?,
        remind_at: row.time(2)?,
        repeat_interval_minutes: row.maybe_int(3)?,
        repeat_count: row.maybe_int(4)?,
        fired_count: row.int(5)?,
        status: row.parsed(6, |word| Status::parse("status", word))?,
    })
}
