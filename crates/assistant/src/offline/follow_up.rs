//! Answers to the assistant's own questions: "Which one?" – "the second". What was asked is read from the conversation.

use model::conversation::{Message, Role};
use understand::{Command, Intent, Missing, Target};

use super::matching::{meant, plain};
use super::small_talk;
use crate::{Prompt, wording};

/// A command, and which of several equally good matches is meant.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) command: Command,
    pub(super) pick: Option<usize>,
    /// Whether it is only a command if there is a task of that name.
    pub(super) if_found: bool,
}

/// What the message asks for, in the light of the question before it.
pub(super) fn commands(prompt: &Prompt<'_>) -> Vec<Wanted> {
    let history = &prompt.context.history;
    let asked = history.last().filter(|message| message.role == Role::Assistant);
    let before = history.iter().rev().find(|message| message.role == Role::User);
    if let (Some(asked), Some(before)) = (asked, before)
        && let Some(wanted) = chosen(prompt, asked, before).or_else(|| completed(prompt, asked, before))
    {
        return vec![wanted];
    }
    let (mut commands, if_found) = read(prompt);
    let words = plain(&prompt.request.message);
    if small_talk::is_consent(&prompt.request.message) || small_talk::is_refusal_of(&words) {
        commands.truncate(1);
        commands.iter_mut().for_each(|command| command.intent = Intent::Unknown);
    }
    let commands = commands.into_iter();
    commands.map(|command| Wanted { command, pick: None, if_found }).collect()
}

/// A task may be called "email Bob": beside other commands, or where there is a task of that name, it is meant.
fn read(prompt: &Prompt<'_>) -> (Vec<Command>, bool) {
    let plain = &prompt.request.reading.commands;
    // One command that was understood leaves nothing to ask.
    let joints = [",", ";", ".", "\n", " and ", " then "];
    let is_one = !joints.iter().any(|joint| prompt.request.message.contains(joint));
    if is_one && plain.iter().any(|command| command.intent != Intent::Unknown) {
        return (plain.clone(), false);
    }
    let as_tasks = prompt.request.reader.read_as_tasks(&prompt.request.message, &prompt.request.now).commands;
    let is_known = |command: &Command| command.intent != Intent::Unknown;
    let names_one = |command: &Command| {
        let changes = matches!(command.intent, Intent::CompleteTask | Intent::DeleteTask | Intent::UpdateTask);
        changes && command.missing.is_none() && matches!(command.target, Some(Target::Named(_)))
    };
    if plain.iter().any(is_known) {
        let lost = as_tasks.len() > plain.len();
        return (if lost { as_tasks } else { plain.clone() }, false);
    }
    match as_tasks.as_slice() {
        [one] if names_one(one) => (as_tasks, true),
        _ => (plain.clone(), false),
    }
}

/// "the second one", after "Which one: …?"
fn chosen(prompt: &Prompt<'_>, asked: &Message, before: &Message) -> Option<Wanted> {
    let (query, options) = wording::read_ambiguous(&asked.content)?;
    let pick = choice(&prompt.request.message, &options);
    let said = prompt.request.reading.commands.first();
    // A name that was not among those shown may still be one of them.
    let is_name =
        said.is_some_and(|said| said.intent == Intent::Unknown) && !small_talk::is_no_answer(&prompt.request.message);
    if pick.is_none() && !is_name {
        return None;
    }
    let earlier = prompt.request.reader.read(&before.content, &prompt.request.now);
    let is_it = |command: &&Command| matches!(&command.target, Some(Target::Named(words)) if *words == query);
    let command = earlier.commands.iter().find(is_it).or_else(|| {
        // The name was itself an answer to a question.
        earlier.commands.iter().find(|command| command.target.is_some())
    })?;
    let name = if pick.is_some() { query } else { prompt.request.message.clone() };
    Some(Wanted { command: Command { target: Some(Target::Named(name)), ..command.clone() }, pick, if_found: false })
}

/// Which of the options a short answer means.
fn choice(answer: &str, options: &[String]) -> Option<usize> {
    const NUMBERS: [&str; 10] =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    let answer = plain(answer);
    let words: Vec<&str> =
        answer.split(' ').filter(|word| !matches!(*word, "the" | "one" | "number" | "please")).collect();
    let place = match words.as_slice() {
        ["last"] => options.len().checked_sub(1),
        [word] => NUMBERS.iter().position(|number| number == word).or_else(|| {
            let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            digits.parse::<usize>().ok()?.checked_sub(1)
        }),
        _ => None,
    };
    if let Some(place) = place.filter(|place| *place < options.len()) {
        return Some(place);
    }
    let values: Vec<_> = options.iter().map(|title| serde_json::json!({"title": title})).collect();
    match meant(&values, &words.join(" ")).as_slice() {
        [one] => values.iter().position(|value| std::ptr::eq(value, *one)),
        _ => None,
    }
}

/// The missing piece, after "Could you provide more details about …?"
fn completed(prompt: &Prompt<'_>, asked: &Message, before: &Message) -> Option<Wanted> {
    let missing =
        wording::read_missing(&asked.content).filter(|_| !small_talk::is_no_answer(&prompt.request.message))?;
    let message = &prompt.request.message;
    let reader = prompt.request.reader;
    let now = &prompt.request.now;
    let said = prompt.request.reading.commands.first()?;
    // A new command is a new command.
    if said.intent != Intent::Unknown && said.missing.is_none() && !said.implied {
        return None;
    }
    let read = |text: String| reader.read(&text, now).commands.into_iter().next();
    let earlier = || {
        let commands = reader.read(&before.content, now).commands;
        commands.into_iter().find(|command| command.missing == Some(missing))
    };
    let command = match missing {
        Missing::Title => {
            let mut command = read(format!("add a task to {message}"))?;
            let first = earlier();
            // What was said about the task before its name is still true.
            if let Some(first) = first {
                command.when = command.when.or(first.when);
                command.priority = command.priority.or(first.priority);
                command.recurrence = command.recurrence.or(first.recurrence);
            }
            command
        }
        Missing::Target => {
            let target = read(format!("complete {message}"))?.target?;
            Command { target: Some(target), missing: None, ..earlier()? }
        }
        Missing::Change => {
            let first = earlier()?;
            let change = read(format!("change it to {message}"))?;
            Command { target: first.target, missing: None, ..change }
        }
        Missing::Time => {
            let first = earlier()?;
            let when = read(format!("remind me about it {message}"))?.when?;
            Command { when: Some(when), missing: None, ..first }
        }
    };
    Some(Wanted { command, pick: None, if_found: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_answers_choose() {
        // AGENT-8
        let options = ["buy milk".to_owned(), "buy oat milk".to_owned(), "milk the cow".to_owned()];
        for (answer, place) in [
            ("the second one", Some(1)),
            ("First!", Some(0)),
            ("number 3", Some(2)),
            ("2nd", Some(1)),
            ("the last one please", Some(2)),
            ("oat", Some(1)),
            ("buy milk", Some(0)),
            ("4", None),
            ("milk", None),
            ("what?", None),
        ] {
            assert_eq!(choice(answer, &options), place, "{answer}");
        }
    }
}
