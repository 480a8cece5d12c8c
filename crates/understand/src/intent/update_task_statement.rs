//! Recognises update_task in statements: "the vet is now on Friday", "the report should be high priority", "no, I meant
//! Wednesday", "laundry -> tomorrow", "one more day for the essay".
//!
//! The statement begins at `i`. The rules return the action with its confidence, or `None` if they do not match. A
//! *definite* subject begins with "the", "my", "that", "it", "all", a quote, "#", a number in digits or a word for a
//! task, or with a capitalised word after the start of the clause. An *entry* is "one", "the second" and similar words.
//! A *distance* is a unit of time such as "week".

use std::ops::Range;

use model::task::Priority;

use super::{CommandAction, Guess, grammar, verb_at};
use crate::attributes;
use crate::clause::Clause;
use crate::dates::DateMatch;
use crate::lexicon;
use crate::parsed::ClearableField;
use crate::update::UpdateKind;

/// Recognises a statement at the start of the clause that changes a task. The order is: corrections, new values of a
/// field, arrows, stated values, "dentist to friday", more time, and "instead".
pub(super) fn recognise(clause: &Clause) -> Guess {
    let i = clause.start;
    // "from one bag of coffee to two"
    let counted = clause.at(i) == "from" && crate::numbers::cardinal(clause.words, i + 1).is_some();
    if counted && (i + 3..clause.end).any(|k| clause.at(k) == "to") && clause.dates.len() < 2 && !clause.is_question {
        return Some((CommandAction::Update(UpdateKind::Any, i, clause.end), 0.6));
    }
    recognise_correction(clause, i)
        .or_else(|| recognise_new_value(clause, i))
        .or_else(|| recognise_arrow(clause, i))
        .or_else(|| recognise_stated(clause, i))
        .or_else(|| recognise_to_date(clause, i))
        .or_else(|| recognise_more_time(clause, i))
        .or_else(|| recognise_instead(clause, i))
}

/// Returns the first date that contains `i` or begins at most two tokens after it.
fn date_near<'c>(clause: &'c Clause, i: usize) -> Option<&'c DateMatch> {
    clause
        .dates
        .iter()
        .find(|found| found.tokens.start >= i && found.tokens.start <= i + 2 || found.tokens.contains(&i))
}

/// Returns true for a date at `i` or within two tokens, or an hour that ends the clause, possibly after "at" or "to".
fn is_when(clause: &Clause, i: usize) -> bool {
    let hour = |k: usize| crate::numbers::parse_digits(clause.at(k)).is_some_and(|n| n <= 24) && k + 1 >= clause.end;
    date_near(clause, i).is_some() || hour(i) || matches!(clause.at(i), "at" | "to" | "until") && hour(i + 1)
}

/// Recognises "no I meant wednesday", "make that Friday instead", "I meant Friday for the report" (0.68). The date
/// begins within one token after the phrase. It must end the clause, or "for", "instead", "not" or a similar word
/// follows. "I said Monday not Tuesday" (0.6) takes the date or hour after "not", unless "I said" was skipped before
/// `i` as a courtesy. A date that fills the clause after a removed "I mean" also counts (0.62). The correction refers
/// to the task after "for", or to the one in context. Returns `None` for questions and other domains.
fn recognise_correction(clause: &Clause, i: usize) -> Guess {
    if clause.is_question || clause.is_other_domain() {
        return None;
    }
    let meant = (clause.outer_start..i).any(|k| matches!(clause.words.at(k), "meant" | "mean"));
    let only = clause.dates.first().is_some_and(|found| found.tokens.start == i && found.tokens.end == clause.end);
    if meant && only {
        return Some((CommandAction::Update(UpdateKind::Replace(i), i, clause.end), 0.62));
    }
    if let Some(n) = clause.phrase(i, lexicon::update_task::I_SAID) {
        let (at, m) = clause.find_phrase(i + n, lexicon::update_task::BUT_IT_IS)?;
        return is_when(clause, at + m)
            .then_some((CommandAction::Update(UpdateKind::Replace(at + m), at + m, clause.end), 0.6));
    }
    let n = clause.phrase(i, lexicon::update_task::I_MEANT)?;
    let at = i + n;
    let date = date_near(clause, at).filter(|found| found.tokens.start <= at + 1)?;
    let after = date.tokens.end;
    let about = clause.phrase(after, lexicon::update_task::FOR_TASK).map(|m| after + m);
    let instead = clause.phrase(after, lexicon::update_task::INSTEAD).is_some();
    let closed = clause.is_exhausted(after..clause.end) || about.is_some() || instead;
    let range = about.map_or(at..at, |from| from..clause.end);
    closed.then_some((update_at(at, range, clause), 0.68))
}

