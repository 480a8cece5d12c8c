//! Names the values that the tools have stored, if the text of a language model does not name them (TRUST-1).

use jiff::civil::{Date, Time};
use jiff::{Timestamp, Zoned};
use model::conversation::ToolCall;
use model::due::DueDate;
use model::reminder::Reminder;
use model::task::{Priority, Task};
use model::words::{recurrence_words, task_sentence, time_words};
use serde::Deserialize;
use serde_json::Value;
use tools::ToolKind;

use super::TurnLoop;
use super::named_values::{
    has_word, names_day, names_other_day, names_rule, names_time, names_title, part_about, times_in, weekdays_in,
};
use crate::wording;

/// The maximum number of changes that are named.
const MAX_LINES: usize = 5;

impl TurnLoop<'_, '_> {
    /// Returns the stored changes of all calls of the turn. The last state of a task or a reminder counts.
    pub(super) fn all_stored_changes(&self) -> Vec<StoredChange> {
        let mut changes: Vec<StoredChange> =
            self.records.iter().flat_map(|record| self.stored_changes(record)).collect();
        let mut at = 0;
        while at < changes.len() {
            let change = &changes[at];
            let is_replaced = changes[at + 1..].iter().any(|later| later.replaces(change));
            if is_replaced {
                changes.remove(at);
            } else {
                at += 1;
            }
        }
        changes
    }

