//! Converts fields between the types of 1.x and protobuf messages, and macros that convert whole messages.
//!
//! Protobuf does not distinguish an empty text, an empty list or `false` from a missing value. All become `None`.
//! Writing cannot fail. Reading fails with an error that contains the path of the field.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use prost_types::Timestamp;
use serde_json::Value as Json;

use super::values::{Struct, Value};
use crate::{Error, types};

/// The range of protobuf timestamps, years 1 to 9999, in seconds since 1970.
const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A field with the protobuf type `P`.
pub(super) trait ProtoField<P>: Sized {
    /// Converts the field to protobuf.
    fn write(self) -> P;

    /// Converts the field from protobuf. Fails if the value is invalid. The error has an empty field name if the field
    /// itself is invalid.
    fn read(value: P) -> Result<Self, Error>;
}

/// Returns an error about the current field.
pub(super) fn invalid_field(message: impl Into<String>) -> Error {
    Error::invalid("", message)
}

/// Reads a field. `name` is its name in Rust. Fails with an error that contains the name.
pub(super) fn read<T: ProtoField<P>, P>(value: P, name: &str) -> Result<T, Error> {
    T::read(value).map_err(|error| error.nested_in(&camel_case(name)))
}

/// Converts a field name of Rust to its name in JSON. Every word must be ASCII and not empty.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// Implements the conversions of a message in both directions. Fields before the semicolon have the same name in both
/// types. Fields after it are written as `ours = theirs`. `reads` sets fields that the message does not have. `writes`
/// sets fields that only the message has. `or default` is described at `message!`.
macro_rules! convert {
    ($package:ident::$theirs:ident = $ours:ident { $($same:ident),* $(; $($a:ident = $b:ident),*)? }
        $(reads { $($extra:ident: $value:expr),* })? $(writes |$it:ident| { $($added:ident: $made:expr),* })?
        $(or $missing:ident)?
    ) => {
        impl From<types::$ours> for $package::$theirs {
            /// Writes every field. A missing text, number, flag or list becomes the empty one.
            fn from(ours: types::$ours) -> Self {
                $(let $it = &ours; $(let $added = $made;)*)?
                Self {
                    $($same: $crate::proto::convert::ProtoField::write(ours.$same),)*
                    $($($b: $crate::proto::convert::ProtoField::write(ours.$a),)*)?
                    $($($added,)*)?
                }
            }
        }

        impl TryFrom<$package::$theirs> for types::$ours {
            type Error = $crate::Error;

            /// Reads every field. Empty optional values become `None`. Fails if a field is invalid, or if a
            /// required message without `or default` is missing. The error contains the path of the field.
            fn try_from(theirs: $package::$theirs) -> Result<Self, $crate::Error> {
                Ok(Self {
                    $($same: $crate::proto::convert::read(theirs.$same, stringify!($same))?,)*
                    $($($a: $crate::proto::convert::read(theirs.$b, stringify!($a))?,)*)?
                    $($($extra: $value,)*)?
                })
            }
        }

        $crate::proto::convert::message!($package::$theirs = $ours $(or $missing)?);
    };
}

/// Implements `ProtoField` for a message that has conversions. Reading a missing message fails, or returns the default
/// with `or default`.
macro_rules! message {
    (@missing) => { Err($crate::proto::convert::invalid_field("missing")) };
    (@missing default) => { Ok(Default::default()) };
    ($package:ident::$theirs:ident = $ours:ident $(or $missing:ident)?) => {
        impl $crate::proto::convert::ProtoField<$package::$theirs> for types::$ours {
            fn write(self) -> $package::$theirs {
                self.into()
            }

            fn read(value: $package::$theirs) -> Result<Self, $crate::Error> {
                value.try_into()
            }
        }

        impl $crate::proto::convert::ProtoField<Option<$package::$theirs>> for types::$ours {
            fn write(self) -> Option<$package::$theirs> {
                Some(self.into())
            }

            fn read(value: Option<$package::$theirs>) -> Result<Self, $crate::Error> {
                match value {
                    Some(value) => value.try_into(),
                    None => $crate::proto::convert::message!(@missing $($missing)?),
                }
            }
        }
    };
}

