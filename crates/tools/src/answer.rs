//! The answers of tools in the flat form of S3: `success` with the object, or `error{code,message}`.

use model::Invalid;
use serde_json::{Value, json};

use crate::ToolKind;

/// The arguments are invalid.
pub const VALIDATION_ERROR: &str = "VALIDATION_ERROR";
/// The object does not exist.
pub const NOT_FOUND: &str = "NOT_FOUND";
/// The tool does not exist.
pub const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
/// The user has not confirmed the call.
pub const CONFIRMATION_REQUIRED: &str = "CONFIRMATION_REQUIRED";
/// A quota of the user is reached.
pub const LIMIT_REACHED: &str = "LIMIT_REACHED";
/// A service that the tool needs is not available.
pub const UNAVAILABLE: &str = "UNAVAILABLE";

/// The answer to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    data: Value,
    /// The text of an external tool. A model reads it instead of a text made from the data.
    external_text: Option<String>,
}

/// The reason why a call failed: a code and a message for the model.
#[derive(Clone, Debug)]
pub struct ToolFailure {
    code: &'static str,
    message: String,
}

/// The error of a handler.
pub(crate) enum Error {
    /// A failure that the caller gets as an answer.
    Failure(ToolFailure),
    Store(store::Error),
}

impl ToolFailure {
    /// Creates a failure from a code of this module and a message.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the message for the model.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Failure(ToolFailure::new(VALIDATION_ERROR, invalid.to_string()))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NotFound => Self::Failure(ToolFailure::new(NOT_FOUND, "There is no such task.")),
            store::Error::Invalid(invalid) => invalid.into(),
            store::Error::QuotaReached(reached) => Self::Failure(ToolFailure::new(LIMIT_REACHED, reached.sentence())),
            other => Self::Store(other),
        }
    }
}

impl ToolAnswer {
    /// Creates the answer of a successful call. `data` is an object with `success: true`.
    pub(crate) fn success(data: Value) -> Self {
        Self { data, external_text: None }
    }

    /// Creates the answer of a failed call.
    pub fn failed(failure: ToolFailure) -> Self {
        Self::success(json!({"success": false, "error": {"code": failure.code, "message": failure.message}}))
    }

    /// Creates an answer from the data of an external tool. The data may contain an `error`.
    pub fn from_external(data: Value) -> Self {
        Self::success(data)
    }

    /// Sets the text of the external tool, which a model reads.
    pub(crate) fn with_text(self, text: String) -> Self {
        Self { external_text: Some(text), ..self }
    }

    /// Returns the data of the answer.
    pub fn data(&self) -> &Value {
        &self.data
    }

    /// Returns the data of the answer.
    pub fn into_data(self) -> Value {
        self.data
    }

    /// Returns true if the call succeeded. Data without a `success` flag counts as a success.
    pub fn is_success(&self) -> bool {
        self.data["success"].as_bool().unwrap_or(true)
    }

