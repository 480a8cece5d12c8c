//! A connection over TCP or over the Unix socket of the data directory.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::net::RecvFlags;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::stalled::FlushGate;

/// The size of data that the system holds before it can send it.
const MAX_UNSENT_BYTES: u32 = 16 << 10;

/// An accepted connection.
pub(crate) enum PeerStream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl PeerStream {
    /// Waits for data and copies it to `buffer` without consuming it. Returns 0 at the end of the stream.
    pub(crate) async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.peek(buffer).await,
            Self::Unix(stream) => {
                let receive = || Ok(rustix::net::recv(stream, &mut *buffer, RecvFlags::PEEK)?.0);
                stream.async_io(Interest::READABLE, receive).await
            }
        }
    }

    /// Writes as much as possible without waiting.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Sends small writes without delay, and makes the system accept at most [`MAX_UNSENT_BYTES`] that the client cannot
    /// receive yet. So the progress of a slow client is visible, and a client that reads nothing holds little memory of
    /// the system. Neither option is essential.
    pub(crate) fn set_options(&self) {
        if let Self::Tcp(stream) = self {
            let _ = stream.set_nodelay(true);
            let _ = SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
        }
    }
}

/// A connection that opens a gate when everything is written.
pub(crate) struct GatedStream {
    pub(crate) stream: PeerStream,
    pub(crate) gate: Arc<FlushGate>,
}

impl AsyncRead for GatedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    /// hyper calls this when its own buffer is empty.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.gate.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Calls a method of the inner stream.
macro_rules! inner {
    ($stream:expr, $method:ident, $($argument:expr),*) => {
        match $stream.get_mut() {
            PeerStream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            PeerStream::Unix(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for PeerStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_read, cx, buffer)
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self, poll_write, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_flush, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_shutdown, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, poll_write_vectored, cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }
}