/// Returns the update for a date that precedes the name of the task. `date` is the start of the date, `about` the range
/// of the name. If it is empty, the update concerns the task in context.
fn update_at(date: usize, about: Range<usize>, clause: &Clause) -> CommandAction {
    if about.is_empty() {
        return CommandAction::Update(UpdateKind::Replace(date), date, clause.end);
    }
    CommandAction::Update(UpdateKind::Instead, date, clause.end)
}

/// Recognises a statement about a field: "new deadline for the essay is monday", "report, new due date Friday". The
/// name of a field must begin at most six tokens after `i`. A title at `i` ("the title is …") takes all words after it
/// (0.7). Other fields need a date after them, or a distance anywhere (0.66). A field at `i` also needs "new", or a
/// later "is", colon, comma or similar divider. For the priority, a level ("high") suffices. A field after `i` needs a
/// definite subject, a topic ("for …"), a comma, or "'s" before it. Returns `None` for questions, other domains, and
/// question words and command verbs at `i`, except "make" and its synonyms.
pub(super) fn recognise_new_value(clause: &Clause, i: usize) -> Guess {
    let (at, n) = clause.find_phrase(i, lexicon::update_task::NEW_FIELDS).filter(|(at, _)| *at <= i + 6)?;
    let is_query = lexicon::update_task::QUESTION_OPENERS.contains(clause.at(i));
    if is_query
        || verb_at(clause, i).is_some_and(|verb| verb != crate::vocabulary::Verb::Make)
        || clause.is_question
        || clause.is_other_domain()
    {
        return None;
    }
    let title = clause.phrase(i, lexicon::update_task::TITLE_IS);
    if let Some(m) = title.filter(|m| i + m < clause.end) {
        return Some((CommandAction::Update(UpdateKind::NewName(i + m), i + m, i + m), 0.7));
    }
    let set = clause.find_phrase(at + n, lexicon::update_task::FIELD_IS);
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
    (fits && first).then_some((CommandAction::Update(UpdateKind::Any, i, clause.end), 0.66))
}

/// Recognises "laundry -> tomorrow", "paint fence -> p3" (0.75). The arrow is "->", "=>" or "→" after at least one
/// token. A priority must directly follow it, or a date must begin within two tokens. Otherwise returns `None`.
fn recognise_arrow(clause: &Clause, i: usize) -> Guess {
    let at = (i + 1..clause.end).find(|k| {
        matches!(clause.at(*k), "→" | "=>" | "->") || matches!(clause.at(*k), "-" | "=") && clause.at(k + 1) == ">"
    })?;
    let value = at + 1 + usize::from(clause.at(at + 1) == ">");
    if let Some((priority, _)) = attributes::priority_at(clause, value) {
        return Some((CommandAction::Update(UpdateKind::Priority(priority), i, at), 0.75));
    }
    date_near(clause, value).is_some().then_some((CommandAction::Update(UpdateKind::Replace(at), i, clause.end), 0.75))
}

