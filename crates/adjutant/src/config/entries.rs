//! Things of which there are several, each a `[[section]]` of its own: as the file has them, in the fields of the API.

use std::collections::BTreeMap;

use model::Invalid;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::Mistake;
use super::layers::Origin;
use super::tables::{Table, tables};

/// One of them as it stands in the file.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    /// In messages: by its id or name, where it has one.
    pub(crate) title: String,
    pub(crate) fields: Map<String, Value>,
    origins: BTreeMap<String, Origin>,
}

/// What is said about those of a section.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub(crate) section: &'static str,
    /// What one of them is.
    pub(crate) one: &'static str,
    /// What is wrong where they are no list of tables.
    pub(crate) wrong: &'static str,
}

/// Takes those of a section out of the document.
pub(crate) fn collect(
    about: About,
    section: &Spanned<DeString<'_>>,
    content: &Spanned<DeValue<'_>>,
    at: &dyn Fn(usize) -> Origin,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let named = (about.section, &["id", "name"][..], about.wrong);
    for Table { origin, title, keys } in tables(named, section, content, at, mistakes) {
        let mut entry = Entry::new(origin, title);
        for (field, value, origin) in keys {
            entry.add(about.one, field, value, origin, mistakes);
        }
        entries.push(entry);
    }
    entries
}

impl Entry {
    pub(crate) fn new(origin: Origin, title: impl Into<String>) -> Self {
        Self { origin, title: title.into(), fields: Map::new(), origins: BTreeMap::new() }
    }

    /// One more field; `one` says what it is a field of.
    pub(crate) fn add(
        &mut self,
        one: &str,
        field: String,
        value: &DeValue<'_>,
        origin: Origin,
        mistakes: &mut Vec<Mistake>,
    ) {
        match to_json(value) {
            Some(value) => drop(self.fields.insert(field.clone(), value)),
            None => {
                let message = format!("{}.{field} has a value that is none for {one}", self.title);
                mistakes.push(Mistake { origin: origin.clone(), message });
            }
        }
        self.origins.insert(field, origin);
    }

    pub(crate) fn origin_of(&self, field: &str) -> Origin {
        self.origins.get(field).unwrap_or(&self.origin).clone()
    }

    /// What is wrong with it, each where it stands.
    pub(crate) fn mistakes(&self, invalid: Invalid) -> Vec<Mistake> {
        let mistakes = invalid.violations.into_iter().map(|violation| Mistake {
            origin: self.origin_of(violation.field.split(['.', '[']).next().unwrap_or_default()),
            message: format!("{}.{} {}", self.title, violation.field, violation.message),
        });
        mistakes.collect()
    }
}

fn to_json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<i64>().ok()?.into(),
        DeValue::Float(number) => number.as_str().parse::<f64>().ok()?.into(),
        DeValue::Array(items) => items.iter().map(|item| to_json(item.get_ref())).collect::<Option<Vec<_>>>()?.into(),
        DeValue::Table(fields) => {
            let fields =
                fields.iter().map(|(name, value)| Some((name.get_ref().to_string(), to_json(value.get_ref())?)));
            Value::Object(fields.collect::<Option<Map<_, _>>>()?)
        }
        // As it would stand in quotes.
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Integer(_) => return None,
    })
}
