//! "What is scheduled?", "pause it", "resume the tidy schedule"; and the planning of what "have codex … every Friday" asks
//! for.

use jiff::Timestamp;
use model::conversation::Role;
use serde_json::{Value, json};
use tools::{Arguments, Tool};

use super::timing::{self, Plan, Timing};
use super::{Ask, Policy, Reply};
use crate::wording;

const PAUSE: [&str; 3] = ["pause", "suspend", "stop"];
const RESUME: [&str; 4] = ["resume", "unpause", "continue", "restart"];
const REMOVE: [&str; 3] = ["delete", "remove", "cancel"];
/// What may be said of anything: it takes the word "schedule" to mean one.
const VAGUE: [&str; 3] = ["stop", "continue", "restart"];
const PRONOUNS: [&str; 4] = ["it", "that", "this", "them"];
const FILLERS: [&str; 9] = ["the", "my", "our", "schedule", "schedules", "scheduled", "agent", "run", "please"];

/// What is said about schedules there are, if anything is: nothing where none is meant.
pub(super) fn answer(policy: &mut Policy<'_>, words: &[&str]) -> Result<Option<String>, Ask> {
    let Some(list) = policy.spec(Tool::ListSchedules) else { return Ok(None) };
    let words: Vec<String> =
        words.iter().map(|word| super::agents::plain(word)).filter(|word| !word.is_empty()).collect();
    let verb = words.first().map(String::as_str).unwrap_or_default();
    let pauses = PAUSE.contains(&verb);
    let resumes = RESUME.contains(&verb);
    if asks_for_list(&words) {
        return Ok(Some(match policy.call(list, Arguments::new())? {
            Reply::Done(data) => wording::schedules(schedules_of(data), |time| said_time(policy, time)),
            Reply::Refused(_, message) => message.to_owned(),
            Reply::Held => return Ok(None),
        }));
    }
    let about_schedules = words.iter().any(|word| word.starts_with("schedule"));
    let meant = (pauses || resumes || REMOVE.contains(&verb)) && (about_schedules || !VAGUE.contains(&verb));
    if !meant || (REMOVE.contains(&verb) && !about_schedules) {
        return Ok(None);
    }
    let named: Vec<&str> = words[1..].iter().map(String::as_str).filter(|word| !FILLERS.contains(word)).collect();
    let is_it = named.is_empty() || matches!(named.as_slice(), [word] if PRONOUNS.contains(word));
    let known = match policy.call(list, Arguments::new())? {
        Reply::Done(data) => schedules_of(data),
        Reply::Refused(..) | Reply::Held => return Ok(None),
    };
    let found: Vec<&Value> = match is_it {
        true => last_one(policy, known).into_iter().collect(),
        false => known.iter().filter(|schedule| fits(schedule, &named)).collect(),
    };
    let schedule = match found.as_slice() {
        [one] => *one,
        // "Pause the music", or a task called "train schedule".
        [] if !about_schedules || REMOVE.contains(&verb) => return Ok(None),
        [] if is_it => return Ok(Some(wording::which_schedule(known))),
        [] => return Ok(Some(wording::no_schedule(&named.join(" ")))),
        _ => return Ok(Some(wording::which_schedule(found.iter().copied()))),
    };
    if !pauses && !resumes {
        return Ok(Some(wording::cannot_remove_schedules()));
    }
    let tool = if pauses { Tool::PauseSchedule } else { Tool::ResumeSchedule };
    let Some(spec) = policy.spec(tool) else { return Ok(None) };
    let arguments = Arguments::from_iter([("schedule".to_owned(), schedule["id"].clone())]);
    Ok(match policy.call(spec, arguments)? {
        Reply::Done(data) => {
            let name = data["name"].as_str().unwrap_or_default();
            Some(match (pauses, data["changed"] == false) {
                (true, false) => wording::schedule_paused(name),
                (true, true) => wording::schedule_already(name, "paused"),
                (false, true) => wording::schedule_already(name, "active"),
                (false, false) => {
                    wording::schedule_resumed(name, said_time(policy, &data["next_execution"]).as_deref())
                }
            })
        }
        Reply::Refused(_, message) => Some(message.to_owned()),
        Reply::Held => None,
    })
}

