//! Parses numbers in figures and words, ordinals, and amounts such as "a couple of". Values stay below 100,000.

use crate::lexicon;
use crate::phrases::Phrases;
use crate::tokens::TokenizedText;

/// A number and its number of tokens.
pub(crate) type NumberMatch<T> = Option<(T, usize)>;

fn list_index(list: Phrases, word: &str) -> Option<i64> {
    list.index_of(word).and_then(|n| i64::try_from(n).ok())
}

/// Parses a number word below twenty.
pub(crate) fn small_number(word: &str) -> Option<i64> {
    list_index(lexicon::numbers::CARDINALS, word).filter(|n| *n < 20)
}

/// Parses "twenty", "thirty", … "ninety".
fn tens(word: &str) -> Option<i64> {
    list_index(lexicon::numbers::CARDINALS, word).filter(|n| *n >= 20).map(|n| (n - 18) * 10)
}

/// Parses up to five digits.
pub(crate) fn parse_digits(word: &str) -> Option<i64> {
    (!word.is_empty() && word.len() <= 5 && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().ok())?
}

/// Parses a figure, or a hyphenated number: `twenty-two`.
fn parse_single(word: &str) -> Option<i64> {
    parse_digits(word).or_else(|| {
        let (a, b) = word.split_once('-')?;
        Some(tens(a)? + small_number(b).filter(|n| (1..10).contains(n))?)
    })
}

/// Parses "15", "fifteen", "twenty two", "forty-three", "two hundred" at `i`. Returns the number and its length in
/// tokens. A number word below twenty may precede "hundred"; nothing is added to it. Returns `None` for other words and
/// for more than five digits.
pub(crate) fn cardinal(words: &TokenizedText, i: usize) -> NumberMatch<i64> {
    let spelled = |i: usize| words.index_in(i, lexicon::numbers::CARDINALS).and_then(|n| i64::try_from(n).ok());
    match spelled(i) {
        Some(n) if n >= 20 => {
            let more = spelled(i + 1).filter(|n| (1..10).contains(n));
            Some(((n - 18) * 10 + more.unwrap_or(0), 1 + usize::from(more.is_some())))
        }
        Some(n) if n > 0 && words.at(i + 1) == "hundred" => Some((n * 100, 2)),
        Some(n) => Some((n, 1)),
        None if words.is_letters(i) => None,
        None => Some((parse_single(words.at(i))?, 1)),
    }
}

/// Parses an ordinal in figures: "1st". Does not check that the suffix fits the number.
pub(crate) fn ordinal_digits(word: &str) -> Option<i64> {
    let cut = word.len().checked_sub(2)?;
    let digits = word.get(..cut)?;
    let suffix = word.get(cut..)?;
    if matches!(suffix, "st" | "nd" | "rd" | "th") { parse_digits(digits) } else { None }
}

/// Parses one ordinal word: "first" to "twentieth", and "thirtieth".
fn ordinal_word(word: &str) -> Option<i64> {
    list_index(lexicon::numbers::ORDINALS, word).filter(|n| *n > 0).map(|n| if n > 20 { 30 } else { n })
}

/// Parses "1st", "first", "twenty-first", "thirty first" at `i`. Returns the number and its length in tokens. Words
/// reach up to "ninety-ninth", figures have up to five digits. Returns `None` for other words, also for "fortieth" and
/// similar tens.
pub(crate) fn ordinal(words: &TokenizedText, i: usize) -> NumberMatch<i64> {
    if words.is_letters(i)
        && !words.is_one_of(i, lexicon::numbers::ORDINALS)
        && !words.is_one_of(i, lexicon::numbers::CARDINALS)
    {
        return None;
    }
    let word = words.at(i);
    if let Some(n) = ordinal_digits(word).or_else(|| ordinal_word(word)) {
        return Some((n, 1));
    }
    if let Some((a, b)) = word.split_once('-') {
        return Some((tens(a)? + ordinal_word(b).filter(|n| *n < 10)?, 1));
    }
    Some((tens(word)? + ordinal_word(words.at(i + 1)).filter(|n| *n < 10)?, 2))
}

