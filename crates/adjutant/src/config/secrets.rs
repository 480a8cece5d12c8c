//! Secrets: where their values come from, and which values have to be references (`env:NAME`, `file:PATH`). A message
//! made here never repeats a value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::LazyLock;

use redact::{Redactor, What};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

/// The environment. It is full of secrets, hence no `Debug`.
#[derive(Default)]
pub(crate) struct Variables(BTreeMap<String, OsString>);

impl Variables {
    /// The value; an empty one counts as not set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.to_str()).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The first of these that is set, with its value.
    pub(crate) fn first(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &OsString)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl FromIterator<(OsString, OsString)> for Variables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        let utf8 = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self(utf8.collect())
    }
}

pub(crate) fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

/// Said of a secret that is written out.
pub(crate) const INLINE: &str = "must not stand here itself: write \"env:NAME\" or \"file:PATH\"";

/// Returns the secret that a reference points to, or the reason why there is none.
pub(crate) fn resolve(variables: &Variables, reference: &str) -> Result<SecretString, String> {
    match reference.split_once(':') {
        Some(("env", variable)) => match variables.get(variable) {
            Some(value) => Ok(value.into()),
            None => Err(format!("refers to the variable {variable}, which is not set")),
        },
        Some(("file", path)) => match std::fs::read_to_string(path) {
            Ok(value) if value.trim().is_empty() => Err(format!("refers to the file {path}, which is empty")),
            Ok(value) => Ok(value.trim().into()),
            Err(error) => Err(format!("refers to the file {path}, which cannot be read: {error}")),
        },
        _ => Err(INLINE.to_owned()),
    }
}

/// Whether a value written out in the file is a secret, by its name or by its looks.
pub(crate) fn is_inline_secret(sounds_secret: bool, value: &str) -> bool {
    static LOOKS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What { secrets: true, emails: false }));
    !is_reference(value) && (sounds_secret || LOOKS.text(value) != value)
}

/// Whether a variable of this name is a secret.
pub(crate) fn variable_sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let last = name.rsplit(['_', '-']).next().unwrap_or_default();
    ["KEY", "APIKEY", "TOKEN"].contains(&last)
        || ["PASSWORD", "PASSWD", "SECRET"].iter().any(|word| name.contains(word))
}

/// Whether a header of this name lets somebody in.
pub(crate) fn header_sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "cookie", "apikey", "token", "secret", "password"].iter().any(|word| name.contains(word))
        || name.rsplit(['-', '_']).next().is_some_and(|last| last == "key" || last == "auth")
}

/// Returns what is sent in a header that is written as `value`, or what is wrong with it.
pub(crate) fn header(variables: &Variables, name: &str, value: &str) -> Result<SecretString, String> {
    check_header(name, value)?;
    let sent = if is_reference(value) { resolve(variables, value)? } else { value.into() };
    if is_header_value(&sent) { Ok(sent) } else { Err("cannot be sent in a header".to_owned()) }
}

/// Fails if a header must not be written like this, wherever its value comes from.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("is not the name of a header".to_owned());
    }
    if is_inline_secret(header_sounds_secret(name), value) { Err(INLINE.to_owned()) } else { Ok(()) }
}

/// `Name: value` for people: the value only where it is a reference.
pub(crate) fn shown_header(entry: &str) -> String {
    let (name, value) = entry.split_once(':').unwrap_or((entry, ""));
    let value = value.trim();
    format!("{}: {}", name.trim(), if is_reference(value) { value } else { "set" })
}

/// Whether the value can be sent in a header.
pub(crate) fn is_header_value(value: &SecretString) -> bool {
    let value = value.expose_secret();
    value.is_ascii() && HeaderValue::from_str(value).is_ok()
}