/// Plans what an agent shall do, where times are said; nothing where it shall be done now.
pub(super) fn plan(policy: &mut Policy<'_>, agent: &Value, input: &str) -> Result<Option<String>, Ask> {
    let request = policy.prompt.request;
    let expressions = request.reader.expressions(input, &request.now);
    let Plan { arguments: mut times, words, input } = match timing::read(input, &expressions, &request.now) {
        Timing::Now => return Ok(None),
        Timing::TooHard => return Ok(Some(wording::no_such_times())),
        Timing::Planned(plan) => plan,
    };
    let Some(spec) = policy.spec(Tool::ScheduleAgent) else { return Ok(Some(wording::may_not_schedule())) };
    times.insert("agent".to_owned(), agent["id"].clone());
    times.insert("input".to_owned(), json!(input));
    Ok(Some(match policy.call(spec, times)? {
        Reply::Done(data) => {
            let text = |key: &str| data[key].as_str().unwrap_or_default();
            let next = said_time(policy, &data["next_execution"]);
            wording::scheduled(text("name"), text("agent"), &words, next.as_deref())
        }
        Reply::Refused(_, message) => wording::refused_schedule(message),
        Reply::Held => return Ok(None),
    }))
}

fn asks_for_list(words: &[String]) -> bool {
    let about = words.iter().any(|word| matches!(word.as_str(), "scheduled" | "schedules" | "schedule"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    about
        && words.len() <= 8
        && (matches!(words.as_slice(), ["what" | "which" | "list" | "show" | "whats" | "what's", ..])
            || matches!(words.as_slice(), ["is", "anything", "scheduled", ..] | ["schedules"]))
        // "Show tasks about the schedule" is about tasks.
        && !words.iter().any(|word| matches!(*word, "task" | "tasks" | "todo" | "todos" | "reminders"))
}

fn schedules_of(data: &Value) -> &[Value] {
    data["schedules"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether all the words are among those of its name, its agent or what it asks for.
fn fits(schedule: &Value, named: &[&str]) -> bool {
    let of = |key: &str| schedule[key].as_str().unwrap_or_default().to_lowercase();
    let text = format!("{} {} {}", of("name"), of("agent_id"), of("input"));
    let known: Vec<String> = text.split_whitespace().map(super::agents::plain).collect();
    named.iter().all(|word| known.iter().any(|known| known == word || known.split('-').any(|part| part == *word)))
}

/// The schedule that was spoken of last; the only one there is, where none was.
fn last_one<'a>(policy: &Policy<'_>, known: &'a [Value]) -> Option<&'a Value> {
    let answers = policy.prompt.context.history.iter().rev().filter(|message| message.role == Role::Assistant);
    let ids =
        answers.flat_map(|message| message.tool_calls.iter().rev().map(|call| call.result["schedule_id"].clone()));
    let mut ids = ids.filter(Value::is_string);
    match ids.next() {
        Some(id) => known.iter().find(|schedule| schedule["id"] == id),
        None if known.len() == 1 => known.first(),
        None => None,
    }
}

/// A time of the server in words, by the user's clock.
fn said_time(policy: &Policy<'_>, time: &Value) -> Option<String> {
    let now = &policy.prompt.request.now;
    let time = time.as_str()?.parse::<Timestamp>().ok()?.to_zoned(now.time_zone().clone());
    Some(wording::at(time.datetime(), now.date()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(super::super::agents::plain).collect()
    }

    #[test]
    fn questions_about_schedules() {
        for text in [
            "What is scheduled?",
            "show my schedules",
            "which schedules are there",
            "list schedules",
            "what's scheduled",
        ] {
            assert!(asks_for_list(&words(text)), "{text}");
        }
        for text in [
            "show my tasks",
            "add a task to check the train schedule",
            "schedule a meeting",
            "show tasks about the schedule",
        ] {
            assert!(!asks_for_list(&words(text)), "{text}");
        }
    }

    #[test]
    fn a_schedule_is_named_by_its_words() {
        let tidy = json!({"name": "tidy the changelog", "agent_id": "code-x", "input": "Tidy the changelog."});
        for (named, fits_it) in
            [(&["tidy"][..], true), (&["changelog", "tidy"], true), (&["code"], true), (&["milk"], false)]
        {
            assert_eq!(fits(&tidy, named), fits_it, "{named:?}");
        }
    }
}
