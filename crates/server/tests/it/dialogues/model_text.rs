//! The final texts of the scripted language model. Some are good, others name no values or claim something false.

use assistant::Prompt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use model::words::recurrence_words;
use serde_json::Value;

use super::changes::title;
use super::language_model::MessagePlan;

/// The kinds of final texts. They alternate with the messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TextStyle {
    /// Names each change with its values.
    Good,
    /// "Done." without values.
    Bare,
    /// The good text, and [`FALSE_CLAIMS`].
    FalseClaim,
    /// Names a date and a time that no task has.
    WrongDate,
}

impl TextStyle {
    pub(super) fn of(number: usize) -> Self {
        [Self::Good, Self::Bare, Self::FalseClaim, Self::WrongDate][number % 4]
    }
}

/// Claims that no call made, each with the sentence that must follow if something else was changed.
pub(super) const FALSE_CLAIMS: [(&str, &str); 2] = [
    ("I also set a reminder for 5:17pm.", "no reminder was set"),
    ("I've also added 'buy a boat'.", "buy a boat' was not"),
];
/// Follows a text about a confirmed call.
pub(super) const CONTINUED: &str = "What else can I do for you?";

/// Returns the final text of a turn: about the changes that were made, else the answer of the plan.
pub(super) fn final_text(plan: &MessagePlan, prompt: &Prompt<'_>) -> String {
    let calls = prompt.steps.iter().flat_map(|step| &step.calls);
    let mut sentences = Vec::new();
    for (call, outcome) in calls {
        let tools::ToolOutcome::Done(answer) = outcome else { continue };
        if answer.error().is_none() && !call.name.starts_with("list_") {
            sentences.extend(describe(&call.name, answer.data(), &plan.zone));
            if call.arguments.contains("\"due_date\":\"\"") {
                sentences.push("It has no due date.".to_owned());
            }
        }
    }
    let has_changes = !sentences.is_empty();
    let good = if has_changes { sentences.join(" ") } else { plan.answer.clone() };
    let text = match plan.style {
        TextStyle::Bare if has_changes => "Done.".to_owned(),
        TextStyle::WrongDate if has_changes => "Done! It is due on Sunday, 3 January at 4:44am.".to_owned(),
        TextStyle::FalseClaim => {
            let claims = FALSE_CLAIMS.map(|(claim, _)| claim);
            format!("{good} {}", claims.join(" "))
        }
        _ => good,
    };
    let text = if has_changes && plan.must_answer { format!("{text} {}", plan.answer) } else { text };
    if has_changes { format!("{text} {CONTINUED}") } else { text }
}

/// Returns sentences about the result of one call.
fn describe(tool: &str, data: &Value, zone: &TimeZone) -> Vec<String> {
    let several = data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let task = |entry: &Value| if entry["task"].is_object() { entry["task"].clone() } else { entry.clone() };
    let values = |task: &Value| values(task, zone);
    let reminder = || {
        let reminder = &data["reminder"];
        let at = reminder["next_at"].as_str().and_then(|at| at.parse::<Timestamp>().ok())?;
        let rule = reminder["recurrence"].as_str().map(|rule| format!(", {}", recurrence_words(rule)));
        Some(format!(
            "I'll remind you of '{}' on {}{}.",
            title(&data["task"]),
            time(at, zone),
            rule.unwrap_or_default()
        ))
    };
    match tool {
        "add_task" => {
            let added = format!("I've added '{}'{}.", title(&data["task"]), values(&data["task"]));
            std::iter::once(added).chain(reminder()).collect()
        }
        "update_task" => vec![format!("I've changed '{}'{}.", title(&data["task"]), values(&data["task"]))],
        "update_tasks" | "complete_tasks" | "delete_tasks" => {
            let verb = match tool {
                "update_tasks" => "changed",
                "complete_tasks" => "completed",
                _ => "deleted",
            };
            let tasks = several.iter().map(task);
            tasks.map(|task| format!("I've {verb} '{}'{}.", title(&task), values(&task))).collect()
        }
        "complete_task" => {
            let next = &data["next_task"];
            let next = next.is_object().then(|| format!("The next '{}' is{}.", title(next), values(next)));
            std::iter::once(format!("I've completed '{}'.", title(&data["task"]))).chain(next).collect()
        }
        "delete_task" => vec![format!("I've deleted '{}'.", title(data))],
        "undo_last_change" => {
            let undone = |task: Value| format!("I've undone that for '{}'{}.", title(&task), values(&task));
            several.iter().map(task).map(undone).collect()
        }
        "cancel_reminder" => vec![format!("I've cancelled the reminder of '{}'.", title(&data["task"]))],
        "schedule_reminder" | "update_reminder" | "snooze_reminder" => reminder().into_iter().collect(),
        "run_agent" | "run_schedule" => vec![format!("I've started {}.", data["agent"].as_str().unwrap_or("it"))],
        "cancel_execution" => vec![format!("I've stopped {}.", data["agent_id"].as_str().unwrap_or("it"))],
        "schedule_agent" => {
            let next = ["next_execution", "next"].into_iter().find_map(|key| data[key].as_str());
            let next = next.and_then(|at| at.parse().ok()).map(|at| time(at, zone)).unwrap_or_default();
            vec![format!("I've scheduled {}. It runs next on {next}.", data["agent_id"].as_str().unwrap_or("it"))]
        }
        _ => vec![format!("I've changed '{}'.", data["name"].as_str().unwrap_or("it"))],
    }
}

/// Returns the values of a task: " for Friday, 27 November at 3:00 pm, every week, high priority, tagged a and b".
fn values(task: &Value, zone: &TimeZone) -> String {
    let mut text = String::new();
    if let Some(due) = task["due_date"].as_str() {
        let words = match (due.parse::<Timestamp>(), due.parse::<jiff::civil::Date>()) {
            (Ok(at), _) => time(at, zone),
            (_, Ok(day)) => day.strftime("%A, %-d %B").to_string(),
            _ => String::new(),
        };
        text.push_str(&format!(" for {words}"));
    }
    if let Some(rule) = task["recurrence"].as_str() {
        text.push_str(&format!(", {}", recurrence_words(rule)));
    }
    if let Some(priority) = task["priority"].as_str().filter(|priority| *priority != "medium") {
        text.push_str(&format!(", {priority} priority"));
    }
    let tags: Vec<_> = task["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !tags.is_empty() {
        text.push_str(&format!(", tagged {}", tags.join(" and ")));
    }
    if let Some(note) = task["description"].as_str() {
        text.push_str(&format!(" (note: {note})"));
    }
    text
}

fn time(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%A, %-d %B at %-I:%M %P").to_string()
}
