//! Cuts an utterance into words, numbers, quoted passages and punctuation, each with its place in the text.
//!
//! Lower-cases for comparison only: what is shown again is always cut from the text itself. What stands in quotes is
//! one token that no rule looks into.

use std::ops::Range;

use crate::phrases::{self, Bits, Entry, Phrases};
use crate::reader::Order;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters, digits, or both, with the marks that hold them together: `don't`, `3:30pm`, `10/31`.
    Word,
    /// A passage in quotes; the span includes them.
    Quoted,
    /// A line break.
    Break,
    /// Any other mark.
    Mark,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
    lower_start: usize,
    lower_end: usize,
    /// See [`phrases::key`] and [`phrases::mark`].
    key: u64,
    mark: u16,
    /// Whether it is a word of plain letters.
    letters: bool,
}

/// The tokens of a text. Asking beyond the end gives an empty word, so that matchers need no checks.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    text: &'a str,
    /// The text in lower case, byte for byte; after it the words that are written in other ways ("Ä", "p.m.").
    lower: String,
    tokens: Vec<Token>,
    /// Whether words of other trades are taken for names of tasks.
    pub(crate) of_tasks: bool,
    /// How a date in figures is read.
    pub(crate) numeric: Order,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut lexer = Lexer {
            text,
            lower: text.to_ascii_lowercase(),
            // Words have about five letters.
            tokens: Vec::with_capacity(text.len() / 4 + 4),
            unclosed: [false; 5],
        };
        lexer.run();
        Self { text, lower: lexer.lower, tokens: lexer.tokens, of_tasks: false, numeric: Order::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The token in lower case with plain apostrophes; empty for a quoted passage and beyond the end.
    pub(crate) fn at(&self, i: usize) -> &str {
        #[cfg(test)]
        LOOKS.set(LOOKS.get() + 1);
        self.tokens.get(i).and_then(|t| self.lower.get(t.lower_start..t.lower_end)).unwrap_or_default()
    }

    /// The token before `i`, in the same way.
    pub(crate) fn before(&self, i: usize) -> &str {
        i.checked_sub(1).map_or("", |i| self.at(i))
    }

    pub(crate) fn kind(&self, i: usize) -> Option<Kind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    pub(crate) fn is_word(&self, i: usize) -> bool {
        self.kind(i) == Some(Kind::Word)
    }

    pub(crate) fn is_quoted(&self, i: usize) -> bool {
        self.kind(i) == Some(Kind::Quoted)
    }

    /// Whether the token is a word of plain letters: no figures in it, no marks.
    #[inline]
    pub(crate) fn is_letters(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|token| token.letters)
    }

    /// The length of the longest of these phrases that stands at `i`.
    #[inline]
    pub(crate) fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.entry(i, phrases).map(Entry::len)
    }

    /// The longest of these phrases that stands at `i`.
    #[inline]
    pub(crate) fn entry(&self, i: usize, phrases: Phrases) -> Option<&'static Entry> {
        if self.may_begin(i, phrases) { self.longest(i, phrases) } else { None }
    }

    /// Whether one of these phrases may begin at `i`; few pass where none does.
    #[inline]
    pub(crate) fn may_begin(&self, i: usize, phrases: Phrases) -> bool {
        self.tokens.get(i).is_some_and(|token| phrases.may_begin(token.mark))
    }

    /// Returns true if a phrase with these first words may begin at `i`.
    #[inline]
    pub(crate) fn may_begin_with(&self, i: usize, firsts: &Bits) -> bool {
        let (slot, bit) = phrases::bit(self.tokens.get(i).map_or(0, |token| token.mark));
        firsts.get(slot).is_some_and(|firsts| firsts & bit != 0)
    }

    /// Returns true if one of these phrases begins with the token at `i`.
    #[inline]
    pub(crate) fn is_first(&self, i: usize, phrases: Phrases) -> bool {
        let begins = |token: &Token| phrases.beginning_with(token.key, token.mark).next().is_some();
        self.may_begin(i, phrases) && self.tokens.get(i).is_some_and(begins)
    }

    /// Apart from the question above, so that the many refusals cost next to nothing.
    #[inline(never)]
    fn longest(&self, i: usize, phrases: Phrases) -> Option<&'static Entry> {
        let (token, after) = self.tokens.get(i..)?.split_first()?;
        let follows = |rest: &[u64]| after.len() >= rest.len() && rest.iter().zip(after).all(|(key, t)| *key == t.key);
        let found = phrases.beginning_with(token.key, token.mark).find(|entry| follows(entry.rest));
        #[cfg(test)]
        phrases.record(found);
        found
    }

    /// Where the token stands in this list of words.
    #[inline]
    pub(crate) fn place(&self, i: usize, words: Phrases) -> Option<usize> {
        let token = self.tokens.get(i)?;
        if words.may_begin(token.mark) { words.place_of(token.key, token.mark) } else { None }
    }

    /// Whether the token is one of these words.
    #[inline]
    pub(crate) fn is_one_of(&self, i: usize, words: Phrases) -> bool {
        self.place(i, words).is_some()
    }

    /// The words of a stretch, for [`Phrases::may_meet`].
    pub(crate) fn bits(&self, range: Range<usize>) -> Bits {
        let mut bits = Bits::default();
        for token in self.tokens.get(range).unwrap_or_default() {
            let (slot, bit) = phrases::bit(token.mark);
            bits[slot] |= bit;
        }
        bits
    }

    /// The text of some tokens, as it was written.
    pub(crate) fn text(&self, range: Range<usize>) -> &'a str {
        match (self.tokens.get(range.start), range.end.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some(first), Some(last)) if first.start <= last.end => &self.text[first.start..last.end],
            _ => "",
        }
    }

    /// Where some tokens stand in the text, in bytes.
    pub(crate) fn span(&self, range: Range<usize>) -> Range<usize> {
        let start = self.tokens.get(range.start).map_or(self.text.len(), |token| token.start);
        let last = range.end.checked_sub(1).and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |token| token.end).max(start)
    }

    /// What stands between the quotes of a quoted passage.
    pub(crate) fn inside(&self, i: usize) -> &'a str {
        let quoted = self.text(i..i + 1);
        let mut chars = quoted.chars();
        chars.next();
        chars.next_back();
        chars.as_str().trim()
    }

    /// Whether white space or nothing separates the tokens `i` and `i + 1`.
    pub(crate) fn touches_next(&self, i: usize) -> bool {
        matches!((self.tokens.get(i), self.tokens.get(i + 1)), (Some(a), Some(b)) if a.end == b.start)
    }
}

