//! Deserializes the fields of a struct from strings. Numbers and booleans are parsed; other values are used unchanged.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::{Error, Reason};

/// Deserializes a struct. Fails if a parameter is missing or malformed, or unknown and the struct denies unknown
/// fields.
pub(crate) fn from_parameters<T: DeserializeOwned>(parameters: &[(Cow<'_, str>, Cow<'_, str>)]) -> Result<T, Error> {
    T::deserialize(MapAccessDeserializer::new(Parameters { rest: parameters.iter(), value: None }))
}

/// Gives the parameters to the struct one by one.
struct Parameters<'a> {
    rest: std::slice::Iter<'a, (Cow<'a, str>, Cow<'a, str>)>,
    /// The name and the value of the parameter that was given last, until its value is taken.
    value: Option<(&'a str, &'a str)>,
}

impl<'a> MapAccess<'a> for Parameters<'a> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    /// Deserializes the value of the last parameter and adds its name to an error without one.
    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let (name, value) = self.value.take().unwrap_or_default();
        seed.deserialize(Parameter(value)).map_err(|error| match error.parameter.is_empty() {
            true => Error { parameter: name.to_owned(), ..error },
            false => error,
        })
    }
}

impl de::Error for Error {
    /// [`Parameters`] adds the name of the parameter.
    fn custom<T: Display>(message: T) -> Self {
        Self { parameter: String::new(), reason: Reason::Invalid(message.to_string()) }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self { parameter: field.to_owned(), reason: Reason::Unknown(expected) }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { parameter: field.to_owned(), reason: Reason::Missing }
    }

    fn unknown_variant(_variant: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(format!("must be one of {}", expected.join(", ")))
    }
}

/// The value of one parameter.
#[derive(Clone, Copy)]
struct Parameter<'a>(&'a str);

impl Parameter<'_> {
    fn parsed<T: FromStr>(self, expected: &str) -> Result<T, Error> {
        self.0.parse().map_err(|_| de::Error::custom(format!("must be {expected}")))
    }
}

/// Parses the text before the visitor gets it.
macro_rules! parse {
    ($($method:ident $visit:ident $expected:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.parsed($expected)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Parameter<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    parse! {
        deserialize_bool visit_bool "true or false",
        deserialize_i8 visit_i8 "a whole number",
        deserialize_i16 visit_i16 "a whole number",
        deserialize_i32 visit_i32 "a whole number",
        deserialize_i64 visit_i64 "a whole number",
        deserialize_u8 visit_u8 "a whole number that is not negative",
        deserialize_u16 visit_u16 "a whole number that is not negative",
        deserialize_u32 visit_u32 "a whole number that is not negative",
        deserialize_u64 visit_u64 "a whole number that is not negative",
        deserialize_f32 visit_f32 "a number",
        deserialize_f64 visit_f64 "a number",
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
