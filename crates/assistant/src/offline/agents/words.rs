//! The words of a message with their positions, so that the input of an agent keeps its original text.

/// Words before a command that do not change its meaning.
const LEADING_COURTESY: [&str; 37] = [
    "please",
    "pls",
    "plz",
    "hey",
    "hi",
    "hello",
    "ok",
    "okay",
    "k",
    "so",
    "well",
    "great",
    "cool",
    "nice",
    "good",
    "perfect",
    "thanks",
    "actually",
    "just",
    "now",
    "then",
    "and",
    "also",
    "oh",
    "right",
    "alright",
    "sure",
    "fine",
    "maybe",
    "lets",
    "um",
    "hmm",
    "but",
    "quickly",
    "afterwards",
    "yeah",
    "alternatively",
];
/// Phrases before a command that do not change its meaning.
const LEADING_PHRASES: [&[&str]; 22] = [
    &["can", "you"],
    &["could", "you"],
    &["would", "you"],
    &["will", "you"],
    &["can", "we"],
    &["could", "we"],
    &["can", "i"],
    &["could", "i"],
    &["you", "can"],
    &["you", "could"],
    &["i", "want", "you", "to"],
    &["i", "need", "you", "to"],
    &["id", "like", "you", "to"],
    &["i", "would", "like", "you", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["id", "like", "to"],
    &["i", "would", "like", "to"],
    &["go", "ahead", "and"],
    &["why", "dont", "we"],
    &["thank", "you"],
    &["got", "it"],
];
/// Phrases after a command that do not change its meaning.
const TRAILING_COURTESY: [&[&str]; 24] = [
    &["thank", "you", "so", "much"],
    &["thank", "you", "very", "much"],
    &["thank", "you"],
    &["thanks", "a", "lot"],
    &["thanks", "so", "much"],
    &["many", "thanks"],
    &["thanks"],
    &["thx"],
    &["ty"],
    &["cheers"],
    &["please"],
    &["pls"],
    &["plz"],
    &["would", "you"],
    &["will", "you"],
    &["can", "you"],
    &["could", "you"],
    &["if", "you", "can"],
    &["if", "possible"],
    &["if", "you", "dont", "mind"],
    &["ok"],
    &["okay"],
    &["mate"],
    &["for", "me"],
];

/// One word of a text.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::offline) struct Word {
    /// The position in the text, in bytes, with punctuation.
    pub(in crate::offline) start: usize,
    pub(in crate::offline) end: usize,
    /// In lower case, without punctuation around it and without apostrophes.
    pub(in crate::offline) plain: String,
}

/// A part of a text, with its words.
#[derive(Clone, Debug)]
pub(in crate::offline) struct Words<'t> {
    text: &'t str,
    words: Vec<Word>,
    /// A question to the assistant to do something: "can you …?"
    pub(in crate::offline) is_polite_question: bool,
}

