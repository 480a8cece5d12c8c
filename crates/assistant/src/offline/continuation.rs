//! Reads messages that make sense only after the one before: values alone ("saturday"), corrections ("no, I meant the
//! oven") and continuations ("and the roses") (TRUST-3). All functions fail with the next tool call if its result is not
//! known yet.

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use model::task::{Priority, TaskStatus};
use tools::ToolKind;
use understand::{
    CommandFilter, DayOrTime, DueFilter, Intent, LeadTime, MissingSlot, ParsedCommand, StatusFilter, TagOperation,
    TaskTarget,
};

use super::dialogue::{LastAct, LastExchange, changed_tasks};
use super::follow_up::ResolvedCommand;
use super::fragment::{self, Fragment};
use super::framing::Framing;
use super::lookup::{LookupResult, StatusPreference, find};
use super::matching::{distance, is_filler, is_same_word, normalize};
use super::{OfflinePolicy, PendingCall};
use crate::mentions::TaskMention;

type Reading = Result<Option<Vec<ResolvedCommand>>, PendingCall>;

/// Returns the commands of a message that continues or corrects the last exchange, or `None` if it makes sense alone.
pub(super) fn read(policy: &mut OfflinePolicy<'_>, framing: &Framing, last: &LastExchange<'_>) -> Reading {
    let request = policy.prompt.request;
    if let LastAct::Changed(kind, _) = last.act
        && super::framing::clauses(&framing.body).iter().any(|part| takes_back(&Framing::read(part).body, kind))
    {
        return Ok(Some(vec![ResolvedCommand::new(ParsedCommand::new(Intent::Undo, 0.9))]));
    }
    if let Some(commands) = same_for(policy, framing, last)? {
        return Ok(Some(commands));
    }
    if let Some(commands) = about_reminder(policy, framing, last)? {
        return Ok(Some(commands));
    }
    let fragment = fragment::read(&framing.body, request);
    let is_known = is_explicit_command(policy);
    if framing.is_question && asks_yes_or_no(&framing.body) {
        return Ok(None);
    }
    if let LastAct::Asked = last.act
        && !is_known
        && let Some(commands) = repeat_with_target(policy, last, strip_meant(&framing.body))?
    {
        return Ok(Some(commands));
    }
    if fragment.is_pure()
        && !is_new_task(policy)
        && let Some(commands) = values_alone(policy, framing, last, &fragment)?
    {
        return Ok(Some(commands));
    }
    if (framing.replaces() || fragment.negated.is_some())
        && !is_known
        && let Some(commands) = correction(policy, framing, last, &fragment)?
    {
        return Ok(Some(commands));
    }
    if let Some(commands) = finished_statement(policy, framing)? {
        return Ok(Some(commands));
    }
    let is_deletion =
        policy.prompt.request.utterance.commands.iter().any(|command| command.intent == Intent::DeleteTask);
    let adds_more = matches!(last.act, LastAct::Changed(ToolKind::Add, _)) && framing.continues && is_deletion;
    if framing.continues
        && !framing.is_question
        && (!is_known || adds_more)
        && let Some(commands) = continuation(policy, framing, last, &fragment)?
    {
        return Ok(Some(commands));
    }
    if fragment.has_values() && !fragment.rest.is_empty() && !is_known && !framing.is_question {
        return values_of_named_task(policy, &fragment);
    }
    Ok(None)
}

/// Returns true if the engine finds a complete command in the message by itself.
fn is_explicit_command(policy: &OfflinePolicy<'_>) -> bool {
    let commands = &policy.prompt.request.utterance.commands;
    let is_explicit = |command: &ParsedCommand| {
        let names_task = !matches!(command.target, Some(TaskTarget::Named(_)) | None) || command.missing.is_none();
        command.intent != Intent::Unknown && command.missing.is_none() && !command.implied && names_task
    };
    commands.iter().all(is_explicit) && !commands.is_empty()
}

/// Returns true for the words of a question that expects "yes" or "no". Such a message changes nothing.
pub(super) fn asks_yes_or_no(body: &str) -> bool {
    let text = normalize(body);
    let first = text.split(' ').next().unwrap_or_default();
    matches!(first, "is" | "are" | "was" | "were" | "does" | "did" | "has" | "am" | "isnt" | "isn" | "doesnt")
}

/// Reads a statement that a task is done: "vacuum the car is finished". The words before the verb must name the task.
fn finished_statement(policy: &mut OfflinePolicy<'_>, framing: &Framing) -> Reading {
    let lower = framing.body.to_lowercase();
    if framing.is_question || lower.len() != framing.body.len() || lower.starts_with("add ") {
        return Ok(None);
    }
    let ends = [
        "is finished",
        "is done",
        "is complete",
        "is completed",
        "is sorted",
        "is taken care of",
        "is dealt with",
        "are done",
        "are finished",
        "are sorted",
        "has been done",
        "got done",
        "is all done",
        "is all finished",
        "is now done",
        "was done",
        "all done",
        "done and dusted",
    ];
    let Some(end) = ends.iter().find(|end| lower.ends_with(&format!(" {end}"))) else { return Ok(None) };
    let name = &framing.body[..framing.body.len() - end.len() - 1];
    let name = name.trim_end_matches(" really").trim_end_matches(" already").trim_end_matches(" now");
    if name.split_whitespace().count() > 8
        || position_target(name.trim_end_matches(" one").trim_start_matches("the ")).is_some()
    {
        return Ok(None);
    }
    let Some(mention) = named_task(policy, name)? else { return Ok(None) };
    let done = ParsedCommand { target: Some(TaskTarget::It), ..ParsedCommand::new(Intent::CompleteTask, 0.9) };
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(done) }]))
}

