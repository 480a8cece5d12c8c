//! MCP over the standard input and output of a child process, one message per line. Invalid lines are skipped. A line
//! that exceeds the size of a message closes the connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redact::Redactor;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::guard::{ConnectionSignals, FloodLimiter};
use super::{quote, wire};

/// The timeout for writing a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of invalid lines that are logged.
const MAX_WARNINGS: u32 = 5;
/// A larger buffer is not reused for the next line.
const MAX_REUSED_BUFFER: usize = 1024 * 1024;

/// The transport to a child process.
pub(super) struct StdioTransport {
    server: Arc<str>,
    redactor: Redactor,
    signals: Arc<ConnectionSignals>,
    output: BufReader<ChildStdout>,
    /// The current line, which may be incomplete.
    line: Vec<u8>,
    /// `None` after the transport was closed.
    input: Arc<Mutex<Option<ChildStdin>>>,
    flood: FloodLimiter,
    /// The number of invalid lines so far.
    skipped: u32,
}

/// The result of reading a line.
enum LineRead {
    Complete,
    TooLong,
    EndOfFile,
}

impl StdioTransport {
    /// Creates a transport for the standard input and output of a child. `server` is the name for the log.
    pub(super) fn new(
        server: Arc<str>,
        redactor: Redactor,
        signals: Arc<ConnectionSignals>,
        (input, output): (ChildStdin, ChildStdout),
    ) -> Self {
        Self {
            server,
            redactor,
            signals,
            output: BufReader::with_capacity(64 * 1024, output),
            line: Vec::new(),
            input: Arc::new(Mutex::new(Some(input))),
            flood: FloodLimiter::new(),
            skipped: 0,
        }
    }

    /// Reads a line into `line`, after the part that an earlier cancelled read left there. Cancel-safe. A line without
    /// an end counts as the end of the file. A line of more than [`wire::MAX_MESSAGE_BYTES`] is too long. Fails if the
    /// output cannot be read.
    async fn read_line(&mut self) -> io::Result<LineRead> {
        loop {
            let available = self.output.fill_buf().await?;
            if available.is_empty() {
                return Ok(LineRead::EndOfFile);
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(available.len(), |end| end + 1);
            if self.line.len() + taken > wire::MAX_MESSAGE_BYTES {
                return Ok(LineRead::TooLong);
            }
            self.line.extend_from_slice(&available[..taken]);
            self.output.consume(taken);
            if end.is_some() {
                return Ok(LineRead::Complete);
            }
        }
    }

    /// Counts an invalid line, also for the flood limit. Logs the start of the first [`MAX_WARNINGS`] lines, redacted.
    fn skip_line(&mut self) {
        self.flood.record();
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped <= MAX_WARNINGS {
            let line = quote(&self.redactor, &String::from_utf8_lossy(&self.line[..self.line.len().min(1000)]));
            let server = &*self.server;
            tracing::warn!(event = "mcp_server_noise", server, line, "skipped a line that is not a protocol message");
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    /// Writes the message as one line. Ends the connection if the child does not read it within [`WRITE_TIMEOUT`].
    /// Fails then, after [`Self::close`], if the message cannot be serialized, or if the input cannot be written.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = self.input.clone();
        let signals = self.signals.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let written = timeout(WRITE_TIMEOUT, async {
                match &mut *input.lock().await {
                    Some(input) => {
                        input.write_all(&line).await?;
                        input.flush().await
                    }
                    None => Err(io::ErrorKind::NotConnected.into()),
                }
            });
            written.await.unwrap_or_else(|_| {
                signals.close_with_reason("does not read its input");
                Err(io::ErrorKind::TimedOut.into())
            })
        }
    }

    /// Returns the next valid message. Skips empty lines, and skips and counts invalid ones. Returns `None` at the end
    /// of the output or if it cannot be read. Also returns `None`, and ends the connection, if a line is too long or
    /// has too many values. Waits if the child sends too many invalid lines.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            self.flood.throttle().await;
            match self.read_line().await {
                Ok(LineRead::Complete) => {}
                Ok(LineRead::TooLong) => {
                    self.signals.close_with_reason(wire::TOO_LARGE);
                    return None;
                }
                Ok(LineRead::EndOfFile) | Err(_) => return None,
            }
            if wire::has_too_many_values(&self.line) {
                self.signals.close_with_reason(wire::TOO_MANY_VALUES);
                return None;
            }
            let message = match self.line.trim_ascii() {
                [] => Ok(None),
                // This cannot be a message.
                [first, ..] if *first != b'{' => Err(()),
                line => wire::parse(line).map(Some).map_err(drop),
            };
            if message.is_err() {
                self.skip_line();
            }
            if self.line.capacity() > MAX_REUSED_BUFFER {
                self.line = Vec::new();
            }
            self.line.clear();
            if let Ok(Some(message)) = message {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A blocked writer must not prevent the connection from closing.
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        Ok(())
    }
}
