//! JSON-RPC 2.0 over a pair of pipes, with one message per line.
//!
//! Reads and writes at the same time, so that full pipes cannot cause a deadlock. Buffers at most one incoming line and
//! the unwritten output. Futures are cancel safe. No task runs in the background.

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::RunFailure;

/// The maximum length of a line in bytes.
pub const MAX_LINE: usize = 10 * 1024 * 1024;
/// The maximum size of unwritten output, for agents that do not read.
const MAX_UNWRITTEN: usize = 4 * MAX_LINE;
const CHUNK: usize = 64 * 1024;

pub(super) const METHOD_NOT_FOUND: i64 = -32601;

/// A JSON-RPC connection.
pub(super) struct RpcWire {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    /// `None` after a failed write. Further output is discarded.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    incoming: Vec<u8>,
    /// The start of the next line in `incoming`.
    start: usize,
    /// The position in `incoming` up to which the line has no end.
    scanned: usize,
    /// The end of the input was read.
    ended: bool,
    outgoing: Vec<u8>,
    /// The number of bytes of `outgoing` that were written.
    written: usize,
    last_id: u64,
}

/// A received line.
#[derive(Debug, PartialEq)]
pub(super) enum IncomingMessage {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        outcome: Result<Value, RpcError>,
    },
    /// A line that is not a message.
    Plain(String),
}

/// The `error` of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
}

impl RpcWire {
    /// Returns a connection over these pipes. Sends and reads nothing yet.
    pub(super) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Some(Box::new(writer)),
            incoming: Vec::new(),
            start: 0,
            scanned: 0,
            ended: false,
            outgoing: Vec::new(),
            written: 0,
            last_id: 0,
        }
    }

    /// Queues a request and returns its id. It is written while [`RpcWire::next`] waits.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.queue(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.queue(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(super) fn answer(&mut self, id: &Value, result: &Value) {
        self.queue(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Queues the error that the method is not supported.
    pub(super) fn refuse(&mut self, id: &Value, method: &str) {
        let error = json!({"code": METHOD_NOT_FOUND, "message": format!("the method {method} is not supported")});
        self.queue(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn queue(&mut self, message: &Value) {
        self.outgoing.extend_from_slice(message.to_string().as_bytes());
        self.outgoing.push(b'\n');
    }

    /// Waits for the next line that is not empty and returns its message. Meanwhile writes queued messages. Returns
    /// `None` at the end of the input. Fails if a line is longer than [`MAX_LINE`], if the agent does not read and more
    /// than [`MAX_UNWRITTEN`] bytes are queued, or if the pipe cannot be read. A failed write is no failure: further
    /// output is discarded.
    pub(super) async fn next(&mut self) -> Result<Option<IncomingMessage>, RunFailure> {
        loop {
            if let Some(line) = self.line()? {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(IncomingMessage::parse(&line)));
            }
            if self.ended {
                return Ok(None);
            }
            if self.outgoing.len() - self.written > MAX_UNWRITTEN {
                return Err(RunFailure::agent("the agent does not read its input"));
            }
            let Self { reader, writer, incoming, outgoing, written, .. } = self;
            incoming.reserve(CHUNK);
            let rest = &outgoing[*written..];
            tokio::select! {
                read = reader.read_buf(incoming) => match read {
                    Ok(0) => self.ended = true,
                    Ok(_) => {}
                    Err(error) => return Err(RunFailure::system(format!("failed to read from the agent: {error}"))),
                },
                wrote = write(writer, rest), if !rest.is_empty() => {
                    *written += wrote;
                    if *written == outgoing.len() {
                        outgoing.clear();
                        *written = 0;
                    }
                }
            }
        }
    }

    /// Removes and returns the next line, without its newline. At the end of the input, the last line does not need
    /// one. Returns `None` if no line is complete. Fails if the line is longer than [`MAX_LINE`], even if it is not
    /// complete.
    fn line(&mut self) -> Result<Option<Vec<u8>>, RunFailure> {
        let Self { incoming, start, scanned, ended, .. } = self;
        let end = incoming[*scanned..].iter().position(|byte| *byte == b'\n').map(|at| *scanned + at);
        *scanned = incoming.len();
        if end.unwrap_or(incoming.len()) - *start > MAX_LINE {
            return Err(RunFailure::agent(format!("the agent wrote a line of more than {MAX_LINE} bytes")));
        }
        if let Some(end) = end {
            let line = incoming[*start..end].to_vec();
            (*start, *scanned) = (end + 1, end + 1);
            return Ok(Some(line));
        }
        incoming.drain(..*start);
        (*start, *scanned) = (0, incoming.len());
        if incoming.is_empty() && incoming.capacity() > 16 * CHUNK {
            *incoming = Vec::new();
        }
        Ok((*ended && !incoming.is_empty()).then(|| std::mem::take(incoming)).inspect(|_| *scanned = 0))
    }
}

/// Writes without a buffer, so that the future is cancel safe. Returns the number of written bytes. If the input of the
/// agent is closed, discards all bytes: this is not a failure, because the agent may still send output.
async fn write(writer: &mut Option<Box<dyn AsyncWrite + Send + Unpin>>, bytes: &[u8]) -> usize {
    if let Some(open) = writer
        && let Ok(wrote @ 1..) = open.write(bytes).await
    {
        return wrote;
    }
    *writer = None;
    bytes.len()
}

impl IncomingMessage {
    /// Returns the message in a line. A line that is not a JSON-RPC message is `Plain`.
    fn parse(line: &[u8]) -> Self {
        let plain = || Self::Plain(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
        match serde_json::from_slice(line) {
            Ok(Value::Object(object)) => Self::from_object(object).unwrap_or_else(plain),
            _ => plain(),
        }
    }

    /// Returns the message in a JSON object, or `None` if it is not a message. An object with a text as `method` is a
    /// request if it has an id, and otherwise a notification. Any other object is a response. It needs an `id` or
    /// `jsonrpc`, and a result, which may be null, or an error that is not null. An error takes precedence. The id of a
    /// response without one is null.
    pub(super) fn from_object(mut object: Map<String, Value>) -> Option<Self> {
        let mut take = |name: &str| object.remove(name);
        if let Some(Value::String(method)) = take("method") {
            let params = take("params").unwrap_or_default();
            return Some(match take("id") {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            });
        }
        let id = take("id").or_else(|| take("jsonrpc").map(|_| Value::Null))?;
        let outcome = match (take("error").filter(|error| !error.is_null()), take("result")) {
            (Some(error), _) => Err(RpcError::from_value(&error)),
            (None, Some(result)) => Ok(result),
            (None, None) => return None,
        };
        Some(Self::Response { id, outcome })
    }
}

impl RpcError {
    /// Returns the error with the details of its `data` field, which often contains the actual cause. Details are added
    /// only if the message does not contain them. An error that is a text is its own message, and without a message it
    /// is `an unknown error`. The code is 0 if it is missing. The message is shortened to 2000 characters.
    fn from_value(error: &Value) -> Self {
        let text = |value: &Value| value.as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let message = text(&error["message"]).or_else(|| text(error)).unwrap_or_else(|| "an unknown error".to_owned());
        let data = &error["data"];
        let detail = [data, &data["message"], &data["details"], &data["error"]].into_iter().find_map(text);
        let message = match detail {
            Some(detail) if !message.contains(&detail) => format!("{message}: {detail}"),
            _ => message,
        };
        Self { code: error["code"].as_i64().unwrap_or_default(), message: shortened(&message, 2000) }
    }
}

/// Returns at most `limit` characters of the text, followed by `…` if the text is longer.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