/// Returns true if a message takes back the last change: "revert that", "put it back on the list".
fn takes_back(body: &str, kind: ToolKind) -> bool {
    let text = normalize(body);
    let starts = [
        "revert",
        "undo",
        "put that back",
        "put it back",
        "bring it back",
        "bring that back",
        "bring them back",
        "roll that back",
        "roll it back",
        "restore it",
        "restore that",
        "take that back",
        "reopen it",
        "reopen that",
    ];
    let is_short = text.split(' ').count() <= 7;
    let cancels =
        matches!(text.as_str(), "cancel that" | "cancel it" | "scrap that" | "forget that") && kind == ToolKind::Add;
    let names_value =
        text.contains(" back to ") && !text.contains("back to the list") && !text.contains("back to my list");
    cancels
        || is_short
            && !names_value
            && starts.iter().any(|start| text == *start || text.starts_with(&format!("{start} ")))
}

/// Repeats the last change for another task: "do the same for parents evening", "same for the report".
fn same_for(policy: &mut OfflinePolicy<'_>, framing: &Framing, last: &LastExchange<'_>) -> Reading {
    let LastAct::Changed(kind, call) = last.act else { return Ok(None) };
    let lower = framing.body.to_lowercase();
    let starts = [
        "do the same for ",
        "do the same with ",
        "do the same thing for ",
        "do that for ",
        "same for ",
        "same with ",
        "the same for ",
        "the same with ",
        "same thing for ",
        "ditto for ",
    ];
    let Some(name) = starts.iter().find_map(|start| lower.strip_prefix(start)) else { return Ok(None) };
    let (Some(mut again), Some(mention)) = (same_change(policy, kind, call), named_task(policy, name)?) else {
        return Ok(None);
    };
    if let Some(minutes) = call.parameters["before_minutes"].as_i64() {
        again.before = Some(LeadTime { minutes, ..LeadTime::default() });
        again.when = None;
    }
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(again) }]))
}

