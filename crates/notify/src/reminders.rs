//! Fires reminders and tells of tasks that are due, each once: whoever changes the row first tells the user in the same
//! transaction. Wakes at the next time, when something was committed, and now and then in case the clock was moved.

use std::time::Duration;

use background::reconcile;
use futures::StreamExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::notification::{Kind, Notification};
use store::{Conn, due, reminders};
use tokio_util::sync::CancellationToken;

use crate::{Notifier, wording};

/// Rows read at once, and fired at the same time.
const AT_ONCE: i64 = 200;
const TOGETHER: usize = 32;
/// The longest time between two rounds where other nodes write.
const POLL_INTERVAL_SHARED: Duration = Duration::from_secs(1);
/// The longest time between two rounds otherwise: a clock that was set, or a machine that slept, is noticed by then.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) async fn run(notifier: &Notifier, shutdown: &CancellationToken) {
    let poll_interval = if notifier.0.store.is_shared() { POLL_INTERVAL_SHARED } else { POLL_INTERVAL };
    let wake = || notifier.woken(&notifier.0.remind);
    let work = || async { round(notifier).await.map(|next| Some(notifier.until(next, poll_interval))) };
    reconcile::run("reminders_not_fired", poll_interval, shutdown, wake, work).await;
}

/// What has come.
enum Come {
    Reminder(reminders::Due),
    Task(due::Due),
}

/// Fires all whose time has come; says when the next one comes.
pub(crate) async fn round(notifier: &Notifier) -> store::Result<Option<Timestamp>> {
    loop {
        let mut reader = notifier.0.store.reader().await?;
        let now = notifier.0.clock.now();
        let times = [reminders::next(&mut reader).await?, due::next(&mut reader).await?];
        let next = times.into_iter().flatten().min();
        if next.is_none_or(|next| next > now) {
            return Ok(next);
        }
        let mut come: Vec<_> =
            reminders::due(&mut reader, now, AT_ONCE).await?.into_iter().map(Come::Reminder).collect();
        come.extend(due::due(&mut reader, now, AT_ONCE).await?.into_iter().map(Come::Task));
        drop(reader);
        let mut fired = futures::stream::iter(come).map(|come| fire(notifier, come, now)).buffer_unordered(TOGETHER);
        let mut failed = None;
        while let Some(result) = fired.next().await {
            failed = failed.or(result.err());
        }
        // What failed would be found again at once.
        if let Some(error) = failed {
            return Err(error);
        }
    }
}

async fn fire(notifier: &Notifier, come: Come, now: Timestamp) -> store::Result<()> {
    let teller = notifier.clone();
    let told = notifier
        .0
        .store
        .transaction(async move |tx| match come {
            Come::Reminder(due) => remind(&teller, tx, &due, now).await,
            Come::Task(due) => tell_due(&teller, tx, &due, now).await,
        })
        .await?;
    if told {
        notifier.0.counts.fired.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}

async fn remind(notifier: &Notifier, conn: &mut Conn, due: &reminders::Due, now: Timestamp) -> store::Result<bool> {
    let Some((reminder, task)) = reminders::fire(conn, due, now).await? else { return Ok(false) };
    let zone = zone(notifier);
    let text = wording::reminder(&task, &reminder, due.at, now, &zone);
    let mut notification = Notification::new(&notifier.0.clock, Kind::Reminder, &wording::reminder_title(&task), &text);
    notification.task_id = Some(task.id);
    tracing::info!(event = "reminder_fired", reminder = %reminder.id, late_ms = late(due.at, now));
    notifier.tell(conn, due.owner, &notification).await
}

async fn tell_due(notifier: &Notifier, conn: &mut Conn, due: &due::Due, now: Timestamp) -> store::Result<bool> {
    let Some(task) = due::take(conn, due).await? else { return Ok(false) };
    if !notifier.settings().notify_due {
        return Ok(false);
    }
    let text = wording::due(&task);
    let mut notification = Notification::new(&notifier.0.clock, Kind::Reminder, &wording::due_title(&task), &text);
    notification.id = due.notification_id();
    notification.task_id = Some(task.id);
    tracing::info!(event = "task_due", task = %task.id, late_ms = late(due.at, now));
    notifier.tell(conn, due.owner, &notification).await
}

fn late(due: Timestamp, now: Timestamp) -> i128 {
    now.duration_since(due).as_millis()
}

fn zone(notifier: &Notifier) -> TimeZone {
    notifier.settings().time_zone.clone().unwrap_or(TimeZone::UTC)
}
