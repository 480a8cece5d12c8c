//! What a tool answers: S3's flat form, with `success`, the thing itself, or `error{code,message}`.

use model::Invalid;
use serde_json::{Value, json};

use crate::Tool;

pub const VALIDATION_ERROR: &str = "VALIDATION_ERROR";
pub const NOT_FOUND: &str = "NOT_FOUND";
pub const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
pub const CONFIRMATION_REQUIRED: &str = "CONFIRMATION_REQUIRED";
pub const UNAVAILABLE: &str = "UNAVAILABLE";

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    data: Value,
    /// What another's tool said about it.
    said: Option<String>,
}

/// Why a call was not carried out.
#[derive(Clone, Debug)]
pub struct Failure {
    code: &'static str,
    message: String,
}

pub(crate) enum Error {
    Failure(Failure),
    Store(store::Error),
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Failure(Failure::new(VALIDATION_ERROR, invalid.to_string()))
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::NotFound => Self::Failure(Failure::new(NOT_FOUND, "There is no such task.")),
            other => Self::Store(other),
        }
    }
}

impl Answer {
    /// `data` is an object with `success: true`.
    pub(crate) fn done(data: Value) -> Self {
        Self { data, said: None }
    }

    pub fn failed(failure: Failure) -> Self {
        Self::done(json!({"success": false, "error": {"code": failure.code, "message": failure.message}}))
    }

    /// What another program answered, taken for what it says about itself.
    pub fn from_outside(data: Value) -> Self {
        Self::done(data)
    }

    /// With the words of the tool itself, which are what a model reads.
    pub(crate) fn in_words(self, said: String) -> Self {
        Self { said: Some(said), ..self }
    }

    pub fn data(&self) -> &Value {
        &self.data
    }

    pub fn into_data(self) -> Value {
        self.data
    }

    pub fn is_success(&self) -> bool {
        self.data["success"].as_bool().unwrap_or(true)
    }

    /// The code and the message of a failure.
    pub fn error(&self) -> Option<(&str, &str)> {
        let error = self.data.get("error")?;
        Some((error["code"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default()))
    }

    /// The answer in the words that S3 gives to a model; `tool` where it is known what it does.
    pub fn text(&self, tool: Option<Tool>) -> String {
        if let Some(said) = &self.said {
            return said.clone();
        }
        if let Some((_, message)) = self.error() {
            return format!("Error: {message}");
        }
        let Some(tool) = tool else { return self.data.to_string() };
        let named = |verb: &str| {
            let text = |key: &str| self.data[key].as_str().unwrap_or_default();
            format!("{verb} task '{}' (ID: {})", text("title"), text("task_id"))
        };
        match tool {
            Tool::Add => named("Created"),
            Tool::Complete => named("Completed") + &following(&self.data),
            Tool::Update => named("Updated") + &following(&self.data),
            Tool::Delete => named("Deleted"),
            Tool::Remind => {
                format!(
                    "{} at {}",
                    named("Scheduled a reminder for"),
                    self.data["remind_at"].as_str().unwrap_or_default()
                )
            }
            Tool::CompleteSeveral => format!("Completed {}", self.listed()),
            Tool::DeleteSeveral => format!("Deleted {}", self.listed()),
            Tool::Undo => {
                format!("Took back what was {}: {}", self.data["undone"].as_str().unwrap_or_default(), self.listed())
            }
            // What is not about tasks says it best in its own fields.
            Tool::ListAgents | Tool::RunAgent | Tool::GetExecution | Tool::CancelExecution => self.data.to_string(),
            Tool::ScheduleAgent | Tool::ListSchedules | Tool::PauseSchedule | Tool::ResumeSchedule => {
                self.data.to_string()
            }
            Tool::List if self.data["count"] == 0 => "You have no such tasks.".to_owned(),
            Tool::List => format!("You have {}", self.listed()),
        }
    }

    fn listed(&self) -> String {
        let tasks = self.data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let total = self.data["total"].as_u64().or(self.data["count"].as_u64()).unwrap_or_default();
        let mut text = format!("{total} {}:", if total == 1 { "task" } else { "tasks" });
        for (n, task) in tasks.iter().enumerate() {
            let mark = if task["status"] == "completed" { '✓' } else { ' ' };
            let title = task["title"].as_str().unwrap_or_default();
            let id = task["id"].as_str().unwrap_or_default();
            text.push_str(&format!("\n{}. [{mark}] {title} (ID: {id}){}", n + 1, details(task)));
        }
        text
    }
}

/// What else is known about a task of a list.
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
    details + &following(task)
}

/// What comes after a recurring task that was completed.
fn following(data: &Value) -> String {
    match data.get("next_task") {
        None => String::new(),
        Some(Value::Null) => "; it repeats no more".to_owned(),
        Some(next) => {
            let due = next["due_date"].as_str().unwrap_or_default();
            let id = next["id"].as_str().unwrap_or_default();
            format!("; the next one is due {due} (ID: {id})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_reads_the_words_of_the_contract() {
        // AGENT-6, TASK-1: S3
        let created = Answer::done(json!({"success": true, "task_id": "abc", "title": "Task title"}));
        assert_eq!(created.text(Some(Tool::Add)), "Created task 'Task title' (ID: abc)");
        let again = json!({"id": "def", "due_date": "2026-01-31"});
        let done = Answer::done(json!({"success": true, "task_id": "abc", "title": "Rent", "next_task": again}));
        let words = "Completed task 'Rent' (ID: abc); the next one is due 2026-01-31 (ID: def)";
        assert_eq!(done.text(Some(Tool::Complete)), words);
        let last = Answer::done(json!({"success": true, "task_id": "abc", "title": "Rent", "next_task": null}));
        assert_eq!(last.text(Some(Tool::Complete)), "Completed task 'Rent' (ID: abc); it repeats no more");
        let failed = Answer::failed(Failure::new(NOT_FOUND, "Human-readable error"));
        assert_eq!(failed.text(Some(Tool::Delete)), "Error: Human-readable error");
        let tasks = json!([
            {"id": "abc", "title": "Task One", "status": "completed"},
            {"id": "def", "title": "Task Two", "status": "pending"},
        ]);
        let list = Answer::done(json!({"success": true, "tasks": tasks, "count": 2}));
        assert_eq!(
            list.text(Some(Tool::List)),
            "You have 2 tasks:\n1. [✓] Task One (ID: abc)\n2. [ ] Task Two (ID: def)"
        );
    }
}
