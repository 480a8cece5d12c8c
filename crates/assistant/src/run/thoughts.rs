//! Buffers the reasoning of a model. It arrives in very small pieces and is sent on in lines or sentences. Otherwise an
//! id that is split over two pieces would pass the filter (AGENT-6).

use crate::response_filter::ResponseFilter;

/// The maximum reasoning that one turn sends, in bytes.
const MAX_BYTES: usize = 20_000;
/// Longer lines are sent in parts, in bytes.
const MAX_LINE_BYTES: usize = 400;

#[derive(Debug, Default)]
pub(super) struct ThoughtBuffer {
    buffered: String,
    received: usize,
}

impl ThoughtBuffer {
    /// Adds a piece. Returns the complete lines in the buffer, filtered like a reply. Without a line break, a buffer of
    /// more than [`MAX_LINE_BYTES`] is returned up to its last complete sentence or word. Returns `None` if nothing is
    /// complete or the filter leaves nothing. Ignores pieces once [`MAX_BYTES`] were received.
    pub(super) fn push(&mut self, piece: &str, filter: &ResponseFilter) -> Option<String> {
        if self.received >= MAX_BYTES {
            return None;
        }
        self.received += piece.len();
        self.buffered.push_str(piece);
        let end = match self.buffered.rfind('\n') {
            Some(at) => at + 1,
            None if self.buffered.len() > MAX_LINE_BYTES => split_offset(&self.buffered),
            None => return None,
        };
        let out: String = self.buffered.drain(..end).collect();
        filtered(&out, filter)
    }

    /// Returns the rest of the buffer. Called when the model continues with text or calls.
    pub(super) fn finish(&mut self, filter: &ResponseFilter) -> Option<String> {
        filtered(&std::mem::take(&mut self.buffered), filter)
    }
}

/// Returns the byte offset at which to split: after a sentence, else after a word, else 0. Ids contain no spaces.
fn split_offset(text: &str) -> usize {
    let ends = [". ", "! ", "? "].iter().filter_map(|end| text.rfind(end)).max();
    ends.or_else(|| text.rfind(' ')).map_or(0, |at| text[at..].find(' ').map_or(0, |space| at + space + 1))
}

/// Filters a text like a reply. Returns `None` if nothing remains.
fn filtered(text: &str, filter: &ResponseFilter) -> Option<String> {
    Some(filter.filter_text(text)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190a6d2-7c00-7000-8000-000000000000";

    fn all(text: &str, size: usize) -> Vec<String> {
        let mut thoughts = ThoughtBuffer::default();
        let mut filter = ResponseFilter::default();
        filter.learn(&serde_json::json!({"id": ID}));
        let chars: Vec<_> = text.chars().collect();
        let mut out: Vec<_> =
            chars.chunks(size).filter_map(|piece| thoughts.push(&piece.iter().collect::<String>(), &filter)).collect();
        out.extend(thoughts.finish(&filter));
        out
    }

    #[test]
    fn sentences_are_not_split_and_ids_are_removed() {
        // CHAT-1, AGENT-6
        assert_eq!(all("I add bread.\n\nThen I am done.", 3), ["I add bread.", "Then I am done."]);
        let long = format!("I look at {ID} now. ").repeat(40);
        for size in [1, 7, 12, 100] {
            let out = all(&long, size);
            assert!(out.len() > 1 && out.iter().all(|part| part.ends_with("now.")), "{out:?}");
            assert!(out.iter().all(|part| !part.contains("0190a6d2")), "{out:?}");
        }
        assert!(all(&"x".repeat(100_000), 10).iter().map(String::len).sum::<usize>() < MAX_BYTES + 100);
    }
}
