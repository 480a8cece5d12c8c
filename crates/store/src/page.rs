//! Pages of a listing: how many rows, and where the next page begins.
//!
//! A cursor names the last row seen, so rows that come or go meanwhile neither repeat nor hide others.

use model::Invalid;
use model::text::hex;

pub const DEFAULT_LIMIT: i64 = 50;
pub const MAX_LIMIT: i64 = 200;

/// Where a page begins: behind the row with this sort value and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub sort: i64,
    pub id: String,
}

impl Cursor {
    /// Hexadecimal, so that nobody builds on what is inside.
    pub fn encode(&self) -> String {
        hex(format!("{}:{}", self.sort, self.id).as_bytes())
    }

    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::decode(text)
            .ok_or_else(|| Invalid::one("cursor", "cursor", "must be the next_cursor of an earlier answer"))
    }

    fn decode(text: &str) -> Option<Self> {
        let pairs = text.as_bytes().chunks(2).take(100);
        let bytes: Option<Vec<u8>> =
            pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        let plain = String::from_utf8(bytes?).ok()?;
        let (sort, id) = plain.split_once(':')?;
        let cursor = Self { sort: sort.parse().ok()?, id: id.to_owned() };
        // Only what encode() writes: one row has one cursor.
        (cursor.encode() == text && !cursor.id.contains('\0')).then_some(cursor)
    }
}

/// Rows of one page and the cursor of the next, if there is one.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// From `limit + 1` rows at most: one more than fits says that there is a next page.
    pub(crate) fn cut(mut rows: Vec<T>, limit: i64, key: impl Fn(&T) -> Cursor) -> Self {
        let limit = usize::try_from(limit).unwrap_or_default();
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(key);
        Self { rows, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_wrote_and_nothing_else() {
        let cursor = Cursor { sort: 1_700_000_000_000_000, id: "0190a6d2-7c00-7000-8000-000000000000".into() };
        assert_eq!(Cursor::parse(&cursor.encode()), Ok(cursor));
        for wrong in ["", "zz", "abc", "é", "3a", "2b313a61", &"30".repeat(200)] {
            assert!(Cursor::parse(wrong).is_err(), "{wrong}");
        }
    }
}
