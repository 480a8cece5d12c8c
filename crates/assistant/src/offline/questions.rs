//! Answers questions about tasks: when is it due, does it repeat, what is its note, what comes next (TRUST-4). All
//! functions fail with the next tool call if its result is not known yet.

use jiff::Zoned;
use model::due::DueDate;
use model::task::{Priority, Task, TaskStatus};
use model::words;
use serde_json::Value;
use tools::ToolKind;
use understand::{CommandFilter, Intent, StatusFilter, TaskTarget};

use super::dialogue::{LastAct, LastExchange};
use super::framing::{self, Framing};
use super::lookup::{self, LookupResult, StatusPreference, find};
use super::matching::{is_same_word, mentioned_tasks, normalize, overlapping_tasks};
use super::{OfflinePolicy, PendingCall, continuation, reminders, task_words};
use crate::mentions::TaskMention;
use crate::wording;

/// The property of a task that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Due,
    /// The time until it is due.
    Remaining,
    Priority,
    Tags,
    Note,
    Repetition,
    Done,
    Reminder,
    Details,
}

/// Words of a question that name no task.
const QUESTION_WORDS: &[&str] = &[
    "when",
    "whens",
    "when's",
    "what",
    "whats",
    "what's",
    "which",
    "how",
    "hows",
    "who",
    "whose",
    "where",
    "why",
    "is",
    "are",
    "was",
    "were",
    "do",
    "does",
    "did",
    "has",
    "have",
    "had",
    "will",
    "would",
    "should",
    "can",
    "could",
    "am",
    "i",
    "i'm",
    "im",
    "ive",
    "i've",
    "you",
    "u",
    "we",
    "me",
    "my",
    "our",
    "your",
    "it",
    "its",
    "it's",
    "they",
    "them",
    "of",
    "to",
    "for",
    "about",
    "the",
    "a",
    "an",
    "this",
    "that",
    "these",
    "those",
    "there",
    "theres",
    "there's",
    "need",
    "needs",
    "going",
    "gonna",
    "gotta",
    "got",
    "get",
    "gets",
    "getting",
    "again",
    "next",
    "due",
    "deadline",
    "time",
    "day",
    "date",
    "weekday",
    "long",
    "often",
    "much",
    "many",
    "be",
    "been",
    "being",
    "on",
    "at",
    "in",
    "by",
    "until",
    "till",
    "left",
    "still",
    "already",
    "now",
    "yet",
    "please",
    "any",
    "anything",
    "something",
    "say",
    "said",
    "tell",
    "show",
    "see",
    "happening",
    "happen",
    "scheduled",
    "start",
    "starts",
    "begin",
    "begins",
    "take",
    "takes",
    "place",
    "come",
    "comes",
    "round",
    "around",
    "one",
    "ones",
    "and",
    "or",
    "so",
    "then",
    "also",
    "too",
    "either",
    "as",
    "well",
    "exactly",
    "supposed",
    "must",
    "planned",
    "set",
    "up",
    "thing",
    "task",
    "tasks",
    "hand",
    "put",
    "down",
    "ok",
    "else",
    "right",
    "go",
    "off",
];

/// Words that name the asked property.
const PROPERTY_WORDS: &[&str] = &[
    "remind",
    "reminds",
    "reminder",
    "reminders",
    "reminding",
    "ring",
    "rings",
    "nag",
    "notify",
    "notified",
    "alert",
    "alerts",
    "ping",
    "repeat",
    "repeats",
    "repeating",
    "recurring",
    "recur",
    "recurs",
    "priority",
    "prio",
    "urgent",
    "important",
    "tag",
    "tags",
    "tagged",
    "label",
    "labels",
    "note",
    "notes",
    "noted",
    "description",
    "details",
    "detail",
    "done",
    "finished",
    "complete",
    "completed",
    "ticked",
    "finish",
    "high",
    "low",
    "medium",
    "normal",
];