    /// Returns the code and the message of a failure, or `None` if the data has no `error`. A missing code or message
    /// is empty.
    pub fn error(&self) -> Option<(&str, &str)> {
        let error = self.data.get("error")?;
        Some((error["code"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default()))
    }

    /// Returns the text for a model, in the form of S3. The text of an external tool has priority, then "Error: " and
    /// the message of an error. `kind` is `None` for an external tool with an unknown purpose. Its data is returned as
    /// JSON, and so is that of tools for agents and schedules. Tools for tasks return a sentence or a list with ids.
    /// Missing fields are empty in it. An empty list is "No tasks match."
    pub fn text(&self, kind: Option<ToolKind>) -> String {
        if let Some(text) = &self.external_text {
            return text.clone();
        }
        if let Some((_, message)) = self.error() {
            return format!("Error: {message}");
        }
        let Some(kind) = kind else { return self.data.to_string() };
        let sentence = |verb: &str| {
            let text = |key: &str| self.data[key].as_str().unwrap_or_default();
            format!("{verb} task '{}' (ID: {})", text("title"), text("task_id"))
        };
        match kind {
            ToolKind::Add => match self.data["reminder"]["next_at"].as_str() {
                Some(at) => format!("{}; reminder at {at}", sentence("Created")),
                None => sentence("Created"),
            },
            ToolKind::Complete => sentence("Completed") + &next_occurrence(&self.data),
            ToolKind::Update => sentence("Updated") + &next_occurrence(&self.data),
            ToolKind::Delete => sentence("Deleted"),
            ToolKind::Remind => self.reminder_sentence(&sentence("Scheduled a reminder for"), "at"),
            ToolKind::UpdateReminder => self.reminder_sentence(&sentence("Changed the reminder for"), "to"),
            ToolKind::SnoozeReminder => self.reminder_sentence(&sentence("Snoozed the reminder for"), "until"),
            ToolKind::CancelReminder => sentence("Cancelled the reminder for"),
            ToolKind::ListReminders => self.reminder_list(),
            ToolKind::CompleteSeveral => format!("Completed {}", self.task_list()),
            ToolKind::DeleteSeveral => format!("Deleted {}", self.task_list()),
            ToolKind::UpdateSeveral => format!("Updated {}", self.task_list()),
            ToolKind::Undo => {
                format!(
                    "Undid the last change ({}): {}",
                    self.data["undone"].as_str().unwrap_or_default(),
                    self.task_list()
                )
            }
            // S3 has no form for agents and schedules. The model gets the data as JSON.
            ToolKind::ListAgents | ToolKind::RunAgent | ToolKind::GetExecution | ToolKind::CancelExecution => {
                self.data.to_string()
            }
            ToolKind::ScheduleAgent | ToolKind::ListSchedules | ToolKind::PauseSchedule | ToolKind::ResumeSchedule => {
                self.data.to_string()
            }
            ToolKind::ListExecutions | ToolKind::UpdateSchedule | ToolKind::DeleteSchedule => self.data.to_string(),
            ToolKind::RunSchedule | ToolKind::ExplainSchedule => self.data.to_string(),
            ToolKind::List if self.data["count"] == 0 => "No tasks match.".to_owned(),
            ToolKind::List => format!("You have {}", self.task_list()),
        }
    }

    /// Formats a sentence about a reminder: its next time and its id.
    fn reminder_sentence(&self, sentence: &str, preposition: &str) -> String {
        let text = |key: &str| self.data[key].as_str().unwrap_or_default();
        format!("{sentence} {preposition} {} (reminder ID: {})", text("next_at"), text("reminder_id"))
    }

    /// Formats the number of reminders and one numbered line for each, with its id and details.
    fn reminder_list(&self) -> String {
        let reminders = self.data["reminders"].as_array().map(Vec::as_slice).unwrap_or_default();
        if reminders.is_empty() {
            return "No reminders match.".to_owned();
        }
        let mut text = format!("{} {}:", reminders.len(), if reminders.len() == 1 { "reminder" } else { "reminders" });
        for (n, reminder) in reminders.iter().enumerate() {
            let field = |key: &str| reminder[key].as_str().unwrap_or_default();
            let when = if reminder["next_at"].is_null() { field("status") } else { field("next_at") };
            text.push_str(&format!("\n{}. {} at {when} (ID: {})", n + 1, field("title"), field("id")));
            for (name, key) in [("repeats", "recurrence"), ("snoozed until", "snoozed_until")] {
                if let Some(value) = reminder[key].as_str() {
                    text.push_str(&format!("; {name}: {value}"));
                }
            }
            for (name, key) in [
                ("minutes before the due date", "before_minutes"),
                ("repeats after minutes", "repeat_interval_minutes"),
                ("times", "repeat_count"),
            ] {
                if let Some(value) = reminder[key].as_i64() {
                    text.push_str(&format!("; {name}: {value}"));
                }
            }
        }
        text
    }

    /// Formats the number of tasks and one numbered line for each task of the answer, with its id and details. The
    /// number is `total`, which includes other pages, else `count`, else 0.
    fn task_list(&self) -> String {
        let tasks = self.data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let total = self.data["total"].as_u64().or(self.data["count"].as_u64()).unwrap_or_default();
        let mut text = format!("{total} {}:", if total == 1 { "task" } else { "tasks" });
        for (n, task) in tasks.iter().enumerate() {
            // A change of several tasks has each task next to what happened to it.
            let task = task.get("task").unwrap_or(task);
            let mark = if task["status"] == "completed" { '✓' } else { ' ' };
            let title = task["title"].as_str().unwrap_or_default();
            let id = task["id"].as_str().unwrap_or_default();
            text.push_str(&format!("\n{}. [{mark}] {title} (ID: {id}){}", n + 1, details(task)));
        }
        text
    }
}

/// Formats the optional fields of a task in a list, each after "; ": due date, priority, tags, recurrence, description
/// and the next occurrence. Leaves out empty fields and medium priority.
fn details(task: &Value) -> String {
    let mut details = String::new();
    let mut add = |name: &str, text: Option<&str>| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            details.push_str(&format!("; {name}: {text}"));
        }
    };
    add("due", task["due_date"].as_str());
    add("priority", task["priority"].as_str().filter(|priority| *priority != "medium"));
    let tags: Vec<_> = task["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    add("tags", Some(&tags.join(", ")));
    add("repeats", task["recurrence"].as_str());
    add("description", task["description"].as_str());
    details + &next_occurrence(task)
}

