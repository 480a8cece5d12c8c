//! Which existing task a command means: by words of its title, by its place, by "it", or all of them.

use std::ops::Range;

use crate::clause::{Clause, Named};
use crate::filter;
use crate::lead_time;
use crate::lexicon;
use crate::margins;
use crate::numbers;
use crate::reading::{Filter, Target};
use crate::several;
use crate::vocabulary::{self, Noun};

/// Reads a reference. `None`: nothing in the stretch names a task.
pub(crate) fn read(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) -> Option<Target> {
    let range = trim(clause, without_remark(clause, corrected(clause, range)));
    if range.is_empty() {
        return None;
    }
    if let Some(places) = several::places(clause, &range) {
        return Some(places);
    }
    if let Some(after) = all(clause, &range) {
        return Some(every(clause, after..range.end, filter));
    }
    if range.len() > 2
        && let Some(several) = several::read(clause, &range)
    {
        return Some(several);
    }
    one(clause, range.clone()).or_else(|| by_date(clause, range, filter))
}

/// "mom, I mean the report": what is said last is meant.
fn corrected(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let at = clause
        .seek(range.start, lexicon::references::CORRECTIONS)
        .map(|(at, n)| at + n)
        .filter(|start| *start < range.end);
    at.unwrap_or(range.start)..range.end
}

/// Cuts off why the command is given: "…, I already did it", "… since we moved", "… anymore".
fn without_remark(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let cut = clause
        .seek(range.start + 1, lexicon::references::REMARKS)
        .filter(|(at, _)| *at < range.end && !clause.is_taken(*at));
    range.start..cut.map_or(range.end, |(at, _)| at)
}

/// Leaves out small words and marks at both ends.
fn trim(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let mut range = range.start..range.end.min(clause.end);
    range.start +=
        clause.phrase(range.start, lexicon::references::STATUS_LEADS).filter(|n| *n < range.len()).unwrap_or(0);
    // "both the milk and the bread"
    if clause.at(range.start) == "both" && range.len() > 3 {
        range.start += 1;
    }
    while !range.is_empty()
        && (clause.is_spent(range.start..range.start + 1)
            || lexicon::references::EDGE_WORDS.contains(clause.at(range.start)))
    {
        range.start += 1;
    }
    while range.len() > 1
        && (clause.is_spent(range.end - 1..range.end) || matches!(clause.at(range.end - 1), "off" | "already" | "now"))
    {
        range.end -= 1;
    }
    while !range.is_empty() && clause.is_spent(range.end - 1..range.end) {
        range.end -= 1;
    }
    range
}

/// "all", "everything", "every", "each of": where what they range over begins. A whole list counts, too.
fn all(clause: &Clause, range: &Range<usize>) -> Option<usize> {
    let i = range.start;
    if let Some(n) = clause.phrase(i, lexicon::references::ALL).filter(|n| i + n <= range.end) {
        return Some(i + n);
    }
    let article = i + usize::from(vocabulary::is_article(clause.at(i)));
    let ones = |k: usize| is_filter_word(clause.at(k)) || clause.at(k) == "ones";
    if is_status(clause.at(article)) && (article..range.end).all(ones) {
        return Some(article);
    }
    let noun = behind_filters(clause, article, range.end)?;
    let definite = matches!(clause.at(i), "my" | "the" | "our" | "this") || article == i;
    let list = noun.noun == Noun::List && closes_list(clause, noun.end..range.end) && definite;
    // "delete my tasks" means every one; "delete the reminders about …" as well.
    let tasks = noun.noun != Noun::List && noun.plural && !matches!(clause.at(i), "some" | "these" | "those");
    (list || tasks).then_some(article)
}

/// Nothing after a list, or how thoroughly it is to be emptied.
fn closes_list(clause: &Clause, range: Range<usize>) -> bool {
    range
        .into_iter()
        .all(|i| clause.is_spent(i..i + 1) || matches!(clause.at(i), "clean" | "completely" | "out" | "off"))
}

/// A noun, perhaps behind words that filter ("my completed tasks").
fn behind_filters(clause: &Clause, start: usize, end: usize) -> Option<Named> {
    let plain = |i: usize| is_filter_word(clause.at(i)) || clause.date_at(i).is_some();
    let noun = clause.noun_in(start..end.min(start + 5))?;
    (start..noun.at).all(plain).then_some(noun)
}

fn is_filter_word(word: &str) -> bool {
    lexicon::references::FILTER_WORDS.contains(word)
}

