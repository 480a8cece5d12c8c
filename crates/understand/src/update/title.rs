//! Parses the new title of a task, or additions to it: "rename a to b", "a should be b", "b instead of a".
//!
//! All `parse_…` functions except [`parse_replacement`] return the range that names the task. `range` are the tokens
//! after the verb: the task and the new value. `command` receives the change. Consumed tokens are no part of a name or
//! a title. "A noun for a task" is a word such as "task", "reminder" or "list".

use std::ops::Range;

use crate::attributes;
use crate::clause::Clause;
use crate::intent;
use crate::lead_time;
use crate::lexicon;
use crate::parsed::ParsedCommand;
use crate::target;
use crate::timing;
use crate::trimming;
use crate::vocabulary::{self, Noun};

/// Parses "rename a to b". Dividers are "to", "as", "into", "→" and ">". Prefers the first one after a quoted passage,
/// then one after a named task or reminder ("the milk task to"). Otherwise splits at the first one. The title stays
/// empty if no text follows. Without a divider, a quoted passage at the end is the title, unless it is the whole range.
/// Otherwise returns the whole range and changes nothing.
pub(super) fn parse_rename(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    let dividers: Vec<usize> =
        range.clone().filter(|i| matches!(clause.at(*i), "to" | "as" | "into" | "→" | ">")).collect();
    let quoted = |i: &&usize| i.checked_sub(1).is_some_and(|k| clause.words.is_quoted(k));
    let after_name = |i: &&usize| {
        let noun = clause.nouns_in(range.clone()).any(|noun| noun.noun != Noun::List && noun.end == **i);
        noun && !clause.is_exhausted(range.start..**i)
    };
    let found = dividers.iter().find(quoted).or_else(|| dividers.iter().find(after_name)).or(dividers.first());
    let Some(at) = found.copied() else {
        let last = range.end.saturating_sub(1);
        if last > range.start && clause.words.is_quoted(last) {
            command.title = Some(clause.words.quoted_text(last).to_owned());
            return range.start..last;
        }
        return range;
    };
    command.title = title_text(clause, at + 1..range.end);
    range.start..at
}

/// Returns the title in a range after the divider. Drops a final "instead", and a lead ("remind me to") at the start.
/// Drops a word for a task or reminder at the start, with its article and connectives. Drops a word for a reminder at
/// the end. Returns `None` if nothing remains. Consumes nothing.
fn title_text(clause: &Clause, range: Range<usize>) -> Option<String> {
    let end = if range.len() > 1 && clause.at(range.end - 1) == "instead" { range.end - 1 } else { range.end };
    let mut start = range.start + clause.phrase(range.start, lexicon::update_titles::LEADS).unwrap_or(0);
    let article = start + usize::from(vocabulary::is_article(clause.at(start)));
    if let Some(noun) = clause.noun_at(article).filter(|noun| noun.noun != Noun::List && noun.end < end) {
        start = target::skip_connectives(clause, noun.end, end);
    }
    let last = clause.nouns_in(start + 1..end).find(|noun| noun.noun == Noun::Reminder && noun.end == end);
    let range = trimming::trim_name(clause, start..last.map_or(end, |noun| noun.at));
    Some(clause.remaining_text(range)).filter(|title| !title.is_empty())
}

/// Parses "update a: it should read b", "change a so it reads b", "a should be b". "… on the a task" at the end names
/// the task: the range then begins after "on", "in" or "for". Returns `None` if there is no such phrase, if it ends the
/// range, or if it is consumed. Also `None` if a date that ends the range follows it. "be" before a priority or a word
/// such as "due" does not count, nor does the "to" of "the reminder to …".
pub(super) fn parse_should_say(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    let (at, n) =
        clause.find_phrase(range.start, lexicon::update_titles::TITLE_LEADS).filter(|(at, n)| at + n < range.end)?;
    let dated = clause.date_at(at + n).is_some_and(|found| found.tokens.end >= range.end);
    let names = clause.at(at) == "to"
        && clause.nouns_in(range.start..at).any(|noun| {
            noun.end == at
                && (range.start..noun.at).all(|i| vocabulary::is_article(clause.at(i)) || clause.is_consumed(i))
        });
    let state = clause.at(at + n - 1) == "be"
        && (attributes::priority_at(clause, at + n).is_some()
            || lexicon::update_titles::NOT_TITLES.contains(clause.at(at + n)));
    if dated || names || state || clause.is_consumed(at) {
        return None;
    }
    // "instead of chicken it should read turkey on the buy chicken task"
    let on = clause.nouns_in(at + n..range.end).find(|noun| noun.noun != Noun::List && noun.end == range.end);
    let on = on.and_then(|noun| (at + n + 1..noun.at).find(|i| matches!(clause.at(*i), "on" | "in" | "for")));
    command.title = title_text(clause, at + n..on.unwrap_or(range.end));
    Some(on.map_or(range.start..at, |on| on + 1..range.end))
}

