//! Turns one clause into one command.

use std::ops::Range;

use crate::clause::Clause;
use crate::create::{self, Form};
use crate::dates::{Found, Frequency, Repeat};
use crate::filter;
use crate::intent::{self, Act, Guess};
use crate::labels;
use crate::lexicon;
use crate::numbers;
use crate::reading::{Command, DueFilter, Filter, Intent, Missing, StatusFilter, Target, When};
use crate::subject;
use crate::target;
use crate::tense;
use crate::timing;
use crate::update;
use crate::vocabulary::{self, Noun};

/// Up to this, a new task is only guessed at.
pub(crate) const GUESS: f64 = 0.6;

/// A need that nobody asked to be kept; beside a new task it is only why that is wanted.
pub(crate) const NEED: f64 = 0.48;

/// Below this, that a task is done was told in passing.
pub(crate) const TOLD: f64 = 0.7;

/// What is not about tasks, and is a date and nothing else.
pub(crate) const DATE_ONLY: f64 = 0.5;

/// Below this, a command is implied and not given.
const IMPLIED: f64 = 0.6;

/// A command while it is being read: how sure the rules are of it stands in it, what the model thinks beside it.
pub(crate) struct Draft {
    pub(crate) command: Command,
    /// `None` where the model has no say.
    likelihood: Option<f64>,
}

impl Draft {
    pub(crate) fn by_rules(command: Command) -> Self {
        Self { command, likelihood: None }
    }

    /// The command as it is handed out, with how likely it is that it was meant.
    pub(crate) fn finish(self) -> Command {
        let mut command = self.command;
        command.implied = command.confidence < IMPLIED;
        let likelihood = self.likelihood.filter(|_| !command.filter.unsupported);
        command.confidence = (likelihood.unwrap_or(command.confidence) * 1000.0).round() / 1000.0;
        command
    }
}

pub(crate) fn read(clause: &mut Clause) -> Draft {
    let verdict = intent::decide(clause);
    let command = carry_out(clause, verdict.guess);
    // Where only the model sees a command, there must be something for it to be about.
    if verdict.overruled && matches!(command.missing, Some(Missing::Title | Missing::Target)) {
        return Draft::by_rules(unknown(clause));
    }
    Draft { command, likelihood: verdict.likelihood }
}

fn carry_out(clause: &mut Clause, guess: Guess) -> Command {
    match guess {
        None => unknown(clause),
        Some((Act::Undo, confidence)) => Command::new(Intent::Undo, confidence),
        Some((Act::Finished, confidence)) => {
            Command { target: Some(Target::It), ..Command::new(Intent::CompleteTask, confidence) }
        }
        Some((Act::Create(form, body), confidence)) => create::read(clause, body, form, confidence),
        Some((Act::List(body), confidence)) => list(clause, body, confidence),
        Some((Act::Check(from, to), confidence)) => check(clause, from, to, confidence),
        Some((Act::Complete(body, end), confidence)) => about(clause, Intent::CompleteTask, body, end, confidence),
        Some((Act::Delete(body, end), confidence)) => about(clause, Intent::DeleteTask, body, end, confidence),
        Some((Act::Update(change, from, to), confidence)) => update::read(clause, from..to, change, confidence),
        Some((Act::Remind(body), confidence)) => remind(clause, body, confidence),
    }
}

/// One task of a list.
pub(crate) fn item(clause: &mut Clause, intent: Intent) -> Draft {
    let start = clause.start;
    let end = clause.end;
    Draft::by_rules(match intent {
        Intent::CreateTask => create::read(clause, start, Form::Add, 0.93),
        intent => about(clause, intent, start, end, 0.85),
    })
}

/// A list that is asked for by what it is to hold: "everything due today".
pub(crate) fn listed(clause: &mut Clause, confidence: f64) -> Command {
    let start = clause.start;
    list(clause, start, confidence)
}

/// Not about tasks; a date that was said is kept, since it may answer a question.
fn unknown(clause: &mut Clause) -> Command {
    let confidence = match (clause.is_date(), clause.is_foreign()) {
        (true, _) => DATE_ONLY,
        (_, true) => 0.97,
        _ => 0.9,
    };
    let mut command = Command::new(Intent::Unknown, confidence);
    let dates = timing::choose(clause, clause.start..clause.end, clause.start);
    timing::apply(&mut command, dates, clause.now);
    command
}