/// Recognises "dentist to friday" (0.6). The name has one to four words, without a pronoun or a date. It does not begin
/// with a command verb or an activity. The last date follows "to" and ends the clause. Also recognises "not Friday,
/// Saturday for the kayak": "not" at `i`, two dates, and "for …" or the end after the last one. Without "for", it
/// refers to the task in context. Returns `None` for questions and other domains.
fn recognise_to_date(clause: &Clause, i: usize) -> Guess {
    let last = clause.dates.last()?;
    if clause.is_question || clause.is_other_domain() {
        return None;
    }
    if clause.at(i) == "not" && clause.dates.len() > 1 {
        let about = clause.find_phrase(last.tokens.end, lexicon::grammar::FOR).map(|(at, n)| at + n);
        let closed = about.is_some() || clause.is_exhausted(last.tokens.end..clause.end);
        let from = about.unwrap_or(last.tokens.start);
        return closed.then_some((
            CommandAction::Update(
                if about.is_some() { UpdateKind::Instead } else { UpdateKind::Replace(from) },
                last.tokens.start,
                clause.end,
            ),
            0.6,
        ));
    }
    let to = if clause.at(last.tokens.start) == "to" { last.tokens.start } else { last.tokens.start.checked_sub(1)? };
    let plain = |k: usize| clause.words.is_word(k) && !grammar::is_pronoun(clause.at(k)) && clause.date_at(k).is_none();
    let fits = clause.at(to) == "to"
        && clause.is_exhausted(last.tokens.end..clause.end)
        && (1..=4).contains(&to.saturating_sub(i))
        && (i..to).all(plain)
        && verb_at(clause, i).is_none()
        && !super::is_activity(clause, i);
    fits.then_some((CommandAction::Update(UpdateKind::Replace(to), i, clause.end), 0.6))
}

/// Recognises "the vet is now on Friday", "the interview has been moved to …", "the laundry can wait until Sunday". If
/// a verb of moving begins one to nine tokens after `i`, only [`recognise_moved`] decides, otherwise
/// [`recognise_required_value`]. Returns `None` if the word at `i` is a command verb and not definite, for other
/// domains, and plans without a definite subject or entry. Questions match only after "can" and "could". First words
/// that name no task ("I", "they", "it's", "there", "tomorrow") do not match.
fn recognise_stated(clause: &Clause, i: usize) -> Guess {
    if lexicon::update_task::NOT_STATEMENTS.contains(clause.at(i))
        || clause.is_question && !matches!(clause.words.before(i), "could" | "can")
        || verb_at(clause, i).is_some() && !grammar::is_definite(clause, i)
    {
        return None;
    }
    let entry = grammar::names_entry(clause, i..clause.end.min(i + 9));
    let definite = grammar::is_definite(clause, i) || entry;
    if clause.is_other_domain() || !definite && clause.is_out_of_scope() {
        return None;
    }
    match moved_at(clause, i) {
        Some((at, n)) => recognise_moved(clause, i, at..at + n, definite, entry),
        None => recognise_required_value(clause, i, definite, entry),
    }
}

/// Returns the position and the length of a verb of moving that begins one to nine tokens after `i`.
fn moved_at(clause: &Clause, i: usize) -> Option<(usize, usize)> {
    let moved = grammar::find_passive(clause, i + 1, lexicon::update_task::MOVED_PARTICIPLES)
        .or_else(|| clause.find_phrase(i + 1, lexicon::update_task::HAS_MOVED));
    moved.filter(|(at, _)| *at <= i + 9)
}

/// Recognises "the interview has been moved to Friday" (0.7). `verb_range` is the verb. `definite` is true for a
/// definite subject or an entry. `entry` is true if the first nine tokens name a task or an entry. Requires a date that
/// ends after the verb or a distance after it. "is due", "will be" and "comes" also need `definite`, and "now",
/// "instead", "not" or `entry`. "every" directly after the verb does not match.
fn recognise_moved(clause: &Clause, i: usize, verb_range: Range<usize>, definite: bool, entry: bool) -> Guess {
    let at = verb_range.start;
    // "is due Friday" may not be a change.
    let weak = matches!(clause.at(at + 1), "due") || matches!(clause.at(at), "will" | "comes");
    let new = clause.has(lexicon::update_task::MOVED_TAILS) || entry || matches!(clause.at(at), "can" | "should");
    let dated = clause.dates.iter().any(|found| found.tokens.end > verb_range.end)
        || clause.find_phrase(verb_range.end, lexicon::update_task::DISTANCES).is_some();
    let fits = dated && (!weak || new && definite) && clause.at(verb_range.end) != "every";
    fits.then_some((CommandAction::Update(UpdateKind::Replace(at), i, clause.end), 0.7))
}

