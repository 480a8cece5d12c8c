//! Answers questions about tasks: when is it due, does it repeat, what is its note, what comes next (TRUST-4). All
//! functions fail with the next tool call if its result is not known yet.

mod lists;
mod property;
mod sentence;
mod words;

use model::task::Task;
use serde_json::Value;
use tools::ToolKind;
use understand::{Intent, TaskTarget};

use lists::about_lists;
pub(super) use lists::known_tag;
use property::{AskedProperty, asked_property, normalize_question};
use sentence::sentence;
use words::{PROPERTY_WORDS, QUESTION_WORDS};

use super::dialogue::{LastAct, LastExchange};
use super::framing::{self, Framing};
use super::lookup::{self, LookupResult, StatusPreference, find};
use super::matching::{mentioned_tasks, overlapping_tasks};
use super::{OfflinePolicy, PendingCall, fragment, reminders, task_words};
use crate::mentions::TaskMention;
use crate::wording;

/// Answers a question. Returns `None` if the message is no question about tasks, or one that a list answers.
pub(super) fn answer(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<String>, PendingCall> {
    // "the mirror, when's that due?" asks with its last clause.
    let clauses = framing::clauses(&framing.body);
    let is_last_asking = clauses.len() == 2
        && framing.is_question
        && asked_property(&normalize_question(clauses[1]).split(' ').collect::<Vec<_>>()).is_some();
    let text = normalize_question(if is_last_asking { clauses[1] } else { &framing.body });
    let words: Vec<&str> = text.split(' ').collect();
    if policy.spec(ToolKind::List).is_none() || words.len() > 20 {
        return Ok(None);
    }
    if let Some(reply) = about_lists(policy, &words, framing, last)? {
        return Ok(Some(reply));
    }
    let is_value = fragment::read(&framing.body, policy.prompt.request).is_pure();
    let continues = (framing.continues && framing.is_question) || framing.replaces() && !is_value;
    if is_value && framing.is_question && asked_property(&words).is_none() {
        return Ok(None);
    }
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let asked = match asked_property(&words) {
        Some(asked) => asked,
        None if framing.continues && framing.is_question && has(&["tag", "tags"]) => AskedProperty::Tags,
        None if framing.continues && framing.is_question && has(&["note", "notes"]) => AskedProperty::Note,
        None if framing.continues && framing.is_question && has(&["priority", "prio"]) => AskedProperty::Priority,
        // "and the hay?" asks the same about another task.
        None if continues && matches!(last.act, LastAct::Answered) => {
            asked_property(&normalize_question(&Framing::read(last.user).body).split(' ').collect::<Vec<_>>())
                .unwrap_or(AskedProperty::Due)
        }
        // "the fraud one" answers which task a question was about.
        None if names_asked_task(policy, framing, last)? => {
            asked_property(&normalize_question(&Framing::read(last.user).body).split(' ').collect::<Vec<_>>())
                .unwrap_or(AskedProperty::Due)
        }
        None if framing.is_question && framing::asks_yes_or_no(&framing.body) && !asks_about_all(&words) => {
            return yes_or_no(policy);
        }
        None => return Ok(None),
    };
    let dates = policy.prompt.request.parser.find_expressions(&framing.body, &policy.prompt.request.now);
    let mut subject_text = framing.body.clone();
    for found in dates.iter().rev() {
        subject_text.replace_range(found.span.clone(), " ");
    }
    let plain = normalize_question(&subject_text);
    let subject: Vec<&str> = plain
        .split(' ')
        .filter(|word| !word.is_empty() && !QUESTION_WORDS.contains(word) && !PROPERTY_WORDS.contains(word))
        .collect();
    let tasks = subjects(policy, &subject.join(" "), asked, framing)?;
    // "what time is that?" after a reminder was set
    let is_reminder_act =
        matches!(last.act, LastAct::Changed(ToolKind::Remind | ToolKind::UpdateReminder | ToolKind::SnoozeReminder, _));
    let asked = if asked == AskedProperty::Due && subject.is_empty() && is_reminder_act {
        AskedProperty::Reminder
    } else {
        asked
    };
    if asked == AskedProperty::Reminder {
        return reminders::answer(policy, &tasks, subject.is_empty());
    }
    let now = policy.prompt.request.now.clone();
    let stored: Vec<Task> = tasks.iter().filter_map(|task| task_words::stored_task(task, now.time_zone())).collect();
    let day = dates.first().and_then(|found| found.due.or(found.start)).map(understand::DayOrTime::date);
    let lines: Vec<String> =
        stored.iter().take(wording::MAX_OPTIONS).map(|task| sentence(task, asked, day, &now)).collect();
    Ok(match lines.as_slice() {
        [] => None,
        lines => Some(lines.join("\n")),
    })
}

/// Returns true if a short message names one task and the message before it was a question about a task.
fn names_asked_task(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<bool, PendingCall> {
    let asked = asked_property(&normalize_question(&Framing::read(last.user).body).split(' ').collect::<Vec<_>>());
    let is_short = framing.body.split_whitespace().count() <= 5 && !framing.body.is_empty();
    if !is_short || asked.is_none() || !matches!(last.act, LastAct::Answered | LastAct::Asked) || framing.continues {
        return Ok(false);
    }
    let command = policy.prompt.request.utterance.commands.first();
    if command.is_some_and(|command| command.intent != Intent::Unknown && !command.implied && command.missing.is_none())
    {
        return Ok(false);
    }
    Ok(lookup::named_task(policy, &framing.body)?.is_some())
}

/// Returns true if a question is about all tasks or about something else than tasks.
fn asks_about_all(words: &[&str]) -> bool {
    words.iter().any(|word| {
        matches!(
            *word,
            "anything" | "there" | "everything" | "any" | "tasks" | "nothing" | "all" | "running" | "paused" | "active"
        )
    })
}

/// Answers "is that every week?" with the values of the task that was mentioned last.
fn yes_or_no(policy: &mut OfflinePolicy<'_>) -> Result<Option<String>, PendingCall> {
    let found = find(policy, &TaskTarget::It, StatusPreference::OpenIfTied, None)?;
    let LookupResult::One(mention) = found else { return Ok(None) };
    let now = policy.prompt.request.now.clone();
    let task = stored_mention(policy, mention)?.and_then(|task| task_words::stored_task(&task, now.time_zone()));
    Ok(task.map(|task| sentence(&task, AskedProperty::Details, None, &now)))
}

/// Returns the tasks that a question is about: those that its words name, else the task that was mentioned last.
fn subjects<'a>(
    policy: &mut OfflinePolicy<'a>,
    subject: &str,
    asked: AskedProperty,
    framing: &Framing,
) -> Result<Vec<Value>, PendingCall> {
    let _ = framing;
    if subject.is_empty() {
        let found = find(policy, &TaskTarget::It, StatusPreference::OpenIfTied, None)?;
        let LookupResult::One(mention) = found else { return Ok(Vec::new()) };
        return Ok(stored_mention(policy, mention)?.into_iter().collect());
    }
    let prefer = if asked == AskedProperty::Done { StatusPreference::OpenIfTied } else { StatusPreference::Open };
    let found = match find(policy, &TaskTarget::Named(subject.to_owned()), prefer, None)? {
        LookupResult::One(mention) => vec![mention],
        LookupResult::Ambiguous(_, mentions) | LookupResult::Several(mentions) => mentions,
        _ => Vec::new(),
    };
    if !found.is_empty() {
        let mut tasks = Vec::with_capacity(found.len());
        for mention in found {
            tasks.extend(stored_mention(policy, mention)?);
        }
        return Ok(tasks);
    }
    let all = lookup::all_tasks(policy)?;
    let mentioned = mentioned_tasks(all, subject);
    let found = if mentioned.is_empty() { overlapping_tasks(all, subject) } else { mentioned };
    let open: Vec<&Value> = found.iter().copied().filter(|task| task["status"] != "completed").collect();
    let found = if open.is_empty() || asked == AskedProperty::Done { found } else { open };
    Ok(found.into_iter().cloned().collect())
}

/// Returns the stored task of a mention.
fn stored_mention(policy: &mut OfflinePolicy<'_>, mention: TaskMention) -> Result<Option<Value>, PendingCall> {
    let all = lookup::all_tasks(policy)?;
    let found = all.iter().find(|task| mention.id.as_ref().is_some_and(|id| task["id"] == *id)).cloned();
    let by_title = || all.iter().find(|task| task["title"] == mention.title.as_str()).cloned();
    Ok(found.or_else(by_title))
}

/// Returns true if a message has the form of a question.
pub(super) fn is_question(framing: &Framing) -> bool {
    let text = normalize_question(framing::trim(&framing.body));
    let words: Vec<&str> = text.split(' ').collect();
    framing.is_question
        || framing.replaces()
        || words.len() <= 5
        || asked_property(&words).is_some()
        || matches!(
            words.first(),
            Some(&("which" | "what" | "whats" | "what's" | "how" | "show" | "list" | "did" | "tell"))
        )
}
