//! Which existing task a command means: by words of its title, by its place, by "it", or all of them.

use crate::phrases::{Phrases, phrases};
use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon::{self, Noun};
use crate::numbers;
use crate::reading::{Filter, Target};

/// Reads a reference. `None`: nothing in the stretch names a task.
pub(crate) fn read(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) -> Option<Target> {
    let range = trim(clause, range);
    if range.is_empty() {
        return None;
    }
    if let Some(after) = all(clause, &range) {
        return Some(every(clause, after..range.end, filter));
    }
    if range.len() > 2
        && let Some(several) = several(clause, &range)
    {
        return Some(several);
    }
    one(clause, range)
}

/// Leaves out small words and marks at both ends.
fn trim(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let mut range = range.start..range.end.min(clause.end);
    while range.start < range.end
        && (clause.is_taken(range.start)
            || is_mark(clause, range.start)
            || matches!(clause.at(range.start), "off" | "out" | "down" | "with" | "of" | "from" | "about"))
    {
        range.start += 1;
    }
    while range.end > range.start && (clause.is_taken(range.end - 1) || is_mark(clause, range.end - 1)) {
        range.end -= 1;
    }
    range
}

fn is_mark(clause: &Clause, i: usize) -> bool {
    !clause.words.is_word(i)
        && !clause.words.is_quoted(i)
        && matches!(clause.at(i), "." | "," | "!" | "?" | ";" | ":" | "-" | "–" | "—" | "…" | "\n")
}

/// "all", "everything", "every", "each of": where what they range over begins. A whole list counts, too.
fn all(clause: &Clause, range: &Range<usize>) -> Option<usize> {
    let i = range.start;
    const ALL: Phrases = phrases!(
        "all of | all | everything | every single | every one of | every | each of | both | the entire | \
         my entire | the whole | my whole | entire"
    );
    if let Some(n) = clause.phrase(i, ALL) {
        return Some(i + n);
    }
    let article = i + usize::from(lexicon::is_article(clause.at(i)));
    if lexicon::is_article(clause.at(i)) && clause.at(article) == "all" {
        return Some(article + 1);
    }
    let (noun, len, plural) = whole_list(clause, article, range.end)?;
    let rest = clause.is_spent(article + len..range.end);
    let definite = matches!(clause.at(i), "my" | "the" | "our" | "this") || article == i;
    let list = noun == Noun::List && rest && definite;
    // "delete my tasks" means every one; "delete the reminders about …" as well.
    let tasks =
        noun != Noun::List && plural && clause.at(i) != "some" && clause.at(i) != "these" && clause.at(i) != "those";
    (list || tasks).then_some(article)
}

/// A noun, perhaps behind words that filter ("my completed tasks").
fn whole_list(clause: &Clause, start: usize, end: usize) -> Option<(Noun, usize, bool)> {
    for i in start..end.min(start + 3) {
        if let Some((noun, len, plural)) = lexicon::noun(clause.words, i) {
            return Some((noun, i - start + len, plural));
        }
        if !is_filter_word(clause.at(i)) && clause.date_at(i).is_none() {
            return None;
        }
    }
    None
}

pub(crate) fn is_filter_word(word: &str) -> bool {
    phrases!(
        "completed | complete | done | finished | pending | open | overdue | urgent | important | high | low | \
         priority | old | current | outstanding | incomplete | unfinished | remaining | active | expired | \
         upcoming | future | existing | recent"
    )
    .contains(word)
}

/// All of a kind: the filter takes over what limits them, text included.
fn every(clause: &mut Clause, range: Range<usize>, filter: &mut Filter) -> Target {
    crate::filter::read(clause, range.clone(), filter);
    let words = trim(clause, range);
    let name = named(clause, words).filter(|name| !name.is_empty());
    if name.is_some() && filter.text.is_none() {
        filter.text = name;
    }
    Target::All
}

