//! Derives the changes that a good model makes from the expected outcome of a message.

use jiff::civil::DateTime;
use serde_json::{Map, Value, json};

use super::changes::{State, is_part, title};
use super::format::{Dialogue, Expectation, ExpectedTask};

/// One change that the model intends.
#[derive(Clone, Debug)]
pub(super) enum Intended {
    Add(ExpectedTask),
    Update(String, Map<String, Value>),
    UpdateSeveral(Vec<(String, Map<String, Value>)>),
    Complete(String),
    CompleteSeveral(Vec<String>),
    Delete(String),
    DeleteSeveral(Vec<String>),
    DeleteCompleted,
    Reopen(String),
    Undo,
    Run(String, String),
    CancelRun(String),
    Schedule(Value),
    Pause(String),
    Resume(String),
    Reschedule(String, DateTime),
    DeleteSchedule(String),
}

impl Intended {
    pub(super) fn needs_schedules(&self) -> bool {
        matches!(
            self,
            Self::Run(..) | Self::Pause(_) | Self::Resume(_) | Self::Reschedule(..) | Self::DeleteSchedule(_)
        )
    }

    pub(super) fn needs_executions(&self) -> bool {
        matches!(self, Self::CancelRun(_))
    }
}

/// Returns the first alternative.
pub(super) fn first(text: &str) -> String {
    text.split('|').next().unwrap_or_default().trim().to_owned()
}

/// Returns whether the message confirms a question with its phrase.
pub(super) fn is_phrase(say: &str) -> bool {
    say == "<phrase>" || say.to_lowercase().starts_with("yes delete")
}

/// Returns the changes that the model makes for a message of the dialogue. `state` is the state before it.
pub(super) fn intended(dialogue: &Dialogue, at: usize, state: &State) -> Vec<Intended> {
    let message = &dialogue.messages[at];
    if is_phrase(&message.say) {
        return Vec::new();
    }
    let say = message.say.to_lowercase();
    let expect = &message.expect;
    let brings_back = ["undo", "revert", "bring it back", "take that back"].iter().any(|words| say.contains(words));
    if brings_back && changes_tasks(expect) {
        return vec![Intended::Undo];
    }
    let mut intended = changes(expect, &say, false);
    if expect.asks {
        intended.extend(asked_changes(dialogue, at, state));
    }
    intended
}

fn changes_tasks(expect: &Expectation) -> bool {
    let lists = [expect.added.is_empty(), expect.changed.is_empty(), expect.completed.is_empty()];
    !(lists.into_iter().all(|is_empty| is_empty) && expect.reopened.is_empty() && expect.removed.is_empty())
}

/// Returns the changes of an expectation. `is_bulk` prefers the tools for several tasks.
fn changes(expect: &Expectation, say: &str, is_bulk: bool) -> Vec<Intended> {
    let mut all: Vec<Intended> = expect.added.iter().cloned().map(Intended::Add).collect();
    let changed: Vec<_> = expect.changed.clone().into_iter().collect();
    if is_bulk && changed.len() > 1 {
        all.push(Intended::UpdateSeveral(changed));
    } else {
        all.extend(changed.into_iter().map(|(name, fields)| Intended::Update(name, fields)));
    }
    if is_bulk && expect.completed.len() > 1 {
        all.push(Intended::CompleteSeveral(expect.completed.clone()));
    } else {
        all.extend(expect.completed.iter().cloned().map(Intended::Complete));
    }
    all.extend(expect.reopened.iter().cloned().map(Intended::Reopen));
    match expect.removed.as_slice() {
        [] => {}
        [one] => all.push(Intended::Delete(one.clone())),
        several => all.push(Intended::DeleteSeveral(several.to_vec())),
    }
    let runs = expect.runs.iter();
    all.extend(runs.map(|run| Intended::Run(run.agent.clone(), first(run.input.as_deref().unwrap_or_default()))));
    all.extend(expect.cancelled_runs.iter().cloned().map(Intended::CancelRun));
    for schedule in &expect.schedules_added {
        all.push(Intended::Schedule(schedule_arguments(&schedule.agent, schedule.next.as_deref(), say)));
    }
    for (name, change) in &expect.schedules_changed {
        all.push(match (change.paused, &change.next) {
            (Some(true), _) => Intended::Pause(name.clone()),
            (Some(false), _) => Intended::Resume(name.clone()),
            (None, Some(next)) => Intended::Reschedule(name.clone(), first(next).parse().unwrap()),
            (None, None) => continue,
        });
    }
    all.extend(expect.schedules_removed.iter().cloned().map(Intended::DeleteSchedule));
    all
}

