//! Parses a new task: its title, date, priority, tags and description.

use crate::attributes;
use crate::clause::Clause;
use crate::dates::DateMatch;
use crate::intent;
use crate::lead_time;
use crate::lexicon;
use crate::parsed::{DayOrTime, Intent, MissingSlot, ParsedCommand};
use crate::reminders;
use crate::tag_phrases;
use crate::target;
use crate::timing;
use crate::trimming;
use crate::vocabulary::{self, Noun, Verb};

/// The phrasing of the request. It determines the position of the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreatePhrasing {
    /// "remind me to …": the title follows.
    Remind,
    /// "remind Bob to …": the title follows the person.
    RemindOther,
    /// "add …", "put …": the title follows, and the list may follow the title.
    Add,
    /// "set a … reminder …": the title surrounds the noun.
    Make,
    /// "todo: …", "remember to …": the rest of the clause is the title.
    Rest,
    /// "I have to …, remind me at 5": the title precedes the command.
    Preamble,
}

/// Parses the new task. `body` is the position after the command verb; for [`CreatePhrasing::Preamble`], the title ends
/// at or before it. Consumes tags, a description, list mentions, a lead time, the date and a priority. The remaining
/// words form the title. A date that opens the clause counts for every phrasing. If the title is empty or vague
/// ("something"), sets the missing slot and limits the confidence to 0.8.
pub(crate) fn parse(clause: &mut Clause, body: usize, phrasing: CreatePhrasing, confidence: f64) -> ParsedCommand {
    let mut command = ParsedCommand::new(Intent::CreateTask, confidence);
    let from = if phrasing == CreatePhrasing::Preamble { clause.start } else { body };
    let end = clause.end;
    command.tags = tag_phrases::opening_tags(clause);
    command.tags.append(&mut attributes::consume_tags(clause, body, end));
    if let Some(at) =
        tag_phrases::kind_tag(clause, body).filter(|_| matches!(phrasing, CreatePhrasing::Add | CreatePhrasing::Make))
    {
        command.tags.push(tag_phrases::tag_name(clause, at));
        clause.consume(at..at + 1);
    }
    command.description = attributes::consume_description(clause, body, end);
    let from = skip_list_mention(clause, from, phrasing);
    let words = if matches!(phrasing, CreatePhrasing::Add | CreatePhrasing::Rest) {
        target::list_mention(clause, from..end)
    } else {
        None
    };
    let list = words.as_ref().map_or(end, |words| words.start);
    clause.consume(words.unwrap_or(end..end));
    command.asks_reminder = reminders::asks_reminder(clause, body, phrasing);
    match lead_time::find(clause, clause.start..list).filter(|_| command.asks_reminder) {
        Some(mention) => {
            lead_time::consume(clause, &mention);
            command.before = Some(mention.lead);
            command.before_target = mention.event;
        }
        None => consume_lead_time(clause, body, list),
    }
    command.is_about = command.asks_reminder && reminders::is_about(clause, body, phrasing);
    drop_past_dates(clause);
    timing::consume_repeating(clause, body);
    // A date that opens the clause counts: "Tomorrow at 5, remind me to …". A date inside of a preamble does not.
    let opens = clause.date_at(clause.start).is_some();
    let dated = if opens { clause.start } else { from };
    timing::apply_date(&mut command, timing::choose_date(clause, dated..end, body), clause.now);
    consume_due_label(clause, from, end);
    consume_put_particle(clause, body);
    command.priority = attributes::consume_priority(clause, from, list);
    let title = match phrasing {
        CreatePhrasing::Make => title_around_noun(clause, body, list),
        CreatePhrasing::Add => added_title(clause, from, list),
        CreatePhrasing::Preamble => title_before_command(clause, body),
        CreatePhrasing::RemindOther => {
            let body = skip_person(clause, body, list);
            title_after_connective(clause, body, list)
        }
        CreatePhrasing::Remind | CreatePhrasing::Rest => title_after_connective(clause, body, list),
    };
    set_title(&mut command, title);
    command
}

/// Consumes "in" or "down" of "put dentist in for friday". It must directly precede a consumed date with "for".
fn consume_put_particle(clause: &mut Clause, body: usize) {
    if vocabulary::verb(clause.words.before(body)) != Some(Verb::Put) {
        return;
    }
    let particle = clause.dates.iter().map(|found| found.tokens.start).find(|start| {
        clause.at(*start) == "for" && *start > body + 1 && matches!(clause.before(*start), "in" | "down" | "on")
    });
    if let Some(at) = particle.filter(|at| clause.is_consumed(*at)) {
        clause.consume(at - 1..at);
    }
}