/// Parses an amount of a time unit at `i`: "3", "a", "an", "half an", "2.5", "1/2", "2 and a half", "2 1/2", "2-3" (2). "a couple
/// of" is 2, "a few", "several" and "some" are 3, "a dozen" is 12, "a hundred" is 100, "another" is 1, "quarter" is 15
/// sixtieths. A "more" after a number belongs to it. Returns whole units and additional sixtieths, and the length in
/// tokens. Returns `None` if there is no amount, and for "three quarters" without "of a".
pub(crate) fn amount(words: &TokenizedText, i: usize) -> NumberMatch<(i64, i64)> {
    let few = [
        (2, lexicon::numbers::TWO),
        (3, lexicon::numbers::THREE),
        (12, lexicon::numbers::TWELVE),
        (100, lexicon::numbers::HUNDRED),
        (1, lexicon::numbers::ONE_MORE),
    ];
    if let Some((n, len)) = few.iter().find_map(|(n, list)| words.phrase(i, *list).map(|len| (*n, len))) {
        return Some(((n, 0), len));
    }
    if let Some(len) = words.phrase(i, lexicon::numbers::HALF) {
        return Some(((0, 30), len));
    }
    if let Some(len) = words.phrase(i, lexicon::numbers::QUARTER) {
        return Some(((0, 15), len));
    }
    if let Some(len) = words.phrase(i, lexicon::numbers::THREE_QUARTERS) {
        return (len > 2).then_some(((0, 45), len));
    }
    // "2-3 hours" begins with the smaller number.
    if let Some((first, last)) = words.at(i).split_once('-')
        && let (Some(first), Some(last)) = (parse_digits(first), parse_digits(last))
    {
        return (first < last).then_some(((first, 0), 1));
    }
    let fraction = |i: usize| if words.is_letters(i) { None } else { fraction(words.at(i)) };
    if let Some(fraction) = fraction(i) {
        let of = words.phrase(i + 1, lexicon::numbers::OF_A).unwrap_or(0);
        return Some((fraction, 1 + of));
    }
    if let Some((n, len)) = cardinal(words, i) {
        if words.at(i + len) == "and" {
            let half = words.phrase(i + len + 1, lexicon::numbers::AND_HALF);
            if let Some(more) = half {
                return Some(((n, 30), len + 1 + more));
            }
        }
        if let Some((0, sixtieths)) = fraction(i + len) {
            return Some(((n, sixtieths), len + 1));
        }
        let more = usize::from(words.at(i + len) == "more");
        return Some(((n, 0), len + more));
    }
    matches!(words.at(i), "a" | "an").then_some(((1, 0), 1))
}

/// Parses "2.5", "1/2", "3/4". Returns whole units and additional sixtieths. Returns `None` for other words and for
/// more than one decimal. For "a/b", the denominator is at most 4 and the value below 1; otherwise returns `None`.
pub(crate) fn fraction(word: &str) -> Option<(i64, i64)> {
    if let Some((a, b)) = word.split_once('/') {
        let a = parse_digits(a)?;
        let b = parse_digits(b)?;
        return (a < b && b <= 4).then(|| (0, 60 * a / b));
    }
    let (a, b) = word.split_once('.')?;
    let tenths = parse_digits(b).filter(|_| b.len() == 1)?;
    Some((parse_digits(a)?, tenths * 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_words_and_figures() {
        for (text, n) in [("15", 15), ("fifteen", 15), ("twenty two", 22), ("forty-three", 43), ("two hundred", 200)] {
            assert_eq!(cardinal(&TokenizedText::new(text), 0).map(|(n, _)| n), Some(n), "{text}");
        }
        for (text, n) in [("1st", 1), ("second", 2), ("twenty-first", 21), ("thirty first", 31), ("22nd", 22)] {
            assert_eq!(ordinal(&TokenizedText::new(text), 0).map(|(n, _)| n), Some(n), "{text}");
        }
        for (text, n) in [("a couple of", (2, 0)), ("2.5", (2, 30)), ("2 and a half", (2, 30)), ("half an", (0, 30))] {
            assert_eq!(amount(&TokenizedText::new(text), 0).map(|(n, _)| n), Some(n), "{text}");
        }
    }
}