/// Parses "from one bag of coffee to two", "from oat milk to soy milk". The old value must be words: no date, time,
/// priority or status. A bare number replaces the number of the old value. Returns the range before "from". Returns
/// `None` for other values.
pub(super) fn parse_from_to(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    let from = range.clone().find(|i| clause.at(*i) == "from")?;
    let to = (from + 2..range.end).find(|i| clause.at(*i) == "to" && *i + 1 < range.end)?;
    let counted = crate::numbers::cardinal(clause.words, from + 1).map(|(_, len)| len);
    let first = from + 1 + counted.unwrap_or(0);
    let is_value = |i: usize| {
        attributes::priority_level(clause.at(i)).is_some()
            || lexicon::update_titles::NOT_TITLES.contains(clause.at(i))
            || lead_time::is_unit(clause, i)
            || matches!(
                clause.at(i),
                "am" | "pm" | "o'clock" | "noon" | "midnight" | "done" | "open" | "days" | "times"
            )
    };
    let dated = |range: Range<usize>| {
        range.into_iter().any(|i| clause.date_at(i).is_some_and(|found| !found.parts.is_clock_only()))
    };
    if first >= to || (first..to).any(is_value) || dated(from..to) || is_value(to + 1) {
        return None;
    }
    let number = crate::numbers::cardinal(clause.words, to + 1).filter(|(_, len)| to + 1 + len == range.end);
    if number.is_none() && (dated(to..range.end) || clause.date_at(to + 1).is_some() || counted.is_none()) {
        return None;
    }
    let new = clause.words.text(to + 1..range.end);
    command.title = Some(match number.filter(|_| counted.is_some()) {
        Some((n, _)) => format!("{new} {}", pluralized(clause.words.text(first..to), n)),
        None => new.to_owned(),
    });
    clause.consume(from..range.end);
    Some(range.start..from)
}

/// Returns the counted words with an "s" at the first one if the number is above 1: "bag of coffee" becomes "bags of
/// coffee".
fn pluralized(words: &str, n: i64) -> String {
    let (first, rest) = words.split_once(' ').map_or((words, ""), |(first, rest)| (first, rest));
    let first = if n > 1 && !first.ends_with('s') { format!("{first}s") } else { first.to_owned() };
    if rest.is_empty() { first } else { format!("{first} {rest}") }
}

/// Parses "replace a with b", "swap a for b". Needs "replace", "swap", "switch", "exchange" or "substitute" directly
/// before the range. Splits at the first "with" or "by" outside of a date. "for" counts only after "swap" and
/// "exchange", and not after a noun for a task. Returns `None` without such a verb or divider, or if a date that ends
/// the range follows.
pub(super) fn parse_replace(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    if !matches!(clause.before(range.start), "replace" | "swap" | "switch" | "exchange" | "substitute") {
        return None;
    }
    let divides = |i: &usize| match clause.at(*i) {
        "with" | "by" => true,
        "for" => {
            matches!(clause.before(range.start), "swap" | "exchange") && clause.noun_at(i.saturating_sub(1)).is_none()
        }
        _ => false,
    };
    let at = (range.start + 1..range.end).filter(divides).find(|i| clause.date_at(*i).is_none())?;
    if clause.date_at(at + 1).is_some_and(|found| found.tokens.end >= range.end) {
        return None;
    }
    command.title = title_text(clause, at + 1..range.end);
    Some(range.start..at)
}

/// Parses "remove the choir reminder and replace it with gym class". `range` is the part after "and". Does nothing for
/// other words.
pub(super) fn parse_replacement(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) {
    let with = clause.phrase(range.start, lexicon::update_titles::REPLACE_WITH);
    if let Some(n) = with.filter(|n| range.start + n < range.end) {
        command.title = title_text(clause, range.start + n..range.end);
    }
}

/// Parses "my reminder to buy pizza instead of pasta": the old title follows and names the task. Also applies a date
/// and consumes it. A noun with "to", "for", "about" or "that", or else a pronoun at the start, must precede the new
/// title. In "it to two milks instead of one", the pronoun names the task. Returns `None` if "instead of" ends the
/// range, or if a date, a noun for a task or another amount follows it. A word such as "it" or "later" after it, or a
/// date with "to" or "until" directly before it, does not match either. An empty new title also yields `None`, but the
/// date stays applied.
pub(super) fn parse_instead(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    let (at, n) = clause.find_phrase(range.start, lexicon::grammar::INSTEAD_OF)?;
    let old = at + n;
    let amount = crate::numbers::amount(clause.words, old);
    let noun = clause.noun_in(range.start..at).filter(|noun| noun.noun != Noun::List);
    // "two milks instead of one" refers to milk, "5 instead of 4" to the time.
    let counted = amount.is_some_and(|(_, len)| old + len >= range.end)
        && noun.is_none()
        && at > range.start + 2
        && !clause.dates.iter().any(|found| found.tokens.start >= range.start && found.tokens.start < at);
    let other = !counted && (old >= range.end || clause.date_at(old).is_some() || amount.is_some());
    let led = |start: usize| {
        matches!(clause.before(start), "to" | "until" | "by" | "for")
            || matches!(clause.at(start), "to" | "until" | "by")
    };
    let dated = clause.dates.iter().any(|found| found.tokens.end == at && led(found.tokens.start));
    let vague = lexicon::update_titles::NOT_OLD_TITLES.contains(clause.at(old));
    if other || dated || vague || clause.noun_in(old..range.end).is_some() {
        return None;
    }
    let start = match noun {
        Some(noun) if noun.end < at && matches!(clause.at(noun.end), "to" | "for" | "about" | "that") => noun.end,
        None if matches!(clause.at(range.start), "it" | "that" | "this") => range.start + 1,
        _ => return None,
    };
    timing::apply_date(
        command,
        timing::choose_date(clause, start..if counted { at } else { range.end }, start),
        clause.now,
    );
    let named = target::skip_connectives(clause, start, at);
    command.title = title_text(clause, named..at);
    let about = if counted { range.start..range.start + 1 } else { old..range.end };
    command.title.is_some().then_some(about)
}