/// Removes dates that point back from the clause: "thank Joe for last night". They describe the task and are not its due
/// date. A date with "due" or "by", and a repetition, stay.
fn drop_past_dates(clause: &mut Clause) {
    let now = clause.now;
    let words = clause.words;
    let is_past = |found: &DateMatch| {
        let deadline = matches!(words.at(found.tokens.start), "due" | "by");
        let day = || found.resolve(now).map(DayOrTime::date);
        let backward = found.tokens.clone().any(|i| lexicon::create_task::PAST_WORDS.contains(words.at(i)));
        backward && found.parts.repeat.is_none() && !deadline && day().is_some_and(|day| day < now.date())
    };
    clause.dates.retain(|found| !is_past(found));
}

/// Sets the title. An empty title, or one that does not describe a task ("it", "something"), is set as missing instead.
/// It limits the confidence to 0.8.
fn set_title(command: &mut ParsedCommand, title: String) {
    if is_empty_title(&title) {
        command.missing = Some(MissingSlot::Title);
        command.confidence = command.confidence.min(0.8);
    } else {
        command.title = Some(title);
    }
}

/// Consumes "with a due date of", "deadline:" and similar labels before the chosen date, and a comma, a semicolon or
/// "and" before them. Only the first label in `from..to` counts, and only directly before a consumed token. A label
/// after an article, "about" or "of" is part of the title and stays.
fn consume_due_label(clause: &mut Clause, from: usize, to: usize) {
    let label = (from..to).find_map(|i| Some((i, clause.phrase(i, lexicon::create_task::DUE_LABELS)?)));
    if let Some((at, n)) = label.filter(|(at, n)| at + n < to && clause.is_consumed(at + n) && !clause.is_consumed(*at))
    {
        if vocabulary::is_article(clause.before(at)) || matches!(clause.before(at), "about" | "of") {
            return;
        }
        let mark = usize::from(at > from && matches!(clause.at(at - 1), "," | ";" | "and"));
        clause.consume(at - mark..at + n);
    }
}

/// Returns the text of a title in the range.
fn title_text(clause: &Clause, range: std::ops::Range<usize>) -> String {
    clause.remaining_text(trimming::trim_title(clause, range))
}

/// Returns true if the title is empty or does not describe a task.
fn is_empty_title(title: &str) -> bool {
    title.is_empty() || lexicon::create_task::EMPTY_TITLES.contains_ignore_case(title)
}

/// Consumes the first lead time in `from..to`: "10 minutes before", "an hour early", "the night before". It has no
/// further effect. It must be at the start of the title, after a noun for a task, or at the end. Before "to", "about",
/// "and", a comma, a period or a date it counts, too. Otherwise it stays. "at", "about" or "for" before it and "it
/// starts" or "the event" after it are consumed with it. At the start and after a noun, one to four further tokens
/// before a "to" are consumed as the event, even if the first one is "to". Lead times within a date do not count.
fn consume_lead_time(clause: &mut Clause, from: usize, to: usize) {
    if !clause.has(lexicon::dates::LEAD_TIME_AHEAD) {
        return;
    }
    for i in from..to {
        // "the night before"
        let named = clause.at(i) == "the" && lead_time::is_unit(clause, i + 1);
        let Some(unit) = lead_time::unit_at(clause, i).or(named.then_some(i + 1)) else { continue };
        let Some(n) = clause.phrase(unit + 1, lexicon::dates::LEAD_TIME_AHEAD) else { continue };
        if clause.date_at(i).is_some_and(|found| found.tokens.end > unit + 1) {
            continue;
        }
        let end = unit + 1 + n;
        let end = end + clause.phrase(end, lexicon::create_task::LEAD_TIME_OBJECTS).unwrap_or(0);
        let last =
            end >= to || matches!(clause.at(end), "to" | "about" | "." | "," | "and") || clause.date_at(end).is_some();
        let led = i.saturating_sub(usize::from(matches!(clause.before(i), "for" | "at")));
        let first = clause.is_exhausted(from..i) || clause.noun_at(led.saturating_sub(1)).is_some();
        let event = first.then(|| event_end(clause, end, to)).flatten();
        let end = event.unwrap_or(end);
        if last || first {
            let start = i.checked_sub(1).filter(|k| matches!(clause.at(*k), "at" | "about" | "for")).unwrap_or(i);
            clause.consume(start.max(from)..end);
        }
        return;
    }
}

