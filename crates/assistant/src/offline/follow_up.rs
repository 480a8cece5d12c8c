//! Resolves answers to questions of the assistant: "Which one?" – "the second". The question comes from the
//! conversation.

use model::conversation::{Message, MessageRole};
use understand::{Intent, MissingSlot, ParsedCommand, TaskTarget};

use super::matching::{best_matches, normalize};
use super::{fragment, small_talk};
use crate::mentions::TaskMention;
use crate::{Prompt, confirm, wording};

/// A command after the previous question was taken into account.
#[derive(Clone, Debug)]
pub(super) struct ResolvedCommand {
    pub(super) command: ParsedCommand,
    /// Selects one of several equally good matches.
    pub(super) pick: Option<usize>,
    /// Set if the text is a command only if a task with that name exists.
    pub(super) only_if_found: bool,
    /// The task that "it" refers to in this command.
    pub(super) mention: Option<TaskMention>,
    /// The time of day of the due date is removed, the day stays.
    pub(super) drops_time: bool,
}

impl ResolvedCommand {
    /// Returns a command that needs no further resolution.
    pub(super) fn new(command: ParsedCommand) -> Self {
        Self { command, pick: None, only_if_found: false, mention: None, drops_time: false }
    }
}

/// Returns the completed command of the question in the last message of the assistant, if the message answers it.
pub(super) fn answer(prompt: &Prompt<'_>) -> Option<ResolvedCommand> {
    let history = &prompt.context.history;
    let asked = history.last().filter(|message| message.role == MessageRole::Assistant)?;
    let before = history.iter().rev().find(|message| message.role == MessageRole::User)?;
    resolve_choice(prompt, asked, before).or_else(|| fill_missing_slot(prompt, asked, before))
}

/// Returns the commands of the message alone. A consent or refusal becomes at most one command with an unknown intent.
/// `body` is the message without its lead-in, which is read if it is a command of its own.
pub(super) fn commands(prompt: &Prompt<'_>, body: &str) -> Vec<ResolvedCommand> {
    let (mut commands, only_if_found) = read_commands(prompt);
    if let Some(command) = asked_addition(prompt) {
        commands = vec![command];
    }
    if let Some(command) = without_reason(prompt) {
        commands = vec![command];
    }
    let message = prompt.request.message.trim();
    // "can you delete tasks?" asks, and "yes delete" confirms.
    let is_other = message.ends_with('?') || normalize(message).starts_with("yes ");
    if body != message && !body.is_empty() && !is_other {
        let plain = prompt.request.parser.parse(body, &prompt.request.now).commands;
        let is_explicit = |command: &ParsedCommand| command.intent != Intent::Unknown && !command.implied;
        // An emoji around a message can be the name of a task.
        let lacks_more = plain.iter().any(|command| command.missing.is_some())
            && commands.iter().all(|command| command.missing.is_none());
        if plain.iter().all(is_explicit) && plain.len() <= commands.len() && !lacks_more {
            commands = plain;
        }
    }
    if let [_] = commands.as_slice()
        && let Some(pair) = explicit_pair(prompt)
    {
        commands = pair;
    }
    if confirm::is_consent(&prompt.request.message) || confirm::is_refusal(&prompt.request.message) {
        commands.truncate(1);
        commands.iter_mut().for_each(|command| command.intent = Intent::Unknown);
    }
    let commands = commands.into_iter().flat_map(|command| split_titles(prompt, command));
    commands.map(|command| ResolvedCommand { only_if_found, ..ResolvedCommand::new(command) }).collect()
}

/// Reads "can you at least add …" from "add".
fn asked_addition(prompt: &Prompt<'_>) -> Option<ParsedCommand> {
    let request = prompt.request;
    let lower = request.message.to_lowercase();
    let at = lower.find(" add ").filter(|_| lower.len() == request.message.len())?;
    let lead = normalize(&lower[..at]);
    let asks = ["can you", "could you", "would you", "can u"].iter().any(|words| lead.contains(words));
    if !asks || lead.split(' ').count() > 7 {
        return None;
    }
    let [command] =
        <[ParsedCommand; 1]>::try_from(request.parser.parse(&request.message[at..], &request.now).commands).ok()?;
    (command.intent == Intent::CreateTask && command.title.is_some()).then_some(command)
}

