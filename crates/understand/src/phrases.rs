//! Tables of phrases that are searched by number.
//!
//! The compiler turns every word of a list into a number, its [`key`]; the tokens of a text carry theirs. A search
//! compares numbers, never letters. A bit set refuses most words at once; the others are looked up in the bucket of
//! their first word, where longer phrases stand before shorter ones. The lists are in [`crate::lexicon`].

use crate::tokens::Words;

/// Phrases of words with single spaces between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phrases(pub(crate) &'static Table);

#[derive(Debug)]
pub(crate) struct Table {
    /// As they were written.
    pub(crate) list: &'static [&'static str],
    /// One bit for the [`bit`] of each first word.
    pub(crate) firsts: Bits,
    /// In the order of their buckets.
    pub(crate) entries: &'static [Entry],
    /// Where each bucket begins in `entries`; at the end, where the last one ends. One more than a power of two.
    pub(crate) buckets: &'static [u16],
}

#[cfg(test)]
thread_local! {
    /// The phrases that lookups of this thread have found.
    pub(crate) static FOUND: std::cell::RefCell<std::collections::BTreeSet<&'static str>> =
        const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// A phrase in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    first: u64,
    pub(crate) rest: &'static [u64],
    /// Its place in the list.
    place: usize,
}

impl Entry {
    /// How many words it has.
    pub(crate) fn len(&self) -> usize {
        1 + self.rest.len()
    }
}

/// A set of words, told apart by their bits only. Wide enough that lists of hundreds refuse most other words.
pub(crate) type Bits = [u64; 16];

impl Phrases {
    /// Whether one of them may begin with a word of this mark.
    #[inline]
    pub(crate) fn may_begin(self, mark: u16) -> bool {
        let (slot, bit) = bit(mark);
        self.0.firsts[slot] & bit != 0
    }

    /// Whether one of them may begin with one of these words.
    #[inline]
    pub(crate) fn may_meet(self, words: &Bits) -> bool {
        let firsts = &self.0.firsts;
        firsts.iter().zip(words).fold(0, |all, (a, b)| all | a & b) != 0
    }

    /// Those that begin with the word, the longest first.
    #[inline]
    pub(crate) fn beginning_with(self, key: u64, mark: u16) -> impl Iterator<Item = &'static Entry> {
        let bucket = usize::from(mark) & (self.0.buckets.len() - 2);
        let start = self.0.buckets.get(bucket).copied().unwrap_or_default();
        let end = self.0.buckets.get(bucket + 1).copied().unwrap_or_default();
        let entries = self.0.entries.get(usize::from(start)..usize::from(end)).unwrap_or_default();
        entries.iter().filter(move |entry| entry.first == key)
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.list.iter().copied()
    }

    /// Where the word stands in the list, as a phrase of its own.
    #[inline]
    pub(crate) fn place(self, word: &str) -> Option<usize> {
        let key = key(word.as_bytes());
        let mark = mark(key);
        if !self.may_begin(mark) {
            return None;
        }
        self.place_of(key, mark)
    }

    #[inline(never)]
    pub(crate) fn place_of(self, key: u64, mark: u16) -> Option<usize> {
        let found = self.beginning_with(key, mark).find(|entry| entry.rest.is_empty());
        #[cfg(test)]
        self.record(found);
        found.map(|entry| entry.place)
    }

    /// Adds the phrase that a lookup found to [`FOUND`].
    #[cfg(test)]
    pub(crate) fn record(self, found: Option<&Entry>) {
        FOUND.with_borrow_mut(|all| all.extend(found.and_then(|entry| self.0.list.get(entry.place)).copied()));
    }

    /// Returns true if the text is one of the phrases, in any case.
    pub(crate) fn has(self, text: &str) -> bool {
        let place = self.iter().position(|phrase| phrase.eq_ignore_ascii_case(text));
        #[cfg(test)]
        self.record(self.0.entries.iter().find(|entry| Some(entry.place) == place));
        place.is_some()
    }

    #[inline]
    pub(crate) fn contains(self, word: &str) -> bool {
        self.place(word).is_some()
    }
}

/// The number of a word. Up to eight bytes are their own number; of longer words it is a hash, and two words that share
/// one are taken for the same.
#[inline]
pub(crate) const fn key(word: &[u8]) -> u64 {
    if word.len() <= 8 { packed(word) } else { hashed(word) }
}

/// At most eight bytes as one number.
#[inline]
const fn packed(word: &[u8]) -> u64 {
    if let (Some(head), Some(tail)) = (word.first_chunk(), word.last_chunk()) {
        let shift = 8 * (word.len() - 4);
        return u32::from_le_bytes(*head) as u64 | (u32::from_le_bytes(*tail) as u64) << shift;
    }
    match *word {
        [a] => a as u64,
        [a, b] => a as u64 | (b as u64) << 8,
        [a, b, c] => a as u64 | (b as u64) << 8 | (c as u64) << 16,
        _ => 0,
    }
}

