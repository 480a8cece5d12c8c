//! The headers that negotiate extensions.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Version;

/// The maximum number of requested extensions. Further ones are ignored.
const MAX_EXTENSIONS: usize = 50;

/// The name of the header in 1.x and in 0.3. Both are read in both versions.
const HEADER_NAMES: [HeaderName; 2] =
    [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];

/// Returns the URIs of the requested extensions without duplicates, in order, at most 50. Reads the headers of both
/// versions, several headers and comma-separated lists. Values that are not text are ignored.
pub fn requested(headers: &HeaderMap) -> Vec<String> {
    let mut requested = Vec::new();
    for name in &HEADER_NAMES {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        for uri in values.flat_map(|value| value.split(',')).map(str::trim).filter(|uri| !uri.is_empty()) {
            if requested.len() < MAX_EXTENSIONS && !requested.iter().any(|known| known == uri) {
                requested.push(uri.to_owned());
            }
        }
    }
    requested
}

/// Returns the header that lists extensions: the active ones in a response, the requested ones in a request. Returns
/// `None` if the list is empty or not a valid header value.
pub fn response_header(version: Version, active: &[String]) -> Option<(HeaderName, HeaderValue)> {
    let [name, name_03] = HEADER_NAMES;
    let value = HeaderValue::from_str(&active.join(", ")).ok().filter(|_| !active.is_empty())?;
    Some((if version == Version::V03 { name_03 } else { name }, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_headers_are_merged_without_duplicates() {
        let mut headers = HeaderMap::new();
        headers.append("A2A-Extensions", HeaderValue::from_static("https://a, https://b"));
        headers.append("A2A-Extensions", HeaderValue::from_static(" ,https://c"));
        headers.append("X-A2A-Extensions", HeaderValue::from_static("https://b,https://d"));
        assert_eq!(requested(&headers), ["https://a", "https://b", "https://c", "https://d"]);
        assert_eq!(response_header(Version::V10, &[]), None);
        let (name, value) = response_header(Version::V03, &["https://a".to_owned(), "https://b".to_owned()]).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-a2a-extensions", "https://a, https://b"));
    }
}
