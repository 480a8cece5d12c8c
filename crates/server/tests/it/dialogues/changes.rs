//! Compares two states of the stored data and checks the difference against an expectation.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::format::{Expectation, ExpectedTask};

/// The fields of a task that dialogues compare.
const FIELDS: [&str; 6] = ["title", "due_date", "priority", "tags", "description", "recurrence"];

/// The data of the user at one point of the dialogue, by id.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) tasks: BTreeMap<String, Value>,
    pub(super) executions: BTreeMap<String, Value>,
    pub(super) schedules: BTreeMap<String, Value>,
    /// The next ring times of each task, by task id.
    pub(super) rings: BTreeMap<String, Vec<Timestamp>>,
}

/// The difference of two states, and the part of an expectation that it does not meet.
pub(super) struct Comparison<'a> {
    zone: &'a TimeZone,
    pub(super) mistakes: Vec<String>,
    /// The number of differences between the states.
    pub(super) changes: usize,
}

impl<'a> Comparison<'a> {
    /// Compares the difference between two states with the expectation.
    pub(super) fn new(before: &State, after: &State, expected: &Expectation, zone: &'a TimeZone) -> Self {
        let mut this = Self { zone, mistakes: Vec::new(), changes: 0 };
        this.tasks(before, after, expected);
        this.executions(before, after, expected);
        this.schedules(before, after, expected);
        this
    }

    fn fail(&mut self, mistake: String) {
        self.mistakes.push(mistake);
    }

    fn tasks(&mut self, before: &State, after: &State, expected: &Expectation) {
        let mut added: Vec<&Value> =
            after.tasks.iter().filter(|(id, _)| !before.tasks.contains_key(*id)).map(|(_, task)| task).collect();
        let mut removed = Vec::new();
        let mut completed = Vec::new();
        let mut reopened = Vec::new();
        let mut changed = Vec::new();
        for (id, old) in &before.tasks {
            let Some(new) = after.tasks.get(id) else {
                removed.push(title(old));
                continue;
            };
            match (old["status"] == "completed", new["status"] == "completed") {
                (false, true) => {
                    completed.push(title(old));
                    // The next occurrence belongs to the completion.
                    if let Some(at) =
                        added.iter().position(|task| !old["recurrence"].is_null() && same_title(task, old))
                    {
                        added.remove(at);
                        self.changes += 1;
                    }
                }
                (true, false) => reopened.push(title(old)),
                _ => {}
            }
            let fields: Vec<&str> = FIELDS.into_iter().filter(|field| old[*field] != new[*field]).collect();
            if !fields.is_empty() {
                changed.push((old, new, fields));
            }
        }
        // The undo of a completion removes the next occurrence.
        for name in &reopened {
            if let Some(at) = removed.iter().position(|removed| normal(removed) == normal(name)) {
                removed.remove(at);
            }
        }
        self.changes += added.len() + removed.len() + completed.len() + reopened.len() + changed.len();
        self.names("completed", &completed, &expected.completed);
        self.names("reopened", &reopened, &expected.reopened);
        self.names("removed", &removed, &expected.removed);
        self.added(added, &expected.added);
        self.changed(changed, &expected.changed);
    }

    /// Compares two lists of titles. An expected title may be a part of the actual one.
    fn names(&mut self, what: &str, actual: &[&str], expected: &[String]) {
        let mut left: Vec<&str> = actual.to_vec();
        for name in expected {
            match left.iter().position(|title| is_part(title, name)) {
                Some(at) => drop(left.remove(at)),
                None => self.fail(format!("not {what}: {name}")),
            }
        }
        left.iter().for_each(|title| self.mistakes.push(format!("{what}: {title}")));
    }

    fn added(&mut self, mut actual: Vec<&Value>, expected: &[ExpectedTask]) {
        for task in expected {
            let titles: Vec<_> = task.title.split('|').map(normal).collect();
            let Some(at) = actual.iter().position(|actual| titles.contains(&normal(title(actual)))) else {
                self.fail(format!("not added: {}", task.title));
                continue;
            };
            let actual = actual.remove(at);
            let name = title(actual);
            let mut compare = |field: &str, is_right: bool, wanted: String| {
                if !is_right {
                    self.mistakes.push(format!("{name}: {field} is {}, not {wanted}", actual[field]));
                }
            };
            let due = self.zone;
            compare(
                "due_date",
                is_due(&actual["due_date"], task.due_date.as_deref(), due),
                format!("{:?}", task.due_date),
            );
            let priority = task.priority.as_deref().unwrap_or("medium");
            compare("priority", any(priority, |one| actual["priority"] == one), priority.to_owned());
            compare("tags", tags(&actual["tags"]) == sorted(&task.tags), format!("{:?}", task.tags));
            if let Some(rule) = &task.recurrence {
                compare("recurrence", is_rule(&actual["recurrence"], rule.as_deref()), format!("{rule:?}"));
            }
            if let Some(text) = &task.description {
                let is_right = is_text(&actual["description"], text.as_deref());
                compare("description", is_right, format!("{text:?}"));
            }
        }
        actual.iter().for_each(|task| self.mistakes.push(format!("added: {} {}", title(task), task["due_date"])));
    }