/// Formats the next occurrence of a completed recurring task, after "; ". A `next_task` that is null means that there
/// are no further occurrences. Returns an empty text if `data` has no `next_task`.
fn next_occurrence(data: &Value) -> String {
    match data.get("next_task") {
        None => String::new(),
        Some(Value::Null) => "; it has no further occurrences".to_owned(),
        Some(next) => {
            let due = next["due_date"].as_str().unwrap_or_default();
            let id = next["id"].as_str().unwrap_or_default();
            format!("; the next occurrence is due {due} (ID: {id})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_models_have_the_form_of_s3() {
        // AGENT-6, TASK-1: S3
        let created = ToolAnswer::success(json!({"success": true, "task_id": "abc", "title": "Task title"}));
        assert_eq!(created.text(Some(ToolKind::Add)), "Created task 'Task title' (ID: abc)");
        let again = json!({"id": "def", "due_date": "2026-01-31"});
        let done = ToolAnswer::success(json!({"success": true, "task_id": "abc", "title": "Rent", "next_task": again}));
        let expected = "Completed task 'Rent' (ID: abc); the next occurrence is due 2026-01-31 (ID: def)";
        assert_eq!(done.text(Some(ToolKind::Complete)), expected);
        let last = ToolAnswer::success(json!({"success": true, "task_id": "abc", "title": "Rent", "next_task": null}));
        assert_eq!(
            last.text(Some(ToolKind::Complete)),
            "Completed task 'Rent' (ID: abc); it has no further occurrences"
        );
        let failed = ToolAnswer::failed(ToolFailure::new(NOT_FOUND, "Human-readable error"));
        assert_eq!(failed.text(Some(ToolKind::Delete)), "Error: Human-readable error");
        let tasks = json!([
            {"id": "abc", "title": "Task One", "status": "completed"},
            {"id": "def", "title": "Task Two", "status": "pending"},
        ]);
        let list = ToolAnswer::success(json!({"success": true, "tasks": tasks, "count": 2}));
        assert_eq!(
            list.text(Some(ToolKind::List)),
            "You have 2 tasks:\n1. [✓] Task One (ID: abc)\n2. [ ] Task Two (ID: def)"
        );
    }
}
