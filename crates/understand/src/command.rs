//! Parses one clause into one command.

use std::ops::Range;

use crate::clause::Clause;
use crate::create::{self, CreatePhrasing};
use crate::dates::{DateMatch, Repeat, RepeatFrequency};
use crate::filter;
use crate::intent::{self, CommandAction, Guess};
use crate::lead_time;
use crate::lexicon;
use crate::numbers;
use crate::parsed::{
    CommandFilter, DayOrTime, DueFilter, Intent, MissingSlot, ParsedCommand, StatusFilter, TaskTarget,
};
use crate::reminders;
use crate::subject;
use crate::tag_phrases;
use crate::target;
use crate::tense;
use crate::timing;
use crate::update;
use crate::vocabulary::{self, Noun};

/// A new task with at most this confidence is a guess.
pub(crate) const MAX_GUESS_CONFIDENCE: f64 = 0.6;

/// The confidence of a task that a clause only needs. Next to an explicit new task it is a reason and is dropped.
pub(crate) const NEED_CONFIDENCE: f64 = 0.48;

/// A completion below this confidence is a statement and not a request.
pub(crate) const REQUESTED_COMPLETION_CONFIDENCE: f64 = 0.7;

/// The confidence of a clause that consists of a date.
pub(crate) const DATE_ONLY_CONFIDENCE: f64 = 0.5;

/// A command below this confidence is implied.
const MIN_EXPLICIT_CONFIDENCE: f64 = 0.6;

/// A command during parsing. It holds the confidence of the rules; the probability of the model is separate.
pub(crate) struct CommandDraft {
    pub(crate) command: ParsedCommand,
    /// `None` if the model was not asked.
    likelihood: Option<f64>,
}

impl CommandDraft {
    /// Returns a draft without the probability of the model.
    pub(crate) fn from_rules(command: ParsedCommand) -> Self {
        Self { command, likelihood: None }
    }

    /// Returns the finished command. Its confidence is the probability of the model if the model was asked and the
    /// filter is supported. Otherwise it is the confidence of the rules. It is rounded to three decimals. A confidence
    /// of the rules below [`MIN_EXPLICIT_CONFIDENCE`] marks the command as implied.
    pub(crate) fn into_command(self) -> ParsedCommand {
        let mut command = self.command;
        command.implied = command.confidence < MIN_EXPLICIT_CONFIDENCE;
        let likelihood = self.likelihood.filter(|_| !command.filter.unsupported);
        command.confidence = (likelihood.unwrap_or(command.confidence) * 1000.0).round() / 1000.0;
        command
    }
}

/// Parses a clause into one command. Returns an unknown command if the clause contains no request. Does the same if
/// only the model recognises a request and its title or target is missing. The unknown command then lacks the date if
/// the first attempt consumed it. Consumes tokens of the clause.
pub(crate) fn parse(clause: &mut Clause) -> CommandDraft {
    let decision = intent::decide(clause);
    let mut command = build_command(clause, decision.guess);
    reminders::refine(clause, &mut command);
    // A command that only the model recognises needs a title or a target.
    if decision.overruled && matches!(command.missing, Some(MissingSlot::Title | MissingSlot::Target)) {
        return CommandDraft::from_rules(unknown_command(clause));
    }
    CommandDraft { command, likelihood: decision.likelihood }
}

