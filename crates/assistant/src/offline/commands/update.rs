//! Changes tasks: one, several that the message names, or all that match a filter.

use jiff::{SignedDuration, ToSpan, Zoned};
use model::due::DueDate;
use model::recurrence::{self, RecurrenceRule};
use model::task::TaskStatus;
use redact::MARK;
use serde_json::{Value, json};
use tools::{ToolArguments, ToolKind};
use understand::{ClearableField, DateShift, DayOrTime, MissingSlot, ParsedCommand, TagOperation, TaskTarget};

use super::arguments::{attributes, task_argument};
use super::list::{filters, with_known_tag};
use super::{CommandReply, NoSingleTask, refused, reply_about, single_task, task_of, title_of};
use crate::mentions::TaskMention;
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::lookup::{LookupResult, StatusPreference, current, find};
use crate::offline::matching::normalize;
use crate::offline::{CallResult, OfflinePolicy, due_times, fragment, limited_tools, task_words};
use crate::wording;

/// Changes one task. Prefers completed tasks if the command reopens one, else open tasks among equally good matches.
/// Several equally good matches lead to a question, unless `pick` selects one. Several named tasks are rejected.
/// Without a change, asks for it, or names the unsupported fields.
///
/// Reads the task again if a new value depends on the current one. The reply has the title that the user knows, unless
/// it was redacted. Without a tool to update tasks, the reply is the system error.
pub(super) fn update(policy: &mut OfflinePolicy<'_>, resolved: &ResolvedCommand) -> CommandReply {
    let command = &resolved.command;
    let prefer = if command.status == Some(TaskStatus::Pending) {
        StatusPreference::Completed
    } else {
        StatusPreference::OpenIfTied
    };
    let moved = with_part_of_day(policy, resolved);
    let resolved = moved.as_ref().unwrap_or(resolved);
    let command = &resolved.command;
    if command.title.is_some() && is_remark_after_colon(&policy.prompt.request.message) {
        return Ok(Some(wording::missing(MissingSlot::Change)));
    }
    let found = match &command.target {
        Some(TaskTarget::All) => return update_filtered(policy, resolved),
        Some(target) => find(policy, target, prefer, resolved.pick)?,
        None => LookupResult::NotNamed,
    };
    let mention = match single_task(found) {
        Ok(mention) => mention,
        Err(NoSingleTask::Several(mentions)) => return update_several(policy, resolved, mentions),
        Err(NoSingleTask::Reply(text)) => return Ok(Some(text)),
    };
    let Some(spec) = policy.spec(ToolKind::Update) else { return Ok(Some(wording::system_error().to_owned())) };
    let (command, unsupported) = &limited_tools::supported_command(spec, command);
    let mention = if needs_current_task(command, resolved.drops_time) { current(policy, mention)? } else { mention };
    let mut arguments = task_argument(spec, &mention);
    arguments.extend(new_values(policy, command, &mention, resolved.drops_time));
    if arguments.len() == 1 {
        return Ok(Some(match unsupported.is_empty() {
            true => wording::missing(MissingSlot::Change),
            false => wording::unsupported_fields(unsupported),
        }));
    }
    let outcome = policy.call(spec, arguments.clone())?;
    let changes = match &outcome {
        CallResult::Done(data) => task_words::changes(&arguments, task_of(data), &policy.prompt.request.now),
        CallResult::Refused(..) | CallResult::Held => Vec::new(),
    };
    // Uses the title that the user knows, unless it was redacted.
    let known_title = (!mention.title.contains(MARK)).then(|| mention.title.clone());
    let updated = |title: &str| {
        let sentence = wording::updated(known_title.as_deref().unwrap_or(title), &changes);
        wording::with_unsupported_fields(sentence, unsupported)
    };
    Ok(reply_about(policy, outcome, &mention, updated, wording::unchanged))
}

/// Returns true for a text after a colon that no word introduces as a title: "cards to canada: last posting day is near".
fn is_remark_after_colon(message: &str) -> bool {
    const INTRODUCTIONS: [&str; 9] =
        ["rename", "retitle", "title", "name", "call", "reword", "change", "should", "add"];
    let Some((before, _)) = message.split_once(": ") else { return false };
    !normalize(before).split(' ').any(|word| INTRODUCTIONS.contains(&word))
}

/// Returns the tags that a message adds: those with a number sign and those of the task if there are any with it, else
/// those before "instead" and similar words.
fn stated_tags(tags: &[String], mention: &TaskMention, message: &str) -> Vec<String> {
    let lower = message.to_lowercase();
    let is_marked = |tag: &&String| lower.contains(&format!("#{}", tag.to_lowercase()));
    if tags.iter().any(|tag| is_marked(&tag)) {
        let is_known = |tag: &&String| mention.tags.contains(tag);
        return tags.iter().filter(|tag| is_marked(tag) || is_known(tag)).cloned().collect();
    }
    let ends = |tag: &&String| matches!(tag.to_lowercase().as_str(), "instead" | "rather" | "not" | "and");
    tags.iter().take_while(|tag| !ends(tag)).cloned().collect()
}

