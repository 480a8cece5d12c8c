//! Phrase tables that compare numbers instead of strings.
//!
//! Every word of a list becomes a number at compile time, its [`key`]. Tokens of a text have the same keys. A bit set
//! rejects most words. The remaining words are looked up in the bucket of their first word, which holds longer phrases
//! before shorter ones. The lists are in [`crate::lexicon`].

use crate::tokens::TokenizedText;

/// A list of phrases. The words of a phrase are separated by single spaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phrases(pub(crate) &'static PhraseTable);

/// The compiled form of a phrase list.
#[derive(Debug)]
pub(crate) struct PhraseTable {
    /// The phrases in the order of the list.
    pub(crate) list: &'static [&'static str],
    /// The set of first words, one bit for the [`bit_position`] of each.
    pub(crate) firsts: WordBits,
    /// The phrases, ordered by bucket.
    pub(crate) entries: &'static [PhraseEntry],
    /// The start of each bucket in `entries`, followed by the end of the last one. The length is a power of two plus
    /// one.
    pub(crate) buckets: &'static [u16],
}

#[cfg(test)]
thread_local! {
    /// The phrases that lookups of this thread have found.
    pub(crate) static MATCHED_PHRASES: std::cell::RefCell<std::collections::BTreeSet<&'static str>> =
        const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// A phrase as keys of its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhraseEntry {
    /// The key of the first word.
    first: u64,
    /// The keys of the following words.
    pub(crate) rest: &'static [u64],
    /// The index of the phrase in its list.
    index: usize,
}

impl PhraseEntry {
    /// Returns the number of words.
    pub(crate) fn len(&self) -> usize {
        1 + self.rest.len()
    }
}

/// A set of words, one bit for the short hash of each. Large enough that a list of hundreds rejects most other words.
pub(crate) type WordBits = [u64; 16];

impl Phrases {
    /// Returns false if no phrase begins with a word of this short hash. True is only a hint.
    #[inline]
    pub(crate) fn may_begin(self, short_hash: u16) -> bool {
        let (slot, bit) = bit_position(short_hash);
        self.0.firsts[slot] & bit != 0
    }

    /// Returns false if no phrase begins with one of these words. True is only a hint.
    #[inline]
    pub(crate) fn may_occur_in(self, words: &WordBits) -> bool {
        let firsts = &self.0.firsts;
        firsts.iter().zip(words).fold(0, |all, (a, b)| all | a & b) != 0
    }

    /// Yields the phrases that begin with the word of this key, the longest first. Phrases of equal length keep the
    /// order of the list. `short_hash` must be the short hash of `key`; with another one, phrases can be missing.
    #[inline]
    pub(crate) fn starting_with(self, key: u64, short_hash: u16) -> impl Iterator<Item = &'static PhraseEntry> {
        let bucket = usize::from(short_hash) & (self.0.buckets.len() - 2);
        let start = self.0.buckets.get(bucket).copied().unwrap_or_default();
        let end = self.0.buckets.get(bucket + 1).copied().unwrap_or_default();
        let entries = self.0.entries.get(usize::from(start)..usize::from(end)).unwrap_or_default();
        entries.iter().filter(move |entry| entry.first == key)
    }

    /// Yields the phrases in the order of the list.
    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.list.iter().copied()
    }

    /// Returns the index of a word in the list, or `None`. Matches only phrases of one word, and only in lower case.
    #[inline]
    pub(crate) fn index_of(self, word: &str) -> Option<usize> {
        let key = key(word.as_bytes());
        let short_hash = short_hash(key);
        if !self.may_begin(short_hash) {
            return None;
        }
        self.index_of_key(key, short_hash)
    }

    /// Returns the index of the phrase that consists of only the word with this key. `short_hash` must be its short
    /// hash.
    #[inline(never)]
    pub(crate) fn index_of_key(self, key: u64, short_hash: u16) -> Option<usize> {
        let found = self.starting_with(key, short_hash).find(|entry| entry.rest.is_empty());
        #[cfg(test)]
        self.record(found);
        found.map(|entry| entry.index)
    }

    /// Adds the phrase that a lookup found to [`MATCHED_PHRASES`].
    #[cfg(test)]
    pub(crate) fn record(self, found: Option<&PhraseEntry>) {
        MATCHED_PHRASES
            .with_borrow_mut(|all| all.extend(found.and_then(|entry| self.0.list.get(entry.index)).copied()));
    }

    /// Returns true if the text is one of the phrases. Ignores ASCII case.
    pub(crate) fn contains_ignore_case(self, text: &str) -> bool {
        let index = self.iter().position(|phrase| phrase.eq_ignore_ascii_case(text));
        #[cfg(test)]
        self.record(self.0.entries.iter().find(|entry| Some(entry.index) == index));
        index.is_some()
    }

    /// Returns true if the list contains the word as a phrase of its own. Phrases of several words never match.
    #[inline]
    pub(crate) fn contains(self, word: &str) -> bool {
        self.index_of(word).is_some()
    }
}

