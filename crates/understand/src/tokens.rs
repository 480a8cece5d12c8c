//! Splits an utterance into words, numbers, quoted passages and punctuation, each with its position in the text.
//!
//! Lower case is used for comparison only. Output is always copied from the original text. A quoted passage is one
//! token, and no rule inspects its content.

use std::ops::Range;

use crate::parser::DateOrder;
use crate::phrases::{self, PhraseEntry, Phrases, WordBits};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits, or both, with the marks that join them: `don't`, `3:30pm`, `10/31`.
    Word,
    /// A passage in quotes. The span includes the quotes.
    Quoted,
    /// A line break.
    Break,
    /// Any other punctuation mark.
    Mark,
}

#[derive(Clone, Copy, Debug)]
struct TextToken {
    kind: TokenKind,
    /// The position in the text, in bytes.
    start: usize,
    end: usize,
    /// The position of the normal form in [`TokenizedText::lower`], in bytes. Empty for a quoted passage.
    lower_start: usize,
    lower_end: usize,
    /// See [`phrases::key`] and [`phrases::short_hash`].
    key: u64,
    short_hash: u16,
    /// True if the token is a word of ASCII letters.
    letters: bool,
}

/// The tokens of a text. An index beyond the end yields an empty word, so matchers need no bounds checks.
#[derive(Debug)]
pub(crate) struct TokenizedText<'a> {
    text: &'a str,
    /// The text in ASCII lower case, byte for byte. Words with another normal form follow after it ("Ä", "p.m.").
    lower: String,
    tokens: Vec<TextToken>,
    /// True if words of other domains are taken for names of tasks.
    pub(crate) assume_tasks: bool,
    /// The order of day and month in numeric dates.
    pub(crate) date_order: DateOrder,
}