const fn hashed(word: &[u8]) -> u64 {
    let mut rest = word;
    let mut hash = word.len() as u64;
    while let Some((chunk, after)) = rest.split_first_chunk() {
        hash = spread(hash.rotate_left(29) ^ u64::from_le_bytes(*chunk));
        rest = after;
    }
    spread(hash.rotate_left(29) ^ packed(rest))
}

#[inline]
const fn spread(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A short number that few other words share.
#[inline]
pub(crate) const fn mark(key: u64) -> u16 {
    (spread(key) >> 48) as u16
}

/// Where a mark stands in [`Bits`].
#[inline]
pub(crate) const fn bit(mark: u16) -> (usize, u64) {
    (mark as usize >> 12, 1 << (mark >> 6 & 63))
}

const fn occurrences(text: &[u8], wanted: u8) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < text.len() {
        n += (text[i] == wanted) as usize;
        i += 1;
    }
    n
}

/// What stands before the mark, and what stands after it.
const fn split(text: &[u8], mark: u8) -> (&[u8], &[u8]) {
    let mut end = 0;
    while end < text.len() && text[end] != mark {
        end += 1;
    }
    let (head, tail) = text.split_at(end);
    (head, if tail.is_empty() { tail } else { tail.split_at(1).1 })
}

/// How many words the phrases have beyond their first ones.
pub(crate) const fn count_rest(list: &[&str]) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < list.len() {
        n += occurrences(list[i].as_bytes(), b' ');
        i += 1;
    }
    n
}

/// The keys of the words of all phrases beyond their first ones, one phrase after the other.
pub(crate) const fn rest_keys<const N: usize>(list: &[&str]) -> [u64; N] {
    let mut keys = [0; N];
    let mut n = 0;
    let mut i = 0;
    while i < list.len() {
        let mut rest = split(list[i].as_bytes(), b' ').1;
        while !rest.is_empty() {
            let (word, after) = split(rest, b' ');
            keys[n] = key(word);
            n += 1;
            rest = after;
        }
        i += 1;
    }
    keys
}

/// How many buckets a list of that length gets: a power of two.
pub(crate) const fn bucket_count(phrases: usize) -> usize {
    phrases.next_power_of_two()
}

/// The phrases in the order of their buckets; in each the longest first.
pub(crate) const fn entries<const N: usize>(list: &[&str; N], rest: &'static [u64]) -> [Entry; N] {
    let mut entries = [Entry { first: 0, rest: &[], place: 0 }; N];
    let mut rest = rest;
    let mut n = 0;
    while n < N {
        let phrase = list[n].as_bytes();
        let (own, others) = rest.split_at(occurrences(phrase, b' '));
        let entry = Entry { first: key(split(phrase, b' ').0), rest: own, place: n };
        let mut at = n;
        while at > 0 && comes_before(&entry, &entries[at - 1], N) {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
        rest = others;
        n += 1;
    }
    entries
}

const fn comes_before(one: &Entry, other: &Entry, phrases: usize) -> bool {
    let a = bucket(one, phrases);
    let b = bucket(other, phrases);
    a < b || a == b && one.rest.len() > other.rest.len()
}

const fn bucket(entry: &Entry, phrases: usize) -> usize {
    mark(entry.first) as usize & (bucket_count(phrases) - 1)
}

/// Where each bucket begins, and where the last one ends.
pub(crate) const fn buckets<const N: usize>(entries: &[Entry]) -> [u16; N] {
    let mut starts = [0; N];
    let mut at = 0;
    let mut n = 0;
    while n < N {
        while at < entries.len() && bucket(&entries[at], entries.len()) < n {
            at += 1;
        }
        starts[n] = at as u16;
        n += 1;
    }
    starts
}

pub(crate) const fn firsts(entries: &[Entry]) -> Bits {
    let mut firsts = [0; 16];
    let mut i = 0;
    while i < entries.len() {
        let (slot, bit) = bit(mark(entries[i].first));
        firsts[slot] |= bit;
        i += 1;
    }
    firsts
}

/// The first words of several lists.
pub(crate) const fn all_firsts(lists: &[Phrases]) -> Bits {
    let mut all = [0; 16];
    let mut i = 0;
    while i < lists.len() {
        let mut slot = 0;
        while slot < all.len() {
            all[slot] |= lists[i].0.firsts[slot];
            slot += 1;
        }
        i += 1;
    }
    all
}

/// How many phrases these lists have together.
pub(crate) const fn count_all<T>(lists: &[(T, Phrases)]) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        n += lists[i].1.0.list.len();
        i += 1;
    }
    n
}

