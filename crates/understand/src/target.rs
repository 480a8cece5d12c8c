//! Parses references to existing tasks: by title, by position, by pronoun, or all tasks.
//!
//! A *list mention* is "from my list" and similar words after a reference. They are not part of the name. Functions
//! with `&mut Clause` consume dates and conditions.

use std::ops::Range;

use crate::clause::{Clause, NounMention};
use crate::filter;
use crate::lead_time;
use crate::lexicon;
use crate::multiple_targets;
use crate::numbers;
use crate::parsed::{CommandFilter, TaskTarget};
use crate::trimming;
use crate::vocabulary::{self, Noun};

/// Parses a reference to one or several tasks. Ignores the words before a correction ("mom, I mean the report"), a
/// remark after the name, and function words at both ends. The order is: positions, all tasks, several names, one
/// position, pronoun or name. A reference by date only ("my reminder for Friday") becomes [`TaskTarget::All`] with a
/// due date. Conditions of "all …" go into `filter`. Consumes the tokens of conditions and dates. Returns `None` if the
/// range names no task; conditions can stay in `filter` then.
pub(crate) fn parse(clause: &mut Clause, range: Range<usize>, filter: &mut CommandFilter) -> Option<TaskTarget> {
    let range = trim_edges(clause, without_remark(clause, after_correction(clause, range)));
    if range.is_empty() {
        return None;
    }
    if let Some(shown) = parse_shown(clause, &range) {
        return Some(shown);
    }
    if let Some(positions) = multiple_targets::parse_positions(clause, &range) {
        return Some(positions);
    }
    if let Some(after) = all_tasks_start(clause, &range) {
        return Some(parse_all(clause, after..range.end, filter));
    }
    if range.len() > 2
        && let Some(several) = multiple_targets::parse(clause, &range)
    {
        return Some(several);
    }
    parse_one(clause, range.clone()).or_else(|| parse_by_date(clause, range, filter))
}

/// Parses a reference to tasks of the list shown last: "them", "all of those", "the last two", "the rest", "the other
/// one", "the middle one". It must fill the range, up to a list mention. Returns `None` for other references.
fn parse_shown(clause: &Clause, range: &Range<usize>) -> Option<TaskTarget> {
    // Most references begin with another word.
    if !clause.words.is_one_of(range.start, lexicon::references::SHOWN_STARTS) {
        return None;
    }
    let end = before_list_mention(clause, range.clone());
    let fills = |n: usize| range.start + n >= end;
    if clause.phrase(range.start, lexicon::references::THEM).is_some_and(fills) {
        return Some(TaskTarget::Them);
    }
    if clause.phrase(range.start, lexicon::references::REST).is_some_and(fills) {
        return Some(TaskTarget::Rest);
    }
    let article = range.start + usize::from(vocabulary::is_article(clause.at(range.start)));
    let one = |i: usize| {
        i >= end
            || matches!(clause.at(i), "one" | "ones") && i + 1 >= end
            || clause.noun_at(i).is_some_and(|noun| noun.end >= end)
    };
    match clause.at(article) {
        "other" if one(article + 1) && article + 1 < end => Some(TaskTarget::Other),
        "middle" if one(article + 1) => Some(TaskTarget::Middle),
        "last" | "bottom" | "final" => {
            let (n, len) = numbers::cardinal(clause.words, article + 1).filter(|(n, _)| (2..=20).contains(n))?;
            let n = usize::try_from(n).ok()?;
            one(article + 1 + len).then_some(TaskTarget::LastN(n))
        }
        _ => None,
    }
}

/// Returns the part of the range after its first correction: "mom, I mean the report". Returns the whole range if it
/// contains none, or if nothing follows it.
fn after_correction(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let at = clause
        .find_phrase(range.start, lexicon::references::CORRECTIONS)
        .map(|(at, n)| at + n)
        .filter(|start| *start < range.end);
    at.unwrap_or(range.start)..range.end
}

