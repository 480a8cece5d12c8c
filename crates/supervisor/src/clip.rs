//! A text of any length, of which the beginning and the end are kept.
//!
//! Never holds more than its limit, however much is pushed.

use std::collections::VecDeque;

/// How far a cut is moved to fall between two words: half a secret is not recognised by those who look for one.
const WORD: usize = 4096;

/// Takes bytes as they come.
pub struct Clip {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

/// What was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clipped {
    pub text: String,
    /// Whether the middle is missing; a mark stands in its place.
    pub truncated: bool,
}

impl Clip {
    pub fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit: limit - tail_limit, tail_limit, total: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How much was pushed.
    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn finish(self) -> Clipped {
        Clipped::of(self.head, self.tail.into(), self.total)
    }
}

impl Clipped {
    /// From the beginning and the end of `total` bytes.
    pub(crate) fn of(mut head: Vec<u8>, mut tail: Vec<u8>, total: u64) -> Self {
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

/// Without a copy where it is UTF-8, as it nearly always is.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn last_cut(head: &[u8]) -> usize {
    let from = head.len().saturating_sub(WORD);
    let space = head[from..].iter().rposition(u8::is_ascii_whitespace);
    let character = || (from..head.len()).rev().find(|at| !is_inside(head[*at]));
    space.map(|at| from + at).or_else(character).unwrap_or(head.len())
}

fn first_cut(tail: &[u8]) -> usize {
    let near = &tail[..tail.len().min(WORD)];
    let space = near.iter().position(u8::is_ascii_whitespace).map(|at| at + 1);
    space.or_else(|| near.iter().position(|byte| !is_inside(*byte))).unwrap_or(near.len())
}

/// Whether a character of several bytes goes on here.
fn is_inside(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clipped(limit: usize, pieces: &[&str]) -> Clipped {
        let mut clip = Clip::new(limit);
        pieces.iter().for_each(|piece| clip.push(piece.as_bytes()));
        clip.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        assert_eq!(clipped(5, &["ab", "", "cde"]), Clipped { text: "abcde".to_owned(), truncated: false });
        assert_eq!(clipped(0, &[]), Clipped::default());
    }

    #[test]
    fn what_does_not_fit_loses_its_middle_between_two_words() {
        // SUP-10
        let cut = clipped(20, &["one two three four", " five six seven eight"]);
        assert_eq!(cut.text, "one two\n[… 27 bytes left out …]\neight");
        assert!(cut.truncated);
        assert_eq!(clipped(4, &["ääää"]).text, "\n[… 6 bytes left out …]\nä");
    }

    proptest! {
        #[test]
        fn never_more_than_the_limit_and_never_half_a_character(limit in 0usize..40, pieces in prop::collection::vec("[aä ]{0,9}", 0..20)) {
            let whole = pieces.concat();
            let mut clip = Clip::new(limit);
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
