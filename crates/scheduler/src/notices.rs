//! Notices to the owners of schedules: a schedule begins to fail, is paused after failures, or recovers.

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::UserId;
use model::schedule::Schedule;
use store::Transaction;
use uuid::Uuid;

/// Delivers notices to the owners of schedules.
pub trait ScheduleNoticeSink: Send + Sync + 'static {
    /// Records a notice in the transaction that caused the event. Fails if the database fails.
    fn send<'a>(&'a self, tx: &'a mut Transaction, notice: &'a ScheduleNotice) -> BoxFuture<'a, store::Result<()>>;
}

/// An event that the owner of a schedule is notified of.
#[derive(Clone, Debug)]
pub struct ScheduleNotice {
    pub owner: UserId,
    /// The schedule before the event.
    pub schedule: Schedule,
    pub event: ScheduleEvent,
    /// A description of the event for people.
    pub text: String,
    /// The execution that ended. `None` if an occurrence was refused before an execution existed.
    pub execution_id: Option<Uuid>,
    pub at: Timestamp,
}

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleEvent {
    /// The first failure of a series.
    Failed,
    /// The schedule was paused after too many consecutive failures.
    Paused,
    /// The first success after failures.
    Recovered,
}

/// Discards all notices.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardNotices;

impl ScheduleNoticeSink for DiscardNotices {
    fn send<'a>(&'a self, _: &'a mut Transaction, _: &'a ScheduleNotice) -> BoxFuture<'a, store::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