/// Implements the conversions of a message with a `oneof`. `$named` is the error if no variant is set. `without` names
/// the variant that the message does not have.
macro_rules! choice {
    ($package:ident::$theirs:ident . $field:ident: $choice:path = $ours:ident, $named:literal {
        $($variant:ident = $other:ident as $name:literal),*
    } $(without $lost:ident)?) => {
        impl From<types::$ours> for $package::$theirs {
            /// Writes the variant. The variant after `without` is lost, and the message is empty then.
            fn from(ours: types::$ours) -> Self {
                use $choice as Choice;
                let choice = match ours {
                    $(types::$ours::$other(it) => Some(Choice::$variant(it.into())),)*
                    $(types::$ours::$lost(_) => None,)?
                };
                Self { $field: choice }
            }
        }

        impl TryFrom<$package::$theirs> for types::$ours {
            type Error = $crate::Error;

            /// Reads the variant. Fails with the text `$named` if none is set, or if its content is invalid.
            fn try_from(theirs: $package::$theirs) -> Result<Self, $crate::Error> {
                use $choice as Choice;
                Ok(match theirs.$field.ok_or_else(|| $crate::Error::invalid(stringify!($field), $named))? {
                    $(Choice::$variant(it) => {
                        Self::$other(it.try_into().map_err(|error: $crate::Error| error.nested_in($name))?)
                    })*
                })
            }
        }

        $crate::proto::convert::message!($package::$theirs = $ours);
    };
}

pub(super) use {choice, convert, message};

macro_rules! same {
    ($($type:ty),*) => {
        $(impl ProtoField<$type> for $type {
            fn write(self) -> $type {
                self
            }

            fn read(value: $type) -> Result<Self, Error> {
                Ok(value)
            }
        }

        impl ProtoField<$type> for Option<$type> {
            fn write(self) -> $type {
                self.unwrap_or_default()
            }

            fn read(value: $type) -> Result<Self, Error> {
                Ok(Some(value).filter(|value| *value != <$type>::default()))
            }
        })*
    };
}

same!(String, bool, i32);

impl<T: ProtoField<P>, P> ProtoField<Option<P>> for Option<T> {
    fn write(self) -> Option<P> {
        self.map(T::write)
    }

    fn read(value: Option<P>) -> Result<Self, Error> {
        value.map(T::read).transpose()
    }
}

impl<T: ProtoField<P>, P> ProtoField<Vec<P>> for Vec<T> {
    fn write(self) -> Vec<P> {
        self.into_iter().map(T::write).collect()
    }

    fn read(value: Vec<P>) -> Result<Self, Error> {
        let read = |(at, item)| T::read(item).map_err(|error| error.nested_in(&format!("[{at}]")));
        value.into_iter().enumerate().map(read).collect()
    }
}

impl<T: ProtoField<P>, P> ProtoField<Vec<P>> for Option<Vec<T>> {
    fn write(self) -> Vec<P> {
        self.unwrap_or_default().write()
    }

    fn read(value: Vec<P>) -> Result<Self, Error> {
        Ok(Some(Vec::read(value)?).filter(|list| !list.is_empty()))
    }
}

impl<T: ProtoField<P>, P> ProtoField<HashMap<String, P>> for HashMap<String, T> {
    fn write(self) -> HashMap<String, P> {
        self.into_iter().map(|(name, value)| (name, value.write())).collect()
    }

    fn read(value: HashMap<String, P>) -> Result<Self, Error> {
        let read = |(name, value): (String, P)| match T::read(value) {
            Ok(value) => Ok((name, value)),
            Err(error) => Err(error.nested_in(&name)),
        };
        value.into_iter().map(read).collect()
    }
}

