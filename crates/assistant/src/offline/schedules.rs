//! Answers messages about schedules: lists and explains them, changes, pauses, resumes, runs and deletes one, and creates
//! them: "have codex … every Friday".
//!
//! All functions that call tools fail with the next call if its result is not known yet.

pub(super) mod request;
mod vocabulary;

use jiff::Timestamp;
use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};

use super::agents::focus::{self, Focus};
use super::agents::words::Words;
use super::matching::best_matches;
use super::timing::change::{TimeChange, find_change};
use super::timing::{self, InputTiming, SchedulePlan};
use super::{CallResult, OfflinePolicy, PendingCall};
use crate::{TurnRequest, wording};
use request::{ScheduleReference, ScheduleRequest, ScheduleTopic};

/// The number of schedules that one message can pause or resume.
const MAX_CHANGED: usize = 6;

/// Answers a message about schedules. `words` is the message without courtesy. Without a name or with a pronoun, the
/// schedule that was mentioned last is meant. Several matches lead to a question, and so does "schedule" without a known
/// name. A refusal of a tool becomes the reply.
///
/// The reply is empty if a call is held. Returns `None` if the message is not about schedules, or if the user does not
/// have the tools. Also if no schedule matches and the message has no word such as "schedule", or if a task has the name as well.
pub(super) fn answer(
    policy: &mut OfflinePolicy<'_>,
    words: &Words<'_>,
    focus: &Focus,
) -> Result<Option<String>, PendingCall> {
    let Some(list) = policy.spec(ToolKind::ListSchedules) else { return Ok(None) };
    let Some(request) = request::find_request(words) else { return Ok(None) };
    let history = &policy.prompt.context.history;
    if !may_be_meant(&request, focus, focus::has_schedules(history), words) {
        return Ok(None);
    }
    let known = match policy.call(list, ToolArguments::new())? {
        CallResult::Done(data) => data["schedules"].as_array().map(Vec::as_slice).unwrap_or_default(),
        CallResult::Refused(_, message) if request.topic == ScheduleTopic::List => {
            return Ok(Some(message.to_owned()));
        }
        CallResult::Refused(..) | CallResult::Held => return Ok(None),
    };
    match request.topic {
        ScheduleTopic::List => return Ok(list_answer(policy, known, words)),
        ScheduleTopic::ListPaused => {
            let paused: Vec<Value> = known.iter().filter(|one| one["state"] == "paused").cloned().collect();
            return Ok(Some(wording::paused_schedules(&paused, known.len(), &policy.prompt.request.now)));
        }
        _ => {}
    }
    let found = find(policy, &request, known, focus);
    let schedule = match found.as_slice() {
        [one] => (*one).clone(),
        several @ [_, _, ..] if request.reference == ScheduleReference::All => {
            let several: Vec<Value> = several.iter().map(|one| (*one).clone()).collect();
            return change_several(policy, &request.topic, &several);
        }
        several @ [_, _, ..] => return Ok(Some(wording::which_schedule(several.iter().copied()))),
        [] if !request.has_noun => return Ok(None),
        [] => {
            return Ok(match &request.reference {
                ScheduleReference::Named(named) => Some(wording::no_schedule(&named.join(" "))),
                // "The job" may be a run.
                _ if focus.execution.is_some() || focus.is_task => None,
                _ => Some(wording::which_schedule(known)),
            });
        }
    };
    if is_task_meant(policy, &request)? {
        return Ok(None);
    }
    act(policy, request, &schedule, words)
}

