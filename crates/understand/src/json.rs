//! A reading as JSON, in the shape that `adjutant understand` prints.

use serde_json::{Value, json};

use crate::reading::{Command, DueFilter, Intent, Missing, Reading, StatusFilter, Tagging, Target, When};

/// The first command at the top level; with several, all of them under `commands`.
pub fn to_json(reading: &Reading) -> Value {
    let mut commands: Vec<Value> = reading.commands.iter().map(command).collect();
    let mut first = commands.first().cloned().unwrap_or_else(|| json!({ "intent": "unknown", "confidence": 0.0 }));
    if commands.len() > 1 {
        first["commands"] = Value::Array(std::mem::take(&mut commands));
    }
    first
}

fn command(command: &Command) -> Value {
    let question = command.missing.map(Missing::question);
    json!({
        "intent": intent(command).as_str(),
        "confidence": command.confidence,
        "extracted_params": {
            "title": command.title,
            "description": command.description,
            "due_date": due_date(command),
            "recurrence": command.recurrence,
            "priority": command.priority.map(|priority| priority.as_str()),
            "tags": if command.tagging == Tagging::Remove { &[] } else { command.tags.as_slice() },
            "remove_tags": if command.tagging == Tagging::Remove { command.tags.as_slice() } else { &[] },
            "status": command.status.map(|status| status.as_str()),
            "clear": command.clear.iter().map(|field| field.as_str()).collect::<Vec<_>>(),
            "task_ref": reference(command),
            "filter": {
                "status": command.filter.status.map(status),
                "priority": command.filter.priority.map(|priority| priority.as_str()),
                "due_date_filter": due_filter(command),
                "tags": command.filter.tags,
                "text": command.filter.text,
            },
            "repeat_interval_minutes": command.repeat_interval_minutes,
            "repeat_count": command.repeat_count,
        },
        "clarification_question": question,
    })
}

/// A command whose task nobody can guess is a question first.
fn intent(command: &Command) -> Intent {
    match command.missing {
        Some(Missing::Title | Missing::Target) if !command.filter.unsupported => Intent::ClarificationNeeded,
        _ => command.intent,
    }
}

fn due_date(command: &Command) -> Option<String> {
    match command.when.filter(|_| command.intent != Intent::ListTasks)? {
        When::Day(date) => Some(date.to_string()),
        When::Time(at) => Some(at.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
    }
}

fn reference(command: &Command) -> Option<String> {
    match command.target.as_ref()? {
        Target::All => command.filter.text.clone().or_else(|| Some("all".to_owned())),
        target => Some(words(target)),
    }
}

fn words(target: &Target) -> String {
    match target {
        Target::Named(name) => name.clone(),
        Target::Position(place) => format!("#{place}"),
        Target::Last => "last".to_owned(),
        Target::It => "it".to_owned(),
        Target::Both => "both".to_owned(),
        Target::All => "all".to_owned(),
        Target::Several(targets) => targets.iter().map(words).collect::<Vec<_>>().join(" and "),
    }
}

fn status(status: StatusFilter) -> &'static str {
    match status {
        StatusFilter::Pending => "pending",
        StatusFilter::Completed => "completed",
        StatusFilter::All => "all",
    }
}

fn due_filter(command: &Command) -> Option<String> {
    Some(match command.filter.due? {
        DueFilter::Today => "today".to_owned(),
        DueFilter::ThisWeek => "this_week".to_owned(),
        DueFilter::Overdue => "overdue".to_owned(),
        DueFilter::Day(date) => date.to_string(),
        DueFilter::Between(first, last) => DueFilter::stretch(first, last),
        // A list carries the day its filter means.
        DueFilter::Tomorrow => match command.when {
            Some(When::Day(date)) => date.to_string(),
            _ => "tomorrow".to_owned(),
        },
    })
}