/// Recognises "the vet is now on Friday", "the report should be high priority". `definite` is true for a definite
/// subject or an entry. `entry` is true if the first nine tokens name a task or an entry. The verb begins one to eight
/// tokens after `i`. Verbs that begin with "is", "are" or "isn't" ("is supposed to be") always need `definite`. Values
/// other than dates are passed to [`recognise_stated_value`]. A date must begin within one token after the verb. "now"
/// directly before it, or "now", "instead" or "not" after it, suffices (0.72). Without them, "should be" and similar
/// verbs need `definite`, and "is" needs `entry` and the date at the end (0.64). Returns `None` otherwise.
fn recognise_required_value(clause: &Clause, i: usize, definite: bool, entry: bool) -> Guess {
    let (at, n) = clause.find_phrase(i + 1, lexicon::update_task::SHALL_BE).filter(|(at, _)| *at <= i + 8)?;
    let after = at + n;
    let is = matches!(clause.at(at), "is" | "are" | "isn't");
    let is_now = clause.find_phrase(after, lexicon::update_task::SHALL_TAILS).is_some_and(|(k, n)| k + n == clause.end);
    if !definite && is && !(is_now && date_near(clause, after).is_some()) {
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
        .then_some((CommandAction::Update(UpdateKind::Replace(at), i, clause.end), if now { 0.72 } else { 0.64 }))
}

/// Recognises "… should say buy paint", "… should have the tag Q3", "… should be renamed …", "… isn't done", "… isn't
/// urgent anymore", "… should be high priority". `at` is the position of the verb, `after` the one after it. "isn't
/// done" reopens the task only with "after all", "actually", "back" or "reopen". "isn't urgent" needs "anymore" and
/// sets low priority. Other words after "isn't" and "is not" return `None`. Tags and titles do not match after "is".
/// The priority must end the clause or precede "now", "instead", "than", "priority" or a comma. After "is" it also
/// needs "now", "more", "the" or "of" before it, or "now" or "instead" after it. The confidence is 0.64 to 0.7.
fn recognise_stated_value(clause: &Clause, i: usize, at: usize, after: usize) -> Guess {
    let is = matches!(clause.at(at), "is" | "are" | "isn't");
    if matches!(clause.before(after), "say" | "read" | "called" | "named") {
        return (after < clause.end).then_some((CommandAction::Update(UpdateKind::NewName(after), i, at), 0.68));
    }
    if clause.at(at) == "isn't" || clause.phrase(at, lexicon::update_task::IS_NOT).is_some() {
        let open = clause.phrase(after, lexicon::update_task::DENIED_DONE);
        let more = clause.has(lexicon::update_task::DENIED_DONE_TAILS);
        if open.is_some() && more {
            return Some((CommandAction::Update(UpdateKind::Reopen, i, at), 0.7));
        }
        let urgent = clause.phrase(after, lexicon::update_task::DENIED_URGENT);
        let over = clause.phrase(after + urgent?, lexicon::grammar::ANY_MORE).is_some();
        return over.then_some((CommandAction::Update(UpdateKind::Priority(Priority::Low), i, at), 0.66));
    }
    if clause.phrase(after, lexicon::update_task::STATED_TAGS).is_some() && !is {
        return Some((CommandAction::Update(UpdateKind::Tags, i, clause.end), 0.65));
    }
    if clause.phrase(after, lexicon::update_task::STATED_TITLE).is_some() && !is {
        return Some((CommandAction::Update(UpdateKind::Any, i, clause.end), 0.64));
    }
    let more = clause.phrase(after, lexicon::update_task::STATED_LINKS).unwrap_or(0);
    let (priority, n) = attributes::priority_at(clause, after + more)
        .or_else(|| Some((attributes::priority_level(clause.at(after + more)).filter(|_| !is)?, 1)))?;
    let end = after + more + n;
    let now = more > 0 || clause.at(at + 1) == "now" || matches!(clause.at(end), "now" | "instead") || !is;
    let closed =
        clause.is_exhausted(end..clause.end) || matches!(clause.at(end), "now" | "instead" | "," | "priority" | "than");
    (closed && now).then_some((CommandAction::Update(UpdateKind::Priority(priority), i, at), 0.68))
}

/// Recognises "one more day for the report", "give me another week on the essay", "add a day to the audit" (0.62). The
/// words at `i` must be "give me", "I need another", "add", "push back", "a", "half an", "another" or "one" to "three",
/// and a word must follow. A distance must be within the first four tokens. "for", "on", "to" or a comma and a definite
/// task must follow it, possibly after "later" or "more". "a day for the report" needs "later", "more", "give", "add",
/// "another", "one more" or "I need". "give me until Friday" does not match. Returns `None` for two dates, questions
/// and other domains.
pub(super) fn recognise_more_time(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::update_task::MORE_TIME)?;
    let first = clause.words.is_word(i + n);
    let until = matches!(clause.before(i + n), "until" | "till");
    let until = until && date_near(clause, i + n).is_some();
    let unit = (i..clause.end.min(i + 4)).find(|k| lexicon::update_task::DISTANCES.contains(clause.at(*k)));
    let at = if until { date_near(clause, i + n)?.tokens.end } else { unit? + 1 };
    let side = usize::from(matches!(clause.at(at), "later" | "earlier" | "sooner" | "more" | "extra"));
    let about = clause.phrase(at + side, lexicon::update_task::MORE_TIME_FOR)? + at + side;
    let is_definite = grammar::is_definite(clause, about);
    let asked = side > 0
        || until
        || matches!(clause.at(i), "give" | "add")
        || clause.phrase(i, lexicon::update_task::MORE_TIME_OPENERS).is_some();
    let fits =
        first && is_definite && asked && !clause.is_other_domain() && !clause.is_question && clause.dates.len() < 2;
    fits.then_some((CommandAction::Update(UpdateKind::Any, about, clause.end), 0.62))
}

