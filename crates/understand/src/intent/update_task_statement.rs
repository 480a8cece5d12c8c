//! Recognises update_task in statements: "the vet is now on Friday", "the report should be high priority", "no, I meant
//! Wednesday", "laundry -> tomorrow", "one more day for the essay".

use std::ops::Range;

use model::task::Priority;

use super::{Act, Guess, grammar, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::dates::Found;
use crate::lexicon;
use crate::reading::Field;
use crate::update::Change;

pub(super) fn recognise(clause: &Clause) -> Guess {
    let i = clause.start;
    recognise_correction(clause, i)
        .or_else(|| recognise_new_value(clause, i))
        .or_else(|| recognise_arrow(clause, i))
        .or_else(|| recognise_stated(clause, i))
        .or_else(|| recognise_to_date(clause, i))
        .or_else(|| recognise_more_time(clause, i))
        .or_else(|| recognise_instead(clause, i))
}

/// The first date at or after `i`, with at most a word between.
fn date_near<'c>(clause: &'c Clause, i: usize) -> Option<&'c Found> {
    clause
        .dates
        .iter()
        .find(|found| found.tokens.start >= i && found.tokens.start <= i + 2 || found.tokens.contains(&i))
}

/// A date, or a bare hour, at `i`.
fn is_when(clause: &Clause, i: usize) -> bool {
    let hour = |k: usize| crate::numbers::figures(clause.at(k)).is_some_and(|n| n <= 24) && k + 1 >= clause.end;
    date_near(clause, i).is_some() || hour(i) || matches!(clause.at(i), "at" | "to" | "until") && hour(i + 1)
}

/// "no I meant wednesday", "I said Monday but it's Tuesday", "Tuesday would be better", "make that Friday instead".
fn recognise_correction(clause: &Clause, i: usize) -> Guess {
    if clause.asked || clause.is_elsewhere() {
        return None;
    }
    let meant = (clause.opening..i).any(|k| matches!(clause.words.at(k), "meant" | "mean"));
    let only = clause.dates.first().is_some_and(|found| found.tokens.start == i && found.tokens.end == clause.end);
    if meant && only {
        return Some((Act::Update(Change::Replace(i), i, clause.end), 0.62));
    }
    if let Some(n) = clause.phrase(i, lexicon::update_task::I_SAID) {
        let (at, m) = clause.seek(i + n, lexicon::update_task::BUT_IT_IS)?;
        return is_when(clause, at + m).then_some((Act::Update(Change::Replace(at + m), at + m, clause.end), 0.6));
    }
    let n = clause.phrase(i, lexicon::update_task::I_MEANT)?;
    let at = i + n;
    let date = date_near(clause, at).filter(|found| found.tokens.start <= at + 1)?;
    let after = date.tokens.end;
    let about = clause.phrase(after, lexicon::update_task::FOR_TASK).map(|m| after + m);
    let instead = clause.phrase(after, lexicon::update_task::INSTEAD).is_some();
    let closed = clause.is_spent(after..clause.end) || about.is_some() || instead;
    let range = about.map_or(at..at, |from| from..clause.end);
    closed.then_some((update_at(at, range, clause), 0.68))
}

/// The date stands before the name of the task: the slots are read from the name on.
fn update_at(date: usize, about: Range<usize>, clause: &Clause) -> Act {
    if about.is_empty() {
        return Act::Update(Change::Replace(date), date, clause.end);
    }
    Act::Update(Change::Instead, date, clause.end)
}

/// "new deadline for the essay is monday", "the title should be …", "report, new due date Friday", "one more day for
/// …".
pub(super) fn recognise_new_value(clause: &Clause, i: usize) -> Guess {
    let (at, n) = clause.seek(i, lexicon::update_task::NEW_FIELDS).filter(|(at, _)| *at <= i + 6)?;
    let asks = lexicon::update_task::QUESTION_OPENERS.contains(clause.at(i));
    if asks
        || verb_at(clause, i).is_some_and(|verb| verb != crate::vocabulary::Verb::Make)
        || clause.asked
        || clause.is_elsewhere()
    {
        return None;
    }
    let title = clause.phrase(i, lexicon::update_task::TITLE_IS);
    if let Some(m) = title.filter(|m| i + m < clause.end) {
        return Some((Act::Update(Change::NewName(i + m), i + m, i + m), 0.7));
    }
    let set = clause.seek(at + n, lexicon::update_task::FIELD_IS);
    let valued =
        clause.dates.iter().any(|found| found.tokens.start >= at) || clause.has(lexicon::update_task::DISTANCES);
    let level = attributes::closing_priority(clause, i).is_some() || clause.has(lexicon::update_task::LEVELS);
    let prioritised = clause.at(at + n - 1) == "priority";
    let fits = valued && (set.is_some() || at == i && clause.at(i) == "new" || at > i) || prioritised && level;
    let first = grammar::is_definite(clause, i)
        || at == i
        || clause.before(at) == ","
        || clause.phrase(i, lexicon::grammar::TOPIC_LEADS).is_some()
        || at > i && clause.before(at).ends_with("'s");
    (fits && first).then_some((Act::Update(Change::Any, i, clause.end), 0.66))
}

