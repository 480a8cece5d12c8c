//! Adds tasks, and sets reminders of existing tasks that a new task only seems to repeat.

use jiff::{ToSpan, Unit};
use model::recurrence::{Frequency, RecurrenceRule};
use model::words;
use serde_json::json;
use tools::ToolKind;
use understand::{DayOrTime, Intent, MissingSlot, ParsedCommand, TaskTarget};

use super::arguments::attributes;
use super::{CommandReply, NoSingleTask, refused, single_task, task_of, title_of, update};
use crate::mentions::TaskMention;
use crate::offline::follow_up::ResolvedCommand;
use crate::offline::lookup::{LookupResult, StatusPreference, current, find, named_task};
use crate::offline::matching::normalize;
use crate::offline::{CallResult, OfflinePolicy, PendingCall, limited_tools, reminders, task_words, titles};
use crate::wording;

/// Adds a task, with medium priority unless the command has one. Asks for the title if it is missing. The reply names
/// the fields that an external tool does not support. Without a tool to add tasks, the reply is the system error. The
/// new task becomes "it".
pub(super) fn create(policy: &mut OfflinePolicy<'_>, command: &ParsedCommand) -> CommandReply {
    let command = &titles::with_clean_title(titles::with_subject(command.clone()));
    let is_explicit = !command.implied && states_addition(policy);
    let is_no_title = |title: &&str| {
        titles::is_no_title(title) && (command.implied || command.asks_reminder)
            || titles::is_doubtful(title) && (!is_explicit || command.asks_reminder)
            || title.starts_with("tell me ")
    };
    if let Some(title) = command.title.as_deref().filter(is_no_title) {
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

/// Returns true if the message says that something is to be added: "add …", "new task", "put … on my list".
fn states_addition(policy: &OfflinePolicy<'_>) -> bool {
    const WORDS: [&str; 14] = [
        "add", "new", "create", "todo", "task", "put", "note", "jot", "list", "append", "insert", "remember", "remind",
        "adding",
    ];
    normalize(&policy.prompt.request.message).split(' ').any(|word| WORDS.contains(&word))
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
        (None, Some(title)) if matches!(command.before_target, None | Some(TaskTarget::It)) => {
            TaskTarget::Named(title.clone())
        }
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
    let Some(title) = command.title.as_deref().filter(|_| command.when.is_some() && !command.asks_reminder) else {
        return Ok(None);
    };
    // "see the optician on the 12th" dates the task of this name.
    let is_same = |mention: &TaskMention| normalize(&mention.title) == normalize(title);
    if !command.implied {
        let same = if states_addition(policy) { None } else { named_task(policy, title)?.filter(is_same) };
        if same.is_none() {
            return Ok(None);
        }
    }
    let name = ["put ", "set ", "do ", "schedule "].iter().find_map(|verb| title.strip_prefix(verb)).unwrap_or(title);
    if name.split_whitespace().count() > 6 {
        return Ok(None);
    }
    let Some(mention) = named_task(policy, name)? else { return Ok(None) };
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
    update::update(policy, &ResolvedCommand::new(moved)).map(Some)
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
