//! Names what held calls do, for the question (TRUST-6): up to five titles, then a number, and the new values in words.

use std::collections::BTreeSet;

use jiff::Zoned;
use model::due::DueDate;
use model::words::{due_words, join_with_and, recurrence_words};
use serde_json::{Map, Value};

use super::{CallTarget, HeldCall, HeldCalls, HeldVerb};

/// The maximum number of titles in a question.
const MAX_TITLES: usize = 5;
/// Longer notes are shortened, in characters.
const MAX_NOTE_CHARS: usize = 80;

impl HeldCalls {
    /// Returns what the calls do, as the continuation of "It would": calls without targets first, then "delete 'a' and
    /// 'b'", "mark 'c' as complete", "move 'd' to Thu 11 Mar". Calls with the same effect are combined, and each effect
    /// names up to five titles. Dates are relative to `now`, in its time zone.
    pub fn actions(&self, now: &Zoned) -> Vec<String> {
        let mut actions: Vec<String> =
            self.calls.iter().filter(|call| call.is_opaque()).map(HeldCall::describe).collect();
        for verb in [HeldVerb::Delete, HeldVerb::Complete] {
            let calls = self.calls.iter().filter(|call| call.verb() == verb);
            let titles = titles(calls.flat_map(|call| &call.targets));
            match verb {
                _ if titles.is_empty() => {}
                HeldVerb::Complete => actions.push(format!("mark {} as complete", title_list(&titles))),
                _ => actions.push(format!("delete {}", title_list(&titles))),
            }
        }
        let changes = self.calls.iter().filter(|call| !call.is_opaque() && call.verb() == HeldVerb::Change);
        actions.extend(changes.flat_map(|call| change_words(call, now)));
        actions
    }

    /// Returns the titles of all targets, each task once: up to five, then their number.
    pub fn title_list(&self) -> String {
        title_list(&titles(self.calls.iter().flat_map(|call| &call.targets)))
    }
}

/// Returns the titles of these tasks, each task once.
fn titles<'a>(targets: impl Iterator<Item = &'a CallTarget>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    targets.filter(|target| seen.insert(target.id.to_string())).map(|target| target.title.as_str()).collect()
}

/// Returns quoted titles: "'a'", "'a' and 'b'", "'a', 'b', 'c', 'd', 'e' and 3 more".
fn title_list(titles: &[&str]) -> String {
    let mut parts: Vec<_> = titles.iter().take(MAX_TITLES).map(|title| format!("'{title}'")).collect();
    if titles.len() > MAX_TITLES {
        parts.push(format!("{} more", titles.len() - MAX_TITLES));
    }
    join_with_and(&parts)
}

/// Describes the changes of a call. Tasks with the same new values are named together. At most five tasks are named,
/// then "change 3 more".
fn change_words(call: &HeldCall, now: &Zoned) -> Vec<String> {
    let updates = call.arguments.get("updates").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut groups: Vec<(Map<String, Value>, Vec<&str>)> = Vec::new();
    for (target, update) in call.targets.iter().zip(updates) {
        let mut fields = update.as_object().cloned().unwrap_or_default();
        fields.retain(|key, _| !matches!(key.as_str(), "task_id" | "todo_id" | "id"));
        match groups.iter_mut().find(|(known, _)| *known == fields) {
            Some((_, titles)) => titles.push(&target.title),
            None => groups.push((fields, vec![&target.title])),
        }
    }
    if let [(fields, titles)] = groups.as_slice() {
        return vec![field_words(fields, titles, now)];
    }
    let mut actions = Vec::new();
    let mut named = 0;
    for (fields, titles) in &groups {
        let shown = &titles[..titles.len().min(MAX_TITLES - named)];
        if !shown.is_empty() {
            actions.push(field_words(fields, shown, now));
            named += shown.len();
        }
    }
    let more = call.targets.len() - named;
    if more > 0 {
        actions.push(format!("change {more} more"));
    }
    actions
}

/// Describes one change: "move 'a' to Thu 11 Mar and set it to high priority".
fn field_words(fields: &Map<String, Value>, titles: &[&str], now: &Zoned) -> String {
    let pronoun = if titles.len() == 1 { "it" } else { "them" };
    let words: Vec<String> = fields
        .iter()
        .enumerate()
        .map(|(at, (key, value))| {
            let tasks = if at == 0 { title_list(titles) } else { pronoun.to_owned() };
            one_field_words(key, value, &tasks, now)
        })
        .collect();
    join_with_and(&words)
}

