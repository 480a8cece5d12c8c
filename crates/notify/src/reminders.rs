//! Fires reminders and notifies about due tasks, each once: the node that changes the row first stores the notification
//! in the same transaction. The loop wakes at the next due time, after a commit, and at intervals in case the clock was
//! set.

use std::time::Duration;

use background::reconcile;
use futures::StreamExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::notification::{Notification, NotificationKind};
use store::{Conn, due, reminders};
use tokio_util::sync::CancellationToken;

use crate::{Notifier, wording};

/// The number of rows in one read.
const BATCH_SIZE: i64 = 200;
/// The number of concurrent firings.
const MAX_CONCURRENT: usize = 32;
/// The longest time between two rounds if other nodes write.
const POLL_INTERVAL_SHARED: Duration = Duration::from_secs(1);
/// The longest time between two rounds otherwise. It bounds the delay after the clock was set or the machine was
/// suspended.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Fires reminders and due tasks until the token is cancelled. A round starts at the next due time, and after a
/// wake-up, a commit on this node or the poll interval. Errors are logged, and the round is repeated.
pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let poll_interval = if notifier.0.store.is_shared() { POLL_INTERVAL_SHARED } else { POLL_INTERVAL };
    let wake = || notifier.woken(&notifier.0.remind);
    let work = || async { round(notifier).await.map(|next| Some(notifier.time_until(next, poll_interval))) };
    reconcile::run("reminders_not_fired", poll_interval, shutdown, wake, work).await;
}

/// A due reminder or task.
enum DueItem {
    Reminder(reminders::DueReminder),
    Task(due::DueTask),
}

/// Fires all due reminders and tasks in batches, the items of a batch concurrently. Returns the time of the next one,
/// or `None` if there is none. If an item fails, the rest of its batch is fired. Then the first error is returned,
/// without further batches. Also fails if the database cannot be read.
pub(crate) async fn round(notifier: &Notifier) -> store::Result<Option<Timestamp>> {
    loop {
        let mut reader = notifier.0.store.reader().await?;
        let now = notifier.0.clock.now();
        let times = [reminders::next_due_at(&mut reader).await?, due::next_due_at(&mut reader).await?];
        let next = times.into_iter().flatten().min();
        if next.is_none_or(|next| next > now) {
            return Ok(next);
        }
        let mut items: Vec<_> =
            reminders::due_reminders(&mut reader, now, BATCH_SIZE).await?.into_iter().map(DueItem::Reminder).collect();
        items.extend(due::due_tasks(&mut reader, now, BATCH_SIZE).await?.into_iter().map(DueItem::Task));
        drop(reader);
        let mut fired =
            futures::stream::iter(items).map(|item| fire(notifier, item, now)).buffer_unordered(MAX_CONCURRENT);
        let mut failed = None;
        while let Some(result) = fired.next().await {
            failed = failed.or(result.err());
        }
        // Stop here, because a failed item would be found again immediately.
        if let Some(error) = failed {
            return Err(error);
        }
    }
}

/// Fires one item in its own transaction. Counts it as fired if the owner was notified; [`fire_reminder`] and
/// [`notify_due`] list the other cases. Fails if the database fails; then nothing has changed.
async fn fire(notifier: &Notifier, item: DueItem, now: Timestamp) -> store::Result<()> {
    let handle = notifier.clone();
    let is_notified = notifier
        .0
        .store
        .transaction(async move |tx| match item {
            DueItem::Reminder(due) => fire_reminder(&handle, tx, &due, now).await,
            DueItem::Task(due) => notify_due(&handle, tx, &due, now).await,
        })
        .await?;
    if is_notified {
        notifier.0.counters.fired.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}

/// Claims one firing of a reminder, logs it, and notifies its owner in the transaction of the caller. Returns true if
/// the notification was stored. Returns false if another node has claimed it, or the reminder was moved, deleted or
/// dropped. Also returns false if its task no longer exists; the firing counts then, but is not logged. A delayed
/// firing mentions the planned time. Fails if the database fails.
async fn fire_reminder(
    notifier: &Notifier,
    conn: &mut Conn,
    due: &reminders::DueReminder,
    now: Timestamp,
) -> store::Result<bool> {
    let Some((reminder, task)) = reminders::fire(conn, due, now).await? else { return Ok(false) };
    let zone = time_zone(notifier);
    let text = wording::reminder_text(&task, &reminder, due.at, now, &zone);
    let mut notification =
        Notification::new(&notifier.0.clock, NotificationKind::Reminder, &wording::reminder_title(&task), &text);
    notification.task_id = Some(task.id);
    tracing::info!(event = "reminder_fired", reminder = %reminder.id, late_ms = delay_ms(due.at, now));
    notifier.notify(conn, due.owner, &notification).await
}

/// Claims a due task, logs it, and notifies its owner in the transaction of the caller. The id of the notification is
/// derived from the due time, so that it is stored once. Returns true if it was stored. Returns false in these cases:
///
/// - Another node has claimed the task, or it was moved, completed or deleted.
/// - A reminder that was not dropped has the same time, or the setting `notify_due` is off. The due time counts as
///   handled all the same, and nothing is logged.
/// - The owner already has this notification.
///
/// Fails if the database fails.
async fn notify_due(notifier: &Notifier, conn: &mut Conn, due: &due::DueTask, now: Timestamp) -> store::Result<bool> {
    let zone = time_zone(notifier);
    let Some(task) = due::claim(conn, due, now, &zone).await? else { return Ok(false) };
    if !notifier.settings().notify_due {
        return Ok(false);
    }
    let text = wording::due_text(&task, due.at, &zone);
    let mut notification =
        Notification::new(&notifier.0.clock, NotificationKind::Reminder, &wording::due_title(&task), &text);
    notification.id = due.notification_id();
    notification.task_id = Some(task.id);
    tracing::info!(event = "task_due", task = %task.id, late_ms = delay_ms(due.at, now));
    notifier.notify(conn, due.owner, &notification).await
}

fn delay_ms(due: Timestamp, now: Timestamp) -> i128 {
    now.duration_since(due).as_millis()
}

fn time_zone(notifier: &Notifier) -> TimeZone {
    notifier.settings().time_zone.clone().unwrap_or(TimeZone::UTC)
}
