//! Runs each command of a message and returns the sentence about it.
//!
//! Commands take effect through tool calls. A function fails with the first call that has no result yet. The agent loop
//! makes that call and runs all commands again. A refused call leads to the sentence of [`refused`], and a held call to
//! none.

use jiff::civil::DateTime;
use jiff::{ToSpan, Unit, Zoned};
use model::due::DueDate;
use model::recurrence::{Frequency, RecurrenceRule};
use model::task::TaskStatus;
use model::words;
use redact::MARK;
use serde_json::{Value, json};
use tools::answer::NOT_FOUND;
use tools::{ToolArguments, ToolKind, ToolSpec};
use understand::{
    ClearableField, CommandFilter, DateShift, DayOrTime, DueFilter, Intent, MissingSlot, ParsedCommand, StatusFilter,
    TagOperation, TaskTarget,
};

use super::lookup::{LookupResult, StatusPreference, current, find};
use super::{
    CallResult, OfflinePolicy, PendingCall, continuation, follow_up, fragment, limited_tools, questions, reminders,
    small_talk, task_words, titles,
};
use crate::mentions::TaskMention;
use crate::wording;

/// The sentence about a command. `None` if the agent loop asks for a confirmation instead.
pub(super) type CommandReply = Result<Option<String>, PendingCall>;

/// Runs a command and returns its sentence. A missing slot, or an unclear intent, leads to a question. An unknown
/// intent is answered as small talk. Fails with the next tool call if its result is not known yet.
pub(super) fn run(policy: &mut OfflinePolicy<'_>, resolved: &follow_up::ResolvedCommand) -> CommandReply {
    let follow_up::ResolvedCommand { command, pick, .. } = resolved;
    if let Some(mention) = &resolved.mention {
        policy.last = Some(mention.clone());
    }
    if let Some(missing) = command.missing {
        return Ok(Some(wording::missing(missing)));
    }
    match command.intent {
        Intent::CreateTask => create(policy, command),
        Intent::ListTasks => list(policy, command),
        Intent::ListReminders => reminders::list(policy, command),
        Intent::CompleteTask => complete(policy, command, *pick),
        Intent::DeleteTask => delete(policy, command, *pick),
        Intent::UpdateTask => update(policy, resolved),
        Intent::SnoozeReminder => reminders::snooze(policy, resolved),
        Intent::CancelReminder => reminders::cancel(policy, resolved),
        Intent::UpdateReminder => reminders::change(policy, resolved),
        Intent::ScheduleReminder => remind(policy, command, *pick),
        Intent::Undo => undo(policy),
        Intent::ClarificationNeeded => Ok(Some(wording::missing(MissingSlot::Target))),
        Intent::Unknown => Ok(Some(small_talk::answer(&policy.prompt))),
    }
}

/// Adds a task, with medium priority unless the command has one. Asks for the title if it is missing. The reply names
/// the fields that an external tool does not support. Without a tool to add tasks, the reply is the system error. The
/// new task becomes "it".
fn create(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand) -> CommandReply {
    let command = &titles::with_clean_title(command.clone());
    if let Some(title) = command.title.as_deref().filter(|title| titles::is_no_title(title))
        && (command.implied || command.asks_reminder)
    {
        return Ok(Some(wording::unsure_about_title(title)));
    }
    if let Some(reply) = remind_of_existing(policy, command)? {
        return Ok(reply);
    }
    if let Some(reply) = moved_existing(policy, command)? {
        return Ok(reply);
    }
    let command = &with_first_date(policy, command)?;
    let Some(title) = &command.title else { return Ok(Some(wording::missing(MissingSlot::Title))) };
    let Some(spec) = policy.spec(ToolKind::Add) else { return Ok(Some(wording::system_error().to_owned())) };
    let (command, unsupported) = limited_tools::supported_command(spec, command);
    let now = policy.prompt.request.now.clone();
    let mut arguments = attributes(&command, &now);
    arguments.insert("title".to_owned(), title.as_str().into());
    arguments.entry("priority").or_insert("medium".into());
    let rings_when_due = matches!(command.when, Some(DayOrTime::Time(_)));
    if command.asks_reminder && spec.has_argument("remind_at") && !rings_when_due {
        if let Some(DayOrTime::Day(_)) = command.when {
            // At the usual time of that day, also if the day changes.
            arguments.insert("remind_before_minutes".to_owned(), json!(0));
        } else if let Some(before) = command.before {
            arguments.insert("remind_before_minutes".to_owned(), json!(i64::from(before.days) * 1440 + before.minutes));
        }
    }
    let asked_without_time = command.asks_reminder && command.when.is_none() && command.recurrence.is_none();
    Ok(match policy.call(spec, arguments)? {
        CallResult::Done(data) => {
            policy.last = TaskMention::from_task(task_of(data));
            let stored = task_words::stored_task(task_of(data), now.time_zone());
            let mut details: Vec<String> =
                stored.and_then(|task| words::task_sentence(&task, &now)).into_iter().collect();
            let ring = reminders::ring_words(&data["reminder"], &now);
            details.extend(ring.map(|when| format!("I'll remind you {when}.")));
            if asked_without_time && data["reminder"].is_null() {
                details.push(wording::no_reminder_time().to_owned());
                let title = title_of(data, title);
                return Ok(Some(wording::with_unsupported_fields(
                    wording::created_and_asks(title, &details),
                    &unsupported,
                )));
            }
            if (command.asks_reminder || rings_when_due) && !policy.prompt.has_worker {
                details.push(wording::no_server_rings().to_owned());
            }
            Some(wording::with_unsupported_fields(wording::created(title_of(data, title), &details), &unsupported))
        }
        other => refused(other, title),
    })
}

