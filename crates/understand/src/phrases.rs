//! Lists of words and phrases, written as one string: `phrases!("undo | undo that | take it back")`.
//!
//! Cut apart by the compiler, together with the letters they begin with, so that most words are refused at a glance.

/// Phrases of words with single spaces between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phrases {
    list: &'static [&'static str],
    /// One bit for each first letter.
    initials: u32,
}

impl Phrases {
    pub(crate) const fn new(list: &'static [&'static str]) -> Self {
        let mut initials = 0;
        let mut i = 0;
        while i < list.len() {
            initials |= initial(list[i]);
            i += 1;
        }
        Self { list, initials }
    }

    /// Whether one of them may begin with this word.
    pub(crate) fn may_begin(self, word: &str) -> bool {
        self.initials & initial(word) != 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.list.iter().copied()
    }

    pub(crate) fn contains(self, word: &str) -> bool {
        self.may_begin(word) && self.list.contains(&word)
    }
}

const fn initial(word: &str) -> u32 {
    match word.as_bytes().first() {
        Some(letter @ b'a'..=b'z') => 1 << (*letter - b'a'),
        Some(b'0'..=b'9') => 1 << 26,
        Some(_) => 1 << 27,
        None => 0,
    }
}

pub(crate) const fn count(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut n = 1;
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'|' {
            n += 1;
        }
        i += 1;
    }
    n
}

/// The phrases between the bars.
pub(crate) const fn cut<const N: usize>(text: &'static str) -> [&'static str; N] {
    let mut list = [""; N];
    let mut rest = text.as_bytes();
    let mut n = 0;
    while n < N {
        let mut end = 0;
        while end < rest.len() && rest[end] != b'|' {
            end += 1;
        }
        let (phrase, after) = rest.split_at(end);
        list[n] = match str::from_utf8(phrase.trim_ascii()) {
            Ok(phrase) => phrase,
            Err(_) => "",
        };
        rest = if after.is_empty() { after } else { after.split_at(1).1 };
        n += 1;
    }
    list
}

macro_rules! phrases {
    ($text:expr) => {{
        const COUNT: usize = $crate::phrases::count($text);
        const LIST: [&str; COUNT] = $crate::phrases::cut($text);
        const PHRASES: $crate::phrases::Phrases = $crate::phrases::Phrases::new(&LIST);
        PHRASES
    }};
}

pub(crate) use phrases;

#[cfg(test)]
mod tests {
    #[test]
    fn phrases_are_cut_at_bars() {
        let list = phrases!("a b | c |d");
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a b", "c", "d"]);
        assert!(list.contains("c") && !list.contains("a"));
        assert!(list.may_begin("apple") && !list.may_begin("x"));
    }
}
