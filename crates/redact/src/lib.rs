//! Replaces secrets and e-mail addresses with `[redacted]` before text is logged or stored.
//!
//! Redaction never removes a quote, an escape before a quote or a bracket, so JSON text stays valid. It takes linear
//! time for every text. It never reports the secrets that it found.

mod emails;
mod jwt;
mod known;
mod names;
mod pairs;
mod pem;
mod prose;
mod scan;
mod shapes;
mod stream;
#[cfg(test)]
mod tests;
mod urls;
mod values;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match};
use serde_json::Value;

use known::KnownValues;
use scan::{ScanState, SecretScan};
use shapes::{KeyRule, KeyShape};
pub use stream::RedactStream;

/// The replacement for each secret and address.
pub const MARK: &str = "[redacted]";

/// The default redactor. Its automaton is built once per process.
static EVERYTHING: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(RedactOptions::default()));

/// Returns the text without secrets and e-mail addresses.
pub fn redact(text: &str) -> Cow<'_, str> {
    EVERYTHING.text(text)
}

/// Redacts all strings in a JSON value like [`redact`], and the values of keys with secret names.
pub fn redact_json(value: &mut Value) {
    EVERYTHING.json(value);
}

/// Returns `true` if the name of a variable, field or flag indicates a secret value.
pub fn is_secret_name(name: &str) -> bool {
    names::is_secret(name)
}

/// The kinds of data to redact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedactOptions {
    /// Keys, tokens, passwords and private keys.
    pub secrets: bool,
    /// E-mail addresses.
    pub emails: bool,
}

impl Default for RedactOptions {
    fn default() -> RedactOptions {
        RedactOptions { secrets: true, emails: true }
    }
}

/// Redacts text. Clones share the automaton and the known values.
#[derive(Clone)]
pub struct Redactor {
    options: RedactOptions,
    finder: AhoCorasick,
    triggers: Arc<[Trigger]>,
    known: KnownValues,
}

/// The kind of secret that a literal of the automaton indicates.
#[derive(Clone, Copy)]
enum Trigger {
    Shape(&'static KeyShape),
    Jwt,
    Name,
    Bearer,
    Pem,
    Url,
    Email,
}

impl Redactor {
    /// Returns a redactor without known values. It finds literals without regard to ASCII case.
    ///
    /// With `emails` only, URLs are searched too, because `user@host` in a URL is not an address. Without both options,
    /// only known values are replaced. Building the automaton is expensive: share the redactor.
    pub fn new(options: RedactOptions) -> Redactor {
        let mut literals: Vec<(Cow<'static, str>, Trigger)> = Vec::new();
        if options.secrets {
            literals.extend(shapes::SHAPES.iter().map(|shape| (shape.prefix.into(), Trigger::Shape(shape))));
            literals.extend(names::endings().map(|ending| (ending.into(), Trigger::Name)));
            literals.push((jwt::START.into(), Trigger::Jwt));
            literals.push((pairs::BEARER.into(), Trigger::Bearer));
            literals.push((pem::BEGIN.into(), Trigger::Pem));
        }
        if options.emails {
            literals.push(("@".into(), Trigger::Email));
        }
        // URLs are matched even if only e-mail addresses are redacted, because `user@host` in a URL is not an address.
        // Some JSON encoders escape the slashes.
        literals.extend(["://", ":\\/\\/"].map(|literal| (literal.into(), Trigger::Url)));
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .prefilter(false)
            .build(literals.iter().map(|(literal, _)| literal.as_bytes()));
        Redactor {
            options,
            finder: unwrap_automaton(finder),
            triggers: literals.iter().map(|(_, trigger)| *trigger).collect(),
            known: KnownValues::default(),
        }
    }

    /// Returns a redactor that also replaces these exact values, in plain form and escaped as in a JSON string. White
    /// space around a value is ignored.
    ///
    /// Values shorter than 6 bytes are ignored, because they occur in ordinary text. Values that are part of the mark,
    /// or contain it, are ignored too.
    pub fn with_known(self, values: impl IntoIterator<Item = String>) -> Redactor {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return self;
        }
        Redactor { known: self.known.with_values(values), ..self }
    }

