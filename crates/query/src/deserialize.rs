//! Deserializes the fields of a struct from texts: numbers and booleans are parsed, the rest is taken as it is.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::MapDeserializer;
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::{Error, Reason};

pub(crate) fn from_parameters<T: DeserializeOwned>(parameters: Vec<(Cow<'_, str>, Cow<'_, str>)>) -> Result<T, Error> {
    let fields = parameters.iter().map(|(name, value)| (&**name, Parameter { name, value }));
    T::deserialize(MapDeserializer::new(fields))
}

impl de::Error for Error {
    /// The deserializer of the parameter adds its name.
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
struct Parameter<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> Parameter<'a> {
    fn named<T>(self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| match error.parameter.is_empty() {
            true => Error { parameter: self.name.to_owned(), ..error },
            false => error,
        })
    }

    fn parsed<T: FromStr>(self, expected: &str) -> Result<T, Error> {
        let invalid = |_| de::Error::custom(format!("must be {expected}"));
        self.named(self.value.parse().map_err(invalid))
    }
}

impl<'de> IntoDeserializer<'de, Error> for Parameter<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Parses the text before the visitor gets it.
macro_rules! parse {
    ($($method:ident $visit:ident $expected:literal,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let value = self.parsed($expected)?;
            self.named(visitor.$visit(value))
        }
    )*};
}

impl<'de> Deserializer<'de> for Parameter<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.named(visitor.visit_borrowed_str(self.value))
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
        self.named(visitor.visit_enum(self.value.into_deserializer()))
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