/// Returns the position of the "to" where the event ends and the task begins: "an hour before the game to order pizza".
/// It is one to four tokens after `from`. A "to" after "have", "need", "going", "time" and similar words does not
/// count. Returns `None` if there is none.
fn event_end(clause: &Clause, from: usize, to: usize) -> Option<usize> {
    let part =
        |i: usize| matches!(clause.before(i), "have" | "has" | "need" | "needs" | "going" | "want" | "time" | "ready");
    (from + 1..to.min(from + 5)).find(|i| clause.at(*i) == "to" && !part(*i))
}

/// Returns the start of the title after "to my list: …", "on the shopping list, …", "in my notes …". Applies only to
/// [`CreatePhrasing::Add`] with "to", "on", "in" or "onto" at `body`. The list or "notes" is within five tokens. A
/// colon, a comma, a hyphen, "to" or "that" after it is skipped. Returns `body` otherwise, and if no title follows.
/// Consumes nothing.
fn skip_list_mention(clause: &mut Clause, body: usize, phrasing: CreatePhrasing) -> usize {
    if phrasing != CreatePhrasing::Add || !matches!(clause.at(body), "to" | "on" | "in" | "onto") {
        return body;
    }
    for i in body + 1..clause.end.min(body + 6) {
        let note = matches!(clause.at(i), "note" | "notes");
        if let Some(end) = target::list_end(clause, i, i + 1).or(note.then_some(i + 1)) {
            let title = end + usize::from(matches!(clause.at(end), ":" | "," | "-" | "to" | "that"));
            return if clause.is_exhausted(end..clause.end) { body } else { title };
        }
    }
    body
}

/// Returns the title in `body..end` after "remind me", "remember", "todo". Skips consumed tokens, marks and up to three
/// leads such as "to", "that I need to" or "about". "2" before an activity and "and Jen to" are skipped, too. Consumes
/// "later" or "sometime" at the end, unless it is the only word. Can be empty.
fn title_after_connective(clause: &mut Clause, body: usize, end: usize) -> String {
    let mut start = skip_consumed(clause, body, end);
    for _ in 0..3 {
        match clause.phrase(start, lexicon::create_task::TITLE_LEADS).filter(|n| start + n < end) {
            Some(n) => start = skip_consumed(clause, start + n, end),
            None => break,
        }
    }
    // "remind me 2 pay rent", "remind me and Jen to pay rent"
    if clause.at(start) == "2" && intent::is_activity(clause, start + 1) {
        start += 1;
    }
    if clause.at(start) == "and"
        && let Some(to) = (start + 2..end.min(start + 5)).find(|i| clause.at(*i) == "to")
    {
        start = to + 1;
    }
    consume_later(clause, start, end);
    title_text(clause, start..end)
}

/// Returns the first token that is neither consumed nor a mark, or `end`.
fn skip_consumed(clause: &Clause, start: usize, end: usize) -> usize {
    (start..end).find(|i| !clause.is_exhausted(*i..i + 1)).unwrap_or(end)
}

/// Consumes "later" or "sometime" as the last word that is not consumed in `start..end`, because it has no value. Keeps
/// it as the only word.
fn consume_later(clause: &mut Clause, start: usize, end: usize) {
    let last = (start + 1..end).rev().find(|i| !clause.is_exhausted(*i..i + 1));
    if let Some(last) = last.filter(|i| matches!(clause.at(*i), "later" | "sometime")) {
        clause.consume(last..last + 1);
    }
}

/// Returns the position of "to", "about", "that", "of" or "for", or of a consumed token, after the person to remind.
/// The person has at least one token. Returns `body` if none of them follows.
fn skip_person(clause: &mut Clause, body: usize, end: usize) -> usize {
    (body + 1..end)
        .find(|i| lexicon::grammar::OF_TASK.contains(clause.at(*i)) || clause.is_consumed(*i))
        .unwrap_or(body)
}

/// Returns the title before `head`, from the start of the clause. "can you remind me", "and", marks and similar words
/// at its end are left out. So are "I have to" or a similar phrase and one article at its start. Can be empty.
fn title_before_command(clause: &mut Clause, head: usize) -> String {
    let mut end = head;
    while end > clause.start && lexicon::create_task::REMARK_TAILS.contains(clause.before(end)) {
        end -= 1;
    }
    let start = skip_consumed(clause, clause.start, end);
    let start =
        skip_consumed(clause, start + clause.phrase(start, lexicon::create_task::TRAILING_REMARKS).unwrap_or(0), end);
    title_text(clause, start + usize::from(vocabulary::is_article(clause.at(start)))..end)
}

