//! Passes on what owners of schedules should hear of: as notifications, in the transaction in which it happened.

use futures::future::BoxFuture;
use model::Clock;
use model::notification::{Kind, Notification};
use notify::Notifier;
use scheduler::{Event, News};
use store::Transaction;

pub(crate) struct Notices {
    pub(crate) notifier: Notifier,
    pub(crate) clock: Clock,
}

impl scheduler::Notices for Notices {
    fn tell<'a>(&'a self, tx: &'a mut Transaction, news: &'a News) -> BoxFuture<'a, store::Result<()>> {
        Box::pin(async move {
            let told = Notification {
                schedule_id: Some(news.schedule.id),
                execution_id: news.execution_id,
                created_at: news.at,
                ..Notification::new(&self.clock, Kind::Schedule, &title(news), &news.text)
            };
            self.notifier.tell(tx, news.owner, &told).await.map(drop)
        })
    }
}

fn title(news: &News) -> String {
    let name = &news.schedule.settings.name;
    match news.event {
        Event::Failed => format!("{name} has failed"),
        Event::Paused => format!("{name} is paused: it failed too often"),
        Event::Recovered => format!("{name} works again"),
    }
}
