//! Reminders of users, each for a task of the same user. [`due_reminders`], [`next_due_at`] and [`fire`] work for all
//! users.

use jiff::Timestamp;
use model::reminder::{Reminder, ReminderStatus};
use model::task::{self, Task};
use model::{Invalid, UserId};
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::page::{Cursor, Page};
use crate::quotas::{self, RowQuota};
use crate::undo::UndoStep;
use crate::{Error, Result, tasks};

const COLUMNS: &str = "id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, status, \
     recurrence, before_minutes, time_zone, snoozed_until, next_at";
/// The number of [`COLUMNS`].
const COLUMN_COUNT: usize = 12;

/// Selects reminders of pending tasks. A reminder without a pending task must not fire.
const HAS_PENDING_TASK: &str = "EXISTS (SELECT 1 FROM tasks WHERE tasks.owner = reminders.owner \
     AND tasks.id = reminders.task_id AND tasks.status = 'pending')";

/// A due reminder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueReminder {
    pub owner: UserId,
    pub reminder: Reminder,
    /// The time at which it is due.
    pub at: Timestamp,
}

/// The reminders of a task before and after a change of its due date.
#[derive(Debug, Default)]
pub(crate) struct FollowedReminders {
    /// The previous states of all changed reminders.
    pub(crate) before: Vec<Reminder>,
    pub(crate) moved: Vec<Reminder>,
    pub(crate) dropped: Vec<Reminder>,
}

/// Adds a reminder for its task and records it in the undo step. Computes the time of one with `before_minutes`. Returns
/// the reminder and the task. A time in the past is accepted.
///
/// Fails with [`Error::NotFound`] if the owner of the step has no such task, and with [`Error::AlreadyEnded`] if it is
/// completed. Fails with [`Error::Invalid`] if `before_minutes` needs a due date or leads to the past. Fails without a
/// change with [`Error::QuotaReached`] if the owner or the task has too many.
pub async fn create(
    conn: &mut Conn,
    step: &mut UndoStep,
    reminder: &Reminder,
    now: Timestamp,
) -> Result<(Reminder, Task)> {
    let owner = step.owner();
    let task = pending_task(conn, owner, reminder.task_id).await?;
    let mut reminder = reminder.clone();
    reminder.place_before(task.due_date, conn.reminder_time(), now)?;
    check_quotas(conn, owner, task.id).await?;
    add_if_new(conn, owner, &reminder, now).await?;
    step.record_reminder(conn, &reminder).await?;
    Ok((reminder, task))
}

/// Changes a reminder of a pending task and records it in the undo step. `apply` returns the new state. Returns the
/// reminder and its task. Fails with [`Error::NotFound`] if the reminder or its task does not exist, with
/// [`Error::AlreadyEnded`] if the task is completed, and with the error of `apply`. Fails with [`Error::QuotaReached`]
/// if the reminder was not scheduled and there are too many others.
pub async fn change(
    conn: &mut Conn,
    step: &mut UndoStep,
    id: Uuid,
    apply: impl FnOnce(&Reminder, &Task) -> Result<Reminder, Invalid>,
) -> Result<(Reminder, Task)> {
    let owner = step.owner();
    let before = get(conn, owner, id).await?;
    let task = pending_task(conn, owner, before.task_id).await?;
    let after = apply(&before, &task)?;
    if before.status != ReminderStatus::Scheduled && after.status == ReminderStatus::Scheduled {
        check_quotas(conn, owner, task.id).await?;
    }
    if after != before {
        put(conn, owner, &after).await?;
        step.record_reminder_change(conn, &before).await?;
    }
    Ok((after, task))
}

/// Ends a reminder without a further firing, and records it in the undo step. Returns the reminder, its task if it
/// exists, and false if it had already ended. Fails with [`Error::NotFound`] if the reminder does not exist.
pub async fn cancel(conn: &mut Conn, step: &mut UndoStep, id: Uuid) -> Result<(Reminder, Option<Task>, bool)> {
    let owner = step.owner();
    let before = get(conn, owner, id).await?;
    let task = tasks::select(conn, owner, before.task_id, false).await?;
    if before.status != ReminderStatus::Scheduled {
        return Ok((before, task, false));
    }
    let mut after = before.clone();
    after.set_dropped();
    put(conn, owner, &after).await?;
    step.record_reminder_change(conn, &before).await?;
    Ok((after, task, true))
}