    fn changed(
        &mut self,
        mut actual: Vec<(&Value, &Value, Vec<&str>)>,
        expected: &BTreeMap<String, Map<String, Value>>,
    ) {
        for (name, fields) in expected {
            let Some(at) = actual.iter().position(|(old, ..)| is_part(title(old), name)) else {
                self.fail(format!("not changed: {name}"));
                continue;
            };
            let (_, new, changed) = actual.remove(at);
            for (field, wanted) in fields {
                if !is_value(field, &new[field.as_str()], wanted, self.zone) {
                    self.fail(format!("{name}: {field} is {}, not {wanted}", new[field.as_str()]));
                }
            }
            for field in changed.iter().filter(|field| !fields.contains_key(**field)) {
                self.fail(format!("{name}: {field} changed to {}", new[*field]));
            }
        }
        for (old, new, fields) in actual {
            let fields: Vec<_> = fields.iter().map(|field| format!("{field} to {}", new[*field])).collect();
            self.fail(format!("changed: {} {}", title(old), fields.join(", ")));
        }
    }

    fn executions(&mut self, before: &State, after: &State, expected: &Expectation) {
        let mut started: Vec<&Value> = after
            .executions
            .iter()
            .filter(|(id, _)| !before.executions.contains_key(*id))
            .map(|(_, execution)| execution)
            .collect();
        self.changes += started.len();
        for run in &expected.runs {
            let is_run = |actual: &&Value| {
                let input = actual["input"].as_str().unwrap_or_default();
                actual["agent_id"] == run.agent.as_str()
                    && run.input.as_deref().is_none_or(|wanted| any(wanted, |one| normal(input) == normal(one)))
            };
            match started.iter().position(is_run) {
                Some(at) => drop(started.remove(at)),
                None => self.fail(format!("not run: {} {:?}", run.agent, run.input)),
            }
        }
        started.iter().for_each(|run| self.mistakes.push(format!("run: {} {}", run["agent_id"], run["input"])));
        let is_active =
            |execution: &Value| matches!(execution["state"].as_str(), Some("idle" | "starting" | "running"));
        let cancelled: Vec<&str> = before
            .executions
            .iter()
            .filter(|(id, old)| {
                is_active(old) && after.executions.get(*id).is_some_and(|new| new["state"] == "cancelled")
            })
            .filter_map(|(_, old)| old["agent_id"].as_str())
            .collect();
        self.changes += cancelled.len();
        self.names("cancelled", &cancelled, &expected.cancelled_runs);
    }

    fn schedules(&mut self, before: &State, after: &State, expected: &Expectation) {
        let name = |schedule: &Value| schedule["name"].as_str().unwrap_or_default().to_owned();
        let mut added: Vec<&Value> = after
            .schedules
            .iter()
            .filter(|(id, _)| !before.schedules.contains_key(*id))
            .map(|(_, schedule)| schedule)
            .collect();
        let removed: Vec<_> = before
            .schedules
            .iter()
            .filter(|(id, _)| !after.schedules.contains_key(*id))
            .map(|(_, old)| name(old))
            .collect();
        self.changes += added.len() + removed.len();
        for wanted in &expected.schedules_added {
            let is_wanted = |actual: &&Value| {
                actual["agent_id"] == wanted.agent.as_str()
                    && wanted.next.as_deref().is_none_or(|next| self.is_next(&actual["next_execution"], next))
            };
            match added.iter().position(is_wanted) {
                Some(at) => drop(added.remove(at)),
                None => self.fail(format!("not scheduled: {} at {:?}", wanted.agent, wanted.next)),
            }
        }
        added.iter().for_each(|new| {
            self.mistakes.push(format!("scheduled: {} at {}", new["agent_id"], new["next_execution"]));
        });
        let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
        self.names("schedule removed", &removed, &expected.schedules_removed);
        for (id, old) in &before.schedules {
            let Some(new) = after.schedules.get(id) else { continue };
            let is_changed = |field: &str| old[field] != new[field];
            let has_changed = ["enabled", "cron_expression", "every", "at"].into_iter().any(is_changed);
            self.changes += usize::from(has_changed);
            let wanted = expected.schedules_changed.iter().find(|(part, _)| is_part(&name(old), part));
            match wanted {
                None if has_changed => self.fail(format!("schedule changed: {}", name(old))),
                None => {}
                Some((part, wanted)) => {
                    if let Some(paused) = wanted.paused
                        && new["enabled"] == paused
                    {
                        self.fail(format!("{part}: paused is not {paused}"));
                    }
                    if let Some(next) = &wanted.next
                        && !self.is_next(&new["next_execution"], next)
                    {
                        self.fail(format!("{part}: next is {}, not {next}", new["next_execution"]));
                    }
                }
            }
        }
    }