/// "laundry -> tomorrow", "paint fence -> p3".
fn recognise_arrow(clause: &Clause, i: usize) -> Guess {
    let at = (i + 1..clause.end).find(|k| {
        matches!(clause.at(*k), "→" | "=>" | "->") || matches!(clause.at(*k), "-" | "=") && clause.at(k + 1) == ">"
    })?;
    let value = at + 1 + usize::from(clause.at(at + 1) == ">");
    if let Some((priority, _)) = attributes::priority_at(clause, value) {
        return Some((Act::Update(Change::Priority(priority), i, at), 0.75));
    }
    date_near(clause, value).is_some().then_some((Act::Update(Change::Replace(at), i, clause.end), 0.75))
}

/// "dentist to friday", "not Friday, Saturday for the kayak".
fn recognise_to_date(clause: &Clause, i: usize) -> Guess {
    let last = clause.dates.last()?;
    if clause.asked || clause.is_elsewhere() {
        return None;
    }
    if clause.at(i) == "not" && clause.dates.len() > 1 {
        let about = clause.seek(last.tokens.end, lexicon::grammar::FOR).map(|(at, n)| at + n);
        let closed = about.is_some() || clause.is_spent(last.tokens.end..clause.end);
        let from = about.unwrap_or(last.tokens.start);
        return closed.then_some((
            Act::Update(
                if about.is_some() { Change::Instead } else { Change::Replace(from) },
                last.tokens.start,
                clause.end,
            ),
            0.6,
        ));
    }
    let to = if clause.at(last.tokens.start) == "to" { last.tokens.start } else { last.tokens.start.checked_sub(1)? };
    let plain = |k: usize| clause.words.is_word(k) && !grammar::is_pronoun(clause.at(k)) && clause.date_at(k).is_none();
    let fits = clause.at(to) == "to"
        && clause.is_spent(last.tokens.end..clause.end)
        && (1..=4).contains(&to.saturating_sub(i))
        && (i..to).all(plain)
        && verb_at(clause, i).is_none()
        && !super::is_doing(clause, i);
    fits.then_some((Act::Update(Change::Replace(to), i, clause.end), 0.6))
}

/// "the vet is now on Friday", "the interview has been moved to …", "the laundry can wait until Sunday".
fn recognise_stated(clause: &Clause, i: usize) -> Guess {
    if lexicon::update_task::NOT_STATEMENTS.contains(clause.at(i))
        || clause.asked && !matches!(clause.words.before(i), "could" | "can")
        || verb_at(clause, i).is_some() && !grammar::is_definite(clause, i)
    {
        return None;
    }
    let entry = grammar::names_entry(clause, i..clause.end.min(i + 9));
    let definite = grammar::is_definite(clause, i) || entry;
    if clause.is_elsewhere() || !definite && clause.is_foreign() {
        return None;
    }
    match moved_at(clause, i) {
        Some((at, n)) => recognise_moved(clause, i, at..at + n, definite, entry),
        None => recognise_required_value(clause, i, definite, entry),
    }
}

/// Where the words of a move stand, and their length.
fn moved_at(clause: &Clause, i: usize) -> Option<(usize, usize)> {
    let moved = grammar::passive(clause, i + 1, lexicon::update_task::MOVED_PARTICIPLES)
        .or_else(|| clause.seek(i + 1, lexicon::update_task::HAS_MOVED));
    moved.filter(|(at, _)| *at <= i + 9)
}

/// "the interview has been moved to Friday": what moves needs a new date.
fn recognise_moved(clause: &Clause, i: usize, said: Range<usize>, definite: bool, entry: bool) -> Guess {
    let at = said.start;
    // "is due Friday" may be no change at all.
    let weak = matches!(clause.at(at + 1), "due") || matches!(clause.at(at), "will" | "comes");
    let new = clause.has(lexicon::update_task::MOVED_TAILS) || entry || matches!(clause.at(at), "can" | "should");
    let dated = clause.dates.iter().any(|found| found.tokens.end > said.end)
        || clause.seek(said.end, lexicon::update_task::DISTANCES).is_some();
    let fits = dated && (!weak || new && definite) && clause.at(said.end) != "every";
    fits.then_some((Act::Update(Change::Replace(at), i, clause.end), 0.7))
}

/// "the vet is now on Friday", "the report should be high priority".
fn recognise_required_value(clause: &Clause, i: usize, definite: bool, entry: bool) -> Guess {
    let (at, n) = clause.seek(i + 1, lexicon::update_task::SHALL_BE).filter(|(at, _)| *at <= i + 8)?;
    let after = at + n;
    let is = matches!(clause.at(at), "is" | "are" | "isn't");
    if !definite && is {
        return None;
    }
    if let Some(guess) = recognise_stated_value(clause, i, at, after) {
        return Some(guess);
    }
    let date = date_near(clause, after).filter(|found| found.tokens.start <= after + 1)?;
    let end = date.tokens.end;
    let now =
        clause.at(after.saturating_sub(1)) == "now" || clause.phrase(end, lexicon::update_task::SHALL_TAILS).is_some();
    let shall = !is && definite;
    (now || shall || entry && is && end >= clause.end)
        .then_some((Act::Update(Change::Replace(at), i, clause.end), if now { 0.72 } else { 0.64 }))
}