/// Moves the next firing of a reminder to `until`, also if it has ended, and records it in the undo step. Fails like
/// [`change`].
pub async fn snooze(conn: &mut Conn, step: &mut UndoStep, id: Uuid, until: Timestamp) -> Result<(Reminder, Task)> {
    let snoozed = |reminder: &Reminder, _: &Task| {
        let mut next = reminder.clone();
        next.snooze(until);
        Ok(next)
    };
    change(conn, step, id, snoozed).await
}

/// Snoozes a task: the reminder that has fired last, or if none has, the next one to fire. If the notification of the
/// due task came last, or if there is no reminder, adds `new`, a reminder for this time. Returns the reminder, the task,
/// and true if the reminder is new. Fails like [`create`].
pub async fn snooze_task(
    conn: &mut Conn,
    step: &mut UndoStep,
    new: &Reminder,
    now: Timestamp,
) -> Result<(Reminder, Task, bool)> {
    let owner = step.owner();
    let sql = "SELECT id, last_at, (SELECT due_told FROM tasks WHERE owner = $1 AND id = $2) FROM reminders \
               WHERE owner = $1 AND task_id = $2 AND status <> 'dropped' \
               AND (last_at IS NOT NULL OR status = 'scheduled') \
               ORDER BY COALESCE(last_at, 0) DESC, next_at, id LIMIT 1";
    let found = conn.first((sql, args![owner, new.task_id])).await?;
    if let Some(row) = found {
        let is_older = row.maybe_time(2)?.is_some_and(|due| row.maybe_time(1).ok().flatten().is_none_or(|at| at < due));
        if !is_older {
            let (reminder, task) = snooze(conn, step, row.parsed(0, Uuid::try_parse)?, new.remind_at).await?;
            return Ok((reminder, task, false));
        }
    }
    let (reminder, task) = create(conn, step, new, now).await?;
    Ok((reminder, task, true))
}

/// Returns a task and locks it. Fails with [`Error::NotFound`] if it does not exist, and with [`Error::AlreadyEnded`] if
/// it is completed.
async fn pending_task(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Task> {
    let task = tasks::select(conn, owner, id, true).await?.ok_or(Error::NotFound)?;
    if task.status == task::TaskStatus::Completed { Err(Error::AlreadyEnded) } else { Ok(task) }
}

/// Fails with [`Error::QuotaReached`] if the task or the owner may not have another scheduled reminder.
async fn check_quotas(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    quotas::check_reminders_of_task(conn, owner, task, 1).await?;
    quotas::check_new(conn, owner, RowQuota::Reminders).await
}

/// Returns a reminder. Fails with [`Error::NotFound`] if it does not exist.
pub async fn get(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Reminder> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner).push(" AND id = ").bind(id);
    conn.first(select).await?.as_ref().map(read).transpose()?.ok_or(Error::NotFound)
}

/// Deletes a reminder and records it in the undo step. Fails with [`Error::NotFound`] if it does not exist.
pub async fn delete(conn: &mut Conn, step: &mut UndoStep, id: Uuid) -> Result<()> {
    let before = get(conn, step.owner(), id).await?;
    remove(conn, step.owner(), &id.to_string()).await?;
    step.record_reminder_change(conn, &before).await
}

/// Deletes a reminder. Returns false if it does not exist.
pub(crate) async fn remove(conn: &mut Conn, owner: UserId, id: &str) -> Result<bool> {
    Ok(conn.run(("DELETE FROM reminders WHERE owner = $1 AND id = $2", args![owner, id])).await? == 1)
}

/// The filter of a list of reminders.
#[derive(Clone, Debug, Default)]
pub struct ReminderFilter {
    /// `None` selects all.
    pub status: Option<ReminderStatus>,
    pub task_id: Option<Uuid>,
}

/// Deletes all reminders of a task.
pub(crate) async fn remove_for_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<()> {
    conn.run(("DELETE FROM reminders WHERE owner = $1 AND task_id = $2", args![owner, task])).await.map(drop)
}

