//! Which version of the protocol a request speaks.

use http::HeaderMap;

use crate::{Error, Kind};

/// Where a request says it: a header, or a parameter of the query of the same name.
pub const HEADER: &str = "A2A-Version";

/// Only major and minor take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V03,
    V10,
}

impl Version {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V10 => "1.0",
        }
    }

    /// The version that a header or a query names. Who names none speaks 0.3, which knew no such header.
    pub fn of(headers: &HeaderMap, query: Option<&str>) -> Result<Self, Error> {
        let header = headers.get(HEADER).map(|value| value.to_str().unwrap_or("?").trim());
        let in_query = || {
            let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(HEADER)).map(|(_, value)| value)
        };
        Self::named(header.filter(|version| !version.is_empty()).or_else(in_query).unwrap_or_default())
    }

    /// `1.0`, or `1.0.1`, of which the last does not count.
    pub fn named(version: &str) -> Result<Self, Error> {
        let mut numbers = version.split('.');
        let fits = |patch: Option<&str>| patch.is_none_or(|patch| patch.parse::<u32>().is_ok());
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(""), None, None, None) => Ok(Self::V03),
            (Some("0"), Some("3"), patch, None) if fits(patch) => Ok(Self::V03),
            (Some("1"), Some("0"), patch, None) if fits(patch) => Ok(Self::V10),
            _ => {
                let shown: String = version.chars().take(20).collect();
                let message = format!("version '{shown}' is not spoken here: 1.0 and 0.3 are");
                Err(Error::new(Kind::VersionNotSupported, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_it_then_the_query_and_nothing_is_0_3() {
        let header = |value: &str| HeaderMap::from_iter([("a2a-version".parse().unwrap(), value.parse().unwrap())]);
        for (headers, query, expected) in [
            (HeaderMap::new(), None, Some(Version::V03)),
            (header(""), None, Some(Version::V03)),
            (header("1.0"), None, Some(Version::V10)),
            (header(" 1.0.1 "), Some("A2A-Version=0.3"), Some(Version::V10)),
            (header("0.3.0"), None, Some(Version::V03)),
            (HeaderMap::new(), Some("x=1&a2a-version=1.0"), Some(Version::V10)),
            (header("2.0"), None, None),
            (header("1"), None, None),
            (header("1.0.x"), None, None),
            (header("1.1"), None, None),
        ] {
            assert_eq!(Version::of(&headers, query).ok(), expected, "{headers:?} {query:?}");
        }
    }
}
