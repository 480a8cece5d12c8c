//! Separates a message from the words around it: "oh no, sorry: thursday please" is a correction that says "thursday".

use super::matching::normalize;

/// A message without its lead-in and its closing words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Framing {
    pub(super) body: String,
    /// The message begins with a refusal, such as "no" or "nope".
    pub(super) refuses: bool,
    /// The message takes back or replaces something: "sorry", "actually", "i meant", "instead".
    pub(super) corrects: bool,
    /// The message continues the one before it: "and", "also", "as well".
    pub(super) continues: bool,
    pub(super) is_question: bool,
}

/// The effect of a lead-in or of closing words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Neutral,
    Refuses,
    Corrects,
    Continues,
}

use Frame::{Continues, Corrects, Neutral, Refuses};

/// Phrases that introduce a message, longest first for each beginning.
const LEADS: &[(&str, Frame)] = &[
    ("no wait", Refuses),
    ("no sorry", Refuses),
    ("nah", Refuses),
    ("nope", Refuses),
    ("no", Refuses),
    ("hang on", Corrects),
    ("hold on", Corrects),
    ("wait", Corrects),
    ("whoops", Corrects),
    ("oops", Corrects),
    ("ooops", Corrects),
    ("sorry", Corrects),
    ("sry", Corrects),
    ("soz", Corrects),
    ("my bad", Corrects),
    ("my mistake", Corrects),
    ("typo", Corrects),
    ("wrong one", Corrects),
    ("wrong task", Corrects),
    ("correction", Corrects),
    ("scratch that", Corrects),
    ("i meant", Corrects),
    ("i mean", Corrects),
    ("meant", Corrects),
    ("actually", Corrects),
    ("or rather", Corrects),
    ("rather", Corrects),
    ("better", Corrects),
    ("on second thought", Corrects),
    ("on second thoughts", Corrects),
    ("you know what", Corrects),
    ("how about", Continues),
    ("what about", Continues),
    ("oh and", Continues),
    ("and then", Continues),
    ("and also", Continues),
    ("and", Continues),
    ("also", Continues),
    ("plus", Continues),
    ("n", Continues),
    ("&", Continues),
    ("then", Neutral),
    ("ah", Neutral),
    ("oh", Neutral),
    ("ooh", Neutral),
    ("ok", Neutral),
    ("okay", Neutral),
    ("k", Neutral),
    ("kk", Neutral),
    ("alright", Neutral),
    ("right", Neutral),
    ("so", Neutral),
    ("well", Neutral),
    ("hm", Neutral),
    ("hmm", Neutral),
    ("hmmm", Neutral),
    ("um", Neutral),
    ("uhh", Neutral),
    ("umm", Neutral),
    ("lol", Neutral),
    ("haha", Neutral),
    ("argh", Neutral),
    ("ugh", Neutral),
    ("omg", Neutral),
    ("yay", Neutral),
    ("meanwhile", Neutral),
    ("whatever", Neutral),
    ("anyway", Neutral),
    ("anyways", Neutral),
    ("ah right", Neutral),
    ("uh", Neutral),
    ("fine", Neutral),
    ("great", Neutral),
    ("cool", Neutral),
    ("nice", Neutral),
    ("good", Neutral),
    ("perfect", Neutral),
    ("lovely", Neutral),
    ("awesome", Neutral),
    ("yes", Neutral),
    ("yeah", Neutral),
    ("yep", Neutral),
    ("yup", Neutral),
    ("hey", Neutral),
    ("hi", Neutral),
    ("hello", Neutral),
    ("morning", Neutral),
    ("please", Neutral),
    ("pls", Neutral),
    ("plz", Neutral),
    ("thanks", Neutral),
    ("thx", Neutral),
    ("ty", Neutral),
    ("cheers", Neutral),
    ("thank you", Neutral),
    ("now", Neutral),
    ("just", Neutral),
    ("by the way", Neutral),
    ("btw", Neutral),
    ("its", Neutral),
    ("it's", Neutral),
];