/// Returns true for words between the verb and the noun that are not part of a title.
fn is_adjective(word: &str) -> bool {
    vocabulary::is_article(word) || lexicon::create_task::NOUN_ADJECTIVES.contains(word)
}

/// Returns the title of "add a task to …", "add … task", "add …" in `body..end`. After a noun for a task at the start,
/// with articles and adjectives before it, the title follows its connectives. A list there counts only if nothing
/// follows it. "one more for …" is skipped. A singular task or reminder at the end, and then an article at the start,
/// are left out. Can be empty.
fn added_title(clause: &mut Clause, body: usize, end: usize) -> String {
    let mut i = body;
    while i < end
        && clause.noun_at(i).is_none()
        && (clause.is_consumed(i) || is_adjective(clause.at(i)) || is_list_name(clause, i))
    {
        i += 1;
    }
    if let Some(noun) = clause.noun_at(i).filter(|_| i < end)
        && (noun.noun != Noun::List || clause.is_exhausted(noun.end..end))
    {
        let start = target::skip_connectives(clause, noun.end, end);
        return title_text(clause, start..end);
    }
    // "add one more: …", "add one for …"
    let one = clause.phrase(body, lexicon::create_task::ONE_MORE);
    if let Some(n) = one.filter(|n| body + n < end) {
        return title_text(clause, body + n..end);
    }
    let last = clause
        .nouns_in(body + 1..end)
        .find(|noun| clause.is_exhausted(noun.end..end) && noun.noun != Noun::List && !noun.plural);
    let start = body + usize::from(vocabulary::is_article(clause.at(body)) && last.is_some());
    title_text(clause, start..last.map_or(end, |noun| noun.at))
}

/// Returns true for "grocery" in "grocery items".
fn is_list_name(clause: &Clause, i: usize) -> bool {
    matches!(clause.at(i), "shopping" | "grocery") && clause.noun_at(i + 1).is_some()
}

/// Returns the title before and after the noun: "set a dentist reminder for …", "create a task to …". Only the words
/// after it count after "to", "about", "that", "called", "named" or a colon. The same holds if the words before it name
/// a person. Only the words before it count if none follow. Otherwise both are joined, with "for" or a similar word
/// between them. Articles and adjectives ("new", "recurring") before the noun do not count. Without a noun, all words
/// form the title. Consumes a list mention, and "later" or "sometime" at the end, after the noun.
fn title_around_noun(clause: &mut Clause, body: usize, end: usize) -> String {
    let noun = clause.nouns_in(body..end).find(|noun| noun.noun != Noun::List && !clause.is_consumed(noun.at));
    let Some(noun) = noun.or_else(|| clause.noun_in(body..end)) else { return title_text(clause, body..end) };
    let start = (body..noun.at).find(|i| !clause.is_consumed(*i) && !is_adjective(clause.at(*i))).unwrap_or(noun.at);
    let after = target::skip_connectives(clause, noun.end, end);
    let after = after + clause.phrase(after, lexicon::create_task::SELF_NOTES).unwrap_or(0);
    let words = target::list_mention(clause, after..end);
    let list = words.as_ref().map_or(end, |words| words.start);
    clause.consume(words.unwrap_or(end..end));
    consume_later(clause, after, list);
    let tail = title_text(clause, after..list);
    let has_connective = matches!(clause.at(noun.end), "to" | "about" | "that" | ":" | "called" | "named");
    if start >= noun.at || has_connective && !tail.is_empty() {
        return tail;
    }
    let head = title_text(clause, start..noun.at);
    match (tail.is_empty(), names_person(&clause.remaining_text(start..noun.at))) {
        (true, _) => head,
        (_, true) => tail,
        _ => format!("{head} {}", clause.remaining_text(noun.end..list)),
    }
}

/// Returns true if the words before the noun name a person and not the title: "send Bob a reminder about …". `head` is
/// their text. It then ends with " a", " an", " the" or " another".
fn names_person(head: &str) -> bool {
    head.ends_with(" a") || head.ends_with(" the") || head.ends_with(" another") || head.ends_with(" an")
}
