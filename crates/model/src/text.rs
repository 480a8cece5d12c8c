//! Cleans text input and checks its length. Lengths are counted in Unicode scalar values, never in bytes.

use crate::Invalid;

/// Returns `true` for every control character except tab, newline and carriage return (S0's pattern).
pub fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Removes control characters, and white space at both ends.
pub fn clean(text: &str) -> String {
    if text.contains(is_control) {
        text.chars().filter(|&c| !is_control(c)).collect::<String>().trim().to_owned()
    } else {
        text.trim().to_owned()
    }
}

/// Cleans the text like [`clean`] and replaces each run of white space with one space, as in a title.
pub fn clean_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in clean(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns the cleaned text. Fails if it does not have 1 to `max` characters.
pub fn required(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    check_length(field, clean(text), max)
}

/// Returns the text as one cleaned line. Fails if it does not have 1 to `max` characters.
pub fn required_line(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    check_length(field, clean_line(text), max)
}

/// Returns the cleaned text, or `None` if it is empty. Fails if it has more than `max` characters.
pub fn optional(field: &str, text: &str, max: usize) -> Result<Option<String>, Invalid> {
    let text = clean(text);
    if text.is_empty() { Ok(None) } else { check_length(field, text, max).map(Some) }
}

/// Returns the bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the text. Fails with the rule `min_length` if it is empty, or `max_length` if it has more than `max`
/// characters.
fn check_length(field: &str, text: String, max: usize) -> Result<String, Invalid> {
    match text.chars().count() {
        0 => Err(Invalid::one(field, "min_length", "must not be empty")),
        n if n > max => Err(Invalid::one(field, "max_length", format!("must have at most {max} characters, has {n}"))),
        _ => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_are_removed_and_line_breaks_are_kept() {
        // CHAT-4
        assert_eq!(clean("  a\u{0}b\u{7f}c\u{85}\n\td\r\n "), "abc\n\td");
        assert_eq!(clean_line("pay\n\t the  rent \u{1b}"), "pay the rent");
    }

    #[test]
    fn length_is_counted_in_characters_after_cleaning() {
        // CHAT-4
        assert_eq!(required("input", &"é".repeat(5), 5), Ok("é".repeat(5)));
        assert_eq!(required("input", "\u{1}\u{2} ", 5).unwrap_err().violations[0].rule, "min_length");
        let error = required("input", &"☐".repeat(6), 5).unwrap_err();
        assert_eq!(error.violations[0].rule, "max_length");
        assert_eq!(error.violations[0].message, "must have at most 5 characters, has 6");
    }

    proptest! {
        #[test]
        fn cleaning_is_idempotent(text in "\\PC*|[\\x00-\\x9f]*") {
            // CHAT-4
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once.clone());
            prop_assert!(!once.contains(is_control));
        }
    }
}