/// Words that keep the lead-in before them in the message: "no rush", "right now", "good morning".
const KEPT: &[(&str, &[&str])] = &[
    (
        "no",
        &[
            "rush",
            "hurry",
            "need",
            "longer",
            "more",
            "date",
            "due",
            "deadline",
            "reminder",
            "reminders",
            "repeat",
            "repeats",
            "repetition",
            "priority",
            "tag",
            "tags",
            "time",
            "note",
            "pressure",
            "worries",
            "problem",
            "thanks",
            "thank",
            "one",
        ],
    ),
    ("right", &["now", "away"]),
    ("just", &["now", "done", "finished", "did", "got", "once", "the", "a", "one", "normal", "put"]),
    ("good", &["morning", "evening", "night", "afternoon", "day", "job", "one"]),
    ("nice", &["one", "work", "job"]),
    ("morning", &["of", "run"]),
    ("better", &["be", "to"]),
    ("rather", &["than"]),
    ("well", &["done"]),
    ("then", &["again"]),
    ("its", &["deadline", "date", "priority", "tag", "tags", "title", "name", "due", "note"]),
    ("wait", &["for", "until", "till"]),
    ("hold", &["it", "that", "the"]),
    ("how", &[]),
];

/// Phrases that close a message.
const TAILS: &[(&str, Frame)] = &[
    ("please", Neutral),
    ("pls", Neutral),
    ("plz", Neutral),
    ("thanks", Neutral),
    ("thank you", Neutral),
    ("thank you so much", Neutral),
    ("thx", Neutral),
    ("ty", Neutral),
    ("ta", Neutral),
    ("cheers", Neutral),
    ("mate", Neutral),
    ("btw", Neutral),
    ("tbh", Neutral),
    ("atm", Neutral),
    ("rn", Neutral),
    ("then", Neutral),
    ("now", Neutral),
    ("though", Neutral),
    ("tho", Neutral),
    ("for me", Neutral),
    ("would you", Neutral),
    ("will you", Neutral),
    ("if you can", Neutral),
    ("if possible", Neutral),
    ("ok", Neutral),
    ("okay", Neutral),
    ("i said", Neutral),
    ("obvs", Neutral),
    ("lol", Neutral),
    ("haha", Neutral),
    ("amirite", Neutral),
    ("for now", Neutral),
    ("too", Continues),
    ("as well", Continues),
    ("also", Continues),
    ("instead", Corrects),
    ("rather", Corrects),
    ("actually", Corrects),
    ("after all", Corrects),
    ("sorry", Corrects),
];

impl Framing {
    /// Separates a message. Emoji around it count as decoration. The body keeps its original spelling. It is empty for a
    /// message that consists of such words only.
    pub(super) fn read(message: &str) -> Self {
        let mut framing = Self { is_question: message.trim_end().ends_with('?'), ..Self::default() };
        let mut body = trim(message);
        while let Some((length, frame)) = lead(body) {
            framing.apply(frame);
            body = trim(&body[length..]);
        }
        while let Some((start, frame)) = tail(body) {
            framing.apply(frame);
            body = trim(&body[..start]);
        }
        body.clone_into(&mut framing.body);
        framing
    }

    fn apply(&mut self, frame: Frame) {
        match frame {
            Neutral => {}
            Refuses => self.refuses = true,
            Corrects => self.corrects = true,
            Continues => self.continues = true,
        }
    }

    /// Returns true if the message changes what was done before.
    pub(super) fn replaces(&self) -> bool {
        self.refuses || self.corrects
    }
}

/// Returns true for the words of a question that expects "yes" or "no". Such a message changes nothing.
pub(super) fn asks_yes_or_no(body: &str) -> bool {
    let text = normalize(body);
    let first = text.split(' ').next().unwrap_or_default();
    matches!(first, "is" | "are" | "was" | "were" | "does" | "did" | "has" | "am" | "isnt" | "isn" | "doesnt")
}

/// Removes white space, punctuation and emoji around a text, but no quotes, brackets and signs that belong to a word.
pub(super) fn trim(text: &str) -> &str {
    let is_outer = |c: char| {
        c.is_whitespace()
            || matches!(c, ',' | '.' | '!' | '?' | ';' | ':' | '-' | '–' | '—' | '…' | ')' | '~')
            || is_emoji(c)
    };
    let start_is_outer = |c: char| is_outer(c) && c != ')';
    text.trim_start_matches(start_is_outer).trim_end_matches(is_outer)
}