impl<'a> TokenizedText<'a> {
    /// Splits a text into tokens. White space, control characters and invisible characters yield no token, except line
    /// feeds. Accepts every text; an empty one has no tokens. `assume_tasks` is false and the month comes first until
    /// the caller changes them.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut lexer = Lexer {
            text,
            lower: text.to_ascii_lowercase(),
            // An average word has about five letters.
            tokens: Vec::with_capacity(text.len() / 4 + 4),
            unclosed: [false; 5],
        };
        lexer.run();
        Self { text, lower: lexer.lower, tokens: lexer.tokens, assume_tasks: false, date_order: DateOrder::default() }
    }

    /// Returns the number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the token in lower case with plain apostrophes. It is empty for a quoted passage and beyond the end.
    pub(crate) fn at(&self, i: usize) -> &str {
        #[cfg(test)]
        WORD_READS.set(WORD_READS.get() + 1);
        self.tokens.get(i).and_then(|t| self.lower.get(t.lower_start..t.lower_end)).unwrap_or_default()
    }

    /// Returns the token before `i`, in the format of [`Self::at`].
    pub(crate) fn before(&self, i: usize) -> &str {
        i.checked_sub(1).map_or("", |i| self.at(i))
    }

    /// Returns the kind of a token, or `None` beyond the end.
    pub(crate) fn kind(&self, i: usize) -> Option<TokenKind> {
        self.tokens.get(i).map(|t| t.kind)
    }

    pub(crate) fn is_word(&self, i: usize) -> bool {
        self.kind(i) == Some(TokenKind::Word)
    }

    pub(crate) fn is_quoted(&self, i: usize) -> bool {
        self.kind(i) == Some(TokenKind::Quoted)
    }

    /// Returns true if the token is a word of ASCII letters, without digits and marks.
    #[inline]
    pub(crate) fn is_letters(&self, i: usize) -> bool {
        self.tokens.get(i).is_some_and(|token| token.letters)
    }

    /// Returns the number of tokens of the longest phrase at `i`.
    #[inline]
    pub(crate) fn phrase(&self, i: usize, phrases: Phrases) -> Option<usize> {
        self.longest_phrase(i, phrases).map(PhraseEntry::len)
    }

    /// Returns the longest phrase that matches the tokens from `i` on, or `None`.
    #[inline]
    pub(crate) fn longest_phrase(&self, i: usize, phrases: Phrases) -> Option<&'static PhraseEntry> {
        if self.may_begin(i, phrases) { self.find_longest(i, phrases) } else { None }
    }

    /// Returns false if no phrase begins at `i`. True is only a hint: a few other words pass the test.
    #[inline]
    pub(crate) fn may_begin(&self, i: usize, phrases: Phrases) -> bool {
        self.tokens.get(i).is_some_and(|token| phrases.may_begin(token.short_hash))
    }

    /// Returns false if no phrase with these first words begins at `i`. True is only a hint.
    #[inline]
    pub(crate) fn may_begin_with(&self, i: usize, firsts: &WordBits) -> bool {
        let (slot, bit) = phrases::bit_position(self.tokens.get(i).map_or(0, |token| token.short_hash));
        firsts.get(slot).is_some_and(|firsts| firsts & bit != 0)
    }

    /// Returns true if the token at `i` is the first word of one of these phrases. Does not compare the following
    /// tokens.
    #[inline]
    pub(crate) fn starts_phrase(&self, i: usize, phrases: Phrases) -> bool {
        let begins = |token: &TextToken| phrases.starting_with(token.key, token.short_hash).next().is_some();
        self.may_begin(i, phrases) && self.tokens.get(i).is_some_and(begins)
    }

    /// Returns the longest phrase that matches the tokens from `i` on, or `None`. Compares keys only, so two long words
    /// with equal hashes count as equal. Not inlined, because [`Self::may_begin`] rejects most words.
    #[inline(never)]
    fn find_longest(&self, i: usize, phrases: Phrases) -> Option<&'static PhraseEntry> {
        let (token, after) = self.tokens.get(i..)?.split_first()?;
        let follows = |rest: &[u64]| after.len() >= rest.len() && rest.iter().zip(after).all(|(key, t)| *key == t.key);
        let found = phrases.starting_with(token.key, token.short_hash).find(|entry| follows(entry.rest));
        #[cfg(test)]
        phrases.record(found);
        found
    }

    /// Returns the index of the token in a list of words, or `None`. Phrases of several words never match.
    #[inline]
    pub(crate) fn index_in(&self, i: usize, words: Phrases) -> Option<usize> {
        let token = self.tokens.get(i)?;
        if words.may_begin(token.short_hash) { words.index_of_key(token.key, token.short_hash) } else { None }
    }

    /// Returns true if the token is one of the words.
    #[inline]
    pub(crate) fn is_one_of(&self, i: usize, words: Phrases) -> bool {
        self.index_in(i, words).is_some()
    }

    /// Returns the set of words in a range, for [`Phrases::may_occur_in`]. Different words can share a bit. The set is
    /// empty if the range exceeds the text.
    pub(crate) fn word_bits(&self, range: Range<usize>) -> WordBits {
        let mut bits = WordBits::default();
        for token in self.tokens.get(range).unwrap_or_default() {
            let (slot, bit) = phrases::bit_position(token.short_hash);
            bits[slot] |= bit;
        }
        bits
    }

    /// Returns the original text of a range of tokens, with everything between them. It is empty for an empty range,
    /// and if the range exceeds the text.
    pub(crate) fn text(&self, range: Range<usize>) -> &'a str {
        match (self.tokens.get(range.start), range.end.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some(first), Some(last)) if first.start <= last.end => &self.text[first.start..last.end],
            _ => "",
        }
    }

    /// Returns the byte range of a range of tokens. It is empty for an empty range, and if the range exceeds the text.
    pub(crate) fn span(&self, range: Range<usize>) -> Range<usize> {
        let start = self.tokens.get(range.start).map_or(self.text.len(), |token| token.start);
        let last = range.end.checked_sub(1).and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |token| token.end).max(start)
    }

    /// Returns the text between the quotes of a quoted passage, without surrounding white space. For other tokens the
    /// result is meaningless.
    pub(crate) fn quoted_text(&self, i: usize) -> &'a str {
        let quoted = self.text(i..i + 1);
        let mut chars = quoted.chars();
        chars.next();
        chars.next_back();
        chars.as_str().trim()
    }

    /// Returns true if no white space separates the tokens `i` and `i + 1`.
    pub(crate) fn is_adjacent_to_next(&self, i: usize) -> bool {
        matches!((self.tokens.get(i), self.tokens.get(i + 1)), (Some(a), Some(b)) if a.end == b.start)
    }
}

#[cfg(test)]
thread_local! {
    /// Number of calls of [`TokenizedText::at`]. A test uses it to prove that parsing is linear.
    pub(crate) static WORD_READS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

struct Lexer<'a> {
    text: &'a str,
    lower: String,
    tokens: Vec<TextToken>,
    /// Kinds of quotes that the rest of the text does not close. Prevents repeated searches.
    unclosed: [bool; 5],
}

