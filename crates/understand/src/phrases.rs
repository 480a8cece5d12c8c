//! Lists of words and phrases, written as one string: `phrases!("undo | undo that | take it back")`.
//!
//! Cut apart by the compiler, with marks of their first words, so that most words are refused at a glance.

/// Phrases of words with single spaces between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phrases(pub(crate) &'static Table);

#[derive(Debug)]
pub(crate) struct Table {
    list: &'static [&'static str],
    /// One bit for each [`mark`] of a first word.
    firsts: [u64; 16],
}

impl Table {
    pub(crate) const fn new(list: &'static [&'static str]) -> Self {
        let mut firsts = [0; 16];
        let mut i = 0;
        while i < list.len() {
            let mark = mark(list[i].as_bytes()) as usize;
            firsts[mark / 64] |= 1 << (mark % 64);
            i += 1;
        }
        Self { list, firsts }
    }
}

impl Phrases {
    /// Whether one of them may begin with a word of this mark.
    pub(crate) fn may_begin(self, mark: u16) -> bool {
        let bits = self.0.firsts.get(usize::from(mark) / 64).copied().unwrap_or_default();
        bits >> (mark % 64) & 1 == 1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.list.iter().copied()
    }

    pub(crate) fn contains(self, word: &str) -> bool {
        self.may_begin(mark(word.as_bytes())) && self.0.list.contains(&word)
    }
}

/// A number below 1024 that few other first words share.
pub(crate) const fn mark(text: &[u8]) -> u16 {
    let mut hash: u32 = 0x811c_9dc5;
    let mut i = 0;
    while i < text.len() && text[i] != b' ' {
        hash = (hash ^ text[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    ((hash ^ (hash >> 15)) & 1023) as u16
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
        const TABLE: $crate::phrases::Table = $crate::phrases::Table::new(&LIST);
        $crate::phrases::Phrases(&TABLE)
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
        assert!(list.may_begin(super::mark(b"a")) && !list.may_begin(super::mark(b"b")));
    }
}