/// Reads values that change, repeat or move the reminder of the last exchange: "no, wednesday", "and the day before too",
/// "another 20 minutes".
fn about_reminder(policy: &mut OfflinePolicy<'_>, framing: &Framing, last: &LastExchange<'_>) -> Reading {
    let request = policy.prompt.request;
    let body = framing.body.as_str();
    let text = normalize(body);
    let words: Vec<&str> = text.split(' ').collect();
    let parse = |text: String| request.parser.parse(&text, &request.now).commands.into_iter().next();
    // "another 20 minutes", "5 more minutes", "tell me again tonight"
    let asks_more = words.iter().any(|word| matches!(*word, "another" | "more")) && words.len() <= 6;
    let again = ["tell me again ", "remind me again ", "ping me again ", "nudge me again ", "ask me again "];
    let tell_again = again.iter().find_map(|start| text.find(start).map(|at| text[at + start.len()..].to_owned()));
    let duration = || {
        let amount: Vec<&str> = words
            .iter()
            .copied()
            .filter(|word| !matches!(*word, "another" | "more" | "give" | "me" | "bit" | "a" | "just"))
            .collect();
        let amount = amount.join(" ");
        if amount.starts_with("half hour") { "half an hour".to_owned() } else { amount }
    };
    let snoozed = match (&tell_again, asks_more) {
        (Some(when), _) => parse(format!("snooze it until {when}")).or_else(|| parse(format!("snooze it {when}"))),
        (None, true) => parse(format!("snooze it for {}", duration())),
        _ => None,
    };
    if let Some(command) = snoozed
        && command.intent == Intent::SnoozeReminder
        && (command.when.is_some() || command.shift.is_some())
    {
        return Ok(Some(vec![ResolvedCommand::new(ParsedCommand { target: Some(TaskTarget::It), ..command })]));
    }
    // "remind me an hour before and a day before"
    if text.starts_with("remind me") && text.contains(" before and ") {
        let parts = text.trim_start_matches("remind me").split(" and ").map(str::trim).collect::<Vec<_>>();
        let commands: Vec<_> = parts.iter().filter_map(|part| lead_time(policy, part)).collect();
        if commands.len() == parts.len() {
            let commands = commands.into_iter().map(|before| {
                let reminder = ParsedCommand::new(Intent::ScheduleReminder, 0.9);
                ResolvedCommand::new(ParsedCommand {
                    before: Some(before),
                    target: Some(TaskTarget::It),
                    asks_reminder: true,
                    ..reminder
                })
            });
            return Ok(Some(commands.collect()));
        }
    }
    // "plus a nudge 1h before"
    let extras = ["nudge", "reminder", "heads", "ping", "alert", "notification", "remind", "warning", "shout"];
    let is_extra = words.iter().any(|word| extras.contains(word)) || framing.continues;
    let known_other = policy.prompt.request.utterance.commands.iter().any(|command| {
        command.asks_reminder
            || !matches!(command.intent, Intent::CreateTask | Intent::Unknown | Intent::ScheduleReminder)
    });
    if is_extra
        && !known_other
        && words.len() <= 12
        && policy.last.is_some()
        && matches!(
            last.act,
            LastAct::Changed(ToolKind::Add | ToolKind::Update | ToolKind::Remind | ToolKind::UpdateReminder, _)
                | LastAct::Answered
        )
        && let Some(before) = lead_time(policy, &text)
        && subject_before(policy, &text)?.is_none()
    {
        let reminder = ParsedCommand::new(Intent::ScheduleReminder, 0.9);
        let command =
            ParsedCommand { before: Some(before), target: Some(TaskTarget::It), asks_reminder: true, ..reminder };
        return Ok(Some(vec![ResolvedCommand::new(command)]));
    }
    let LastAct::Changed(kind, call) = last.act else { return Ok(None) };
    let has_reminder = matches!(kind, ToolKind::Remind | ToolKind::UpdateReminder | ToolKind::SnoozeReminder);
    if !has_reminder || framing.is_question {
        return Ok(None);
    }
    // The task moves, and with it a reminder before its due date.
    if call.result["reminder"]["before_minutes"].is_i64()
        && !framing.continues
        && !text.contains("before")
        && !text.contains("remind")
    {
        let values = fragment::read(body, request);
        if values.number.is_none() && values.command.shift.is_none() && values.is_pure() && values.states {
            return Ok(None);
        }
    }
    let reminder = |intent: Intent| ParsedCommand {
        target: Some(TaskTarget::It),
        asks_reminder: true,
        ..ParsedCommand::new(intent, 0.9)
    };
    let intent = if framing.continues { Intent::ScheduleReminder } else { Intent::UpdateReminder };
    let fragment = fragment::read(body, request);
    let old_before = call.result["reminder"]["before_minutes"].as_i64();
    let own_text = text.trim_start_matches("about ").to_owned();
    // "and leo's an hour before": the rest names another task.
    let before = lead_time(policy, &own_text).or_else(|| {
        let minutes = old_before?;
        let number = fragment.number.filter(|_| fragment.rest.is_empty());
        match number {
            Some(number) => Some(same_unit(minutes, i64::from(number))),
            None => lead_time(policy, &format!("{} before", text.split(" would").next().unwrap_or_default())),
        }
    });
    if let Some(before) = before {
        let mention = subject_before(policy, &text)?;
        let intent = if mention.is_some() { Intent::ScheduleReminder } else { intent };
        let command = ParsedCommand { before: Some(before), ..reminder(intent) };
        return Ok(Some(vec![ResolvedCommand { mention, ..ResolvedCommand::new(command) }]));
    }
    if !fragment.has_values() || fragment.command.priority.is_some() || !fragment.command.tags.is_empty() {
        return Ok(None);
    }
    let mut command = reminder(intent);
    command.when = fragment.command.when;
    command.time_of_day = fragment.command.time_of_day;
    command.shift = fragment.command.shift;
    command.recurrence.clone_from(&fragment.command.recurrence);
    if let Some(number) = fragment.number {
        let Ok(time) = Time::new(number, 0, 0, 0) else { return Ok(None) };
        command.time_of_day = Some(time);
        command.when = Some(DayOrTime::Time(request.now.date().to_datetime(time)));
    }
    // "and one more on thursday, same hour"
    if let (true, Some(DayOrTime::Day(day))) = (words.contains(&"same"), command.when) {
        let old = call.result["reminder"]["next_at"].as_str().or(call.result["reminder"]["remind_at"].as_str());
        let old =
            old.and_then(|at| at.parse::<Timestamp>().ok()).map(|at| at.to_zoned(request.now.time_zone().clone()));
        command.when = old.map(|at| DayOrTime::Time(day.to_datetime(at.time()))).or(command.when);
    }
    if fragment.rest.is_empty() {
        return Ok((!fragment.states || framing.continues || framing.replaces() || words.first() == Some(&"make"))
            .then(|| vec![ResolvedCommand::new(command)]));
    }
    // "and the first one tomorrow at 1pm", "and about grandma at 7pm"
    if !framing.continues {
        return Ok(None);
    }
    if let Some(target) = position_target(&fragment.rest) {
        command.target = Some(target);
        return Ok(Some(vec![ResolvedCommand::new(command)]));
    }
    let Some(mention) = named_task(policy, &fragment.rest)? else { return Ok(None) };
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(command) }]))
}

/// Returns the distance that a text names, which must end with "before": "an hour before", "the day before".
fn lead_time(policy: &OfflinePolicy<'_>, text: &str) -> Option<LeadTime> {
    if !text.contains("before") {
        return None;
    }
    let request = policy.prompt.request;
    // The distance begins at an article, a number or "half".
    let words: Vec<&str> = text.split_whitespace().collect();
    let start = words.iter().position(|word| {
        matches!(*word, "a" | "an" | "the" | "half" | "one" | "couple")
            || fragment::number(word).is_some()
            || word.parse::<u32>().is_ok()
    })?;
    let text = words[start..].join(" ");
    let commands = request.parser.parse(&format!("remind me about it {text}"), &request.now).commands;
    commands.into_iter().find_map(|command| command.before)
}