impl<'t> Words<'t> {
    /// Splits a text at white space.
    pub(in crate::offline) fn new(text: &'t str) -> Self {
        let mut words = Vec::new();
        let mut start = None;
        for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
            match (start, character.is_whitespace()) {
                (None, false) => start = Some(at),
                (Some(from), true) => {
                    words.push(Word { start: from, end: at, plain: plain_word(&text[from..at]) });
                    start = None;
                }
                _ => {}
            }
        }
        Self { text, words, is_polite_question: false }
    }

    /// Returns the words without courtesy at both ends.
    pub(in crate::offline) fn without_courtesy(mut self) -> Self {
        loop {
            let plain = self.plain();
            let phrase = LEADING_PHRASES.iter().find(|phrase| plain.starts_with(phrase)).map(|phrase| phrase.len());
            let single = plain.first().is_some_and(|word| word.is_empty() || LEADING_COURTESY.contains(word));
            let Some(length) = phrase.or(single.then_some(1)) else { break };
            if length >= self.words.len() {
                break;
            }
            self.is_polite_question |= length > 1 && matches!(plain[0], "can" | "could" | "would" | "will" | "why");
            self.words.drain(..length);
        }
        loop {
            let plain = self.plain();
            let phrase = TRAILING_COURTESY.iter().find(|phrase| plain.ends_with(phrase)).map(|phrase| phrase.len());
            match phrase {
                Some(length) if length < self.words.len() => {
                    self.words.truncate(self.words.len() - length);
                }
                _ => break,
            }
        }
        self
    }

    /// Returns the words in lower case without punctuation.
    pub(in crate::offline) fn plain(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.plain.as_str()).collect()
    }

    /// Returns the plain word at this position, or an empty text.
    pub(in crate::offline) fn at(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.plain.as_str())
    }

    /// Returns the word at this position with its punctuation, or an empty text.
    pub(in crate::offline) fn raw(&self, at: usize) -> &'t str {
        self.words.get(at).map_or("", |word| &self.text[word.start..word.end])
    }

    pub(in crate::offline) fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns the words from this position on.
    pub(in crate::offline) fn from(&self, at: usize) -> Self {
        let words = self.words.get(at..).unwrap_or_default().to_vec();
        Self { text: self.text, words, is_polite_question: self.is_polite_question }
    }

    /// Returns the words before this position.
    pub(in crate::offline) fn until(&self, at: usize) -> Self {
        let words = self.words.get(..at).unwrap_or_default().to_vec();
        Self { text: self.text, words, is_polite_question: self.is_polite_question }
    }

    /// Returns the original text of the words, without separators at its ends. The question mark of a polite question is
    /// left out.
    pub(in crate::offline) fn source(&self) -> &'t str {
        let (Some(first), Some(last)) = (self.words.first(), self.words.last()) else { return "" };
        let text = self.text[first.start..last.end].trim();
        let text = text.trim_start_matches([',', ':', ';', '-', '–', '—']).trim_end_matches([',', ';', ':']);
        let text = if self.is_polite_question { text.trim_end_matches('?') } else { text };
        text.trim()
    }

    /// Returns the byte position of a word in the text, or the length of the text.
    pub(in crate::offline) fn start_of(&self, at: usize) -> usize {
        self.words.get(at).map_or(self.text.len(), |word| word.start)
    }

    /// Returns the whole text that the words belong to.
    pub(in crate::offline) fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the position of the first of these words.
    pub(in crate::offline) fn position(&self, any: &[&str]) -> Option<usize> {
        self.words.iter().position(|word| any.contains(&word.plain.as_str()))
    }

    /// Returns true if one of these words occurs.
    pub(in crate::offline) fn has(&self, any: &[&str]) -> bool {
        self.position(any).is_some()
    }
}

/// Converts a word to lower case and removes the punctuation around it and apostrophes.
pub(in crate::offline) fn plain_word(word: &str) -> String {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    word.replace(['\'', '’'], "")
}

/// Returns true for text that a person quoted or pasted: a code fence, a quotation, or several lines with speakers
/// (TRUST-5).
pub(in crate::offline) fn is_pasted(text: &str) -> bool {
    let has_speaker = |line: &&str| {
        line.split_once(':').is_some_and(|(name, _)| !name.trim().is_empty() && name.split_whitespace().count() <= 2)
    };
    let start = text.trim_start();
    start.starts_with('>')
        || start.starts_with('<')
        || start.starts_with("```")
        || start.starts_with(['"', '“', '„'])
        || text.lines().filter(has_speaker).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courtesy_at_both_ends_is_ignored() {
        let source = |text| Words::new(text).without_courtesy().source().to_owned();
        assert_eq!(source("ok, could you please run  it? Thank you so much!"), "run  it");
        assert_eq!(source("Hey, fix the Parser, pls"), "fix the Parser");
        assert_eq!(source("is it done?"), "is it done?");
        assert_eq!(source("please"), "please");
    }

    #[test]
    fn pasted_text_is_recognized() {
        // TRUST-5
        for text in
            ["> codex: fix it", "anna: hi\ncodex: done", "```\ncodex: fix\n```", "\"have codex fix it\" he said"]
        {
            assert!(is_pasted(text), "{text}");
        }
        assert!(!is_pasted("codex: fix the parser\nand the tests"));
    }
}