/// Returns the key of a word. Up to eight bytes are packed and unique. Longer words are hashed, and words with equal
/// hashes are not distinguished.
#[inline]
pub(crate) const fn key(word: &[u8]) -> u64 {
    if word.len() <= 8 { pack(word) } else { hash_long(word) }
}

/// Packs up to eight bytes into a number, the first byte lowest. Must not be called with longer words.
#[inline]
const fn pack(word: &[u8]) -> u64 {
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

/// Hashes a word of more than eight bytes, eight bytes at a time. The length is part of the hash.
const fn hash_long(word: &[u8]) -> u64 {
    let mut rest = word;
    let mut hash = word.len() as u64;
    while let Some((chunk, after)) = rest.split_first_chunk() {
        hash = scramble(hash.rotate_left(29) ^ u64::from_le_bytes(*chunk));
        rest = after;
    }
    scramble(hash.rotate_left(29) ^ pack(rest))
}

#[inline]
const fn scramble(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns a short hash that few other words share.
#[inline]
pub(crate) const fn short_hash(key: u64) -> u16 {
    (scramble(key) >> 48) as u16
}

/// Returns the position of a short hash in [`WordBits`]: the element and its bit.
#[inline]
pub(crate) const fn bit_position(short_hash: u16) -> (usize, u64) {
    (short_hash as usize >> 12, 1 << (short_hash >> 6 & 63))
}

/// Returns the number of bytes of `text` that equal `wanted`.
const fn occurrences(text: &[u8], wanted: u8) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < text.len() {
        n += (text[i] == wanted) as usize;
        i += 1;
    }
    n
}

/// Splits a text at the first separator. Returns the parts before and after it, without the separator. The second part
/// is empty if there is none.
const fn split(text: &[u8], separator: u8) -> (&[u8], &[u8]) {
    let mut end = 0;
    while end < text.len() && text[end] != separator {
        end += 1;
    }
    let (head, tail) = text.split_at(end);
    (head, if tail.is_empty() { tail } else { tail.split_at(1).1 })
}

/// Returns the number of words that follow the first word of their phrase, summed over the list.
pub(crate) const fn count_rest(list: &[&str]) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < list.len() {
        n += occurrences(list[i].as_bytes(), b' ');
        i += 1;
    }
    n
}

/// Returns the keys of all words that follow the first word of their phrase, phrase by phrase. `N` must be the result
/// of [`count_rest`]. A smaller `N` fails the compilation; a larger one leaves zeros at the end.
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

/// Returns the number of buckets for a list, a power of two.
pub(crate) const fn bucket_count(phrases: usize) -> usize {
    phrases.next_power_of_two()
}