/// Recognises "tomorrow instead", "let's do the car wash on Saturday instead", "can't do the ironing today, tomorrow
/// instead" (0.66). Requires a date. With "rather than", it must end before that. Unless a date fills the words before
/// "instead", a subject, "it" or "that" is required. Returns `None` for questions, for "I'll", "play", "show" and
/// question words at `i`, and for other domains and plans.
fn recognise_instead(clause: &Clause, i: usize) -> Guess {
    let (at, _) = clause.find_phrase(i + 1, lexicon::update_task::INSTEAD_WORDS)?;
    let dated = clause.dates.iter().any(|found| found.tokens.end <= at || clause.at(at) == "instead");
    let question =
        matches!(clause.at(i), "what" | "how" | "who" | "where" | "why" | "is" | "are" | "i'll" | "play" | "show");
    let bare = clause.dates.iter().any(|found| found.tokens.start == i && found.tokens.end >= at);
    let about = grammar::find_subject(clause, i..at).filter(|_| !bare);
    let fits = dated
        && !question
        && !clause.is_question
        && !clause.is_out_of_scope()
        && (bare || about.is_some() || clause.has(lexicon::update_task::IT));
    if !fits {
        return None;
    }
    let start = about.map_or(i, |about| about.start);
    Some((CommandAction::Update(UpdateKind::Instead, start, clause.end), 0.66))
}

/// Recognises "the payroll task should no longer recur", "stop the gym task from repeating" (0.78). Clears the
/// recurrence. The task is the text between the verb at `i`, if there is one, and the phrase. A word for a task is not
/// required. Returns `None` for questions.
pub(super) fn recognise_end_of_repeat(clause: &Clause, i: usize) -> Guess {
    let (at, _) = clause.find_phrase(i + 1, lexicon::update_task::NO_MORE_REPEAT)?;
    let from = i + usize::from(verb_at(clause, i).is_some());
    (!clause.is_question)
        .then_some((CommandAction::Update(UpdateKind::Clear(ClearableField::Recurrence), from, at), 0.78))
}
