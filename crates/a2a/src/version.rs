//! The version of the protocol and its negotiation.

use http::HeaderMap;

use crate::{Error, ErrorKind};

/// The name of the header, and of the query parameter, that selects the version.
pub const VERSION_HEADER: &str = "A2A-Version";

/// A supported version of the protocol. Patch numbers are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    V03,
    V10,
}

impl Version {
    /// Returns the version as `major.minor`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V10 => "1.0",
        }
    }

    /// Returns the version that the header names or, if that is missing or empty, the query parameter. Both names are
    /// `A2A-Version`, in any case. The default is 0.3, which has no such header. Fails with `VersionNotSupported` if
    /// the version is not supported or the header is not text.
    pub fn from_request(headers: &HeaderMap, query: Option<&str>) -> Result<Self, Error> {
        let header = headers.get(VERSION_HEADER).map(|value| value.to_str().unwrap_or("?").trim());
        let in_query = || {
            let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER)).map(|(_, value)| value)
        };
        Self::parse(header.filter(|version| !version.is_empty()).or_else(in_query).unwrap_or_default())
    }

    /// Parses a version such as `1.0` or `1.0.1`. Only 1.0 and 0.3 are supported, with any patch number. An empty text
    /// is 0.3. Fails with `VersionNotSupported` for any other text, which is cut to 20 characters in the message.
    pub fn parse(version: &str) -> Result<Self, Error> {
        let mut numbers = version.split('.');
        let fits = |patch: Option<&str>| patch.is_none_or(|patch| patch.parse::<u32>().is_ok());
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(""), None, None, None) => Ok(Self::V03),
            (Some("0"), Some("3"), patch, None) if fits(patch) => Ok(Self::V03),
            (Some("1"), Some("0"), patch, None) if fits(patch) => Ok(Self::V10),
            _ => {
                let shown: String = version.chars().take(20).collect();
                let message = format!("version '{shown}' is not supported; use 1.0 or 0.3");
                Err(Error::new(ErrorKind::VersionNotSupported, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_takes_precedence_over_the_query_and_the_default_is_0_3() {
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
            assert_eq!(Version::from_request(&headers, query).ok(), expected, "{headers:?} {query:?}");
        }
    }
}