#[cfg(test)]
thread_local! {
    /// How often a word was looked at, for the test that long texts are not read over and over.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

struct Lexer<'a> {
    text: &'a str,
    lower: String,
    tokens: Vec<Token>,
    /// Kinds of quote that are known not to be closed in the rest of the text, so that no text is searched twice.
    unclosed: [bool; 5],
}

impl Lexer<'_> {
    fn run(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.text.as_bytes().get(at).copied() {
            at = match byte {
                b' ' => at + 1,
                b'\n' => self.push(Kind::Break, at, at + 1, at..at + 1, false),
                _ if byte.is_ascii_alphanumeric() => self.word(at),
                _ => self.other(at),
            };
        }
    }

    /// What begins with no plain letter or figure.
    fn other(&mut self, at: usize) -> usize {
        let Some(c) = self.char_at(at) else { return self.text.len() };
        let end = at + c.len_utf8();
        if c.is_alphanumeric() {
            self.word(at)
        } else if c.is_whitespace() || is_invisible(c) {
            end
        } else if let Some(end) = self.quote_end(at, c) {
            self.push(Kind::Quoted, at, end, at..at, false)
        } else {
            self.push(Kind::Mark, at, end, at..end, false)
        }
    }

    fn char_at(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text.get(at..).and_then(|rest| rest.chars().next()),
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize, lower: Range<usize>, letters: bool) -> usize {
        let word = self.lower.as_bytes().get(lower.clone()).unwrap_or_default();
        let key = phrases::key(word);
        let mark = phrases::mark(key);
        self.tokens.push(Token {
            kind,
            start,
            end,
            lower_start: lower.start,
            lower_end: lower.end,
            key,
            mark,
            letters,
        });
        end
    }

    fn word(&mut self, start: usize) -> usize {
        let rest = self.lower.as_bytes().get(start..self.text.len()).unwrap_or_default();
        let letters = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let mut end = start + letters;
        if rest.get(letters).is_none_or(|byte| *byte == b' ') {
            return self.push(Kind::Word, start, end, start..end, true);
        }
        if let Some(end) = self.text.get(start..).and_then(address).map(|length| start + length) {
            return self.push(Kind::Word, start, end, start..end, false);
        }
        // Whether it stands in the lower case of the text as it has to be.
        let mut plain = true;
        loop {
            let rest = self.lower.as_bytes().get(end..self.text.len()).unwrap_or_default();
            end += rest.iter().position(|byte| !matches!(byte, b'a'..=b'z' | b'0'..=b'9')).unwrap_or(rest.len());
            let Some(c) = self.char_at(end).filter(|c| *c != ' ') else { break };
            let last = || self.text[start..end].chars().next_back().unwrap_or(' ');
            if !c.is_alphanumeric() && !is_combining(c) && !joins(last(), c, self.char_at(end + c.len_utf8())) {
                break;
            }
            plain &= c.is_ascii() && c != '`';
            end += c.len_utf8();
        }
        let whole = self.half_of_day(start, end);
        if plain && whole == end {
            return self.push(Kind::Word, start, end, start..end, end == start + letters);
        }
        let lower_start = self.lower.len();
        for c in self.text[start..end].chars() {
            if is_apostrophe(c) {
                self.lower.push('\'');
            } else {
                self.lower.extend(c.to_lowercase());
            }
        }
        if whole > end {
            self.lower.push('m');
        }
        self.push(Kind::Word, start, whole, lower_start..self.lower.len(), false)
    }

    /// The end of a word with the rest of `a.m.` or `p.m.` where it begins one.
    fn half_of_day(&self, start: usize, end: usize) -> usize {
        let rest = &self.text[end..];
        if !rest.starts_with(".m") && !rest.starts_with(".M") {
            return end;
        }
        let Some(hour) = self.text[start..end].strip_suffix(['a', 'p', 'A', 'P']) else { return end };
        if !hour.bytes().all(|b| b.is_ascii_digit() || b == b':' || b == b'.') {
            return end;
        }
        match rest[2..].chars().next() {
            Some(c) if c.is_alphanumeric() => end,
            after => end + 2 + usize::from(after == Some('.')),
        }
    }

    /// The end of the passage that a quote at `at` opens.
    fn quote_end(&mut self, at: usize, c: char) -> Option<usize> {
        let (n, close) = match c {
            '"' => (0, '"'),
            '“' | '„' => (1, '”'),
            '«' => (2, '»'),
            '‘' => (3, '’'),
            '\'' | '`' => (4, c),
            _ => return None,
        };
        let after_letter = self.text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        if self.unclosed.get(n).copied().unwrap_or(true) || is_apostrophe(c) && after_letter {
            return None;
        }
        let inside = at + c.len_utf8();
        let end = self.text.get(inside..).and_then(|rest| self.closing(rest, close)).map(|end| inside + end);
        if end.is_none()
            && let Some(flag) = self.unclosed.get_mut(n)
        {
            *flag = true;
        }
        end.filter(|end| self.text.get(inside..*end).is_some_and(|s| s.chars().any(char::is_alphanumeric)))
    }

    fn closing(&self, rest: &str, close: char) -> Option<usize> {
        let also = if close == '”' { '“' } else { close };
        rest.char_indices().find_map(|(at, c)| {
            let end = at + c.len_utf8();
            let word_follows = rest[end..].chars().next().is_some_and(char::is_alphanumeric);
            let closes = (c == close || c == also) && (!is_apostrophe(close) || at > 0 && !word_follows);
            closes.then_some(end)
        })
    }
}