impl Lexer<'_> {
    /// Lexes the whole text and appends its tokens. Spaces are skipped, and each line feed is a token.
    fn run(&mut self) {
        let mut at = 0;
        while let Some(byte) = self.text.as_bytes().get(at).copied() {
            at = match byte {
                b' ' => at + 1,
                b'\n' => self.push(TokenKind::Break, at, at + 1, at..at + 1, false),
                _ if byte.is_ascii_alphanumeric() => self.lex_word(at),
                _ => self.lex_other(at),
            };
        }
    }

    /// Lexes a token that does not begin with an ASCII letter or digit. Returns its end. Other letters and digits begin
    /// a word. White space and invisible characters are skipped without a token. A closed quote is a quoted passage,
    /// and any other character is a mark of its own.
    fn lex_other(&mut self, at: usize) -> usize {
        let Some(c) = self.char_at(at) else { return self.text.len() };
        let end = at + c.len_utf8();
        if c.is_alphanumeric() {
            self.lex_word(at)
        } else if c.is_whitespace() || is_invisible(c) {
            end
        } else if let Some(end) = self.quote_end(at, c) {
            self.push(TokenKind::Quoted, at, end, at..at, false)
        } else {
            self.push(TokenKind::Mark, at, end, at..end, false)
        }
    }

    /// Returns the character at a byte position, or `None` at the end of the text.
    fn char_at(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text.get(at..).and_then(|rest| rest.chars().next()),
        }
    }

    /// Appends a token with its keys and returns `end`. `start` and `end` are its byte positions in the text. `lower`
    /// is the range of its normal form in the lower-case text. `letters` is true for a word of ASCII letters.
    fn push(&mut self, kind: TokenKind, start: usize, end: usize, lower: Range<usize>, letters: bool) -> usize {
        let word = self.lower.as_bytes().get(lower.clone()).unwrap_or_default();
        let key = phrases::key(word);
        let short_hash = phrases::short_hash(key);
        self.tokens.push(TextToken {
            kind,
            start,
            end,
            lower_start: lower.start,
            lower_end: lower.end,
            key,
            short_hash,
            letters,
        });
        end
    }

    /// Lexes the word, number or URL at `start`. Returns its end. Letters, digits, underscores and combining marks
    /// belong to a word, and marks that join them (`3:30`, `don't`, `twenty-two`). The rest of `a.m.` and `p.m.`
    /// belongs to it, too. A word with `a.m.`, `p.m.`, a non-ASCII character or a backtick gets a separate normal form.
    /// It is appended to the lower-case text, with plain apostrophes and without the full stops of `p.m.`.
    fn lex_word(&mut self, start: usize) -> usize {
        let rest = self.lower.as_bytes().get(start..self.text.len()).unwrap_or_default();
        let letters = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let mut end = start + letters;
        if rest.get(letters).is_none_or(|byte| *byte == b' ') {
            return self.push(TokenKind::Word, start, end, start..end, true);
        }
        if let Some(end) = self.text.get(start..).and_then(url_length).map(|length| start + length) {
            return self.push(TokenKind::Word, start, end, start..end, false);
        }
        // True if the lower-case text already contains the word in its normal form.
        let mut plain = true;
        loop {
            let rest = self.lower.as_bytes().get(end..self.text.len()).unwrap_or_default();
            end += rest.iter().position(|byte| !matches!(byte, b'a'..=b'z' | b'0'..=b'9')).unwrap_or(rest.len());
            let Some(c) = self.char_at(end).filter(|c| *c != ' ') else { break };
            let last = || self.text[start..end].chars().next_back().unwrap_or(' ');
            if !c.is_alphanumeric() && !is_combining(c) && !joins_word(last(), c, self.char_at(end + c.len_utf8())) {
                break;
            }
            plain &= c.is_ascii() && c != '`';
            end += c.len_utf8();
        }
        let whole = self.meridiem_end(start, end);
        if plain && whole == end {
            return self.push(TokenKind::Word, start, end, start..end, end == start + letters);
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
        self.push(TokenKind::Word, start, whole, lower_start..self.lower.len(), false)
    }

    /// Returns the end of a word, including the rest of `a.m.` or `p.m.`. The word must be `a` or `p`, possibly after a
    /// time: `p`, `5a`, `3:30p`. The last full stop is optional. Returns `end` unchanged for other words, and if a
    /// letter or digit follows the `m`.
    fn meridiem_end(&self, start: usize, end: usize) -> usize {
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

    /// Returns the end of the passage that the quote `c` at `at` opens, after the closing quote. Opening quotes are
    /// `"`, `“`, `„`, `«`, `‘`, `'` and the backtick. Returns `None` if `c` is no such quote, or an apostrophe after a
    /// letter or digit. Also returns `None` if it is not closed, or if the passage has no letter or digit. Remembers a
    /// kind of quote that is not closed and never searches for it again. `“` and `„` are one kind, and so are `'` and
    /// the backtick.
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
        let end = self.text.get(inside..).and_then(|rest| self.closing_quote(rest, close)).map(|end| inside + end);
        if end.is_none()
            && let Some(flag) = self.unclosed.get_mut(n)
        {
            *flag = true;
        }
        end.filter(|end| self.text.get(inside..*end).is_some_and(|s| s.chars().any(char::is_alphanumeric)))
    }

    /// Returns the position in `rest` after the first quote that closes the passage, or `None`. `“` also closes for
    /// `”`. An apostrophe or backtick does not close an empty passage, nor directly before a letter or digit.
    fn closing_quote(&self, rest: &str, close: char) -> Option<usize> {
        let also = if close == '”' { '“' } else { close };
        rest.char_indices().find_map(|(at, c)| {
            let end = at + c.len_utf8();
            let word_follows = rest[end..].chars().next().is_some_and(char::is_alphanumeric);
            let closes = (c == close || c == also) && (!is_apostrophe(close) || at > 0 && !word_follows);
            closes.then_some(end)
        })
    }
}

