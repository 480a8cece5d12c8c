//! Lists, pauses, resumes and creates schedules: "List my schedules", "pause it", "have codex … every Friday".
//!
//! All functions that call tools fail with the next call if its result is not known yet.

use jiff::Timestamp;
use model::conversation::MessageRole;
use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};

use super::timing::{self, InputTiming, SchedulePlan};
use super::{CallResult, OfflinePolicy, PendingCall};
use crate::wording;

const PAUSE: [&str; 3] = ["pause", "suspend", "stop"];
const RESUME: [&str; 4] = ["resume", "unpause", "continue", "restart"];
const REMOVE: [&str; 3] = ["delete", "remove", "cancel"];
/// Verbs that refer to a schedule only together with the word "schedule".
const AMBIGUOUS_VERBS: [&str; 3] = ["stop", "continue", "restart"];
const PRONOUNS: [&str; 4] = ["it", "that", "this", "them"];
const FILLERS: [&str; 9] = ["the", "my", "our", "schedule", "schedules", "scheduled", "agent", "run", "please"];

/// Answers a message that lists, pauses, resumes or removes schedules. `words` is the message without courtesy at its
/// start. Removal is always declined. "Stop", "continue", "restart" and the verbs of removal need the word "schedule"
/// too. Without a name or with a pronoun, the schedule that was mentioned last is meant. Several matches, and
/// "schedule" without a name and a mentioned one, lead to a question. "Schedule" with an unknown name leads to a reply.
/// So does a refusal of a tool.
///
/// Returns `None` if the message is not about schedules, the user does not have the tools, or a call is held. Also if
/// the list of schedules is refused before a change. Also if no schedule matches and the word "schedule" is missing or
/// the verb removes.
pub(super) fn answer(policy: &mut OfflinePolicy<'_>, words: &[&str]) -> Result<Option<String>, PendingCall> {
    let Some(list) = policy.spec(ToolKind::ListSchedules) else { return Ok(None) };
    let words: Vec<String> =
        words.iter().map(|word| super::agents::plain_word(word)).filter(|word| !word.is_empty()).collect();
    let verb = words.first().map(String::as_str).unwrap_or_default();
    let pauses = PAUSE.contains(&verb);
    let resumes = RESUME.contains(&verb);
    if asks_for_list(&words) {
        return Ok(Some(match policy.call(list, ToolArguments::new())? {
            CallResult::Done(data) => wording::schedules(schedules_of(data), |time| time_words(policy, time)),
            CallResult::Refused(_, message) => message.to_owned(),
            CallResult::Held => return Ok(None),
        }));
    }
    let about_schedules = words.iter().any(|word| word.starts_with("schedule"));
    let is_known_verb = pauses || resumes || REMOVE.contains(&verb);
    let is_meant = is_known_verb && (about_schedules || !AMBIGUOUS_VERBS.contains(&verb));
    if !is_meant || (REMOVE.contains(&verb) && !about_schedules) {
        return Ok(None);
    }
    let named: Vec<&str> = words[1..].iter().map(String::as_str).filter(|word| !FILLERS.contains(word)).collect();
    let is_it = named.is_empty() || matches!(named.as_slice(), [word] if PRONOUNS.contains(word));
    let known = match policy.call(list, ToolArguments::new())? {
        CallResult::Done(data) => schedules_of(data),
        CallResult::Refused(..) | CallResult::Held => return Ok(None),
    };
    let found: Vec<&Value> = match is_it {
        true => last_mentioned(policy, known).into_iter().collect(),
        false => known.iter().filter(|schedule| matches_words(schedule, &named)).collect(),
    };
    let schedule = match found.as_slice() {
        [one] => *one,
        // The message may be "Pause the music", or refer to a task "train schedule".
        [] if !about_schedules || REMOVE.contains(&verb) => return Ok(None),
        [] if is_it => return Ok(Some(wording::which_schedule(known))),
        [] => return Ok(Some(wording::no_schedule(&named.join(" ")))),
        _ => return Ok(Some(wording::which_schedule(found.iter().copied()))),
    };
    if !pauses && !resumes {
        return Ok(Some(wording::cannot_remove_schedules()));
    }
    let tool = if pauses { ToolKind::PauseSchedule } else { ToolKind::ResumeSchedule };
    let Some(spec) = policy.spec(tool) else { return Ok(None) };
    let arguments = ToolArguments::from_iter([("schedule".to_owned(), schedule["id"].clone())]);
    Ok(match policy.call(spec, arguments)? {
        CallResult::Done(data) => {
            let name = data["name"].as_str().unwrap_or_default();
            Some(match (pauses, data["changed"] == false) {
                (true, false) => wording::schedule_paused(name),
                (true, true) => wording::schedule_already(name, "paused"),
                (false, true) => wording::schedule_already(name, "active"),
                (false, false) => {
                    wording::schedule_resumed(name, time_words(policy, &data["next_execution"]).as_deref())
                }
            })
        }
        CallResult::Refused(_, message) => Some(message.to_owned()),
        CallResult::Held => None,
    })
}

