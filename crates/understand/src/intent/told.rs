//! Changes that are told and not asked for: "the vet is now on Friday", "the report should be high priority", "no, I
//! meant Wednesday", "tomorrow instead".

use std::ops::Range;

use model::task::Priority;

use super::{Act, Guess, shape, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::dates::Found;
use crate::phrases::{Phrases, phrases};
use crate::reading::Field;
use crate::update::Change;

pub(super) fn read(clause: &Clause) -> Guess {
    let i = clause.start;
    corrected(clause, i)
        .or_else(|| new_value(clause, i))
        .or_else(|| arrow(clause, i))
        .or_else(|| stated(clause, i))
        .or_else(|| to_date(clause, i))
        .or_else(|| longer(clause, i))
        .or_else(|| rather(clause, i))
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
fn corrected(clause: &Clause, i: usize) -> Guess {
    const MEANT: Phrases = phrases!(
        "no i meant | no , i meant | sorry i meant | i meant to say | i meant | i mean | no make it | no , make it | \
         wait make it | actually make it | make that | make it | wait , make it | it should be | that should be | \
         should be | should have been | it's meant to be | it's actually | it's now | it is now | better make it | \
         rather make it | i'd prefer | i would prefer | i'd rather | let's say | change that to | change it to | \
         make this | this should be | actually it's | better set it to"
    );
    if clause.asked || clause.is_elsewhere() {
        return None;
    }
    let meant = (clause.opening..i).any(|k| matches!(clause.words.at(k), "meant" | "mean"));
    let only = clause.dates.first().is_some_and(|found| found.tokens.start == i && found.tokens.end == clause.end);
    if meant && only {
        return Some((Act::Update(Change::Replace(i), i, clause.end), 0.62));
    }
    if let Some(n) = clause.phrase(i, phrases!("i said")) {
        let (at, m) = clause.seek(i + n, phrases!("but it's | but it is | but i meant | but make it | not"))?;
        return is_when(clause, at + m).then_some((Act::Update(Change::Replace(at + m), at + m, clause.end), 0.6));
    }
    let n = clause.phrase(i, MEANT)?;
    let at = i + n;
    let date = date_near(clause, at).filter(|found| found.tokens.start <= at + 1)?;
    let after = date.tokens.end;
    let about = clause.phrase(after, phrases!("for | , for | for the")).map(|m| after + m);
    let instead =
        clause.phrase(after, phrases!("instead | not | rather than | , not | and not | instead of | now")).is_some();
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
pub(super) fn new_value(clause: &Clause, i: usize) -> Guess {
    const FIELDS: Phrases = phrases!(
        "new deadline | new due date | new date | new time | new title | new name | new priority | the deadline | \
         the due date | the date | the time | the title | the name | the priority | the description | the note | \
         the notes | due date | wrong date | wrong time | wrong day | wrong priority | title | its priority | \
         my highest priority | the status"
    );
    let (at, n) = clause.seek(i, FIELDS).filter(|(at, _)| *at <= i + 6)?;
    let asks = phrases!("what | what's | whats | when | how | is | do | which | who").contains(clause.at(i));
    if asks
        || verb_at(clause, i).is_some_and(|verb| verb != crate::lexicon::Verb::Make)
        || clause.asked
        || clause.is_elsewhere()
    {
        return None;
    }
    let title = clause.phrase(
        i,
        phrases!(
            "the title should be | the name should be | title should be | the new title is | the title is | \
         it should say | it should read | it should be called"
        ),
    );
    if let Some(m) = title.filter(|m| i + m < clause.end) {
        return Some((Act::Update(Change::NewName(i + m), i + m, i + m), 0.7));
    }
    let set = clause.seek(
        at + n,
        phrases!(
            "should be | is now | is | should have been | needs to be | has to be | : | , | was moved to | moved to | \
         got extended to | got extended by | has been extended to | got moved to | should read"
        ),
    );
    let valued = clause.dates.iter().any(|found| found.tokens.start >= at) || clause.has(super::change::DISTANCES);
    let level = attributes::closing_priority(clause, i).is_some() || clause.has(phrases!("high | low | medium"));
    let prioritised = clause.at(at + n - 1) == "priority";
    let fits = valued && (set.is_some() || at == i && clause.at(i) == "new" || at > i) || prioritised && level;
    let first = shape::is_definite(clause, i)
        || at == i
        || clause.before(at) == ","
        || clause.phrase(i, phrases!("with regard to | as for | for | about | regarding | on")).is_some()
        || at > i && clause.before(at).ends_with("'s");
    (fits && first).then_some((Act::Update(Change::Any, i, clause.end), 0.66))
}

/// "laundry -> tomorrow", "paint fence -> p3".
fn arrow(clause: &Clause, i: usize) -> Guess {
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
fn to_date(clause: &Clause, i: usize) -> Guess {
    let last = clause.dates.last()?;
    if clause.asked || clause.is_elsewhere() {
        return None;
    }
    if clause.at(i) == "not" && clause.dates.len() > 1 {
        let about = clause.seek(last.tokens.end, phrases!("for")).map(|(at, n)| at + n);
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
    let plain = |k: usize| clause.words.is_word(k) && !shape::is_pronoun(clause.at(k)) && clause.date_at(k).is_none();
    let fits = clause.at(to) == "to"
        && clause.is_spent(last.tokens.end..clause.end)
        && (1..=4).contains(&to.saturating_sub(i))
        && (i..to).all(plain)
        && verb_at(clause, i).is_none()
        && !super::is_doing(clause, i);
    fits.then_some((Act::Update(Change::Replace(to), i, clause.end), 0.6))
}

/// "the vet is now on Friday", "the interview has been moved to …", "the laundry can wait until Sunday".
fn stated(clause: &Clause, i: usize) -> Guess {
    const OPENERS: Phrases = phrases!(
        "what | which | when | who | how | if | is | are | do | does | i | we | you | he | she | they | there | \
         there's | why | where | it's | tell | show | tomorrow | today | tonight | nothing | here"
    );
    if OPENERS.contains(clause.at(i))
        || clause.asked && !matches!(clause.words.before(i), "could" | "can")
        || verb_at(clause, i).is_some() && !shape::is_definite(clause, i)
    {
        return None;
    }
    let entry = shape::names_entry(clause, i..clause.end.min(i + 9));
    let definite = shape::is_definite(clause, i) || entry;
    if clause.is_elsewhere() || !definite && clause.is_foreign() {
        return None;
    }
    match moved_at(clause, i) {
        Some((at, n)) => moved(clause, i, at..at + n, definite, entry),
        None => shall_be(clause, i, definite, entry),
    }
}

/// Where the words of a move stand, and their length.
fn moved_at(clause: &Clause, i: usize) -> Option<(usize, usize)> {
    const MOVED: Phrases = phrases!(
        "can wait | will have to wait | has to wait | needs to wait | can be done | moves | has moved | has changed | \
         has switched | needs to move | has to move | should move | is better | would be better | is due | are due | \
         isn't due | belongs | slipped | has slipped | should happen | should come | comes | should ring | \
         should go off | should repeat | should recur | should only be | should start | is happening | will be"
    );
    const CHANGED: Phrases = phrases!(
        "moved | pushed | changed | rescheduled | postponed | shifted | brought forward | bumped | delayed | \
         extended | switched | set"
    );
    let moved = shape::passive(clause, i + 1, CHANGED).or_else(|| clause.seek(i + 1, MOVED));
    moved.filter(|(at, _)| *at <= i + 9)
}

/// "the interview has been moved to Friday": what moves needs a new date.
fn moved(clause: &Clause, i: usize, said: Range<usize>, definite: bool, entry: bool) -> Guess {
    let at = said.start;
    // "is due Friday" may be no change at all.
    let weak = matches!(clause.at(at + 1), "due") || matches!(clause.at(at), "will" | "comes");
    let new = clause.has(phrases!("now | instead | not | rather than | no longer"))
        || entry
        || matches!(clause.at(at), "can" | "should");
    let dated = clause.dates.iter().any(|found| found.tokens.end > said.end)
        || clause.seek(said.end, super::change::DISTANCES).is_some();
    let fits = dated && (!weak || new && definite) && clause.at(said.end) != "every";
    fits.then_some((Act::Update(Change::Replace(at), i, clause.end), 0.7))
}

/// "the vet is now on Friday", "the report should be high priority".
fn shall_be(clause: &Clause, i: usize, definite: bool, entry: bool) -> Guess {
    const SHALL: Phrases = phrases!(
        "should be | should have been | needs to be | has to be | ought to be | must be | is supposed to be | \
         is meant to be | should now be | is now | are now | is | are | was meant to be | should say | should read | \
         should be called | should be named | needs a | needs | gets | 's now | should have | isn't | is not | \
         is no longer"
    );
    let (at, n) = clause.seek(i + 1, SHALL).filter(|(at, _)| *at <= i + 8)?;
    let after = at + n;
    let is = matches!(clause.at(at), "is" | "are" | "isn't");
    if !definite && is {
        return None;
    }
    if let Some(guess) = valued(clause, i, at, after) {
        return Some(guess);
    }
    let date = date_near(clause, after).filter(|found| found.tokens.start <= after + 1)?;
    let end = date.tokens.end;
    let now = clause.at(after.saturating_sub(1)) == "now"
        || clause
            .phrase(end, phrases!("now | instead | not | rather than | , not | from now on | , instead | and not"))
            .is_some();
    let shall = !is && definite;
    (now || shall || entry && is && end >= clause.end)
        .then_some((Act::Update(Change::Replace(at), i, clause.end), if now { 0.72 } else { 0.64 }))
}

/// "… should be high priority", "… should say buy paint", "… should have the tag Q3", "… isn't done".
fn valued(clause: &Clause, i: usize, at: usize, after: usize) -> Guess {
    let is = matches!(clause.at(at), "is" | "are" | "isn't");
    if matches!(clause.before(after), "say" | "read" | "called" | "named") {
        return (after < clause.end).then_some((Act::Update(Change::NewName(after), i, at), 0.68));
    }
    if clause.at(at) == "isn't" || clause.phrase(at, phrases!("is not")).is_some() {
        let open = clause.phrase(
            after,
            phrases!("done | finished | complete | completed | actually done | really done | actually finished"),
        );
        let more = clause.has(phrases!("after all | yet , | reopen | back | actually"));
        if open.is_some() && more {
            return Some((Act::Update(Change::Reopen, i, at), 0.7));
        }
        let urgent = clause
            .phrase(after, phrases!("urgent | important | high priority | that important | that urgent | so urgent"));
        let over =
            clause.phrase(after + urgent?, phrases!("anymore | any more | after all | now | any longer")).is_some();
        return over.then_some((Act::Update(Change::Priority(Priority::Low), i, at), 0.66));
    }
    if clause.phrase(after, phrases!("the tag | the tags | the label | tag | tagged")).is_some() && !is {
        return Some((Act::Update(Change::Tags, i, clause.end), 0.65));
    }
    if clause.phrase(after, phrases!("changed to | renamed to | renamed | turned into")).is_some() && !is {
        return Some((Act::Update(Change::Any, i, clause.end), 0.64));
    }
    let more = clause.phrase(after, phrases!("now | more | the | of")).unwrap_or(0);
    let (priority, n) = attributes::priority_at(clause, after + more)
        .or_else(|| Some((attributes::level(clause.at(after + more)).filter(|_| !is)?, 1)))?;
    let end = after + more + n;
    let now = more > 0 || clause.at(at + 1) == "now" || matches!(clause.at(end), "now" | "instead") || !is;
    let closed =
        clause.is_spent(end..clause.end) || matches!(clause.at(end), "now" | "instead" | "," | "priority" | "than");
    (closed && now).then_some((Act::Update(Change::Priority(priority), i, at), 0.68))
}

/// "one more day for the report", "give me another week on the essay", "I need more time for the audit".
pub(super) fn longer(clause: &Clause, i: usize) -> Guess {
    const MORE: Phrases = phrases!(
        "give me another | give me one more | give me until | give me till | give me | i need another | \
         i need one more | one more | another | one | two | three | half an | an | a | add another | add a | \
         add an | add one more | two more | add | push back"
    );
    let n = clause.phrase(i, MORE)?;
    let first = clause.words.is_word(i + n);
    let until = matches!(clause.before(i + n), "until" | "till");
    let until = until && date_near(clause, i + n).is_some();
    let unit = (i..clause.end.min(i + 4)).find(|k| super::change::DISTANCES.contains(clause.at(*k)));
    let at = if until { date_near(clause, i + n)?.tokens.end } else { unit? + 1 };
    let side = usize::from(matches!(clause.at(at), "later" | "earlier" | "sooner" | "more" | "extra"));
    let about =
        clause.phrase(at + side, phrases!("for | on | to | , | to the deadline for | to the deadline of"))? + at + side;
    let told = shape::is_definite(clause, about);
    let asked = side > 0
        || until
        || matches!(clause.at(i), "give" | "add")
        || clause.phrase(i, phrases!("one more | another | two more | i need")).is_some();
    let fits = first && told && asked && !clause.is_elsewhere() && !clause.asked && clause.dates.len() < 2;
    fits.then_some((Act::Update(Change::Any, about, clause.end), 0.62))
}

/// "tomorrow instead", "let's do the car wash on Saturday instead", "can't do the ironing today, tomorrow instead".
fn rather(clause: &Clause, i: usize) -> Guess {
    let (at, _) = clause.seek(i + 1, phrases!("instead | rather than"))?;
    let dated = clause.dates.iter().any(|found| found.tokens.end <= at || clause.at(at) == "instead");
    let question =
        matches!(clause.at(i), "what" | "how" | "who" | "where" | "why" | "is" | "are" | "i'll" | "play" | "show");
    let bare = clause.dates.iter().any(|found| found.tokens.start == i && found.tokens.end >= at);
    let about = shape::subject(clause, i..at).filter(|_| !bare);
    let fits = dated
        && !question
        && !clause.asked
        && !clause.is_foreign()
        && (bare || about.is_some() || clause.has(phrases!("it | that")));
    if !fits {
        return None;
    }
    let start = about.map_or(i, |about| about.start);
    Some((Act::Update(Change::Instead, start, clause.end), 0.66))
}

/// "the payroll task should no longer recur", "stop the gym task from repeating".
pub(super) fn once(clause: &Clause, i: usize) -> Guess {
    const ENDS: Phrases = phrases!(
        "should no longer recur | should no longer repeat | shouldn't repeat | should not repeat | shouldn't recur | \
         doesn't need to repeat | should stop repeating | no longer repeats | doesn't repeat | doesn't recur | \
         from repeating | from recurring | no longer needs to repeat | needn't repeat | should not recur"
    );
    let (at, _) = clause.seek(i + 1, ENDS)?;
    let from = i + usize::from(verb_at(clause, i).is_some());
    (!clause.asked).then_some((Act::Update(Change::Clear(Field::Recurrence), from, at), 0.78))
}