/// Returns the task that the words before a distance name: "leo's an hour before".
fn subject_before(policy: &mut OfflinePolicy<'_>, text: &str) -> Result<Option<TaskMention>, PendingCall> {
    let words: Vec<&str> = text.split(' ').collect();
    let end = words.iter().position(|word| {
        matches!(*word, "a" | "an" | "the" | "half" | "one" | "couple")
            || fragment::number(word).is_some()
            || word.parse::<u32>().is_ok()
    });
    match end {
        Some(end) if end > 0 => named_task(policy, &words[..end].join(" ")),
        _ => Ok(None),
    }
}

/// Returns a distance of `number` in the largest unit that divides `minutes`.
fn same_unit(minutes: i64, number: i64) -> LeadTime {
    let unit = [10080, 1440, 60, 1].into_iter().find(|unit| minutes % unit == 0).unwrap_or(1);
    let total = unit * number;
    let days = i32::try_from(total / 1440).unwrap_or_default();
    if unit >= 1440 {
        LeadTime { days, ..LeadTime::default() }
    } else {
        LeadTime { minutes: total, ..LeadTime::default() }
    }
}

/// Returns true if the message explicitly adds a task: "add high priority".
fn is_new_task(policy: &OfflinePolicy<'_>) -> bool {
    let commands = &policy.prompt.request.utterance.commands;
    let starts = ["add ", "new ", "create ", "remind ", "put ", "note "];
    let lower = policy.prompt.request.message.to_lowercase();
    let is_explicit = starts.iter().any(|start| lower.contains(start));
    is_explicit
        && commands
            .iter()
            .any(|command| command.intent == Intent::CreateTask && !command.implied && command.title.is_some())
}

/// Applies values without a name: to the task of the last exchange, or as a filter of the last list.
fn values_alone(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    fragment: &Fragment,
) -> Reading {
    let is_plural = ["both", "them", "those", "these"]
        .iter()
        .any(|word| normalize(&framing.body).split(' ').any(|one| one == *word));
    match last.act {
        LastAct::Listed if !fragment.states && !framing.replaces() => Ok(refined_list(policy, framing, last)),
        LastAct::Answered if framing.is_question => Ok(refined_list(policy, framing, last)),
        LastAct::Changed(..) | LastAct::Held(_) | LastAct::Answered | LastAct::Listed => {
            let mut values = fragment.command.clone();
            values.target = Some(if is_plural { TaskTarget::Them } else { TaskTarget::It });
            let focus = policy.last.clone();
            if let Some(number) = fragment.number {
                let Ok(time) = Time::new(number, 0, 0, 0) else { return Ok(None) };
                values.time_of_day = Some(time);
                values.when = Some(DayOrTime::Time(policy.prompt.request.now.date().to_datetime(time)));
            }
            swap_tags(&mut values, fragment, focus.as_ref());
            if let Some(day) = replaced_month(&framing.body, fragment, focus.as_ref()) {
                values.when = Some(DayOrTime::Day(day));
                values.time_of_day = None;
            }
            Ok(Some(vec![ResolvedCommand { drops_time: fragment.drops_time, ..ResolvedCommand::new(values) }]))
        }
        LastAct::Asked | LastAct::Nothing if framing.is_question => Ok(refined_list(policy, framing, last)),
        LastAct::Asked | LastAct::Nothing => Ok(None),
    }
}

/// Replaces a tag: "not #car, #house".
fn swap_tags(values: &mut ParsedCommand, fragment: &Fragment, focus: Option<&TaskMention>) {
    let (Some(negated), Some(focus)) = (&fragment.negated, focus) else { return };
    let old = negated.trim_start_matches('#');
    if values.tags.is_empty() || !focus.tags.iter().any(|tag| tag.eq_ignore_ascii_case(old)) {
        return;
    }
    let kept = focus.tags.iter().filter(|tag| !tag.eq_ignore_ascii_case(old)).cloned();
    values.tags = kept.chain(std::mem::take(&mut values.tags)).collect();
    values.tag_operation = TagOperation::Set;
}

/// Returns the due day in another month: "april not may".
fn replaced_month(body: &str, fragment: &Fragment, focus: Option<&TaskMention>) -> Option<Date> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = |text: &str| {
        let text = normalize(text);
        let word = text.split(' ').next()?;
        let at = MONTHS.iter().position(|month| word.len() >= 3 && word.starts_with(month))?;
        i8::try_from(at + 1).ok()
    };
    let negated = fragment.negated.as_deref()?;
    let (new, old) = (month(body)?, month(negated)?);
    if negated.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let due: Date = focus?.due.as_deref()?.get(..10)?.parse().ok()?;
    (due.month() == old).then(|| Date::new(due.year(), new, due.day()).ok()).flatten()
}