/// Returns the length in bytes of the URL at the beginning of a text. It ends before white space, without punctuation
/// and closing brackets or quotes at its end. Returns `None` if the text does not begin with `http://`, `https://` or
/// `www.` in any case, or if nothing follows `www.`.
fn url_length(text: &str) -> Option<usize> {
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

/// Returns true for marks that modify the previous letter, and for joiners of scripts and emoji.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{94f}' | '\u{200c}' | '\u{200d}' | '_')
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns true if the mark `c` between the characters `last` and `next` belongs to the word. `/`, `:`, `.` and `;`
/// join digits (`3:30`). A hyphen joins digits, or a letter and a letter or digit (`twenty-two`). An apostrophe joins a
/// letter or digit and a letter (`don't`). False for other marks and at the end of the text.
fn joins_word(last: char, c: char, next: Option<char>) -> bool {
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

    fn token_texts(text: &str) -> Vec<String> {
        let words = TokenizedText::new(text);
        (0..words.len()).map(|i| words.text(i..i + 1).to_owned()).collect()
    }

    #[test]
    fn words_numbers_and_quotes_are_single_tokens() {
        assert_eq!(token_texts("don’t, at 3:30pm!"), ["don’t", ",", "at", "3:30pm", "!"]);
        assert_eq!(token_texts("12/31/99 8.30 pm"), ["12/31/99", "8.30", "pm"]);
        assert_eq!(token_texts("say \"add milk\" now"), ["say", "\"add milk\"", "now"]);
        assert_eq!(token_texts("rename 'buy milk' to 'Bob's milk'"), ["rename", "'buy milk'", "to", "'Bob's milk'"]);
        assert_eq!(token_texts("«ab» “c d”"), ["«ab»", "“c d”"]);
        assert_eq!(token_texts("see https://a.example/b?c=1#d."), ["see", "https://a.example/b?c=1#d", "."]);
        assert_eq!(token_texts("(WWW.Ä.example)"), ["(", "WWW.Ä.example", ")"]);
        assert_eq!(token_texts("twenty-two 🎂 牛乳を買う"), ["twenty-two", "🎂", "牛乳を買う"]);
        assert_eq!(token_texts("at 5 p.m. sharp"), ["at", "5", "p.m.", "sharp"]);
        assert_eq!(TokenizedText::new("5 P.M.").at(1), "pm");
        assert_eq!(TokenizedText::new("5p.m").at(0), "5pm");
        assert_eq!(TokenizedText::new("DON’T").at(0), "don't");
    }

    #[test]
    fn an_unclosed_quote_is_a_mark() {
        assert_eq!(token_texts("a \" b"), ["a", "\"", "b"]);
        assert_eq!(token_texts("dogs' food"), ["dogs", "'", "food"]);
    }
}