impl<T: ProtoField<P>, P> ProtoField<HashMap<String, P>> for Option<HashMap<String, T>> {
    fn write(self) -> HashMap<String, P> {
        self.unwrap_or_default().write()
    }

    fn read(value: HashMap<String, P>) -> Result<Self, Error> {
        Ok(Some(HashMap::read(value)?).filter(|map| !map.is_empty()))
    }
}

const UNKNOWN_NUMBER: &str = "contains a number that JSON cannot represent";

impl ProtoField<Struct> for HashMap<String, Json> {
    fn write(self) -> Struct {
        Struct::from(self.into_iter().collect::<serde_json::Map<_, _>>())
    }

    fn read(value: Struct) -> Result<Self, Error> {
        if value.has_unknown_number {
            return Err(invalid_field(UNKNOWN_NUMBER));
        }
        Ok(value.fields.into_iter().collect())
    }
}

impl ProtoField<Struct> for serde_json::Map<String, Json> {
    fn write(self) -> Struct {
        self.into()
    }

    fn read(value: Struct) -> Result<Self, Error> {
        if value.has_unknown_number { Err(invalid_field(UNKNOWN_NUMBER)) } else { Ok(value.fields) }
    }
}

impl ProtoField<Value> for Json {
    fn write(self) -> Value {
        self.into()
    }

    fn read(value: Value) -> Result<Self, Error> {
        if value.has_unknown_number { Err(invalid_field(UNKNOWN_NUMBER)) } else { Ok(value.json) }
    }
}

impl ProtoField<Timestamp> for DateTime<Utc> {
    /// Clamps the year to the range of protobuf. A leap second becomes the end of the previous second.
    fn write(self) -> Timestamp {
        let seconds = self.timestamp().clamp(*TIMESTAMP_SECONDS.start(), *TIMESTAMP_SECONDS.end());
        let nanos = i32::try_from(self.timestamp_subsec_nanos()).unwrap_or(i32::MAX).min(999_999_999);
        Timestamp { seconds, nanos }
    }

    fn read(value: Timestamp) -> Result<Self, Error> {
        let nanos = u32::try_from(value.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        let seconds = Some(value.seconds).filter(|seconds| TIMESTAMP_SECONDS.contains(seconds));
        let time = seconds.zip(nanos).and_then(|(seconds, nanos)| Self::from_timestamp(seconds, nanos));
        time.ok_or_else(|| invalid_field("is not a valid time"))
    }
}

/// The states in the order of their numbers, which are the same in both packages.
const STATES: [types::TaskState; 9] = [
    types::TaskState::Unspecified,
    types::TaskState::Submitted,
    types::TaskState::Working,
    types::TaskState::Completed,
    types::TaskState::Failed,
    types::TaskState::Canceled,
    types::TaskState::InputRequired,
    types::TaskState::Rejected,
    types::TaskState::AuthRequired,
];
const ROLES: [types::Role; 3] = [types::Role::Unspecified, types::Role::User, types::Role::Agent];

macro_rules! enumeration {
    ($type:ident, $values:ident, $noun:literal) => {
        impl ProtoField<i32> for types::$type {
            fn write(self) -> i32 {
                let number = $values.iter().position(|value| *value == self);
                number.and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
            }

            fn read(value: i32) -> Result<Self, Error> {
                let found = usize::try_from(value).ok().and_then(|number| $values.get(number));
                found.cloned().ok_or_else(|| invalid_field(format!("{value} is not a {}", $noun)))
            }
        }
    };
}

enumeration!(TaskState, STATES, "task state");
enumeration!(Role, ROLES, "role");

/// An unspecified state in a filter means no filter.
impl ProtoField<i32> for Option<types::TaskState> {
    fn write(self) -> i32 {
        self.unwrap_or_default().write()
    }

    fn read(value: i32) -> Result<Self, Error> {
        types::TaskState::read(value).map(|state| Some(state).filter(|state| *state != types::TaskState::Unspecified))
    }
}