/// Changes the filter of the last list: "and tomorrow?", "just the urgent ones".
fn refined_list(
    policy: &OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Option<Vec<ResolvedCommand>> {
    let request = policy.prompt.request;
    let parsed = request.parser.parse(&format!("show my tasks {}", framing.body), &request.now);
    let [read] = parsed.commands.as_slice() else { return None };
    if read.intent != Intent::ListTasks || read.filter == CommandFilter::default() {
        return None;
    }
    let mut filter = last_filter(policy, last);
    let new = &read.filter;
    if new.due.is_some() {
        filter.due.clone_from(&new.due);
    }
    if new.priority.is_some() {
        filter.priority = new.priority;
    }
    if !new.tags.is_empty() {
        filter.tags.clone_from(&new.tags);
    }
    if new.status.is_some() {
        filter.status = new.status;
    }
    if new.text.is_some() {
        filter.text.clone_from(&new.text);
    }
    filter.unsupported = new.unsupported;
    Some(vec![ResolvedCommand::new(ParsedCommand { filter, ..ParsedCommand::new(Intent::ListTasks, read.confidence) })])
}

/// Returns the filter of the last list from the arguments of its call.
pub(super) fn last_filter(policy: &OfflinePolicy<'_>, last: &LastExchange<'_>) -> CommandFilter {
    let is_list =
        |name: &str| policy.prompt.tools.iter().any(|spec| spec.name == name && spec.kind == Some(ToolKind::List));
    let Some(call) = last.calls.iter().rev().find(|call| is_list(&call.tool_name)) else {
        return CommandFilter::default();
    };
    let text = |key: &str| call.parameters[key].as_str();
    let status = match text("status") {
        Some("completed") => Some(StatusFilter::Completed),
        Some("all") => Some(StatusFilter::All),
        _ => None,
    };
    let tags = call.parameters["tags"].as_array().into_iter().flatten();
    CommandFilter {
        status,
        priority: text("priority").and_then(|word| Priority::parse("priority", word).ok()),
        due: text("due_date_filter").and_then(due_filter),
        tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        text: text("query").map(str::to_owned),
        unsupported: false,
    }
}

fn due_filter(text: &str) -> Option<DueFilter> {
    Some(match text {
        "today" => DueFilter::Today,
        "tomorrow" => DueFilter::Tomorrow,
        "this_week" => DueFilter::ThisWeek,
        "overdue" => DueFilter::Overdue,
        _ => match text.split_once("..") {
            Some((first, last)) => DueFilter::Between(first.parse().ok(), last.parse().ok()),
            None => DueFilter::Day(text.parse().ok()?),
        },
    })
}

/// Reads a correction of the last change: an undo, another task, or other words of the title.
fn correction(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    fragment: &Fragment,
) -> Reading {
    let body = strip_meant(&framing.body);
    let LastAct::Changed(kind, call) = last.act else {
        return match last.act {
            LastAct::Asked => repeat_with_target(policy, last, body),
            _ => Ok(None),
        };
    };
    let changed = changed_tasks(call);
    // "oops, not the roses"
    if let Some(negated) = &fragment.negated
        && fragment.rest.is_empty()
        && !fragment.has_values()
    {
        let is_changed = changed.iter().any(|task| shares_word(&task.title, negated));
        return Ok(is_changed.then(|| vec![ResolvedCommand::new(ParsedCommand::new(Intent::Undo, 0.9))]));
    }
    let focus = policy.last.clone();
    // "lindgren not lindqvist"
    if let (Some(negated), Some(focus), false) = (&fragment.negated, &focus, fragment.has_values())
        && let Some(title) = replace_words(&focus.title, negated, &fragment.rest)
    {
        return Ok(Some(vec![renamed(title)]));
    }
    if body.is_empty() || framing.is_question {
        return Ok(None);
    }
    // "the other one too" is no correction.
    if framing.continues && !framing.refuses {
        return Ok(None);
    }
    // Another task was meant.
    let is_other = |mention: &TaskMention| !changed.iter().any(|task| task.id == mention.id);
    if let Some(mention) = named_task(policy, body)?
        && is_other(&mention)
        && let Some(again) = same_change(policy, kind, call)
    {
        let undo = ResolvedCommand::new(ParsedCommand::new(Intent::Undo, 0.9));
        let repeated = ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(again) };
        return Ok(Some(vec![undo, repeated]));
    }
    // Other words of the title: "I mean Tim", "its etude no 4".
    if matches!(kind, ToolKind::Add | ToolKind::Update)
        && !fragment.has_values()
        && let Some(focus) = focus
        && let Some(title) = similar_title(&focus.title, body)
    {
        return Ok(Some(vec![renamed(title)]));
    }
    Ok(None)
}

fn renamed(title: String) -> ResolvedCommand {
    let mut update = ParsedCommand::new(Intent::UpdateTask, 0.9);
    update.title = Some(title);
    update.target = Some(TaskTarget::It);
    ResolvedCommand::new(update)
}

/// Removes "I meant" and similar words that follow other words.
fn strip_meant(body: &str) -> &str {
    let lower = body.to_lowercase();
    let found =
        ["i meant ", "i mean ", "meant ", "it's ", "its ", "should be ", "make it "].iter().filter_map(|words| {
            lower.find(words).filter(|at| *at == 0 || lower.len() == body.len()).map(|at| at + words.len())
        });
    found.min().and_then(|at| body.get(at..)).unwrap_or(body)
}

/// Returns true if two texts share a word that is not a filler.
fn shares_word(a: &str, b: &str) -> bool {
    let a = normalize(a);
    let b = normalize(b);
    b.split(' ').filter(|word| !is_filler(word)).any(|word| a.split(' ').any(|known| is_same_word(known, word)))
}

/// Replaces the words `old` of a title by `new`, without regard to case. Returns `None` if the title lacks them, or if
/// one of the texts is empty.
fn replace_words(title: &str, old: &str, new: &str) -> Option<String> {
    let lower = title.to_lowercase();
    let old = old.to_lowercase();
    if old.is_empty() || new.is_empty() || lower.len() != title.len() {
        return None;
    }
    let at = lower.find(&old)?;
    Some(format!("{}{new}{}", &title[..at], &title[at + old.len()..]))
}