/// Parses "instead of the gym, remind me to go swimming". The old title precedes the new one and names the task.
/// `range` begins after "of" or "than". Also applies a date in the new title and consumes it. Returns `None` without
/// "remind me to" or a similar request. Also `None` if the old value is a date or begins with "reminding me". An empty
/// new title yields `None` too, but the date stays applied.
pub(super) fn parse_instead_of(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    if !matches!(clause.before(range.start), "of" | "than") {
        return None;
    }
    let (at, n) = clause
        .find_phrase(range.start + 1, lexicon::update_titles::REMIND_LEADS)
        .filter(|(at, n)| at + n < range.end)?;
    let dated = clause.date_at(range.start).is_some_and(|found| found.tokens.end + 1 >= at);
    let reminding = clause.at(range.start).ends_with("ing") && matches!(clause.at(range.start + 1), "me" | "us");
    if dated || reminding {
        return None;
    }
    timing::apply_date(command, timing::choose_date(clause, at + n..range.end, at + n), clause.now);
    command.title = title_text(clause, at + n..range.end);
    command.title.is_some().then_some(range.start..at)
}

/// Parses "… to include milk", "… and add milk", "… by adding milk". Sets the text as an addition to the description,
/// without "also" or "to" before it and "too" after it. Returns `None` if there is no such phrase with text after it in
/// the range. Also `None` if no noun for a task precedes it, or if a date follows it.
pub(super) fn parse_addition(
    clause: &mut Clause,
    range: Range<usize>,
    command: &mut ParsedCommand,
) -> Option<Range<usize>> {
    let (at, n) =
        clause.find_phrase(range.start + 1, lexicon::update_titles::ADDITIONS).filter(|(at, n)| at + n < range.end)?;
    // "change the report to add a chart" is a new title, unless a noun marks the task.
    clause.noun_in(range.start..at)?;
    if clause.date_at(at + n).is_some() {
        return None;
    }
    let end = clause.phrase(range.end - 1, lexicon::update_titles::ADDITION_TAILS).map_or(range.end, |_| range.end - 1);
    let start = at + n + usize::from(matches!(clause.at(at + n), "also" | "to"));
    command.description = Some(clause.remaining_text(start..end)).filter(|text| !text.is_empty());
    command.appends_description = command.description.is_some();
    command.adds_item = command.appends_description;
    Some(range.start..at)
}

/// Parses "the milk task to oat milk", "'a' to 'b'", "reminder to buy milk to buy eggs". Without a divider, it returns
/// the whole range and changes nothing.
pub(super) fn parse_change(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    let Some(at) = find_divider(clause, &range) else { return range };
    // "15 minutes before" is a lead time and not a title.
    command.title = title_text(clause, at + 1..range.end).filter(|_| lead_time::unit_at(clause, at + 1).is_none());
    range.start..at
}

/// Returns the position of the divider between the task and the new title: "to", "into", "with" or ":" outside of a
/// date. Prefers the one directly after the first noun, if this is a reminder or has a name before it. Otherwise it is
/// the first one. In "the reminder to call Bob to …", the first "to" belongs to the name. There, it is the next divider
/// before an activity, else the last one. Returns `None` if there is none.
fn find_divider(clause: &Clause, range: &Range<usize>) -> Option<usize> {
    let divides = |i: &usize| matches!(clause.at(*i), "to" | "into" | "with" | ":") && clause.date_at(*i).is_none();
    let dividers: Vec<usize> = range.clone().filter(divides).collect();
    let first = *dividers.first()?;
    let Some(noun) = clause.noun_in(range.clone()) else { return Some(first) };
    let named = (range.start..noun.at).any(|i| !vocabulary::is_article(clause.at(i)));
    // "the reminder to call Bob" names a task. Its first "to" is not a divider.
    if noun.noun == Noun::Reminder && !named && first == noun.end {
        let doing = dividers.iter().skip(1).find(|i| intent::is_activity(clause, **i + 1));
        return doing.or(dividers.last()).copied().filter(|at| *at != first);
    }
    let divided = dividers.contains(&noun.end) && (named || noun.noun == Noun::Reminder);
    Some(if divided { noun.end } else { first })
}