fn is_status(word: &str) -> bool {
    matches!(word, "completed" | "done" | "finished" | "pending" | "overdue" | "expired")
}

/// All of a kind: the filter takes over what limits them, text included.
fn every(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) -> Target {
    filter::read(clause, range.clone(), filter);
    let range = range.start + clause.phrase(range.start, lexicon::references::RELATIVES).unwrap_or(0)..range.end;
    let them = clause.phrase(range.start, lexicon::references::OF_THEM).is_some();
    if them || is_list(clause, range.clone()) {
        return Target::All;
    }
    let words = trim(clause, range);
    let name = named(clause, words).filter(|name| !name.is_empty());
    filter.text = filter.text.take().or(name);
    Target::All
}

/// "from my list", "on the list", "list clean".
fn is_list(clause: &Clause, range: Range<usize>) -> bool {
    let lead = matches!(clause.at(range.start), "from" | "off" | "on" | "in" | "of");
    let noun = clause.noun_in(range.start..range.end.min(range.start + 5)).filter(|noun| noun.noun == Noun::List);
    noun.is_some_and(|noun| (lead || noun.at == range.start) && closes_list(clause, noun.end..range.end))
}

/// "the 3pm reminder", "my reminder for Friday": those of that day.
fn by_date(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) -> Option<Target> {
    filter::read(clause, range, filter);
    filter.due.is_some().then_some(Target::All)
}

pub(crate) fn one(clause: &mut Clause, range: Range<usize>) -> Option<Target> {
    if let Some(place) = place(clause, range.clone()) {
        return Some(place);
    }
    if let Some(target) = pointing(clause, &range) {
        return target;
    }
    named(clause, range).filter(|name| !name.is_empty()).map(Target::Named)
}

/// "it", "that one", "the task". `Some(None)`: a noun with nothing that tells which one.
fn pointing(clause: &Clause, range: &Range<usize>) -> Option<Option<Target>> {
    let i = range.start;
    let end = list_tail(clause, range.clone());
    if clause.phrase(i, lexicon::references::BOTH).is_some_and(|n| i + n == end) {
        return Some(Some(Target::Both));
    }
    let alone = i + 1 == end && matches!(clause.at(i), "it" | "that" | "this");
    if alone || clause.phrase(i, lexicon::references::IT).is_some_and(|n| i + n == end) {
        return Some(Some(Target::It));
    }
    let article = vocabulary::is_article(clause.at(i)) && i + 1 < range.end;
    let at = i + usize::from(article);
    if clause.words.is_quoted(at) {
        return None;
    }
    let definite = matches!(clause.at(i), "the" | "that" | "this").then_some(Target::It);
    if matches!(clause.at(at), "one" | "something" | "anything") && at + 1 == end {
        return Some(definite);
    }
    clause.noun_at(at).filter(|noun| noun.end >= end).map(|_| definite)
}

/// A place in the list: "the second one", "number 3", "#2", "task 4", "the last one", "2".
pub(crate) fn place(clause: &Clause, range: Range<usize>) -> Option<Target> {
    let end = list_tail(clause, range.clone());
    let small = |i: &usize| !vocabulary::is_article(clause.at(*i)) && clause.at(*i) != "very";
    let i = (range.start..end).find(small).unwrap_or(end);
    let noun_end = |at: usize| match clause.at(at) {
        "one" | "entry" | "ones" | "one's" | "thing" => Some(at + 1),
        _ => clause.noun_at(at).map(|noun| noun.end),
    };
    let closes = |at: usize| at >= end || noun_end(at).is_some_and(|next| next >= end);
    if matches!(clause.at(i), "last" | "bottom" | "final") && closes(after_adding(clause, i + 1, end)) {
        return Some(Target::Last);
    }
    if matches!(clause.at(i), "top" | "topmost") && noun_end(i + 1).is_some_and(|next| next >= end) {
        return Some(Target::Position(1));
    }
    if let Some((n, _)) = numbers::ordinal(clause.words, i).filter(|(_, len)| closes(i + len)) {
        return usize::try_from(n).ok().filter(|n| *n > 0).map(Target::Position);
    }
    let noun = noun_end(i).filter(|_| !matches!(clause.at(i), "one" | "one's" | "thing"));
    let lead = clause.phrase(i, lexicon::references::NUMBER_LEADS).map(|n| i + n).or(noun);
    let at = lead.map_or(i, |at| at + clause.phrase(at, lexicon::references::NUMBER_LEADS).unwrap_or(0));
    let possessive = clause.at(at).strip_suffix("'s").and_then(numbers::figures).map(|n| (n, 1));
    let number = possessive.or_else(|| numbers::cardinal(clause.words, at));
    let (n, _) = number.filter(|(n, len)| *n > 0 && *n < 1000 && at + len >= end)?;
    let bare = lead.is_none() && i == range.start && possessive.is_none() && numbers::figures(clause.at(at)).is_none();
    if bare { None } else { usize::try_from(n).ok().map(Target::Position) }
}

