//! Values that are known to be secret, replaced wherever they stand.
//!
//! Never keeps a value that is too short or that the mark itself contains.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::scan::escape_length;
use super::{MARK, built};

const LEAST: usize = 6;

#[derive(Clone, Default)]
pub(super) struct Known {
    values: Arc<[String]>,
    longest: usize,
    /// Which bytes values begin with.
    first: Arc<[bool]>,
    finder: Option<AhoCorasick>,
}

impl Known {
    pub(super) fn and(&self, values: impl IntoIterator<Item = String>) -> Known {
        let more = values.into_iter().flat_map(|value| {
            let value = value.trim();
            [value.to_owned(), escaped(value)]
        });
        let fits = |value: &String| value.len() >= LEAST && !MARK.contains(value.as_str()) && !value.contains(MARK);
        let mut values: Vec<String> = self.values.iter().cloned().chain(more.filter(fits)).collect();
        values.sort_unstable();
        values.dedup();
        // The longest, so that a value is never left with the end of its escaped form behind it.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values);
        let longest = values.iter().map(String::len).max().unwrap_or(0);
        let first = (0..=u8::MAX).map(|b| values.iter().any(|value| value.as_bytes().first() == Some(&b))).collect();
        Known { longest, first, finder: (!values.is_empty()).then(|| built(finder)), values: values.into() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    pub(super) fn replaced<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.finder.as_ref().is_none_or(|finder| !finder.is_match(text)) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        self.settle(text, false, true, &mut out);
        Cow::Owned(out)
    }

    /// Writes out what is certain of a text that may go on (unless it is the `last`), and returns how much that was.
    /// Never more than the longest value is left.
    pub(super) fn settle(&self, text: &str, after_slash: bool, last: bool, out: &mut String) -> usize {
        let bytes = text.as_bytes();
        let open_from = |from| if last { text.len() } else { self.open_from(bytes, from) };
        let mut done = 0;
        let mut open = open_from(0);
        for hit in self.finder.iter().flat_map(|finder| finder.find_iter(text)) {
            if hit.start() >= open {
                break;
            }
            let escaped = hit.start().checked_sub(1).map_or(after_slash, |before| bytes[before] == b'\\');
            let escape = if escaped { escape_length(&bytes[hit.start()..]) } else { 0 };
            out.push_str(&text[done..hit.start() + escape]);
            out.push_str(MARK);
            done = hit.end();
            if open < done {
                open = open_from(done);
            }
        }
        out.push_str(&text[done..open]);
        open
    }

    /// The first position from which on the text may be the beginning of a value.
    fn open_from(&self, text: &[u8], from: usize) -> usize {
        let may_begin = |at: &usize| {
            let rest = &text[*at..];
            if !self.first.get(usize::from(rest[0])).is_some_and(|first| *first) {
                return false;
            }
            let after = self.values.partition_point(|value| value.as_bytes() <= rest);
            self.values.get(after).is_some_and(|value| value.as_bytes().starts_with(rest))
        };
        let longest = self.longest.saturating_sub(1);
        (from.max(text.len().saturating_sub(longest))..text.len()).find(may_begin).unwrap_or(text.len())
    }
}

/// The value as it stands inside a JSON string.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
