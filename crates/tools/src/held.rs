//! Acts that wait for the user's consent: bound to the tasks they were resolved to, released only by their phrase.

use std::collections::BTreeSet;

use crate::{Arguments, Spec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Everything that waits after one message of the assistant. Kept with that message, and nowhere else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// What the user must say, word for word.
    pub phrase: String,
    pub acts: Vec<Act>,
}

/// One call that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    pub tool: String,
    /// With the ids it was resolved to, whatever they were called.
    pub arguments: Arguments,
    pub targets: Vec<Target>,
    /// Whether one command touches several tasks.
    pub bulk: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// As whoever keeps the task gives it: a UUID where it is ours.
    pub id: Value,
    pub title: String,
}

/// What releases the deletion of one task (S1).
pub const YES_DELETE: &str = "yes delete";

impl Held {
    /// Nothing where nothing waits. Several single deletions go by one phrase; a bulk act names its own, with how many; so
    /// does whatever is no deletion.
    pub fn of(acts: Vec<Act>) -> Option<Self> {
        if acts.iter().any(Act::is_other) {
            let phrase = match acts.as_slice() {
                [only] => format!("yes run {}", only.tool.to_lowercase()),
                several => format!("yes run {} actions", several.len()),
            };
            return Some(Self { phrase, acts });
        }
        let bulk: Vec<&Act> = acts.iter().filter(|act| act.bulk).collect();
        let phrase = match bulk.as_slice() {
            [] if acts.is_empty() => return None,
            [] => YES_DELETE.to_owned(),
            _ => {
                let targets = acts.iter().flat_map(|act| &act.targets);
                let ids: BTreeSet<String> = targets.map(|target| target.id.to_string()).collect();
                let count = ids.len();
                let verb = if bulk.iter().all(|act| act.tool.starts_with("complete")) { "complete" } else { "delete" };
                format!("yes {verb} {count} {}", if count == 1 { "task" } else { "tasks" })
            }
        };
        Some(Self { phrase, acts })
    }

    /// What was kept outside of this program may have been changed there: the phrase is not taken from it, and an act must
    /// be about exactly the tasks that it names.
    pub fn from_outside(value: Value) -> Option<Self> {
        let held: Self = serde_json::from_value(value).ok()?;
        if held.acts.iter().all(Act::is_consistent) { Self::of(held.acts) } else { None }
    }

    pub fn is_released_by(&self, message: &str) -> bool {
        normal(message) == self.phrase
    }
}

impl Act {
    /// Whether it is a call of somebody else's tool, of which only the call itself is known.
    pub fn is_other(&self) -> bool {
        self.targets.is_empty()
    }

    /// Whether it can be what was asked about with this tool.
    pub fn fits(&self, spec: &Spec) -> bool {
        spec.name == self.tool && spec.destructive && !(spec.is_ours() && self.is_other())
    }

    /// Whether the targets are those of the arguments.
    fn is_consistent(&self) -> bool {
        if self.is_other() {
            return !self.bulk;
        }
        let ids: Vec<&Value> = self.targets.iter().map(|target| &target.id).collect();
        let [(key, value)] = self.arguments.iter().collect::<Vec<_>>()[..] else { return false };
        match (key.as_str(), ids.as_slice()) {
            ("task_id" | "todo_id" | "id", [one]) => !self.bulk && value == *one,
            ("task_ids" | "todo_ids", several) => {
                self.bulk && value.as_array().is_some_and(|list| list.iter().eq(several.iter().copied()))
            }
            _ => false,
        }
    }

    pub(crate) fn one(tool: &str, key: &str, target: Target) -> Self {
        let arguments = Arguments::from_iter([(key.to_owned(), json!(target.id))]);
        Self { tool: tool.to_owned(), arguments, targets: vec![target], bulk: false }
    }

    pub(crate) fn other(tool: &str, arguments: Arguments) -> Self {
        Self { tool: tool.to_owned(), arguments, targets: Vec::new(), bulk: false }
    }

    pub(crate) fn several(tool: &str, key: &str, targets: Vec<Target>) -> Self {
        let ids: Vec<_> = targets.iter().map(|target| target.id.clone()).collect();
        let arguments = Arguments::from_iter([(key.to_owned(), json!(ids))]);
        Self { tool: tool.to_owned(), arguments, targets, bulk: true }
    }
}

/// Lower case, without quotes, commas and punctuation at the end (AGENT-7); white space counts once.
fn normal(message: &str) -> String {
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '»' | ',');
    let plain: String = message.chars().filter(|c| !is_quote(*c)).collect::<String>().to_lowercase();
    // A question mark stays: a question is not consent.
    let words = plain.trim().trim_end_matches(['.', '!', '…']).split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn held(count: u128, bulk: bool) -> Held {
        let target = |n| Target { id: json!(Uuid::from_u128(n)), title: "milk".into() };
        let act = match bulk {
            true => Act::several("delete_tasks", "task_ids", (1..=count).map(target).collect()),
            false => Act::one("delete_task", "task_id", target(1)),
        };
        Held::of(vec![act]).unwrap()
    }

    #[test]
    fn only_the_phrase_releases() {
        // AGENT-7
        for yes in ["yes delete", "Yes, delete!", "'YES DELETE'", "“yes delete”.", "  yes   delete "] {
            assert!(held(1, false).is_released_by(yes), "{yes}");
        }
        for no in [
            "yes",
            "delete",
            "yes delete it",
            "should I say yes delete",
            "yes, delete the milk",
            "yes delete 1 task",
            "yes delete?",
        ] {
            assert!(!held(1, false).is_released_by(no), "{no}");
        }
        assert!(held(3, true).is_released_by("Yes delete 3 tasks."));
        assert!(!held(3, true).is_released_by("yes delete"));
        assert!(!held(3, true).is_released_by("yes delete 4 tasks"));
    }

    #[test]
    fn a_phrase_from_outside_is_not_believed() {
        // AGENT-7
        let mut value = serde_json::to_value(held(1, false)).unwrap();
        value["phrase"] = "ok".into();
        assert_eq!(Held::from_outside(value).unwrap().phrase, YES_DELETE);
        let mut other = serde_json::to_value(held(2, true)).unwrap();
        other["acts"][0]["targets"].as_array_mut().unwrap().pop();
        assert_eq!(Held::from_outside(other), None, "one was asked about, two would go");
        let mut other = serde_json::to_value(held(1, false)).unwrap();
        other["acts"][0]["arguments"]["title"] = "x".into();
        assert_eq!(Held::from_outside(other), None, "no arguments that nobody was asked about");
        assert_eq!(Held::from_outside(json!({"phrase": "ok", "acts": []})), None);
        assert_eq!(Held::from_outside(json!("nonsense")), None);
    }

    #[test]
    fn a_task_counts_once() {
        let target = |n| Target { id: json!(Uuid::from_u128(n)), title: "milk".into() };
        let one = Act::one("delete_task", "task_id", target(1));
        let all = Act::several("delete_tasks", "task_ids", vec![target(1), target(2)]);
        assert_eq!(Held::of(vec![one, all]).unwrap().phrase, "yes delete 2 tasks");
    }
}