    fn is_next(&self, actual: &Value, wanted: &str) -> bool {
        let Some(at) = actual.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else { return false };
        let local = at.to_zoned(self.zone.clone()).datetime();
        any(wanted, |one| one.parse::<DateTime>().is_ok_and(|wanted| wanted == local))
    }
}

pub(super) fn title(task: &Value) -> &str {
    task["title"].as_str().unwrap_or_default()
}

fn same_title(a: &Value, b: &Value) -> bool {
    title(a) == title(b)
}

/// Converts to lower case and removes "to" at the start and punctuation at both ends.
pub(super) fn normal(text: &str) -> String {
    let text = text.to_lowercase().replace('’', "'");
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!' | '?' | '"' | '\'' | ','));
    text.strip_prefix("to ").unwrap_or(text).to_owned()
}

/// Returns true if one of the alternatives of `name` is a part of the title.
pub(super) fn is_part(title: &str, name: &str) -> bool {
    any(name, |one| normal(title).contains(&normal(one)))
}

/// Returns true if the condition holds for one of the alternatives, which `|` separates.
fn any(alternatives: &str, condition: impl Fn(&str) -> bool) -> bool {
    alternatives.split('|').any(|one| condition(one.trim()))
}

/// Compares a due date with one of several expected ones in local time.
fn is_due(actual: &Value, wanted: Option<&str>, zone: &TimeZone) -> bool {
    let Some(wanted) = wanted else { return actual.is_null() };
    if wanted == "*" {
        return true;
    }
    let Some(text) = actual.as_str() else { return wanted.split('|').any(|one| one == "null") };
    let local = match text.parse::<Timestamp>() {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M").to_string(),
        Err(_) => text.to_owned(),
    };
    any(wanted, |one| one == local)
}

/// Compares recurrence rules without the order of their parts.
fn is_rule(actual: &Value, wanted: Option<&str>) -> bool {
    let parts = |rule: &str| {
        let parts = rule.split(';').filter(|part| *part != "INTERVAL=1");
        let mut parts: Vec<String> = parts
            .map(|part| {
                let Some((name, values)) = part.split_once('=') else { return part.to_owned() };
                let mut values: Vec<_> = values.split(',').collect();
                values.sort_unstable();
                format!("{name}={}", values.join(","))
            })
            .collect();
        parts.sort();
        parts
    };
    match (actual.as_str(), wanted) {
        (actual, None) => actual.is_none(),
        (None, Some(_)) => false,
        (Some(actual), Some(wanted)) => any(wanted, |one| parts(one) == parts(actual)),
    }
}

fn is_text(actual: &Value, wanted: Option<&str>) -> bool {
    let actual = actual.as_str().unwrap_or_default();
    match wanted {
        None => actual.is_empty(),
        Some(wanted) => any(wanted, |one| normal(actual).contains(&normal(one))),
    }
}

fn tags(actual: &Value) -> Vec<String> {
    let all: Vec<_> =
        actual.as_array().into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
    sorted(&all)
}

fn sorted(tags: &[String]) -> Vec<String> {
    let mut tags: Vec<_> = tags.iter().map(|tag| tag.to_lowercase()).collect();
    tags.sort();
    tags
}

/// Compares the value of a changed field.
fn is_value(field: &str, actual: &Value, wanted: &Value, zone: &TimeZone) -> bool {
    match field {
        "due_date" => is_due(actual, wanted.as_str(), zone),
        "recurrence" => is_rule(actual, wanted.as_str()),
        "tags" => {
            let wanted: Vec<_> =
                wanted.as_array().into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
            tags(actual) == sorted(&wanted)
        }
        "title" => wanted.as_str().is_some_and(|wanted| {
            any(wanted, |one| actual.as_str().is_some_and(|actual| normal(actual) == normal(one)))
        }),
        "description" => is_text(actual, wanted.as_str()),
        _ => match wanted.as_str() {
            Some(wanted) => any(wanted, |one| actual == one),
            None => actual == wanted,
        },
    }
}
