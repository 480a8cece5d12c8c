//! Turns collected values into typed ones and notes every mistake on the way.

use secrecy::SecretString;

use super::Mistake;
use super::layers::{Layers, Origin, Value};
use super::secrets::{self, Variables, is_reference};
use super::settings::{self, Kind};

pub(crate) struct Reader<'a> {
    pub(crate) layers: &'a Layers,
    pub(crate) variables: &'a Variables,
    pub(crate) mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.layers.values.contains_key(name)
    }

    /// Written out in the file, rather than referred to or given by the environment or a flag.
    pub(crate) fn is_inline_in_file(&self, name: &str) -> bool {
        match self.layers.values.get(name) {
            Some((Value::Text(text), Origin::File { .. })) => !is_reference(text),
            _ => false,
        }
    }

    pub(crate) fn mistake(&mut self, name: &str, message: String) {
        self.mistake_at(self.origin(name), message);
    }

    pub(crate) fn mistake_at(&mut self, origin: Origin, message: String) {
        self.mistakes.push(Mistake { origin, message });
    }

    pub(crate) fn origin(&self, name: &str) -> Origin {
        self.layers.values.get(name).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Set, and not to nothing.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        match self.layers.values.get(name) {
            Some((Value::Text(text), _)) => !text.trim().is_empty(),
            Some((Value::List(items), _)) => !items.is_empty(),
            Some((Value::Number(_) | Value::Flag(_), _)) => true,
            None => false,
        }
    }

    /// What was given, or the default; nothing where that is empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = match (self.layers.values.get(name), settings::find(name).map(|setting| setting.kind)) {
            (Some((Value::Text(text), _)), _) => text,
            (_, Some(Kind::Text(default) | Kind::Decimal(default))) => default,
            _ => "",
        };
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    pub(crate) fn parsed<T>(&mut self, name: &str, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let value = parse(&text);
        if value.is_none() {
            self.mistake(name, format!("{name} must be {wanted}, not '{text}'"));
        }
        value
    }

    /// The entries of a list as they are written, or those of the default.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        match (self.layers.values.get(name), settings::find(name).map(|setting| setting.kind)) {
            (Some((Value::List(items), _)), _) => items.clone(),
            (_, Some(Kind::List(default))) => default.iter().map(|item| (*item).to_owned()).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn list<T>(&mut self, name: &str, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let mut values = Vec::new();
        for item in self.texts(name) {
            match parse(&item) {
                Some(value) => values.push(value),
                None => self.mistake(name, format!("every entry of {name} must be {wanted}, not '{item}'")),
            }
        }
        values
    }

    pub(crate) fn number(&mut self, name: &str, min: u64, max: u64) -> u64 {
        let number = match (self.layers.values.get(name), settings::find(name).map(|setting| setting.kind)) {
            (Some((Value::Number(number), _)), _) => *number,
            (_, Some(Kind::Number(default))) => default,
            _ => min,
        };
        if !(min..=max).contains(&number) {
            self.mistake(name, format!("{name} must be between {min} and {max}, not {number}"));
        }
        number
    }

    pub(crate) fn size(&mut self, name: &str, min: u64, max: u64) -> usize {
        usize::try_from(self.number(name, min, max)).unwrap_or(usize::MAX)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        match (self.layers.values.get(name), settings::find(name).map(|setting| setting.kind)) {
            (Some((Value::Flag(flag), _)), _) => *flag,
            (_, Some(Kind::Flag(default))) => default,
            _ => false,
        }
    }

    /// One of the words; the first where the given one is none of them.
    pub(crate) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> T {
        let text = self.text(name).unwrap_or_default().to_lowercase();
        // Other programs say "warn".
        let text = if text == "warn" { "warning".to_owned() } else { text };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.mistake(name, format!("{name} must be one of {}, not '{text}'", known.join(", ")));
        words[0].1
    }

    /// Whether a secret is written out.
    pub(crate) fn is_inline_secret(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| !is_reference(&text))
    }

    /// The secret that a reference points to. The value itself is refused wherever it stands.
    pub(crate) fn secret(&mut self, name: &str) -> Option<SecretString> {
        let text = self.text(name)?;
        if !is_reference(&text) {
            self.mistake(name, secrets::inline(name));
            return None;
        }
        self.resolve(name, &text)
    }

    /// A value that may also stand for itself.
    pub(crate) fn reference(&mut self, name: &str) -> Option<SecretString> {
        let text = self.text(name)?;
        if is_reference(&text) { self.resolve(name, &text) } else { Some(text.into()) }
    }

    fn resolve(&mut self, name: &str, reference: &str) -> Option<SecretString> {
        match secrets::resolve(self.variables, name, reference) {
            Ok(secret) => Some(secret),
            Err(message) => {
                self.mistake(name, message);
                None
            }
        }
    }
}
