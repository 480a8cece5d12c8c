//! The base64 form of bytes in JSON.
//!
//! Encoding uses the standard alphabet with padding. Decoding accepts both alphabets, with or without padding, as
//! ProtoJSON requires.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD_ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, ANY_PADDING);
const URL_SAFE_ENGINE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, ANY_PADDING);

/// Returns the base64 form of the bytes.
pub fn encode(bytes: &[u8]) -> String {
    STANDARD_ENGINE.encode(bytes)
}

/// Returns the decoded bytes, or `None` if the text is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD_ENGINE.decode(text).or_else(|_| URL_SAFE_ENGINE.decode(text)).ok()
}

/// Serde functions for optional fields, for use with `#[serde(with = "…")]`.
pub mod option {
    use std::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    /// Writes the bytes as base64, or `null`. Fails if the serializer fails.
    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => to.serialize_str(&super::encode(bytes)),
            None => to.serialize_none(),
        }
    }

    /// Reads bytes from base64, or `None` from `null`. Fails if the text is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        from.deserialize_option(Base64Visitor)
    }

    struct Base64Visitor;

    impl<'de> Visitor<'de> for Base64Visitor {
        type Value = Option<Vec<u8>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("base64")
        }

        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
            from.deserialize_str(self)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            super::decode(text).map(Some).ok_or_else(|| E::custom("not base64"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_alphabets_and_any_padding_are_decoded() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decode(text), Some(vec![0xfb, 0xff]), "{text}");
        }
        assert_eq!(decode("!"), None);
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }
}