/// Returns false for requests that cannot mean a schedule, before the schedules are known. General verbs need a word
/// such as "schedule", or a conversation about schedules.
fn may_be_meant(request: &ScheduleRequest, focus: &Focus, has_schedules: bool, words: &Words<'_>) -> bool {
    let is_mentioned = focus.schedule.is_some();
    match (&request.topic, &request.reference) {
        (ScheduleTopic::List, _) => true,
        (ScheduleTopic::ListPaused, _) => request.has_noun || has_schedules,
        // "Stop it" ends the run that was mentioned last. "Run it" repeats it.
        (ScheduleTopic::Pause, ScheduleReference::Pronoun) if words.at(0) == "stop" => {
            request.has_noun || (is_mentioned && focus.execution.is_none())
        }
        (ScheduleTopic::Run, ScheduleReference::Pronoun) => {
            is_mentioned && (!words.has(&["again"]) || focus.execution.is_none())
        }
        (ScheduleTopic::Pause | ScheduleTopic::Resume, ScheduleReference::Pronoun) => {
            is_mentioned || request.has_noun || (request.is_specific && !focus.is_task)
        }
        (ScheduleTopic::Next | ScheduleTopic::Why | ScheduleTopic::State, ScheduleReference::Pronoun) => {
            is_mentioned || (has_schedules && !focus.is_task && request.has_noun)
        }
        (_, ScheduleReference::Pronoun) => is_mentioned || (request.has_noun && !focus.is_task),
        (_, ScheduleReference::Position(_)) => has_schedules && !focus.is_task,
        (_, ScheduleReference::All) => request.has_noun || (has_schedules && !focus.is_task && request.is_specific),
        (_, ScheduleReference::Named(_)) => request.has_noun || request.is_specific || has_schedules,
    }
}

/// Returns the schedules that the request names.
fn find<'k>(
    policy: &OfflinePolicy<'_>,
    request: &ScheduleRequest,
    known: &'k [Value],
    focus: &Focus,
) -> Vec<&'k Value> {
    match &request.reference {
        ScheduleReference::All => known.iter().collect(),
        ScheduleReference::Position(at) => {
            let shown = focus::last_schedule_list(&policy.prompt.context.history);
            let at = (*at).min(if *at == usize::MAX { shown.len().saturating_sub(1) } else { usize::MAX });
            let id = shown.get(at);
            known.iter().filter(|schedule| schedule["id"].as_str() == id.map(String::as_str)).collect()
        }
        ScheduleReference::Pronoun => {
            let is_it = |schedule: &&Value| {
                let it = focus.schedule.as_deref();
                schedule["id"].as_str() == it || schedule["name"].as_str() == it
            };
            let found: Vec<&Value> = known.iter().filter(is_it).collect();
            match (found.as_slice(), known) {
                ([], [only]) if focus.schedule.is_none() && focus.execution.is_none() => vec![only],
                _ => found,
            }
        }
        ScheduleReference::Named(named) => matching(known, named, request.has_noun),
    }
}

