//! Sentences about other agents and their runs.

mod schedules;

use jiff::civil::DateTime;
use jiff::{Timestamp, Zoned};
use model::execution::ExecutionStatus;
use model::words::{join_with_and, time_words};
use serde_json::Value;

pub(crate) use schedules::*;

use super::MAX_LISTED;
use crate::report::AgentReport;

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
        return "There are no agents that you can run. An administrator adds one with 'adjutant agents add'."
            .to_owned();
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

/// The maximum number of agents and runs that one sentence names.
const MAX_NAMED: usize = 5;
/// The maximum length of an input in a sentence, in characters.
const MAX_INPUT_CHARS: usize = 120;

/// Reports that the user has no agent of this name, and names the agents that they have.
pub(crate) fn unknown_agent(name: &str, agents: &[Value]) -> String {
    let known: Vec<String> = agents.iter().take(MAX_NAMED).map(|agent| text(agent, "name").to_owned()).collect();
    let more = agents.len().saturating_sub(MAX_NAMED);
    let have = match (known.as_slice(), more) {
        ([], _) => "You have no agents.".to_owned(),
        (known, 0) => format!("You have {}.", join_with_and(known)),
        (known, more) => format!("You have {} and {more} more.", known.join(", ")),
    };
    format!("There is no agent '{name}'. {have}")
}

const WHAT_SHOULD: (&str, &str) = ("What should ", " do?");

/// Asks for the input of an agent.
pub(crate) fn what_should_agent_do(name: &str) -> String {
    format!("{}{name}{}", WHAT_SHOULD.0, WHAT_SHOULD.1)
}

/// Parses a question of [`what_should_agent_do`]. Returns the name of the agent.
pub(crate) fn read_what_should_agent_do(text: &str) -> Option<String> {
    let name = text.lines().next_back()?.strip_prefix(WHAT_SHOULD.0)?.strip_suffix(WHAT_SHOULD.1)?;
    Some(name.to_owned())
}

/// Adds that nothing starts without a server, if none runs.
pub(crate) fn with_worker_note(sentence: String, has_worker: bool) -> String {
    if has_worker {
        sentence
    } else {
        format!("{sentence} No server is running, so it waits until 'adjutant serve' runs.")
    }
}

/// Lists the runs that have not ended. `agent` is the only agent that was asked about.
pub(crate) fn active_runs(runs: &[&Value], agent: Option<&str>, now: &Zoned) -> String {
    match (runs, agent) {
        ([], Some(agent)) => format!("{agent} is not running."),
        ([], None) => "Nothing is running.".to_owned(),
        ([run], _) => format!("{}.", active_run(run, now)),
        (runs, _) => {
            let lines: Vec<_> = runs
                .iter()
                .take(MAX_LISTED)
                .enumerate()
                .map(|(n, run)| format!("{}. {}", n + 1, active_run(run, now)))
                .collect();
            format!("{} runs have not ended:\n{}", runs.len(), lines.join("\n"))
        }
    }
}

/// Returns "codex is running 'check the build' since today (Tue 24 Nov) at 4:30pm".
fn active_run(run: &Value, now: &Zoned) -> String {
    let name = text(run, "agent");
    let input = quoted_input(run);
    match (text(run, "state"), local_time(&run["start_time"], now)) {
        ("idle", _) => match run["queue_position"].as_i64() {
            Some(position) => format!("{name} has {input} in its queue at position {position}"),
            None => format!("{name} has {input} in its queue"),
        },
        (_, Some(since)) => format!("{name} is running {input} since {since}"),
        (_, None) => format!("{name} is running {input}"),
    }
}

/// Returns the input in quotes, shortened, or "without input".
fn quoted_input(run: &Value) -> String {
    match shortened(text(run, "input")) {
        input if input.is_empty() => "without input".to_owned(),
        input => format!("'{input}'"),
    }
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.char_indices().nth(MAX_INPUT_CHARS).map_or(line.clone(), |(end, _)| format!("{}…", &line[..end]))
}

/// Answers if a run has ended.
pub(crate) fn run_state(run: &Value, now: &Zoned) -> String {
    match run["status"].is_null() {
        true => format!("No, {}.", active_run(run, now)),
        false => format!("It has ended. {}", run_result(run, now)),
    }
}

/// Returns the result of a run: the output of the agent, marked as such, or the reason of the failure.
pub(crate) fn run_result(run: &Value, now: &Zoned) -> String {
    let Some(status) = run["status"].as_str().and_then(read_status) else {
        return format!("There is no result yet: {}.", active_run(run, now));
    };
    let name = text(run, "agent");
    let report = AgentReport::new(name, status, text(run, "agent_output"), run["error_message"].as_str());
    match report.text.strip_prefix(&report.title) {
        Some(output) if status == ExecutionStatus::Success && output.starts_with(':') => {
            let output = output.trim_start_matches(':').trim();
            match output.contains('\n') {
                true => format!("{name} answered to {}:\n{output}", quoted_input(run)),
                false => format!("{name} answered to {}: \"{output}\"", quoted_input(run)),
            }
        }
        _ => report.text,
    }
}

fn read_status(status: &str) -> Option<ExecutionStatus> {
    serde_json::from_value(Value::from(status)).ok()
}

/// Reports that no run was found.
pub(crate) fn no_run(agent: Option<&str>) -> String {
    match agent {
        Some(agent) => format!("I know of no run of {agent}."),
        None => "I know of no run.".to_owned(),
    }
}

pub(crate) fn run_already_ended(run: &Value) -> String {
    format!("{} is not running {} any more: the run has ended.", text(run, "agent"), quoted_input(run))
}

pub(crate) fn run_stopped(run: &Value) -> String {
    format!("Okay! {} stops working on {}.", text(run, "agent"), quoted_input(run))
}

pub(crate) fn more_runs(count: usize) -> String {
    format!("{count} more have not ended. Ask again to stop them too.")
}

/// Asks which run is meant.
pub(crate) fn which_run(runs: &[&Value]) -> String {
    let names: Vec<_> =
        runs.iter().take(MAX_NAMED).map(|run| format!("{} ({})", text(run, "agent"), quoted_input(run))).collect();
    format!("Which run: {}?", names.join(", "))
}

/// Declines to repeat a run whose input is not stored completely.
pub(crate) fn cannot_repeat() -> String {
    "I can't repeat that run, because its input is not stored completely. Please write it again.".to_owned()
}

/// Returns a timestamp in the time zone of `now`, without seconds. Returns `None` if it is missing or invalid.
fn local_minute(time: &Value, now: &Zoned) -> Option<DateTime> {
    let time = time.as_str()?.parse::<Timestamp>().ok()?.to_zoned(now.time_zone().clone()).datetime();
    Some(time.date().at(time.hour(), time.minute(), 0, 0))
}

/// Formats a timestamp in the time zone of `now`. Returns `None` if it is missing or invalid.
fn local_time(time: &Value, now: &Zoned) -> Option<String> {
    Some(time_words(local_minute(time, now)?, now.date()))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}
