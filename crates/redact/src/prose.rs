//! Distinguishes unquoted secrets from prose and source code.
//!
//! The decision uses the spelling of a value and its context, never a dictionary.

use super::names;
use super::scan::{TrackedBytes, run_end};

/// The kind of an unquoted value, by its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
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

/// The separator between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// `name: value`
    Colon,
    /// `name = value`
    Spaced,
    /// `name=value`
    Tight,
    /// `--name value`
    Flag,
}

const MAX_WORD_BYTES: usize = 14;

/// Returns `true` if an unquoted value is not a secret. `name` is the secret name before the value, `after` the text
/// after the value. The rules depend on the [`ValueKind`] and the separator:
///
/// - Code is harmless. After a tight `=`, one of `()],"'\` must follow it.
/// - After a flag, only code and words such as `is` are harmless.
/// - After a tight `=`, a path or a secret name is harmless if `,` or `)` follows: `f(token=token)`.
/// - After `:` or a spaced `=`, a path is harmless. After `:`, a word is harmless too.
/// - Other words and names after `:` or a spaced `=` are harmless in three cases. The value repeats the end of `name`,
///   `name` starts with `self.` or `this.`, or the line continues after the value.
/// - A value of the kind `Secret` is harmless only as a declared type: `token: u9x = …`.
pub(super) fn is_harmless(value: &str, name: &str, separator: Separator, after: TrackedBytes) -> bool {
    let argument = || matches!(after.first(), Some(b',' | b')'));
    match (classify(value), separator) {
        (ValueKind::Secret, _) => {
            separator == Separator::Colon && after.starts_with(b" = ") && value.bytes().all(in_name)
        }
        (ValueKind::Code, Separator::Tight) => {
            matches!(after.first(), Some(b'(' | b')' | b']' | b',' | b'"' | b'\'' | b'\\'))
        }
        (ValueKind::Code, _) => true,
        (_, Separator::Flag) => is_grammar(value),
        (ValueKind::Path, Separator::Tight) => argument(),
        (_, Separator::Tight) => names::is_secret(value) && argument(),
        (ValueKind::Path, _) | (ValueKind::Word, Separator::Colon) => true,
        (ValueKind::Word | ValueKind::Name, _) => repeats_name(value, name) || is_own_field(name) || !ends_line(after),
    }
}

/// Returns the kind of an unquoted value. Leading `*`, `!` and `@` and trailing `.`, `?`, `!` and `:` are ignored. The
/// first rule that applies decides. A *name* consists of pronounceable words without digits, see [`is_name`].
///
/// - With non-ASCII characters, it is a word if it has no digits and no ASCII punctuation, otherwise a secret.
/// - Letters, digits, `_` and dots before `(`, `[`, `<`, `::`, `!(`, `![` or `?.` are code, even if they are no names.
///   The first one must be a letter or `_`.
/// - With a dot, it is a path if all parts are names. It is also a path if it ends with a secret name and has only
///   letters, digits, `_` and dots. Otherwise it is a secret.
/// - A number type such as `u8` is a word. A name with `_`, `-` or a capital after its first letter is a name.
/// - Any other name is a word. Everything else is a secret, also an empty value.
pub(super) fn classify(value: &str) -> ValueKind {
    let value = value.trim_start_matches(['*', '!', '@']).trim_end_matches(['.', '?', '!', ':']);
    if !value.is_ascii() {
        let in_word = |c: char| !c.is_ascii_punctuation() && !c.is_numeric();
        return if value.chars().all(in_word) { ValueKind::Word } else { ValueKind::Secret };
    }
    if is_code(value) {
        return ValueKind::Code;
    }
    let capitals = || value.bytes().skip(1).any(|b| b.is_ascii_uppercase());
    match value.contains('.') {
        true if is_field(value) || value.split('.').all(is_name) => ValueKind::Path,
        false if is_number_type(value) => ValueKind::Word,
        false if is_name(value) && (value.contains(['_', '-']) || capitals()) => ValueKind::Name,
        false if is_name(value) => ValueKind::Word,
        _ => ValueKind::Secret,
    }
}

/// Returns `true` for words of the length and sound of English, joined by `_`, by one `-` or by capitals.
///
/// Returns `false` for other characters than ASCII letters, `_` and `-`, or if there is no letter. Also returns `false`
/// if a word has more than [`MAX_WORD_BYTES`], or if more than five consonants follow each other (`y` is a vowel).
/// Capitals after a lower-case letter must not be more than a quarter of the name.
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
        if word > MAX_WORD_BYTES || consonants > 5 {
            return false;
        }
        before = b;
    }
    humps * 4 <= name.len() && name.matches('-').count() <= 1 && name.contains(|c: char| c.is_ascii_alphabetic())
}

fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Returns `true` for a path that ends in a secret name: `node.dot2_token`.
fn is_field(path: &str) -> bool {
    path.bytes().all(|b| in_name(b) || b == b'.') && names::is_secret(path)
}

/// Returns `true` for `u8`, `__u32`, `int64_t`.
fn is_number_type(value: &str) -> bool {
    let name = value.trim_start_matches('_').trim_end_matches("_t");
    let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
    ["u", "i", "f", "int", "uint", "float"].contains(&letters)
        && ["8", "16", "32", "64", "128"].contains(&&name[letters.len()..])
}

/// Returns `true` for a path of names that is followed by a character that no secret contains.
fn is_code(value: &str) -> bool {
    let rest = value.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    let continues =
        rest.starts_with(['(', '[', '<']) || ["::", "!(", "![", "?."].iter().any(|next| rest.starts_with(next));
    continues && value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns `true` for words that follow the name of a flag in a sentence.
fn is_grammar(word: &str) -> bool {
    let words = [
        "a", "an", "and", "as", "can", "flag", "for", "from", "if", "in", "is", "must", "or", "option", "options",
        "the", "to", "when", "will", "with",
    ];
    words.contains(&word)
}

/// Returns `true` if the value ends with the last part of the name: `new_token = token`. Case is ignored.
fn repeats_name(value: &str, name: &str) -> bool {
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name);
    names::strip_end(value, last).is_some()
}

/// Returns `true` for `self.token`.
fn is_own_field(name: &str) -> bool {
    name.starts_with("self.") || name.starts_with("this.")
}

/// Returns `true` if the line, or the string around it, ends here or with a comment. A next line that starts with `.`
/// continues the expression.
fn ends_line(after: TrackedBytes) -> bool {
    let blank = run_end(after, 0, usize::MAX, |b| b.is_ascii_whitespace());
    let next = after.get(blank);
    after[..blank].contains(&b'\n') && next != Some(b'.')
        || matches!(next, None | Some(b'#' | b'"' | b'\'' | b'`' | b'\\'))
}