/// Returns the range up to its first remark: "…, I already did it", "… since we moved", "… anymore". A remark at the
/// first token and a consumed one do not count.
fn without_remark(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let cut = clause
        .find_phrase(range.start + 1, lexicon::references::REMARKS)
        .filter(|(at, _)| *at < range.end && !clause.is_consumed(*at))
        // "everything that is done" is a condition.
        .filter(|(at, n)| clause.at(*at) != "that" || !is_filter_word(clause.at(at + n)));
    range.start..cut.map_or(range.end, |(at, _)| at)
}

/// Trims function words, marks and consumed tokens at both ends. At the start these are "off", "with", "of", "about"
/// and similar words. "the status of" or "consider", and "both" before more than two tokens, are skipped once. At the
/// end they are "off", "already" and "now". The result ends inside of the clause and can be empty.
fn trim_edges(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let mut range = range.start..range.end.min(clause.end);
    range.start +=
        clause.phrase(range.start, lexicon::references::STATUS_LEADS).filter(|n| *n < range.len()).unwrap_or(0);
    // "both the milk and the bread"
    if clause.at(range.start) == "both" && range.len() > 3 {
        range.start += 1;
    }
    while !range.is_empty()
        && (clause.is_exhausted(range.start..range.start + 1)
            || lexicon::references::EDGE_WORDS.contains(clause.at(range.start)))
    {
        range.start += 1;
    }
    while range.len() > 1
        && (clause.is_exhausted(range.end - 1..range.end)
            || matches!(clause.at(range.end - 1), "off" | "already" | "now"))
    {
        range.end -= 1;
    }
    while !range.is_empty() && clause.is_exhausted(range.end - 1..range.end) {
        range.end -= 1;
    }
    range
}

/// Returns the start of the restriction if the range refers to all tasks. After "all", "everything", "every", "any",
/// "each of" it is the next token. For a status ("the completed ones"), a whole list ("my list") or a plural ("my
/// tasks") it is the token after an optional article. Filter words and dates may precede the noun. Returns `None` for
/// other references, and for plurals after "some", "these" and "those".
fn all_tasks_start(clause: &Clause, range: &Range<usize>) -> Option<usize> {
    let i = range.start;
    if let Some(n) = clause.phrase(i, lexicon::references::ALL).filter(|n| i + n <= range.end) {
        return Some(i + n);
    }
    let article = i + usize::from(vocabulary::is_article(clause.at(i)));
    let ones = |k: usize| is_filter_word(clause.at(k)) || clause.at(k) == "ones";
    if is_status(clause.at(article)) && (article..range.end).all(ones) {
        return Some(article);
    }
    let noun = filtered_noun(clause, article, range.end)?;
    let definite = matches!(clause.at(i), "my" | "the" | "our" | "this") || article == i;
    let list = noun.noun == Noun::List && closes_list(clause, noun.end..range.end) && definite;
    // "delete my tasks" and "delete the reminders about …" refer to all of them.
    let tasks = noun.noun != Noun::List && noun.plural && !matches!(clause.at(i), "some" | "these" | "those");
    (list || tasks).then_some(article)
}

/// Returns true if the range contains only consumed tokens, marks and words such as "completely". True for an empty
/// range.
fn closes_list(clause: &Clause, range: Range<usize>) -> bool {
    range
        .into_iter()
        .all(|i| clause.is_exhausted(i..i + 1) || matches!(clause.at(i), "clean" | "completely" | "out" | "off"))
}