/// Returns all reminders of a task, oldest first.
pub(crate) async fn list_for_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<Vec<Reminder>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner);
    select.push(" AND task_id = ").bind(task).push(" ORDER BY id");
    conn.all(select).await?.iter().map(read).collect()
}

/// Returns up to `limit` reminders that match both conditions of the filter, each with its task if it exists. Scheduled
/// ones come first, in the order of their next firing.
pub async fn list_with_tasks(
    conn: &mut Conn,
    owner: UserId,
    filter: &ReminderFilter,
    limit: i64,
) -> Result<Vec<(Reminder, Option<Task>)>> {
    let mut select = Statement::default();
    push_filter(&mut select, owner, filter);
    select.push(" ORDER BY CASE WHEN status = 'scheduled' THEN 0 ELSE 1 END, next_at, id LIMIT ").bind(limit);
    let reminders = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    let mut ids: Vec<_> = reminders.iter().map(|reminder| reminder.task_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let tasks = tasks::select_several(conn, owner, &ids).await?;
    let task_of = |reminder: &Reminder| tasks.iter().find(|task| task.id == reminder.task_id).cloned();
    Ok(reminders.into_iter().map(|reminder| (reminder.clone(), task_of(&reminder))).collect())
}

/// Adds the selection of the reminders of the owner that match both conditions of the filter.
fn push_filter<'a>(select: &mut Statement<'a>, owner: UserId, filter: &'a ReminderFilter) {
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner);
    if let Some(status) = filter.status {
        select.push(" AND status = ").bind(status.as_str());
    }
    if let Some(task) = filter.task_id {
        select.push(" AND task_id = ").bind(task);
    }
}

/// Returns one page of the reminders that match both conditions of the filter, ordered by id, so oldest first.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    filter: &ReminderFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Reminder>> {
    let mut select = Statement::default();
    push_filter(&mut select, owner, filter);
    if let Some(cursor) = after {
        select.push(" AND id > ").bind(cursor.id.as_str());
    }
    select.push(" ORDER BY id LIMIT ").bind(limit + 1);
    let reminders = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(reminders, limit, |reminder| Cursor { sort: 0, id: reminder.id.to_string() }))
}

/// Adds a reminder with its status and count of firings. `now` is its creation time and determines its next firing
/// unless it has one. Returns false and changes nothing if the owner already has one with this id. Does not check that
/// the task exists.
pub(crate) async fn add_if_new(conn: &mut Conn, owner: UserId, reminder: &Reminder, now: Timestamp) -> Result<bool> {
    let next_at = reminder.next_at.unwrap_or_else(|| reminder.next_firing(now));
    let mut statement = insert(owner, reminder, now, next_at);
    statement.push(" ON CONFLICT (owner, id) DO NOTHING");
    Ok(conn.run(statement).await? == 1)
}

/// Stores a reminder and replaces the one with the same id. Keeps the time of its last firing.
pub(crate) async fn put(conn: &mut Conn, owner: UserId, reminder: &Reminder) -> Result<()> {
    let next_at = reminder.next_at.unwrap_or(reminder.remind_at);
    let mut statement = insert(owner, reminder, reminder.remind_at, next_at);
    statement.push(
        " ON CONFLICT (owner, id) DO UPDATE SET task_id = excluded.task_id, remind_at = excluded.remind_at, \
         repeat_interval_minutes = excluded.repeat_interval_minutes, repeat_count = excluded.repeat_count, \
         fired_count = excluded.fired_count, status = excluded.status, next_at = excluded.next_at, \
         recurrence = excluded.recurrence, before_minutes = excluded.before_minutes, \
         time_zone = excluded.time_zone, snoozed_until = excluded.snoozed_until",
    );
    conn.run_later(statement).await
}