/// The length of the address of a page that a text begins with.
fn address(text: &str) -> Option<usize> {
    let begins = |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if !["http://", "https://", "www."].into_iter().any(begins) {
        return None;
    }
    let whole = text.split(char::is_whitespace).next().unwrap_or_default();
    Some(whole.trim_end_matches(|c: char| ".,;:!?)]>'\"”’»".contains(c)).len()).filter(|length| *length > 4)
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’' | '‘' | '`')
}

/// Marks that change the letter before them, and the joiners of scripts and emoji.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}' | '\u{200c}' | '\u{200d}' | '_')
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Whether a mark between two characters belongs to the word.
fn joins(last: char, c: char, next: Option<char>) -> bool {
    let Some(next) = next else { return false };
    let digits = last.is_ascii_digit() && next.is_ascii_digit();
    match c {
        '/' | ':' | '.' | ';' => digits,
        '-' => digits || last.is_alphabetic() && next.is_alphanumeric(),
        _ if is_apostrophe(c) => last.is_alphanumeric() && next.is_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let words = Words::new(text);
        (0..words.len()).map(|i| words.text(i..i + 1).to_owned()).collect()
    }

    #[test]
    fn words_numbers_and_quotes_are_kept_whole() {
        assert_eq!(cut("don’t, at 3:30pm!"), ["don’t", ",", "at", "3:30pm", "!"]);
        assert_eq!(cut("12/31/99 8.30 pm"), ["12/31/99", "8.30", "pm"]);
        assert_eq!(cut("say \"add milk\" now"), ["say", "\"add milk\"", "now"]);
        assert_eq!(cut("rename 'buy milk' to 'Bob's milk'"), ["rename", "'buy milk'", "to", "'Bob's milk'"]);
        assert_eq!(cut("«ab» “c d”"), ["«ab»", "“c d”"]);
        assert_eq!(cut("see https://a.example/b?c=1#d."), ["see", "https://a.example/b?c=1#d", "."]);
        assert_eq!(cut("(WWW.Ä.example)"), ["(", "WWW.Ä.example", ")"]);
        assert_eq!(cut("twenty-two 🎂 牛乳を買う"), ["twenty-two", "🎂", "牛乳を買う"]);
        assert_eq!(cut("at 5 p.m. sharp"), ["at", "5", "p.m.", "sharp"]);
        assert_eq!(Words::new("5 P.M.").at(1), "pm");
        assert_eq!(Words::new("5p.m").at(0), "5pm");
        assert_eq!(Words::new("DON’T").at(0), "don't");
    }

    #[test]
    fn a_quote_that_is_never_closed_is_a_mark() {
        assert_eq!(cut("a \" b"), ["a", "\"", "b"]);
        assert_eq!(cut("dogs' food"), ["dogs", "'", "food"]);
    }
}
