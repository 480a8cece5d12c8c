//! The types that settings have: how each is read from a value or from the text of a variable, and what is said about a
//! value that does not fit. A message is the end of a sentence that begins with the name of the setting.

use std::net::{IpAddr, SocketAddr};

use assistant::models::Provider;
use ipnet::IpNet;
use jiff::tz::TimeZone;
use model::UserId;
use model::notification::Kind;
use secrecy::SecretString;
use serde_json::Value;
use store::Durability;
use tools::foreign::Era;
use tools::{Confirm, Names};
use tracing::level_filters::LevelFilter;
use understand::Order;

use super::secrets;

pub(crate) trait Form: Sized {
    /// Reads a value; `null` is that of a setting without a default that was not given.
    fn read(value: &Value) -> Result<Self, String>;

    /// Returns the value that the text of a variable stands for.
    fn from_text(text: &str) -> Value {
        text.into()
    }

    /// Returns the value as it may be shown to people.
    fn shown(value: &Value) -> Value {
        value.clone()
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().map(str::trim).ok_or_else(|| "must be text in quotes".to_owned())
}

/// Reads the text as JSON where that is possible: numbers and flags of variables.
fn json_of(text: &str) -> Value {
    serde_json::from_str(&text.trim().to_lowercase()).unwrap_or_else(|_| text.into())
}

impl Form for String {
    fn read(value: &Value) -> Result<Self, String> {
        text(value).map(str::to_owned)
    }
}

impl Form for bool {
    fn read(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "must be true or false".to_owned())
    }

    fn from_text(text: &str) -> Value {
        json_of(text)
    }
}

impl<T: Form> Form for Option<T> {
    fn read(value: &Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::read(value).map(Some) }
    }

    fn from_text(text: &str) -> Value {
        T::from_text(text)
    }

    fn shown(value: &Value) -> Value {
        T::shown(value)
    }
}

impl<T: Form> Form for Vec<T> {
    fn read(value: &Value) -> Result<Self, String> {
        let items = value.as_array().filter(|items| items.iter().all(Value::is_string));
        let mut wrong = Vec::new();
        let mut read = Vec::new();
        for item in items.ok_or("must be a list of texts")? {
            match T::read(item) {
                Ok(item) => read.push(item),
                Err(says) => wrong.push(format!("has an entry that {says}")),
            }
        }
        if wrong.is_empty() { Ok(read) } else { Err(wrong.join(", and ")) }
    }

    fn from_text(text: &str) -> Value {
        text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
    }
}

/// A whole number within limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<const MIN: u64, const MAX: u64> Number<MIN, MAX> {
    pub(crate) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Returns nothing for 0, which stands for "no limit".
    pub(crate) fn limit(self) -> Option<u64> {
        (self.0 > 0).then_some(self.0)
    }
}

impl<const MIN: u64, const MAX: u64> Form for Number<MIN, MAX> {
    fn read(value: &Value) -> Result<Self, String> {
        match value.as_u64() {
            Some(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            Some(number) => Err(format!("must be between {MIN} and {MAX}, not {number}")),
            None => Err("must be a whole number".to_owned()),
        }
    }

    fn from_text(text: &str) -> Value {
        json_of(text)
    }
}

/// `env:NAME` or `file:PATH`: where a secret is kept. The secret itself is refused.
#[derive(Clone, Debug)]
pub(crate) struct Reference(pub(crate) String);

impl Form for Reference {
    fn read(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a reference in quotes: \"env:NAME\" or \"file:PATH\"")?.trim();
        if secrets::is_reference(text) { Ok(Self(text.to_owned())) } else { Err(secrets::INLINE.to_owned()) }
    }

    fn shown(value: &Value) -> Value {
        Hidden::shown(value)
    }
}

/// A text that may be a reference, and of which only a reference is shown as it is.
#[derive(Clone, Debug)]
pub(crate) struct Hidden(pub(crate) SecretString);

impl Form for Hidden {
    fn read(value: &Value) -> Result<Self, String> {
        text(value).map(|text| Self(text.into()))
    }

    fn shown(value: &Value) -> Value {
        let text = value.as_str().unwrap_or_default();
        if secrets::is_reference(text) { value.clone() } else { redact::redact(text).into() }
    }
}

/// `Name: value` each; a value may be a reference.
#[derive(Clone, Debug)]
pub(crate) struct Headers(pub(crate) Vec<String>);

impl Form for Headers {
    fn read(value: &Value) -> Result<Self, String> {
        let wrong = |_| "must be a list of texts such as \"Name: value\"".to_owned();
        Vec::<String>::read(value).map(Self).map_err(wrong)
    }

    fn from_text(text: &str) -> Value {
        Vec::<String>::from_text(text)
    }

    fn shown(value: &Value) -> Value {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(secrets::shown_header).collect()
    }
}

/// One text, or a list.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMore(pub(crate) Vec<String>);

