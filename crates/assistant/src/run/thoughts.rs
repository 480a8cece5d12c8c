//! What a model thinks, for those who like to watch. It comes in pieces of a word or less and goes out a line or a few
//! sentences at a time: a piece alone tells nothing, and an id in two pieces would not be seen as one (AGENT-6).

use crate::screen::screened;

/// How much of one turn is passed on, in bytes.
const MOST: usize = 20_000;
/// A line that is longer than this goes out in parts, in bytes.
const LINE: usize = 400;

#[derive(Debug, Default)]
pub(super) struct Thoughts {
    waiting: String,
    taken: usize,
}

impl Thoughts {
    /// Takes a piece in and gives what may go out.
    pub(super) fn push(&mut self, piece: &str) -> Option<String> {
        if self.taken >= MOST {
            return None;
        }
        self.taken += piece.len();
        self.waiting.push_str(piece);
        let end = match self.waiting.rfind('\n') {
            Some(at) => at + 1,
            None if self.waiting.len() > LINE => sentence(&self.waiting),
            None => return None,
        };
        let out: String = self.waiting.drain(..end).collect();
        told(&out)
    }

    /// What is left when the model does something else.
    pub(super) fn finish(&mut self) -> Option<String> {
        told(&std::mem::take(&mut self.waiting))
    }
}

/// Where to cut: after a sentence, else after a word, else not yet. Ids have no spaces in them.
fn sentence(text: &str) -> usize {
    let ends = [". ", "! ", "? "].iter().filter_map(|end| text.rfind(end)).max();
    ends.or_else(|| text.rfind(' ')).map_or(0, |at| text[at..].find(' ').map_or(0, |space| at + space + 1))
}

fn told(text: &str) -> Option<String> {
    Some(screened(text)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190a6d2-7c00-7000-8000-000000000000";

    fn all(text: &str, size: usize) -> Vec<String> {
        let mut thoughts = Thoughts::default();
        let chars: Vec<_> = text.chars().collect();
        let mut out: Vec<_> =
            chars.chunks(size).filter_map(|piece| thoughts.push(&piece.iter().collect::<String>())).collect();
        out.extend(thoughts.finish());
        out
    }

    #[test]
    fn words_stay_together_and_ids_are_seen() {
        // CHAT-1, AGENT-6
        assert_eq!(all("I add bread.\n\nThen I am done.", 3), ["I add bread.", "Then I am done."]);
        let long = format!("I look at {ID} now. ").repeat(40);
        for size in [1, 7, 12, 100] {
            let out = all(&long, size);
            assert!(out.len() > 1 && out.iter().all(|part| part.ends_with("now.")), "{out:?}");
            assert!(out.iter().all(|part| !part.contains("0190a6d2")), "{out:?}");
        }
        assert!(all(&"x".repeat(100_000), 10).iter().map(String::len).sum::<usize>() < MOST + 100);
    }
}