/// Returns the first noun that begins within five tokens of `start`, if only filter words and dates precede it ("my
/// completed tasks").
fn filtered_noun(clause: &Clause, start: usize, end: usize) -> Option<NounMention> {
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

/// Parses a reference to all matching tasks and returns [`TaskTarget::All`]. Conditions go into the filter and are
/// consumed. The remaining words become its text, unless it already has one. Words that refer to the whole list ("from
/// my list") and "them" set no text.
fn parse_all(clause: &mut Clause, range: Range<usize>, filter: &mut CommandFilter) -> TaskTarget {
    filter::parse(clause, range.clone(), filter);
    let range = range.start + clause.phrase(range.start, lexicon::references::RELATIVES).unwrap_or(0)..range.end;
    let them = clause.phrase(range.start, lexicon::references::OF_THEM);
    if them.is_some_and(|n| clause.is_exhausted(range.start + n..range.end)) && *filter == CommandFilter::default() {
        return TaskTarget::Them;
    }
    if them.is_some() || is_whole_list(clause, range.clone()) {
        return TaskTarget::All;
    }
    let words = trim_edges(clause, range);
    let name = named_title(clause, words).filter(|name| !name.is_empty());
    filter.text = filter.text.take().or(name);
    TaskTarget::All
}

/// Returns true if the range mentions a list and nothing else: "from my list", "on the list", "list clean". It must
/// begin with "from", "off", "on", "in" or "of", or with the noun. The noun begins within five tokens.
fn is_whole_list(clause: &Clause, range: Range<usize>) -> bool {
    let lead = matches!(clause.at(range.start), "from" | "off" | "on" | "in" | "of");
    let noun = clause.noun_in(range.start..range.end.min(range.start + 5)).filter(|noun| noun.noun == Noun::List);
    noun.is_some_and(|noun| (lead || noun.at == range.start) && closes_list(clause, noun.end..range.end))
}

/// Parses a reference by date: "the 3pm reminder", "my reminder for Friday". Returns `None` if the filter has no due
/// date afterwards. Other conditions stay in the filter.
fn parse_by_date(clause: &mut Clause, range: Range<usize>, filter: &mut CommandFilter) -> Option<TaskTarget> {
    filter::parse(clause, range, filter);
    filter.due.is_some().then_some(TaskTarget::All)
}

/// Parses a reference to one task by position, pronoun or title, or to two tasks by "both". Positions come first. Returns `None` if the title is empty. Also returns `None` for a bare noun without "the",
/// "that" or "this" ("a task", "my task"). Consumes dates inside of a title.
pub(crate) fn parse_one(clause: &mut Clause, range: Range<usize>) -> Option<TaskTarget> {
    if let Some(position) = parse_position(clause, range.clone()) {
        return Some(position);
    }
    if let Some(target) = parse_pronoun(clause, &range) {
        return target;
    }
    named_title(clause, range).filter(|name| !name.is_empty()).map(TaskTarget::Named)
}

/// Parses a pronoun or a bare noun that fills the range, up to a list mention. "both", "both of them" yield
/// [`TaskTarget::Both`]. "it", "that one", "them" and "the task" yield [`TaskTarget::It`]. Returns `Some(None)` for a
/// noun, "one" or "something" without "the", "that" or "this" ("a task"). Returns `None` if the range is something
/// else.
fn parse_pronoun(clause: &Clause, range: &Range<usize>) -> Option<Option<TaskTarget>> {
    let i = range.start;
    let end = before_list_mention(clause, range.clone());
    if clause.phrase(i, lexicon::references::BOTH).is_some_and(|n| i + n == end) {
        return Some(Some(TaskTarget::Both));
    }
    let alone = i + 1 == end && matches!(clause.at(i), "it" | "that" | "this");
    if alone || clause.phrase(i, lexicon::references::IT).is_some_and(|n| i + n == end) {
        return Some(Some(TaskTarget::It));
    }
    let article = vocabulary::is_article(clause.at(i)) && i + 1 < range.end;
    let at = i + usize::from(article);
    if clause.words.is_quoted(at) {
        return None;
    }
    let definite = matches!(clause.at(i), "the" | "that" | "this").then_some(TaskTarget::It);
    if matches!(clause.at(at), "one" | "something" | "anything") && at + 1 == end {
        return Some(definite);
    }
    clause.noun_at(at).filter(|noun| noun.end >= end).map(|_| definite)
}

/// Parses a position in the list: "the second one", "number 3", "#2", "task 4", "2", "3's". "the last one", "the bottom
/// one" and "the last one I added" are [`TaskTarget::Last`], "the top one" is 1. Ignores articles before it and a list
/// mention after it. No other words may follow. A number word counts only after an article or a noun, so "the two" is 2
/// and "that one" is 1. Returns `None` for "two", for zero, and for cardinal numbers above 999.
pub(crate) fn parse_position(clause: &Clause, range: Range<usize>) -> Option<TaskTarget> {
    let end = before_list_mention(clause, range.clone());
    let small = |i: &usize| !vocabulary::is_article(clause.at(*i)) && clause.at(*i) != "very";
    // "that one" is a pronoun.
    if range.len() == 2 && clause.at(range.start + 1) == "one" && !matches!(clause.at(range.start), "top" | "last") {
        return None;
    }
    let i = (range.start..end).find(small).unwrap_or(end);
    let noun_end = |at: usize| match clause.at(at) {
        "one" | "entry" | "ones" | "one's" | "thing" => Some(at + 1),
        _ => clause.noun_at(at).map(|noun| noun.end),
    };
    let closes = |at: usize| at >= end || noun_end(at).is_some_and(|next| next >= end);
    if matches!(clause.at(i), "last" | "bottom" | "final") && closes(skip_adding_clause(clause, i + 1, end)) {
        return Some(TaskTarget::Last);
    }
    if matches!(clause.at(i), "top" | "topmost") && noun_end(i + 1).is_some_and(|next| next >= end) {
        return Some(TaskTarget::Position(1));
    }
    if let Some((n, _)) = numbers::ordinal(clause.words, i).filter(|(_, len)| closes(i + len)) {
        return usize::try_from(n).ok().filter(|n| *n > 0).map(TaskTarget::Position);
    }
    let noun = noun_end(i).filter(|_| !matches!(clause.at(i), "one" | "one's" | "thing"));
    let lead = clause.phrase(i, lexicon::references::NUMBER_LEADS).map(|n| i + n).or(noun);
    let at = lead.map_or(i, |at| at + clause.phrase(at, lexicon::references::NUMBER_LEADS).unwrap_or(0));
    let possessive = clause.at(at).strip_suffix("'s").and_then(numbers::parse_digits).map(|n| (n, 1));
    let number = possessive.or_else(|| numbers::cardinal(clause.words, at));
    let (n, _) = number.filter(|(n, len)| *n > 0 && *n < 1000 && at + len >= end)?;
    let bare =
        lead.is_none() && i == range.start && possessive.is_none() && numbers::parse_digits(clause.at(at)).is_none();
    if bare { None } else { usize::try_from(n).ok().map(TaskTarget::Position) }
}

/// Returns `end` if `i..end` is "one I added", "task that you created" or similar, after "the last". "one", the noun
/// and "that" are optional; "I", "you" or "we" and a verb of adding are required. Returns `i` otherwise.
fn skip_adding_clause(clause: &Clause, i: usize, end: usize) -> usize {
    let one = i + usize::from(clause.at(i) == "one" || clause.noun_at(i).is_some_and(|noun| noun.end == i + 1));
    let who = one + usize::from(clause.at(one) == "that");
    let has_subject = matches!(clause.at(who), "i" | "you" | "we" | "i've" | "you've");
    let all = (who + 1..end)
        .all(|k| lexicon::references::ADDING_VERBS.contains(clause.at(k)) || clause.is_exhausted(k..k + 1));
    if has_subject && all && who + 1 < end { end } else { i }
}

/// Returns the start of the list mention in the range ("from my list"), or the end of the range if it contains none.
pub(crate) fn before_list_mention(clause: &Clause, range: Range<usize>) -> usize {
    list_mention(clause, range.clone()).map_or(range.end, |words| words.start)
}

/// Returns the tokens of the first list mention after the first token of the range: "from my list", "to the shopping
/// list", "off my tasks". It begins with "from", "off", "on", "in", "to", "out" or similar. The noun begins within six
/// tokens, without marks or another such word between. Only dates, consumed tokens and marks may follow. Returns `None`
/// if there is none.
pub(crate) fn list_mention(clause: &Clause, range: Range<usize>) -> Option<Range<usize>> {
    for i in range.start + 1..range.end {
        if !lexicon::references::LIST_LEADS.contains(clause.at(i)) {
            continue;
        }
        // "on there", and "on it" after a quoted title
        let there = clause.at(i + 1) == "there" || clause.at(i + 1) == "it" && clause.words.is_quoted(i - 1);
        let closes =
            |from: usize| (from..range.end).all(|k| clause.date_at(k).is_some() || clause.is_exhausted(k..k + 1));
        if there && matches!(clause.at(i), "on" | "in" | "to" | "onto") && closes(i + 2) {
            return Some(i..i + 2);
        }
        let near = clause
            .nouns_in(i + 1..range.end.min(i + 7))
            .find_map(|noun| Some((noun.at, list_end(clause, noun.at, range.end)?)));
        let Some((at, end)) = near else { continue };
        let straight = !(i + 1..at)
            .any(|k| lexicon::references::LIST_LEADS.contains(clause.at(k)) && k > i + 1 || !clause.words.is_word(k));
        let closed = (end..range.end).all(|k| clause.date_at(k).is_some() || clause.is_exhausted(k..k + 1));
        if straight && closed {
            return Some(i..end);
        }
    }
    None
}

/// Returns the end of a word for a list at `i`: "list", "to do list", "list of things to do", "tasks". Words after "of"
/// count up to a date, a mark or `end`. Plurals of tasks and reminders count as lists. Returns `None` for other words
/// and for a singular noun that is not a list, except "todo", "to-do" and "to do".
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

/// Returns the title in the range, without dates, lead times, a list mention and a final "'s". Nouns for tasks and
/// connectives around it are left out ("the task about …"). A list as the last word stays: "the grocery list". "one
/// about …" and a person ("for Bob to …") before the title are skipped, too. Consumes the dates and a noun that follows
/// the title. The text can be empty. The result is never `None`.
fn named_title(clause: &mut Clause, range: Range<usize>) -> Option<String> {
    let mut start = range.start;
    let mut end = before_list_mention(clause, range.clone());
    consume_dates(clause, start..end);
    start = skip_lead_time(clause, skip_articles(clause, start, end), end);
    if clause.at(start) == "one" && skip_connectives(clause, start + 1, end) > start + 1 {
        start = skip_articles(clause, skip_connectives(clause, start + 1, end), end);
    }
    for _ in 0..2 {
        let Some(noun) = inner_noun(clause, start, end) else { break };
        // "the grocery list" can be the title of a task.
        if noun.noun == Noun::List && noun.end == end && skip_articles(clause, start, end) < noun.at {
            break;
        }
        let after = skip_connectives(clause, noun.end, end);
        if (start..noun.at).all(|i| clause.is_consumed(i) || is_kind_word(clause, i)) {
            let next = skip_articles(clause, skip_person(clause, after, end), end);
            let next = skip_lead_time(clause, next, end);
            if start > range.start && clause.is_exhausted(next..end) && noun.noun == Noun::List {
                break;
            }
            start = next;
        } else {
            if clause.is_exhausted(after..end) {
                end = noun.at;
            }
            clause.consume(noun.at..noun.end);
            break;
        }
    }
    let range = core_name(clause, start..end);
    let name = clause.remaining_text(range);
    let bare = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).map(str::to_owned);
    Some(bare.unwrap_or(name))
}

