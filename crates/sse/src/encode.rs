//! Encodes events.

use memchr::memchr2_iter;

use crate::Event;

/// A comment, which keeps a connection open and is no event for its reader.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// A field of one line contains a character that would end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} of an event must not contain a line break or NUL")]
pub struct InvalidField(&'static str);

impl Event<'_> {
    /// Appends the event to `out`. A line break in the data starts another line of data, so the reader gets `\n` for
    /// each `\r\n`, `\r` and `\n`. Fails if the id or the name contains a line break or NUL; nothing is written then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), InvalidField> {
        let id = self.id.map(|id| one_line("id", id)).transpose()?;
        let name = one_line("name", self.name)?;
        if let Some(id) = id {
            field(out, "id", id.as_bytes());
        }
        if !name.is_empty() {
            field(out, "event", name.as_bytes());
        }
        lines(self.data, |line| field(out, "data", line));
        out.push(b'\n');
        Ok(())
    }
}

/// Returns a block without data, which only sets the last id of its reader.
pub fn position(id: i64) -> String {
    format!("id: {id}\n\n")
}

fn one_line<'a>(field: &'static str, value: &'a str) -> Result<&'a str, InvalidField> {
    if value.contains(['\r', '\n', '\0']) { Err(InvalidField(field)) } else { Ok(value) }
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.push(b':');
    if !value.is_empty() {
        out.push(b' ');
        out.extend_from_slice(value);
    }
    out.push(b'\n');
}

/// Calls `each` with the lines of `text`, the last one included when it is empty.
fn lines(text: &[u8], mut each: impl FnMut(&[u8])) {
    let mut start = 0;
    for end in memchr2_iter(b'\r', b'\n', text) {
        // The second character of `\r\n`.
        if end > 0 && text[end] == b'\n' && text[end - 1] == b'\r' {
            start = end + 1;
            continue;
        }
        each(&text[start..end]);
        start = end + 1;
    }
    each(&text[start..]);
}
