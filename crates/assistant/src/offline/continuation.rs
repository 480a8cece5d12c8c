//! Reads messages that make sense only after the one before: values alone ("saturday"), corrections ("no, I meant the
//! oven") and continuations ("and the roses") (TRUST-3). All functions fail with the next tool call if its result is not
//! known yet.

mod correction;
mod list;
mod reminder;
mod repeat;
mod values;

use tools::ToolKind;
use understand::{Intent, MissingSlot, ParsedCommand, TaskTarget};

pub(super) use list::last_filter;
pub(super) use values::position_target;

use super::dialogue::{LastAct, LastExchange};
use super::follow_up::ResolvedCommand;
use super::fragment::{self, Fragment};
use super::framing::{self, Framing};
use super::lookup::named_task;
use super::matching::normalize;
use super::{OfflinePolicy, PendingCall};

type ContinuationResult = Result<Option<Vec<ResolvedCommand>>, PendingCall>;

/// Returns the commands of a message that continues or corrects the last exchange, or `None` if it makes sense alone.
pub(super) fn read(policy: &mut OfflinePolicy<'_>, framing: &Framing, last: &LastExchange<'_>) -> ContinuationResult {
    let request = policy.prompt.request;
    if let LastAct::Changed(kind, _) = last.act
        && framing::clauses(&framing.body).iter().any(|part| correction::takes_back(&Framing::read(part).body, kind))
    {
        return Ok(Some(vec![ResolvedCommand::new(ParsedCommand::new(Intent::Undo, 0.9))]));
    }
    if let Some(commands) = repeat::same_for(policy, framing, last)? {
        return Ok(Some(commands));
    }
    if let Some(commands) = reminder::about_reminder(policy, framing, last)? {
        return Ok(Some(commands));
    }
    if let Some(commands) = moved_by_need(policy, &framing.body) {
        return Ok(Some(commands));
    }
    if let Some(commands) = values::tagged_by_name(policy, &framing.body)? {
        return Ok(Some(commands));
    }
    // "could you put the last two down for friday?"
    let is_undecided = policy.prompt.request.utterance.commands.iter().all(|command| command.intent == Intent::Unknown);
    if let Some(body) = ["could you ", "can you ", "would you "].iter().find_map(|lead| framing.body.strip_prefix(lead))
        && is_undecided
    {
        let values = fragment::read(body, request);
        return if values.has_values() && !values.rest.is_empty() {
            values::values_of_named_task(policy, &values)
        } else {
            Ok(None)
        };
    }
    let fragment = fragment::read(&framing.body, request);
    let is_known = is_explicit_command(policy);
    if framing.is_question && framing::asks_yes_or_no(&framing.body) {
        return Ok(None);
    }
    if let LastAct::Asked = last.act
        && !is_known
        && let Some(commands) = repeat::repeat_with_target(policy, last, correction::strip_meant(&framing.body))?
    {
        return Ok(Some(commands));
    }
    if fragment.is_pure()
        && !is_new_task(policy)
        && let Some(commands) = values::values_alone(policy, framing, last, &fragment)?
    {
        return Ok(Some(commands));
    }
    if (framing.replaces() || fragment.negated.is_some())
        && !is_known
        && let Some(commands) = correction::correction(policy, framing, last, &fragment)?
    {
        return Ok(Some(commands));
    }
    if let Some(commands) = finished_statement(policy, framing)? {
        return Ok(Some(commands));
    }
    let is_deletion =
        policy.prompt.request.utterance.commands.iter().any(|command| command.intent == Intent::DeleteTask);
    let adds_more =
        matches!(last.act, LastAct::Changed(ToolKind::Add | ToolKind::Update, _)) && framing.continues && is_deletion;
    if framing.continues
        && !framing.is_question
        && (!is_known || adds_more)
        && let Some(commands) = continuation(policy, framing, last, &fragment)?
    {
        return Ok(Some(commands));
    }
    if fragment.has_values() && !fragment.rest.is_empty() && !is_known && !framing.is_question {
        return values::values_of_named_task(policy, &fragment);
    }
    Ok(None)
}

/// Reads "everything due today needs to shift to Thursday" as a move.
fn moved_by_need(policy: &OfflinePolicy<'_>, body: &str) -> Option<Vec<ResolvedCommand>> {
    const NEEDS: [&str; 8] = [
        " needs to shift to ",
        " need to shift to ",
        " needs to move to ",
        " need to move to ",
        " needs moving to ",
        " need moving to ",
        " should move to ",
        " has to move to ",
    ];
    let request = policy.prompt.request;
    let (subject, when) = NEEDS.iter().find_map(|need| body.split_once(need))?;
    let subject = subject.rsplit(", ").next().unwrap_or(subject);
    let subject = subject.strip_prefix("so ").unwrap_or(subject);
    let commands = request.parser.parse(&format!("move {subject} to {when}"), &request.now).commands;
    let is_move = |command: &ParsedCommand| command.intent == Intent::UpdateTask && command.when.is_some();
    (!commands.is_empty() && commands.iter().all(is_move))
        .then(|| commands.into_iter().map(ResolvedCommand::new).collect())
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

/// Reads a statement that a task is done: "vacuum the car is finished". The words before the verb must name the task.
fn finished_statement(policy: &mut OfflinePolicy<'_>, framing: &Framing) -> ContinuationResult {
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
    // "first one done"
    let position = lower.strip_suffix(" done").map(|name| name.trim_start_matches("the ").trim_end_matches(" one"));
    if let Some(target) = position.and_then(position_target) {
        let done = ParsedCommand { target: Some(target), ..ParsedCommand::new(Intent::CompleteTask, 0.9) };
        return Ok(Some(vec![ResolvedCommand::new(done)]));
    }
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

/// Reads a message that continues the last change: "and raisins" adds, "and the roses" completes.
fn continuation(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
    fragment: &Fragment,
) -> ContinuationResult {
    let body = framing.body.as_str();
    let (kind, call) = match last.act {
        LastAct::Changed(kind, call) => (kind, Some(call)),
        LastAct::Held(kind) => (kind, None),
        _ => return Ok(None),
    };
    let is_deletion =
        policy.prompt.request.utterance.commands.iter().any(|command| command.intent == Intent::DeleteTask);
    match kind {
        ToolKind::Update if is_deletion && could_be_task(policy, body)? => {
            Ok(Some(vec![ResolvedCommand::new(another_task(policy, body, None))]))
        }
        ToolKind::Add => {
            if fragment.has_values()
                && let Some(commands) = values::values_of_named_task(policy, fragment)?
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
        _ if fragment.has_values() => values::values_of_named_task(policy, fragment),
        _ => {
            let again = call.and_then(|call| repeat::same_change(policy, kind, call));
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
