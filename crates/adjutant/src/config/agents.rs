//! `[[agents]]`: agents as the file has them, in the fields of the API. Only the file: a variable cannot name one of several.

use std::collections::BTreeMap;

use model::agent::{Agent, Draft};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::layers::Origin;
use super::read::Reader;
use super::tables::{Table, tables};
use super::{Mistake, Variables};

pub(crate) const SECTION: &str = "agents";

/// An agent as it stands in the file.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) origin: Origin,
    /// In messages: by its id, where it has one.
    title: String,
    fields: Map<String, Value>,
    origins: BTreeMap<String, Origin>,
}

/// Takes the agents out of the document.
pub(crate) fn collect(
    section: &Spanned<DeString<'_>>,
    content: &Spanned<DeValue<'_>>,
    at: &dyn Fn(usize) -> Origin,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Entry> {
    let about = (SECTION, &["id", "name"][..], "every agent is an [[agents]] of its own, with an id");
    let mut entries = Vec::new();
    for Table { origin, title, keys } in tables(about, section, content, at, mistakes) {
        let mut entry = Entry { origin, title, fields: Map::new(), origins: BTreeMap::new() };
        for (name, value, origin) in keys {
            match to_json(value) {
                Some(value) => drop(entry.fields.insert(name.clone(), value)),
                None => {
                    let message = format!("{}.{name} has a value that is none for an agent", entry.title);
                    mistakes.push(Mistake { origin: origin.clone(), message });
                }
            }
            entry.origins.insert(name, origin);
        }
        entries.push(entry);
    }
    entries
}

/// The agents, each well written; whether their programs are there is another question.
pub(crate) fn read(reader: &mut Reader<'_>) -> Vec<Agent> {
    let layers = reader.layers;
    let mut agents: Vec<Agent> = Vec::new();
    for entry in &layers.agents {
        let agent = match one(entry, reader.variables) {
            Ok(agent) => agent,
            Err(mistakes) => {
                reader.mistakes.extend(mistakes);
                continue;
            }
        };
        for (field, taken) in [
            ("id", agents.iter().any(|other| other.id == agent.id)),
            ("name", agents.iter().any(|other| other.name.eq_ignore_ascii_case(&agent.name))),
        ] {
            if taken {
                reader.mistake_at(entry.origin_of(field), format!("{}.{field} is taken by another agent", entry.title));
                break;
            }
        }
        agents.push(agent);
    }
    agents
}

fn one(entry: &Entry, variables: &Variables) -> Result<Agent, Vec<Mistake>> {
    let draft = model::json::from_value::<Draft>(Value::Object(entry.fields.clone()));
    let agent =
        draft.and_then(|draft| supervisor::check::written(draft, &|name| variables.get(name).map(str::to_owned)));
    agent.map_err(|invalid| {
        let mistakes = invalid.violations.into_iter().map(|violation| Mistake {
            origin: entry.origin_of(violation.field.split(['.', '[']).next().unwrap_or_default()),
            message: format!("{}.{} {}", entry.title, violation.field, violation.message),
        });
        mistakes.collect()
    })
}

impl Entry {
    fn origin_of(&self, field: &str) -> Origin {
        self.origins.get(field).unwrap_or(&self.origin).clone()
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
        DeValue::Integer(_) | DeValue::Datetime(_) => return None,
    })
}
