//! JSON-RPC 2.0, one message a line, over any pair of pipes.
//!
//! Reads while it writes, so that neither side waits for the other with full pipes. Never keeps more than one line
//! and what is still to be written. Dropping a future leaves everything where it was: nothing runs by itself.

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::Failure;

pub const MAX_LINE: usize = 10 * 1024 * 1024;
/// An agent that asks and never reads what is answered is not waited for.
const MAX_WAITING: usize = 4 * MAX_LINE;
const CHUNK: usize = 64 * 1024;

pub(super) const METHOD_NOT_FOUND: i64 = -32601;

pub(super) struct Wire {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    incoming: Vec<u8>,
    /// Where in `incoming` the next line begins, and up to where it is known not to end.
    start: usize,
    scanned: usize,
    ended: bool,
    outgoing: Vec<u8>,
    written: usize,
    last_id: u64,
}

/// What came.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
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
        outcome: Result<Value, Fault>,
    },
    /// A line that is no message.
    Plain(String),
}

/// The `error` of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Wire {
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

    /// Puts a request in line and gives its id; it is written while [`Wire::next`] waits.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.put(&json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.put(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(super) fn answer(&mut self, id: &Value, result: &Value) {
        self.put(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(super) fn refuse(&mut self, id: &Value, method: &str) {
        let error = json!({"code": METHOD_NOT_FOUND, "message": format!("{method} is not known here")});
        self.put(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn put(&mut self, message: &Value) {
        self.outgoing.extend_from_slice(message.to_string().as_bytes());
        self.outgoing.push(b'\n');
    }

    /// The next line, or nothing when there are no more.
    pub(super) async fn next(&mut self) -> Result<Option<Incoming>, Failure> {
        loop {
            if let Some(line) = self.line()? {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(Incoming::read(&line)));
            }
            if self.ended {
                return Ok(None);
            }
            if self.outgoing.len() - self.written > MAX_WAITING {
                return Err(Failure::agent("the agent does not read what it is sent"));
            }
            let Self { reader, writer, incoming, outgoing, written, .. } = self;
            incoming.reserve(CHUNK);
            let rest = &outgoing[*written..];
            tokio::select! {
                read = reader.read_buf(incoming) => match read {
                    Ok(0) => self.ended = true,
                    Ok(_) => {}
                    Err(error) => return Err(Failure::system(format!("failed to read from the agent: {error}"))),
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

    /// A line that is complete.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let Self { incoming, start, scanned, ended, .. } = self;
        let end = incoming[*scanned..].iter().position(|byte| *byte == b'\n').map(|at| *scanned + at);
        *scanned = incoming.len();
        if end.unwrap_or(incoming.len()) - *start > MAX_LINE {
            return Err(Failure::agent(format!("the agent wrote a line of more than {MAX_LINE} bytes")));
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

/// How much was written; unbuffered, or a dropped future could not tell. An agent that no longer reads may still have
/// something to say, so that is no failure.
async fn write(writer: &mut Option<Box<dyn AsyncWrite + Send + Unpin>>, bytes: &[u8]) -> usize {
    if let Some(open) = writer
        && let Ok(wrote @ 1..) = open.write(bytes).await
    {
        return wrote;
    }
    *writer = None;
    bytes.len()
}

impl Incoming {
    fn read(line: &[u8]) -> Self {
        let plain = || Self::Plain(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
        match serde_json::from_slice(line) {
            Ok(Value::Object(object)) => Self::of(object).unwrap_or_else(plain),
            _ => plain(),
        }
    }

    /// The message that an object is, if it is one.
    pub(super) fn of(mut object: Map<String, Value>) -> Option<Self> {
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
            (Some(error), _) => Err(Fault::of(&error)),
            (None, Some(result)) => Ok(result),
            (None, None) => return None,
        };
        Some(Self::Response { id, outcome })
    }
}

impl Fault {
    /// What an agent says beside its message is often what matters.
    fn of(error: &Value) -> Self {
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

/// At most so many characters of it.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
