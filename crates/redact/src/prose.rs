//! Tells a secret from prose and source code where a value stands without quotes.
//!
//! Never looks words up in a dictionary: it goes by how a value is written and what stands around it.

use super::names;
use super::scan::{Bytes, run_end};

/// What a value without quotes looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A word of a sentence, or a type: `invalid`, `String`, `единица`.
    Word,
    /// A name made of words: `next_token`, `readOnly`, `DEFAULT`, `read-only`.
    Name,
    /// Names joined by dots: `self.token`.
    Path,
    /// A call, an index or a type with parameters: `os.getenv(`, `Option<String>`, `Token::new`.
    Code,
    Secret,
}

/// How the value is tied to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// `name: value`
    Colon,
    /// `name = value`
    Spaced,
    /// `name=value`
    Tight,
    /// `--name value`
    Flag,
}

const LONGEST_WORD: usize = 14;

/// The rule: a bare value is left when it is code (a call, a path, a type), one word of at most 14 letters after a
/// colon, or a name made of words that more code or prose follows on its line or that repeats the name before it;
/// after a tight `=` only a call, or an argument named like a secret itself (`f(token=token)`), is left.
pub(super) fn is_harmless(value: &str, name: &str, link: Link, after: Bytes) -> bool {
    let argument = || matches!(after.first(), Some(b',' | b')'));
    match (look(value), link) {
        (Look::Secret, _) => link == Link::Colon && after.starts_with(b" = ") && value.bytes().all(in_name),
        (Look::Code, Link::Tight) => matches!(after.first(), Some(b'(' | b')' | b']' | b',' | b'"' | b'\'' | b'\\')),
        (Look::Code, _) => true,
        (_, Link::Flag) => is_grammar(value),
        (Look::Path, Link::Tight) => argument(),
        (_, Link::Tight) => names::is_secret(value) && argument(),
        (Look::Path, _) | (Look::Word, Link::Colon) => true,
        (Look::Word | Look::Name, _) => repeats(value, name) || is_own(name) || !ends_line(after),
    }
}

pub(super) fn look(value: &str) -> Look {
    let value = value.trim_start_matches(['*', '!', '@']).trim_end_matches(['.', '?', '!', ':']);
    if !value.is_ascii() {
        let in_word = |c: char| !c.is_ascii_punctuation() && !c.is_numeric();
        return if value.chars().all(in_word) { Look::Word } else { Look::Secret };
    }
    if is_code(value) {
        return Look::Code;
    }
    let capitals = || value.bytes().skip(1).any(|b| b.is_ascii_uppercase());
    match value.contains('.') {
        true if is_field(value) || value.split('.').all(is_name) => Look::Path,
        false if is_number_type(value) => Look::Word,
        false if is_name(value) && (value.contains(['_', '-']) || capitals()) => Look::Name,
        false if is_name(value) => Look::Word,
        _ => Look::Secret,
    }
}

/// Words of English length and sound, joined by `_`, by one `-` or by capitals.
fn is_name(name: &str) -> bool {
    let mut word = 0;
    let mut consonants = 0;
    let mut humps = 0;
    let mut before = b'_';
    for b in name.bytes() {
        let joint = matches!(b, b'_' | b'-');
        let hump = before.is_ascii_lowercase() && b.is_ascii_uppercase();
        if !joint && !b.is_ascii_alphabetic() {
            return false;
        }
        humps += usize::from(hump);
        word = if joint || hump { 0 } else { word + 1 };
        consonants = if joint || b"aeiouyAEIOUY".contains(&b) { 0 } else { consonants + 1 };
        if word > LONGEST_WORD || consonants > 5 {
            return false;
        }
        before = b;
    }
    humps * 4 <= name.len() && name.matches('-').count() <= 1 && name.contains(|c: char| c.is_ascii_alphabetic())
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// A path to something that is named like a secret: `node.dot2_token`.
fn is_field(path: &str) -> bool {
    path.bytes().all(|b| in_name(b) || b == b'.') && names::is_secret(path)
}

/// `u8`, `__u32`, `int64_t`.
fn is_number_type(value: &str) -> bool {
    let name = value.trim_start_matches('_').trim_end_matches("_t");
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    ["u", "i", "f", "int", "uint", "float"].contains(&letters)
        && ["8", "16", "32", "64", "128"].contains(&&name[letters.len()..])
}

/// A path of names that goes on as no secret does.
fn is_code(value: &str) -> bool {
    let rest = value.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    let goes_on =
        rest.starts_with(['(', '[', '<']) || ["::", "!(", "![", "?."].iter().any(|next| rest.starts_with(next));
    goes_on && value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Words that follow the name of a flag in a sentence about it.
fn is_grammar(word: &str) -> bool {
    let words = [
        "a", "an", "and", "as", "can", "flag", "for", "from", "if", "in", "is", "must", "or", "option", "options",
        "the", "to", "when", "will", "with",
    ];
    words.contains(&word)
}

/// `new_token = token`
fn repeats(value: &str, name: &str) -> bool {
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name);
    names::strip_end(value, last).is_some()
}

/// `self.token`
fn is_own(name: &str) -> bool {
    name.starts_with("self.") || name.starts_with("this.")
}

/// Whether the line, or the string it stands in, ends here.
fn ends_line(after: Bytes) -> bool {
    let blank = run_end(after, 0, usize::MAX, |b| b.is_ascii_whitespace());
    let next = after.get(blank);
    after[..blank].contains(&b'\n') && next != Some(b'.')
        || matches!(next, None | Some(b'#' | b'"' | b'\'' | b'`' | b'\\'))
}
