//! The offline language engine: reads an utterance about tasks into intents, dates and slots.
//!
//! Pure: the same text at the same time gives the same reading; nothing here waits, reads a file or takes the time.

mod attributes;
mod bullets;
mod carried;
mod clause;
mod command;
mod correct;
mod courtesy;
mod create;
mod dates;
mod details;
mod expression;
mod filter;
mod intent;
mod json;
mod labels;
mod lexicon;
mod margins;
mod numbers;
mod phrases;
mod reader;
mod reading;
mod scope;
mod several;
mod spelling;
mod split;
mod subject;
mod target;
mod tense;
mod timing;
mod tokens;
#[doc(hidden)]
pub mod training;
mod update;

pub use expression::{Expression, Grain};
pub use reader::{Order, Reader};
pub use reading::{
    Command, DueFilter, Field, Filter, Intent, Missing, Reading, Shift, StatusFilter, Tagging, Target, When,
};

use std::ops::Range;

use clause::Clause;
use tokens::Words;

/// [`Reader::read`] with the month first in numeric dates.
pub fn read(text: &str, now: &jiff::Zoned) -> Reading {
    Reader::default().read(text, now)
}

/// [`Reader::read_as_tasks`] with the month first in numeric dates.
pub fn read_as_tasks(text: &str, now: &jiff::Zoned) -> Reading {
    Reader::default().read_as_tasks(text, now)
}

/// [`Reader::expressions`] with the month first in numeric dates.
pub fn expressions(text: &str, now: &jiff::Zoned) -> Vec<Expression> {
    Reader::default().expressions(text, now)
}

/// What the commands are and how likely each was meant.
pub(crate) fn reading(words: &Words, now: &jiff::Zoned) -> Reading {
    let mut reading = commands(words, now);
    for command in &mut reading.commands {
        command.implied = command.confidence < command::IMPLIED;
        let likelihood = command.likelihood.take().filter(|_| !command.filter.unsupported);
        let confidence = likelihood.unwrap_or(command.confidence);
        command.confidence = (confidence * 1000.0).round() / 1000.0;
    }
    reading
}

fn commands(words: &Words, now: &jiff::Zoned) -> Reading {
    if let Some((intent, items)) = bullets::items(words) {
        let item = |range| command::item(&mut Clause::new(words, range, now), intent);
        let commands = items.into_iter().map(item).collect();
        return Reading { commands };
    }
    let clauses = split::clauses(words);
    let mut commands: Vec<Command> = Vec::with_capacity(clauses.len());
    let mut remark = None;
    for range in clauses {
        let mut command = command::read(&mut Clause::new(words, range.clone(), now));
        if let Some(start) = remark {
            if let Some(joined) = with_remark(words, start..range.end, &command, now) {
                commands.pop();
                command = joined;
            }
            name_by_remark(words, start..range.start, &mut command, now);
        }
        // "add milk", and on the next line "- eggs".
        let listed = commands.last().is_some_and(|last| last.intent == Intent::CreateTask);
        if command.intent == Intent::Unknown && listed && bullets::is_item(words, range.start) {
            command = command::item(&mut Clause::new(words, range.clone(), now), Intent::CreateTask);
        }
        if let Some(carried) = carried::read(words, range.clone(), &command, now) {
            remark = None;
            commands.extend(carried);
            continue;
        }
        remark = is_remark(&command).then_some(range.start);
        add(&mut commands, command);
    }
    if commands.iter().any(|command| command.intent == Intent::CreateTask && command.confidence > command::GUESS) {
        commands.retain(|command| command.intent != Intent::CreateTask || command.confidence > command::NEED);
    }
    // A greeting or a remark beside a command is no command of its own.
    if commands.iter().any(|command| command.intent != Intent::Unknown) {
        commands.retain(|command| command.intent != Intent::Unknown);
    } else if commands.len() > 1 {
        let whole = command::read(&mut Clause::new(words, 0..words.len(), now));
        commands = vec![whole];
    }
    Reading { commands }
}

/// What may be the title of a reminder that is asked for afterwards: "I have to see the vet. Remind me."
fn is_remark(command: &Command) -> bool {
    command.intent == Intent::Unknown || command.intent == Intent::CreateTask && command.confidence <= command::GUESS
}

/// A command that lacks its title or what is to change, read together with the remark before it.
fn with_remark(words: &Words, range: Range<usize>, command: &Command, now: &jiff::Zoned) -> Option<Command> {
    let change = command.intent == Intent::UpdateTask && command::says_nothing(command);
    if command.missing != Some(Missing::Title) && !change {
        return None;
    }
    let joined = command::read(&mut Clause::new(words, range, now));
    let fits =
        joined.intent == command.intent && (joined.missing.is_none() || change && !command::says_nothing(&joined));
    (fits && matches!(joined.intent, Intent::CreateTask | Intent::UpdateTask)).then_some(joined)
}

/// "The party is off. Delete that reminder.": the remark says which one.
fn name_by_remark(words: &Words, range: Range<usize>, command: &mut Command, now: &jiff::Zoned) {
    let unnamed = command.target == Some(Target::It) || command.missing == Some(Missing::Target);
    if !unnamed || matches!(command.intent, Intent::CreateTask | Intent::ListTasks | Intent::Unknown) {
        return;
    }
    let mut clause = Clause::new(words, range.clone(), now);
    let start = clause.opening;
    let named = subject::read(&mut clause, start..range.end);
    command::name(command, named);
}

/// "I sold the bike, so delete that task": what seemed to be news of a task is why the command is given, and names it.
fn is_reason(last: &Command, command: &Command) -> bool {
    let pointed = command.target == Some(Target::It) || command.missing == Some(Missing::Target);
    let guessed = last.intent == Intent::CompleteTask && last.confidence < 0.7;
    guessed && pointed && matches!(command.intent, Intent::DeleteTask | Intent::UpdateTask | Intent::CompleteTask)
}

/// Adds a command. A clause that says only when ("Yearly.") completes the task before it, and a second change of the
/// same task ("… and make it urgent") the first.
fn add(commands: &mut Vec<Command>, mut command: Command) {
    if let Some(last) = commands.last_mut()
        && update::join(last, &command)
    {
        return;
    }
    if let Some(reason) = commands.pop_if(|last| is_reason(last, &command)) {
        command.target = reason.target;
        command.missing = command.missing.filter(|missing| *missing != Missing::Target);
    }
    if let Some(last) = commands.last_mut().filter(|last| last.intent == Intent::CreateTask)
        && command.intent == Intent::Unknown
        && command.confidence < command::DATE_ONLY
    {
        last.when = last.when.or(command.when);
        last.recurrence = last.recurrence.take().or(command.recurrence.clone());
    }
    commands.push(command);
}

#[cfg(test)]
mod tests;
