//! Decodes UTF-8 that arrives in chunks.
//!
//! The result equals `String::from_utf8_lossy` of the whole text, except that NUL becomes U+FFFD too, because
//! PostgreSQL cannot store it.

/// An incremental decoder.
#[derive(Default)]
pub(super) struct Utf8Decoder {
    /// The first bytes of an incomplete character, at most three.
    incomplete: Vec<u8>,
}

impl Utf8Decoder {
    /// Decodes a chunk and appends the complete characters to `out`. Each invalid sequence and each NUL becomes U+FFFD.
    /// An incomplete character at the end is kept and continued by the next chunk.
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        while let ([next, rest @ ..], false) = (bytes, self.incomplete.is_empty()) {
            self.incomplete.push(*next);
            match str::from_utf8(&self.incomplete) {
                Ok(character) => out.push_str(character),
                Err(error) if error.error_len().is_none() => {
                    bytes = rest;
                    continue;
                }
                // The last byte does not belong to this character and is decoded again.
                Err(_) => {
                    out.push(char::REPLACEMENT_CHARACTER);
                    self.incomplete.clear();
                    break;
                }
            }
            self.incomplete.clear();
            bytes = rest;
        }
        // Much faster than iterating over chunks.
        let valid = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let (text, bytes) = bytes.split_at(valid);
        push_valid(str::from_utf8(text).unwrap_or_default(), out);
        let mut remaining = bytes.len();
        for chunk in bytes.utf8_chunks() {
            push_valid(chunk.valid(), out);
            let invalid = chunk.invalid();
            remaining -= chunk.valid().len() + invalid.len();
            if remaining == 0 && str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none()) {
                self.incomplete.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Ends the text. An incomplete character becomes U+FFFD.
    pub(super) fn finish(&mut self, out: &mut String) {
        if !self.incomplete.is_empty() {
            self.incomplete.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Appends the text. Each NUL becomes U+FFFD.
fn push_valid(text: &str, out: &mut String) {
    for (i, part) in text.split('\0').enumerate() {
        if i > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        out.push_str(part);
    }
}
