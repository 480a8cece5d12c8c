//! MCP over the pipes of a child: one message a line. A line that is no message is skipped, one without an end closes
//! the connection; neither grows in memory.

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

use super::guard::{Flood, Signals};
use super::{outside, wire};

/// How long a message may wait for the child to read it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many lines that are no message are worth a warning.
const WARNINGS: u32 = 5;
/// A longer buffer is not kept for the next line.
const KEPT: usize = 1024 * 1024;

pub(super) struct Pipes {
    server: Arc<str>,
    redactor: Redactor,
    signals: Arc<Signals>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    input: Arc<Mutex<Option<ChildStdin>>>,
    flood: Flood,
    skipped: u32,
}

enum Line {
    Whole,
    Endless,
    End,
}

impl Pipes {
    pub(super) fn new(
        server: Arc<str>,
        redactor: Redactor,
        signals: Arc<Signals>,
        (input, output): (ChildStdin, ChildStdout),
    ) -> Self {
        Self {
            server,
            redactor,
            signals,
            output: BufReader::with_capacity(64 * 1024, output),
            line: Vec::new(),
            input: Arc::new(Mutex::new(Some(input))),
            flood: Flood::new(),
            skipped: 0,
        }
    }

    /// May be dropped and called again: what was read stays in `line`.
    async fn read_line(&mut self) -> io::Result<Line> {
        loop {
            let there = self.output.fill_buf().await?;
            if there.is_empty() {
                return Ok(Line::End);
            }
            let end = there.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(there.len(), |end| end + 1);
            if self.line.len() + taken > wire::LARGEST {
                return Ok(Line::Endless);
            }
            self.line.extend_from_slice(&there[..taken]);
            self.output.consume(taken);
            if end.is_some() {
                return Ok(Line::Whole);
            }
        }
    }

    fn skip(&mut self) {
        self.flood.count();
        self.skipped = self.skipped.saturating_add(1);
        if self.skipped <= WARNINGS {
            let line = outside(&self.redactor, &String::from_utf8_lossy(&self.line[..self.line.len().min(1000)]));
            let server = &*self.server;
            tracing::warn!(
                event = "mcp_server_noise",
                server,
                line,
                "skipped a line that is no message of the protocol"
            );
        }
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let input = self.input.clone();
        let signals = self.signals.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let written = timeout(PATIENCE, async {
                match &mut *input.lock().await {
                    Some(input) => {
                        input.write_all(&line).await?;
                        input.flush().await
                    }
                    None => Err(io::ErrorKind::NotConnected.into()),
                }
            });
            written.await.unwrap_or_else(|_| {
                signals.lose("does not read what it is sent");
                Err(io::ErrorKind::TimedOut.into())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            self.flood.calm().await;
            match self.read_line().await {
                Ok(Line::Whole) => {}
                Ok(Line::Endless) => {
                    self.signals.lose(wire::TOO_LARGE);
                    return None;
                }
                Ok(Line::End) | Err(_) => return None,
            }
            if wire::is_too_much(&self.line) {
                self.signals.lose(wire::TOO_MUCH);
                return None;
            }
            let message = match self.line.trim_ascii() {
                [] => Ok(None),
                // Not worth the parser's time.
                [first, ..] if *first != b'{' => Err(()),
                line => wire::read(line).map(Some).map_err(drop),
            };
            if message.is_err() {
                self.skip();
            }
            if self.line.capacity() > KEPT {
                self.line = Vec::new();
            }
            self.line.clear();
            if let Ok(Some(message)) = message {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A writer that is stuck must not keep the connection from closing.
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        Ok(())
    }
}