/// Creates a schedule if the input contains a time. The agent gets the input without the time. Times that are
/// unsupported, a missing right to schedule, and a refusal of the tool become the reply. Returns `None` if the input
/// contains no time, so that the agent runs now, or if the call is held.
pub(super) fn plan(policy: &mut OfflinePolicy<'_>, agent: &Value, input: &str) -> Result<Option<String>, PendingCall> {
    let request = policy.prompt.request;
    let expressions = request.parser.find_expressions(input, &request.now);
    let SchedulePlan { arguments: mut times, words, input } =
        match timing::find_timing(input, &expressions, &request.now) {
            InputTiming::Now => return Ok(None),
            InputTiming::Unsupported => return Ok(Some(wording::unsupported_times())),
            InputTiming::Planned(plan) => plan,
        };
    let Some(spec) = policy.spec(ToolKind::ScheduleAgent) else { return Ok(Some(wording::may_not_schedule())) };
    times.insert("agent".to_owned(), agent["id"].clone());
    times.insert("input".to_owned(), json!(input));
    Ok(Some(match policy.call(spec, times)? {
        CallResult::Done(data) => {
            let text = |key: &str| data[key].as_str().unwrap_or_default();
            let next = time_words(policy, &data["next_execution"]);
            wording::scheduled(text("name"), text("agent"), &words, next.as_deref())
        }
        CallResult::Refused(_, message) => wording::refused_schedule(message),
        CallResult::Held => return Ok(None),
    }))
}

/// Returns `true` for a request to list schedules. It has at most 8 words, one of them "schedule", "schedules" or
/// "scheduled", and none of them "task", "todo", their plurals or "reminders". It starts with "what", "what's",
/// "which", "list", "show" or "is anything scheduled", or it is only "schedules".
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

/// Returns `true` if each word is a word of the name, the agent or the input of the schedule, or a part of a hyphenated
/// one.
fn matches_words(schedule: &Value, named: &[&str]) -> bool {
    let field = |key: &str| schedule[key].as_str().unwrap_or_default().to_lowercase();
    let text = format!("{} {} {}", field("name"), field("agent_id"), field("input"));
    let known: Vec<String> = text.split_whitespace().map(super::agents::plain_word).collect();
    named.iter().all(|word| known.iter().any(|known| known == word || known.split('-').any(|part| part == *word)))
}

/// Returns the schedule that the last tool result of the assistant with a `schedule_id` refers to, or `None` if it no
/// longer exists. If there is no such result, returns the only schedule, if there is exactly one.
fn last_mentioned<'a>(policy: &OfflinePolicy<'_>, known: &'a [Value]) -> Option<&'a Value> {
    let answers = policy.prompt.context.history.iter().rev().filter(|message| message.role == MessageRole::Assistant);
    let ids =
        answers.flat_map(|message| message.tool_calls.iter().rev().map(|call| call.result["schedule_id"].clone()));
    let mut ids = ids.filter(Value::is_string);
    match ids.next() {
        Some(id) => known.iter().find(|schedule| schedule["id"] == id),
        None if known.len() == 1 => known.first(),
        None => None,
    }
}

/// Formats a timestamp in the time zone of the user. Returns `None` if it is missing or invalid.
fn time_words(policy: &OfflinePolicy<'_>, time: &Value) -> Option<String> {
    let now = &policy.prompt.request.now;
    let time = time.as_str()?.parse::<Timestamp>().ok()?.to_zoned(now.time_zone().clone());
    Some(wording::datetime_words(time.datetime(), now.date()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(super::super::agents::plain_word).collect()
    }

    #[test]
    fn questions_about_schedules_are_recognized() {
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
    fn schedules_are_found_by_their_words() {
        let tidy = json!({"name": "tidy the changelog", "agent_id": "code-x", "input": "Tidy the changelog."});
        for (named, matches) in
            [(&["tidy"][..], true), (&["changelog", "tidy"], true), (&["code"], true), (&["milk"], false)]
        {
            assert_eq!(matches_words(&tidy, named), matches, "{named:?}");
        }
    }
}
