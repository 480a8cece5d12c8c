//! Sentences about other agents and their schedules.

use model::execution::ExecutionStatus;
use serde_json::Value;

use super::MAX_LISTED;

/// Confirms the start of an agent. `reports_back` is set if its result will appear in this conversation.
pub(crate) fn agent_started(name: &str, reports_back: bool) -> String {
    let then = if reports_back { " I'll tell you here when it's done." } else { "" };
    format!("Okay! I've set '{name}' to work.{then}")
}

/// Returns the title of a report about an execution, such as "Codex is done" or "Codex has failed", without a full
/// stop.
pub(crate) fn agent_ended(name: &str, status: ExecutionStatus) -> String {
    match status {
        ExecutionStatus::Success => format!("{name} is done"),
        ExecutionStatus::Failure => format!("{name} has failed"),
        ExecutionStatus::Timeout => format!("{name} took too long and was stopped"),
        ExecutionStatus::Cancelled => format!("{name} was cancelled"),
    }
}

pub(crate) fn agent_output_empty() -> &'static str {
    "It had nothing to say."
}

/// The output is data or a stack trace.
pub(crate) fn agent_output_unreadable() -> &'static str {
    "Its output is not plain text; you can find it with the run."
}

pub(crate) fn output_truncated(characters: usize) -> String {
    format!("(That is not all: about {characters} more characters are kept with its run.)")
}

/// Lists the agents that the user can run, numbered, with their descriptions. Marks those that are running with "(at
/// work)". Leaves out agents after [`MAX_LISTED`] without a note. Returns a sentence if there are none.
pub(crate) fn agents(agents: &[Value]) -> String {
    if agents.is_empty() {
        return "There are no agents that you can run.".to_owned();
    }
    let line = |(n, agent): (usize, &Value)| {
        let name = agent["name"].as_str().unwrap_or_default();
        let about = agent["description"].as_str().filter(|about| !about.is_empty());
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        let busy = if agent["running"].as_i64() > Some(0) { " (at work)" } else { "" };
        format!("{}. {name}{busy}{about}", n + 1)
    };
    let lines: Vec<_> = agents.iter().take(MAX_LISTED).enumerate().map(line).collect();
    format!("You can have these agents do something:\n{}", lines.join("\n"))
}

/// Confirms a new schedule. `when` is the text of the user, `next` the first execution.
pub(crate) fn scheduled(name: &str, agent: &str, when: &str, next: Option<&str>) -> String {
    let next = next.map(|next| format!(" The next run is {next}.")).unwrap_or_default();
    format!("Okay! I've scheduled '{name}' for '{agent}', {when}.{next}")
}

/// Lists the schedules, numbered, with their agent and state: paused, at work, the next execution, or no more runs.
/// `format_time` formats the time of the next execution. Shows at most [`MAX_LISTED`] and the number of the rest.
/// Returns "Nothing is scheduled." if there are none.
pub(crate) fn schedules(schedules: &[Value], format_time: impl Fn(&Value) -> Option<String>) -> String {
    if schedules.is_empty() {
        return "Nothing is scheduled.".to_owned();
    }
    let line = |(n, schedule): (usize, &Value)| {
        let text = |key: &str| schedule[key].as_str().unwrap_or_default();
        let state = match (text("state"), format_time(&schedule["next_execution"])) {
            ("paused", _) => "paused".to_owned(),
            ("executing", Some(next)) => format!("at work, next {next}"),
            ("executing", None) => "at work".to_owned(),
            (_, Some(next)) => format!("next {next}"),
            (_, None) => "no more runs".to_owned(),
        };
        format!("{}. {} ({}, {state})", n + 1, text("name"), text("agent_id"))
    };
    let lines: Vec<_> = schedules.iter().take(MAX_LISTED).enumerate().map(line).collect();
    let more = schedules.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    let count = schedules.len();
    let noun = if schedules.len() == 1 { "schedule" } else { "schedules" };
    format!("You have {count} {noun}:\n{}{more}", lines.join("\n"))
}

pub(crate) fn schedule_paused(name: &str) -> String {
    format!("Okay! '{name}' is paused.")
}

pub(crate) fn schedule_resumed(name: &str, next: Option<&str>) -> String {
    match next {
        Some(next) => format!("Okay! '{name}' goes on. The next run is {next}."),
        None => format!("Okay! '{name}' goes on."),
    }
}

pub(crate) fn schedule_already(name: &str, state: &str) -> String {
    format!("'{name}' is {state} already.")
}

pub(crate) fn no_schedule(name: &str) -> String {
    format!("I couldn't find a schedule about '{name}'.")
}

/// Asks which schedule is meant, or reports that nothing is scheduled. Names at most 10 schedules.
pub(crate) fn which_schedule<'a>(options: impl IntoIterator<Item = &'a Value>) -> String {
    let names: Vec<_> = options.into_iter().filter_map(|schedule| schedule["name"].as_str()).collect();
    let names: Vec<_> = names.iter().take(super::MAX_OPTIONS).map(|name| format!("'{name}'")).collect();
    if names.is_empty() { "Nothing is scheduled.".to_owned() } else { format!("Which schedule: {}?", names.join(", ")) }
}

/// Removing a schedule also removes its history, which cannot be undone. So the assistant only pauses it.
pub(crate) fn cannot_remove_schedules() -> String {
    "I can pause a schedule, but not remove it. Shall I pause it? Say 'pause it'.".to_owned()
}

pub(crate) fn unsupported_times() -> String {
    "I can't schedule that: such times can't be kept. Try something like 'every Friday at 5pm' or 'every 90 minutes'."
        .to_owned()
}

pub(crate) fn may_not_schedule() -> String {
    "I can't schedule agents for you: that takes an administrator. I can have it done now.".to_owned()
}

/// Reports the refusal of the tool, with readable field names.
pub(crate) fn refused_schedule(message: &str) -> String {
    let plain = message.replace("cron_expression", "time").replace("end_at", "end").replace("agent_id", "agent");
    format!("I couldn't schedule that: {}.", plain.trim_end_matches('.'))
}