/// Sets a reminder for an existing task, if the command asks to be reminded about one: "remind me about the lawn at 5".
/// Returns `None` if it adds a task.
fn remind_of_existing(
    policy: &mut OfflinePolicy<'_>,
    command: &ParsedCommand,
) -> Result<Option<Option<String>>, PendingCall> {
    let event = command.before_target.as_ref().filter(|_| command.title.is_none());
    let about = command.title.as_ref().filter(|_| command.is_about || command.before.is_some());
    if !command.asks_reminder {
        return Ok(None);
    }
    let target = match (event, about) {
        (Some(event), _) => event.clone(),
        (None, Some(title)) if command.before_target.is_none() => TaskTarget::Named(title.clone()),
        (None, None) if command.title.is_none() && (command.before.is_some() || command.when.is_some()) => {
            TaskTarget::It
        }
        _ => return Ok(None),
    };
    let found = find(policy, &target, StatusPreference::Open, None)?;
    Ok(match single_task(found) {
        Ok(mention) => Some(reminders::schedule(policy, command, &mention)?),
        // A name without a task is a new task, unless the reminder depends on it.
        Err(NoSingleTask::Reply(text)) if command.title.is_none() || text.contains("Which one") => Some(Some(text)),
        Err(_) => None,
    })
}

/// Moves an existing task, if a command that only implies a new task names one and a date: "put the review at 4pm".
/// Returns `None` if it adds a task.
fn moved_existing(
    policy: &mut OfflinePolicy<'_>,
    command: &ParsedCommand,
) -> Result<Option<Option<String>>, PendingCall> {
    let Some(title) = command.title.as_deref().filter(|_| command.implied && command.when.is_some()) else {
        return Ok(None);
    };
    let name = ["put ", "set ", "do ", "schedule "].iter().find_map(|verb| title.strip_prefix(verb)).unwrap_or(title);
    if name.split_whitespace().count() > 6 {
        return Ok(None);
    }
    let Some(mention) = continuation::named_task(policy, name)? else { return Ok(None) };
    if mention.completed {
        return Ok(None);
    }
    let moved = ParsedCommand {
        title: None,
        priority: None,
        target: Some(TaskTarget::It),
        intent: Intent::UpdateTask,
        ..command.clone()
    };
    policy.last = Some(mention);
    update(policy, &follow_up::ResolvedCommand::new(moved)).map(Some)
}