impl Form for OneOrMore {
    fn read(value: &Value) -> Result<Self, String> {
        let one = value.as_str().map(|text| vec![text.to_owned()]);
        one.or_else(|| Vec::read(value).ok()).map(Self).ok_or_else(|| "must be a text or a list of texts".to_owned())
    }
}

/// Texts by name.
#[derive(Clone, Debug)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

impl Form for Pairs {
    fn read(value: &Value) -> Result<Self, String> {
        let pairs = value.as_object().and_then(|fields| {
            fields.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        });
        pairs.map(Self).ok_or_else(|| "must be a table of texts such as { NAME = \"value\" }".to_owned())
    }
}

/// A number that may have a fraction, in quotes or not, or a word in its place.
fn decimal<T>(value: &Value, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err("must be a number".to_owned()),
    };
    parse(&text).ok_or_else(|| format!("must be {wanted}, not '{text}'"))
}

/// `None` leaves the temperature to the provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Temperature(pub(crate) Option<f64>);

impl Form for Temperature {
    fn read(value: &Value) -> Result<Self, String> {
        decimal(value, "a number from 0 to 2, or default", |text| match text {
            "default" => Some(Self(None)),
            number => number.parse().ok().filter(|number| (0.0..=2.0).contains(number)).map(|t| Self(Some(t))),
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load(pub(crate) f64);

impl Form for Load {
    fn read(value: &Value) -> Result<Self, String> {
        let fits = |load: &f64| (0.0..1e6).contains(load);
        decimal(value, "a number such as 2.5", |text| text.parse().ok().filter(fits).map(Self))
    }
}

/// Texts that stand for a value of another type.
macro_rules! parsed {
    ($($type:ty: $wanted:literal, $parse:expr;)+) => {$(
        impl Form for $type {
            fn read(value: &Value) -> Result<Self, String> {
                let text = text(value)?;
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(text).ok_or_else(|| format!("must be {}, not '{text}'", $wanted))
            }
        }
    )+};
}

/// Scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebOrigin(pub(crate) String);
/// The name of an entry.
#[derive(Clone, Debug)]
pub(crate) struct Name(pub(crate) String);
/// A name of tools, with `*` for any letters.
#[derive(Clone, Debug)]
pub(crate) struct ToolPattern(pub(crate) String);

parsed! {
    SocketAddr: "an address and a port such as 127.0.0.1:7717", |text| text.parse().ok();
    TimeZone: "a time zone such as Europe/Berlin", |name| Self::get(name).ok();
    IpNet: "an address or a network such as 10.0.0.0/8", |text| {
        text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()))
    };
    UserId: "the id of a user, which is a UUID", |text| text.parse().ok();
    WebOrigin: "a URL such as https://adjutant.example, without a path", |text| {
        let url = text.trim_end_matches('/');
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        let plain = !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']);
        plain.then(|| Self(url.to_owned()))
    };
    Name: "1 to 32 letters, digits, - or _", |text| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (text.len() <= 32 && text.chars().all(fits)).then(|| Self(text.to_owned()))
    };
    ToolPattern: "the name of a tool, with * for any letters", |text| {
        (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| Self(text.to_owned()))
    };
}

/// Words that stand for a value.
macro_rules! words {
    ($($type:ty { $($word:literal $(| $alias:literal)* => $value:expr),+ $(,)? })+) => {$(
        impl Form for $type {
            fn read(value: &Value) -> Result<Self, String> {
                let word = text(value)?.to_lowercase();
                match word.as_str() {
                    $($word $(| $alias)* => Ok($value),)+
                    _ => Err(format!("must be one of {}, not '{word}'", [$($word),+].join(", "))),
                }
            }
        }
    )+};
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    Json,
    Text,
}

/// `None` is found by trying.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol(pub(crate) Option<Era>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelType {
    Webhook,
    Command,
    Email,
}

words! {
    LogFormat { "auto" => Self::Auto, "json" => Self::Json, "text" => Self::Text }
    LevelFilter {
        "info" => Self::INFO, "off" => Self::OFF, "error" => Self::ERROR, "warning" | "warn" => Self::WARN,
        "debug" => Self::DEBUG, "trace" => Self::TRACE,
    }
    Durability { "full" => Self::Full, "normal" => Self::Normal }
    Order { "month_first" => Self::MonthFirst, "day_first" => Self::DayFirst }
    Confirm { "destructive" => Self::Destructive, "bulk" => Self::Bulk, "never" => Self::Never }
    Names { "task" => Self::Task, "todo" => Self::Todo, "none" => Self::None }
    Provider {
        "offline" => Self::Offline, "gemini" => Self::Gemini, "openai" => Self::OpenAi, "anthropic" => Self::Anthropic,
        "openai-compatible" => Self::OpenAiCompatible,
    }
    Protocol { "auto" => Self(None), "legacy" => Self(Some(Era::Legacy)), "modern" => Self(Some(Era::Modern)) }
    Kind { "reminder" => Self::Reminder, "execution" => Self::Execution, "schedule" => Self::Schedule }
    ChannelType { "webhook" => Self::Webhook, "command" => Self::Command, "email" => Self::Email }
}
