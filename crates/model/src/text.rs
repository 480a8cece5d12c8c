//! Cleaning and measuring text that people send. Lengths are counted in Unicode scalar values, never in bytes.

use crate::Invalid;

/// The characters of S0's pattern: every control character except tab, newline and carriage return.
pub fn is_control(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// Without control characters, without white space at the ends.
pub fn clean(text: &str) -> String {
    if text.contains(is_control) {
        text.chars().filter(|&c| !is_control(c)).collect::<String>().trim().to_owned()
    } else {
        text.trim().to_owned()
    }
}

/// [`clean`], and every run of white space is one space: what a title is.
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

/// Cleaned text of 1 to `max` characters.
pub fn required(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    within(field, clean(text), max)
}

/// A cleaned line of 1 to `max` characters.
pub fn required_line(field: &str, text: &str, max: usize) -> Result<String, Invalid> {
    within(field, clean_line(text), max)
}

/// Cleaned text of at most `max` characters; nothing where nothing is left.
pub fn optional(field: &str, text: &str, max: usize) -> Result<Option<String>, Invalid> {
    let text = clean(text);
    if text.is_empty() { Ok(None) } else { within(field, text, max).map(Some) }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn within(field: &str, text: String, max: usize) -> Result<String, Invalid> {
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
    fn control_characters_go_and_line_breaks_stay() {
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
        fn cleaning_twice_changes_nothing_more(text in "\\PC*|[\\x00-\\x9f]*") {
            let once = clean(&text);
            prop_assert_eq!(clean(&once), once.clone());
            prop_assert!(!once.contains(is_control));
        }
    }
}
