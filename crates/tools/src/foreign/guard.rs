//! Stands between a server and rmcp: keeps floods, endless replies and everything nobody asked for out, and tells the
//! owner of the connection what it has to know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ProgressToken, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Answers to a server's own requests that it has not taken yet. Who has more does not read.
const MOST_REPLIES: usize = 64;

/// What a connection tells its owner.
#[derive(Default)]
pub(super) struct Signals {
    lost: CancellationToken,
    reason: OnceLock<String>,
    /// The server says that its tools have changed.
    pub(super) changed: Notify,
    /// There is reason to doubt that the server is still there.
    pub(super) suspect: Notify,
    /// Who waits for a sign of progress.
    waiting: Mutex<HashMap<ProgressToken, Arc<Notify>>>,
}

impl Signals {
    /// Ends the connection. Only the first reason counts.
    pub(super) fn lose(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        self.lost.cancel();
    }

    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Why it was lost.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Is told of every sign of progress for as long as what is returned lives.
    pub(super) fn progress(self: &Arc<Self>, token: ProgressToken) -> Progress {
        let told = Arc::new(Notify::new());
        self.waiting().insert(token.clone(), told.clone());
        Progress { signals: self.clone(), token, told }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Progress {
    signals: Arc<Signals>,
    token: ProgressToken,
    pub(super) told: Arc<Notify>,
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.signals.waiting().remove(&self.token);
    }
}

/// Slows down whoever talks without being asked.
pub(super) struct Flood {
    since: Instant,
    seen: u32,
}

impl Flood {
    const PER_SECOND: u32 = 5000;

    pub(super) fn new() -> Self {
        Self { since: Instant::now(), seen: 0 }
    }

    pub(super) fn count(&mut self) {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self::new();
        }
        self.seen += 1;
    }

    /// May be dropped and called again.
    pub(super) async fn calm(&self) {
        if self.seen > Self::PER_SECOND {
            tokio::time::sleep_until(self.since + Duration::from_secs(1)).await;
        }
    }
}

pub(super) struct Guarded<T> {
    inner: T,
    signals: Arc<Signals>,
    flood: Flood,
    replies: Arc<Semaphore>,
}

impl<T> Guarded<T> {
    pub(super) fn new(inner: T, signals: Arc<Signals>) -> Self {
        Self { inner, signals, flood: Flood::new(), replies: Arc::new(Semaphore::new(MOST_REPLIES)) }
    }

    /// Whether rmcp is to see this.
    fn passes(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                // Parts of a subscription.
                ServerNotification::SubscriptionsAcknowledgedNotification(_)
                | ServerNotification::CancelledNotification(_) => {
                    self.flood.count();
                    true
                }
                other => {
                    self.flood.count();
                    match other {
                        ServerNotification::ToolListChangedNotification(_) => self.signals.changed.notify_one(),
                        ServerNotification::ProgressNotification(progress) => {
                            if let Some(told) = self.signals.waiting().get(&progress.params.progress_token) {
                                told.notify_one();
                            }
                        }
                        _ => {}
                    }
                    false
                }
            },
            JsonRpcMessage::Request(_) => {
                self.flood.count();
                true
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Guarded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_reply = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let permit = if is_reply { self.replies.clone().try_acquire_owned().ok() } else { None };
        if is_reply && permit.is_none() {
            self.signals.lose("asks for more and more without reading the answers");
        }
        let sent = self.inner.send(message);
        async move {
            let _permit = permit;
            sent.await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let signals = self.signals.clone();
            let message = tokio::select! {
                biased;
                () = signals.lost() => None,
                message = async {
                    self.flood.calm().await;
                    self.inner.receive().await
                } => message,
            };
            match message {
                Some(message) if self.passes(&message) => return Some(message),
                Some(_) => {}
                None => {
                    self.signals.lose("closed the connection");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