/// Skips "one I added", "task that you created" after "the last".
fn after_adding(clause: &Clause, i: usize, end: usize) -> usize {
    let one = i + usize::from(clause.at(i) == "one" || clause.noun_at(i).is_some_and(|noun| noun.end == i + 1));
    let who = one + usize::from(clause.at(one) == "that");
    let told = matches!(clause.at(who), "i" | "you" | "we" | "i've" | "you've");
    let all =
        (who + 1..end).all(|k| lexicon::references::ADDING_VERBS.contains(clause.at(k)) || clause.is_spent(k..k + 1));
    if told && all && who + 1 < end { end } else { i }
}

/// Where the reference ends when "from my list" and its like are left out.
pub(crate) fn list_tail(clause: &Clause, range: Range<usize>) -> usize {
    list_words(clause, range.clone()).map_or(range.end, |words| words.start)
}

/// The tokens of "from my list", "to the shopping list"; a date may follow them.
pub(crate) fn list_words(clause: &Clause, range: Range<usize>) -> Option<Range<usize>> {
    for i in range.start + 1..range.end {
        if !lexicon::references::LIST_LEADS.contains(clause.at(i)) {
            continue;
        }
        let near = clause
            .nouns_in(i + 1..range.end.min(i + 7))
            .find_map(|noun| Some((noun.at, list_end(clause, noun.at, range.end)?)));
        let Some((at, end)) = near else { continue };
        let straight = !(i + 1..at)
            .any(|k| lexicon::references::LIST_LEADS.contains(clause.at(k)) && k > i + 1 || !clause.words.is_word(k));
        let closed = (end..range.end).all(|k| clause.date_at(k).is_some() || clause.is_spent(k..k + 1));
        if straight && closed {
            return Some(i..end);
        }
    }
    None
}

/// The end of a word for a list at `i`: "list", "to do list", "list of things to do", "tasks".
pub(crate) fn list_end(clause: &Clause, i: usize, end: usize) -> Option<usize> {
    let noun = clause.noun_at(i)?;
    let one = !noun.plural && !matches!(clause.at(i), "todo" | "to" | "to-do");
    if noun.noun != Noun::List && one {
        return None;
    }
    let next = clause.noun_at(noun.end).filter(|next| noun.noun != Noun::List && next.noun == Noun::List);
    let mut at = next.map_or(noun.end, |next| next.end);
    if clause.at(at) == "of" {
        while at < end && clause.words.is_word(at) && clause.date_at(at).is_none() {
            at += 1;
        }
    }
    Some(at)
}

/// The words of a title, without what only says that they are one.
fn named(clause: &mut Clause, range: Range<usize>) -> Option<String> {
    let mut start = range.start;
    let mut end = list_tail(clause, range.clone());
    take_dates(clause, start..end);
    start = after_lead_time(clause, skip_articles(clause, start, end), end);
    if clause.at(start) == "one" && connective(clause, start + 1, end) > start + 1 {
        start = skip_articles(clause, connective(clause, start + 1, end), end);
    }
    for _ in 0..2 {
        let Some(noun) = inner_noun(clause, start, end) else { break };
        // "the grocery list" may be what a task is called.
        if noun.noun == Noun::List && noun.end == end && skip_articles(clause, start, end) < noun.at {
            break;
        }
        let after = connective(clause, noun.end, end);
        if (start..noun.at).all(|i| clause.is_taken(i) || is_kind(clause, i)) {
            let next = skip_articles(clause, after_person(clause, after, end), end);
            let next = after_lead_time(clause, next, end);
            if start > range.start && clause.is_spent(next..end) && noun.noun == Noun::List {
                break;
            }
            start = next;
        } else {
            if clause.is_spent(after..end) {
                end = noun.at;
            }
            clause.take(noun.at..noun.end);
            break;
        }
    }
    let range = core(clause, start..end);
    let name = clause.rest(range);
    let bare = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).map(str::to_owned);
    Some(bare.unwrap_or(name))
}