/// Reads a new task without the reason after ", as", ", cos" or ", cause", which becomes its note.
fn without_reason(prompt: &Prompt<'_>) -> Option<ParsedCommand> {
    let request = prompt.request;
    let (head, reason) = [", as ", ", cos ", ", cause ", ", otherwise ", ", or else "]
        .iter()
        .find_map(|link| request.message.split_once(link))?;
    let [mut command] = <[ParsedCommand; 1]>::try_from(request.parser.parse(head, &request.now).commands).ok()?;
    let is_new = command.intent == Intent::CreateTask && command.title.is_some();
    let is_reminder = command.intent == Intent::ScheduleReminder && command.missing.is_none();
    if !(is_new || is_reminder) || reason.split_whitespace().count() < 3 {
        return None;
    }
    if is_new {
        command.description.get_or_insert_with(|| reason.trim().to_owned());
    }
    Some(command)
}

/// Returns the commands of a message with two parts, each of which is an explicit command about an existing task: "mark
/// the ironing as done, and set the form to high priority".
fn explicit_pair(prompt: &Prompt<'_>) -> Option<Vec<ParsedCommand>> {
    let request = prompt.request;
    let (first, second) = request.message.split_once(", and ").or_else(|| request.message.split_once("; "))?;
    let explicit = |text: &str| {
        let [one] = <[ParsedCommand; 1]>::try_from(request.parser.parse(text, &request.now).commands).ok()?;
        let changes = matches!(one.intent, Intent::CompleteTask | Intent::DeleteTask | Intent::UpdateTask)
            && one.missing.is_none();
        let names = matches!(one.target, Some(TaskTarget::Named(_)));
        (changes && names && !one.implied).then_some(one)
    };
    Some(vec![explicit(first)?, explicit(second)?])
}

/// Frequent first words of tasks. "post the parcel" and "ring the office" are tasks of their own in a list of tasks.
const ACTIVITY_VERBS: &str = "buy get pay call phone ring text email send post book order collect pick drop return \
    clean wash iron hoover vacuum mop dust tidy water feed walk fix mend repair replace paint cook bake defrost pack \
    unpack print sign read write finish submit file renew cancel check charge cut mow weed plant sort visit meet \
    practise practice revise study empty fill wrap make take sell apply register schedule arrange";

/// Returns true if a text begins with a frequent verb of tasks.
pub(super) fn begins_with_activity(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    ACTIVITY_VERBS.split_whitespace().any(|verb| first.eq_ignore_ascii_case(verb))
}

/// Splits a new task that consists of several activities: "assemble the cot and paint the wall", "buy stamps, post the
/// parcel and ring the office", "water the roses at 3, then call Ann". Each part must be an activity of its own.
fn split_titles(prompt: &Prompt<'_>, command: ParsedCommand) -> Vec<ParsedCommand> {
    let request = prompt.request;
    let parse = |text: &str| request.parser.parse(text, &request.now).commands;
    let Some(title) = command.title.clone().filter(|title| command.intent == Intent::CreateTask && !is_quoted(title))
    else {
        return vec![command];
    };
    if request.utterance.commands.len() == 1
        && let Some(commands) = split_in_time(prompt, &command)
    {
        return commands;
    }
    if let Some((first, second)) = title.split_once(", and ")
        && let [one] = parse(&format!("add {second}")).as_slice()
        && one.intent == Intent::CreateTask
        && one.title.is_some()
        && (one.when.is_some() || one.recurrence.is_some())
    {
        return vec![ParsedCommand { title: Some(first.to_owned()), ..command }, one.clone()];
    }
    let is_activity = |text: &str| {
        let is_new = || match parse(text).as_slice() {
            [one] => one.intent == Intent::CreateTask && one.title.is_some(),
            _ => false,
        };
        text.split_whitespace().count() >= 2 && (begins_with_activity(text) || is_new())
    };
    let plain = title.trim_end_matches(", both").trim_end_matches(" both");
    let parts: Vec<&str> = plain.split(", ").flat_map(|part| part.split(" and ")).map(str::trim).collect();
    if parts.len() >= 2 && parts.len() <= 8 && parts.iter().all(|part| is_activity(part)) {
        return parts
            .into_iter()
            .map(|title| ParsedCommand { title: Some(title.to_owned()), ..command.clone() })
            .collect();
    }
    vec![command]
}

fn is_quoted(title: &str) -> bool {
    title.starts_with(['"', '“', '‘', '\''])
}

