//! Corrects and completes the text of a language model at the end of a turn (TRUST-1, TRUST-2). If it claims a change
//! and nothing was changed, the reply says so. If something was changed, the reply names the values that were set.

use jiff::Timestamp;
use jiff::Zoned;
use jiff::civil::{Date, Time};
use model::conversation::ToolCall;
use model::due::DueDate;
use model::task::{Priority, Task};
use model::words::{clock_words, recurrence_words, task_sentence, time_words};
use serde::Deserialize;
use serde_json::Value;
use tools::ToolKind;

use super::TurnLoop;
use super::claims::claims_change;
use crate::wording;

/// The maximum number of tasks whose values are added.
const MAX_TASKS: usize = 5;

impl TurnLoop<'_, '_> {
    /// Adds a line to the reply of a provider model. If the model claims a change and no call changed anything, the line
    /// says that nothing was changed. Otherwise it names the values of the changed tasks that the reply does not name.
    pub(super) fn correct_claims(&mut self) {
        let text = self.filter.text().get(self.preface..).unwrap_or_default().to_owned();
        if !self.changed {
            if self.released || !claims_change(&text) {
                return;
            }
            self.add_line(&wording::claim_corrected());
            return;
        }
        let changes: Vec<StoredChange> = self.records.iter().flat_map(|record| self.stored_changes(record)).collect();
        // The last state of a task counts.
        let last = changes.iter().enumerate().filter(|(at, change)| {
            !changes[at + 1..].iter().any(|later| later.task.id == change.task.id && later.kind == change.kind)
        });
        let now = &self.request.now;
        let unnamed = last.map(|(_, change)| change).filter(|change| !change.is_named(&text, now));
        let has_several = changes.iter().any(|change| change.task.id != changes[0].task.id);
        let lines: Vec<String> =
            unnamed.filter_map(|change| change.sentence(has_several, now)).take(MAX_TASKS).collect();
        for line in lines {
            self.add_line(&line);
        }
    }

