//! Replaces secrets and e-mail addresses with `[redacted]` before text is logged or stored.
//!
//! Never removes a quote, an escape before a quote or a bracket, so a JSON text stays valid; never takes more than
//! linear time, whatever the text; never reports what it found.

mod emails;
mod jwt;
mod known;
mod names;
mod pairs;
mod pem;
mod prose;
mod scan;
mod shapes;
#[cfg(test)]
mod tests;
mod urls;
mod values;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde_json::Value;

use known::Known;
use scan::Scan;
use shapes::Shape;

/// What stands in the text in place of whatever was found.
pub const MARK: &str = "[redacted]";

/// One automaton for the whole process.
static EVERYTHING: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(What::default()));

/// Redacts with everything looked for and no known values.
pub fn redact(text: &str) -> Cow<'_, str> {
    EVERYTHING.text(text)
}

/// [`redact`] for every text in a JSON value, and for what its names give away.
pub fn redact_json(value: &mut Value) {
    EVERYTHING.json(value);
}

/// Which kinds of things are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// Keys, tokens, passwords and private keys.
    pub secrets: bool,
    /// E-mail addresses.
    pub emails: bool,
}

impl Default for What {
    fn default() -> What {
        What { secrets: true, emails: true }
    }
}

/// Finds what must not be kept in a text. A clone shares everything with its original.
#[derive(Clone)]
pub struct Redactor {
    what: What,
    finder: AhoCorasick,
    triggers: Arc<[Trigger]>,
    known: Known,
}

/// What the literal found by the automaton may be the beginning, or the middle, of.
#[derive(Clone, Copy)]
enum Trigger {
    Shape(&'static Shape),
    Jwt,
    Name,
    Bearer,
    Pem,
    Url,
    Email,
}

impl Redactor {
    pub fn new(what: What) -> Redactor {
        let mut literals: Vec<(Cow<'static, str>, Trigger)> = Vec::new();
        if what.secrets {
            literals.extend(shapes::SHAPES.iter().map(|shape| (shape.prefix.into(), Trigger::Shape(shape))));
            literals.extend(names::endings().map(|ending| (ending.into(), Trigger::Name)));
            literals.push((jwt::START.into(), Trigger::Jwt));
            literals.push((pairs::BEARER.into(), Trigger::Bearer));
            literals.push((pem::BEGIN.into(), Trigger::Pem));
        }
        if what.emails {
            literals.push(("@".into(), Trigger::Email));
        }
        // A URL is looked at even when only e-mail addresses are wanted: `user@host` in it is none. Some write the
        // slashes in JSON escaped.
        literals.extend(["://", ":\\/\\/"].map(|literal| (literal.into(), Trigger::Url)));
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .prefilter(false)
            .build(literals.iter().map(|(literal, _)| literal.as_bytes()));
        Redactor {
            what,
            finder: built(finder),
            triggers: literals.iter().map(|(_, trigger)| *trigger).collect(),
            known: Known::default(),
        }
    }

    /// Also replaces these exact values wherever they occur, as they are or escaped as in a JSON string.
    /// Values shorter than 6 bytes are ignored: they would blot out ordinary text.
    pub fn with_known(self, values: impl IntoIterator<Item = String>) -> Redactor {
        Redactor { known: self.known.and(values), ..self }
    }

    /// The text without its secrets; borrowed when there were none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.known.replaced(text) {
            Cow::Borrowed(text) => self.scanned(text),
            Cow::Owned(text) => Cow::Owned(self.scanned(&text).into_owned()),
        }
    }

    /// Redacts every string in the value, wholly where it stands under a key, or after a flag such as `--password`,
    /// whose name says that it is secret. Keys, numbers and structure are kept.
    pub fn json(&self, value: &mut Value) {
        self.json_under(value, false);
    }

    fn json_under(&self, value: &mut Value, secret: bool) {
        match value {
            Value::String(text) if secret && !values::is_stand_in(text) => MARK.clone_into(text),
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.text(text) {
                    *text = redacted;
                }
            }
            Value::Array(items) => {
                let mut after_flag = false;
                for item in items {
                    let flag = item.as_str().is_some_and(|text| text.starts_with('-'));
                    let names_secret = flag && self.what.secrets && item.as_str().is_some_and(names::is_secret);
                    self.json_under(item, secret || after_flag && !flag);
                    after_flag = names_secret;
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.json_under(value, self.what.secrets && names::is_secret(name));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn scanned<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut scan = Scan::new(text);
        for hit in self.finder.find_overlapping_iter(text) {
            if !scan.reaches(hit.start()) {
                continue;
            }
            match self.triggers[hit.pattern()] {
                Trigger::Shape(shape) => shapes::hide(&mut scan, shape, hit.start()),
                Trigger::Jwt => jwt::hide(&mut scan, hit.start()),
                Trigger::Name => pairs::hide(&mut scan, hit.range()),
                Trigger::Bearer => pairs::hide_bearer(&mut scan, hit.range()),
                Trigger::Pem => pem::hide(&mut scan, hit.start()),
                Trigger::Url => urls::hide(&mut scan, hit.end(), self.what.secrets),
                Trigger::Email => emails::hide(&mut scan, hit.start()),
            }
        }
        scan.finish()
    }
}

/// The automatons are built from short lists, far below the only limit building has (2³¹ states).
fn built(finder: Result<AhoCorasick, aho_corasick::BuildError>) -> AhoCorasick {
    match finder {
        Ok(finder) => finder,
        Err(error) => unreachable!("{error}"),
    }
}
