//! Keeps the head and the tail of a text of any length.
//!
//! Never holds more bytes than its limit.

use std::collections::VecDeque;

/// The maximum distance that a cut is moved so that it falls between two words. A redactor does not recognise half a
/// secret.
const MAX_WORD_BYTES: usize = 4096;

/// A byte buffer that keeps the head and the tail of its input.
pub struct HeadTailBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

/// A text, possibly without its middle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClippedText {
    pub text: String,
    /// The middle is missing. A marker in the text gives the number of missing bytes.
    pub truncated: bool,
}

impl HeadTailBuffer {
    /// Returns an empty buffer that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit: limit - tail_limit, tail_limit, total: 0 }
    }

    /// Adds bytes. The head is filled first. After that, only the last bytes are kept.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let capacity = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(capacity.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes that were pushed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the text of the head and the tail. Bytes that are not UTF-8 are replaced.
    pub fn finish(self) -> ClippedText {
        ClippedText::from_parts(self.head, self.tail.into(), self.total)
    }
}

impl ClippedText {
    /// Returns the text of the head and the tail of `total` bytes. Bytes that are not UTF-8 are replaced. If bytes are
    /// missing between them, both are cut between two words where possible. A line `[… N bytes left out …]` takes the
    /// place of the missing bytes, where N includes the bytes that were cut.
    pub(crate) fn from_parts(mut head: Vec<u8>, mut tail: Vec<u8>, total: u64) -> Self {
        if (head.len() + tail.len()) as u64 >= total {
            head.append(&mut tail);
            return Self { text: lossy(head), truncated: false };
        }
        head.truncate(last_cut(&head));
        tail.drain(..first_cut(&tail));
        let left_out = total - (head.len() + tail.len()) as u64;
        let text = format!("{}\n[… {left_out} bytes left out …]\n{}", lossy(head), lossy(tail));
        Self { text, truncated: true }
    }
}

/// Converts bytes to text. Does not copy valid UTF-8.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the length of the head without its last word, which may be cut. If the end contains no space, only the last
/// character is left out.
fn last_cut(head: &[u8]) -> usize {
    let from = head.len().saturating_sub(MAX_WORD_BYTES);
    let space = head[from..].iter().rposition(u8::is_ascii_whitespace);
    let character = || (from..head.len()).rev().find(|at| !is_continuation(head[*at]));
    space.map(|at| from + at).or_else(character).unwrap_or(head.len())
}

/// Returns the number of bytes at the start of the tail that belong to a word that may be cut. If the start contains no
/// space, only the rest of a cut character counts.
fn first_cut(tail: &[u8]) -> usize {
    let near = &tail[..tail.len().min(MAX_WORD_BYTES)];
    let space = near.iter().position(u8::is_ascii_whitespace).map(|at| at + 1);
    space.or_else(|| near.iter().position(|byte| !is_continuation(*byte))).unwrap_or(near.len())
}

/// Returns true for a byte inside a UTF-8 character of several bytes.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clipped(limit: usize, pieces: &[&str]) -> ClippedText {
        let mut clip = HeadTailBuffer::new(limit);
        pieces.iter().for_each(|piece| clip.push(piece.as_bytes()));
        clip.finish()
    }

    #[test]
    fn short_text_is_kept_unchanged() {
        assert_eq!(clipped(5, &["ab", "", "cde"]), ClippedText { text: "abcde".to_owned(), truncated: false });
        assert_eq!(clipped(0, &[]), ClippedText::default());
    }

    #[test]
    fn long_text_is_cut_between_words() {
        // SUP-10
        let cut = clipped(20, &["one two three four", " five six seven eight"]);
        assert_eq!(cut.text, "one two\n[… 27 bytes left out …]\neight");
        assert!(cut.truncated);
        assert_eq!(clipped(4, &["ääää"]).text, "\n[… 6 bytes left out …]\nä");
    }

    proptest! {
        #[test]
        fn limit_is_respected_and_characters_stay_whole(limit in 0usize..40, pieces in prop::collection::vec("[aä ]{0,9}", 0..20)) {
            let whole = pieces.concat();
            let mut clip = HeadTailBuffer::new(limit);
            for piece in &pieces {
                clip.push(piece.as_bytes());
                prop_assert!(clip.head.len() + clip.tail.len() <= limit);
            }
            let clipped = clip.finish();
            prop_assert_eq!(clipped.truncated, whole.len() > limit);
            prop_assert!(!clipped.text.contains(char::REPLACEMENT_CHARACTER));
            if !clipped.truncated {
                prop_assert_eq!(clipped.text, whole);
            }
        }
    }
}