/// Parses the slots of the recognised action with the confidence of the guess. Returns an unknown command without a
/// guess. [`CommandAction::Undo`] has no slots. [`CommandAction::Finished`] completes the task in context.
/// [`CommandAction::Check`] becomes a listing, [`CommandAction::Remind`] a reminder for an existing task. Consumes
/// tokens of the clause.
fn build_command(clause: &mut Clause, guess: Guess) -> ParsedCommand {
    match guess {
        None => unknown_command(clause),
        Some((CommandAction::Undo, confidence)) => ParsedCommand::new(Intent::Undo, confidence),
        Some((CommandAction::Finished, confidence)) => {
            ParsedCommand { target: Some(TaskTarget::It), ..ParsedCommand::new(Intent::CompleteTask, confidence) }
        }
        Some((CommandAction::Create(phrasing, body), confidence)) => create::parse(clause, body, phrasing, confidence),
        Some((CommandAction::List(body), confidence)) => parse_list_tasks(clause, body, confidence),
        Some((CommandAction::Check(from, to), confidence)) => parse_status_question(clause, from, to, confidence),
        Some((CommandAction::Complete(body, end), confidence)) => {
            parse_complete_or_delete(clause, Intent::CompleteTask, body, end, confidence)
        }
        Some((CommandAction::Delete(body, end), confidence)) => {
            parse_complete_or_delete(clause, Intent::DeleteTask, body, end, confidence)
        }
        Some((CommandAction::Update(change, from, to), confidence)) => {
            update::parse(clause, from..to, change, confidence)
        }
        Some((CommandAction::Remind(body), confidence)) => parse_reminder(clause, body, confidence),
    }
}

/// Parses one item of a list of tasks, which has no verb of its own. `intent` comes from the heading. A creation takes
/// the item as its title (0.93). A completion or a deletion takes it as the target (0.85). Other intents are not
/// expected.
pub(crate) fn parse_list_item(clause: &mut Clause, intent: Intent) -> CommandDraft {
    let start = clause.start;
    let end = clause.end;
    CommandDraft::from_rules(match intent {
        Intent::CreateTask => {
            let mut command = create::parse(clause, start, CreatePhrasing::Add, 0.93);
            // "a" and "something" are titles here, because nothing of a list is dropped.
            if command.missing == Some(MissingSlot::Title) && start < end {
                command.title = Some(clause.words.text(start..end).to_owned());
                command.missing = None;
            }
            command
        }
        intent => parse_complete_or_delete(clause, intent, start, end, 0.85),
    })
}

/// Parses a list request that consists of its filter: "everything due today".
pub(crate) fn parse_listing(clause: &mut Clause, confidence: f64) -> ParsedCommand {
    let start = clause.start;
    parse_list_tasks(clause, start, confidence)
}

/// Returns an unknown command with the date and the repetition of the clause. They may answer a question of the
/// assistant. Consumes the date. The confidence is [`DATE_ONLY_CONFIDENCE`] for a clause that consists of a date. It is
/// 0.97 for other domains and plans, else 0.9.
fn unknown_command(clause: &mut Clause) -> ParsedCommand {
    let confidence = match (clause.is_only_date(), clause.is_out_of_scope()) {
        (true, _) => DATE_ONLY_CONFIDENCE,
        (_, true) => 0.97,
        _ => 0.9,
    };
    let mut command = ParsedCommand::new(Intent::Unknown, confidence);
    let dates = timing::choose_date(clause, clause.start..clause.end, clause.start);
    timing::apply_date(&mut command, dates, clause.now);
    command
}

/// Parses the target in `body..end` of a command that completes or deletes. An "instead" at the end is ignored. A
/// pronoun takes its name from a remark of at least two tokens before the verb, if that names a task. For a completion,
/// a past tense before `body` becomes part of the name: "I already called mom" completes "call mom". Conditions of "all
/// …" go into the filter. Without a target, sets the missing slot and limits the confidence to 0.8. Does the same for
/// all tasks with an unsupported filter.
fn parse_complete_or_delete(
    clause: &mut Clause,
    intent: Intent,
    body: usize,
    end: usize,
    confidence: f64,
) -> ParsedCommand {
    let mut command = ParsedCommand::new(intent, confidence);
    let end = if end > body + 1 && clause.at(end - 1) == "instead" { end - 1 } else { end };
    command.target = target::parse(clause, body..end, &mut command.filter);
    if command.target == Some(TaskTarget::It) && body > clause.start + 2 {
        let done = || subject::parse_deed(clause, clause.start..body - 1).filter(|_| intent == Intent::CompleteTask);
        let named = done().or_else(|| subject::parse(clause, clause.start..body - 1));
        set_target(&mut command, named);
    }
    if intent == Intent::CompleteTask {
        restore_verb(clause, body, &mut command);
    }
    // Do not delete or complete more tasks than the user named: "delete all tasks due next week".
    if command.target.is_none() || command.target == Some(TaskTarget::All) && command.filter.unsupported {
        command.missing = Some(MissingSlot::Target);
        command.confidence = confidence.min(0.8);
    }
    command
}

