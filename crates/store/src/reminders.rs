//! Reminders, each under its owner and for one of that owner's tasks.

use jiff::Timestamp;
use model::UserId;
use model::reminder::{Reminder, Status};
use model::task::Task;
use uuid::Uuid;

use crate::conn::{Conn, Row, args};
use crate::page::{Cursor, Page};
use crate::undo::Step;
use crate::{Error, Result, tasks};

/// Adds a reminder that [`model::reminder::Draft::check`] made; gives the task it is for.
pub async fn create(conn: &mut Conn, step: &mut Step, reminder: &Reminder, now: Timestamp) -> Result<Task> {
    let owner = step.owner();
    let task = tasks::select(conn, owner, reminder.task_id, true).await?.ok_or(Error::NotFound)?;
    add_if_new(conn, owner, reminder, now).await?;
    step.record_reminder(conn, reminder).await?;
    Ok(task)
}

pub(crate) async fn remove(conn: &mut Conn, owner: UserId, id: &str) -> Result<()> {
    conn.run(("DELETE FROM reminders WHERE owner = $1 AND id = $2", args![owner, id])).await.map(drop)
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
pub async fn list(conn: &mut Conn, owner: UserId, after: Option<&Cursor>, limit: i64) -> Result<Page<Reminder>> {
    let sql = "SELECT id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, status \
               FROM reminders WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3";
    let from = after.map_or("", |cursor| cursor.id.as_str());
    let rows = conn.all((sql, args![owner, from, limit + 1])).await?;
    let reminders = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(reminders, limit, |reminder| Cursor { sort: 0, id: reminder.id.to_string() }))
}

/// Adds the reminder unless the owner has one under that id; says whether it did.
pub(crate) async fn add_if_new(conn: &mut Conn, owner: UserId, reminder: &Reminder, now: Timestamp) -> Result<bool> {
    let insert = "INSERT INTO reminders (owner, id, task_id, remind_at, repeat_interval_minutes, repeat_count, \
                  fired_count, status, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
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
    ];
    Ok(conn.run((insert, values)).await? == 1)
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