/// Splits a message that adds two tasks one after the other, each with its own time: "…, then …", "… at 9 to … and at 10
/// to …".
fn split_in_time(prompt: &Prompt<'_>, command: &ParsedCommand) -> Option<Vec<ParsedCommand>> {
    const LINKS: [&str; 5] = [", then ", " n then ", " and then ", " then ", " and at "];
    let request = prompt.request;
    let message = request.message.trim();
    let lower = message.to_lowercase();
    if lower.len() != message.len() || message.contains('\n') {
        return None;
    }
    let (link, at) = LINKS.iter().find_map(|link| lower.find(link).map(|at| (*link, at)))?;
    let parse = |text: &str| request.parser.parse(text, &request.now).commands;
    let only = |commands: Vec<ParsedCommand>| <[ParsedCommand; 1]>::try_from(commands).ok().map(|[one]| one);
    let is_new = |command: &ParsedCommand| command.intent == Intent::CreateTask && command.title.is_some();
    let first = only(parse(&message[..at])).filter(is_new)?;
    let behind = &message[at + link.len()..];
    let second = if link == " and at " {
        let same = if command.asks_reminder { "remind me at" } else { "at" };
        only(parse(&format!("{same} {behind}"))).filter(|second| is_new(second) && second.when.is_some())?
    } else {
        let alone = only(parse(behind))?;
        match alone.intent {
            Intent::ListTasks | Intent::ListReminders | Intent::Undo => alone,
            _ => only(parse(&format!("add {behind}"))).filter(is_new)?,
        }
    };
    Some(vec![first, second])
}

/// Returns the commands of the message, and `true` if they apply only if a matching task exists.
///
/// A single clause with a known intent keeps its interpretation. Otherwise the message is also parsed under the
/// assumption that it is about tasks, because "email Bob" can be a title. If an intent is known, that reading wins if
/// it has more commands. If none is known, it wins only if it is one command that completes, deletes or updates a named
/// task. Only then `true` is returned.
fn read_commands(prompt: &Prompt<'_>) -> (Vec<ParsedCommand>, bool) {
    let request = prompt.request;
    let corrected = request.parser.parse(&fragment::correct_spelling(&request.message), &request.now).commands;
    let is_understood = |commands: &[ParsedCommand]| commands.iter().any(|command| command.intent != Intent::Unknown);
    let parsed = match is_understood(&request.utterance.commands) || !is_understood(&corrected) {
        true => &request.utterance.commands,
        false => &corrected,
    };
    // A single understood command needs no second interpretation.
    let joints = [",", ";", ".", "\n", " and ", " then "];
    let is_single = !joints.iter().any(|joint| prompt.request.message.contains(joint));
    if is_single && parsed.iter().any(|command| command.intent != Intent::Unknown) {
        return (parsed.clone(), false);
    }
    let as_tasks = prompt.request.parser.parse_assuming_tasks(&prompt.request.message, &prompt.request.now).commands;
    let is_known = |command: &ParsedCommand| command.intent != Intent::Unknown;
    let names_task = |command: &ParsedCommand| {
        let changes = matches!(command.intent, Intent::CompleteTask | Intent::DeleteTask | Intent::UpdateTask);
        changes && command.missing.is_none() && matches!(command.target, Some(TaskTarget::Named(_)))
    };
    if parsed.iter().any(is_known) {
        let finds_more = as_tasks.len() > parsed.len();
        return (if finds_more { as_tasks } else { parsed.clone() }, false);
    }
    match as_tasks.as_slice() {
        [command] if names_task(command) => (as_tasks, true),
        _ => (parsed.clone(), false),
    }
}

/// Resolves "the second one" after "Which one: …?" `asked` is the last message of the assistant, `before` the last
/// message of the user before the current one. Returns the command of `before` with the chosen option, or with the
/// message as the name if it selects no option. Returns `None` if `asked` is not this question, or if `before` has no
/// command with a target. Also returns `None` if the message neither selects an option nor is a name.
fn resolve_choice(prompt: &Prompt<'_>, asked: &Message, before: &Message) -> Option<ResolvedCommand> {
    let (query, options) = wording::read_ambiguous(&asked.content)?;
    let pick = chosen_option(&prompt.request.message, &options);
    let first = prompt.request.utterance.commands.first();
    // A name that is not among the options may still match a task.
    let is_name = first.is_some_and(|command| command.intent == Intent::Unknown)
        && !small_talk::is_no_answer(&prompt.request.message);
    if pick.is_none() && !is_name {
        return None;
    }
    let earlier = prompt.request.parser.parse(&before.content, &prompt.request.now);
    let is_asked =
        |command: &&ParsedCommand| matches!(&command.target, Some(TaskTarget::Named(words)) if *words == query);
    let command = earlier.commands.iter().find(is_asked).or_else(|| {
        // The name was an answer to an earlier question.
        earlier.commands.iter().find(|command| command.target.is_some())
    })?;
    let name = if pick.is_some() { query } else { prompt.request.message.clone() };
    let command = ParsedCommand { target: Some(TaskTarget::Named(name)), ..command.clone() };
    Some(ResolvedCommand { pick, ..ResolvedCommand::new(command) })
}