/// Sets the target that a remark names, and clears the missing target. Does nothing for `None`.
pub(crate) fn set_target(command: &mut ParsedCommand, named: Option<TaskTarget>) {
    if named.is_some() {
        command.target = named;
        command.missing = command.missing.filter(|missing| *missing != MissingSlot::Target);
    }
}

/// Prepends the verb before `body` to a named target in its base form: "I already called mom" completes "call mom". A
/// particle and an article between them stay: "picked up the parcel" completes "pick up the parcel". Has no effect on
/// other targets, after words that are not a past tense, and after verbs such as "finished". A past tense that equals
/// its base form ("cut", "put") needs "I", "I've", "we", "already" or "just" before it.
fn restore_verb(clause: &Clause, body: usize, command: &mut ParsedCommand) {
    let Some(TaskTarget::Named(name)) = &mut command.target else { return };
    let particle = body
        .checked_sub(2)
        .filter(|_| matches!(clause.before(body), "up" | "off" | "out" | "in" | "to" | "for" | "back"));
    let Some(at) = particle.or(body.checked_sub(1)).filter(|at| *at >= clause.start) else { return };
    let has_subject = matches!(clause.before(at), "i" | "we" | "already" | "just" | "i've");
    let past = |base: &String| {
        !lexicon::complete_task::PAST_VERBS.contains(clause.at(at)) && (has_subject || base != clause.at(at))
    };
    let Some(verb) = tense::base_form(clause.at(at)).filter(past) else { return };
    let article = usize::from(vocabulary::is_article(clause.at(body)));
    let between = clause.words.text(at + 1..body + article);
    *name = if between.is_empty() { format!("{verb} {name}") } else { format!("{verb} {between} {name}") };
}

/// Parses a question about the status of a task into a listing: "is the report done?". Lists tasks of any status with
/// the name in `from..to` as the search text. For a pronoun, a position or any other target, the listing has no text
/// and no status. Conditions such as a date stay in the filter.
fn parse_status_question(clause: &mut Clause, from: usize, to: usize, confidence: f64) -> ParsedCommand {
    let mut command = ParsedCommand::new(Intent::ListTasks, confidence);
    if let Some(TaskTarget::Named(name)) = target::parse(clause, from..to, &mut command.filter) {
        command.filter.text = Some(name);
        command.filter.status = Some(StatusFilter::All);
    }
    command
}

/// Parses the filter of a list from `body` on. "all", "every" or "everything" without a status, a due date or a
/// priority includes completed tasks. A common tag as the search text ("tasks for work") becomes a tag, unless "about"
/// or "regarding" occurs. The filter "tomorrow" also sets `when`. An exception ("except …") makes the filter
/// unsupported and drops all conditions. An unsupported filter limits the confidence to 0.45.
fn parse_list_tasks(clause: &mut Clause, body: usize, confidence: f64) -> ParsedCommand {
    let mut command = ParsedCommand::new(Intent::ListTasks, confidence);
    let range = body..clause.end;
    let all = (body..clause.end).any(|i| matches!(clause.at(i), "all" | "everything" | "every"));
    filter::parse(clause, range.clone(), &mut command.filter);
    if command.filter.status.is_none() && all && command.filter.due.is_none() && command.filter.priority.is_none() {
        command.filter.status = Some(StatusFilter::All);
    }
    if command.filter.due == Some(DueFilter::Tomorrow) {
        command.when = clause.now.date().tomorrow().ok().map(DayOrTime::Day);
    }
    consume_tags(clause, body, &mut command.filter);
    command.filter.text = search_text(clause, body);
    // "tasks for work" filters by tag, "tasks about work" searches for text.
    let kind = |text: &mut String| {
        tag_phrases::is_common_tag(&text.to_lowercase()) && !clause.has(lexicon::list_tasks::SUBJECT_LEADS)
    };
    if let Some(text) = command.filter.text.take_if(kind) {
        command.filter.tags.push(text);
    }
    if clause.has(lexicon::filters::EXCEPTIONS) {
        command.filter = CommandFilter { unsupported: true, ..CommandFilter::default() };
        command.when = None;
    }
    if command.filter.unsupported {
        command.confidence = command.confidence.min(0.45);
    }
    command
}

