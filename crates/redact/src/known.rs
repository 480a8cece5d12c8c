//! Known secret values, which are replaced at every occurrence.
//!
//! Values that are too short, or that are part of the mark, are ignored.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::scan::escape_length;
use super::{MARK, unwrap_automaton};

const MIN_VALUE_BYTES: usize = 6;

/// A set of known secret values.
#[derive(Clone, Default)]
pub(super) struct KnownValues {
    values: Arc<[String]>,
    max_bytes: usize,
    /// For each byte, `true` if a value starts with it.
    first_bytes: Arc<[bool]>,
    finder: Option<AhoCorasick>,
}

impl KnownValues {
    /// Returns the set with these values added, each in plain form and escaped as in a JSON string. Values are trimmed.
    /// Values shorter than [`MIN_VALUE_BYTES`], or that are part of the mark or contain it, are ignored.
    pub(super) fn with_values(&self, values: impl IntoIterator<Item = String>) -> KnownValues {
        let more = values.into_iter().flat_map(|value| {
            let value = value.trim();
            [value.to_owned(), json_escaped(value)]
        });
        let is_usable =
            |value: &String| value.len() >= MIN_VALUE_BYTES && !MARK.contains(value.as_str()) && !value.contains(MARK);
        let mut values: Vec<String> = self.values.iter().cloned().chain(more.filter(is_usable)).collect();
        values.sort_unstable();
        values.dedup();
        // The longest match wins, so that the rest of an escaped form never remains after a value.
        let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&values);
        let max_bytes = values.iter().map(String::len).max().unwrap_or(0);
        let first_bytes =
            (0..=u8::MAX).map(|b| values.iter().any(|value| value.as_bytes().first() == Some(&b))).collect();
        KnownValues {
            max_bytes,
            first_bytes,
            finder: (!values.is_empty()).then(|| unwrap_automaton(finder)),
            values: values.into(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// Returns the text with all known values replaced by the mark. Of several values at one position, the longest is
    /// replaced. The rest of an escape at the start of a value remains visible.
    pub(super) fn replace<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.finder.as_ref().is_none_or(|finder| !finder.is_match(text)) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        self.replace_settled(text, false, true, &mut out);
        Cow::Owned(out)
    }

    /// Appends the settled part of the text to `out`, redacted, and returns its length in `text`. The rest may be the
    /// start of a known value. Of several values at one position, the longest is replaced.
    ///
    /// The rest is shorter than the longest value, and empty if `last` is set. `after_slash` is `true` if a backslash
    /// precedes the text: the rest of an escape at the start of a value remains visible.
    pub(super) fn replace_settled(&self, text: &str, after_slash: bool, last: bool, out: &mut String) -> usize {
        let bytes = text.as_bytes();
        let undecided_from = |from| if last { text.len() } else { self.undecided_from(bytes, from) };
        let mut done = 0;
        let mut undecided = undecided_from(0);
        for hit in self.finder.iter().flat_map(|finder| finder.find_iter(text)) {
            if hit.start() >= undecided {
                break;
            }
            let is_escaped = hit.start().checked_sub(1).map_or(after_slash, |before| bytes[before] == b'\\');
            let escape = if is_escaped { escape_length(&bytes[hit.start()..]) } else { 0 };
            out.push_str(&text[done..hit.start() + escape]);
            out.push_str(MARK);
            done = hit.end();
            if undecided < done {
                undecided = undecided_from(done);
            }
        }
        out.push_str(&text[done..undecided]);
        undecided
    }

    /// Returns the first position at or after `from` at which the rest of the text may be the start of a value. Returns
    /// the length of the text if there is none.
    fn undecided_from(&self, text: &[u8], from: usize) -> usize {
        let is_value_start = |at: &usize| {
            let rest = &text[*at..];
            if !self.first_bytes.get(usize::from(rest[0])).is_some_and(|is_first| *is_first) {
                return false;
            }
            let after = self.values.partition_point(|value| value.as_bytes() <= rest);
            self.values.get(after).is_some_and(|value| value.as_bytes().starts_with(rest))
        };
        let max_rest = self.max_bytes.saturating_sub(1);
        (from.max(text.len().saturating_sub(max_rest))..text.len()).find(is_value_start).unwrap_or(text.len())
    }
}

/// Returns the value as it is escaped in a JSON string.
fn json_escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
