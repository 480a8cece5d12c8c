//! Turns an utterance into its commands: reads clause by clause, and puts together what belongs together.
//!
//! A remark beside a command is no command of its own, but it may say what the command leaves out: its title, which
//! task it is about, or when.

use std::ops::Range;

use jiff::Zoned;

use crate::bullets;
use crate::carried;
use crate::clause::Clause;
use crate::command::{self, Draft};
use crate::reading::{Command, Intent, Missing, Reading, Target};
use crate::split;
use crate::subject;
use crate::tokens::Words;
use crate::update;

pub(crate) fn read(words: &Words, now: &Zoned) -> Reading {
    let drafts = match bullets::items(words) {
        Some((intent, items)) => {
            items.into_iter().map(|range| command::item(&mut Clause::new(words, range, now), intent)).collect()
        }
        None => of_clauses(words, now),
    };
    Reading { commands: drafts.into_iter().map(Draft::finish).collect() }
}

fn of_clauses(words: &Words, now: &Zoned) -> Vec<Draft> {
    let clauses = split::clauses(words);
    let mut drafts: Vec<Draft> = Vec::with_capacity(clauses.len());
    let mut remark = None;
    for range in clauses {
        let mut draft = of_clause(words, range.clone(), now);
        if let Some(start) = remark {
            if let Some(joined) = with_remark(words, start..range.end, &draft.command, now) {
                drafts.pop();
                draft = joined;
            }
            name_by_remark(words, start..range.start, &mut draft.command, now);
        }
        if draft.command.intent == Intent::Unknown && follows_list(words, range.start, &drafts) {
            draft = command::item(&mut Clause::new(words, range.clone(), now), Intent::CreateTask);
        }
        if let Some(carried) = carried::read(words, range.clone(), &draft.command, now) {
            remark = None;
            drafts.extend(carried);
            continue;
        }
        remark = is_remark(&draft.command).then_some(range.start);
        add(&mut drafts, draft);
    }
    drop_remarks(&mut drafts);
    // Where no part is a command, the whole may be none as well, but it is one message.
    if drafts.len() > 1 && drafts.iter().all(|draft| draft.command.intent == Intent::Unknown) {
        drafts = vec![of_clause(words, 0..words.len(), now)];
    }
    drafts
}

fn of_clause(words: &Words, range: Range<usize>, now: &Zoned) -> Draft {
    command::read(&mut Clause::new(words, range, now))
}

/// "add milk", and on the next line "- eggs".
fn follows_list(words: &Words, start: usize, drafts: &[Draft]) -> bool {
    let adding = drafts.last().is_some_and(|last| last.command.intent == Intent::CreateTask);
    adding && bullets::is_item(words, start)
}

/// What may be the title of a reminder that is asked for afterwards: "I have to see the vet. Remind me."
fn is_remark(command: &Command) -> bool {
    command.intent == Intent::Unknown || command.intent == Intent::CreateTask && command.confidence <= command::GUESS
}

/// A command that lacks its title or what is to change, read together with the remark before it.
fn with_remark(words: &Words, range: Range<usize>, command: &Command, now: &Zoned) -> Option<Draft> {
    let change = command.intent == Intent::UpdateTask && update::says_nothing(command);
    if command.missing != Some(Missing::Title) && !change {
        return None;
    }
    let joined = of_clause(words, range, now);
    let complete = joined.command.missing.is_none() || change && !update::says_nothing(&joined.command);
    let fits = joined.command.intent == command.intent && complete;
    (fits && matches!(command.intent, Intent::CreateTask | Intent::UpdateTask)).then_some(joined)
}

/// "The party is off. Delete that reminder.": the remark says which one.
fn name_by_remark(words: &Words, range: Range<usize>, command: &mut Command, now: &Zoned) {
    if !is_unnamed(command) || matches!(command.intent, Intent::CreateTask | Intent::ListTasks | Intent::Unknown) {
        return;
    }
    let mut clause = Clause::new(words, range.clone(), now);
    let start = clause.opening;
    let named = subject::read(&mut clause, start..range.end);
    command::name(command, named);
}

/// Whether a command says no more than "it" about which task it means.
fn is_unnamed(command: &Command) -> bool {
    command.target == Some(Target::It) || command.missing == Some(Missing::Target)
}

/// Adds a command. A second change of the same task ("… and make it urgent") completes the first, and a clause that
/// says only when ("Yearly.") the task before it.
fn add(drafts: &mut Vec<Draft>, mut draft: Draft) {
    if let Some(last) = drafts.last_mut()
        && update::join(&mut last.command, &draft.command)
    {
        return;
    }
    if let Some(reason) = drafts.pop_if(|last| is_reason(&last.command, &draft.command)) {
        command::name(&mut draft.command, reason.command.target);
    }
    if let Some(last) = drafts.last_mut()
        && last.command.intent == Intent::CreateTask
        && draft.command.intent == Intent::Unknown
        && draft.command.confidence <= command::DATE_ONLY
    {
        last.command.when = last.command.when.or(draft.command.when);
        last.command.recurrence = last.command.recurrence.take().or(draft.command.recurrence.clone());
    }
    drafts.push(draft);
}

/// "I sold the bike, so delete that task": what seemed to be news of a task is why the command is given, and names it.
fn is_reason(last: &Command, command: &Command) -> bool {
    let told = last.intent == Intent::CompleteTask && last.confidence < command::TOLD;
    let acts = matches!(command.intent, Intent::DeleteTask | Intent::UpdateTask | Intent::CompleteTask);
    told && acts && is_unnamed(command)
}

/// Beside a command, small talk is nothing, and beside a new task that is asked for, a need is only why.
fn drop_remarks(drafts: &mut Vec<Draft>) {
    let creates =
        |draft: &Draft, above: f64| draft.command.intent == Intent::CreateTask && draft.command.confidence > above;
    if drafts.iter().any(|draft| creates(draft, command::GUESS)) {
        drafts.retain(|draft| draft.command.intent != Intent::CreateTask || creates(draft, command::NEED));
    }
    if drafts.iter().any(|draft| draft.command.intent != Intent::Unknown) {
        drafts.retain(|draft| draft.command.intent != Intent::Unknown);
    }
}
