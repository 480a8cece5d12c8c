//! Resolves references to secrets (`env:NAME`, `file:PATH`) and detects secrets that must be references. Messages never
//! repeat a value.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::LazyLock;

use redact::{RedactOptions, Redactor};
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

/// The environment variables. No `Debug`, because they contain secrets.
#[derive(Default)]
pub(crate) struct EnvVariables(BTreeMap<String, OsString>);

impl EnvVariables {
    /// Returns a value without surrounding whitespace. A value that is empty or not UTF-8 counts as not set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|value| value.to_str()).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns the first of these variables that is set, with its value.
    pub(crate) fn first(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// Returns all variables with a UTF-8 name, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &OsString)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl FromIterator<(OsString, OsString)> for EnvVariables {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        let utf8 = variables.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self(utf8.collect())
    }
}

/// Returns true for `env:NAME` and `file:PATH`.
pub(crate) fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}

/// The message for a secret in plain text.
pub(crate) const INLINE_SECRET: &str = "must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"";

/// Returns the secret that a reference points to, without surrounding whitespace. Reads the file of a `file:`
/// reference. Fails if the text is not a reference, or if the variable or file is missing, empty or not UTF-8. The
/// error is the predicate of a sentence about the setting.
pub(crate) fn resolve(variables: &EnvVariables, reference: &str) -> Result<SecretString, String> {
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
        _ => Err(INLINE_SECRET.to_owned()),
    }
}

/// Returns true if the text is not a reference and `has_secret_name` is set or the text has the format of a known
/// secret.
pub(crate) fn is_inline_secret(has_secret_name: bool, value: &str) -> bool {
    static SECRETS: LazyLock<Redactor> =
        LazyLock::new(|| Redactor::new(RedactOptions { secrets: true, emails: false }));
    !is_reference(value) && (has_secret_name || SECRETS.text(value) != value)
}

/// Returns true if the name of a variable indicates a secret: its last word is KEY, APIKEY or TOKEN, or it contains
/// PASSWORD, PASSWD or SECRET.
pub(crate) fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let last = name.rsplit(['_', '-']).next().unwrap_or_default();
    ["KEY", "APIKEY", "TOKEN"].contains(&last)
        || ["PASSWORD", "PASSWD", "SECRET"].iter().any(|word| name.contains(word))
}

/// Returns true if the name of a header indicates credentials, for example `Authorization`, `X-Api-Key` or a name with
/// `token`.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "cookie", "apikey", "token", "secret", "password"].iter().any(|word| name.contains(word))
        || name.rsplit(['-', '_']).next().is_some_and(|last| last == "key" || last == "auth")
}

/// Returns the value of a header, with a reference resolved. Fails if the name or value is not valid, if the value is a
/// plain secret, or if the reference cannot be resolved.
pub(crate) fn header(variables: &EnvVariables, name: &str, value: &str) -> Result<SecretString, String> {
    check_header(name, value)?;
    let sent = if is_reference(value) { resolve(variables, value)? } else { value.into() };
    if is_header_value(&sent) { Ok(sent) } else { Err("is not a valid header value".to_owned()) }
}

/// Fails if the name is not valid or the value is a plain secret. Does not resolve references.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(), String> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("is not a valid header name".to_owned());
    }
    if is_inline_secret(is_secret_header(name), value) { Err(INLINE_SECRET.to_owned()) } else { Ok(()) }
}

/// Returns `Name: value` for display. Plain values are hidden.
pub(crate) fn display_header(entry: &str) -> String {
    let (name, value) = entry.split_once(':').unwrap_or((entry, ""));
    let value = value.trim();
    format!("{}: {}", name.trim(), if is_reference(value) { value } else { "set" })
}

/// Returns true if the value is ASCII and can be sent in a header.
pub(crate) fn is_header_value(value: &SecretString) -> bool {
    let value = value.expose_secret();
    value.is_ascii() && HeaderValue::from_str(value).is_ok()
}
