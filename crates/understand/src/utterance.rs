//! Parses an utterance clause by clause and merges related clauses.
//!
//! A remark next to a command is not a command. It can supply a slot that the command lacks: title, target or date. The
//! confidence of a draft is the one of the rules.

use std::ops::Range;

use jiff::Zoned;

use crate::bullets;
use crate::clause::Clause;
use crate::command::{self, CommandDraft};
use crate::intent::delete_task_colloquial::NEWS_CONFIDENCE;
use crate::parsed::{Intent, MissingSlot, ParsedCommand, ParsedUtterance, TaskTarget};
use crate::shared_verb;
use crate::split;
use crate::subject;
use crate::tokens::TokenizedText;
use crate::update;

/// Returns the commands of an utterance, at least one. A list with a heading ("add these: …") becomes one command for
/// each item, with the intent of the heading. Any other text is split into clauses. Never fails; a text without a
/// request yields one unknown command.
pub(crate) fn parse(words: &TokenizedText, now: &Zoned) -> ParsedUtterance {
    let drafts = match bullets::parse_items(words) {
        Some((intent, items)) => items
            .into_iter()
            .map(|range| command::parse_list_item(&mut Clause::new(words, range, now), intent))
            .collect(),
        None => parse_clauses(words, now),
    };
    let commands: Vec<ParsedCommand> = drafts.into_iter().map(CommandDraft::into_command).collect();
    let is_uncertain = is_uncertain(words, &commands);
    ParsedUtterance { commands, is_uncertain, ..ParsedUtterance::default() }
}

/// The number of tokens of a long message.
const MIN_LONG_TOKENS: usize = 50;

/// Returns true for a long message in which at most a third of the clauses are certain commands.
fn is_uncertain(words: &TokenizedText, commands: &[ParsedCommand]) -> bool {
    if words.len() < MIN_LONG_TOKENS || commands.iter().all(|command| command.intent == Intent::Unknown) {
        return false;
    }
    let certain =
        |command: &&ParsedCommand| command.intent != Intent::Unknown && !command.implied && command.confidence >= 0.9;
    commands.iter().filter(certain).count() * 3 <= split::split_clauses(words).len()
}

/// Parses all clauses in order. Each clause yields one command, or several if they share a verb. A command without
/// title or change is parsed again together with the remark directly before it. A command without a named target takes
/// it from that remark. An unknown clause after a new task becomes a new task if it is a bullet or a short item. Second
/// changes of the same task are merged, and remarks are dropped. If several commands remain and all are unknown, the
/// whole utterance is parsed again as one clause, and its command is the only one.
fn parse_clauses(words: &TokenizedText, now: &Zoned) -> Vec<CommandDraft> {
    let clauses = split::split_clauses(words);
    let mut drafts: Vec<CommandDraft> = Vec::with_capacity(clauses.len());
    let mut remark = None;
    for range in clauses {
        let mut draft = parse_clause(words, range.clone(), now);
        if let Some(start) = remark {
            if let Some(joined) = parse_with_remark(words, start..range.end, &draft.command, now) {
                drafts.pop();
                draft = joined;
            }
            set_target_from_remark(words, start..range.start, &mut draft.command, now);
        }
        if draft.command.intent == Intent::Unknown && follows_list(words, range.start, &drafts) {
            draft = command::parse_list_item(&mut Clause::new(words, range.clone(), now), Intent::CreateTask);
        }
        if let Some(carried) = shared_verb::parse(words, range.clone(), &draft.command, now) {
            remark = None;
            drafts.extend(carried);
            continue;
        }
        remark = is_remark(&draft.command).then_some(range.start);
        add_draft(&mut drafts, draft);
    }
    drop_remarks(&mut drafts);
    // If no clause is a command, the utterance is one message.
    if drafts.len() > 1 && drafts.iter().all(|draft| draft.command.intent == Intent::Unknown) {
        drafts = vec![parse_clause(words, 0..words.len(), now)];
    }
    drafts
}

fn parse_clause(words: &TokenizedText, range: Range<usize>, now: &Zoned) -> CommandDraft {
    command::parse(&mut Clause::new(words, range, now))
}

/// Returns true for a further item after a new task: "add milk", and on the next line "- eggs", or "add milk; eggs".
/// `start` is the first token of the item. The last draft must be a new task. See [`bullets::is_item`].
fn follows_list(words: &TokenizedText, start: usize, drafts: &[CommandDraft]) -> bool {
    let adding = drafts.last().is_some_and(|last| last.command.intent == Intent::CreateTask);
    adding && bullets::is_item(words, start)
}

/// Returns true if the command can be the title of a later reminder: "I have to see the vet. Remind me". These are
/// unknown commands, and new tasks with a confidence of at most [`command::MAX_GUESS_CONFIDENCE`].
fn is_remark(command: &ParsedCommand) -> bool {
    command.intent == Intent::Unknown
        || command.intent == Intent::CreateTask && command.confidence <= command::MAX_GUESS_CONFIDENCE
}