/// "… should be high priority", "… should say buy paint", "… should have the tag Q3", "… isn't done".
fn recognise_stated_value(clause: &Clause, i: usize, at: usize, after: usize) -> Guess {
    let is = matches!(clause.at(at), "is" | "are" | "isn't");
    if matches!(clause.before(after), "say" | "read" | "called" | "named") {
        return (after < clause.end).then_some((Act::Update(Change::NewName(after), i, at), 0.68));
    }
    if clause.at(at) == "isn't" || clause.phrase(at, lexicon::update_task::IS_NOT).is_some() {
        let open = clause.phrase(after, lexicon::update_task::DENIED_DONE);
        let more = clause.has(lexicon::update_task::DENIED_DONE_TAILS);
        if open.is_some() && more {
            return Some((Act::Update(Change::Reopen, i, at), 0.7));
        }
        let urgent = clause.phrase(after, lexicon::update_task::DENIED_URGENT);
        let over = clause.phrase(after + urgent?, lexicon::grammar::ANY_MORE).is_some();
        return over.then_some((Act::Update(Change::Priority(Priority::Low), i, at), 0.66));
    }
    if clause.phrase(after, lexicon::update_task::STATED_TAGS).is_some() && !is {
        return Some((Act::Update(Change::Tags, i, clause.end), 0.65));
    }
    if clause.phrase(after, lexicon::update_task::STATED_TITLE).is_some() && !is {
        return Some((Act::Update(Change::Any, i, clause.end), 0.64));
    }
    let more = clause.phrase(after, lexicon::update_task::STATED_LINKS).unwrap_or(0);
    let (priority, n) = attributes::priority_at(clause, after + more)
        .or_else(|| Some((attributes::level(clause.at(after + more)).filter(|_| !is)?, 1)))?;
    let end = after + more + n;
    let now = more > 0 || clause.at(at + 1) == "now" || matches!(clause.at(end), "now" | "instead") || !is;
    let closed =
        clause.is_spent(end..clause.end) || matches!(clause.at(end), "now" | "instead" | "," | "priority" | "than");
    (closed && now).then_some((Act::Update(Change::Priority(priority), i, at), 0.68))
}

/// "one more day for the report", "give me another week on the essay", "I need more time for the audit".
pub(super) fn recognise_more_time(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::update_task::MORE_TIME)?;
    let first = clause.words.is_word(i + n);
    let until = matches!(clause.before(i + n), "until" | "till");
    let until = until && date_near(clause, i + n).is_some();
    let unit = (i..clause.end.min(i + 4)).find(|k| lexicon::update_task::DISTANCES.contains(clause.at(*k)));
    let at = if until { date_near(clause, i + n)?.tokens.end } else { unit? + 1 };
    let side = usize::from(matches!(clause.at(at), "later" | "earlier" | "sooner" | "more" | "extra"));
    let about = clause.phrase(at + side, lexicon::update_task::MORE_TIME_FOR)? + at + side;
    let told = grammar::is_definite(clause, about);
    let asked = side > 0
        || until
        || matches!(clause.at(i), "give" | "add")
        || clause.phrase(i, lexicon::update_task::MORE_TIME_OPENERS).is_some();
    let fits = first && told && asked && !clause.is_elsewhere() && !clause.asked && clause.dates.len() < 2;
    fits.then_some((Act::Update(Change::Any, about, clause.end), 0.62))
}

/// "tomorrow instead", "let's do the car wash on Saturday instead", "can't do the ironing today, tomorrow instead".
fn recognise_instead(clause: &Clause, i: usize) -> Guess {
    let (at, _) = clause.seek(i + 1, lexicon::update_task::RATHER)?;
    let dated = clause.dates.iter().any(|found| found.tokens.end <= at || clause.at(at) == "instead");
    let question =
        matches!(clause.at(i), "what" | "how" | "who" | "where" | "why" | "is" | "are" | "i'll" | "play" | "show");
    let bare = clause.dates.iter().any(|found| found.tokens.start == i && found.tokens.end >= at);
    let about = grammar::subject(clause, i..at).filter(|_| !bare);
    let fits = dated
        && !question
        && !clause.asked
        && !clause.is_foreign()
        && (bare || about.is_some() || clause.has(lexicon::update_task::IT));
    if !fits {
        return None;
    }
    let start = about.map_or(i, |about| about.start);
    Some((Act::Update(Change::Instead, start, clause.end), 0.66))
}

/// "the payroll task should no longer recur", "stop the gym task from repeating".
pub(super) fn recognise_end_of_repeat(clause: &Clause, i: usize) -> Guess {
    let (at, _) = clause.seek(i + 1, lexicon::update_task::NO_MORE_REPEAT)?;
    let from = i + usize::from(verb_at(clause, i).is_some());
    (!clause.asked).then_some((Act::Update(Change::Clear(Field::Recurrence), from, at), 0.78))
}