/// Returns the day of the first occurrence of a repetition.
fn first_day(rule: &str, now: &Zoned) -> Option<DayOrTime> {
    let rule = RecurrenceRule::parse(rule).ok()?;
    let start = now.start_of_day().ok()?;
    let first =
        recurrence::first_moment(&rule, &start, start.timestamp().checked_sub(SignedDuration::from_secs(1)).ok()?)?;
    Some(DayOrTime::Day(first.date()))
}

/// Reads "to the afternoon" as a time of the same day. Returns `None` if the message names a day, too.
fn with_part_of_day(policy: &OfflinePolicy<'_>, resolved: &ResolvedCommand) -> Option<ResolvedCommand> {
    let request = policy.prompt.request;
    if resolved.command.time_of_day.is_some() || !matches!(resolved.command.when, Some(DayOrTime::Time(_))) {
        return None;
    }
    let found = request.parser.find_expressions(&request.message, &request.now);
    let [only] = found.as_slice() else { return None };
    let clock = fragment::part_of_day(&only.text)?;
    let mut resolved = resolved.clone();
    resolved.command.time_of_day = Some(clock);
    Some(resolved)
}

/// Changes all open tasks that match the filter of the command, with one call.
fn update_filtered(policy: &mut OfflinePolicy<'_>, resolved: &ResolvedCommand) -> CommandReply {
    let filter = &with_known_tag(policy, resolved.command.filter.clone())?;
    let Some(list) = policy.spec(ToolKind::List) else { return Ok(Some(wording::system_error().to_owned())) };
    if filter.unsupported {
        return Ok(Some(wording::unsupported_filter()));
    }
    let data = match policy.call(list, filters(list, filter))? {
        CallResult::Done(data) => data,
        other => return Ok(refused(other, "")),
    };
    let tasks: Vec<_> = data["tasks"].as_array().into_iter().flatten().filter_map(TaskMention::from_task).collect();
    if tasks.is_empty() {
        return Ok(Some(wording::list(&[], 0, filter)));
    }
    update_several(policy, resolved, tasks)
}