/// Returns true for words that describe the kind of reminder and not its name: "the recurring alert reminder".
fn is_kind_word(clause: &Clause, i: usize) -> bool {
    is_filter_word(clause.at(i)) || clause.noun_at(i).is_some_and(|noun| noun.noun == Noun::Reminder)
}

/// Trims hanging words at both ends of a name. Also trims "stupid", "next", "upcoming" and similar adjectives before
/// it, and one "one", "thing" or "entry" after it. "Old thing" keeps its adjective, because "thing" alone names no task.
/// The result can be empty.
fn core_name(clause: &Clause, range: Range<usize>) -> Range<usize> {
    let Range { start: first, end } = trimming::trim_name(clause, range);
    let mut start = first;
    while let Some(n) = clause.phrase(start, lexicon::references::ADJECTIVES).filter(|n| start + n < end) {
        start = skip_articles(clause, start + n, end);
    }
    let last = end.saturating_sub(1);
    if first < start && start == last && clause.at(last) == "thing" {
        return first..end;
    }
    let vague = end > start + 1 && matches!(clause.at(last), "one" | "thing" | "entry");
    start..if vague { last } else { end }
}

/// Returns the position after a lead time at `start`, which is not part of the name: "30 minutes before the meeting",
/// "night before the trip". "before", "prior to" or "ahead of" must follow the unit. Skips a noun with its connectives
/// and an article after it, too. Returns `start` if there is no lead time, or if nothing follows it.
fn skip_lead_time(clause: &Clause, start: usize, end: usize) -> usize {
    let named = lead_time::is_unit(clause, start).then_some(start);
    let Some(unit) = lead_time::unit_at(clause, start).or(named) else { return start };
    match clause.phrase(unit + 1, lexicon::references::LEAD_TIME).map(|n| unit + 1 + n).filter(|after| *after < end) {
        Some(after) => {
            let noun = clause.noun_at(after).filter(|noun| noun.end < end);
            let after = noun.map_or(after, |noun| skip_connectives(clause, noun.end, end));
            skip_articles(clause, after, end)
        }
        None => start,
    }
}

