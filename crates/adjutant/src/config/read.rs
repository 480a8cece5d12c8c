//! Turns collected values into typed ones and notes every mistake on the way.

use secrecy::SecretString;

use super::Mistake;
use super::layers::{Layers, Origin, Value};
use super::settings::{self, Kind};

pub(crate) struct Reader<'a> {
    pub(crate) layers: &'a Layers,
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
        let origin = self.layers.values.get(name).map_or(Origin::Default, |(_, origin)| origin.clone());
        self.mistakes.push(Mistake { origin, message });
    }

    /// What was given, or the default; nothing where that is empty.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = match (self.layers.values.get(name), settings::find(name).map(|setting| setting.kind)) {
            (Some((Value::Text(text), _)), _) => text,
            (_, Some(Kind::Text(default))) => default,
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

    pub(crate) fn list<T>(&mut self, name: &str, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let Some((Value::List(items), _)) = self.layers.values.get(name) else { return Vec::new() };
        let mut values = Vec::new();
        for item in items {
            match parse(item) {
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

    /// The secret that a reference points to. The value itself is refused wherever it stands.
    pub(crate) fn secret(&mut self, name: &str) -> Option<SecretString> {
        let text = self.text_of_secret(name)?;
        if !is_reference(&text) {
            let message = format!("{name} must not stand here itself: write \"env:NAME\" or \"file:PATH\"");
            self.mistake(name, message);
            return None;
        }
        self.resolve(name, &text)
    }

    /// A value that may also stand for itself.
    pub(crate) fn reference(&mut self, name: &str) -> Option<SecretString> {
        let text = self.text_of_secret(name)?;
        if is_reference(&text) { self.resolve(name, &text) } else { Some(text.into()) }
    }

    fn text_of_secret(&self, name: &str) -> Option<String> {
        match self.layers.values.get(name) {
            Some((Value::Text(text), _)) if !text.trim().is_empty() => Some(text.trim().to_owned()),
            _ => None,
        }
    }

    fn resolve(&mut self, name: &str, reference: &str) -> Option<SecretString> {
        let found = match reference.split_once(':') {
            Some(("env", variable)) => std::env::var(variable)
                .map_err(|_| format!("{name} refers to the variable {variable}, which is not set")),
            Some(("file", path)) => std::fs::read_to_string(path)
                .map_err(|error| format!("{name} refers to the file {path}, which cannot be read: {error}")),
            _ => Err(format!("{name} must be \"env:NAME\" or \"file:PATH\"")),
        };
        match found.map(|value| value.trim().to_owned()) {
            Ok(value) if !value.is_empty() => Some(value.into()),
            Ok(_) => {
                self.mistake(name, format!("{name} refers to {reference}, which is empty"));
                None
            }
            Err(message) => {
                self.mistake(name, message);
                None
            }
        }
    }
}

fn is_reference(text: &str) -> bool {
    text.starts_with("env:") || text.starts_with("file:")
}
