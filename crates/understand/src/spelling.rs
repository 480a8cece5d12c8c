//! Edit distance for misspelled words of the command vocabulary.
//!
//! Never applied to titles.

/// The length of the longest word that is compared, in bytes.
const MAX_WORD_LEN: usize = 24;

/// Returns the number of insertions, deletions, replacements and transpositions of adjacent bytes. Returns `None` if it
/// exceeds `most`, or if a word is longer than [`MAX_WORD_LEN`]. Case matters.
pub(crate) fn edit_distance(a: &str, b: &str, most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most || a.len() > MAX_WORD_LEN || b.len() > MAX_WORD_LEN {
        return None;
    }
    // Equal ends cost nothing. With a small limit, little remains to compare.
    let (a, b) = trim_common(a.as_bytes(), b.as_bytes());
    match (a, b, most) {
        ([], rest, _) | (rest, [], _) => Some(rest.len()),
        ([_], [_], _) => Some(1),
        ([w, x], [y, z], _) if w == z && x == y => Some(1),
        (.., 0 | 1) => None,
        _ if differ_too_much(a, b, most) => None,
        _ => damerau_levenshtein(a, b, most),
    }
    .filter(|n| *n <= most)
}

/// Removes the common prefix and suffix of both words.
fn trim_common<'a>(a: &'a [u8], b: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let a = a.get(head..).unwrap_or_default();
    let b = b.get(head..).unwrap_or_default();
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    (a.get(..a.len() - tail).unwrap_or_default(), b.get(..b.len() - tail).unwrap_or_default())
}

/// Returns true if the words differ in too many letters. One edit changes at most two of them.
fn differ_too_much(a: &[u8], b: &[u8], most: usize) -> bool {
    let letters = |word: &[u8]| word.iter().fold(0_u64, |set, byte| set | 1 << (byte & 63));
    (letters(a) ^ letters(b)).count_ones() as usize > 2 * most
}

/// Returns the optimal string alignment distance, or `None` if it exceeds `most`. Both words have at most
/// [`MAX_WORD_LEN`] bytes. No byte takes part in more than one transposition.
fn damerau_levenshtein(a: &[u8], b: &[u8], most: usize) -> Option<usize> {
    let mut rows = [[0_usize; MAX_WORD_LEN + 1]; 3];
    let cell = |row: &[usize; MAX_WORD_LEN + 1], i: usize| row.get(i).copied().unwrap_or(usize::MAX);
    for (i, slot) in rows[1].iter_mut().enumerate() {
        *slot = i;
    }
    for (i, x) in a.iter().enumerate() {
        let [before, last, current] = &mut rows;
        current[0] = i + 1;
        let mut least = i + 1;
        for (j, y) in b.iter().enumerate() {
            let same = usize::from(x != y);
            let mut best = (cell(last, j) + same).min(cell(last, j + 1) + 1).min(cell(current, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(cell(before, j - 1) + 1);
            }
            if let Some(slot) = current.get_mut(j + 1) {
                *slot = best;
            }
            least = least.min(best);
        }
        if least > most {
            return None;
        }
        rows.rotate_left(1);
    }
    Some(cell(&rows[1], b.len())).filter(|n| *n <= most)
}

/// Returns true if a word equals `wanted` or may be a misspelling of it. Allows one edit, two if `wanted` has at least
/// eight bytes, and none up to three. The first byte must be equal. A word of more than [`MAX_WORD_LEN`] bytes never
/// matches, even if it is equal.
pub(crate) fn resembles(word: &str, wanted: &str) -> bool {
    let most = match wanted.len() {
        0..=3 => return word == wanted,
        4..=7 => 1,
        _ => 2,
    };
    word.as_bytes().first() == wanted.as_bytes().first() && edit_distance(word, wanted, most).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, n) in
            [("delte", "delete", Some(1)), ("shwo", "show", Some(1)), ("abc", "abc", Some(0)), ("milk", "bread", None)]
        {
            assert_eq!(edit_distance(a, b, 2), n, "{a} {b}");
        }
        assert!(resembles("complte", "complete"));
        assert!(!resembles("ad", "and"));
    }
}