/// Returns the changes that a message asks about: those of the confirmation that follows, else the tasks that the
/// expected question names.
fn asked_changes(dialogue: &Dialogue, at: usize, state: &State) -> Vec<Intended> {
    let expect = &dialogue.messages[at].expect;
    let say = dialogue.messages[at].say.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| say.contains(word));
    let titles: Vec<String> = state.tasks.values().map(|task| title(task).to_owned()).collect();
    let named: Vec<String> = titles
        .iter()
        .filter(|title| {
            expect.answer.iter().any(|answer| answer.split('|').any(|one| title.to_lowercase().contains(one)))
        })
        .cloned()
        .collect();
    let later = dialogue.messages[at + 1..].iter().find(|later| is_phrase(&later.say));
    let later = later.map(|later| &later.expect);
    let targets = later.map(|later| {
        let changed = later.changed.keys();
        let names = later.removed.iter().chain(&later.completed).chain(changed);
        names.filter(|name| titles.iter().any(|title| is_part(title, name))).count()
    });
    let is_meant = |later: &Expectation| {
        let names = later.removed.iter().chain(&later.completed).chain(later.changed.keys());
        let are_named = names.clone().all(|name| named.iter().any(|title| is_part(title, name)));
        are_named && (targets == Some(named.len()) && !named.is_empty() || !later.schedules_removed.is_empty())
    };
    let is_short = say.split_whitespace().count() <= 3;
    let is_agreement =
        is_short && ["yes", "yep", "ok", "sure", "go", "do", "yeah"].iter().any(|word| say.starts_with(word));
    if is_agreement {
        return Vec::new();
    }
    if let Some(later) = later.filter(|later| is_meant(later)) {
        return changes(later, &say, true);
    }
    let is_removal = has(&["delete", "remove", "get rid", "trash", "clear out", "wipe", "just bin"]);
    match named.as_slice() {
        [] if is_removal && say.contains("done") => vec![Intended::DeleteCompleted],
        [] if say.contains("schedule") && is_removal => {
            let schedules = state.schedules.values().filter_map(|schedule| schedule["name"].as_str());
            let named = schedules.filter(|name| say.contains(&name.to_lowercase()));
            named.map(|name| Intended::DeleteSchedule(name.to_owned())).collect()
        }
        // An ambiguous name needs a question, not a deletion.
        several if several.len() > 1 && say.contains("thing") => Vec::new(),
        [one] if is_removal => vec![Intended::Delete(one.clone())],
        several if is_removal && !several.is_empty() => vec![Intended::DeleteSeveral(several.to_vec())],
        several if several.len() > 1 && has(&["done everything", "mark it all"]) => {
            vec![Intended::CompleteSeveral(several.to_vec())]
        }
        _ => Vec::new(),
    }
}

/// Returns the arguments of `schedule_agent`. The expectation has only the next time, so the repetition comes from the
/// message. The input is the part of the message after "to", or before the times.
fn schedule_arguments(agent: &str, next: Option<&str>, say: &str) -> Value {
    let next: DateTime = first(next.unwrap_or_default()).parse().unwrap();
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let weekday = days.iter().position(|day| say.contains(&format!("every {day}")));
    let cron = |days: &str| json!(format!("{} {} * * {days}", next.minute(), next.hour()));
    let input = match say.rsplit_once(" to ") {
        Some((_, input)) => input.to_owned(),
        None => say.split_once(&format!("{agent} ")).map_or(say, |(_, rest)| rest).to_owned(),
    };
    let input = input.split(" every ").next().unwrap_or_default().to_owned();
    let mut arguments = json!({"agent": agent, "input": input});
    let hours = say.split_once(" every ").and_then(|(_, rest)| rest.split_once(" hours"));
    match (hours, weekday) {
        (Some((hours, _)), _) => arguments["every"] = json!(format!("{hours}h")),
        (None, Some(day)) => arguments["cron_expression"] = cron(&day.to_string()),
        (None, None) if say.contains("every weekday") => arguments["cron_expression"] = cron("1-5"),
        (None, None) if say.contains("every") || say.contains("daily") => arguments["cron_expression"] = cron("*"),
        (None, None) => arguments["at"] = json!(next.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
    }
    arguments
}