/// Returns the command with a due date where its words imply one: the first occurrence of a repetition, or the time
/// before another task.
fn with_first_date(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand) -> Result<ParsedCommand, PendingCall> {
    let mut command = command.clone();
    let now = policy.prompt.request.now.clone();
    if let (Some(before), Some(target), None) = (command.before, command.before_target.clone(), command.when)
        && let LookupResult::One(event) = find(policy, &target, StatusPreference::Open, None)?
    {
        let event = current(policy, event)?;
        command.when = event.due.as_deref().and_then(|due| reminders::time_before(&before, due, &now));
        command.before = None;
    }
    if command.when.is_none()
        && command.asks_reminder
        && let Some(rule) = command.recurrence.as_deref().and_then(|rule| RecurrenceRule::parse(rule).ok())
    {
        let step = match rule.frequency {
            Frequency::Minutely => Some(rule.interval.minutes()),
            Frequency::Hourly => Some(rule.interval.hours()),
            _ => None,
        };
        command.when = step.and_then(|step| {
            let first = now.datetime().checked_add(step).ok()?;
            Some(DayOrTime::Time(first.round(Unit::Minute).unwrap_or(first)))
        });
    }
    Ok(command)
}

/// Lists tasks, only open ones by default. Tasks of an external list are filtered by status here. Without any task and
/// without a filter, the reply is that everything is done, or that there are no tasks. If an external list does not
/// support a filter, the reply starts with a note and shows the list without it. Without a list tool, the reply is the
/// system error.
pub(super) fn list(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand) -> CommandReply {
    let Some(spec) = policy.spec(ToolKind::List) else { return Ok(Some(wording::system_error().to_owned())) };
    let filter = match spec.is_built_in() {
        true => command.filter.clone(),
        false => limited_tools::supported_filter(spec, &command.filter, policy.prompt.request.now.date()),
    };
    let filter = with_known_tag(policy, filter)?;
    let arguments = filters(spec, &filter);
    let data = match policy.call(spec, arguments)? {
        CallResult::Done(data) => data,
        other => return Ok(refused(other, "")),
    };
    let status = filter.status.unwrap_or(StatusFilter::Pending);
    let has_status = |task: &&Value| match status {
        // The built-in tool has filtered already. An external list may ignore the status.
        _ if spec.is_built_in() => true,
        StatusFilter::All => true,
        StatusFilter::Pending => task["status"] != "completed",
        StatusFilter::Completed => task["status"] == "completed",
    };
    let tasks: Vec<&Value> = data["tasks"].as_array().into_iter().flatten().filter(has_status).collect();
    let is_unfiltered = CommandFilter { status: None, ..filter.clone() } == CommandFilter::default();
    if tasks.is_empty() && is_unfiltered && filter.status != Some(StatusFilter::Completed) {
        return none_open(policy, spec, &filter);
    }
    let lines: Vec<_> = tasks.iter().map(|task| task_words::list_line(task, &policy.prompt.request.now)).collect();
    let total = data["total"].as_u64().and_then(|total| usize::try_from(total).ok()).filter(|_| spec.is_built_in());
    let total = total.unwrap_or(tasks.len());
    let described = &filter;
    let list = wording::list(&lines, total, described);
    Ok(Some(if filter.unsupported { format!("{}\n{list}", wording::unfiltered()) } else { list }))
}

