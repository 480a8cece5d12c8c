//! Runs each command of a message and returns the sentence about it.
//!
//! Commands take effect through tool calls. A function fails with the first call that has no result yet. The agent loop
//! makes that call and runs all commands again. A refused call leads to the sentence of [`refused`], and a held call to
//! none.

mod arguments;
mod create;
mod list;
mod update;

use model::task::TaskStatus;
use serde_json::{Value, json};
use tools::answer::NOT_FOUND;
use tools::{ToolArguments, ToolKind};
use understand::{CommandFilter, Intent, MissingSlot, ParsedCommand, StatusFilter, TaskTarget};

use arguments::task_argument;
pub(super) use arguments::time_text;
pub(super) use list::list;
use list::{filters, with_known_tag};

use super::lookup::{LookupResult, StatusPreference, find};
use super::{CallResult, OfflinePolicy, PendingCall, follow_up, reminders, small_talk};
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
        Intent::CreateTask => create::create(policy, command),
        Intent::ListTasks => list(policy, command),
        Intent::ListReminders => reminders::list(policy, command),
        Intent::CompleteTask => complete(policy, command, *pick),
        Intent::DeleteTask => delete(policy, command, *pick),
        Intent::UpdateTask => update::update(policy, resolved),
        Intent::SnoozeReminder => reminders::snooze(policy, resolved),
        Intent::CancelReminder => reminders::cancel(policy, resolved),
        Intent::UpdateReminder => reminders::change(policy, resolved),
        Intent::ScheduleReminder => remind(policy, command, *pick),
        Intent::Undo => undo(policy),
        Intent::ClarificationNeeded => Ok(Some(wording::missing(MissingSlot::Target))),
        Intent::Unknown => Ok(Some(small_talk::answer(&policy.prompt))),
    }
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
