//! Things of which there are several, each a `[[section]]` of its own: as the file has them, in the fields of the API.

use std::collections::BTreeMap;

use model::Invalid;
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::Mistake;
use super::layers::Origin;

/// One of them as it stands in the file.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    /// In messages: by its id or name, where it has one.
    pub(crate) title: String,
    pub(crate) fields: Map<String, Value>,
    origins: BTreeMap<String, Origin>,
}

/// Takes those of a section out of the document; `noun` is what one of them is called, and `key` what tells it from the others.
pub(crate) fn collect(
    (name, noun, key): (&str, &str, &str),
    section: &Spanned<DeString<'_>>,
    content: &Spanned<DeValue<'_>>,
    at: &dyn Fn(usize) -> Origin,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Entry> {
    let wrong = format!("every {noun} is one [[{name}]] of its own, with {key}");
    let DeValue::Array(tables) = content.get_ref() else {
        mistakes.push(Mistake { origin: at(section.span().start), message: wrong });
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (index, table) in tables.iter().enumerate() {
        let origin = at(table.span().start);
        let DeValue::Table(keys) = table.get_ref() else {
            mistakes.push(Mistake { origin, message: wrong.clone() });
            continue;
        };
        let mut entry =
            Entry { origin, title: format!("{name}[{}]", index + 1), fields: Map::new(), origins: BTreeMap::new() };
        for (field, value) in keys {
            let origin = at(field.span().start);
            let field = field.get_ref().to_string();
            match to_json(value.get_ref()) {
                Some(value) => drop(entry.fields.insert(field.clone(), value)),
                None => {
                    let message = format!("{}.{field} has a value that is none for a {noun}", entry.title);
                    mistakes.push(Mistake { origin: origin.clone(), message });
                }
            }
            entry.origins.insert(field, origin);
        }
        if let Some(id) = entry.fields.get("id").or(entry.fields.get("name")).and_then(Value::as_str) {
            entry.title = format!("{name}[{id}]");
        }
        entries.push(entry);
    }
    entries
}

impl Entry {
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