/// All phrases of these lists, and what each stands for.
pub(crate) const fn join<T: Copy, const N: usize>(lists: &[(T, Phrases)]) -> ([&'static str; N], [T; N]) {
    let mut all = [""; N];
    let mut meanings = [lists[0].0; N];
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        let (meaning, Phrases(table)) = lists[i];
        let mut k = 0;
        while k < table.list.len() {
            all[n] = table.list[k];
            meanings[n] = meaning;
            n += 1;
            k += 1;
        }
        i += 1;
    }
    (all, meanings)
}

/// Words that stand for something: several lists in one table.
pub(crate) struct Meanings<T: 'static> {
    pub(crate) phrases: Phrases,
    /// In the order of the phrases.
    pub(crate) meanings: &'static [T],
}

impl<T: Copy> Meanings<T> {
    /// What the word stands for; where it is in two lists, by the first.
    pub(crate) fn get(&self, word: &str) -> Option<T> {
        self.phrases.place(word).and_then(|place| self.meanings.get(place)).copied()
    }

    /// What the longest of the phrases at `i` stands for, and its length.
    #[inline]
    pub(crate) fn phrase(&self, words: &Words, i: usize) -> Option<(T, usize)> {
        let entry = words.entry(i, self.phrases)?;
        self.meanings.get(entry.place).map(|meaning| (*meaning, entry.len()))
    }

    /// What the word at `i` stands for.
    #[inline]
    pub(crate) fn at(&self, words: &Words, i: usize) -> Option<T> {
        words.place(i, self.phrases).and_then(|place| self.meanings.get(place)).copied()
    }
}

/// The table of a list of phrases.
macro_rules! table {
    ($list:expr, $count:expr) => {{
        const LIST: [&str; $count] = $list;
        const REST: [u64; $crate::phrases::count_rest(&LIST)] = $crate::phrases::rest_keys(&LIST);
        const ENTRIES: [$crate::phrases::Entry; $count] = $crate::phrases::entries(&LIST, &REST);
        const BUCKETS: [u16; $crate::phrases::bucket_count($count) + 1] = $crate::phrases::buckets(&ENTRIES);
        const TABLE: $crate::phrases::Table = $crate::phrases::Table {
            list: &LIST,
            firsts: $crate::phrases::firsts(&ENTRIES),
            entries: &ENTRIES,
            buckets: &BUCKETS,
        };
        $crate::phrases::Phrases(&TABLE)
    }};
}

macro_rules! phrases {
    ([$($phrase:literal),+ $(,)?]) => {{
        const COUNT: usize = [$($phrase),+].len();
        $crate::phrases::table!([$($phrase),+], COUNT)
    }};
}

/// `meanings!(Verb, VERBS)`, where `VERBS` is a list of verbs, each with its [`phrases!`].
macro_rules! meanings {
    ($type:ty, $lists:expr) => {{
        const COUNT: usize = $crate::phrases::count_all($lists);
        const JOINED: ([&str; COUNT], [$type; COUNT]) = $crate::phrases::join($lists);
        $crate::phrases::Meanings { phrases: $crate::phrases::table!(JOINED.0, COUNT), meanings: &JOINED.1 }
    }};
}

pub(crate) use {meanings, phrases, table};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_their_place() {
        let list = phrases!(["a b", "c", "d"]);
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a b", "c", "d"]);
        assert!(list.contains("c") && !list.contains("a") && !list.contains("b") && !list.contains(""));
        assert_eq!((list.place("c"), list.place("d"), list.place("e")), (Some(1), Some(2), None));
        let begins = |word: &str| list.may_begin(mark(key(word.as_bytes())));
        assert!(begins("a") && !begins("b"));
    }

    #[test]
    fn the_longest_phrase_comes_first() {
        let list = phrases!(["at", "at the", "at the latest", "before", "at noon"]);
        let word = key(b"at");
        let lengths: Vec<_> = list.beginning_with(word, mark(word)).map(|entry| entry.rest.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 0]);
    }

    #[test]
    fn lists_are_put_together() {
        const LISTS: &[(char, Phrases)] = &[('x', phrases!(["a", "b"])), ('y', phrases!(["c", "a"]))];
        let table = meanings!(char, LISTS);
        assert_eq!(["a", "b", "c", "d"].map(|word| table.get(word)), [Some('x'), Some('x'), Some('y'), None]);
    }

    #[test]
    fn words_of_every_length_have_keys_of_their_own() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let mut keys: Vec<u64> = (0..=text.len()).map(|end| key(&text.as_bytes()[..end])).collect();
        assert_eq!(keys[8], u64::from_le_bytes(*b"abcdefgh"));
        assert_eq!(keys[3], u64::from(u32::from_le_bytes(*b"abc\0")));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), text.len() + 1);
    }
}
