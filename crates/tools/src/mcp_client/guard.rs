//! Protects rmcp from a server: limits unsolicited messages and pending replies, drops notifications that rmcp does not
//! need, and signals events to the owner of the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, ProgressNotificationParam, ProgressToken, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The maximum number of unsent replies to requests of the server. A server that exceeds it does not read.
const MAX_PENDING_REPLIES: usize = 64;
/// The maximum length of the message of a progress, in characters.
const MAX_PROGRESS_CHARS: usize = 120;
/// The reason of a connection to a child that has exited.
pub(super) const EXITED: &str = "exited";
/// The reason of a connection that the server has closed.
pub(super) const CONNECTION_CLOSED: &str = "closed the connection";

/// The events of a connection, for its owner.
#[derive(Default)]
pub(super) struct ConnectionSignals {
    lost: CancellationToken,
    reason: OnceLock<String>,
    /// The server has reported a change of its tools.
    pub(super) tools_changed: Notify,
    /// The server may be down and must be checked.
    pub(super) check_needed: Notify,
    /// The calls that wait for progress.
    progress_waiters: Mutex<HashMap<ProgressToken, Arc<ProgressState>>>,
}

impl ConnectionSignals {
    /// Ends the connection. Only the first reason is stored.
    pub(super) fn close_with_reason(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
        self.lost.cancel();
    }

    /// Waits until the connection is lost.
    pub(super) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Returns the reason why the connection was lost.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// Subscribes to the progress of a request, until the subscription is dropped.
    pub(super) fn progress(self: &Arc<Self>, token: ProgressToken) -> ProgressSubscription {
        let state = Arc::new(ProgressState::default());
        self.progress_waiters().insert(token.clone(), state.clone());
        ProgressSubscription { signals: self.clone(), token, state }
    }

    fn progress_waiters(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<ProgressState>>> {
        self.progress_waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notifies a call of its progress.
pub(super) struct ProgressSubscription {
    signals: Arc<ConnectionSignals>,
    token: ProgressToken,
    state: Arc<ProgressState>,
}

impl ProgressSubscription {
    /// Waits for the next progress.
    pub(super) async fn changed(&self) {
        self.state.notify.notified().await;
    }

    /// Returns the last progress as text: "3 of 10, uploading". Returns `None` if the server has sent none.
    pub(super) fn words(&self) -> Option<String> {
        self.state.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The last progress of a request.
#[derive(Default)]
struct ProgressState {
    notify: Notify,
    words: Mutex<Option<String>>,
}

impl ProgressState {
    /// Stores the progress and wakes the waiter. The message of the server is cut to [`MAX_PROGRESS_CHARS`].
    fn update(&self, progress: &ProgressNotificationParam) {
        let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = progress.message.as_deref().map(|message| {
            let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
            line.chars().take(MAX_PROGRESS_CHARS).collect::<String>()
        });
        let message = message.filter(|message| !message.is_empty()).map(|message| format!(", {message}"));
        let words = format!("{}{total}{}", progress.progress, message.unwrap_or_default());
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
        self.notify.notify_one();
    }
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        self.signals.progress_waiters().remove(&self.token);
    }
}

/// Limits the rate of unsolicited messages.
pub(super) struct FloodLimiter {
    window_start: Instant,
    count: u32,
}

impl FloodLimiter {
    const MAX_PER_SECOND: u32 = 5000;

    pub(super) fn new() -> Self {
        Self { window_start: Instant::now(), count: 0 }
    }

    /// Counts a message.
    pub(super) fn record(&mut self) {
        if self.window_start.elapsed() >= Duration::from_secs(1) {
            *self = Self::new();
        }
        self.count += 1;
    }

    /// Waits for the end of the current second if it had too many messages. Cancel-safe.
    pub(super) async fn throttle(&self) {
        if self.count > Self::MAX_PER_SECOND {
            tokio::time::sleep_until(self.window_start + Duration::from_secs(1)).await;
        }
    }
}

/// A transport that filters and limits the messages of a server.
pub(super) struct GuardedTransport<T> {
    inner: T,
    signals: Arc<ConnectionSignals>,
    flood: FloodLimiter,
    /// One permit for each reply that may be unsent.
    replies: Arc<Semaphore>,
}

impl<T> GuardedTransport<T> {
    pub(super) fn new(inner: T, signals: Arc<ConnectionSignals>) -> Self {
        Self { inner, signals, flood: FloodLimiter::new(), replies: Arc::new(Semaphore::new(MAX_PENDING_REPLIES)) }
    }

    /// Returns true if rmcp gets the message: requests, responses, and the notifications of subscriptions and
    /// cancellations. All other notifications are dropped. Before that, a change of tools and the progress of a request
    /// are signalled. Requests and notifications count for the flood limit.
    fn accepts(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                // These belong to a subscription.
                ServerNotification::SubscriptionsAcknowledgedNotification(_)
                | ServerNotification::CancelledNotification(_) => {
                    self.flood.record();
                    true
                }
                other => {
                    self.flood.record();
                    match other {
                        ServerNotification::ToolListChangedNotification(_) => self.signals.tools_changed.notify_one(),
                        ServerNotification::ProgressNotification(progress) => {
                            if let Some(waiter) = self.signals.progress_waiters().get(&progress.params.progress_token) {
                                waiter.update(&progress.params);
                            }
                        }
                        _ => {}
                    }
                    false
                }
            },
            JsonRpcMessage::Request(_) => {
                self.flood.record();
                true
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for GuardedTransport<T> {
    type Error = T::Error;

    /// Sends a message. Ends the connection if it is a reply and [`MAX_PENDING_REPLIES`] replies are unsent. Fails if
    /// the inner transport fails.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_reply = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let permit = if is_reply { self.replies.clone().try_acquire_owned().ok() } else { None };
        if is_reply && permit.is_none() {
            self.signals.close_with_reason("sends requests without reading the replies");
        }
        let sent = self.inner.send(message);
        async move {
            let _permit = permit;
            sent.await
        }
    }

    /// Returns the next accepted message. Waits if the server sends too many unsolicited messages. Returns `None` if
    /// the connection is lost. If the server closes it, ends the connection with the reason [`CONNECTION_CLOSED`].
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let signals = self.signals.clone();
            let message = tokio::select! {
                biased;
                () = signals.lost() => None,
                message = async {
                    self.flood.throttle().await;
                    self.inner.receive().await
                } => message,
            };
            match message {
                Some(message) if self.accepts(&message) => return Some(message),
                Some(_) => {}
                None => {
                    self.signals.close_with_reason(CONNECTION_CLOSED);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