/// Returns true for symbols and pictures, and for the characters that join them.
pub(super) fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2bff | 0xfe0f | 0x200d | 0x1f000..=0x1faff)
}

/// Returns the length of the lead-in at the start of a text, in bytes.
fn lead(text: &str) -> Option<(usize, Frame)> {
    let lower = text.to_lowercase();
    // The positions are the same only if the lower case has the same length.
    if lower.len() != text.len() {
        return None;
    }
    let found =
        LEADS.iter().filter(|(phrase, _)| starts_with_words(&lower, phrase)).max_by_key(|(phrase, _)| phrase.len());
    let (phrase, frame) = *found?;
    let rest = lower[phrase.len()..].trim_start();
    let next = rest.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    let first = phrase.split(' ').next().unwrap_or_default();
    let is_kept = KEPT.iter().any(|(word, kept)| *word == first && kept.contains(&next));
    (!is_kept).then_some((phrase.len(), frame))
}

/// Returns the start of the closing words of a text, in bytes. They never are the whole text.
fn tail(text: &str) -> Option<(usize, Frame)> {
    let lower = text.to_lowercase();
    if lower.len() != text.len() {
        return None;
    }
    let ends = |phrase: &str| {
        let before = lower.strip_suffix(phrase)?;
        let is_word = before.ends_with(|c: char| c.is_whitespace() || matches!(c, ',' | '.' | '!' | '?'));
        (is_word && !trim(before).is_empty()).then_some(before.len())
    };
    let found = TAILS.iter().filter_map(|(phrase, frame)| Some((ends(phrase)?, *frame)));
    found.min_by_key(|(start, _)| *start)
}

/// Returns true if the text begins with these whole words.
fn starts_with_words(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '\''))
}

/// Splits a text into clauses at commas, semicolons, full stops, exclamation marks, line breaks and dashes between
/// spaces. A full stop inside of a number or a word does not count. Returns no empty clauses.
pub(super) fn clauses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        let before_space = bytes.get(next).is_none_or(u8::is_ascii_whitespace);
        let splits = match c {
            '\n' | ';' | '!' | '?' => true,
            ',' | '.' | ':' => before_space,
            '-' | '–' | '—' => before_space && text[..at].ends_with(' '),
            _ => false,
        };
        if splits {
            parts.push(&text[start..at]);
            start = next;
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_around_a_message_are_separated() {
        // TRUST-3
        for (message, body, marks) in [
            ("no, tuesday", "tuesday", "r"),
            ("oh no, sorry: thursday please", "thursday", "rc"),
            ("hmm, better saturday", "saturday", "c"),
            ("and raisins", "raisins", "+"),
            ("the gas bill as well now", "the gas bill", "+"),
            ("the deltacom one too actually", "the deltacom one", "c+"),
            ("no rush on that one", "no rush on that one", ""),
            ("right, number 2 is finished", "number 2 is finished", ""),
            ("wrong one!! i meant the gym membership", "the gym membership", "c"),
            ("ok let claude do it then", "let claude do it", ""),
            ("and tmrw?", "tmrw", "+?"),
            ("👍", "", ""),
            ("done ✅", "done", ""),
        ] {
            let framing = Framing::read(message);
            let mut found = String::new();
            for (is_set, mark) in
                [(framing.refuses, 'r'), (framing.corrects, 'c'), (framing.continues, '+'), (framing.is_question, '?')]
            {
                found.extend(is_set.then_some(mark));
            }
            assert_eq!((framing.body.as_str(), found.as_str()), (body, marks), "{message}");
        }
    }

    #[test]
    fn clauses_end_at_marks() {
        assert_eq!(clauses("undo that, she spat it out"), ["undo that", "she spat it out"]);
        assert_eq!(clauses("at 10.30, not 11. ok?"), ["at 10.30", "not 11", "ok"]);
        assert_eq!(clauses("well-known place - now"), ["well-known place", "now"]);
    }
}