/// Adds tags without a lead to the filter. These are tags before the clause ("#work things"), and common tags before a
/// noun or "ones", "stuff", "things", "bits" or "jobs" ("overdue work tasks"). Words in "-tagged", "-labelled" or
/// "-labeled" count, too. Tags in the clause are in lower case, and their tokens are consumed. Ignores consumed tokens
/// and quoted passages.
fn consume_tags(clause: &mut Clause, body: usize, filter: &mut CommandFilter) {
    filter.tags.append(&mut tag_phrases::opening_tags(clause));
    for i in body..clause.end {
        if clause.is_consumed(i) || clause.words.is_quoted(i) {
            continue;
        }
        let kind = matches!(clause.at(i + 1), "ones" | "stuff" | "things" | "bits" | "jobs")
            || clause.noun_at(i + 1).is_some();
        let word = clause.at(i);
        let marked = word.strip_suffix("-tagged").or_else(|| word.strip_suffix("-labelled"));
        let marked = marked.or_else(|| word.strip_suffix("-labeled"));
        if let Some(name) = marked.or_else(|| (kind && tag_phrases::is_common_tag(word)).then_some(word)) {
            filter.tags.push(name.to_owned());
            clause.consume(i..i + 1);
        }
    }
}

/// Returns the text that a list searches for. After "about", "called" or a similar lead, it is the rest without an
/// article before it and a list mention. In the other forms, only the first noun counts. "is milk on my list" searches
/// for the words before "on my"; other clauses with a list yield `None`. "tasks for work" searches for the words after
/// "for" or "with", except before "me", "us" and "the". "dentist reminders" searches for up to three words before the
/// noun, not at the start of the clause. Consumed tokens never count. Consumes nothing. Returns `None` if no form
/// matches or no text remains.
fn search_text(clause: &mut Clause, body: usize) -> Option<String> {
    let text =
        |clause: &Clause, range: Range<usize>| Some(clause.remaining_text(range)).filter(|text| !text.is_empty());
    if let Some((at, n)) = clause.find_phrase(body, lexicon::list_tasks::SEARCH_LEADS) {
        let start = at + n + usize::from(vocabulary::is_article(clause.at(at + n)));
        let end = target::before_list_mention(clause, start..clause.end);
        return text(clause, start..end);
    }
    let noun = clause.noun_in(body..clause.end)?;
    if matches!(clause.at(body), "is" | "are")
        && noun.noun == Noun::List
        && !vocabulary::is_article(clause.at(body + 1))
    {
        let on = clause.find_phrase(body + 1, lexicon::list_tasks::LIST_PLACE_LEADS)?;
        return text(clause, body + 1..on.0).filter(|_| clause.at(body + 1) != "there");
    }
    if noun.noun == Noun::List {
        return None;
    }
    if matches!(clause.at(noun.end), "for" | "with")
        && !clause.is_consumed(noun.end)
        && !matches!(clause.at(noun.end + 1), "me" | "us" | "the")
    {
        return text(clause, noun.end + 1..clause.end);
    }
    let start = (body..noun.at).rev().find(|i| ends_compound(clause, *i)).map_or(body, |i| i + 1);
    let named = start < noun.at && noun.at - start <= 3 && start > clause.start;
    text(clause, start..noun.at).filter(|_| named)
}

/// Returns true if the token cannot be part of a compound such as "dentist reminders". These are articles, words such
/// as "all" or "show", numbers, marks, quotes and consumed tokens.
fn ends_compound(clause: &Clause, i: usize) -> bool {
    let word = clause.at(i);
    vocabulary::is_article(word)
        || lexicon::list_tasks::COMPOUND_STOPS.contains(word)
        || clause.is_consumed(i)
        || !clause.words.is_word(i)
        || numbers::cardinal(clause.words, i).is_some()
        || word.ends_with("users'")
}

