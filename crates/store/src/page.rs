//! Pages of a listing.
//!
//! A cursor contains the sort key of the last row of a page. Rows that are added or removed between two pages cause no
//! duplicates and no omissions.

use model::Invalid;
use model::text::hex;

/// The page size if the request has none.
pub const DEFAULT_LIMIT: i64 = 50;
/// The largest page size.
pub const MAX_LIMIT: i64 = 200;

/// The start of a page: after the row with this sort value and id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub sort: i64,
    pub id: String,
}

impl Cursor {
    /// Returns the cursor as hexadecimal text, so that clients treat it as opaque.
    pub fn encode(&self) -> String {
        hex(format!("{}:{}", self.sort, self.id).as_bytes())
    }

    /// Reads a cursor from text. Fails with [`Invalid`] if [`Cursor::encode`] has not written it, or if it encodes more
    /// than 100 bytes.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::decode(text)
            .ok_or_else(|| Invalid::one("cursor", "cursor", "must be the next_cursor of an earlier response"))
    }

    /// Returns the cursor, or `None` if `encode` would not return exactly this text, if it encodes more than 100 bytes,
    /// or if the id contains NUL.
    fn decode(text: &str) -> Option<Self> {
        let pairs = text.as_bytes().chunks(2).take(100);
        let bytes: Option<Vec<u8>> =
            pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
        let plain = String::from_utf8(bytes?).ok()?;
        let (sort, id) = plain.split_once(':')?;
        let cursor = Self { sort: sort.parse().ok()?, id: id.to_owned() };
        // Accept only the output of `encode`, so that each row has exactly one cursor.
        (cursor.encode() == text && !cursor.id.contains('\0')).then_some(cursor)
    }
}

/// The rows of one page, and the cursor of the next page if one exists.
#[derive(Clone, Debug)]
pub struct Page<T> {
    pub rows: Vec<T>,
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    /// Builds a page from at most `limit + 1` rows. The extra row shows that a next page exists and is removed. `key`
    /// returns the cursor of a row.
    pub(crate) fn from_rows(mut rows: Vec<T>, limit: i64, key: impl Fn(&T) -> Cursor) -> Self {
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
    fn a_cursor_parses_only_its_own_encoding() {
        let cursor = Cursor { sort: 1_700_000_000_000_000, id: "0190a6d2-7c00-7000-8000-000000000000".into() };
        assert_eq!(Cursor::parse(&cursor.encode()), Ok(cursor));
        for wrong in ["", "zz", "abc", "é", "3a", "2b313a61", &"30".repeat(200)] {
            assert!(Cursor::parse(wrong).is_err(), "{wrong}");
        }
    }
}
