//! Values that are known to be secret, replaced wherever they stand.
//!
//! Never keeps a value that is too short or that the mark itself contains.

use std::borrow::Cow;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};

use super::scan::{Scan, escape_tail};
use super::{MARK, built};

const LEAST: usize = 6;

#[derive(Clone, Default)]
pub(super) struct Known {
    values: Arc<[String]>,
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
        Known { finder: (!values.is_empty()).then(|| built(finder)), values: values.into() }
    }

    pub(super) fn replaced<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(finder) = &self.finder else {
            return Cow::Borrowed(text);
        };
        let mut scan = Scan::new(text);
        for hit in finder.find_iter(text) {
            let start = hit.start() + escape_tail(scan.bytes, hit.start());
            if start < hit.end() {
                scan.hide(start..hit.end());
            }
        }
        scan.finish()
    }
}

/// The value as it stands inside a JSON string.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