/// Changes several tasks with one call, which is usually held. Without a tool for that, asks for one task.
fn update_several(
    policy: &mut OfflinePolicy<'_>,
    resolved: &ResolvedCommand,
    mentions: Vec<TaskMention>,
) -> CommandReply {
    let Some(spec) = policy.spec(ToolKind::UpdateSeveral) else { return Ok(Some(wording::one_at_a_time())) };
    let mut updates = Vec::with_capacity(mentions.len());
    for mention in mentions {
        let needs_current = needs_current_task(&resolved.command, resolved.drops_time);
        let mention = if needs_current { current(policy, mention)? } else { mention };
        let mut update = ToolArguments::from_iter([("task_id".to_owned(), mention.id.clone().unwrap_or_default())]);
        update.extend(new_values(policy, &resolved.command, &mention, resolved.drops_time));
        if update.len() == 1 {
            return Ok(Some(wording::missing(MissingSlot::Change)));
        }
        updates.push(Value::Object(update));
    }
    let fields = updates.first().and_then(Value::as_object).cloned().unwrap_or_default();
    Ok(match policy.call(spec, ToolArguments::from_iter([("updates".to_owned(), Value::Array(updates))]))? {
        CallResult::Done(data) => {
            let now = &policy.prompt.request.now;
            let entries = data["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
            let lines = entries.iter().map(|entry| {
                let task = task_of(entry);
                wording::updated(title_of(task, ""), &task_words::changes(&fields, task, now))
            });
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
        other => refused(other, ""),
    })
}

/// Returns the arguments that change one task. Values that depend on the current ones are computed from `mention`.
fn new_values(
    policy: &OfflinePolicy<'_>,
    command: &ParsedCommand,
    mention: &TaskMention,
    drops_time: bool,
) -> ToolArguments {
    let now = &policy.prompt.request.now;
    let mut when = new_due_date(policy, command, mention.due.as_deref());
    if drops_time {
        let day = mention.due.as_deref().and_then(|due| due_times::due_parts(due, now.time_zone()));
        when = day.map(|(day, _)| DayOrTime::Day(day)).or(when);
    }
    if let (None, None, Some(rule)) = (when, &mention.due, &command.recurrence) {
        when = first_day(rule, now);
    }
    let mut command = command.clone();
    if let Some(at) = command.tags.iter().position(|tag| tag.eq_ignore_ascii_case("instead")) {
        let replaced = command.tags.split_off(at);
        let is_replaced = |tag: &&String| replaced.iter().any(|old| old.eq_ignore_ascii_case(tag));
        command.tags.extend(mention.tags.iter().filter(|tag| !is_replaced(tag)).cloned());
        command.tag_operation = TagOperation::Set;
    } else if command.tag_operation != TagOperation::Remove {
        command.tags = stated_tags(&command.tags, mention, &policy.prompt.request.message);
    }
    let command = &ParsedCommand { when, ..amended(&command, mention) };
    let mut arguments = attributes(command, now);
    if let Some(title) = &command.title {
        arguments.insert("title".to_owned(), title.as_str().into());
    }
    if let Some(status) = command.status {
        arguments.insert("status".to_owned(), status.as_str().into());
    }
    // The list is empty if the last tag was removed.
    if command.tag_operation == TagOperation::Remove {
        arguments.insert("tags".to_owned(), json!(command.tags));
    }
    for field in &command.cleared_fields {
        let (name, empty) = match field {
            ClearableField::Description => ("description", json!("")),
            ClearableField::Due => ("due_date", json!("")),
            ClearableField::Recurrence => ("recurrence", json!("")),
            ClearableField::Tags => ("tags", json!([])),
        };
        arguments.insert(name.to_owned(), empty);
    }
    arguments
}

/// Returns `true` if the new values depend on the current values of the task.
fn needs_current_task(command: &ParsedCommand, drops_time: bool) -> bool {
    command.shift.is_some()
        || command.when.is_some()
        || command.recurrence.is_some()
        || command.time_of_day.is_some()
        || command.appends_description
        || command.tag_operation != TagOperation::Set
        || drops_time
}

/// Merges the current tags and description into a command that adds or removes parts of them. Tags are compared without
/// case. Added tags follow the current ones. New text follows the description on its own line.
fn amended(command: &ParsedCommand, mention: &TaskMention) -> ParsedCommand {
    let mut command = command.clone();
    let contains = |tags: &[String], tag: &str| tags.iter().any(|known| known.eq_ignore_ascii_case(tag));
    match command.tag_operation {
        TagOperation::Set => {}
        TagOperation::Add => {
            let new = std::mem::take(&mut command.tags);
            let old = mention.tags.iter().filter(|tag| !contains(&new, tag)).cloned();
            command.tags = old.chain(new.iter().cloned()).collect();
        }
        TagOperation::Remove => {
            let removed = std::mem::take(&mut command.tags);
            command.tags = mention.tags.iter().filter(|tag| !contains(&removed, tag)).cloned().collect();
        }
    }
    if let (true, Some(old), Some(new)) = (command.appends_description, &mention.description, &command.description) {
        command.description = Some(format!("{old}\n{new}"));
    }
    command
}

/// Returns the new due date, or `None` if it does not change. `due` is the current one. "two days later" shifts it, and
/// "at 5pm" keeps its day. A new day keeps its time of day. Without a readable current date, the result is
/// `command.when`, which is relative to now. This also holds if a date without a time is shifted by minutes. Returns
/// `None` if a shift overflows.
fn new_due_date(policy: &OfflinePolicy<'_>, command: &ParsedCommand, due: Option<&str>) -> Option<DayOrTime> {
    let zone = policy.prompt.request.now.time_zone();
    let due = due.and_then(|due| DueDate::parse("due_date", due, zone).ok());
    let from_now = command.when;
    let (day, time) = match due {
        None => return from_now,
        Some(DueDate::Day(day)) => (day, None),
        Some(DueDate::Moment { at, .. }) => {
            let local = at.to_zoned(zone.clone()).datetime();
            (local.date(), Some(local.time()))
        }
    };
    if let Some(DateShift { months, days, minutes }) = command.shift {
        let span = months.months().days(days);
        return match time {
            Some(time) => {
                let moved = day.to_datetime(time).checked_add(span.minutes(minutes)).ok()?;
                Some(DayOrTime::Time(moved))
            }
            // A date without a time cannot be shifted by minutes.
            None if minutes != 0 => from_now,
            None => day.checked_add(span).ok().map(DayOrTime::Day),
        };
    }
    match (command.time_of_day, from_now, time) {
        (Some(clock), ..) => {
            let is_stated = fragment::states_half_of_day(&policy.prompt.request.message);
            let clock = if is_stated { clock } else { due_times::keep_half_of_day(clock, time) };
            Some(DayOrTime::Time(day.to_datetime(clock)))
        }
        (None, Some(DayOrTime::Day(new)), Some(time)) => Some(DayOrTime::Time(new.to_datetime(time))),
        _ => from_now,
    }
}
