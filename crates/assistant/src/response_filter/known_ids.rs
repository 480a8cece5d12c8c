//! The ids that are removed from a reply.

use std::collections::HashSet;

use serde_json::Value;

/// The ids of a turn: those of its tool results and of the conversation. Only these are removed from the reply. A UUID
/// that a person or a document mentions remains.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownIds {
    /// In lower case.
    ids: HashSet<String>,
    /// Texts with something that looks like a labelled id, in lower case. The label is part of such a text.
    texts: String,
}

impl KnownIds {
    /// Adds the values of all fields whose names are those of ids, at any depth.
    pub(super) fn add(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let is_id = key == "id" || key == "ids" || key.ends_with("_id") || key.ends_with("_ids");
                    match value {
                        Value::Array(list) if is_id => list.iter().for_each(|id| self.add_id(id)),
                        value if is_id => self.add_id(value),
                        Value::String(text) => self.add_text(text),
                        value => self.add(value),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.add(value)),
            Value::String(text) => self.add_text(text),
            _ => {}
        }
    }

    pub(super) fn add_id(&mut self, id: &Value) {
        match id {
            Value::String(id) if !id.is_empty() => drop(self.ids.insert(id.to_lowercase())),
            Value::Number(id) => drop(self.ids.insert(id.to_string())),
            _ => {}
        }
    }

    pub(super) fn add_text(&mut self, text: &str) {
        let lower = text.to_lowercase();
        if lower.contains("(id") {
            self.texts.push_str(&lower);
            self.texts.push('\n');
        }
    }

    /// Returns whether this UUID is an id of the turn.
    pub(super) fn has_id(&self, id: &str) -> bool {
        self.ids.contains(&id.to_lowercase())
    }

    /// Returns whether "(ID: …)" with this id is removed: the id is one of the turn, or no text of the user or of a task
    /// contains it.
    pub(super) fn removes_labelled(&self, id: &str, labelled: &str) -> bool {
        self.has_id(id) || !self.texts.contains(&labelled.to_lowercase())
    }
}