    /// Returns the redacted text. It is borrowed if nothing was redacted.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.known.replace(text) {
            Cow::Borrowed(text) => self.scan(text),
            Cow::Owned(text) => Cow::Owned(self.scan(&text).into_owned()),
        }
    }

    /// Returns a redactor for text that arrives in chunks, such as the output of a process.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.clone(), false)
    }

    /// Returns a stream for text that may start in the middle of a private key, such as the last lines of a long
    /// output.
    ///
    /// Lines of a key before its END are hidden although the BEGIN is missing. The text must start at the beginning of
    /// a line. The rest of any other secret that was cut is not recognized.
    pub fn stream_from_middle(&self) -> RedactStream {
        RedactStream::new(self.clone(), true)
    }

    /// Redacts every string in the value. A string under a secret key, or after a flag such as `--password`, is
    /// replaced as a whole, unless it is a placeholder. Keys, numbers and the structure are not changed.
    pub fn json(&self, value: &mut Value) {
        self.redact_value(value, false);
    }

    /// Redacts the strings in the value in place. If `secret` is `true`, a string becomes the mark as a whole, unless
    /// it is a placeholder. Other strings are redacted like text.
    ///
    /// A list passes `secret` to its items. An item after a flag with a secret name is secret too, unless it starts
    /// with `-`. An object ignores `secret`: the names of its fields decide. Names and flags count only with the option
    /// `secrets`. Numbers, booleans and null do not change.
    fn redact_value(&self, value: &mut Value, secret: bool) {
        match value {
            Value::String(text) if secret && !values::is_placeholder(text) => MARK.clone_into(text),
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => {
                let mut after_flag = false;
                for item in items {
                    let flag = item.as_str().is_some_and(|text| text.starts_with('-'));
                    let names_secret = flag && self.options.secrets && item.as_str().is_some_and(names::is_secret);
                    self.redact_value(item, secret || after_flag && !flag);
                    after_flag = names_secret;
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.redact_value(value, self.options.secrets && names::is_secret(name));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the text with all secrets replaced, except for known values. It is borrowed if there are none.
    fn scan<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let end_reached = Cell::new(false);
        let mut scan = SecretScan::new(text, ScanState::default(), &end_reached);
        for hit in self.finder.find_overlapping_iter(text) {
            self.inspect(&mut scan, hit);
        }
        scan::replace_hidden(text, &scan.finish())
    }

    /// Hides the secret that the literal indicates, if it is one. First hides a deferred secret that starts at or
    /// before the literal. Skips literals in hidden text, except for private keys. Without the option `secrets`, a URL
    /// only marks its `@`.
    fn inspect(&self, scan: &mut SecretScan, hit: Match) {
        let trigger = self.triggers[hit.pattern()];
        if scan.advance_to(hit.start()) || matches!(trigger, Trigger::Pem) {
            match trigger {
                Trigger::Shape(shape) => shapes::hide(scan, shape, hit.start()),
                Trigger::Jwt => jwt::hide(scan, hit.start()),
                Trigger::Name => pairs::hide(scan, hit.range()),
                Trigger::Bearer => pairs::hide_bearer(scan, hit.range()),
                Trigger::Pem => pem::hide(scan, hit.start()),
                Trigger::Url => urls::hide(scan, hit.end(), self.options.secrets),
                Trigger::Email => emails::hide(scan, hit.start()),
            }
        }
    }

    /// Returns the earliest possible start of the secret that the literal indicates, for every continuation of the
    /// text.
    ///
    /// - For `Bearer `, for URLs and for prefixes that stay visible, it is the end of the literal.
    /// - For other keys, JSON web tokens and private keys, it is the start of the literal.
    /// - For a name it is the start of the value, and for an `@` the start of the local part.
    fn earliest_start(&self, scan: &SecretScan, hit: Match) -> usize {
        match self.triggers[hit.pattern()] {
            Trigger::Shape(KeyShape { rule: KeyRule::After, .. }) | Trigger::Bearer | Trigger::Url => hit.end(),
            Trigger::Shape(_) | Trigger::Jwt | Trigger::Pem => hit.start(),
            Trigger::Name => pairs::earliest_start(scan, hit.range()),
            Trigger::Email => emails::earliest_start(scan, hit.start()),
        }
    }
}

/// Unwraps an automaton. Building fails only above 2³¹ states, and the lists are short.
fn unwrap_automaton(finder: Result<AhoCorasick, aho_corasick::BuildError>) -> AhoCorasick {
    match finder {
        Ok(finder) => finder,
        Err(error) => unreachable!("{error}"),
    }
}
