//! Separates the commands of a message from clauses that only give a reason: "his train is later now, make it 4pm"
//! (TRUST-3). A reason can name the task of the command. All functions fail with the next tool call if its result is not
//! known yet.

use understand::{Intent, ParsedCommand, ParsedUtterance, TaskTarget};

use super::dialogue::LastExchange;
use super::follow_up::ResolvedCommand;
use super::framing::{self, Framing};
use super::matching::mentioned_tasks;
use super::{OfflinePolicy, PendingCall, anchored, continuation, due_times, fragment, lookup, titles};
use crate::mentions::TaskMention;

/// Returns the commands of a message in which some clauses are certain, and all others say nothing by themselves. Returns
/// `None` for a message with one clause, without a certain clause, or with another kind of clause.
pub(super) fn read(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<Vec<ResolvedCommand>>, PendingCall> {
    let parts = framing::clauses(&framing.body);
    // "only the hallway and the laundry then, mark those done" keeps its first clause as the reason.
    if parts.len() < 2 || parts.len() > 4 || framing.body.contains('\n') {
        return Ok(None);
    }
    let request = policy.prompt.request;
    let mut certain: Vec<CertainClause> = Vec::new();
    let mut reasons: Vec<&str> = Vec::new();
    let mut values: Vec<String> = Vec::new();
    for part in parts {
        let inner = Framing::read(part);
        let body = inner.body.as_str();
        if body.is_empty() {
            continue;
        }
        if fragment::read(body, request).is_pure() {
            values.push(body.to_owned());
            continue;
        }
        let commands = request.parser.parse(body, &request.now).commands;
        if commands.iter().all(refers_back) {
            certain.push(CertainClause { commands });
        } else if commands.iter().all(says_nothing) {
            reasons.push(part);
        } else {
            return Ok(None);
        }
    }
    // "that's tomorrow. can you reopen it" gives a reason and no date.
    let takes_back = |clause: &CertainClause| {
        clause.commands.iter().any(|command| command.intent == Intent::Undo || command.status.is_some())
    };
    if certain.iter().any(takes_back) {
        values.clear();
    }
    if certain.is_empty() && values.is_empty() || reasons.is_empty() && certain.is_empty() && values.len() < 2 {
        return Ok(None);
    }
    set_focus(policy, &reasons)?;
    let mut commands: Vec<ResolvedCommand> = Vec::new();
    if !values.is_empty() {
        let joined = Framing { body: values.join(", "), corrects: true, ..framing.clone() };
        let read = continuation::read(policy, &joined, last)?;
        let Some(read) = read else { return Ok(None) };
        commands.extend(read);
    }
    commands.extend(certain.into_iter().flat_map(|clause| clause.commands).map(ResolvedCommand::new));
    Ok(Some(commands))
}

struct CertainClause {
    commands: Vec<ParsedCommand>,
}

/// Returns true for a complete command about a task that was mentioned before: "tick it off", "undo that".
fn refers_back(command: &ParsedCommand) -> bool {
    let is_back = matches!(
        command.target,
        Some(TaskTarget::It | TaskTarget::Them | TaskTarget::Both | TaskTarget::Other | TaskTarget::Position(_))
    );
    match command.intent {
        Intent::Undo => true,
        Intent::CompleteTask
        | Intent::DeleteTask
        | Intent::UpdateTask
        | Intent::SnoozeReminder
        | Intent::CancelReminder
        | Intent::UpdateReminder => is_back && command.missing.is_none(),
        _ => false,
    }
}

/// Returns true for a clause without a command of its own: a statement, or words that only could be a task.
fn says_nothing(command: &ParsedCommand) -> bool {
    match command.intent {
        Intent::Unknown => true,
        Intent::CreateTask => command.implied && command.title.as_deref().is_none_or(titles::is_no_title),
        // "she had it", "just got back from walking rufus"
        Intent::CompleteTask => matches!(command.target, Some(TaskTarget::Named(_)) | None),
        // "only the hallway and the laundry"
        Intent::DeleteTask => command.confidence < 0.8 && matches!(command.target, Some(TaskTarget::Named(_))),
        Intent::UpdateTask => command.missing.is_some() || command.title.is_none() && command.priority.is_some(),
        _ => false,
    }
}

/// Sets what "it" and "them" refer to, if a reason names tasks by all words of their titles, or by the only ones.
fn set_focus(policy: &mut OfflinePolicy<'_>, reasons: &[&str]) -> Result<(), PendingCall> {
    for reason in reasons {
        let position = reason.trim_start_matches("the ").trim_end_matches(" one");
        if let Some(target) = continuation::position_target(position) {
            if let lookup::LookupResult::One(mention) =
                lookup::find(policy, &target, lookup::StatusPreference::Open, None)?
            {
                policy.last = Some(mention);
            }
            continue;
        }
        let all = lookup::all_tasks(policy)?;
        let open = || all.iter().filter(|task| task["status"] != "completed");
        let found = mentioned_tasks(open(), reason);
        let mentions: Vec<TaskMention> = found.into_iter().filter_map(TaskMention::from_task).collect();
        match mentions.as_slice() {
            [] => {}
            [one] => policy.last = Some(one.clone()),
            _ => {}
        }
        if mentions.len() > 1 {
            policy.named = mentions;
        } else if mentions.is_empty() {
            if let Some(mention) = anchored::mentioned(policy, reason)? {
                policy.last = Some(mention);
                continue;
            }
            let request = policy.prompt.request;
            let command = request.parser.parse(reason, &request.now).commands.into_iter().next();
            let Some(TaskTarget::Named(name)) = command.and_then(|command| command.target) else { continue };
            match lookup::find(policy, &TaskTarget::Named(name), lookup::StatusPreference::Open, None)? {
                lookup::LookupResult::One(mention) => policy.last = Some(mention),
                lookup::LookupResult::Several(mentions) => policy.named = mentions,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads the message again with the day of the task that was mentioned last, if it says "the same day" or "that day".
pub(super) fn with_known_day(policy: &OfflinePolicy<'_>) -> Option<ParsedUtterance> {
    let request = policy.prompt.request;
    let lower = request.message.to_lowercase();
    let phrases = [
        "on the day itself",
        "on the same day",
        "for the same day",
        "the same day",
        "on that day",
        "for that day",
        "that day",
        "same day",
    ];
    let phrase = phrases.iter().find(|phrase| lower.len() == request.message.len() && lower.contains(*phrase))?;
    let due = policy.last.as_ref()?.due.as_deref()?;
    let (day, _) = due_times::due_parts(due, request.now.time_zone())?;
    let at = lower.find(phrase)?;
    let text = format!("{}on {day}{}", &request.message[..at], &request.message[at + phrase.len()..]);
    Some(request.parser.parse(&text, &request.now))
}
