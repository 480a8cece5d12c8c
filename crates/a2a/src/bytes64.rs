//! Bytes as JSON carries them: base64.
//!
//! Written in the standard alphabet with padding; read in either alphabet, with padding or without, as ProtoJSON wants it.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const LOOSE: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const NORMAL: GeneralPurpose = GeneralPurpose::new(&STANDARD, LOOSE);
const IN_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LOOSE);

pub fn encode(bytes: &[u8]) -> String {
    NORMAL.encode(bytes)
}

/// `None`: it is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    NORMAL.decode(text).or_else(|_| IN_URLS.decode(text)).ok()
}

/// For fields that may be missing.
pub mod option {
    use std::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => to.serialize_str(&super::encode(bytes)),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        from.deserialize_option(Base64)
    }

    struct Base64;

    impl<'de> Visitor<'de> for Base64 {
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
    fn both_alphabets_and_any_padding_are_read() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(decode(text), Some(vec![0xfb, 0xff]), "{text}");
        }
        assert_eq!(decode("!"), None);
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }
}
