//! What is said about other agents and their schedules.

use model::execution::Status;
use serde_json::Value;

use super::SHOWN;

/// `reports_back`: whether this conversation hears what came of it.
pub(crate) fn agent_started(name: &str, reports_back: bool) -> String {
    let then = if reports_back { " I'll tell you here when it's done." } else { "" };
    format!("Okay! I've set '{name}' to work.{then}")
}

/// How an agent's run ended, before what it has to say for itself.
pub(crate) fn agent_ended(name: &str, status: Status) -> String {
    match status {
        Status::Success => format!("{name} is done"),
        Status::Failure => format!("{name} has failed"),
        Status::Timeout => format!("{name} took too long and was stopped"),
        Status::Cancelled => format!("{name} was cancelled"),
    }
}

pub(crate) fn agent_said_nothing() -> &'static str {
    "It had nothing to say."
}

/// Its answer is data, or a program's complaint.
pub(crate) fn agent_said_no_words() -> &'static str {
    "What it wrote is nothing to read out; it is kept with its run."
}

pub(crate) fn left_out(characters: usize) -> String {
    format!("(That is not all: about {characters} more characters are kept with its run.)")
}

/// Whom the user can have run, and who is at work.
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
    let lines: Vec<_> = agents.iter().take(SHOWN).enumerate().map(line).collect();
    format!("You can have these agents do something:\n{}", lines.join("\n"))
}

/// `when` are the user's own words, `next` when it runs first.
pub(crate) fn scheduled(name: &str, agent: &str, when: &str, next: Option<&str>) -> String {
    let next = next.map(|next| format!(" The next run is {next}.")).unwrap_or_default();
    format!("Okay! I've scheduled '{name}' for '{agent}', {when}.{next}")
}

/// What agents are scheduled to do; `say` puts a time into words.
pub(crate) fn schedules(schedules: &[Value], say: impl Fn(&Value) -> Option<String>) -> String {
    if schedules.is_empty() {
        return "Nothing is scheduled.".to_owned();
    }
    let line = |(n, schedule): (usize, &Value)| {
        let text = |key: &str| schedule[key].as_str().unwrap_or_default();
        let state = match (text("state"), say(&schedule["next_execution"])) {
            ("paused", _) => "paused".to_owned(),
            ("executing", Some(next)) => format!("at work, next {next}"),
            ("executing", None) => "at work".to_owned(),
            (_, Some(next)) => format!("next {next}"),
            (_, None) => "no more runs".to_owned(),
        };
        format!("{}. {} ({}, {state})", n + 1, text("name"), text("agent_id"))
    };
    let lines: Vec<_> = schedules.iter().take(SHOWN).enumerate().map(line).collect();
    let more = schedules.len().saturating_sub(SHOWN);
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

pub(crate) fn which_schedule<'a>(options: impl IntoIterator<Item = &'a Value>) -> String {
    let names: Vec<_> = options.into_iter().filter_map(|schedule| schedule["name"].as_str()).collect();
    let names: Vec<_> = names.iter().take(super::OPTIONS).map(|name| format!("'{name}'")).collect();
    if names.is_empty() { "Nothing is scheduled.".to_owned() } else { format!("Which schedule: {}?", names.join(", ")) }
}

/// A schedule takes its history with it, and nothing brings it back.
pub(crate) fn cannot_remove_schedules() -> String {
    "I can pause a schedule, but not remove it. Shall I pause it? Say 'pause it'.".to_owned()
}

pub(crate) fn no_such_times() -> String {
    "I can't schedule that: such times can't be kept. Try something like 'every Friday at 5pm' or 'every 90 minutes'."
        .to_owned()
}

pub(crate) fn may_not_schedule() -> String {
    "I can't schedule agents for you: that takes an administrator. I can have it done now.".to_owned()
}

/// What the tool refused.
pub(crate) fn refused_schedule(message: &str) -> String {
    let plain = message.replace("cron_expression", "time").replace("end_at", "end").replace("agent_id", "agent");
    format!("I couldn't schedule that: {}.", plain.trim_end_matches('.'))
}