/// Returns the phrases ordered by bucket, the longest first in each. Phrases of equal length in a bucket keep their
/// order. `rest` is the result of [`rest_keys`] for the same list. Evaluated at compile time.
pub(crate) const fn entries<const N: usize>(list: &[&str; N], rest: &'static [u64]) -> [PhraseEntry; N] {
    let mut entries = [PhraseEntry { first: 0, rest: &[], index: 0 }; N];
    let mut rest = rest;
    let mut n = 0;
    while n < N {
        let phrase = list[n].as_bytes();
        let (own_rest, following) = rest.split_at(occurrences(phrase, b' '));
        let entry = PhraseEntry { first: key(split(phrase, b' ').0), rest: own_rest, index: n };
        let mut at = n;
        while at > 0 && sorts_before(&entry, &entries[at - 1], N) {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
        rest = following;
        n += 1;
    }
    entries
}

/// Returns true if `one` belongs before `other`: in an earlier bucket, or longer in the same one. `phrases` is the
/// length of the list.
const fn sorts_before(one: &PhraseEntry, other: &PhraseEntry, phrases: usize) -> bool {
    let a = bucket(one, phrases);
    let b = bucket(other, phrases);
    a < b || a == b && one.rest.len() > other.rest.len()
}

const fn bucket(entry: &PhraseEntry, phrases: usize) -> usize {
    short_hash(entry.first) as usize & (bucket_count(phrases) - 1)
}

/// Returns the start of each bucket in `entries`, followed by the end of the last one. `entries` must be ordered by
/// bucket. `N` must be [`bucket_count`] plus one.
pub(crate) const fn buckets<const N: usize>(entries: &[PhraseEntry]) -> [u16; N] {
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

/// Returns the set of first words of a list, one bit for the short hash of each. Different words can share a bit.
pub(crate) const fn firsts(entries: &[PhraseEntry]) -> WordBits {
    let mut firsts = [0; 16];
    let mut i = 0;
    while i < entries.len() {
        let (slot, bit) = bit_position(short_hash(entries[i].first));
        firsts[slot] |= bit;
        i += 1;
    }
    firsts
}

/// Returns the set of first words of several lists: the union of their bits.
pub(crate) const fn all_firsts(lists: &[Phrases]) -> WordBits {
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

/// Returns the total number of phrases of several lists.
pub(crate) const fn count_all<T>(lists: &[(T, Phrases)]) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        n += lists[i].1.0.list.len();
        i += 1;
    }
    n
}

/// Returns all phrases of several lists in order, and the value of each at the same index. Duplicates stay. `N` must be
/// the result of [`count_all`]. A smaller `N` and empty `lists` fail the compilation; a larger `N` leaves empty phrases
/// at the end.
pub(crate) const fn join_lists<T: Copy, const N: usize>(lists: &[(T, Phrases)]) -> ([&'static str; N], [T; N]) {
    let mut all = [""; N];
    let mut values = [lists[0].0; N];
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        let (value, Phrases(table)) = lists[i];
        let mut k = 0;
        while k < table.list.len() {
            all[n] = table.list[k];
            values[n] = value;
            n += 1;
            k += 1;
        }
        i += 1;
    }
    (all, values)
}

/// Maps phrases to values. Built from several lists, one for each value.
pub(crate) struct PhraseMap<T: 'static> {
    pub(crate) phrases: Phrases,
    /// The values in the order of the phrases.
    pub(crate) values: &'static [T],
}

impl<T: Copy> PhraseMap<T> {
    /// Returns the value of a word, or `None` if it is not a phrase of its own. If several lists contain it, the first
    /// one wins.
    pub(crate) fn get(&self, word: &str) -> Option<T> {
        self.phrases.index_of(word).and_then(|index| self.values.get(index)).copied()
    }

    /// Returns the value of the longest phrase at `i`, and its number of tokens.
    #[inline]
    pub(crate) fn phrase(&self, words: &TokenizedText, i: usize) -> Option<(T, usize)> {
        let entry = words.longest_phrase(i, self.phrases)?;
        self.values.get(entry.index).map(|value| (*value, entry.len()))
    }

