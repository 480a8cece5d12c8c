//! Which extensions a caller wants, and which of them take part.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::Version;

/// More than these are not looked at.
const MOST: usize = 50;

/// The header is named with an X in 0.3; either is read in either version.
const NAMES: [HeaderName; 2] = [HeaderName::from_static("a2a-extensions"), HeaderName::from_static("x-a2a-extensions")];

/// Names between commas, in one header or several; each counts once.
pub fn wanted(headers: &HeaderMap) -> Vec<String> {
    let mut wanted = Vec::new();
    for name in &NAMES {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        for uri in values.flat_map(|value| value.split(',')).map(str::trim).filter(|uri| !uri.is_empty()) {
            if wanted.len() < MOST && !wanted.iter().any(|known| known == uri) {
                wanted.push(uri.to_owned());
            }
        }
    }
    wanted
}

/// The header of an answer: those that take part, if any does.
pub fn header(version: Version, active: &[String]) -> Option<(HeaderName, HeaderValue)> {
    let [name, name_03] = NAMES;
    let value = HeaderValue::from_str(&active.join(", ")).ok().filter(|_| !active.is_empty())?;
    Some((if version == Version::V03 { name_03 } else { name }, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_both_headers_once() {
        let mut headers = HeaderMap::new();
        headers.append("A2A-Extensions", HeaderValue::from_static("https://a, https://b"));
        headers.append("A2A-Extensions", HeaderValue::from_static(" ,https://c"));
        headers.append("X-A2A-Extensions", HeaderValue::from_static("https://b,https://d"));
        assert_eq!(wanted(&headers), ["https://a", "https://b", "https://c", "https://d"]);
        assert_eq!(header(Version::V10, &[]), None);
        let (name, value) = header(Version::V03, &["https://a".to_owned(), "https://b".to_owned()]).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-a2a-extensions", "https://a, https://b"));
    }
}
