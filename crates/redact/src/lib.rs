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

use known::Known;
use scan::{Scan, State};
use shapes::{Rule, Shape};
pub use stream::Stream;

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

/// Whether the name of a variable, field or flag says that its value is secret.
pub fn sounds_secret(name: &str) -> bool {
    names::is_secret(name)
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
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return self;
        }
        Redactor { known: self.known.and(values), ..self }
    }

    /// The text without its secrets; borrowed when there were none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.known.replaced(text) {
            Cow::Borrowed(text) => self.scanned(text),
            Cow::Owned(text) => Cow::Owned(self.scanned(&text).into_owned()),
        }
    }

    /// Redacts what comes in pieces, such as the output of a process.
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone(), false)
    }

    /// [`Redactor::stream`] for what may begin in the middle of a private key: the last lines of a long output.
    /// Lines of a key before its END are hidden although their BEGIN is missing. The cut must be at a line's end: of a
    /// secret that was cut itself, on one line or a known value of many, the rest is not recognized.
    pub fn stream_from_middle(&self) -> Stream {
        Stream::new(self.clone(), true)
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
        let ended = Cell::new(false);
        let mut scan = Scan::new(text, State::default(), &ended);
        for hit in self.finder.find_overlapping_iter(text) {
            self.look(&mut scan, hit);
        }
        scan::without(text, &scan.finish())
    }

    /// Hides what the literal gives away.
    fn look(&self, scan: &mut Scan, hit: Match) {
        let trigger = self.triggers[hit.pattern()];
        if scan.reaches(hit.start()) || matches!(trigger, Trigger::Pem) {
            match trigger {
                Trigger::Shape(shape) => shapes::hide(scan, shape, hit.start()),
                Trigger::Jwt => jwt::hide(scan, hit.start()),
                Trigger::Name => pairs::hide(scan, hit.range()),
                Trigger::Bearer => pairs::hide_bearer(scan, hit.range()),
                Trigger::Pem => pem::hide(scan, hit.start()),
                Trigger::Url => urls::hide(scan, hit.end(), self.what.secrets),
                Trigger::Email => emails::hide(scan, hit.start()),
            }
        }
    }

    /// Where what the literal gives away may begin at the earliest, however the text goes on.
    fn least_start(&self, scan: &Scan, hit: Match) -> usize {
        match self.triggers[hit.pattern()] {
            Trigger::Shape(Shape { rule: Rule::After, .. }) | Trigger::Bearer | Trigger::Url => hit.end(),
            Trigger::Shape(_) | Trigger::Jwt | Trigger::Pem => hit.start(),
            Trigger::Name => pairs::least_start(scan, hit.range()),
            Trigger::Email => emails::least_start(scan, hit.start()),
        }
    }
}

/// The automatons are built from short lists, far below the only limit building has (2³¹ states).
fn built(finder: Result<AhoCorasick, aho_corasick::BuildError>) -> AhoCorasick {
    match finder {
        Ok(finder) => finder,
        Err(error) => unreachable!("{error}"),
    }
}
