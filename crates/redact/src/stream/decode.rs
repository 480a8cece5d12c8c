//! Bytes that come in pieces, as text.
//!
//! Never gives anything else than `String::from_utf8_lossy` would for the whole, except that NUL, which PostgreSQL
//! cannot store, becomes U+FFFD too.

#[derive(Default)]
pub(super) struct Decoder {
    /// The beginning of a character, at most three bytes.
    begun: Vec<u8>,
}

impl Decoder {
    pub(super) fn push(&mut self, mut bytes: &[u8], out: &mut String) {
        while let ([next, rest @ ..], false) = (bytes, self.begun.is_empty()) {
            self.begun.push(*next);
            match str::from_utf8(&self.begun) {
                Ok(character) => out.push_str(character),
                Err(error) if error.error_len().is_none() => {
                    bytes = rest;
                    continue;
                }
                // The last byte was none of this character's and is looked at again.
                Err(_) => {
                    out.push(char::REPLACEMENT_CHARACTER);
                    self.begun.clear();
                    break;
                }
            }
            self.begun.clear();
            bytes = rest;
        }
        // Far faster than to look for chunks.
        let valid = str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let (text, bytes) = bytes.split_at(valid);
        push_valid(str::from_utf8(text).unwrap_or_default(), out);
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            push_valid(chunk.valid(), out);
            let invalid = chunk.invalid();
            left -= chunk.valid().len() + invalid.len();
            if left == 0 && str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none()) {
                self.begun.extend_from_slice(invalid);
            } else if !invalid.is_empty() {
                out.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    pub(super) fn finish(&mut self, out: &mut String) {
        if !self.begun.is_empty() {
            self.begun.clear();
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

fn push_valid(text: &str, out: &mut String) {
    for (i, part) in text.split('\0').enumerate() {
        if i > 0 {
            out.push(char::REPLACEMENT_CHARACTER);
        }
        out.push_str(part);
    }
}