/// "the first and the third", "milk and bread", "'a' and 'b'": only where each side can stand alone.
fn several(clause: &mut Clause, range: &Range<usize>) -> Option<Target> {
    let mut sides = Vec::new();
    let mut from = range.start;
    for i in range.clone() {
        if matches!(clause.at(i), "and" | "," | "&") && clause.date_at(i).is_none() {
            if i > from {
                sides.push(from..i);
            }
            from = i + 1;
        }
    }
    sides.push(from..range.end);
    sides.retain(|side| !side.is_empty());
    if sides.len() < 2 || sides.len() > 20 {
        return None;
    }
    let places: Vec<Option<Target>> = sides.iter().map(|side| place(clause, side.clone())).collect();
    if places.iter().all(Option::is_some) {
        return Some(Target::Several(places.into_iter().flatten().collect()));
    }
    let stands_alone = |side: &Range<usize>| {
        let article = matches!(clause.at(side.start), "the" | "my");
        side.len() == 1 && (clause.words.is_word(side.start) || clause.words.is_quoted(side.start))
            || article && side.len() <= 4
    };
    let tail_noun = sides.last().is_some_and(|side| ends_in_noun(clause, side));
    let count = sides.len();
    if !sides.iter().enumerate().all(|(n, side)| stands_alone(side) || n + 1 == count && tail_noun && side.len() <= 3) {
        return None;
    }
    let named: Vec<Target> = sides.into_iter().filter_map(|side| one(clause, side)).collect();
    (named.len() == count).then_some(Target::Several(named))
}

fn ends_in_noun(clause: &Clause, side: &Range<usize>) -> bool {
    side.end.checked_sub(1).is_some_and(|last| last > side.start && lexicon::noun(clause.words, last).is_some())
}

fn one(clause: &mut Clause, range: Range<usize>) -> Option<Target> {
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
    const IT: Phrases = phrases!(
        "it | that one | this one | that | this | them | these | those | the one | that thing | this thing | \
         the last one you added | the previous one"
    );
    if let Some(n) = clause.phrase(i, IT).filter(|n| i + n == end) {
        debug_assert!(n > 0);
        return Some(Some(Target::It));
    }
    let article = lexicon::is_article(clause.at(i)) && i + 1 < range.end;
    let at = i + usize::from(article);
    if clause.words.is_quoted(at) {
        return None;
    }
    if matches!(clause.at(at), "one" | "something" | "anything") && at + 1 == end {
        return Some(matches!(clause.at(i), "the" | "that" | "this").then_some(Target::It));
    }
    let (_, len, _) = lexicon::noun(clause.words, at)?;
    if at + len < end {
        return None;
    }
    Some(matches!(clause.at(i), "the" | "that" | "this").then_some(Target::It))
}

/// A place in the list: "the second one", "number 3", "#2", "task 4", "the last one", "2".
fn place(clause: &Clause, range: Range<usize>) -> Option<Target> {
    let end = list_tail(clause, range.clone());
    let mut i = range.start;
    while i < end && (lexicon::is_article(clause.at(i)) || clause.at(i) == "very") {
        i += 1;
    }
    let noun_len = |at: usize| match clause.at(at) {
        "one" | "entry" | "ones" => Some(1),
        _ => lexicon::noun(clause.words, at).map(|(_, len, _)| len),
    };
    let closes = |at: usize| at >= end || noun_len(at).is_some_and(|n| at + n >= end);
    if clause.at(i) == "last" && closes(i + 1) {
        return Some(Target::Last);
    }
    if let Some((n, len)) = numbers::ordinal(clause.words, i).filter(|(_, len)| closes(i + len)) {
        debug_assert!(len > 0);
        return usize::try_from(n).ok().filter(|n| *n > 0).map(Target::Position);
    }
    let lead =
        clause.phrase(i, phrases!("number | no . | nr | #")).or_else(|| noun_len(i).filter(|_| clause.at(i) != "one"));
    let mut at = i + lead.unwrap_or(0);
    if let Some(n) = clause.phrase(at, phrases!("number | # | no .")).filter(|_| lead.is_some()) {
        at += n;
    }
    let (n, len) = numbers::cardinal(clause.words, at).filter(|(n, len)| *n > 0 && *n < 1000 && at + len >= end)?;
    debug_assert!(len > 0);
    let bare = lead.is_none() && i == range.start && numbers::figures(clause.at(at)).is_none();
    if bare {
        return None;
    }
    usize::try_from(n).ok().map(Target::Position)
}