/// Returns the reply to a list without a filter that is empty. A second call for all tasks distinguishes "everything is
/// done" from "no tasks yet". It is not made if the list already had all tasks. A failed call counts as no tasks.
fn none_open(policy: &mut OfflinePolicy<'_>, spec: &ToolSpec, filter: &CommandFilter) -> CommandReply {
    if filter.status == Some(StatusFilter::All) {
        return Ok(Some(wording::no_tasks()));
    }
    let everything = ToolArguments::from_iter([("status".to_owned(), json!("all"))]);
    let any = match policy.call(spec, everything)? {
        CallResult::Done(data) => data["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty()),
        CallResult::Refused(..) | CallResult::Held => false,
    };
    Ok(Some(if any { wording::all_done() } else { wording::no_tasks() }))
}

/// Completes the named task, or several tasks with one call. If the command names none or all, completes those that
/// match its filter. Open tasks are preferred. A task that is already completed leads to a reply without a call.
/// Without a tool to complete a task, updates its status. Without either, the reply is the system error. No match or an
/// ambiguous name leads to a reply.
fn complete(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand, pick: Option<usize>) -> CommandReply {
    let target = command.target.as_ref();
    if target == Some(&TaskTarget::All) || target.is_none() {
        return several(policy, ToolKind::CompleteSeveral, command, None);
    }
    let found = match target {
        Some(target) => find_stated(policy, target, pick)?,
        None => LookupResult::NotNamed,
    };
    let mention = match single_task(found) {
        Ok(mention) => mention,
        Err(NoSingleTask::Several(mentions)) => {
            return several(policy, ToolKind::CompleteSeveral, command, Some(mentions));
        }
        Err(NoSingleTask::Reply(text)) => return Ok(Some(text)),
    };
    if mention.completed {
        return Ok(Some(wording::already_completed(&mention.title)));
    }
    let by_update = policy.spec(ToolKind::Update).filter(|spec| spec.has_argument("status"));
    let outcome = match (policy.spec(ToolKind::Complete), by_update) {
        (Some(spec), _) => policy.call(spec, task_argument(spec, &mention))?,
        (None, Some(spec)) => {
            let mut arguments = task_argument(spec, &mention);
            arguments.insert("status".to_owned(), TaskStatus::Completed.as_str().into());
            policy.call(spec, arguments)?
        }
        (None, None) => return Ok(Some(wording::system_error().to_owned())),
    };
    Ok(reply_about(policy, outcome, &mention, wording::completed, wording::already_completed))
}

/// Finds the task of a statement: "I paid the rent". Prefers open tasks. If the whole name has no match, tries it
/// without its first word. If that has no match either, the result names the whole name.
fn find_stated(
    policy: &mut OfflinePolicy<'_>,
    target: &TaskTarget,
    pick: Option<usize>,
) -> Result<LookupResult, PendingCall> {
    let found = find(policy, target, StatusPreference::Open, pick)?;
    let (TaskTarget::Named(words), LookupResult::NoMatch(_)) = (target, &found) else { return Ok(found) };
    let Some((_, object)) = words.split_once(' ') else { return Ok(found) };
    Ok(match find(policy, &TaskTarget::Named(object.to_owned()), StatusPreference::Open, pick)? {
        LookupResult::NoMatch(_) => found,
        other => other,
    })
}

/// Deletes the named task, or several tasks with one call. If the command names none or all, deletes those that match
/// its filter. Open tasks are preferred among equally good matches. No match or an ambiguous name leads to a reply.
/// Without a tool to delete a task, the reply is the system error. The call is usually held, so that there is no reply.
fn delete(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand, pick: Option<usize>) -> CommandReply {
    let target = command.target.as_ref();
    if target == Some(&TaskTarget::All) || target.is_none() {
        return several(policy, ToolKind::DeleteSeveral, command, None);
    }
    let found = match target {
        Some(target) => find(policy, target, StatusPreference::OpenIfTied, pick)?,
        None => LookupResult::NotNamed,
    };
    let mention = match single_task(found) {
        Ok(mention) => mention,
        Err(NoSingleTask::Several(mentions)) => {
            return several(policy, ToolKind::DeleteSeveral, command, Some(mentions));
        }
        Err(NoSingleTask::Reply(text)) => return Ok(Some(text)),
    };
    let Some(spec) = policy.spec(ToolKind::Delete) else { return Ok(Some(wording::system_error().to_owned())) };
    let outcome = policy.call(spec, task_argument(spec, &mention))?;
    Ok(reply_about(policy, outcome, &mention, wording::deleted, wording::unchanged))
}

/// Completes or deletes several tasks with one call: those in `named`, or all that match the filter. Tasks in `named`
/// without an id are left out. Without any filter, completes the open tasks or deletes all tasks. Rejects an
/// unsupported filter. Without a tool of this kind, the reply asks for smaller steps. If no task matches, reports an
/// empty list.
fn several(
    policy: &mut OfflinePolicy<'_>,
    kind: ToolKind,
    command: &ParsedCommand,
    named: Option<Vec<TaskMention>>,
) -> CommandReply {
    let Some(spec) = policy.spec(kind) else { return Ok(Some(wording::too_many_calls(&[]))) };
    if command.filter.unsupported {
        return Ok(Some(wording::unsupported_filter()));
    }
    let arguments = match &named {
        Some(mentions) => {
            let ids: Vec<_> = mentions.iter().filter_map(|mention| mention.id.clone()).collect();
            let key = if spec.has_argument("todo_ids") { "todo_ids" } else { "task_ids" };
            ToolArguments::from_iter([(key.to_owned(), json!(ids))])
        }
        None => {
            let mut filter = with_known_tag(policy, command.filter.clone())?;
            // "delete all my tasks" includes completed tasks.
            if filter == CommandFilter::default() {
                let all = kind == ToolKind::DeleteSeveral;
                filter.status = Some(if all { StatusFilter::All } else { StatusFilter::Pending });
            }
            filters(spec, &filter)
        }
    };
    Ok(match policy.call(spec, arguments)? {
        CallResult::Done(data) => {
            let count = data["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
            let now = &policy.prompt.request.now;
            Some(match kind {
                ToolKind::CompleteSeveral => wording::with_due_again(wording::completed_several(count), data, now),
                _ => wording::deleted_several(count),
            })
        }
        CallResult::Refused(NOT_FOUND, _) => Some(wording::list(&[], 0, &command.filter)),
        other => refused(other, ""),
    })
}

/// Changes one task. Prefers completed tasks if the command reopens one, else open tasks among equally good matches.
/// Several equally good matches lead to a question, unless `pick` selects one. Several named tasks are rejected.
/// Without a change, asks for it, or names the unsupported fields.
///
/// Reads the task again if a new value depends on the current one. The reply has the title that the user knows, unless
/// it was redacted. Without a tool to update tasks, the reply is the system error.
fn update(policy: &mut OfflinePolicy<'_>, resolved: &follow_up::ResolvedCommand) -> CommandReply {
    let command = &resolved.command;
    let prefer = if command.status == Some(TaskStatus::Pending) {
        StatusPreference::Completed
    } else {
        StatusPreference::OpenIfTied
    };
    let moved = with_part_of_day(policy, resolved);
    let resolved = moved.as_ref().unwrap_or(resolved);
    let command = &resolved.command;
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

/// Reads "to the afternoon" as a time of the same day. Returns `None` if the message names a day, too.
fn with_part_of_day(
    policy: &OfflinePolicy<'_>,
    resolved: &follow_up::ResolvedCommand,
) -> Option<follow_up::ResolvedCommand> {
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
        let day = mention.due.as_deref().and_then(|due| continuation::due_parts(due, now.time_zone()));
        when = day.map(|(day, _)| DayOrTime::Day(day)).or(when);
    }
    let command = &ParsedCommand { when, ..amended(command, mention) };
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

/// Replaces the search text of a filter by a tag of this name, if an open task has one: "all uni tasks". Removes a text
/// that says nothing, such as "stuff".
fn with_known_tag(policy: &mut OfflinePolicy<'_>, mut filter: CommandFilter) -> Result<CommandFilter, PendingCall> {
    let Some(text) = filter.text.clone() else { return Ok(filter) };
    let plain = text.to_lowercase();
    if matches!(plain.as_str(), "stuff" | "things" | "ones" | "jobs" | "thats" | "items" | "list") {
        filter.text = None;
        return Ok(filter);
    }
    let word = plain.trim_end_matches(" stuff").trim_end_matches(" things").trim_end_matches(" ones");
    if !word.contains(' ')
        && let Some(tag) = questions::known_tag(policy, word)?
    {
        filter.text = None;
        filter.tags.push(tag);
    }
    Ok(filter)
}

/// Changes all open tasks that match the filter of the command, with one call.
fn update_filtered(policy: &mut OfflinePolicy<'_>, resolved: &follow_up::ResolvedCommand) -> CommandReply {
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
    resolved: &follow_up::ResolvedCommand,
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

/// Returns `true` if the new values depend on the current values of the task.
fn needs_current_task(command: &ParsedCommand, drops_time: bool) -> bool {
    command.shift.is_some()
        || command.when.is_some()
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
            let clock = if is_stated { clock } else { continuation::keep_half_of_day(clock, time) };
            Some(DayOrTime::Time(day.to_datetime(clock)))
        }
        (None, Some(DayOrTime::Day(new)), Some(time)) => Some(DayOrTime::Time(new.to_datetime(time))),
        _ => from_now,
    }
}

/// Schedules a reminder for one task, preferably an open one. Asks for the time if there is none, or only a day. A
/// repetition alone starts after one interval. The time is rounded to seconds. Several named tasks are rejected. No
/// match or an ambiguous name leads to a reply. Without a tool for reminders, the reply is the system error.
fn remind(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand, pick: Option<usize>) -> CommandReply {
    let found = match &command.target {
        Some(target) => find(policy, target, StatusPreference::Open, pick)?,
        None => LookupResult::NotNamed,
    };
    let mention = match single_task(found) {
        Ok(mention) => mention,
        Err(NoSingleTask::Several(_)) => return Ok(Some(wording::one_at_a_time())),
        Err(NoSingleTask::Reply(text)) => return Ok(Some(text)),
    };
    reminders::schedule(policy, command, &mention)
}

/// Undoes the last change. The reply names a single task, and has only the number of several tasks. It reports that
/// there is no change, or that the tools do not support it. Any other failure, and a held call, becomes the system
/// error.
fn undo(policy: &mut OfflinePolicy<'_>) -> CommandReply {
    let Some(spec) = policy.spec(ToolKind::Undo) else { return Ok(Some(wording::cannot_undo())) };
    Ok(Some(match policy.call(spec, ToolArguments::new())? {
        CallResult::Done(data) => {
            let titles: Vec<_> =
                data["tasks"].as_array().into_iter().flatten().map(|task| title_of(task, "")).collect();
            wording::undone(data["undone"].as_str().unwrap_or_default(), &titles)
        }
        CallResult::Refused(NOT_FOUND, _) => wording::nothing_to_undo(),
        CallResult::Refused(..) | CallResult::Held => wording::system_error().to_owned(),
    }))
}

/// The reason why a lookup did not find exactly one task.
enum NoSingleTask {
    Several(Vec<TaskMention>),
    /// The reply to the user.
    Reply(String),
}

/// Returns the task that a lookup found. Fails with the tasks if it found several. Otherwise fails with the reply: a
/// question about an ambiguous or missing name, no match, or the system error if the lookup failed.
fn single_task(found: LookupResult) -> Result<TaskMention, NoSingleTask> {
    match found {
        LookupResult::One(mention) => Ok(mention),
        LookupResult::Several(mentions) => Err(NoSingleTask::Several(mentions)),
        LookupResult::Ambiguous(query, options) => {
            let titles: Vec<_> = options.iter().map(|option| option.title.as_str()).collect();
            Err(NoSingleTask::Reply(wording::ambiguous(&query, &titles)))
        }
        LookupResult::NoMatch(query) => Err(NoSingleTask::Reply(wording::not_found(&query))),
        LookupResult::NotNamed => Err(NoSingleTask::Reply(wording::missing(MissingSlot::Target))),
        LookupResult::Failed => Err(NoSingleTask::Reply(wording::system_error().to_owned())),
    }
}

/// Returns the sentence about a call for a single task, or `None` if the call is held. `unchanged` formats the title if
/// the result has `changed: false`, else `sentence` does. A completed recurring task adds its next due date. A refused
/// call is reported by [`refused`]. Sets the task that "it" refers to: the next occurrence, else the task of the
/// result, else `mention`.
fn reply_about(
    policy: &mut OfflinePolicy<'_>,
    outcome: CallResult<'_>,
    mention: &TaskMention,
    sentence: impl Fn(&str) -> String,
    unchanged: fn(&str) -> String,
) -> Option<String> {
    policy.last = Some(mention.clone());
    match outcome {
        CallResult::Done(data) => {
            // After the completion of a recurring task, "it" refers to its next occurrence.
            policy.last = TaskMention::from_task(&data["next_task"])
                .or(TaskMention::from_task(task_of(data)))
                .or(policy.last.take());
            let title = title_of(data, &mention.title);
            let text = if data["changed"] == false { unchanged(title) } else { sentence(title) };
            Some(wording::with_due_again(text, data, &policy.prompt.request.now))
        }
        other => refused(other, &mention.title),
    }
}

/// Returns the sentence about a refused call, or `None` if the call is held. `name` is the task that was not found. The
/// message of a validation error or a quota is shown. Any other error becomes the system error.
pub(super) fn refused(outcome: CallResult<'_>, name: &str) -> Option<String> {
    match outcome {
        CallResult::Held => None,
        CallResult::Refused(NOT_FOUND, _) => Some(wording::not_found(name)),
        CallResult::Refused(tools::answer::VALIDATION_ERROR, message) => Some(wording::refused(message)),
        CallResult::Refused(tools::answer::LIMIT_REACHED, message) => Some(wording::limit_reached(message)),
        CallResult::Refused(..) | CallResult::Done(_) => Some(wording::system_error().to_owned()),
    }
}

pub(super) fn task_of(data: &Value) -> &Value {
    data.get("task").unwrap_or(data)
}

fn title_of<'v>(data: &'v Value, fallback: &'v str) -> &'v str {
    data["title"].as_str().or(data["task"]["title"].as_str()).unwrap_or(fallback)
}

/// Returns the argument that identifies a task.
fn task_argument(spec: &ToolSpec, mention: &TaskMention) -> ToolArguments {
    let id = mention.id.clone().unwrap_or_default();
    ToolArguments::from_iter([(spec.task_id_argument().to_owned(), id)])
}

/// Returns the arguments for the description, due date, priority, recurrence and tags of a command. Slots without a
/// value and empty tags are left out. So are the title, the status and cleared fields.
fn attributes(command: &ParsedCommand, now: &Zoned) -> ToolArguments {
    let mut arguments = ToolArguments::new();
    let mut put = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.to_owned(), value)));
    put("description", command.description.as_deref().map(Value::from));
    put("due_date", command.when.map(|when| due_text(when, now).into()));
    put("priority", command.priority.map(|priority| priority.as_str().into()));
    put("recurrence", command.recurrence.as_deref().map(Value::from));
    put("tags", Some(json!(command.tags)).filter(|_| !command.tags.is_empty()));
    arguments
}