/// Returns the statement that inserts a reminder, without a clause for an existing id.
fn insert<'a>(owner: UserId, reminder: &'a Reminder, created_at: Timestamp, next_at: Timestamp) -> Statement<'a> {
    let values = args![
        owner,
        reminder.id,
        reminder.task_id,
        reminder.remind_at,
        reminder.repeat_interval_minutes,
        reminder.repeat_count,
        reminder.fired_count,
        reminder.status.as_str(),
        created_at,
        next_at,
        reminder.recurrence.as_deref(),
        reminder.before_minutes,
        reminder.time_zone.as_deref(),
        reminder.snoozed_until,
    ];
    Statement::new(
        "INSERT INTO reminders (owner, id, task_id, remind_at, repeat_interval_minutes, repeat_count, fired_count, \
         status, created_at, next_at, recurrence, before_minutes, time_zone, snoozed_until) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        values,
    )
}

/// Drops the scheduled reminders of a task. Returns their previous states.
pub(crate) async fn drop_for_task(conn: &mut Conn, owner: UserId, task: Uuid) -> Result<Vec<Reminder>> {
    let mut update = Statement::default();
    update
        .push("UPDATE reminders SET status = 'dropped' WHERE owner = ")
        .bind(owner)
        .push(" AND task_id = ")
        .bind(task);
    update.push(" AND status = 'scheduled' RETURNING ").push(COLUMNS);
    let rows = conn.all(update).await?;
    let before =
        |row: &DbRow| Ok(Reminder { status: ReminderStatus::Scheduled, next_at: row.maybe_time(11)?, ..read(row)? });
    rows.iter().map(before).collect()
}

/// Moves the reminders of a task that are before its due date after the due date was changed. Drops them if there is no
/// due date.
pub(crate) async fn follow_due_date(
    conn: &mut Conn,
    owner: UserId,
    task: &Task,
    now: Timestamp,
) -> Result<FollowedReminders> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM reminders WHERE owner = ").bind(owner);
    select.push(" AND task_id = ").bind(task.id);
    select.push(" AND before_minutes IS NOT NULL AND status <> 'dropped' ORDER BY id");
    let mut followed = FollowedReminders::default();
    for row in conn.all(select).await? {
        let before = read(&row)?;
        let mut after = before.clone();
        after.follow_due_date(task.due_date, conn.reminder_time(), now);
        if after == before {
            continue;
        }
        put(conn, owner, &after).await?;
        match after.status {
            // One that has already fired loses nothing.
            ReminderStatus::Dropped if before.status != ReminderStatus::Scheduled => {}
            ReminderStatus::Dropped => followed.dropped.push(after),
            ReminderStatus::Scheduled | ReminderStatus::Done => followed.moved.push(after),
        }
        followed.before.push(before);
    }
    Ok(followed)
}

/// Returns a reminder to a previous state. If it has fired since its next time of that state, continues after that
/// firing. Adds it if it was removed.
pub(crate) async fn restore(conn: &mut Conn, owner: UserId, mut reminder: Reminder) -> Result<()> {
    let sql = "SELECT last_at FROM reminders WHERE owner = $1 AND id = $2";
    let row = conn.first((sql, args![owner, reminder.id])).await?;
    let last = row.map_or(Ok(None), |row| row.maybe_time(0))?;
    if let (Some(last), Some(next)) = (last, reminder.next_at)
        && next <= last
    {
        reminder.continue_after(last);
    }
    put(conn, owner, &reminder).await
}

/// Corrects the next times of reminders with a recurrence that have fired while the clock was ahead. Returns their
/// number.
pub(crate) async fn correct_times(conn: &mut Conn, now: Timestamp, ahead: Timestamp) -> Result<u64> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(", owner FROM reminders WHERE status = 'scheduled'");
    select.push(" AND recurrence IS NOT NULL AND snoozed_until IS NULL AND last_at > ").bind(ahead);
    let rows = conn.all(select).await?;
    for row in &rows {
        let mut reminder = read(row)?;
        let owner: UserId = row.parsed(COLUMN_COUNT, str::parse)?;
        reminder.continue_after(now);
        put(conn, owner, &reminder).await?;
        let sql = "UPDATE reminders SET last_at = $3 WHERE owner = $1 AND id = $2";
        conn.run((sql, args![owner, reminder.id, now])).await?;
    }
    Ok(rows.len() as u64)
}

