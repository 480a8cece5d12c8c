//! How a field of the types of 1.x becomes one of a message and back, and the macro that does so for whole messages.
//!
//! Protobuf does not tell an empty text from none, nor an empty list, nor false: all become `None` here. Writing cannot
//! fail. Reading fails with an error that names the field, from the outside in.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use prost_types::Timestamp;
use serde_json::Value as Json;

use super::values::{Struct, Value};
use crate::{Error, types};

/// The years 1 to 9999, in seconds since 1970: protobuf has no others.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// A field that a message has as `P`.
pub(super) trait Field<P>: Sized {
    fn write(self) -> P;

    /// The error has an empty name where the field itself is wrong.
    fn read(value: P) -> Result<Self, Error>;
}

/// Returns an error about the field that is being read.
pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::invalid("", message)
}

/// Reads a field and names it in the error. `name` is the name in Rust.
pub(super) fn read<T: Field<P>, P>(value: P, name: &str) -> Result<T, Error> {
    T::read(value).map_err(|error| error.inside(&camel_case(name)))
}

fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// Converts a message both ways, field by field. `same` fields have one name in both; `ours = theirs` have two. `reads`
/// gives fields that the message does not have, `writes` those that only the message has. `or default` is as in
/// `message!`.
macro_rules! convert {
    ($package:ident::$theirs:ident = $ours:ident { $($same:ident),* $(; $($a:ident = $b:ident),*)? }
        $(reads { $($extra:ident: $value:expr),* })? $(writes |$it:ident| { $($added:ident: $made:expr),* })?
        $(or $missing:ident)?
    ) => {
        impl From<types::$ours> for $package::$theirs {
            fn from(ours: types::$ours) -> Self {
                $(let $it = &ours; $(let $added = $made;)*)?
                Self {
                    $($same: $crate::proto::convert::Field::write(ours.$same),)*
                    $($($b: $crate::proto::convert::Field::write(ours.$a),)*)?
                    $($($added,)*)?
                }
            }
        }

        impl TryFrom<$package::$theirs> for types::$ours {
            type Error = $crate::Error;

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

/// Makes a message that can be converted a field of others. Where it must be there and is not, reading fails, or returns
/// the default if the macro is told so.
macro_rules! message {
    (@missing) => { Err($crate::proto::convert::wrong("missing")) };
    (@missing default) => { Ok(Default::default()) };
    ($package:ident::$theirs:ident = $ours:ident $(or $missing:ident)?) => {
        impl $crate::proto::convert::Field<$package::$theirs> for types::$ours {
            fn write(self) -> $package::$theirs {
                self.into()
            }

            fn read(value: $package::$theirs) -> Result<Self, $crate::Error> {
                value.try_into()
            }
        }

        impl $crate::proto::convert::Field<Option<$package::$theirs>> for types::$ours {
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

/// Converts a message that is one of several others. `$named` is the error where it is none, `without` those that the
/// message does not have.
macro_rules! choice {
    ($package:ident::$theirs:ident . $field:ident: $choice:path = $ours:ident, $named:literal {
        $($variant:ident = $other:ident as $name:literal),*
    } $(without $lost:ident)?) => {
        impl From<types::$ours> for $package::$theirs {
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

            fn try_from(theirs: $package::$theirs) -> Result<Self, $crate::Error> {
                use $choice as Choice;
                Ok(match theirs.$field.ok_or_else(|| $crate::Error::invalid(stringify!($field), $named))? {
                    $(Choice::$variant(it) => {
                        Self::$other(it.try_into().map_err(|error: $crate::Error| error.inside($name))?)
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
        $(impl Field<$type> for $type {
            fn write(self) -> $type {
                self
            }

            fn read(value: $type) -> Result<Self, Error> {
                Ok(value)
            }
        }

        impl Field<$type> for Option<$type> {
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

impl<T: Field<P>, P> Field<Option<P>> for Option<T> {
    fn write(self) -> Option<P> {
        self.map(T::write)
    }

    fn read(value: Option<P>) -> Result<Self, Error> {
        value.map(T::read).transpose()
    }
}

impl<T: Field<P>, P> Field<Vec<P>> for Vec<T> {
    fn write(self) -> Vec<P> {
        self.into_iter().map(T::write).collect()
    }

    fn read(value: Vec<P>) -> Result<Self, Error> {
        let read = |(at, item)| T::read(item).map_err(|error| error.inside(&format!("[{at}]")));
        value.into_iter().enumerate().map(read).collect()
    }
}

impl<T: Field<P>, P> Field<Vec<P>> for Option<Vec<T>> {
    fn write(self) -> Vec<P> {
        self.unwrap_or_default().write()
    }

    fn read(value: Vec<P>) -> Result<Self, Error> {
        Ok(Some(Vec::read(value)?).filter(|list| !list.is_empty()))
    }
}

impl<T: Field<P>, P> Field<HashMap<String, P>> for HashMap<String, T> {
    fn write(self) -> HashMap<String, P> {
        self.into_iter().map(|(name, value)| (name, value.write())).collect()
    }

    fn read(value: HashMap<String, P>) -> Result<Self, Error> {
        let read = |(name, value): (String, P)| match T::read(value) {
            Ok(value) => Ok((name, value)),
            Err(error) => Err(error.inside(&name)),
        };
        value.into_iter().map(read).collect()
    }
}

impl<T: Field<P>, P> Field<HashMap<String, P>> for Option<HashMap<String, T>> {
    fn write(self) -> HashMap<String, P> {
        self.unwrap_or_default().write()
    }

    fn read(value: HashMap<String, P>) -> Result<Self, Error> {
        Ok(Some(HashMap::read(value)?).filter(|map| !map.is_empty()))
    }
}

const UNKNOWN_NUMBER: &str = "has a number that JSON does not know";

impl Field<Struct> for HashMap<String, Json> {
    fn write(self) -> Struct {
        Struct::from(self.into_iter().collect::<serde_json::Map<_, _>>())
    }

    fn read(value: Struct) -> Result<Self, Error> {
        if value.has_unknown_number {
            return Err(wrong(UNKNOWN_NUMBER));
        }
        Ok(value.fields.into_iter().collect())
    }
}

impl Field<Struct> for serde_json::Map<String, Json> {
    fn write(self) -> Struct {
        self.into()
    }

    fn read(value: Struct) -> Result<Self, Error> {
        if value.has_unknown_number { Err(wrong(UNKNOWN_NUMBER)) } else { Ok(value.fields) }
    }
}

impl Field<Value> for Json {
    fn write(self) -> Value {
        self.into()
    }

    fn read(value: Value) -> Result<Self, Error> {
        if value.has_unknown_number { Err(wrong(UNKNOWN_NUMBER)) } else { Ok(value.json) }
    }
}

impl Field<Timestamp> for DateTime<Utc> {
    /// A year that protobuf does not have becomes the nearest one that it has, a leap second the end of the second before.
    fn write(self) -> Timestamp {
        let seconds = self.timestamp().clamp(*SECONDS.start(), *SECONDS.end());
        let nanos = i32::try_from(self.timestamp_subsec_nanos()).unwrap_or(i32::MAX).min(999_999_999);
        Timestamp { seconds, nanos }
    }

    fn read(value: Timestamp) -> Result<Self, Error> {
        let nanos = u32::try_from(value.nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
        let seconds = Some(value.seconds).filter(|seconds| SECONDS.contains(seconds));
        let time = seconds.zip(nanos).and_then(|(seconds, nanos)| Self::from_timestamp(seconds, nanos));
        time.ok_or_else(|| wrong("is no time"))
    }
}

/// The states by their numbers, which are the same in both packages.
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
        impl Field<i32> for types::$type {
            fn write(self) -> i32 {
                let number = $values.iter().position(|value| *value == self);
                number.and_then(|number| i32::try_from(number).ok()).unwrap_or_default()
            }

            fn read(value: i32) -> Result<Self, Error> {
                let found = usize::try_from(value).ok().and_then(|number| $values.get(number));
                found.cloned().ok_or_else(|| wrong(format!("{value} is no {}", $noun)))
            }
        }
    };
}

enumeration!(TaskState, STATES, "state of a task");
enumeration!(Role, ROLES, "role");

/// A filter for a state has none where it is unspecified.
impl Field<i32> for Option<types::TaskState> {
    fn write(self) -> i32 {
        self.unwrap_or_default().write()
    }

    fn read(value: i32) -> Result<Self, Error> {
        types::TaskState::read(value).map(|state| Some(state).filter(|state| *state != types::TaskState::Unspecified))
    }
}