/// Returns the position after a person at `i`, which is not the task. After "for", this is one word before "to": "for
/// Bob to take out the trash". A word in "ing" is no person. After "for", "from" or "with", it is up to four words
/// before "about", "regarding" or "concerning": "from Bob about lunch". Text must follow. Returns `i` if there is no
/// person.
fn skip_person(clause: &Clause, i: usize, end: usize) -> usize {
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

/// Returns the first token of `start..end` that is neither consumed nor an article, or `end`. An article at the last
/// token is not skipped.
fn skip_articles(clause: &Clause, start: usize, end: usize) -> usize {
    let small = |i: usize| clause.is_consumed(i) || vocabulary::is_article(clause.at(i)) && i + 1 < end;
    (start..end).find(|i| !small(*i)).unwrap_or(end)
}

/// Returns the first noun for a task in `start..end` that belongs to the reference. This is any word for a reminder and
/// "task" or "tasks". Other nouns need only consumed tokens and marks before or after them. A noun directly before
/// another one does not count. Returns `None` if there is none.
fn inner_noun(clause: &Clause, start: usize, end: usize) -> Option<NounMention> {
    let followed = |noun: &NounMention| clause.noun_at(noun.end).is_some() && noun.end < end;
    clause.nouns_in(start..end).filter(|noun| !followed(noun)).find(|noun| {
        let first = clause.is_exhausted(start..noun.at);
        let last = clause.is_exhausted(noun.end..end);
        noun.noun == Noun::Reminder || first || last || clause.at(noun.at).starts_with("task")
    })
}

/// Returns the position after up to three of "to", "for", "about", "called", … after a noun at `i`. Consumed tokens
/// around them are skipped, also without a connective. Weak ones such as "with", "at" and "which" are skipped only as
/// the first.
pub(crate) fn skip_connectives(clause: &Clause, i: usize, end: usize) -> usize {
    let mut at = i;
    for round in 0..3 {
        while at < end && clause.is_consumed(at) {
            at += 1;
        }
        let weak = matches!(clause.at(at), "with" | "from" | "at" | "is" | "which" | "where" | "when") && round > 0;
        match clause.phrase(at, lexicon::references::CONNECTIVES).filter(|n| at + n <= end && !weak) {
            Some(n) => at += n,
            None => break,
        }
    }
    while at < end && clause.is_consumed(at) {
        at += 1;
    }
    at
}

/// Consumes dates that end inside of the range and begin at most two tokens before it. They are not part of the name. A
/// date at least as long as the range stays, because it is the whole name.
fn consume_dates(clause: &mut Clause, range: Range<usize>) {
    let inside = |span: &Range<usize>| span.end > range.start && span.end <= range.end && span.start + 3 > range.start;
    let spans: Vec<Range<usize>> = clause
        .dates
        .iter()
        .map(|found| found.tokens.clone())
        .filter(|span| inside(span) && span.len() < range.len())
        .collect();
    for span in spans {
        clause.consume(span);
    }
}