/// Parses `range`, the remark and the command after it, as one command. `command` is the result of the command alone.
/// Returns `None` unless it lacks its title, or is an update without a change. Also returns `None` if the result has
/// another intent or still lacks a slot. Only new tasks and updates are supported. For an update, a change suffices
/// even if another slot is missing.
fn parse_with_remark(
    words: &TokenizedText,
    range: Range<usize>,
    command: &ParsedCommand,
    now: &Zoned,
) -> Option<CommandDraft> {
    let change =
        matches!(command.intent, Intent::UpdateTask | Intent::UpdateReminder) && update::is_empty_update(command);
    if command.missing != Some(MissingSlot::Title) && !change {
        return None;
    }
    let joined = parse_clause(words, range, now);
    let complete = joined.command.missing.is_none() || change && !update::is_empty_update(&joined.command);
    let fits = joined.command.intent == command.intent && complete;
    (fits && matches!(command.intent, Intent::CreateTask | Intent::UpdateTask | Intent::UpdateReminder))
        .then_some(joined)
}

/// Sets the target of `command` from the remark in `range` before it: "The party is off. Delete that reminder". Clears
/// a missing target. Has no effect if the command names its target by more than a pronoun. Has no effect if the remark
/// names no task, and on new tasks, listings and unknown commands.
fn set_target_from_remark(words: &TokenizedText, range: Range<usize>, command: &mut ParsedCommand, now: &Zoned) {
    if !is_unnamed(command)
        || matches!(command.intent, Intent::CreateTask | Intent::ListTasks | Intent::ListReminders | Intent::Unknown)
    {
        return;
    }
    let mut clause = Clause::new(words, range.clone(), now);
    let start = clause.outer_start;
    let named = subject::parse(&mut clause, start..range.end);
    command::set_target(command, named);
}

/// Returns true if the command names its target only by a pronoun, or not at all.
fn is_unnamed(command: &ParsedCommand) -> bool {
    matches!(command.target, Some(TaskTarget::It | TaskTarget::Them)) || command.missing == Some(MissingSlot::Target)
}

/// Adds a command to `drafts`. A second change of the same task ("… and make it urgent") is merged into the last
/// command and not added. A statement of completion that is the reason for the command is removed, and the command
/// takes its target. A date on its own ("Yearly.") sets the date and repetition of the previous new task, where these
/// are empty. It is added, too.
fn add_draft(drafts: &mut Vec<CommandDraft>, mut draft: CommandDraft) {
    if let Some(last) = drafts.last_mut()
        && update::merge(&mut last.command, &draft.command)
    {
        return;
    }
    if let Some(reason) = drafts.pop_if(|last| is_reason(&last.command, &draft.command)) {
        command::set_target(&mut draft.command, reason.command.target);
    }
    if let Some(last) = drafts.last_mut()
        && last.command.intent == Intent::CreateTask
        && draft.command.intent == Intent::Unknown
        && draft.command.confidence <= command::DATE_ONLY_CONFIDENCE
    {
        last.command.when = last.command.when.or(draft.command.when);
        last.command.recurrence = last.command.recurrence.take().or(draft.command.recurrence.clone());
    }
    drafts.push(draft);
}

/// Returns true if a statement is the reason for the next command and names its target: "I sold the bike, so delete
/// that task". `last` must be a completion below [`command::REQUESTED_COMPLETION_CONFIDENCE`]. `command` must delete,
/// update or complete a task that it names only by a pronoun or not at all.
fn is_reason(last: &ParsedCommand, command: &ParsedCommand) -> bool {
    let is_statement = last.intent == Intent::CompleteTask
        && last.confidence < command::REQUESTED_COMPLETION_CONFIDENCE
        || last.intent == Intent::DeleteTask && last.confidence <= NEWS_CONFIDENCE;
    let acts = matches!(
        command.intent,
        Intent::DeleteTask
            | Intent::CancelReminder
            | Intent::UpdateTask
            | Intent::UpdateReminder
            | Intent::CompleteTask
    );
    is_statement && acts && is_unnamed(command)
}

/// Drops unknown commands if there is any other command. If a new task has a confidence above
/// [`command::MAX_GUESS_CONFIDENCE`], drops new tasks of at most [`command::NEED_CONFIDENCE`]. Never drops all
/// commands.
fn drop_remarks(drafts: &mut Vec<CommandDraft>) {
    let creates = |draft: &CommandDraft, above: f64| {
        draft.command.intent == Intent::CreateTask && draft.command.confidence > above
    };
    if drafts.iter().any(|draft| creates(draft, command::MAX_GUESS_CONFIDENCE)) {
        drafts.retain(|draft| draft.command.intent != Intent::CreateTask || creates(draft, command::NEED_CONFIDENCE));
    }
    if drafts.iter().any(|draft| draft.command.intent != Intent::Unknown) {
        drafts.retain(|draft| draft.command.intent != Intent::Unknown);
    }
}
