//! Replaces words in the arguments of a call by exact values, before the call is held or carried out. A held call so keeps
//! its times until it is confirmed. Arguments that are no texts are left to the handler.

use model::schedule::ScheduleDraft;
use model::task::{TaskDraft, TaskPatch};
use serde_json::Value;
use understand::{FieldReader, WordFields};

use crate::{ToolArguments, ToolKind};

/// Replaces the words in the arguments of a tool.
pub(crate) fn resolve(kind: ToolKind, arguments: &mut ToolArguments, reader: &FieldReader) {
    match kind {
        ToolKind::Add => {
            let mut draft = TaskDraft {
                due_date: take(arguments, "due_date"),
                recurrence: take(arguments, "recurrence"),
                remind_at: take(arguments, "remind_at"),
                ..TaskDraft::default()
            };
            draft.resolve_words(reader);
            put(arguments, "due_date", draft.due_date);
            put(arguments, "recurrence", draft.recurrence);
            put(arguments, "remind_at", draft.remind_at);
        }
        ToolKind::Update => resolve_change(arguments, reader),
        ToolKind::UpdateSeveral => {
            let updates = arguments.get_mut("updates").and_then(Value::as_array_mut);
            for update in updates.into_iter().flatten().filter_map(Value::as_object_mut) {
                resolve_change(update, reader);
            }
        }
        ToolKind::Remind | ToolKind::UpdateReminder => {
            let mut time = take(arguments, "remind_at");
            let mut recurrence = take(arguments, "recurrence");
            // Without a time, the reminder is relative to the due date, or keeps its time of day.
            let keeps_day = kind == ToolKind::UpdateReminder || arguments.contains_key("before_minutes");
            reader.resolve_recurring(&mut time, &mut recurrence, keeps_day);
            put(arguments, "remind_at", time);
            put(arguments, "recurrence", recurrence);
        }
        ToolKind::SnoozeReminder => resolve_text(arguments, "until", |until| reader.resolve_time(until)),
        ToolKind::ExplainSchedule => resolve_text(arguments, "at", |at| reader.resolve_time(at)),
        ToolKind::List | ToolKind::CompleteSeveral | ToolKind::DeleteSeveral => {
            resolve_text(arguments, "due_date_filter", |due| reader.resolve_period(due));
        }
        ToolKind::ScheduleAgent | ToolKind::UpdateSchedule => resolve_schedule(arguments, reader),
        _ => {}
    }
}

/// Replaces the words in the new values of a task.
fn resolve_change(arguments: &mut ToolArguments, reader: &FieldReader) {
    let due_date = take(arguments, "due_date").map(Some);
    let recurrence = take(arguments, "recurrence").map(Some);
    let mut patch = TaskPatch { due_date, recurrence, ..TaskPatch::default() };
    patch.resolve_words(reader);
    put(arguments, "due_date", patch.due_date.flatten());
    put(arguments, "recurrence", patch.recurrence.flatten());
}

/// Replaces the words in the times of a schedule. The argument `when` is removed if it is readable.
fn resolve_schedule(arguments: &mut ToolArguments, reader: &FieldReader) {
    let draft = ScheduleDraft {
        when: take(arguments, "when"),
        cron_expression: take(arguments, "cron_expression"),
        every: take(arguments, "every"),
        at: take(arguments, "at"),
        start_at: take(arguments, "start_at"),
        end_at: take(arguments, "end_at"),
        time_zone: take(arguments, "time_zone"),
        ..ScheduleDraft::default()
    };
    let draft = reader.resolve(draft);
    let fields = [
        ("when", draft.when),
        ("cron_expression", draft.cron_expression),
        ("every", draft.every),
        ("at", draft.at),
        ("start_at", draft.start_at),
        ("end_at", draft.end_at),
        ("time_zone", draft.time_zone),
    ];
    for (name, value) in fields {
        put(arguments, name, value);
    }
}

fn resolve_text(arguments: &mut ToolArguments, name: &str, resolve: impl FnOnce(&mut Option<String>)) {
    let mut text = take(arguments, name);
    resolve(&mut text);
    put(arguments, name, text);
}

/// Returns a copy of the argument if it is a text that is not blank.
fn take(arguments: &ToolArguments, name: &str) -> Option<String> {
    arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

/// Sets the argument. `None` removes a text that was replaced by another argument, and keeps any other value.
fn put(arguments: &mut ToolArguments, name: &str, value: Option<String>) {
    match value {
        Some(value) => drop(arguments.insert(name.to_owned(), value.into())),
        None if take(arguments, name).is_some() => drop(arguments.shift_remove(name)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use understand::UtteranceParser;

    use super::*;

    fn resolved(kind: ToolKind, arguments: &Value) -> Value {
        let now = "2026-03-11T09:30:00Z[UTC]".parse().unwrap();
        let mut arguments = arguments.as_object().unwrap().clone();
        resolve(kind, &mut arguments, &FieldReader::new(now, UtteranceParser::default()));
        Value::Object(arguments)
    }

    #[test]
    fn words_become_exact_arguments() {
        for (kind, given, expected) in [
            (
                ToolKind::Add,
                json!({"title": "x", "due_date": "tomorrow 9am", "recurrence": "weekly"}),
                json!({"title": "x", "due_date": "2026-03-12T09:00:00+00:00", "recurrence": "FREQ=WEEKLY"}),
            ),
            (
                ToolKind::Update,
                json!({"due_date": "", "recurrence": null}),
                json!({"due_date": "", "recurrence": null}),
            ),
            (
                ToolKind::UpdateSeveral,
                json!({"updates": [{"due_date": "friday"}, 1]}),
                json!({"updates": [{"due_date": "2026-03-13"}, 1]}),
            ),
            (
                ToolKind::List,
                json!({"due_date_filter": "next week"}),
                json!({"due_date_filter": "2026-03-16..2026-03-22"}),
            ),
            (
                ToolKind::Remind,
                json!({"recurrence": "every day at 8am"}),
                json!({"remind_at": "2026-03-12T08:00:00+00:00", "recurrence": "FREQ=DAILY"}),
            ),
            (ToolKind::SnoozeReminder, json!({"until": "in 1 hour"}), json!({"until": "2026-03-11T10:30:00+00:00"})),
            (
                ToolKind::ScheduleAgent,
                json!({"when": "every friday at 5pm"}),
                json!({"cron_expression": "0 17 * * FRI"}),
            ),
            (ToolKind::ScheduleAgent, json!({"when": "soon", "every": 5}), json!({"when": "soon", "every": 5})),
        ] {
            assert_eq!(resolved(kind, &given), expected, "{given}");
        }
    }
}