/// Returns the index of the option that an answer selects: by "second", "2", "2nd" or "last", or by a name that matches
/// exactly one option best. "the", "one", "number" and "please" are ignored. A position out of range is tried as a
/// name. Returns `None` otherwise.
fn chosen_option(answer: &str, options: &[String]) -> Option<usize> {
    const NUMBERS: [&str; 10] =
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    let answer = normalize(answer);
    let words: Vec<&str> =
        answer.split(' ').filter(|word| !matches!(*word, "the" | "one" | "number" | "please")).collect();
    let position = match words.as_slice() {
        ["last"] => options.len().checked_sub(1),
        [word] => NUMBERS.iter().position(|number| number == word).or_else(|| {
            let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            digits.parse::<usize>().ok()?.checked_sub(1)
        }),
        _ => None,
    };
    if let Some(position) = position.filter(|position| *position < options.len()) {
        return Some(position);
    }
    let values: Vec<_> = options.iter().map(|title| serde_json::json!({"title": title})).collect();
    match best_matches(&values, &words.join(" ")).as_slice() {
        [one] => values.iter().position(|value| std::ptr::eq(value, *one)),
        _ => None,
    }
}

/// Fills the missing slot after "Could you provide more details about …?" The parameters are those of
/// [`resolve_choice`]. A title keeps the time, the priority and the recurrence of `before`. A target or a time
/// completes the command of `before`. A change applies to its target.
///
/// Returns `None` if `asked` is not this question. Returns `None` if the message is a complete command or no answer, or
/// does not contain the slot. Except for a title, also returns `None` if `before` has no command that lacks this slot.
fn fill_missing_slot(prompt: &Prompt<'_>, asked: &Message, before: &Message) -> Option<ResolvedCommand> {
    let missing =
        wording::read_missing(&asked.content).filter(|_| !small_talk::is_no_answer(&prompt.request.message))?;
    let message = &prompt.request.message;
    let parser = prompt.request.parser;
    let now = &prompt.request.now;
    let first = prompt.request.utterance.commands.first()?;
    // A complete command is not an answer to the question.
    if first.intent != Intent::Unknown && first.missing.is_none() && !first.implied {
        return None;
    }
    let read = |text: String| parser.parse(&text, now).commands.into_iter().next();
    let earlier = || {
        let commands = parser.parse(&before.content, now).commands;
        commands.into_iter().find(|command| command.missing == Some(missing))
    };
    let command = match missing {
        MissingSlot::Title => {
            let body = super::framing::Framing::read(message).body;
            let body = body.strip_prefix("to ").unwrap_or(&body);
            let mut command = read(format!("add a task to {body}"))?;
            let first = earlier();
            // The slots of the first message still apply.
            if let Some(first) = first {
                command.when = command.when.or(first.when);
                command.priority = command.priority.or(first.priority);
                command.recurrence = command.recurrence.or(first.recurrence);
            }
            command
        }
        MissingSlot::Target => {
            let target = read(format!("complete {message}"))?.target?;
            ParsedCommand { target: Some(target), missing: None, ..earlier()? }
        }
        MissingSlot::Change => {
            let first = earlier()?;
            let values = fragment::read(message, prompt.request);
            let change = match values.has_values() {
                true => values.command,
                false => read(format!("change it to {message}"))?,
            };
            let words = |title: &String| title.split_whitespace().count();
            if change.title.as_ref().is_some_and(|title| words(title) > 5) {
                return None;
            }
            ParsedCommand { target: first.target, missing: None, ..change }
        }
        MissingSlot::Time => {
            let asks = |command: &ParsedCommand| command.asks_reminder || command.intent == Intent::ScheduleReminder;
            let first = earlier().or_else(|| parser.parse(&before.content, now).commands.into_iter().find(asks))?;
            let found = parser.find_expressions(message, now);
            let stated = || found.first().and_then(|found| found.due.or(found.start));
            let when = read(format!("remind me about it {message}")).and_then(|read| read.when).or_else(stated)?;
            ParsedCommand { when: Some(when), missing: None, ..first }
        }
    };
    Some(ResolvedCommand::new(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_answers_select_an_option() {
        // AGENT-8
        let options = ["buy milk".to_owned(), "buy oat milk".to_owned(), "milk the cow".to_owned()];
        for (answer, position) in [
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
            assert_eq!(chosen_option(answer, &options), position, "{answer}");
        }
    }
}