/// Completing and deleting.
fn about(clause: &mut Clause, intent: Intent, body: usize, end: usize, confidence: f64) -> Command {
    let mut command = Command::new(intent, confidence);
    let end = if end > body + 1 && clause.at(end - 1) == "instead" { end - 1 } else { end };
    command.target = target::read(clause, body..end, &mut command.filter);
    if command.target == Some(Target::It) && body > clause.start + 2 {
        let done = || subject::done(clause, clause.start..body - 1).filter(|_| intent == Intent::CompleteTask);
        let named = done().or_else(|| subject::read(clause, clause.start..body - 1));
        name(&mut command, named);
    }
    if intent == Intent::CompleteTask {
        as_to_do(clause, body, &mut command);
    }
    // "delete all tasks due next week": more than was meant must not go.
    if command.target.is_none() || command.target == Some(Target::All) && command.filter.unsupported {
        command.missing = Some(Missing::Target);
        command.confidence = confidence.min(0.8);
    }
    command
}

/// Takes over what a remark says about which task is meant.
pub(crate) fn name(command: &mut Command, named: Option<Target>) {
    if named.is_some() {
        command.target = named;
        command.missing = command.missing.filter(|missing| *missing != Missing::Target);
    }
}

/// "I already called mom": the task is to call mom.
fn as_to_do(clause: &Clause, body: usize, command: &mut Command) {
    let Some(Target::Named(name)) = &mut command.target else { return };
    let particle = body
        .checked_sub(2)
        .filter(|_| matches!(clause.before(body), "up" | "off" | "out" | "in" | "to" | "for" | "back"));
    let Some(at) = particle.or(body.checked_sub(1)).filter(|at| *at >= clause.start) else { return };
    let told = matches!(clause.before(at), "i" | "we" | "already" | "just" | "i've");
    let past =
        |base: &String| !lexicon::complete_task::PAST_VERBS.contains(clause.at(at)) && (told || base != clause.at(at));
    let Some(verb) = tense::base(clause.at(at)).filter(past) else { return };
    let article = usize::from(vocabulary::is_article(clause.at(body)));
    let between = clause.words.text(at + 1..body + article);
    *name = if between.is_empty() { format!("{verb} {name}") } else { format!("{verb} {between} {name}") };
}

/// "is the report done?": the tasks that are named so, whatever their state.
fn check(clause: &mut Clause, from: usize, to: usize, confidence: f64) -> Command {
    let mut command = Command::new(Intent::ListTasks, confidence);
    if let Some(Target::Named(name)) = target::read(clause, from..to, &mut command.filter) {
        command.filter.text = Some(name);
        command.filter.status = Some(StatusFilter::All);
    }
    command
}

fn list(clause: &mut Clause, body: usize, confidence: f64) -> Command {
    let mut command = Command::new(Intent::ListTasks, confidence);
    let range = body..clause.end;
    let all = (body..clause.end).any(|i| matches!(clause.at(i), "all" | "everything" | "every"));
    filter::read(clause, range.clone(), &mut command.filter);
    if command.filter.status.is_none() && all && command.filter.due.is_none() && command.filter.priority.is_none() {
        command.filter.status = Some(StatusFilter::All);
    }
    if command.filter.due == Some(DueFilter::Tomorrow) {
        command.when = clause.now.date().tomorrow().ok().map(When::Day);
    }
    tagged(clause, body, &mut command.filter);
    command.filter.text = searched(clause, body);
    // "tasks for work" are those with that tag, "tasks about work" need not be.
    let kind =
        |text: &mut String| labels::is_common(&text.to_lowercase()) && !clause.has(lexicon::list_tasks::SUBJECT_LEADS);
    if let Some(text) = command.filter.text.take_if(kind) {
        command.filter.tags.push(text);
    }
    if clause.has(lexicon::filters::EXCEPTIONS) {
        command.filter = Filter { unsupported: true, ..Filter::default() };
        command.when = None;
    }
    if command.filter.unsupported {
        command.confidence = command.confidence.min(0.45);
    }
    command
}

/// "#work things", "the work ones", "overdue work tasks", "travel-tagged tasks": the tags that nothing else leads to.
fn tagged(clause: &mut Clause, body: usize, filter: &mut Filter) {
    filter.tags.append(&mut labels::opening(clause));
    for i in body..clause.end {
        if clause.is_taken(i) || clause.words.is_quoted(i) {
            continue;
        }
        let kind = matches!(clause.at(i + 1), "ones" | "stuff" | "things" | "bits" | "jobs")
            || clause.noun_at(i + 1).is_some();
        let word = clause.at(i);
        let marked = word.strip_suffix("-tagged").or_else(|| word.strip_suffix("-labelled"));
        let marked = marked.or_else(|| word.strip_suffix("-labeled"));
        if let Some(name) = marked.or_else(|| (kind && labels::is_common(word)).then_some(word)) {
            filter.tags.push(name.to_owned());
            clause.take(i..i + 1);
        }
    }
}