/// Returns the title with the words of a correction. The correction shares words with the title ("etude no 4"), begins
/// with the same preposition ("with Bob"), or is a single word that is spelled like one of the title ("Tim"). Returns
/// `None` if none of this holds.
fn similar_title(title: &str, correction: &str) -> Option<String> {
    const PREPOSITIONS: [&str; 10] = ["with", "for", "to", "at", "from", "about", "by", "in", "on", "of"];
    let words: Vec<&str> = title.split_whitespace().collect();
    let new: Vec<&str> = correction.split_whitespace().collect();
    let same = |a: &str, b: &str| normalize(a) == normalize(b);
    if new.len() >= 2 && new.len() <= words.len() {
        // The window of the title that shares the most words at the same places.
        let shared = |at: usize| new.iter().zip(&words[at..]).filter(|(a, b)| same(a, b)).count();
        let best = (0..=words.len() - new.len()).max_by_key(|at| (shared(*at), std::cmp::Reverse(*at)))?;
        let needed = new.len().div_ceil(2);
        if shared(best) >= needed.max(1) && shared(best) < new.len() {
            let parts = [&words[..best], &new, &words[best + new.len()..]].concat();
            return Some(parts.join(" "));
        }
    }
    if let Some(first) = new.first().filter(|first| PREPOSITIONS.contains(&first.to_lowercase().as_str()))
        && new.len() >= 2
        && let Some(at) = words.iter().rposition(|word| same(word, first))
    {
        return Some([&words[..at], &new].concat().join(" "));
    }
    if let [one] = new.as_slice() {
        let close = |word: &&str| {
            let (a, b) = (normalize(word), normalize(one));
            a != b && !is_filler(&a) && distance(&a, &b) * 2 <= a.chars().count().max(b.chars().count())
        };
        let found: Vec<usize> = (0..words.len()).filter(|at| close(&words[*at])).collect();
        let best = found.into_iter().min_by_key(|at| distance(&normalize(words[*at]), &normalize(one)))?;
        let mut words = words;
        words[best] = one;
        return Some(words.join(" "));
    }
    None
}

/// Returns the task that a text names by all of its words, and no other one.
pub(super) fn named_task(policy: &mut OfflinePolicy<'_>, text: &str) -> Result<Option<TaskMention>, PendingCall> {
    if normalize(text).split(' ').all(|word| is_filler(word) || word.is_empty()) {
        return Ok(None);
    }
    let found = find(policy, &TaskTarget::Named(text.to_owned()), StatusPreference::OpenIfTied, None)?;
    Ok(match found {
        LookupResult::One(mention) => Some(mention),
        _ => None,
    })
}

/// Repeats the command of the last exchange, which lacked its task, with this name.
fn repeat_with_target(policy: &mut OfflinePolicy<'_>, last: &LastExchange<'_>, name: &str) -> Reading {
    let request = policy.prompt.request;
    let Some(mention) = named_task(policy, name)? else { return Ok(None) };
    let framing = Framing::read(last.user);
    let values = fragment::read(&framing.body, request);
    if values.is_pure() {
        let command = ParsedCommand { target: Some(TaskTarget::It), ..values.command };
        let resolved = ResolvedCommand { drops_time: values.drops_time, ..ResolvedCommand::new(command) };
        return Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..resolved }]));
    }
    let earlier = request.parser.parse(last.user, &request.now).commands;
    let is_repeatable = |command: &ParsedCommand| {
        command.intent != Intent::Unknown
            && (command.target.is_some() || command.asks_reminder || command.missing == Some(MissingSlot::Target))
    };
    let Some(mut earlier) = earlier.into_iter().find(is_repeatable) else { return Ok(None) };
    if earlier.intent == Intent::CreateTask {
        earlier.intent = Intent::ScheduleReminder;
    }
    let command = ParsedCommand { target: Some(TaskTarget::It), title: None, missing: None, ..earlier };
    Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(command) }]))
}

/// Returns the command that repeats a change for the task in `mention`. Returns `None` for changes that cannot be
/// repeated, such as a new task.
fn same_change(
    policy: &OfflinePolicy<'_>,
    kind: ToolKind,
    call: &model::conversation::ToolCall,
) -> Option<ParsedCommand> {
    let text = |key: &str| call.parameters[key].as_str();
    let zone = policy.prompt.request.now.time_zone();
    let when = |key: &str| {
        let text = text(key)?;
        if let Ok(day) = text.parse::<Date>().and_then(|day| if text.len() == 10 { Ok(day) } else { text.parse() })
            && text.len() == 10
        {
            return Some(DayOrTime::Day(day));
        }
        let local = text.parse().ok().or_else(|| {
            let at: Timestamp = text.parse().ok()?;
            Some(at.to_zoned(zone.clone()).datetime())
        });
        local.map(DayOrTime::Time)
    };
    let mut again = match kind {
        ToolKind::Complete | ToolKind::CompleteSeveral => ParsedCommand::new(Intent::CompleteTask, 0.9),
        ToolKind::Delete | ToolKind::DeleteSeveral => ParsedCommand::new(Intent::DeleteTask, 0.9),
        ToolKind::Update => ParsedCommand::new(Intent::UpdateTask, 0.9),
        ToolKind::Remind => ParsedCommand::new(Intent::ScheduleReminder, 0.9),
        _ => return None,
    };
    again.target = Some(TaskTarget::It);
    if kind == ToolKind::Update {
        again.when = when("due_date");
        again.recurrence = text("recurrence").map(str::to_owned);
        again.priority = text("priority").and_then(|word| Priority::parse("priority", word).ok());
        again.status = text("status").and_then(|word| TaskStatus::parse("status", word).ok());
        if again.status == Some(TaskStatus::Completed) {
            again = ParsedCommand { target: again.target, ..ParsedCommand::new(Intent::CompleteTask, 0.9) };
        }
        let tags = call.parameters["tags"].as_array().into_iter().flatten();
        again.tags = tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        again.tag_operation = TagOperation::Add;
        let changes =
            again.when.is_some() || again.recurrence.is_some() || again.priority.is_some() || !again.tags.is_empty();
        if again.intent == Intent::UpdateTask && !changes {
            return None;
        }
    }
    if kind == ToolKind::Remind {
        again.when = when("remind_at");
    }
    Some(again)
}