/// Where the reference ends when "from my list" and its like are left out.
pub(crate) fn list_tail(clause: &Clause, range: Range<usize>) -> usize {
    for i in range.start..range.end {
        if !matches!(clause.at(i), "from" | "off" | "on" | "in" | "of" | "to" | "out") || i == range.start {
            continue;
        }
        let mut at = i + 1;
        while at < range.end
            && at < i + 7
            && (lexicon::is_article(clause.at(at))
                || matches!(clause.at(at), "of" | "off" | "from" | "whole" | "current" | "entire")
                || list_end(clause, at, range.end).is_none() && at < i + 4 && clause.words.is_word(at))
        {
            at += 1;
        }
        if let Some(end) = list_end(clause, at, range.end)
            && clause.is_spent(end..range.end)
        {
            return i;
        }
    }
    range.end
}

/// The end of a word for a list at `i`: "list", "to do list", "list of things to do", "tasks".
pub(crate) fn list_end(clause: &Clause, i: usize, end: usize) -> Option<usize> {
    let (noun, len, plural) = lexicon::noun(clause.words, i)?;
    if noun == Noun::Reminder && !plural
        || noun == Noun::Task && !plural && !matches!(clause.at(i), "todo" | "to" | "to-do")
    {
        return None;
    }
    let mut at = i + len;
    if noun != Noun::List && lexicon::noun(clause.words, at).is_some_and(|(next, _, _)| next == Noun::List) {
        at += 1;
    }
    if clause.at(at) == "of" {
        while at < end && clause.words.is_word(at) {
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
    while start < end && (clause.is_taken(start) || lexicon::is_article(clause.at(start)) && start + 1 < end) {
        start += 1;
    }
    if let Some((at, len)) = inner_noun(clause, start, end) {
        let after = connective(clause, at + len, end);
        if clause.is_spent(start..at) || only_filters(clause, start, at) {
            start = after;
        } else if clause.is_spent(after..end) {
            end = at;
        } else {
            clause.take(at..at + len);
        }
    }
    while start < end && (clause.is_taken(start) || matches!(clause.at(start), "the" | "my" | "our") && start + 1 < end)
    {
        start += 1;
    }
    Some(clause.rest(start..end))
}

fn only_filters(clause: &Clause, start: usize, end: usize) -> bool {
    (start..end).all(|i| {
        clause.is_taken(i) || is_filter_word(clause.at(i)) || matches!(clause.at(i), "recurring" | "repeating" | "new")
    })
}

/// The word for a task that belongs to the reference: near its start, or at its end.
fn inner_noun(clause: &Clause, start: usize, end: usize) -> Option<(usize, usize)> {
    (start..end).filter(|i| !clause.words.is_quoted(*i)).find_map(|i| {
        let (noun, len, _) = lexicon::noun(clause.words, i)?;
        let first = clause.is_spent(start..i);
        let last = clause.is_spent(i + len..end);
        (noun == Noun::Reminder || first || last || noun == Noun::Task && clause.at(i).starts_with("task"))
            .then_some((i, len))
    })
}

/// Skips "to", "for", "about", "called", … after a noun.
pub(crate) fn connective(clause: &Clause, i: usize, end: usize) -> usize {
    const CONNECTIVES: Phrases = phrases!(
        "that i set for | that i set to | that i have for | that i have to | that i made for | i set for | \
         i set to | i set up for | i set about | i have set for | i have for | i have to | i have about | \
         i had for | i had about | i made for | i made to | i made about | i created for | i asked for about | \
         which says | that says | that said | with the title | with title | with the name | with name | \
         set for | set to | set about | set up for | in regards to | in regard to | relating to | related to | \
         pertaining to | concerning | involving | regarding | having to do with | for me to | for me about | \
         about my | about | called | named | titled | entitled | saying | labeled | to | for | of | on | that | \
         which | where | : | - | , | is"
    );
    let mut at = i;
    while at < end && clause.is_taken(at) {
        at += 1;
    }
    for _ in 0..2 {
        match clause.phrase(at, CONNECTIVES).filter(|n| at + n <= end) {
            Some(n) => at += n,
            None => break,
        }
        while at < end && clause.is_taken(at) {
            at += 1;
        }
    }
    at
}

/// Dates inside a reference say when the task is due, not what it is called.
pub(crate) fn take_dates(clause: &mut Clause, range: Range<usize>) {
    let spans: Vec<Range<usize>> = clause.dates.iter().map(|found| found.tokens.clone()).collect();
    for span in spans {
        if span.start >= range.start && span.end <= range.end && span.len() < range.len() {
            clause.take(span);
        }
    }
}