/// Words that tell what kind of reminder is meant, and nothing of its name: "the recurring alert reminder".
fn is_kind(clause: &Clause, i: usize) -> bool {
    is_filter_word(clause.at(i)) || clause.noun_at(i).is_some_and(|noun| noun.noun == Noun::Reminder)
}

/// Leaves out "stupid", "next" and "upcoming" before a name, and "one", "thing" and what hangs after it.
fn core(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let Range { mut start, end } = margins::trimmed(clause, range);
    while let Some(n) = clause.phrase(start, lexicon::references::ADJECTIVES).filter(|n| start + n < end) {
        start = skip_articles(clause, start + n, end);
    }
    let last = end.saturating_sub(1);
    let vague = end > start + 1 && matches!(clause.at(last), "one" | "thing" | "entry");
    start..if vague { last } else { end }
}

/// "30 minutes before the meeting", "the night before the trip": when it speaks up is no part of its name.
fn after_lead_time(clause: &Clause, start: usize, end: usize) -> usize {
    let named = lead_time::is_unit(clause, start).then_some(start);
    let Some(unit) = lead_time::unit(clause, start).or(named) else { return start };
    match clause.phrase(unit + 1, lexicon::references::LEAD_TIME).map(|n| unit + 1 + n).filter(|after| *after < end) {
        Some(after) => {
            let noun = clause.noun_at(after).filter(|noun| noun.end < end);
            let after = noun.map_or(after, |noun| connective(clause, noun.end, end));
            skip_articles(clause, after, end)
        }
        None => start,
    }
}

/// "for Bob to take out the trash", "from Bob about lunch": Bob is not the task.
fn after_person(clause: &Clause, i: usize, end: usize) -> usize {
    let lead = clause.before(i);
    let person = lead == "for"
        && clause.at(i + 1) == "to"
        && i + 2 < end
        && clause.words.is_word(i)
        && !clause.at(i).ends_with("ing");
    if person {
        return i + 2;
    }
    let about = (i + 1..end.min(i + 5)).find(|k| matches!(clause.at(*k), "about" | "regarding" | "concerning"));
    match about.filter(|k| matches!(lead, "for" | "from" | "with") && k + 1 < end) {
        Some(k) => k + 1,
        None => i,
    }
}

fn skip_articles(clause: &Clause, start: usize, end: usize) -> usize {
    let small = |i: usize| clause.is_taken(i) || vocabulary::is_article(clause.at(i)) && i + 1 < end;
    (start..end).find(|i| !small(*i)).unwrap_or(end)
}

/// The word for a task that belongs to the reference: near its start, or at its end.
fn inner_noun(clause: &Clause, start: usize, end: usize) -> Option<Named> {
    let followed = |noun: &Named| clause.noun_at(noun.end).is_some() && noun.end < end;
    clause.nouns_in(start..end).filter(|noun| !followed(noun)).find(|noun| {
        let first = clause.is_spent(start..noun.at);
        let last = clause.is_spent(noun.end..end);
        noun.noun == Noun::Reminder || first || last || clause.at(noun.at).starts_with("task")
    })
}

/// Skips "to", "for", "about", "called", … after a noun.
pub(crate) fn connective(clause: &Clause, i: usize, end: usize) -> usize {
    let mut at = i;
    for round in 0..3 {
        while at < end && clause.is_taken(at) {
            at += 1;
        }
        let weak = matches!(clause.at(at), "with" | "from" | "at" | "is" | "which" | "where" | "when") && round > 0;
        match clause.phrase(at, lexicon::references::CONNECTIVES).filter(|n| at + n <= end && !weak) {
            Some(n) => at += n,
            None => break,
        }
    }
    while at < end && clause.is_taken(at) {
        at += 1;
    }
    at
}

/// Dates inside a reference say when the task is due, not what it is called.
fn take_dates(clause: &mut Clause, range: Range<usize>) {
    let inside = |span: &Range<usize>| span.end > range.start && span.end <= range.end && span.start + 3 > range.start;
    let spans: Vec<Range<usize>> = clause
        .dates
        .iter()
        .map(|found| found.tokens.clone())
        .filter(|span| inside(span) && span.len() < range.len())
        .collect();
    for span in spans {
        clause.take(span);
    }
}
