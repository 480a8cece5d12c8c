//! The types of settings. Each is parsed from a value of the file or from the text of a variable. An error message is
//! the predicate of a sentence that begins with the name of the setting.

use std::net::{IpAddr, SocketAddr};

use assistant::models::ModelProvider;
use ipnet::IpNet;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use model::UserId;
use model::notification::NotificationKind;
use secrecy::SecretString;
use serde_json::Value;
use store::{Durability, Pooler};
use tools::mcp_client::ProtocolEra;
use tools::{ConfirmationPolicy, ToolNames};
use tracing::level_filters::LevelFilter;
use understand::DateOrder;

use super::secrets;

/// A type of settings.
pub(crate) trait SettingValue: Sized {
    /// Parses a value. `null` is a missing setting without a default. Fails if the value is not valid.
    fn parse(value: &Value) -> Result<Self, String>;

    /// Converts the text of a variable to a value.
    fn from_text(text: &str) -> Value {
        text.into()
    }

    /// Returns the value for display, without secrets.
    fn display_value(value: &Value) -> Value {
        value.clone()
    }
}

/// Returns the trimmed text of a value. Fails if the value is not a string.
fn text(value: &Value) -> Result<&str, String> {
    value.as_str().map(str::trim).ok_or_else(|| "must be a string in quotes".to_owned())
}

/// Parses a number or boolean of a variable as JSON, ignoring case. Returns the text as a string if that fails.
fn parse_json(text: &str) -> Value {
    serde_json::from_str(&text.trim().to_lowercase()).unwrap_or_else(|_| text.into())
}

impl SettingValue for String {
    fn parse(value: &Value) -> Result<Self, String> {
        text(value).map(str::to_owned)
    }
}

impl SettingValue for bool {
    fn parse(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "must be true or false".to_owned())
    }

    fn from_text(text: &str) -> Value {
        parse_json(text)
    }
}

impl<T: SettingValue> SettingValue for Option<T> {
    fn parse(value: &Value) -> Result<Self, String> {
        if value.is_null() { Ok(None) } else { T::parse(value).map(Some) }
    }

    fn from_text(text: &str) -> Value {
        T::from_text(text)
    }

    fn display_value(value: &Value) -> Value {
        T::display_value(value)
    }
}

