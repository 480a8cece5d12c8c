//! What people should hear of: a schedule that begins to fail, is paused for it, or works again.

use futures::future::BoxFuture;
use jiff::Timestamp;
use model::UserId;
use model::schedule::Schedule;
use store::Conn;
use uuid::Uuid;

/// Passes news on. The connection is that of the transaction in which it happened: what is written there is written if,
/// and only if, it did.
pub trait Notices: Send + Sync + 'static {
    fn tell<'a>(&'a self, conn: &'a mut Conn, news: &'a News) -> BoxFuture<'a, store::Result<()>>;

    /// What was told is committed.
    fn committed(&self) {}
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
    fn tell<'a>(&'a self, _: &'a mut Conn, _: &'a News) -> BoxFuture<'a, store::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}
