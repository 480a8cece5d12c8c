//! What people should hear of: a schedule that begins to fail, is paused for it, or works again.

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::UserId;
use model::schedule::Schedule;
use store::Transaction;
use uuid::Uuid;

/// Notifies the owners of schedules, in the transaction in which the event happened.
pub trait Notices: Send + Sync + 'static {
    fn tell<'a>(&'a self, tx: &'a mut Transaction, news: &'a News) -> BoxFuture<'a, store::Result<()>>;
}

/// Something that the owner of a schedule should hear of.
#[derive(Clone, Debug)]
pub struct News {
    pub owner: UserId,
    /// As it was before.
    pub schedule: Schedule,
    pub event: Event,
    /// What happened, in words.
    pub text: String,
    pub execution_id: Option<Uuid>,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first failure of a series.
    Failed,
    /// Paused after too many failures in a row.
    Paused,
    /// The first success after failures.
    Recovered,
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Notices for Silent {
    fn tell<'a>(&'a self, _: &'a mut Transaction, _: &'a News) -> BoxFuture<'a, store::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