    /// Returns sentences about the changes that the text does not name. A text that also names another day or time
    /// counts as not naming a date. The question before confirmed calls has named their tasks.
    pub(super) fn unnamed_changes(&self, text: &str, changes: &[StoredChange]) -> Vec<String> {
        let now = &self.request.now;
        let text = text.to_lowercase();
        let mut titles: Vec<String> = changes.iter().map(|change| change.title.to_lowercase()).collect();
        titles.sort();
        titles.dedup();
        let has_other_dates = has_other_dates(&text, &titles, changes, now);
        let has_several = titles.len() > 1;
        let values = |change: &StoredChange| (change.kind.clone(), task_sentence(&change.task, now));
        let are_equal = changes.iter().all(|change| values(change) == values(&changes[0]));
        let is_named = |change: &StoredChange| {
            let part = if has_several && !are_equal { part_about(&text, &change.title, &titles) } else { &text };
            let names_title = self.released || names_title(&text, &change.title);
            names_title && change.is_named(part, has_other_dates, now)
        };
        let unnamed = changes.iter().filter(|change| !is_named(change));
        let with_title = |change: &StoredChange| has_several || !self.released && !names_title(&text, &change.title);
        let unnamed: Vec<&StoredChange> = unnamed.collect();
        let mut lines: Vec<String> = Vec::new();
        let completed = unnamed.iter().filter(|change| change.kind == ChangeKind::Completed);
        let completed: Vec<String> = completed.map(|change| format!("'{}'", change.title)).collect();
        if completed.len() > 1 {
            lines.push(wording::done(&completed));
        }
        let others = unnamed.iter().filter(|change| completed.len() < 2 || change.kind != ChangeKind::Completed);
        for line in others.map(|change| change.sentence(with_title(change), now)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines.truncate(MAX_LINES);
        lines
    }

    /// Returns the changes of a successful call.
    fn stored_changes(&self, record: &ToolCall) -> Vec<StoredChange> {
        let spec = self.specs.iter().find(|spec| spec.name == record.tool_name);
        let Some(kind) = spec.filter(|spec| record.error.is_none() && !spec.read_only).and_then(|spec| spec.kind)
        else {
            return Vec::new();
        };
        let result = &record.result;
        let task = Task::deserialize(&result["task"]).ok();
        let of_task = |kind: ChangeKind| task.clone().map(|task| StoredChange::of(task, kind));
        match kind {
            ToolKind::Add | ToolKind::Update => {
                let fields = SetFields::of(&record.parameters, kind == ToolKind::Add);
                let reminder = reminder_time(result).and_then(|time| of_task(ChangeKind::Reminder(time)));
                of_task(ChangeKind::Values(fields))
                    .into_iter()
                    .chain(next_task(result))
                    .chain(reminder)
                    .chain(following_reminders(task.as_ref(), result))
                    .collect()
            }
            ToolKind::UpdateSeveral => {
                let updates = record.parameters["updates"].as_array().map(Vec::as_slice).unwrap_or_default();
                let entries = result["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
                let changes = entries.iter().zip(updates).filter_map(|(entry, update)| {
                    let kind = ChangeKind::Values(SetFields::of(update, false));
                    Some(StoredChange::of(Task::deserialize(&entry["task"]).ok()?, kind))
                });
                changes.collect()
            }
            ToolKind::Complete => of_task(ChangeKind::Completed).into_iter().chain(next_task(result)).collect(),
            ToolKind::CompleteSeveral => {
                let entries = result["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
                let task = |entry: &Value| Task::deserialize(&entry["task"]).or_else(|_| Task::deserialize(entry)).ok();
                let tasks = entries.iter().filter_map(task);
                let completed = tasks.map(|task| StoredChange::of(task, ChangeKind::Completed));
                completed.chain(entries.iter().filter_map(next_task)).collect()
            }
            ToolKind::Undo => {
                let change = result["undone"].as_str().unwrap_or_default();
                let tasks = result["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
                let tasks = tasks.iter().filter_map(|task| Task::deserialize(task).ok());
                tasks.map(|task| StoredChange::of(task, ChangeKind::Undone(change.to_owned()))).collect()
            }
            ToolKind::Remind | ToolKind::UpdateReminder | ToolKind::SnoozeReminder => {
                reminder_time(result).and_then(|time| of_task(ChangeKind::Reminder(time))).into_iter().collect()
            }
            ToolKind::CancelReminder => of_task(ChangeKind::ReminderCancelled).into_iter().collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the next occurrence that a completion has created.
fn next_task(result: &Value) -> Option<StoredChange> {
    let task = Task::deserialize(result.get("next_task")?).ok()?;
    Some(StoredChange::of(task, ChangeKind::NextOccurrence))
}

/// Returns the reminders that a new due date has moved or dropped.
fn following_reminders(task: Option<&Task>, result: &Value) -> Vec<StoredChange> {
    let Some(task) = task else { return Vec::new() };
    let rows = |key: &str| result[key].as_array().cloned().unwrap_or_default();
    let moved = rows("moved_reminders").into_iter().filter_map(|row| ReminderTime::of(&row));
    let moved = moved.map(ChangeKind::Reminder);
    let dropped = rows("dropped_reminders").into_iter().map(|_| ChangeKind::ReminderDropped);
    moved.chain(dropped).map(|kind| StoredChange::of(task.clone(), kind)).collect()
}

/// Returns the reminder of an answer. An external tool may only have its time.
fn reminder_time(result: &Value) -> Option<ReminderTime> {
    let at = || result["remind_at"].as_str()?.parse().ok().map(|at| ReminderTime { id: None, at, repeats: None });
    ReminderTime::of(&result["reminder"]).or_else(at)
}

/// The next time of a stored reminder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReminderTime {
    id: Option<String>,
    at: Timestamp,
    /// The repetition in words.
    repeats: Option<String>,
}

impl ReminderTime {
    fn of(reminder: &Value) -> Option<Self> {
        if let Ok(reminder) = Reminder::deserialize(reminder) {
            let interval = || wording::repeats(reminder.repeat_interval_minutes, reminder.repeat_count);
            let repeats = reminder.recurrence.as_deref().map(recurrence_words).or_else(interval);
            let at = reminder.next_at.unwrap_or(reminder.remind_at);
            return Some(Self { id: Some(reminder.id.to_string()), at, repeats });
        }
        let at = reminder["remind_at"].as_str()?.parse().ok()?;
        Some(Self { id: None, at, repeats: None })
    }
}

/// One stored change of a call.
pub(super) struct StoredChange {
    pub(super) title: String,
    task: Task,
    kind: ChangeKind,
}

#[derive(Clone, Debug, PartialEq)]
enum ChangeKind {
    /// The task has new values.
    Values(SetFields),
    Completed,
    /// The task is the next occurrence of a completed one.
    NextOccurrence,
    /// A reminder of the task is set for this time.
    Reminder(ReminderTime),
    ReminderCancelled,
    /// A reminder before the due date is gone.
    ReminderDropped,
    /// A change of this kind was undone.
    Undone(String),
}

/// The fields that a call has set or cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SetFields {
    due: bool,
    recurrence: bool,
    priority: bool,
    tags: bool,
    description: bool,
}

impl SetFields {
    /// Returns the fields that the arguments name. A new task may have got a due date from its recurrence.
    fn of(arguments: &Value, is_new: bool) -> Self {
        let given = |key: &str| match &arguments[key] {
            Value::String(text) => !is_new || !text.trim().is_empty(),
            Value::Array(list) => !is_new || !list.is_empty(),
            _ => false,
        };
        let recurrence = given("recurrence");
        Self {
            due: given("due_date") || is_new && recurrence,
            recurrence,
            priority: given("priority"),
            tags: given("tags"),
            description: given("description"),
        }
    }

    /// Returns the fields that differ from those of a task with a title only.
    fn of_task(task: &Task) -> Self {
        Self {
            due: task.due_date.is_some(),
            recurrence: task.recurrence.is_some(),
            priority: task.priority != Priority::Medium,
            tags: !task.tags.is_empty(),
            description: task.description.is_some(),
        }
    }

    fn join(self, other: Self) -> Self {
        Self {
            due: self.due || other.due,
            recurrence: self.recurrence || other.recurrence,
            priority: self.priority || other.priority,
            tags: self.tags || other.tags,
            description: self.description || other.description,
        }
    }
}

/// Returns whether the text names a day or a time that is none of the stored ones. Titles are left out.
fn has_other_dates(text: &str, titles: &[String], changes: &[StoredChange], now: &Zoned) -> bool {
    let mut text = text.to_owned();
    for title in titles.iter().filter(|title| !title.is_empty()) {
        text = text.replace(title.as_str(), " ");
    }
    let mut days: Vec<Date> = Vec::new();
    let mut times: Vec<Time> = Vec::new();
    let mut weekdays = Vec::new();
    for change in changes {
        let (day, time) = change.due(now);
        days.extend(day);
        times.extend(time);
        let rules = [change.task.recurrence.as_deref().map(recurrence_words), change.repeats()];
        for rule in rules.into_iter().flatten() {
            let rule = rule.to_lowercase();
            weekdays.extend(weekdays_in(&rule));
            times.extend(times_in(&rule));
        }
        if let ChangeKind::Reminder(reminder) = &change.kind {
            let local = reminder.at.to_zoned(now.time_zone().clone());
            days.push(local.date());
            times.push(local.time());
        }
    }
    let has_other_time = times_in(&text).iter().any(|time| !times.contains(time));
    has_other_time || names_other_day(&text, &days, &weekdays, now.date())
}

impl StoredChange {
    fn of(task: Task, kind: ChangeKind) -> Self {
        Self { title: task.title.clone(), task, kind }
    }

    /// Returns whether this later change makes the earlier one obsolete.
    fn replaces(&self, earlier: &Self) -> bool {
        let is_same = self.task.id == earlier.task.id;
        match (&self.kind, &earlier.kind) {
            (ChangeKind::Values(later), ChangeKind::Values(fields)) => is_same && later.join(*fields) == *later,
            (ChangeKind::Reminder(later), ChangeKind::Reminder(reminder)) => is_same && later.id == reminder.id,
            (later, earlier) => is_same && later == earlier,
        }
    }

    /// Returns the local day and time of the due date.
    fn due(&self, now: &Zoned) -> (Option<Date>, Option<Time>) {
        match &self.task.due_date {
            None => (None, None),
            Some(DueDate::Day(day)) => (Some(*day), None),
            Some(DueDate::Moment { at, .. }) => {
                let local = at.to_zoned(now.time_zone().clone());
                (Some(local.date()), Some(local.time()))
            }
        }
    }

    fn repeats(&self) -> Option<String> {
        match &self.kind {
            ChangeKind::Reminder(reminder) => reminder.repeats.clone(),
            _ => None,
        }
    }

    /// Returns the local times at which the change makes something ring, or `None` if nothing rings.
    pub(super) fn ring_times(&self, now: &Zoned) -> Option<Vec<Time>> {
        let (_, due) = self.due(now);
        let local = |at: Timestamp| at.to_zoned(now.time_zone().clone()).time();
        match &self.kind {
            ChangeKind::Reminder(reminder) => {
                let of_rule = reminder.repeats.as_deref().map(|repeats| times_in(&repeats.to_lowercase()));
                Some(std::iter::once(local(reminder.at)).chain(due).chain(of_rule.into_iter().flatten()).collect())
            }
            ChangeKind::Values(_) | ChangeKind::NextOccurrence => due.map(|time| {
                let rule = self.task.recurrence.as_deref().map(|rule| recurrence_words(rule).to_lowercase());
                std::iter::once(time).chain(rule.iter().flat_map(|rule| times_in(rule))).collect()
            }),
            ChangeKind::Undone(_) => due.map(|due| vec![due]),
            ChangeKind::Completed | ChangeKind::ReminderCancelled | ChangeKind::ReminderDropped => None,
        }
    }

    /// Returns whether a text in lower case names the values that were set.
    fn is_named(&self, text: &str, has_other_dates: bool, now: &Zoned) -> bool {
        match &self.kind {
            ChangeKind::Completed => true,
            ChangeKind::Undone(change) => {
                change == "created" || self.names_values(SetFields::of_task(&self.task), text, has_other_dates, now)
            }
            ChangeKind::ReminderCancelled | ChangeKind::ReminderDropped => has_word(text, &["reminder", "remind"]),
            ChangeKind::Reminder(reminder) => {
                let local = reminder.at.to_zoned(now.time_zone().clone());
                let repeats = reminder.repeats.as_deref().map(str::to_lowercase);
                !has_other_dates
                    && names_day(text, local.date(), now.date())
                    && names_time(text, local.time())
                    && repeats.is_none_or(|repeats| text.contains(&repeats))
            }
            ChangeKind::NextOccurrence => self.names_due(text, has_other_dates, now),
            ChangeKind::Values(set) => self.names_values(*set, text, has_other_dates, now),
        }
    }

    fn names_values(&self, set: SetFields, text: &str, has_other_dates: bool, now: &Zoned) -> bool {
        let task = &self.task;
        let (due, _) = self.due(now);
        let recurrence = || match &task.recurrence {
            Some(rule) => names_rule(text, rule, due),
            None => has_word(text, &["repeat", "repeats", "repetition", "recurring", "recurrence"]),
        };
        let priority = || match task.priority {
            Priority::Medium => has_word(text, &["medium", "normal"]),
            Priority::High => has_word(text, &["high", "urgent", "important", "top"]),
            Priority::Low => has_word(text, &["low"]),
        };
        let tags = || match task.tags.as_slice() {
            [] => has_word(text, &["tag", "tags", "untagged"]),
            tags => tags.iter().all(|tag| names_title(text, tag)),
        };
        let note = || match &task.description {
            Some(note) => has_word(text, &["note", "description", "details"]) || text.contains(&note.to_lowercase()),
            None => has_word(text, &["note", "notes", "description"]),
        };
        (!set.due || self.names_due(text, has_other_dates, now))
            && (!set.recurrence || recurrence())
            && (!set.priority || priority())
            && (!set.tags || tags())
            && (!set.description || note())
    }

    fn names_due(&self, text: &str, has_other_dates: bool, now: &Zoned) -> bool {
        match self.due(now) {
            (None, _) => has_word(text, &["date", "deadline", "undated"]),
            (Some(day), time) => {
                let names_time = time.is_none_or(|time| names_time(text, time));
                !has_other_dates && names_day(text, day, now.date()) && names_time
            }
        }
    }

    /// Returns the sentence that names the change and its values. `with_title` adds the title to the values.
    fn sentence(&self, with_title: bool, now: &Zoned) -> String {
        let title = &self.title;
        match &self.kind {
            ChangeKind::Completed => wording::completed(title),
            ChangeKind::Undone(change) => {
                let values = task_sentence(&self.task, now).filter(|_| change != "created");
                let undone = wording::undone(change, &[title]);
                values.map_or(undone.clone(), |values| format!("{undone} {values}"))
            }
            ChangeKind::ReminderCancelled => wording::reminder_cancelled(title),
            ChangeKind::ReminderDropped => wording::reminder_dropped(title),
            ChangeKind::Reminder(reminder) => {
                let local = reminder.at.to_zoned(now.time_zone().clone()).datetime();
                wording::reminder_read_back(title, &time_words(local, now.date()), reminder.repeats.as_deref())
            }
            ChangeKind::NextOccurrence => {
                wording::next_read_back(title, &task_sentence(&self.task, now).unwrap_or_default())
            }
            ChangeKind::Values(set) => {
                let cleared = self.cleared_fields(*set);
                let cleared = (!cleared.is_empty()).then(|| wording::cleared_fields(&cleared));
                let sentences: Vec<String> = task_sentence(&self.task, now).into_iter().chain(cleared).collect();
                match (sentences.is_empty(), with_title) {
                    (true, _) => wording::done(&[format!("'{title}'")]),
                    (false, true) => format!("'{title}': {}", sentences.join(" ")),
                    (false, false) => sentences.join(" "),
                }
            }
        }
    }

    /// Returns the fields that the call has cleared, in words.
    fn cleared_fields(&self, set: SetFields) -> Vec<&'static str> {
        let task = &self.task;
        let fields = [
            (set.due && task.due_date.is_none(), "no due date"),
            (set.recurrence && task.recurrence.is_none(), "no repetition"),
            (set.priority && task.priority == Priority::Medium, "medium priority"),
            (set.tags && task.tags.is_empty(), "no tags"),
            (set.description && task.description.is_none(), "no note"),
        ];
        fields.into_iter().filter(|(is_cleared, _)| *is_cleared).map(|(_, words)| words).collect()
    }
}