impl<T: SettingValue> SettingValue for Vec<T> {
    /// Parses a list of strings, each as a `T`. Fails if the value is not such a list, or with the messages of all
    /// invalid entries.
    fn parse(value: &Value) -> Result<Self, String> {
        let items = value.as_array().filter(|items| items.iter().all(Value::is_string));
        let mut wrong = Vec::new();
        let mut read = Vec::new();
        for item in items.ok_or("must be a list of strings")? {
            match T::parse(item) {
                Ok(item) => read.push(item),
                Err(message) => wrong.push(format!("has an entry that {message}")),
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
    /// Returns the number as `usize`, saturated.
    pub(crate) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// Returns none for 0, which means "no limit".
    pub(crate) fn limit(self) -> Option<u64> {
        (self.0 > 0).then_some(self.0)
    }
}

impl<const MIN: u64, const MAX: u64> SettingValue for Number<MIN, MAX> {
    fn parse(value: &Value) -> Result<Self, String> {
        match value.as_u64() {
            Some(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            Some(number) => Err(format!("must be between {MIN} and {MAX}, not {number}")),
            None => Err("must be a whole number".to_owned()),
        }
    }

    fn from_text(text: &str) -> Value {
        parse_json(text)
    }
}

/// A reference to a secret: `env:NAME` or `file:PATH`. A plain secret is rejected.
#[derive(Clone, Debug)]
pub(crate) struct SecretReference(pub(crate) String);

impl SettingValue for SecretReference {
    fn parse(value: &Value) -> Result<Self, String> {
        let text = value.as_str().ok_or("must be a reference in quotes: \"env:NAME\" or \"file:PATH\"")?.trim();
        if secrets::is_reference(text) { Ok(Self(text.to_owned())) } else { Err(secrets::INLINE_SECRET.to_owned()) }
    }

    fn display_value(value: &Value) -> Value {
        RedactedText::display_value(value)
    }
}

/// A text that may be a reference. Any other text is redacted for display.
#[derive(Clone, Debug)]
pub(crate) struct RedactedText(pub(crate) SecretString);

impl SettingValue for RedactedText {
    fn parse(value: &Value) -> Result<Self, String> {
        text(value).map(|text| Self(text.into()))
    }

    fn display_value(value: &Value) -> Value {
        let text = value.as_str().unwrap_or_default();
        if secrets::is_reference(text) { value.clone() } else { redact::redact(text).into() }
    }
}

/// A list of `Name: value`. A value may be a reference.
#[derive(Clone, Debug)]
pub(crate) struct HeaderList(pub(crate) Vec<String>);

impl SettingValue for HeaderList {
    fn parse(value: &Value) -> Result<Self, String> {
        let wrong = |_| "must be a list of strings such as \"Name: value\"".to_owned();
        Vec::<String>::parse(value).map(Self).map_err(wrong)
    }

    fn from_text(text: &str) -> Value {
        Vec::<String>::from_text(text)
    }

    fn display_value(value: &Value) -> Value {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(secrets::display_header).collect()
    }
}

/// One text or a list of texts.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMore(pub(crate) Vec<String>);

impl SettingValue for OneOrMore {
    fn parse(value: &Value) -> Result<Self, String> {
        let one = value.as_str().map(|text| vec![text.to_owned()]);
        one.or_else(|| Vec::parse(value).ok())
            .map(Self)
            .ok_or_else(|| "must be a string or a list of strings".to_owned())
    }
}

/// A table of texts.
#[derive(Clone, Debug)]
pub(crate) struct TextTable(pub(crate) Vec<(String, String)>);

impl SettingValue for TextTable {
    fn parse(value: &Value) -> Result<Self, String> {
        let pairs = value.as_object().and_then(|fields| {
            fields.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        });
        pairs.map(Self).ok_or_else(|| "must be a table of strings such as { NAME = \"value\" }".to_owned())
    }
}

/// Passes a number, or the trimmed text of a string, to `parse`. If that returns none, fails with a message that
/// contains `expected` and the text. Fails for other types with "must be a number".
fn decimal<T>(value: &Value, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err("must be a number".to_owned()),
    };
    parse(&text).ok_or_else(|| format!("must be {expected}, not '{text}'"))
}

/// `None` uses the default of the provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Temperature(pub(crate) Option<f64>);

impl SettingValue for Temperature {
    fn parse(value: &Value) -> Result<Self, String> {
        decimal(value, "a number from 0 to 2, or default", |text| match text {
            "default" => Some(Self(None)),
            number => number.parse().ok().filter(|number| (0.0..=2.0).contains(number)).map(|t| Self(Some(t))),
        })
    }
}

/// A load average per processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxLoad(pub(crate) f64);

impl SettingValue for MaxLoad {
    fn parse(value: &Value) -> Result<Self, String> {
        let fits = |load: &f64| (0.0..1e6).contains(load);
        decimal(value, "a number such as 2.5", |text| text.parse().ok().filter(fits).map(Self))
    }
}

/// A share from 0 to 1. 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueShare(pub(crate) f64);

impl SettingValue for QueueShare {
    fn parse(value: &Value) -> Result<Self, String> {
        let fits = |share: &f64| (0.0..=1.0).contains(share);
        decimal(value, "a number from 0 to 1 such as 0.5", |text| text.parse().ok().filter(fits).map(Self))
    }
}

/// Implements [`SettingValue`] for types that are parsed from a string.
macro_rules! parsed {
    ($($type:ty: $expected:literal, $parse:expr;)+) => {$(
        impl SettingValue for $type {
            fn parse(value: &Value) -> Result<Self, String> {
                let text = text(value)?;
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(text).ok_or_else(|| format!("must be {}, not '{text}'", $expected))
            }
        }
    )+};
}

/// A URL with scheme, host and port only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebOrigin(pub(crate) String);
/// The name of an entry: at most 32 ASCII letters, digits, - or _.
#[derive(Clone, Debug)]
pub(crate) struct EntryName(pub(crate) String);
/// A pattern for names of tools, with `*` as wildcard.
#[derive(Clone, Debug)]
pub(crate) struct ToolPattern(pub(crate) String);

parsed! {
    SocketAddr: "an address and a port such as 127.0.0.1:7717", |text| text.parse().ok();
    TimeZone: "a time zone such as Europe/Berlin", |name| Self::get(name).ok();
    Time: "a time of day such as 09:00", |text| Self::strptime("%H:%M", text).ok();
    IpNet: "an address or a network such as 10.0.0.0/8", |text| {
        text.parse().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()))
    };
    UserId: "the UUID of a user", |text| text.parse().ok();
    WebOrigin: "a URL such as https://adjutant.example, without a path", |text| {
        let url = text.trim_end_matches('/');
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        let plain = !rest.is_empty() && !rest.contains(['/', '?', '#', '@', ' ']);
        plain.then(|| Self(url.to_owned()))
    };
    EntryName: "1 to 32 letters, digits, - or _", |text| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (text.len() <= 32 && text.chars().all(fits)).then(|| Self(text.to_owned()))
    };
    ToolPattern: "the name of a tool, with * as wildcard", |text| {
        (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| Self(text.to_owned()))
    };
}

/// Implements [`SettingValue`] for types with a fixed set of names.
macro_rules! words {
    ($($type:ty { $($word:literal $(| $alias:literal)* => $value:expr),+ $(,)? })+) => {$(
        impl SettingValue for $type {
            fn parse(value: &Value) -> Result<Self, String> {
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
    /// Text on a terminal, else JSON.
    Auto,
    Json,
    Text,
}

/// `None` detects the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProtocolSetting(pub(crate) Option<ProtocolEra>);

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
    Pooler { "none" => Self::None, "transaction" => Self::Transaction }
    DateOrder { "month_first" => Self::MonthFirst, "day_first" => Self::DayFirst }
    ConfirmationPolicy { "destructive" => Self::Destructive, "bulk" => Self::Bulk, "never" => Self::Never }
    ToolNames { "task" => Self::Task, "todo" => Self::Todo, "none" => Self::None }
    ModelProvider {
        "offline" => Self::Offline, "gemini" => Self::Gemini, "openai" => Self::OpenAi, "anthropic" => Self::Anthropic,
        "openai-compatible" => Self::OpenAiCompatible,
    }
    ProtocolSetting { "auto" => Self(None), "legacy" => Self(Some(ProtocolEra::Legacy)), "modern" => Self(Some(ProtocolEra::Modern)) }
    NotificationKind { "reminder" => Self::Reminder, "execution" => Self::Execution, "schedule" => Self::Schedule }
    ChannelType { "webhook" => Self::Webhook, "command" => Self::Command, "email" => Self::Email }
}