    /// Returns the changes of a successful call that set values.
    fn stored_changes(&self, record: &ToolCall) -> Vec<StoredChange> {
        let spec = self.specs.iter().find(|spec| spec.name == record.tool_name);
        let Some(kind) = spec.filter(|spec| record.error.is_none() && !spec.read_only).and_then(|spec| spec.kind)
        else {
            return Vec::new();
        };
        let result = &record.result;
        let task = |value: &Value| Task::deserialize(value).ok();
        let of = |task: Task, kind: ChangeKind| StoredChange { task, kind };
        match kind {
            ToolKind::Add | ToolKind::Update => {
                let fields = SetFields::of(&record.parameters, kind == ToolKind::Add);
                let change = task(&result["task"]).map(|task| of(task, ChangeKind::Values(fields)));
                change.into_iter().chain(next_task(result)).collect()
            }
            ToolKind::UpdateSeveral => {
                let updates = record.parameters["updates"].as_array().map(Vec::as_slice).unwrap_or_default();
                let entries = result["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
                let changes = entries.iter().zip(updates).filter_map(|(entry, update)| {
                    Some(of(task(&entry["task"])?, ChangeKind::Values(SetFields::of(update, false))))
                });
                changes.collect()
            }
            ToolKind::Complete => next_task(result).into_iter().collect(),
            ToolKind::CompleteSeveral => {
                let entries = result["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
                entries.iter().filter_map(next_task).collect()
            }
            _ => {
                // Reminders.
                let at = [&result["reminder"]["remind_at"], &result["remind_at"]].into_iter().find_map(Value::as_str);
                let at = at.and_then(|at| at.parse::<Timestamp>().ok());
                let reminded = at.and_then(|at| Some(of(task(&result["task"])?, ChangeKind::Reminder(at))));
                reminded.into_iter().collect()
            }
        }
    }
}

/// Returns the next occurrence that a completion has created.
fn next_task(result: &Value) -> Option<StoredChange> {
    let task = Task::deserialize(result.get("next_task")?).ok()?;
    Some(StoredChange { task, kind: ChangeKind::NextOccurrence })
}

/// What a call has stored.
struct StoredChange {
    task: Task,
    kind: ChangeKind,
}

#[derive(PartialEq)]
enum ChangeKind {
    /// The task has new values.
    Values(SetFields),
    /// The task is the next occurrence of a completed one.
    NextOccurrence,
    /// A reminder of the task is set for this time.
    Reminder(Timestamp),
}

/// The fields that a call has set.
#[derive(Clone, Copy, Default)]
struct SetFields {
    due: bool,
    recurrence: bool,
    priority: bool,
    tags: bool,
}

impl PartialEq for SetFields {
    /// Changes of values replace each other, whatever they set.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SetFields {
    /// Returns the fields that the arguments name. A new task may have got a due date from its recurrence.
    fn of(arguments: &Value, is_new: bool) -> Self {
        let given = |key: &str| match &arguments[key] {
            Value::String(text) => !text.trim().is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => false,
        };
        let recurrence = given("recurrence");
        Self {
            due: given("due_date") || is_new && recurrence,
            recurrence,
            priority: given("priority"),
            tags: given("tags"),
        }
    }
}

impl StoredChange {
    /// Returns whether the text names the values that were set.
    fn is_named(&self, text: &str, now: &Zoned) -> bool {
        let text = text.to_lowercase();
        match &self.kind {
            ChangeKind::Reminder(at) => {
                let local = at.to_zoned(now.time_zone().clone());
                names_day(&text, local.date(), now.date()) && names_time(&text, local.time())
            }
            ChangeKind::NextOccurrence => self.names_due(&text, now),
            ChangeKind::Values(set) => {
                let task = &self.task;
                let names_recurrence = || {
                    let words = task.recurrence.as_deref().map(recurrence_words).unwrap_or_default().to_lowercase();
                    let usual =
                        ["every", "daily", "weekly", "monthly", "yearly", "annually", "repeat", "each", "hourly"];
                    text.contains(&words) || usual.iter().any(|word| text.contains(word))
                };
                let names_priority = || match task.priority {
                    Priority::Medium => true,
                    Priority::High => ["high", "urgent", "important"].iter().any(|word| text.contains(word)),
                    Priority::Low => text.contains("low"),
                };
                (!set.due || self.names_due(&text, now))
                    && (!set.recurrence || task.recurrence.is_none() || names_recurrence())
                    && (!set.priority || names_priority())
                    && (!set.tags || task.tags.iter().all(|tag| text.contains(&tag.to_lowercase())))
            }
        }
    }

    fn names_due(&self, text: &str, now: &Zoned) -> bool {
        match &self.task.due_date {
            None => true,
            Some(DueDate::Day(day)) => names_day(text, *day, now.date()),
            Some(DueDate::Moment { at, .. }) => {
                let local = at.to_zoned(now.time_zone().clone());
                names_day(text, local.date(), now.date()) && names_time(text, local.time())
            }
        }
    }

    /// Returns the sentence that names the values, or `None` if there are none. `with_title` adds the title.
    fn sentence(&self, with_title: bool, now: &Zoned) -> Option<String> {
        let title = &self.task.title;
        match &self.kind {
            ChangeKind::Reminder(at) => {
                let local = at.to_zoned(now.time_zone().clone()).datetime();
                Some(wording::reminder_read_back(title, &time_words(local, now.date())))
            }
            ChangeKind::NextOccurrence => Some(wording::next_read_back(title, &task_sentence(&self.task, now)?)),
            ChangeKind::Values(_) => {
                let sentence = task_sentence(&self.task, now)?;
                Some(if with_title { format!("'{title}': {sentence}") } else { sentence })
            }
        }
    }
}

/// Returns whether a text in lower case names the day: by "today" or "tomorrow", by the weekday within a week, or by day
/// and month.
fn names_day(text: &str, day: Date, today: Date) -> bool {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |wanted: &str| words.contains(&wanted);
    let days = today.until(day).map(|span| span.get_days()).unwrap_or(i32::MAX);
    let relative = match days {
        -1 => has("yesterday"),
        0 => has("today") || has("tonight"),
        1 => has("tomorrow"),
        _ => false,
    };
    let format = |format: &str| day.strftime(format).to_string().to_lowercase();
    let weekday = (0..7).contains(&days) && (has(&format("%A")) || has(&format("%a")));
    let number = day.day().to_string();
    let is_number = |word: &&str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.trim_start_matches('0') == number && word.len() - digits.len() <= 2
    };
    let has_number = words.iter().any(is_number);
    let month = has(&format("%B")) || has(&format("%b"));
    relative || weekday || month && has_number || text.contains(&format("%Y-%m-%d"))
}

/// Returns whether a text in lower case names the time: "3pm", "3 pm", "3:00 pm", "15:00", "noon".
fn names_time(text: &str, time: Time) -> bool {
    let compact: String = text.chars().filter(|c| !c.is_whitespace() && *c != '.').collect();
    let format = |format: &str| time.strftime(format).to_string().to_lowercase();
    let mut forms = vec![clock_words(time), format("%-I:%M%P"), format("%I:%M%P"), format("%H:%M"), format("%-H:%M")];
    match (time.hour(), time.minute()) {
        (12, 0) => forms.push("noon".to_owned()),
        (0, 0) => forms.push("midnight".to_owned()),
        _ => {}
    }
    forms.iter().any(|form| {
        compact.match_indices(form.as_str()).any(|(at, _)| !compact[..at].ends_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn days_and_times_are_found_in_texts() {
        // TRUST-1
        let today = date(2026, 11, 17);
        for (text, day, expected) in [
            ("due tomorrow.", date(2026, 11, 18), true),
            ("due tomorrow.", date(2026, 11, 19), false),
            ("it is due friday", date(2026, 11, 20), true),
            ("it is due friday", date(2026, 11, 27), false),
            ("on november 27th", date(2026, 11, 27), true),
            ("on 27 nov", date(2026, 11, 27), true),
            ("on 2 nov", date(2026, 11, 27), false),
            ("2026-11-27", date(2026, 11, 27), true),
            ("added!", date(2026, 11, 18), false),
        ] {
            assert_eq!(names_day(text, day, today), expected, "{text}");
        }
        for (text, time, expected) in [
            ("at 3pm", Time::constant(15, 0, 0, 0), true),
            ("at 3 p.m.", Time::constant(15, 0, 0, 0), true),
            ("at 3:00 pm", Time::constant(15, 0, 0, 0), true),
            ("at 15:00", Time::constant(15, 0, 0, 0), true),
            ("at 13pm", Time::constant(15, 0, 0, 0), false),
            ("at 4pm", Time::constant(15, 0, 0, 0), false),
            ("at noon", Time::constant(12, 0, 0, 0), true),
            ("at 9:30am", Time::constant(9, 30, 0, 0), true),
        ] {
            assert_eq!(names_time(text, time), expected, "{text}");
        }
    }
}
