//! Ends responses whose clients read nothing, so that they hold no memory and no place (SEC-5).
//!
//! hyper asks for the next part of a body only when the client has taken enough of the previous one. So a body that has
//! returned a part and was not asked again is blocked by its client. The connection cannot end it, because it waits for
//! the same client. [`Connections`](crate::connections::Connections) does, from outside. A client that continues then
//! reads what was sent and the notice at the end.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::task::AtomicWaker;
use http_body::{Frame, SizeHint};

/// The part of a stream that is sent last if its client stalls. Attached to the response as an extension.
#[derive(Clone)]
pub(crate) struct StallNotice(Arc<dyn Fn() -> Bytes + Send + Sync>);

impl StallNotice {
    pub(crate) fn new(notice: impl Fn() -> Bytes + Send + Sync + 'static) -> Self {
        Self(Arc::new(notice))
    }
}

/// The end of a stalled response.
#[derive(Clone)]
enum StalledEnd {
    /// The stream ends with this notice.
    Notice(StallNotice),
    /// The stream of events ends.
    Nothing,
    /// The gRPC stream ends with a status.
    GrpcStatus,
    /// The body is incomplete. The connection is closed.
    Error,
}

impl StalledEnd {
    /// Returns the end for a response with these headers and extensions.
    fn of(headers: &HeaderMap, extensions: &Extensions) -> Self {
        if let Some(notice) = extensions.get::<StallNotice>() {
            return Self::Notice(notice.clone());
        }
        if let Some(::a2a::http::StallErrorEvent(event)) = extensions.get().cloned() {
            return Self::Notice(StallNotice::new(move || event.clone()));
        }
        let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if kind.starts_with(b"application/grpc") {
            return Self::GrpcStatus;
        }
        if kind.starts_with(b"text/event-stream") { Self::Nothing } else { Self::Error }
    }

    /// Returns the last frame of the body.
    fn frame(&self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        match self {
            Self::Notice(StallNotice(notice)) => Some(Ok(Frame::data(notice()))),
            Self::Nothing => None,
            Self::GrpcStatus => Some(Ok(Frame::trailers(::a2a::grpc::status::stalled_trailers()))),
            Self::Error => {
                Some(Err(axum::Error::new(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing"))))
            }
        }
    }
}

/// Lets a body continue only after the connection has passed everything to the system. Without it, hyper collects a few
/// parts of the body. Only for HTTP/1, which has one response at a time.
#[derive(Default)]
pub(crate) struct FlushGate {
    is_closed: AtomicBool,
    waiting: AtomicWaker,
}

impl FlushGate {
    /// Opens the gate, because nothing is left to write.
    pub(crate) fn flushed(&self) {
        if self.is_closed.swap(false, Ordering::AcqRel) {
            self.waiting.wake();
        }
    }

    /// Returns true if the gate is open. Otherwise wakes the task once it is.
    fn poll_open(&self, context: &Context<'_>) -> bool {
        if !self.is_closed.load(Ordering::Acquire) {
            return true;
        }
        self.waiting.register(context.waker());
        !self.is_closed.load(Ordering::Acquire)
    }
}

/// A body that can be ended while its client reads nothing. The connection holds it.
pub(crate) struct WatchedBody {
    shared: Arc<ReadProgress>,
    gate: Option<Arc<FlushGate>>,
    now: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// The progress of the client that reads a body.
pub(crate) struct ReadProgress {
    /// The time in milliseconds at which the last part was returned, plus one. 0 if the body has nothing to send.
    blocked_since: AtomicU64,
    state: Mutex<BodyState>,
    end: StalledEnd,
}

enum BodyState {
    Open(Body),
    /// The body was ended. The frame is the last one.
    Ended(Option<Result<Frame<Bytes>, axum::Error>>),
}

impl ReadProgress {
    /// Returns the time for which the client has read nothing while there is something to read, in milliseconds.
    pub(crate) fn blocked_for(&self, now: u64) -> u64 {
        match self.blocked_since.load(Ordering::Relaxed) {
            0 => 0,
            since => now.saturating_sub(since - 1),
        }
    }

    /// Ends the body and drops its source, unless it was ended before. Returns true if this call ended it.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.state();
        if matches!(*state, BodyState::Ended(_)) {
            return false;
        }
        let open = std::mem::replace(&mut *state, BodyState::Ended(self.end.frame()));
        drop(state);
        // The source may take other locks.
        drop(open);
        true
    }

    fn state(&self) -> MutexGuard<'_, BodyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the response with a watched body, and the progress of its client. `now` returns milliseconds.
pub(crate) fn watch(
    response: Response,
    gate: Option<Arc<FlushGate>>,
    now: impl Fn() -> u64 + Send + Sync + 'static,
) -> (Response, Arc<ReadProgress>) {
    let end = StalledEnd::of(response.headers(), response.extensions());
    let (parts, body) = response.into_parts();
    let shared =
        Arc::new(ReadProgress { blocked_since: AtomicU64::new(0), state: Mutex::new(BodyState::Open(body)), end });
    let watched = WatchedBody { shared: shared.clone(), gate, now: Arc::new(now) };
    (Response::from_parts(parts, Body::new(watched)), shared)
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.gate.as_ref().is_some_and(|gate| !gate.poll_open(context)) {
            return Poll::Pending;
        }
        let mut state = self.shared.state();
        match &mut *state {
            BodyState::Open(body) => {
                let frame = Pin::new(body).poll_frame(context);
                let has_part = matches!(frame, Poll::Ready(Some(Ok(_))));
                let since = if has_part { (self.now)() + 1 } else { 0 };
                self.shared.blocked_since.store(since, Ordering::Relaxed);
                if let Some(gate) = self.gate.as_ref().filter(|_| has_part) {
                    gate.is_closed.store(true, Ordering::Release);
                }
                frame
            }
            BodyState::Ended(frame) => {
                // A client that reads the notice makes progress.
                self.shared.blocked_since.store((self.now)() + 1, Ordering::Relaxed);
                Poll::Ready(frame.take())
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &*self.shared.state() {
            BodyState::Open(body) => body.is_end_stream(),
            BodyState::Ended(frame) => frame.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.shared.state() {
            BodyState::Open(body) => body.size_hint(),
            BodyState::Ended(_) => SizeHint::default(),
        }
    }
}