fn due_text(when: DayOrTime, now: &Zoned) -> String {
    match when {
        DayOrTime::Day(day) => day.to_string(),
        DayOrTime::Time(time) => time_text(time, now),
    }
}

/// Formats a local time, usually without an offset. A time can occur twice at the end of daylight saving time. If the
/// first occurrence has passed and the second has not, the result has the offset of the second.
pub(super) fn time_text(time: DateTime, now: &Zoned) -> String {
    let ambiguous = now.time_zone().to_ambiguous_zoned(time);
    let earlier = ambiguous.clone().earlier().ok();
    let later = ambiguous.later().ok().filter(|later| later.datetime() == time && later > now);
    match (earlier, later) {
        (Some(earlier), Some(later)) if earlier <= *now => later.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        _ => time.to_string(),
    }
}

/// Returns the arguments for a filter. Parts that are not set are left out. The text is also left out if the tool has
/// no argument `query`.
fn filters(spec: &ToolSpec, filter: &CommandFilter) -> ToolArguments {
    let mut arguments = ToolArguments::new();
    let mut put = |name: &str, value: Option<Value>| arguments.extend(value.map(|value| (name.to_owned(), value)));
    put(
        "status",
        filter.status.map(|status| match status {
            StatusFilter::Pending => "pending".into(),
            StatusFilter::Completed => "completed".into(),
            StatusFilter::All => "all".into(),
        }),
    );
    put("priority", filter.priority.map(|priority| priority.as_str().into()));
    put(
        "due_date_filter",
        filter.due.map(|due| match due {
            DueFilter::Today => "today".into(),
            DueFilter::Tomorrow => "tomorrow".into(),
            DueFilter::ThisWeek => "this_week".into(),
            DueFilter::Overdue => "overdue".into(),
            DueFilter::Day(day) => day.to_string().into(),
            DueFilter::Between(first, last) => DueFilter::format_range(first, last).into(),
        }),
    );
    put("tags", Some(json!(filter.tags)).filter(|_| !filter.tags.is_empty()));
    put("query", filter.text.as_deref().map(Value::from).filter(|_| spec.has_argument("query")));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_local_times_resolve_to_the_future() {
        let formatted = |now: &str, time: &str| time_text(time.parse().unwrap(), &now.parse().unwrap());
        // In New York, 1:00 follows half an hour after 1:30.
        let first_pass = "2025-11-02T01:30:00-04:00[America/New_York]";
        assert_eq!(formatted(first_pass, "2025-11-02T01:00:00"), "2025-11-02T01:00:00-05:00");
        assert_eq!(formatted(first_pass, "2025-11-02T01:45:00"), "2025-11-02T01:45:00");
        assert_eq!(
            formatted("2025-11-01T12:00:00-04:00[America/New_York]", "2025-11-02T01:00:00"),
            "2025-11-02T01:00:00"
        );
        // A local time that does not exist is passed on unchanged.
        assert_eq!(
            formatted("2026-03-08T01:30:00-05:00[America/New_York]", "2026-03-08T02:30:00"),
            "2026-03-08T02:30:00"
        );
    }
}
