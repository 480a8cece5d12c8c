//! The offline language engine: reads an utterance about tasks into intents, dates and slots.
//!
//! Pure: the same text at the same time gives the same reading; nothing here waits, reads a file or takes the time.

mod attributes;
mod bullets;
mod clause;
mod command;
mod courtesy;
mod create;
mod dates;
mod filter;
mod intent;
mod json;
mod lexicon;
mod numbers;
mod phrases;
mod reading;
mod scope;
mod several;
mod spelling;
mod split;
mod target;
mod timing;
mod tokens;
mod update;

pub use reading::{Command, DueFilter, Field, Filter, Intent, Missing, Reading, Shift, StatusFilter, Target, When};

use std::ops::Range;

use clause::Clause;
use tokens::Words;

/// Reads an utterance: what its commands are, in order. Dates are those of the zone of `now`.
pub fn read(text: &str, now: &jiff::Zoned) -> Reading {
    commands(&Words::new(text), now)
}

/// [`read`] for who knows the tasks there are: a sentence that names things of other trades ("delete email Bob") is read
/// as if it named a task. Whether it does, only a look at the tasks can tell.
pub fn read_as_tasks(text: &str, now: &jiff::Zoned) -> Reading {
    let mut words = Words::new(text);
    words.of_tasks = true;
    commands(&words, now)
}

fn commands(words: &Words, now: &jiff::Zoned) -> Reading {
    if let Some((intent, items)) = bullets::items(words) {
        let item = |range| command::item(&mut Clause::new(words, range, now), intent);
        let commands = items.into_iter().map(item).collect();
        return Reading { commands };
    }
    let mut commands: Vec<Command> = Vec::new();
    let mut remark = None;
    for range in split::clauses(words) {
        let mut command = command::read(&mut Clause::new(words, range.clone(), now));
        if let Some(joined) = remark.and_then(|start| with_remark(words, start..range.end, &command, now)) {
            commands.pop();
            command = joined;
        }
        // "add milk", and on the next line "- eggs".
        let listed = commands.last().is_some_and(|last| last.intent == Intent::CreateTask);
        if command.intent == Intent::Unknown && listed && bullets::is_item(words, range.start) {
            command = command::item(&mut Clause::new(words, range.clone(), now), Intent::CreateTask);
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

/// A command that lacks its title, read together with the remark before it.
fn with_remark(words: &Words, range: Range<usize>, command: &Command, now: &jiff::Zoned) -> Option<Command> {
    if command.missing != Some(Missing::Title) {
        return None;
    }
    let joined = command::read(&mut Clause::new(words, range, now));
    (joined.intent == Intent::CreateTask && joined.missing.is_none()).then_some(joined)
}

/// "I sold the bike, so delete that task": what seemed to be news of a task is why the command is given, and names it.
fn is_reason(last: &Command, command: &Command) -> bool {
    let pointed = command.target == Some(Target::It) || command.missing == Some(Missing::Target);
    let guessed = last.intent == Intent::CompleteTask && last.confidence < 0.7;
    guessed && pointed && matches!(command.intent, Intent::DeleteTask | Intent::UpdateTask | Intent::CompleteTask)
}

/// Adds a command. A clause that says only when ("Yearly.") completes the task before it.
fn add(commands: &mut Vec<Command>, mut command: Command) {
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