/// Answers a question. Returns `None` if the message is no question about tasks, or one that a list answers.
pub(super) fn answer(
    policy: &mut OfflinePolicy<'_>,
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<String>, PendingCall> {
    let text = normalize_question(&framing.body);
    let words: Vec<&str> = text.split(' ').collect();
    if policy.spec(ToolKind::List).is_none() || words.len() > 20 {
        return Ok(None);
    }
    if let Some(reply) = about_lists(policy, &words, framing, last)? {
        return Ok(Some(reply));
    }
    let continues = (framing.continues && framing.is_question) || framing.replaces();
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let asked = match asked_property(&words) {
        Some(asked) => asked,
        None if framing.continues && framing.is_question && has(&["tag", "tags"]) => Asked::Tags,
        None if framing.continues && framing.is_question && has(&["note", "notes"]) => Asked::Note,
        None if framing.continues && framing.is_question && has(&["priority", "prio"]) => Asked::Priority,
        // "and the hay?" asks the same about another task.
        None if continues && matches!(last.act, LastAct::Answered) => {
            asked_property(&normalize_question(&Framing::read(last.user).body).split(' ').collect::<Vec<_>>())
                .unwrap_or(Asked::Due)
        }
        // "the fraud one" answers which task a question was about.
        None if names_asked_task(policy, framing, last)? => {
            asked_property(&normalize_question(&Framing::read(last.user).body).split(' ').collect::<Vec<_>>())
                .unwrap_or(Asked::Due)
        }
        None if framing.is_question && continuation::asks_yes_or_no(&framing.body) && !asks_about_all(&words) => {
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
    let asked = if asked == Asked::Due && subject.is_empty() && is_reminder_act { Asked::Reminder } else { asked };
    if asked == Asked::Reminder {
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
    Ok(continuation::named_task(policy, &framing.body)?.is_some())
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
    Ok(task.map(|task| sentence(&task, Asked::Details, None, &now)))
}

/// Converts to lower case without punctuation. Apostrophes stay inside of words.
fn normalize_question(text: &str) -> String {
    let lower = text.to_lowercase().replace('’', "'");
    let spaced: String =
        lower.chars().map(|c| if c.is_alphanumeric() || matches!(c, '\'' | '#') { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the property that a question asks for, or `None` if the text is no such question.
fn asked_property(words: &[&str]) -> Option<Asked> {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let first = *words.first()?;
    let starts = |start: &[&str]| words.starts_with(start);
    let asks = matches!(
        first,
        "when"
            | "whens"
            | "when's"
            | "what"
            | "whats"
            | "what's"
            | "which"
            | "how"
            | "hows"
            | "is"
            | "are"
            | "do"
            | "does"
            | "did"
            | "has"
            | "have"
            | "will"
            | "was"
            | "at"
            | "on"
            | "until"
            | "till"
            | "any"
            | "can"
            | "could"
    );
    if starts(&["tell", "me", "about"])
        || starts(&["tell", "me", "more", "about"])
        || has(&["details", "detail"]) && has(&["show", "what", "give", "of"])
    {
        return Some(Asked::Details);
    }
    // "and Bev when?"
    if words.len() <= 5 && words.last() == Some(&"when") {
        return Some(Asked::Due);
    }
    if !asks {
        return None;
    }
    let is_wh = matches!(first, "when" | "whens" | "when's");
    let asks_time = is_wh
        || starts(&["what", "time"])
        || starts(&["what", "day"])
        || starts(&["what", "date"])
        || starts(&["which", "day"])
        || starts(&["which", "weekday"])
        || starts(&["which", "date"])
        || starts(&["at", "what", "time"])
        || starts(&["on", "what", "day"])
        || starts(&["on", "which", "day"])
        || starts(&["by", "when"])
        || starts(&["until", "when"]);
    let is_reminder =
        has(&["remind", "reminder", "reminders", "reminding", "ring", "rings", "nag", "notify", "ping", "alert"])
            || (asks_time && has(&["tell"]) && has(&["me"]) && has(&["you"]));
    if is_reminder
        && (asks_time
            || starts(&["how", "often"])
            || has(&["any"])
            || matches!(first, "does" | "is" | "are" | "do" | "will" | "which" | "what"))
    {
        return (!starts(&["can"]) && !starts(&["could"]) && !(first == "will" && has(&["please"])))
            .then_some(Asked::Reminder);
    }
    if starts(&["how", "often"])
        || has(&["repeat", "repeats", "recurring", "repeating"]) && !matches!(first, "which" | "what" | "can" | "could")
    {
        return Some(Asked::Repetition);
    }
    if starts(&["how", "long"]) || starts(&["how", "much", "time"]) || starts(&["how", "many", "days"]) {
        return Some(Asked::Remaining);
    }
    if asks_time {
        return Some(Asked::Due);
    }
    if matches!(first, "can" | "could") {
        return None;
    }
    let about_one = matches!(first, "what" | "whats" | "what's" | "is" | "does" | "how" | "which");
    if about_one && has(&["priority", "prio"]) && !has(&["tasks", "ones", "many", "everything", "all", "my"]) {
        return Some(Asked::Priority);
    }
    if matches!(first, "is") && has(&["urgent", "important"]) && !has(&["anything", "there"]) {
        return Some(Asked::Priority);
    }
    if about_one && has(&["tag", "tags", "label", "labels"]) && !has(&["tasks", "ones", "with"]) {
        return Some(Asked::Tags);
    }
    if has(&["note", "notes", "description"]) && about_one
        || starts(&["what", "does"]) && has(&["say"])
        || starts(&["what", "did", "i", "note"])
        || starts(&["what", "did", "i", "write"])
    {
        return Some(Asked::Note);
    }
    let did = starts(&["did", "i"]) || starts(&["have", "i"]) || starts(&["have", "we"]) || starts(&["did", "we"]);
    if did && !has(&["anything", "any", "got", "what"]) {
        return Some(Asked::Done);
    }
    if matches!(first, "is" | "are" | "was")
        && has(&["done", "finished", "complete", "completed", "ticked"])
        && !has(&["anything", "everything", "all"])
    {
        return Some(Asked::Done);
    }
    // "is the coursework still due on tuesday?"
    if matches!(first, "is" | "was" | "does") && has(&["due"]) && !has(&["anything", "something", "there"]) {
        return Some(Asked::Due);
    }
    None
}

/// Returns the tasks that a question is about: those that its words name, else the task that was mentioned last.
fn subjects<'a>(
    policy: &mut OfflinePolicy<'a>,
    subject: &str,
    asked: Asked,
    framing: &Framing,
) -> Result<Vec<Value>, PendingCall> {
    let _ = framing;
    if subject.is_empty() {
        let found = find(policy, &TaskTarget::It, StatusPreference::OpenIfTied, None)?;
        let LookupResult::One(mention) = found else { return Ok(Vec::new()) };
        return Ok(stored_mention(policy, mention)?.into_iter().collect());
    }
    let prefer = if asked == Asked::Done { StatusPreference::OpenIfTied } else { StatusPreference::Open };
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
    let found = if open.is_empty() || asked == Asked::Done { found } else { open };
    Ok(found.into_iter().cloned().collect())
}

/// Returns the stored task of a mention.
fn stored_mention(policy: &mut OfflinePolicy<'_>, mention: TaskMention) -> Result<Option<Value>, PendingCall> {
    let all = lookup::all_tasks(policy)?;
    let found = all.iter().find(|task| mention.id.as_ref().is_some_and(|id| task["id"] == *id)).cloned();
    let by_title = || all.iter().find(|task| task["title"] == mention.title.as_str()).cloned();
    Ok(found.or_else(by_title))
}

/// Returns the sentence that answers a question about one task.
fn sentence(task: &Task, asked: Asked, day: Option<jiff::civil::Date>, now: &Zoned) -> String {
    let title = format!("'{}'", task.title);
    let is_done = task.status == TaskStatus::Completed;
    let done = || {
        let day = task.completed_at.map(|at| at.to_zoned(now.time_zone().clone()).date());
        let when = day.map(|day| format!(" since {}", words::short_day_words(day, now.date()))).unwrap_or_default();
        format!("{title} is done{when}.")
    };
    match asked {
        Asked::Due | Asked::Remaining if is_done => done(),
        Asked::Due | Asked::Remaining => match &task.due_date {
            None => format!("{title} has no due date."),
            Some(due) => {
                let when = words::due_words(due, now);
                let due_day = due_day(due, now);
                let yes = day.map(|day| if day == due_day { "Yes, " } else { "No, " }).unwrap_or_default();
                let late = words::is_overdue(due, now);
                let rule =
                    task.recurrence.as_deref().map(|rule| format!(", and repeats {}", words::recurrence_words(rule)));
                let left = match asked {
                    Asked::Remaining if !late => format!(" ({})", remaining(due, now)),
                    _ => String::new(),
                };
                let text = match late {
                    true => format!("{title} is overdue since {when}"),
                    false => format!("{title} is due {}{left}", wording::on_day(&when)),
                };
                format!("{yes}{text}{}.", rule.unwrap_or_default())
            }
        },
        Asked::Priority => format!("{title} has {} priority.", task.priority.as_str()),
        Asked::Tags => match task.tags.as_slice() {
            [] => format!("{title} has no tags."),
            tags => format!("{title} is tagged {}.", words::join_with_and(tags)),
        },
        Asked::Note => match &task.description {
            None => format!("{title} has no note."),
            Some(note) => format!("The note of {title}: {note}"),
        },
        Asked::Repetition => match &task.recurrence {
            None => format!("No, {title} does not repeat."),
            Some(rule) => {
                let due = task.due_date.as_ref().map(|due| format!(", next {}", words::due_words(due, now)));
                format!("{title} repeats {}{}.", words::recurrence_words(rule), due.unwrap_or_default())
            }
        },
        Asked::Done if is_done => format!("Yes, {}", done()),
        Asked::Done => format!("No, {title} is still open."),
        Asked::Reminder | Asked::Details => match words::task_sentence(task, now) {
            _ if is_done => done(),
            None => format!("{title} is open. It has no due date, note or tags."),
            Some(values) => {
                format!("{title}: {values}{}", if task.priority == Priority::Medium { " Medium priority." } else { "" })
            }
        },
    }
}

fn due_day(due: &DueDate, now: &Zoned) -> jiff::civil::Date {
    match due {
        DueDate::Day(day) => *day,
        DueDate::Moment { at, .. } => at.to_zoned(now.time_zone().clone()).date(),
    }
}

/// Returns the time until a task is due: "in 3 days", "in 5 hours".
fn remaining(due: &DueDate, now: &Zoned) -> String {
    let plural = |n: i64, unit: &str| format!("in {n} {unit}{}", if n == 1 { "" } else { "s" });
    let days = now.date().until(due_day(due, now)).map(|span| i64::from(span.get_days())).unwrap_or_default();
    match due {
        DueDate::Moment { at, .. } if days == 0 || at.duration_since(now.timestamp()).as_hours() < 24 => {
            let minutes = at.duration_since(now.timestamp()).as_mins();
            if minutes < 120 { plural(minutes, "minute") } else { plural(minutes / 60, "hour") }
        }
        _ if days == 0 => "today".to_owned(),
        _ => plural(days, "day"),
    }
}

/// Answers questions about all tasks or the last list: what comes next, which tasks repeat or have no date, and which of
/// the list comes first.
fn about_lists(
    policy: &mut OfflinePolicy<'_>,
    words: &[&str],
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<String>, PendingCall> {
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let now = policy.prompt.request.now.clone();
    let of_list = has(&["them", "those", "these"]) || words.starts_with(&["which"]) && has(&["ones"]);
    // "which?", "which ones?"
    if matches!(
        words,
        ["which"]
            | ["which", "ones"]
            | ["which", "one"]
            | ["what", "are", "they"]
            | ["list", "them"]
            | ["show", "them"]
    ) && let LastAct::Listed = last.act
    {
        let command = understand::ParsedCommand {
            filter: continuation::last_filter(policy, last),
            ..understand::ParsedCommand::new(Intent::ListTasks, 0.9)
        };
        return super::commands::list(policy, &command);
    }
    let superlative = (has(&["first", "next", "soonest", "earliest"])
        || has(&["most"]) && has(&["urgent", "important", "pressing"]))
        && (words.starts_with(&["which"])
            || words.starts_with(&["what"])
            || words.starts_with(&["whats"])
            || words.starts_with(&["what's"])
            || words.starts_with(&["where"]));
    let is_dated = !policy.prompt.request.parser.find_expressions(&framing.body, &now).is_empty();
    let asks_next = superlative
        && !is_dated
        && (of_list
            || has(&["i", "should", "tackle", "do", "start", "up", "thing", "task", "job", "comes"])
            || words.len() <= 2)
        && !has(&["run", "runs", "schedule", "reminder"]);
    let asks_after = matches!(
        words,
        ["after", "that"]
            | ["and", "after", "that"]
            | ["whats", "after", "that"]
            | ["what's", "after", "that"]
            | ["what", "then"]
            | ["then"]
    ) && framing.is_question;
    if asks_next || asks_after {
        let history = &policy.prompt.context.history;
        let shown = crate::mentions::last_shown(history);
        let listed = of_list && !shown.is_empty();
        let all = lookup::all_tasks(policy)?;
        let is_shown = |task: &&Value| {
            shown.iter().any(|mention| {
                mention.id.as_ref().is_some_and(|id| task["id"] == *id)
                    || mention.title == task["title"].as_str().unwrap_or_default()
            })
        };
        let mut open: Vec<Task> = all
            .iter()
            .filter(|task| task["status"] != "completed" && (!listed || is_shown(task)))
            .filter_map(|task| task_words::stored_task(task, now.time_zone()))
            .collect();
        let by_priority = has(&["urgent", "important", "pressing"]);
        sort_by_urgency(&mut open, by_priority, &now);
        let at = match &policy.last {
            Some(last) if asks_after => open.iter().position(|task| task.title == last.title).map_or(0, |at| at + 1),
            _ => 0,
        };
        return Ok(Some(match open.get(at) {
            None if asks_after => "After that, nothing else is open.".to_owned(),
            None => wording::all_done(),
            Some(task) => {
                let values = words::task_values(task, &now).join(", ");
                let values = if values.is_empty() { "no due date".to_owned() } else { values };
                format!("'{}' comes {}: {values}.", task.title, if asks_after { "after that" } else { "first" })
            }
        }));
    }
    let asks_repeating = has(&["repeat", "repeats", "recurring", "repeating", "recur"])
        && (words.starts_with(&["which"])
            || words.starts_with(&["what"])
            || words.starts_with(&["show"])
            || words.starts_with(&["list"]))
        && !has(&["it"]);
    let asks_undated = (has(&["no", "without"]) && has(&["date", "deadline", "dates"])
        || words.windows(2).any(|pair| pair == ["not", "dated"]))
        && (words.starts_with(&["which"])
            || words.starts_with(&["what"])
            || words.starts_with(&["show"])
            || words.starts_with(&["list"]));
    if asks_repeating || asks_undated {
        let all = lookup::all_tasks(policy)?;
        let is_meant = |task: &&Value| {
            let field = if asks_repeating { "recurrence" } else { "due_date" };
            task["status"] != "completed" && task[field].is_string() == asks_repeating
        };
        let found: Vec<&Value> = all.iter().filter(is_meant).collect();
        let lines: Vec<_> = found.iter().map(|task| task_words::list_line(task, &now)).collect();
        let kind = if asks_repeating { "repeating" } else { "undated" };
        return Ok(Some(wording::list_of_kind(&lines, kind)));
    }
    // "did you add anything just now?"
    if words.starts_with(&["did", "you"])
        && has(&["add", "change", "delete", "do"])
        && has(&["anything", "something", "that", "it"])
    {
        let changed = match last.act {
            LastAct::Changed(_, call) if last.is_recent => super::dialogue::changed_tasks(call),
            _ => Vec::new(),
        };
        let titles: Vec<_> = changed.iter().map(|task| format!("'{}'", task.title)).collect();
        return Ok(Some(match titles.as_slice() {
            [] => "No, I didn't change anything.".to_owned(),
            titles => format!("Yes, I changed {}.", words::join_with_and(titles)),
        }));
    }
    topic(policy, words, framing, last)
}

/// Sorts by due date, overdue tasks first and undated ones last, then by priority. `by_priority` reverses that.
fn sort_by_urgency(tasks: &mut [Task], by_priority: bool, now: &Zoned) {
    let due = |task: &Task| {
        task.due_date
            .as_ref()
            .map(|due| (due_day(due, now), due.timestamp()))
            .map_or((jiff::civil::Date::MAX, None), |key| key)
    };
    let rank = |task: &Task| match task.priority {
        Priority::High => 0,
        Priority::Medium => 1,
        Priority::Low => 2,
    };
    tasks.sort_by(|a, b| match by_priority {
        true => (rank(a), due(a)).cmp(&(rank(b), due(b))),
        false => (due(a), rank(a)).cmp(&(due(b), rank(b))),
    });
}

/// Lists the open tasks of a topic, which is a tag or a word of their titles: "show me the music stuff", "what else is
/// there for uni?", "and for work?". Returns `None` if no task has it.
fn topic(
    policy: &mut OfflinePolicy<'_>,
    words: &[&str],
    framing: &Framing,
    last: &LastExchange<'_>,
) -> Result<Option<String>, PendingCall> {
    let asks = words.first().is_some_and(|first| {
        matches!(
            *first,
            "show"
                | "list"
                | "what"
                | "whats"
                | "what's"
                | "which"
                | "any"
                | "anything"
                | "how"
                | "is"
                | "are"
                | "do"
                | "give"
        )
    });
    let continues = framing.is_question && framing.continues && matches!(last.act, LastAct::Listed);
    if !asks && !continues {
        return Ok(None);
    }
    const LIST_WORDS: [&str; 24] = [
        "stuff",
        "things",
        "jobs",
        "job",
        "chores",
        "todos",
        "todo",
        "list",
        "open",
        "all",
        "everything",
        "left",
        "with",
        "give",
        "remaining",
        "total",
        "altogether",
        "currently",
        "just",
        "only",
        "related",
        "regarding",
        "work's",
        "from",
    ];
    let rest: Vec<&str> =
        words.iter().copied().filter(|word| !QUESTION_WORDS.contains(word) && !LIST_WORDS.contains(word)).collect();
    let [topic] = rest.as_slice() else { return Ok(None) };
    let topic = topic.trim_start_matches('#').trim_end_matches("'s");
    if PROPERTY_WORDS.contains(&topic) || topic.chars().count() < 2 {
        return Ok(None);
    }
    if let Some(tag) = known_tag(policy, topic)? {
        let filter = CommandFilter { tags: vec![tag], status: None::<StatusFilter>, ..CommandFilter::default() };
        let command = understand::ParsedCommand { filter, ..understand::ParsedCommand::new(Intent::ListTasks, 0.9) };
        return super::commands::list(policy, &command);
    }
    let now = policy.prompt.request.now.clone();
    let request = policy.prompt.request;
    if !request.parser.find_expressions(topic, &now).is_empty() || continues {
        return Ok(None);
    }
    let parsed = request.utterance.commands.first().is_some_and(|command| {
        command.intent == Intent::ListTasks
            && command.filter.text.is_none()
            && command.filter != CommandFilter::default()
    });
    if parsed {
        return Ok(None);
    }
    let has_word = |task: &&Value| {
        let title = normalize(task["title"].as_str().unwrap_or_default());
        task["status"] != "completed" && title.split(' ').any(|word| is_same_word(word, topic))
    };
    let found: Vec<&Value> = lookup::all_tasks(policy)?.iter().filter(has_word).collect();
    if found.is_empty() {
        return Ok(None);
    }
    let lines: Vec<_> = found.iter().map(|task| task_words::list_line(task, &now)).collect();
    let filter = CommandFilter { text: Some(topic.to_owned()), ..CommandFilter::default() };
    Ok(Some(wording::list(&lines, lines.len(), &filter)))
}

/// Returns the tag of an open task that a word names, in its stored spelling.
pub(super) fn known_tag(policy: &mut OfflinePolicy<'_>, word: &str) -> Result<Option<String>, PendingCall> {
    let all = lookup::all_tasks(policy)?;
    let open = all.iter().filter(|task| task["status"] != "completed");
    let mut tags = open.flat_map(|task| task["tags"].as_array().into_iter().flatten()).filter_map(Value::as_str);
    Ok(tags.find(|tag| is_same_word(&tag.to_lowercase(), &word.to_lowercase())).map(str::to_owned))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_recognized() {
        // TRUST-4
        for (text, asked) in [
            ("when is the dentist", Some(Asked::Due)),
            ("what time is the puppy getting vaccinated", Some(Asked::Due)),
            ("which weekday is that", Some(Asked::Due)),
            ("is the coursework still due on tuesday", Some(Asked::Due)),
            ("how often do i change the bed sheets", Some(Asked::Repetition)),
            ("does it repeat", Some(Asked::Repetition)),
            ("how long have i got left for the essay", Some(Asked::Remaining)),
            ("what priority does it have", Some(Asked::Priority)),
            ("what's the note", Some(Asked::Note)),
            ("did i already check the passports", Some(Asked::Done)),
            ("when will you remind me", Some(Asked::Reminder)),
            ("what reminders have i got", Some(Asked::Reminder)),
            ("tell me about the pitch", Some(Asked::Details)),
            ("can you remind me about the lawn", None),
            ("add milk", None),
            ("what's due this week", None),
            ("how many tasks do i have", None),
        ] {
            assert_eq!(asked_property(&text.split(' ').collect::<Vec<_>>()), asked, "{text}");
        }
    }
}