    /// Returns the value of the word at `i`, or `None` if it is not a phrase of its own.
    #[inline]
    pub(crate) fn at(&self, words: &TokenizedText, i: usize) -> Option<T> {
        words.index_in(i, self.phrases).and_then(|index| self.values.get(index)).copied()
    }
}

/// Builds the table of a list of phrases.
macro_rules! table {
    ($list:expr, $count:expr) => {{
        const LIST: [&str; $count] = $list;
        const REST: [u64; $crate::phrases::count_rest(&LIST)] = $crate::phrases::rest_keys(&LIST);
        const ENTRIES: [$crate::phrases::PhraseEntry; $count] = $crate::phrases::entries(&LIST, &REST);
        const BUCKETS: [u16; $crate::phrases::bucket_count($count) + 1] = $crate::phrases::buckets(&ENTRIES);
        const TABLE: $crate::phrases::PhraseTable = $crate::phrases::PhraseTable {
            list: &LIST,
            firsts: $crate::phrases::firsts(&ENTRIES),
            entries: &ENTRIES,
            buckets: &BUCKETS,
        };
        $crate::phrases::Phrases(&TABLE)
    }};
}

/// Builds [`Phrases`] from a list of literals: `phrases!(["at", "at the"])`.
macro_rules! phrases {
    ([$($phrase:literal),+ $(,)?]) => {{
        const COUNT: usize = [$($phrase),+].len();
        $crate::phrases::table!([$($phrase),+], COUNT)
    }};
}

/// Builds a map: `phrase_map!(Verb, VERBS)`, where `VERBS` is a list of pairs of a verb and its [`phrases!`].
macro_rules! phrase_map {
    ($type:ty, $lists:expr) => {{
        const COUNT: usize = $crate::phrases::count_all($lists);
        const JOINED: ([&str; COUNT], [$type; COUNT]) = $crate::phrases::join_lists($lists);
        $crate::phrases::PhraseMap { phrases: $crate::phrases::table!(JOINED.0, COUNT), values: &JOINED.1 }
    }};
}

pub(crate) use {phrase_map, phrases, table};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_by_index() {
        let list = phrases!(["a b", "c", "d"]);
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a b", "c", "d"]);
        assert!(list.contains("c") && !list.contains("a") && !list.contains("b") && !list.contains(""));
        assert_eq!((list.index_of("c"), list.index_of("d"), list.index_of("e")), (Some(1), Some(2), None));
        let begins = |word: &str| list.may_begin(short_hash(key(word.as_bytes())));
        assert!(begins("a") && !begins("b"));
    }

    #[test]
    fn the_longest_phrase_comes_first() {
        let list = phrases!(["at", "at the", "at the latest", "before", "at noon"]);
        let word = key(b"at");
        let lengths: Vec<_> = list.starting_with(word, short_hash(word)).map(|entry| entry.rest.len()).collect();
        assert_eq!(lengths, [2, 1, 1, 0]);
    }

    #[test]
    fn lists_are_joined() {
        const LISTS: &[(char, Phrases)] = &[('x', phrases!(["a", "b"])), ('y', phrases!(["c", "a"]))];
        let table = phrase_map!(char, LISTS);
        assert_eq!(["a", "b", "c", "d"].map(|word| table.get(word)), [Some('x'), Some('x'), Some('y'), None]);
    }

    #[test]
    fn words_of_every_length_have_distinct_keys() {
        let text = "abcdefghijklmnopqrstuvwxyz";
        let mut keys: Vec<u64> = (0..=text.len()).map(|end| key(&text.as_bytes()[..end])).collect();
        assert_eq!(keys[8], u64::from_le_bytes(*b"abcdefgh"));
        assert_eq!(keys[3], u64::from(u32::from_le_bytes(*b"abc\0")));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), text.len() + 1);
    }
}
