//! Notifies the owner of a schedule when it fails, is paused or recovers. The notification is part of the transaction
//! that records the event.

use futures::future::BoxFuture;
use model::Clock;
use model::notification::{Notification, NotificationKind};
use notify::Notifier;
use scheduler::{ScheduleEvent, ScheduleNotice, ScheduleNoticeSink};
use store::Transaction;

/// Writes the notices of the scheduler as notifications.
pub(crate) struct ScheduleNotifier {
    pub(crate) notifier: Notifier,
    pub(crate) clock: Clock,
}

impl ScheduleNoticeSink for ScheduleNotifier {
    /// Adds a notification for the owner of the schedule to the transaction. It has the time and the text of the
    /// notice, and the ids of the schedule and of the execution, if any. Fails if the database fails.
    fn send<'a>(&'a self, tx: &'a mut Transaction, notice: &'a ScheduleNotice) -> BoxFuture<'a, store::Result<()>> {
        Box::pin(async move {
            let notification = Notification {
                schedule_id: Some(notice.schedule.id),
                execution_id: notice.execution_id,
                created_at: notice.at,
                ..Notification::new(&self.clock, NotificationKind::Schedule, &title(notice), &notice.text)
            };
            self.notifier.notify(tx, notice.owner, &notification).await.map(drop)
        })
    }
}

/// Returns the title of the notification: the name of the schedule, and that it failed, was paused or has recovered.
fn title(notice: &ScheduleNotice) -> String {
    let name = &notice.schedule.settings.name;
    match notice.event {
        ScheduleEvent::Failed => format!("{name} failed"),
        ScheduleEvent::Paused => format!("{name} was paused after repeated failures"),
        ScheduleEvent::Recovered => format!("{name} has recovered"),
    }
}
