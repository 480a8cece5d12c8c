//! A connection over TCP or over the Unix socket of the data directory.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::RecvFlags;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

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

    /// Sends small writes without delay.
    pub(crate) fn set_no_delay(&self) {
        if let Self::Tcp(stream) = self {
            let _ = stream.set_nodelay(true);
        }
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
