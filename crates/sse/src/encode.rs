//! Encodes events.

use memchr::memchr2_iter;

use crate::SseEvent;

/// A comment that keeps a connection open. It is not an event.
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// The error of a single-line field that contains a line break or NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {0} of an event must not contain a line break or NUL")]
pub struct InvalidField(&'static str);

impl SseEvent<'_> {
    /// Appends the event to `out`: id, name, data, empty line. Fails without a change if the id or the name contains a
    /// line break or NUL.
    ///
    /// A missing id and an empty name are omitted. Each line of the data becomes one `data` field, and empty data one
    /// empty field. So the decoder gets `\n` for each `\r\n`, `\r` and `\n`.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), InvalidField> {
        let id = self.id.map(|id| single_line("id", id)).transpose()?;
        let name = single_line("name", self.name)?;
        if let Some(id) = id {
            field(out, "id", id.as_bytes());
        }
        if !name.is_empty() {
            field(out, "event", name.as_bytes());
        }
        for_each_line(self.data, |line| field(out, "data", line));
        out.push(b'\n');
        Ok(())
    }
}

/// Returns a block without data. It only sets the last id of the decoder.
pub fn encode_last_id(id: i64) -> String {
    format!("id: {id}\n\n")
}

/// Returns the value. Fails if it is not a single line.
fn single_line<'a>(field: &'static str, value: &'a str) -> Result<&'a str, InvalidField> {
    if value.contains(['\r', '\n', '\0']) { Err(InvalidField(field)) } else { Ok(value) }
}

/// Appends one field as the line `name: value`. An empty value has no space after the colon. The value must not contain
/// line breaks.
fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.push(b':');
    if !value.is_empty() {
        out.push(b' ');
        out.extend_from_slice(value);
    }
    out.push(b'\n');
}

/// Calls `each` with every line of `text`, without its end: `\n`, `\r` or `\r\n`. The text after the last line end is a
/// line too, even if it is empty. So an empty text has one empty line.
fn for_each_line(text: &[u8], mut each: impl FnMut(&[u8])) {
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