/// What a list is searched for: "about the dentist", "tasks for work", "dentist reminders", "is milk on my list".
fn searched(clause: &mut Clause, body: usize) -> Option<String> {
    let text = |clause: &Clause, range: Range<usize>| Some(clause.rest(range)).filter(|text| !text.is_empty());
    if let Some((at, n)) = clause.seek(body, lexicon::list_tasks::SEARCH_LEADS) {
        let start = at + n + usize::from(vocabulary::is_article(clause.at(at + n)));
        let end = target::list_tail(clause, start..clause.end);
        return text(clause, start..end);
    }
    let noun = clause.noun_in(body..clause.end)?;
    if matches!(clause.at(body), "is" | "are")
        && noun.noun == Noun::List
        && !vocabulary::is_article(clause.at(body + 1))
    {
        let on = clause.seek(body + 1, lexicon::list_tasks::LIST_PLACE_LEADS)?;
        return text(clause, body + 1..on.0).filter(|_| clause.at(body + 1) != "there");
    }
    if noun.noun == Noun::List {
        return None;
    }
    if matches!(clause.at(noun.end), "for" | "with")
        && !clause.is_taken(noun.end)
        && !matches!(clause.at(noun.end + 1), "me" | "us" | "the")
    {
        return text(clause, noun.end + 1..clause.end);
    }
    let start = (body..noun.at).rev().find(|i| ends_compound(clause, *i)).map_or(body, |i| i + 1);
    let named = start < noun.at && noun.at - start <= 3 && start > clause.start;
    text(clause, start..noun.at).filter(|_| named)
}

/// Words before which the name of a kind of task cannot reach.
fn ends_compound(clause: &Clause, i: usize) -> bool {
    let word = clause.at(i);
    vocabulary::is_article(word)
        || lexicon::list_tasks::COMPOUND_STOPS.contains(word)
        || clause.is_taken(i)
        || !clause.words.is_word(i)
        || numbers::cardinal(clause.words, i).is_some()
        || word.ends_with("users'")
}

/// "remind me about the milk task at 5pm", "every 30 minutes, 3 times".
fn remind(clause: &mut Clause, body: usize, confidence: f64) -> Command {
    let mut command = Command::new(Intent::ScheduleReminder, confidence);
    command.repeat_count = times(clause, body);
    timing::take_repeating(clause, body);
    let found = timing::choose(clause, body..clause.end, body);
    if let Some(found) = found {
        command.when = found.when(clause.now);
        command.clock = found.clock(clause.now);
        let repeat = found.parts.repeat.clone().or_else(|| other_repeat(clause, body));
        let minutes = repeat.as_ref().and_then(|repeat| match repeat.frequency {
            Frequency::Minutely => Some(repeat.interval),
            Frequency::Hourly => Some(repeat.interval * 60),
            Frequency::Daily => Some(1440),
            _ => None,
        });
        command.repeat_interval_minutes = minutes;
        if minutes.is_none() {
            command.recurrence = found.rule();
        }
    }
    let start = target::connective(clause, body, clause.end);
    command.target = target::read(clause, start..clause.end, &mut command.filter);
    if command.target.is_none() {
        command.missing = Some(Missing::Target);
    } else if command.when.is_none() && command.repeat_interval_minutes.is_none() {
        command.missing = Some(Missing::Time);
    }
    command
}

/// "in 10 minutes, every 2 hours": the repetition stands apart from the time.
fn other_repeat(clause: &mut Clause, body: usize) -> Option<Repeat> {
    let apart = |found: &&Found| found.tokens.start >= body && found.parts.repeat.is_some();
    let found = clause.dates.iter().find(apart).cloned()?;
    clause.take(found.tokens.clone());
    found.parts.repeat
}

/// "3 times", taken with the comma before it; within "every hour, 3 times" it is part of the date.
fn times(clause: &mut Clause, body: usize) -> Option<i64> {
    let at =
        (body..clause.end).find(|i| clause.at(i + 1) == "times" && numbers::cardinal(clause.words, *i).is_some())?;
    let (n, _) = numbers::cardinal(clause.words, at)?;
    let from = at.checked_sub(1).filter(|k| matches!(clause.at(*k), "," | "for")).unwrap_or(at);
    if clause.date_at(at).is_none() {
        clause.take(from..at + 2);
    }
    Some(n)
}