/// Reads a message that continues the last change: "and raisins" adds, "and the roses" completes.
fn continuation(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    fragment: &Fragment,
) -> Reading {
    let body = framing.body.as_str();
    let (kind, call) = match last.act {
        LastAct::Changed(kind, call) => (kind, Some(call)),
        LastAct::Held(kind) => (kind, None),
        _ => return Ok(None),
    };
    match kind {
        ToolKind::Add => {
            if fragment.has_values()
                && let Some(commands) = values_of_named_task(policy, fragment)?
            {
                return Ok(Some(commands));
            }
            if !could_be_task(policy, body)? {
                return Ok(None);
            }
            let title = policy.last.as_ref().map(|task| task.title.clone());
            Ok(Some(vec![ResolvedCommand::new(another_task(policy, body, title.as_deref()))]))
        }
        ToolKind::Complete | ToolKind::CompleteSeveral | ToolKind::Delete | ToolKind::DeleteSeveral => {
            let intent = match kind {
                ToolKind::Complete | ToolKind::CompleteSeveral => Intent::CompleteTask,
                _ => Intent::DeleteTask,
            };
            let Some(mention) = named_task(policy, body)? else { return Ok(None) };
            let again = ParsedCommand { target: Some(TaskTarget::It), ..ParsedCommand::new(intent, 0.9) };
            Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(again) }]))
        }
        _ if fragment.has_values() => values_of_named_task(policy, fragment),
        _ => {
            let again = call.and_then(|call| same_change(policy, kind, call));
            let (Some(again), Some(mention)) = (again, named_task(policy, body)?) else { return Ok(None) };
            Ok(Some(vec![ResolvedCommand { mention: Some(mention), ..ResolvedCommand::new(again) }]))
        }
    }
}

