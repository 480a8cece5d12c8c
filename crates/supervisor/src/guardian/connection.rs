//! A guardian process and the socket to it.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio as ProcessStdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::{Child as Process, Command};
use tokio::sync::mpsc;

use super::client::GuardianOptions;
use super::namespaces::{PLAIN_STAGE, STAGE_VARIABLE};
use super::protocol::{self, FrameReader, GuardianReport};
use super::stdio::Stdio;
use super::{GUARDIAN_ARGUMENT, NODE_VARIABLE, OPEN_FILES_VARIABLE, Protections, open_files, origin, proc, sweep};

/// The capacity of the queue of outgoing frames.
const QUEUE_CAPACITY: usize = 256;
/// The timeout for the first report of a guardian, and for its exit after it has closed the socket.
pub(super) const GUARDIAN_TIMEOUT: Duration = Duration::from_secs(10);

/// A running guardian and the socket to it.
pub(super) struct GuardianConnection {
    pub(super) process: Process,
    pub(super) pid: i32,
    /// The process of the guardian in its process namespace, if it has one.
    pub(super) inner: Option<i32>,
    pub(super) marker: String,
    pub(super) protections: Protections,
    socket: Arc<UnixStream>,
    frames_in: FrameReader,
    outbox: mpsc::Sender<(Vec<u8>, Option<Stdio>)>,
}

impl GuardianConnection {
    /// Starts a guardian. If it fails in namespaces of its own, starts one without them. Fails like
    /// [`GuardianConnection::open_once`].
    pub(super) async fn open(options: &GuardianOptions) -> io::Result<Self> {
        match Self::open_once(options, options.namespaces).await {
            Ok(connection) => Ok(connection),
            Err(error) if !options.namespaces => Err(error),
            Err(error) => {
                tracing::warn!(%error, "the guardian failed to start; it is started again without namespaces");
                Self::open_once(options, false).await
            }
        }
    }

    /// Starts a guardian with a new marker and waits for its first report. Its environment contains only the markers,
    /// and the execution id and `LD_LIBRARY_PATH` of this process. Fails if the process cannot be started, closes the
    /// socket, or sends another report first. Kills it and fails if it does not answer within [`GUARDIAN_TIMEOUT`].
    async fn open_once(options: &GuardianOptions, namespaces: bool) -> io::Result<Self> {
        /// Makes the markers of the guardians of one node different.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let marker = format!("{}.{}", sweep::own_marker(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new(&options.program);
        // The markers are also arguments, because the environment of a guardian cannot be read by other processes. If
        // this process belongs to an execution, the guardian belongs to it as well.
        let execution = std::env::var_os(super::EXECUTION_ID_VARIABLE);
        command.arg(GUARDIAN_ARGUMENT).arg(&marker).args(&execution).env_clear().env(NODE_VARIABLE, &marker);
        if !namespaces {
            command.env(STAGE_VARIABLE, PLAIN_STAGE);
        }
        if let Some(limit) = open_files::original_limit() {
            command.env(OPEN_FILES_VARIABLE, limit.to_string());
        }
        for inherited in [super::EXECUTION_ID_VARIABLE, "LD_LIBRARY_PATH"] {
            command.envs(std::env::var_os(inherited).map(|value: OsString| (inherited, value)));
        }
        command.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(ProcessStdio::null());
        let process = command.spawn()?;
        let pid = process.id().map_or(0, |pid| pid as i32);
        origin::add_guardian(pid);
        // The command holds the other end of the socket.
        drop(command);
        let socket = Arc::new(UnixStream::from_std(ours)?);
        let (outbox, frames) = mpsc::channel(QUEUE_CAPACITY);
        tokio::spawn(write(socket.clone(), frames));
        let protections = Protections::default();
        let mut connection =
            Self { process, pid, inner: None, marker, protections, socket, frames_in: FrameReader::default(), outbox };
        match tokio::time::timeout(GUARDIAN_TIMEOUT, connection.next()).await {
            Ok(Ok(GuardianReport::Ready(protections))) => {
                if protections.process_namespace {
                    connection.inner = proc::descendants(pid, 1).first().copied();
                    connection.inner.into_iter().for_each(origin::add_guardian);
                }
                Ok(Self { protections, ..connection })
            }
            Ok(Ok(_)) => Err(io::Error::other("its first report was of another kind")),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                drop(connection.process.start_kill());
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Waits for the next report. Fails if the socket is closed or a report is invalid. Cancel safe: no data is lost if
    /// the future is dropped.
    pub(super) async fn next(&mut self) -> io::Result<GuardianReport> {
        loop {
            if let Some(report) = self.frames_in.next()? {
                return Ok(report);
            }
            let socket = &self.socket;
            let frames_in = &mut self.frames_in;
            if socket.async_io(Interest::READABLE, || frames_in.receive(socket)).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
            }
        }
    }

    /// Sends a frame. Errors are ignored: if the guardian is dead, the reader notices it.
    pub(super) async fn send(&self, bytes: Vec<u8>, stdio: Option<Stdio>) {
        drop(self.outbox.send((bytes, stdio)).await);
    }

    /// Waits for the exit of the process, so that the following sweep is complete. Kills it after [`GUARDIAN_TIMEOUT`].
    pub(super) async fn close(mut self) {
        if tokio::time::timeout(GUARDIAN_TIMEOUT, self.process.wait()).await.is_err() {
            drop(self.process.kill().await);
        }
        for pid in self.inner.into_iter().chain([self.pid]) {
            origin::remove_guardian(pid);
        }
    }
}

/// Writes frames in order until the queue is closed or a write fails. Descriptors are sent with the first byte of their
/// frame and closed as soon as they are sent.
async fn write(socket: Arc<UnixStream>, mut frames: mpsc::Receiver<(Vec<u8>, Option<Stdio>)>) {
    while let Some((bytes, stdio)) = frames.recv().await {
        let mut rest = bytes.as_slice();
        let mut stdio = stdio;
        while !rest.is_empty() {
            let sent = socket
                .async_io(Interest::WRITABLE, || {
                    let fds = stdio.as_ref().map(Stdio::fds);
                    protocol::send(&socket, rest, fds.as_ref().map_or(&[], |fds| fds.as_slice()))
                })
                .await;
            let Ok(sent) = sent else { return };
            stdio = None;
            rest = &rest[sent..];
        }
    }
}