/// Drops all scheduled reminders without a pending task. An import can contain them.
pub(crate) async fn drop_orphaned(conn: &mut Conn, owner: UserId) -> Result<()> {
    let mut update = Statement::default();
    update.push("UPDATE reminders SET status = 'dropped' WHERE owner = ").bind(owner);
    update.push(" AND status = 'scheduled' AND NOT ").push(HAS_PENDING_TASK);
    conn.run(update).await.map(drop)
}

/// Schedules a dropped reminder again, with its old firing time. It fires late if that has passed. Has no effect if the
/// id is unknown, or if the reminder is not dropped or has no pending task.
pub(crate) async fn restore_dropped(conn: &mut Conn, owner: UserId, id: &str) -> Result<()> {
    let mut update = Statement::default();
    update.push("UPDATE reminders SET status = 'scheduled' WHERE owner = ").bind(owner).push(" AND id = ");
    update.bind(id).push(" AND status = 'dropped' AND ").push(HAS_PENDING_TASK);
    conn.run(update).await.map(drop)
}

/// Sets the next firing time of reminders from an older schema.
pub(crate) async fn fill_missing_times(conn: &mut Conn) -> Result<()> {
    conn.run(("UPDATE reminders SET next_at = remind_at WHERE next_at IS NULL", [])).await.map(drop)
}

/// Returns up to `limit` scheduled reminders of all users that fire at `now` or before, the earliest first. Locks
/// nothing; [`fire`] claims them.
pub async fn due_reminders(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<Vec<DueReminder>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(", owner FROM reminders WHERE status = 'scheduled'");
    select.push(" AND next_at <= ").bind(now).push(" ORDER BY next_at LIMIT ").bind(limit);
    let rows = conn.all(select).await?;
    rows.iter()
        .map(|row| {
            let owner = row.parsed(COLUMN_COUNT, str::parse)?;
            Ok(DueReminder { owner, reminder: read(row)?, at: row.time(11)? })
        })
        .collect()
}

/// Returns the earliest firing time of all scheduled reminders, or `None` if there are none.
pub async fn next_due_at(conn: &mut Conn) -> Result<Option<Timestamp>> {
    let sql = "SELECT MIN(next_at) FROM reminders WHERE status = 'scheduled'";
    conn.first((sql, [])).await?.map_or(Ok(None), |row| row.maybe_time(0))
}

/// Claims one firing of a reminder: counts it and sets its next time, or ends it after the last one. The caller
/// notifies the user in the same transaction. Returns the updated reminder and its task. Returns `None` if another node
/// has claimed it, or if it was moved, deleted or dropped meanwhile. Also returns `None` if its task does not exist;
/// the firing is counted then.
pub async fn fire(conn: &mut Conn, due: &DueReminder, now: Timestamp) -> Result<Option<(Reminder, Task)>> {
    let mut reminder = due.reminder.clone();
    let next = reminder.fire(now).unwrap_or(due.at);
    let sql = "UPDATE reminders SET fired_count = $5, status = $6, next_at = $7, last_at = $3, snoozed_until = NULL \
               WHERE owner = $1 AND id = $2 AND next_at = $3 AND fired_count = $4 AND status = 'scheduled'";
    let fired = due.reminder.fired_count;
    let values = args![due.owner, reminder.id, due.at, fired, reminder.fired_count, reminder.status.as_str(), next];
    if conn.run((sql, values)).await? == 0 {
        return Ok(None);
    }
    let task = tasks::select(conn, due.owner, reminder.task_id, false).await?;
    Ok(task.map(|task| (reminder, task)))
}

/// Reads [`COLUMNS`]. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<Reminder> {
    let status = row.parsed(6, |word| ReminderStatus::parse("status", word))?;
    Ok(Reminder {
        id: row.parsed(0, Uuid::try_parse)?,
        task_id: row.parsed(1, Uuid::try_parse)?,
        remind_at: row.time(2)?,
        repeat_interval_minutes: row.maybe_int(3)?,
        repeat_count: row.maybe_int(4)?,
        fired_count: row.int(5)?,
        status,
        recurrence: row.maybe_text(7)?,
        before_minutes: row.maybe_int(8)?,
        time_zone: row.maybe_text(9)?,
        snoozed_until: row.maybe_time(10)?,
        next_at: row.maybe_time(11)?.filter(|_| status == ReminderStatus::Scheduled),
    })
}