/// Describes the new value of one field of these tasks. An empty value removes the old one.
fn one_field_words(key: &str, value: &Value, tasks: &str, now: &Zoned) -> String {
    let text = value.as_str().unwrap_or_default().trim();
    let date = || match DueDate::parse(key, text, now.time_zone()) {
        Ok(due) => due_words(&due, now),
        Err(_) => text.to_owned(),
    };
    match key {
        "status" if text == "completed" => format!("mark {tasks} as complete"),
        "status" => format!("reopen {tasks}"),
        "due_date" if text.is_empty() => format!("remove the due date of {tasks}"),
        "due_date" => format!("move {tasks} to {}", date()),
        "priority" => format!("set {tasks} to {} priority", text.to_lowercase()),
        "recurrence" if text.is_empty() => format!("stop the repetition of {tasks}"),
        "recurrence" => format!("repeat {tasks} {}", recurrence_words(text)),
        "tags" => {
            let tags: Vec<_> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            match tags.is_empty() {
                true => format!("remove the tags of {tasks}"),
                false => format!("tag {tasks} with {}", join_with_and(&tags)),
            }
        }
        "title" => format!("rename {tasks} to '{text}'"),
        "description" if text.is_empty() => format!("remove the note of {tasks}"),
        "description" => format!("set the note of {tasks} to '{}'", shorten(text)),
        other => format!("set the {other} of {tasks} to {value}"),
    }
}

fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.char_indices().nth(MAX_NOTE_CHARS).map_or(line.clone(), |(end, _)| format!("{}…", &line[..end]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolArguments;

    fn target(n: usize, title: &str) -> CallTarget {
        CallTarget { id: json!(n), title: title.to_owned() }
    }

    fn now() -> Zoned {
        "2026-03-05T10:00:00[UTC]".parse().unwrap()
    }

    fn actions(calls: Vec<HeldCall>) -> String {
        join_with_and(&HeldCalls::new(calls).unwrap().actions(&now()))
    }

    fn update(updates: Value) -> HeldCall {
        let titles = ["a", "b", "c", "d", "e", "f", "g"];
        let targets: Vec<_> = (0..updates.as_array().unwrap().len()).map(|n| target(n, titles[n])).collect();
        let arguments = ToolArguments::from_iter([("updates".to_owned(), updates)]);
        HeldCall::with_targets("update_tasks", arguments, targets, true)
    }

    #[test]
    fn five_titles_are_named_and_the_rest_is_counted() {
        // TRUST-6
        let all = |count: usize| (0..count).map(|n| target(n, &format!("t{n}"))).collect();
        assert_eq!(actions(vec![HeldCall::bulk("delete_tasks", "task_ids", all(2))]), "delete 't0' and 't1'");
        assert_eq!(
            actions(vec![HeldCall::bulk("delete_tasks", "task_ids", all(8))]),
            "delete 't0', 't1', 't2', 't3', 't4' and 3 more"
        );
        let one = HeldCall::single("delete_task", "task_id", target(1, "t1"));
        let bulk = HeldCall::bulk("complete_tasks", "task_ids", all(1));
        assert_eq!(actions(vec![bulk, one.clone(), one]), "delete 't1' and mark 't0' as complete");
    }

    #[test]
    fn changes_are_named_with_their_values() {
        // TRUST-6
        for (fields, expected) in [
            (json!({"due_date": "2026-03-11"}), "move 'a' to Wed 11 Mar"),
            (json!({"due_date": "2026-03-06T15:00:00"}), "move 'a' to tomorrow (Fri 6 Mar) at 3pm"),
            (json!({"due_date": ""}), "remove the due date of 'a'"),
            (json!({"priority": "high"}), "set 'a' to high priority"),
            (json!({"status": "completed"}), "mark 'a' as complete"),
            (json!({"recurrence": "FREQ=WEEKLY"}), "repeat 'a' every week"),
            (json!({"tags": ["x", "y"], "title": "b"}), "tag 'a' with x and y and rename it to 'b'"),
        ] {
            let mut update_fields = json!({"task_id": 0});
            update_fields.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            assert_eq!(actions(vec![update(json!([update_fields]))]), expected);
        }
        let same = |n: usize| json!({"task_id": n, "priority": "low"});
        assert_eq!(actions(vec![update(json!([same(0), same(1)]))]), "set 'a' and 'b' to low priority");
        let mixed = json!([same(0), {"task_id": 1, "due_date": "2026-03-11"}, same(2)]);
        assert_eq!(actions(vec![update(mixed)]), "set 'a' and 'c' to low priority and move 'b' to Wed 11 Mar");
        let many: Vec<_> = (0..7).map(|n| json!({"task_id": n, "title": format!("x{n}")})).collect();
        let text = actions(vec![update(json!(many))]);
        assert!(text.ends_with("rename 'e' to 'x4' and change 2 more"), "{text}");
    }
}