/// Returns true if a text after "and" can be another task: no question, no statement about the user or the assistant, no
/// pronoun alone.
fn could_be_task(policy: &mut OfflinePolicy<'_>, body: &str) -> Result<bool, PendingCall> {
    let text = normalize(body);
    let words: Vec<&str> = text.split(' ').collect();
    let starts = [
        "what", "whats", "when", "whens", "who", "whos", "why", "how", "where", "which", "is", "are", "was", "were",
        "do", "does", "did", "can", "could", "would", "will", "should", "i", "im", "ive", "you", "u", "he", "she",
        "it", "its", "they", "them", "we", "that", "thats", "this", "these", "those", "there", "theres", "so", "not",
        "no", "yes", "dont", "have", "has", "let", "lets", "same", "ditto",
    ];
    let request = policy.prompt.request;
    let alone = request.parser.parse(body, &request.now).commands;
    let is_explicit = alone.iter().any(|command| command.intent == Intent::CreateTask && !command.implied);
    if is_explicit {
        return Ok(false);
    }
    if body.is_empty() || words.len() > 12 || starts.contains(&words[0]) {
        return Ok(false);
    }
    for command in &alone {
        match (command.intent, &command.target) {
            (Intent::CreateTask | Intent::Unknown, _) => {}
            // "drop off the parcel" begins like a deletion.
            (Intent::DeleteTask | Intent::CompleteTask, Some(TaskTarget::Named(name))) => {
                if named_task(policy, name)?.is_some() {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Returns the command that adds another task like the last one. A title without a verb gets the verb of the last title:
/// after "buy oat flakes", "raisins" is "buy raisins".
fn another_task(policy: &OfflinePolicy<'_>, body: &str, last_title: Option<&str>) -> ParsedCommand {
    let request = policy.prompt.request;
    let parse = |text: String| request.parser.parse(&text, &request.now).commands.into_iter().next();
    let explicit = parse(format!("add {body}"));
    let mut new = explicit.unwrap_or_else(|| ParsedCommand::new(Intent::CreateTask, 0.8));
    new.intent = Intent::CreateTask;
    new.missing = new.title.is_none().then_some(MissingSlot::Title);
    // The engine finds a task in "feed the cat" alone, but not in "the cat".
    let has_verb =
        parse(body.to_owned()).is_some_and(|alone| alone.intent == Intent::CreateTask && alone.title.is_some());
    let verb = last_title.and_then(|title| title.split_once(' ')).map(|(verb, _)| verb).filter(|verb| {
        let bare = parse(format!("{verb} something"));
        bare.is_some_and(|alone| alone.intent == Intent::CreateTask)
    });
    if let (false, Some(verb), Some(title)) = (has_verb, verb, &new.title) {
        let is_object = ["the ", "a ", "an ", "some ", "my ", "our "]
            .iter()
            .any(|article| body.to_lowercase().starts_with(article))
            || !title.contains(' ');
        if is_object {
            let article = body
                .split_whitespace()
                .next()
                .filter(|word| matches!(word.to_lowercase().as_str(), "the" | "my" | "our"));
            let has_article = article.is_some_and(|article| title.to_lowercase().starts_with(&article.to_lowercase()));
            let article = article.filter(|_| !has_article).map(|article| format!("{article} ")).unwrap_or_default();
            new.title = Some(format!("{verb} {article}{title}"));
        }
    }
    new
}

/// Applies values to the task that the other words name: "the vet one is urgent", "leo's on friday".
fn values_of_named_task(policy: &mut OfflinePolicy<'_>, fragment: &Fragment) -> Reading {
    let mut rest = fragment.rest.clone();
    if rest.split_whitespace().count() > 6 {
        return Ok(None);
    }
    let position = position_target(&rest);
    if let Some(target) = position {
        let values = ParsedCommand { target: Some(target), ..fragment.command.clone() };
        return Ok(Some(vec![ResolvedCommand { drops_time: fragment.drops_time, ..ResolvedCommand::new(values) }]));
    }
    if let Some(name) = rest.strip_suffix("'s").or(rest.strip_suffix("’s")) {
        rest = name.to_owned();
    }
    let Some(mention) = named_task(policy, &rest)? else { return Ok(None) };
    let values = ParsedCommand { target: Some(TaskTarget::It), ..fragment.command.clone() };
    Ok(Some(vec![ResolvedCommand {
        mention: Some(mention),
        drops_time: fragment.drops_time,
        ..ResolvedCommand::new(values)
    }]))
}

/// Returns the target that a position such as "first" or "other" selects.
fn position_target(text: &str) -> Option<TaskTarget> {
    const ORDINALS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    let word = normalize(text);
    let at = ORDINALS.iter().position(|ordinal| *ordinal == word);
    if let Some(count) = word.strip_prefix("first ").and_then(fragment::number).filter(|count| (2..=10).contains(count))
    {
        return Some(TaskTarget::Several((1..=usize::try_from(count).ok()?).map(TaskTarget::Position).collect()));
    }
    if let Some(count) = word.strip_prefix("last ").and_then(fragment::number).filter(|count| (2..=10).contains(count))
    {
        return Some(TaskTarget::LastN(usize::try_from(count).ok()?));
    }
    match word.as_str() {
        "last" => Some(TaskTarget::Last),
        "other" => Some(TaskTarget::Other),
        "middle" => Some(TaskTarget::Middle),
        "top" => Some(TaskTarget::Position(1)),
        "bottom" => Some(TaskTarget::Last),
        _ => at.map(|at| TaskTarget::Position(at + 1)),
    }
}

/// Moves a bare time to the half of the day of the old one: after 8pm, "7:30" is 7:30pm. A time that would then be at
/// night is in the other half.
pub(super) fn keep_half_of_day(new: Time, old: Option<Time>) -> Time {
    if new.hour() > 12 || new.hour() == 0 {
        return new;
    }
    let Some(old) = old else { return new };
    let hour = new.hour() % 12;
    let at = |hour: i8| Time::new(hour, new.minute(), new.second(), 0).unwrap_or(new);
    let same = if old.hour() >= 12 { hour + 12 } else { hour };
    if same < 6 && old.hour() >= 6 { at(hour + 12) } else { at(same) }
}

/// Returns the day of a task's due date in the time zone of the user, and its time of day.
pub(super) fn due_parts(due: &str, zone: &jiff::tz::TimeZone) -> Option<(Date, Option<Time>)> {
    let due = model::due::DueDate::parse("due_date", due, zone).ok()?;
    Some(match due {
        model::due::DueDate::Day(day) => (day, None),
        model::due::DueDate::Moment { at, .. } => {
            let local = at.to_zoned(zone.clone()).datetime();
            (local.date(), Some(local.time()))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_replace_words_of_the_title() {
        // TRUST-3
        for (title, correction, expected) in [
            ("buy a present for tom", "tim", Some("buy a present for tim")),
            ("practise Chopin etude no 3", "etude no 4", Some("practise Chopin etude no 4")),
            ("lunch with Anna", "with Bob", Some("lunch with Bob")),
            ("buy milk", "the gym membership", None),
        ] {
            assert_eq!(similar_title(title, correction).as_deref(), expected, "{title}, {correction}");
        }
        assert_eq!(
            replace_words("email Lindqvist now", "lindqvist", "lindgren").as_deref(),
            Some("email lindgren now")
        );
    }

    #[test]
    fn bare_times_keep_the_half_of_the_day() {
        // TRUST-3
        let time = |text: &str| text.parse::<Time>().unwrap();
        for (new, old, expected) in [
            ("07:30", "20:00", "19:30"),
            ("10:15", "09:00", "10:15"),
            ("03:30", "14:00", "15:30"),
            ("01:00", "11:00", "13:00"),
            ("18:00", "09:00", "18:00"),
        ] {
            assert_eq!(keep_half_of_day(time(new), Some(time(old))), time(expected), "{new} after {old}");
        }
    }
}