/// Parses a reminder for an existing task from `body` on: "remind me about the milk task at 5pm", "every 30 minutes, 3
/// times". A repetition by minutes, hours or days becomes an interval in minutes; a daily one is always 1440. Any other
/// repetition becomes a recurrence. A repetition apart from the time is consumed, too. It yields an interval; a weekly
/// or longer one is ignored. Consumes the dates and the count. The missing slot is the target if there is none.
/// Otherwise it is the time if there is neither a time nor an interval. The confidence stays.
fn parse_reminder(clause: &mut Clause, body: usize, confidence: f64) -> ParsedCommand {
    let mut command = ParsedCommand::new(Intent::ScheduleReminder, confidence);
    command.asks_reminder = true;
    if let Some(mention) = lead_time::find(clause, body..clause.end) {
        lead_time::consume(clause, &mention);
        command.before = Some(mention.lead);
        command.before_target = mention.event;
    }
    command.repeat_count = consume_count(clause, body);
    timing::consume_repeating(clause, body);
    let found = timing::choose_date(clause, body..clause.end, body);
    if let Some(found) = found {
        command.when = found.resolve(clause.now);
        command.time_of_day = found.time_of_day(clause.now);
        let repeat = found.parts.repeat.clone().or_else(|| separate_repeat(clause, body));
        let minutes = repeat.as_ref().and_then(|repeat| match repeat.frequency {
            RepeatFrequency::Minutely => Some(repeat.interval),
            RepeatFrequency::Hourly => Some(repeat.interval * 60),
            RepeatFrequency::Daily => Some(1440),
            _ => None,
        });
        command.repeat_interval_minutes = minutes;
        command.recurrence = repeat.is_some().then(|| counted_rule(&found, command.repeat_count)).flatten();
        if command.recurrence.is_none() {
            command.recurrence = found.rrule();
        }
    }
    let start = target::skip_connectives(clause, body, clause.end);
    command.target = target::parse(clause, start..clause.end, &mut command.filter);
    if command.target.is_none() && command.before.is_some() {
        command.target = Some(command.before_target.clone().unwrap_or(TaskTarget::It));
    }
    if command.target.is_none() {
        command.missing = Some(MissingSlot::Target);
    } else if command.before.is_some() {
        command.missing = None;
    } else if command.when.is_none() && command.repeat_interval_minutes.is_none() {
        command.missing = Some(MissingSlot::Time);
    }
    command
}

/// Returns the RRULE of a repetition with the number of reminders as its COUNT.
fn counted_rule(found: &DateMatch, count: Option<i64>) -> Option<String> {
    let rule = found.rrule()?;
    let bounded = rule.contains("COUNT=") || rule.contains("UNTIL=");
    Some(match count.filter(|_| !bounded) {
        Some(count) => format!("{rule};COUNT={count}"),
        None => rule,
    })
}

/// Consumes and returns the first repetition among the dates at or after `body`. It is separate from the time: "in 10
/// minutes, every 2 hours". Returns `None` and consumes nothing if there is none.
fn separate_repeat(clause: &mut Clause, body: usize) -> Option<Repeat> {
    let apart = |found: &&DateMatch| found.tokens.start >= body && found.parts.repeat.is_some();
    let found = clause.dates.iter().find(apart).cloned()?;
    clause.consume(found.tokens.clone());
    found.parts.repeat
}

/// Returns the number of "3 times" at or after `body`. Consumes these words, and the comma or "for" before them. Within
/// "every hour, 3 times" they belong to the date and stay. Only the number word directly before "times" counts. Returns
/// `None` if there is no count.
fn consume_count(clause: &mut Clause, body: usize) -> Option<i64> {
    let at =
        (body..clause.end).find(|i| clause.at(i + 1) == "times" && numbers::cardinal(clause.words, *i).is_some())?;
    let (n, _) = numbers::cardinal(clause.words, at)?;
    let from = at.checked_sub(1).filter(|k| matches!(clause.at(*k), "," | "for")).unwrap_or(at);
    if clause.date_at(at).is_none() {
        clause.consume(from..at + 2);
    }
    Some(n)
}