/// Returns the schedules with these words in the name. Without one, those with the words in the name, the agent or the
/// input, then those with a similar name. An agent alone counts only if the message has a word such as "schedule".
fn matching<'k>(known: &'k [Value], named: &[String], has_noun: bool) -> Vec<&'k Value> {
    let words_of = |schedule: &Value, keys: &[&str]| -> Vec<String> {
        let text: Vec<&str> = keys.iter().filter_map(|key| schedule[*key].as_str()).collect();
        let text = text.join(" ");
        let words = text.split(|c: char| c.is_whitespace() || c == '-' || c == '_');
        words.chain(text.split_whitespace()).map(super::agents::words::plain_word).collect()
    };
    let has_all = |schedule: &&Value, keys: &[&str]| {
        let words = words_of(schedule, keys);
        named.iter().all(|word| words.contains(word))
    };
    let exact: Vec<&Value> = known
        .iter()
        .filter(|schedule| schedule["name"].as_str().is_some_and(|name| name.to_lowercase() == named.join(" ")))
        .collect();
    let by_name = || known.iter().filter(|schedule| has_all(schedule, &["name"])).collect::<Vec<_>>();
    let by_input = || known.iter().filter(|schedule| has_all(schedule, &["name", "input"])).collect::<Vec<_>>();
    let by_agent = || match has_noun {
        true => known.iter().filter(|schedule| has_all(schedule, &["name", "input", "agent_id"])).collect(),
        false => Vec::new(),
    };
    let similar = || {
        let titled: Vec<Value> = known.iter().map(|one| json!({"title": one["name"], "id": one["id"]})).collect();
        let found: Vec<Value> = best_matches(&titled, &named.join(" ")).into_iter().cloned().collect();
        known.iter().filter(|one| found.iter().any(|found| found["id"] == one["id"])).collect::<Vec<_>>()
    };
    [exact]
        .into_iter()
        .chain([by_name(), by_input(), by_agent(), similar()])
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// Returns true if a task has the words of the reference as well, and the message has no word that decides.
fn is_task_meant(policy: &mut OfflinePolicy<'_>, request: &ScheduleRequest) -> Result<bool, PendingCall> {
    let ScheduleReference::Named(named) = &request.reference else { return Ok(false) };
    if request.has_noun || request.is_specific {
        return Ok(false);
    }
    let Some(list) = policy.spec(ToolKind::List) else { return Ok(false) };
    let arguments = ToolArguments::from_iter([("query".to_owned(), json!(named.join(" ")))]);
    Ok(match policy.call(list, arguments)? {
        CallResult::Done(data) => data["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()),
        CallResult::Refused(..) | CallResult::Held => false,
    })
}

/// Carries out the request for one schedule.
fn act(
    policy: &mut OfflinePolicy<'_>,
    request: ScheduleRequest,
    schedule: &Value,
    words: &Words<'_>,
) -> Result<Option<String>, PendingCall> {
    let now = policy.prompt.request.now.clone();
    let selected = || ToolArguments::from_iter([("schedule".to_owned(), schedule["id"].clone())]);
    let (kind, arguments) = match request.topic {
        ScheduleTopic::List | ScheduleTopic::ListPaused => return Ok(None),
        ScheduleTopic::Next | ScheduleTopic::State => {
            // The explanation marks the schedule as the last mentioned one.
            (ToolKind::ExplainSchedule, selected())
        }
        ScheduleTopic::Why => {
            let mut arguments = selected();
            if let Some(at) = asked_time(policy, words) {
                arguments.insert("at".to_owned(), json!(at));
            }
            (ToolKind::ExplainSchedule, arguments)
        }
        ScheduleTopic::Pause => (ToolKind::PauseSchedule, selected()),
        ScheduleTopic::Resume => (ToolKind::ResumeSchedule, selected()),
        ScheduleTopic::Delete => (ToolKind::DeleteSchedule, selected()),
        ScheduleTopic::Run => (ToolKind::RunSchedule, selected()),
        ScheduleTopic::Rename(ref name) => {
            let mut arguments = selected();
            arguments.insert("name".to_owned(), json!(name));
            (ToolKind::UpdateSchedule, arguments)
        }
        ScheduleTopic::NewInput(ref input) => {
            let mut arguments = selected();
            arguments.insert("input".to_owned(), json!(input));
            (ToolKind::UpdateSchedule, arguments)
        }
        ScheduleTopic::Retime => match find_change(words.source(), schedule, &policy.prompt.request.parser, &now) {
            TimeChange::Missing if !request.has_noun => return Ok(None),
            TimeChange::Missing => return Ok(Some(wording::which_times(schedule, &now))),
            TimeChange::Unsupported => return Ok(Some(wording::unclear_times(schedule, &now))),
            TimeChange::Arguments(times) => {
                let mut arguments = selected();
                arguments.extend(times);
                (ToolKind::UpdateSchedule, arguments)
            }
        },
    };
    let Some(spec) = policy.spec(kind) else { return Ok(None) };
    let has_worker = policy.prompt.has_worker;
    Ok(match policy.call(spec, arguments)? {
        CallResult::Done(data) => {
            let sentence = match request.topic {
                ScheduleTopic::Next => wording::next_run(&data["schedule"], &now),
                ScheduleTopic::State => wording::schedule_state(&data["schedule"], &now),
                ScheduleTopic::Why => wording::schedule_explanation(data, &now),
                ScheduleTopic::Pause => wording::pause_done(data, request.has_until),
                ScheduleTopic::Resume => wording::resume_done(data, &now),
                ScheduleTopic::Run => wording::schedule_started(data),
                _ => wording::schedule_changed(data, &now),
            };
            let starts = matches!(request.topic, ScheduleTopic::Resume | ScheduleTopic::Run);
            Some(wording::with_worker_note(sentence, has_worker || !starts))
        }
        CallResult::Refused(_, message) => Some(wording::refused_change(message)),
        // The agent loop asks the user.
        CallResult::Held => Some(String::new()),
    })
}

/// Pauses or resumes several schedules. Other changes apply to one schedule.
fn change_several(
    policy: &mut OfflinePolicy<'_>,
    topic: &ScheduleTopic,
    schedules: &[Value],
) -> Result<Option<String>, PendingCall> {
    let kind = match topic {
        ScheduleTopic::Pause => ToolKind::PauseSchedule,
        ScheduleTopic::Resume => ToolKind::ResumeSchedule,
        _ => return Ok(Some(wording::which_schedule(schedules))),
    };
    let Some(spec) = policy.spec(kind) else { return Ok(None) };
    let now = policy.prompt.request.now.clone();
    let is_open = |one: &&Value| (one["state"] == "paused") == (kind == ToolKind::ResumeSchedule);
    let mut lines = Vec::new();
    let open: Vec<&Value> = schedules.iter().filter(is_open).collect();
    for schedule in open.iter().take(MAX_CHANGED) {
        let arguments = ToolArguments::from_iter([("schedule".to_owned(), schedule["id"].clone())]);
        lines.push(match policy.call(spec, arguments)? {
            CallResult::Done(data) if kind == ToolKind::PauseSchedule => wording::pause_done(data, false),
            CallResult::Done(data) => wording::resume_done(data, &now),
            CallResult::Refused(_, message) => wording::refused_change(message),
            CallResult::Held => continue,
        });
    }
    if open.len() > MAX_CHANGED {
        lines.push(wording::more_schedules(open.len() - MAX_CHANGED));
    }
    if open.is_empty() {
        lines.push(wording::schedules(schedules, |time| time_words(policy, time)));
    }
    Ok(Some(lines.join("\n")))
}

/// Lists the schedules. With a day or a period in the question, only those with a run in it. Returns `None` for such a
/// question if there are no schedules, because it may be about tasks.
fn list_answer(policy: &OfflinePolicy<'_>, known: &[Value], words: &Words<'_>) -> Option<String> {
    let request = policy.prompt.request;
    let expressions = request.parser.find_expressions(words.source(), &request.now);
    let period = expressions.iter().find_map(|found| {
        let start = day_of(found.due.or(found.start)?);
        let first = found.start.map_or(start, day_of);
        let end = found.end.map(day_of).and_then(|end| end.yesterday().ok()).map_or(start, |end| end.max(first));
        Some((first, end, found.text.trim().to_owned()))
    });
    match period {
        Some(_) if known.is_empty() => None,
        Some((first, last, text)) => {
            let zone = request.now.time_zone();
            let is_within = |schedule: &&Value| {
                let next = schedule["next_execution"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
                next.is_some_and(|next| (first..=last).contains(&next.to_zoned(zone.clone()).date()))
            };
            let found: Vec<Value> = known.iter().filter(is_within).cloned().collect();
            Some(match found.is_empty() {
                true => wording::nothing_scheduled_then(&text),
                false => wording::schedules(&found, |time| time_words(policy, time)),
            })
        }
        None => Some(wording::schedules(known, |time| time_words(policy, time))),
    }
}

fn day_of(when: understand::DayOrTime) -> jiff::civil::Date {
    match when {
        understand::DayOrTime::Day(day) => day,
        understand::DayOrTime::Time(time) => time.date(),
    }
}

/// Returns the end of the past time that a question names, such as "this morning" or "yesterday", as a local time.
fn asked_time(policy: &OfflinePolicy<'_>, words: &Words<'_>) -> Option<String> {
    let request = policy.prompt.request;
    let now = request.now.datetime();
    let expressions = request.parser.find_expressions(words.source(), &request.now);
    let found = expressions.iter().find(|found| found.recurrence.is_none())?;
    let at = match found.end.or(found.due).or(found.start)? {
        understand::DayOrTime::Day(day) if found.end.is_some() => day.at(0, 0, 0, 0),
        understand::DayOrTime::Day(day) => day.at(23, 59, 59, 0),
        understand::DayOrTime::Time(time) => time,
    };
    // "On Monday" in a question about the past is the last one.
    let at = if at > now && found.text.to_lowercase().contains("day") && !found.text.contains("today") {
        at.checked_sub(jiff::Span::new().days(7)).ok()?
    } else {
        at
    };
    (at < now).then(|| at.strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

/// Creates a schedule if the input contains a time. The agent gets the input without the time. Times that are
/// unsupported, a missing right to schedule, and a refusal of the tool become the reply. The reply is empty if the call
/// is held. Returns `None` if the input contains no time, so that the agent runs now.
pub(super) fn plan(policy: &mut OfflinePolicy<'_>, agent: &Value, input: &str) -> Result<Option<String>, PendingCall> {
    let request = policy.prompt.request;
    let expressions = request.parser.find_expressions(input, &request.now);
    let SchedulePlan { arguments: mut times, input, .. } = match timing::find_timing(input, &expressions, &request.now)
    {
        InputTiming::Now => return Ok(None),
        InputTiming::Unsupported => return Ok(Some(wording::unsupported_times())),
        InputTiming::Planned(plan) => plan,
    };
    let Some(spec) = policy.spec(ToolKind::ScheduleAgent) else { return Ok(Some(wording::may_not_schedule())) };
    times.insert("agent".to_owned(), agent["id"].clone());
    times.insert("input".to_owned(), json!(input));
    Ok(Some(match policy.call(spec, times)? {
        CallResult::Done(data) => {
            let sentence = wording::scheduled(data, &request.now);
            wording::with_worker_note(sentence, policy.prompt.has_worker)
        }
        CallResult::Refused(_, message) => wording::refused_schedule(message),
        // The agent loop asks the user.
        CallResult::Held => String::new(),
    }))
}

/// Returns true for "run tidy", without a word such as "schedule". Tidy may be an agent.
pub(super) fn names_a_run(words: &Words<'_>) -> bool {
    request::find_request(words).is_some_and(|request| {
        let is_named = matches!(request.reference, ScheduleReference::Named(_));
        request.topic == ScheduleTopic::Run && is_named && !request.has_noun
    })
}

/// Returns true if the message asks to run or to resume the schedule of this name, by all words of the name.
pub(crate) fn requests_schedule(request: &TurnRequest, kind: ToolKind, name: &str) -> bool {
    if super::agents::words::is_pasted(&request.message) {
        return false;
    }
    let words = Words::new(&request.message).without_courtesy();
    let Some(found) = request::find_request(&words) else { return false };
    let is_kind = match found.topic {
        ScheduleTopic::Run => kind == ToolKind::RunSchedule,
        ScheduleTopic::Resume => kind == ToolKind::ResumeSchedule,
        _ => false,
    };
    let ScheduleReference::Named(named) = &found.reference else { return false };
    let parts: Vec<String> = name.split_whitespace().map(super::agents::words::plain_word).collect();
    is_kind
        && !parts.is_empty()
        && named.iter().all(|word| parts.contains(word))
        && parts.iter().all(|part| words.has(&[part]))
}

/// Formats a timestamp in the time zone of the user. Returns `None` if it is missing or invalid.
fn time_words(policy: &OfflinePolicy<'_>, time: &Value) -> Option<String> {
    wording::schedule_time(time, &policy.prompt.request.now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_found_by_their_words() {
        let known = [
            json!({"id": "1", "name": "tidy the changelog", "agent_id": "code-x", "input": "Tidy the changelog."}),
            json!({"id": "2", "name": "nightly", "agent_id": "claude", "input": "back up the notes"}),
        ];
        let find = |words: &str, has_noun| -> Vec<&str> {
            let named: Vec<String> = words.split(' ').map(str::to_owned).collect();
            matching(&known, &named, has_noun).into_iter().map(|one| one["id"].as_str().unwrap()).collect()
        };
        assert_eq!(find("tidy", false), ["1"]);
        assert_eq!(find("changelog tidy", false), ["1"]);
        assert_eq!(find("notes", false), ["2"]);
        assert_eq!(find("nighty", false), ["2"], "a spelling mistake");
        assert_eq!(find("claude", true), ["2"]);
        assert_eq!(find("claude", false), Vec::<&str>::new(), "an agent is not its schedule");
        assert_eq!(find("milk", true), Vec::<&str>::new());
    }
}
