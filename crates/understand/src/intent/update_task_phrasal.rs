//! Recognises update_task by a phrasal verb and its field: "put off the laundry until Tuesday", "bump the priority of
//! the visa", "take the deadline off the essay", "write in the notes of the report that …".
//!
//! The rules take the position `i` of the verb. They return the action with its confidence, or `None` if they do not
//! match. A *definite* object begins with "the", "my", "it", a quote, a number, a name or a word for a task. A
//! *distance* is a unit of time such as "week".

use model::task::Priority;

use super::{CommandAction, Guess, complete_task_statement, grammar};
use crate::attributes;
use crate::clause::Clause;
use crate::dates::DateMatch;
use crate::lexicon;
use crate::parsed::ClearableField;
use crate::update::UpdateKind;
use crate::vocabulary;

/// Recognises a phrasal verb at `i`. Returns `None` at once if no such verb begins with this word. The order is:
/// postponements, raised and lowered priorities, stated priorities, cleared dates, notes. Then new dates, deadlines,
/// replaced titles, reopening and the status follow.
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    clause.phrase(i, lexicon::update_task::PHRASAL_FIRST_WORDS)?;
    recognise_postponement(clause, i)
        .or_else(|| recognise_raised_priority(clause, i))
        .or_else(|| recognise_priority(clause, i))
        .or_else(|| recognise_cleared_date(clause, i))
        .or_else(|| recognise_note(clause, i))
        .or_else(|| recognise_new_date(clause, i))
        .or_else(|| recognise_given_deadline(clause, i))
        .or_else(|| recognise_replacement(clause, i))
        .or_else(|| recognise_reopening(clause, i))
        .or_else(|| recognise_status(clause, i))
}

/// Returns true if a date ends after `i` or a distance ("a week") follows.
fn has_date_after(clause: &Clause, i: usize) -> bool {
    let ends = |found: &DateMatch| found.tokens.end > i;
    clause.dates.iter().any(ends) || clause.find_phrase(i, lexicon::update_task::DISTANCES).is_some()
}

/// Recognises "put off the laundry until Tuesday", "put the laundry off until Tuesday", "pull the release forward to
/// Monday", "roll my open tasks over to Monday", "hold off on the roast until seven" (0.82). Requires a definite
/// object. A verb in one piece also needs a date or distance, and "until", "to", "by", "for" or "into". A split verb
/// needs a date or distance after the particle, except "put … off" and "bring … forward". "until", "to", "by", "for",
/// "a", "another", "one", "two", a date or the end must directly follow the particle, unless it is "until", or "for"
/// after "save", "leave" or "park". "keep", "save", "leave", "park", "put" and "set" do not accept "on", "up" and
/// "out"; "keep", "put" and "set" do not accept "for". Returns `None` for other domains and for "pull up".
fn recognise_postponement(clause: &Clause, i: usize) -> Guess {
    if clause.at(i) == "pull" && clause.at(i + 1) == "up" {
        return None;
    }
    let apart = || {
        let (at, n) = clause.find_phrase(i + 2, lexicon::update_task::POSTPONE_PARTICLES)?;
        let led = clause.phrase(at + n, lexicon::update_task::AMOUNT_LEADS).is_some()
            || clause.date_at(at + n).is_some()
            || at + n >= clause.end;
        let weak = matches!(clause.at(i), "keep" | "save" | "leave" | "park" | "put" | "set");
        let until = matches!(clause.at(at), "until" | "till")
            || matches!(clause.at(at), "for") && matches!(clause.at(i), "save" | "leave" | "park");
        let on = matches!(clause.at(at), "on" | "up" | "for" | "until" | "till" | "out") && weak && !until;
        let fits = lexicon::update_task::POSTPONE_VERBS.contains(clause.at(i))
            && !on
            && (led || until)
            && (grammar::is_definite(clause, i + 1) || clause.at(i) == "bring" && clause.at(at) == "forward");
        // "put the laundry off" and "bring the party forward" need no date. All other verbs do.
        let plain = matches!((clause.at(i), clause.at(at)), ("put", "off") | ("bring", "forward"));
        (fits && (plain || has_date_after(clause, at))).then_some(i + 1)
    };
    let from = clause
        .phrase(i, lexicon::update_task::POSTPONE)
        .filter(|n| {
            grammar::is_definite(clause, i + n)
                && has_date_after(clause, i + n)
                && clause.find_phrase(i + n, lexicon::update_task::DATE_LEADS).is_some()
        })
        .map(|n| i + n)
        .or_else(apart)?;
    (!clause.is_other_domain()).then_some((CommandAction::Update(UpdateKind::Due, from, clause.end), 0.82))
}

/// Recognises "bump up the priority on the visa to high", "raise its priority", "lower the importance of the shed task"
/// (0.88). A level at the end or after "to" is the new priority. Without one, it becomes high or low. The range of the
/// task is empty for the task in context. Returns `None` if no word for the priority follows the verb.
fn recognise_raised_priority(clause: &Clause, i: usize) -> Guess {
    let (verb, raised) = match (
        clause.phrase(i, lexicon::update_task::LOWER_PRIORITY),
        clause.phrase(i, lexicon::update_task::RAISE_PRIORITY),
    ) {
        (Some(n), _) => (n, Priority::Low),
        (_, Some(n)) => (n, Priority::High),
        _ => return None,
    };
    let field = clause.phrase(i + verb, lexicon::update_task::PRIORITY_FIELD)?;
    let from = i + verb + field;
    let stated = attributes::closing_priority(clause, from).or_else(|| {
        let (at, n) = clause.find_phrase(from, lexicon::grammar::TO)?;
        Some((at, attributes::priority_level(clause.at(at + n))?))
    });
    let (end, priority) = stated.unwrap_or((clause.end, raised));
    let end = if end > from && clause.at(end - 1) == "to" { end - 1 } else { end };
    let about = if from >= end { i + verb..i + verb } else { from..end };
    Some((CommandAction::Update(UpdateKind::Priority(priority), about.start, about.end), 0.88))
}

/// Recognises the priority of a task. A definite task must follow the verb directly, or a word for a task, a reminder
/// or an entry ("the second one") must follow anywhere.
///
/// - "star …", "pin …", "flag …", "highlight …", "prioritize …" (0.84): the priority is the level at the end, else
///   high. All but "prioritize" need such a level or a word for a task or a reminder.
/// - "put high priority on the visa form" (0.84), also with "give", "set", "turn", "treat", "consider", "make", "add",
///   "rank", "assign" and "escalate". Needs a priority of at least two words, then "on", "to" or "for" and directly a
///   definite task.
/// - "set it to high" (0.86), with the same verbs. Needs a level at the end after "to", "as", "at", "into", "in",
///   "with", "a" or "the". "give" and "turn" need no such word. A phrase that includes this word, such as "at the top
///   priority" or "as urgent", does not match after other verbs. "add", and "a", "an", "new" or "me" after the verb,
///   create tasks and do not match.
fn recognise_priority(clause: &Clause, i: usize) -> Guess {
    let entry = grammar::names_entry(clause, i + 1..clause.end)
        || grammar::is_definite(clause, i + 1)
        || clause.words.is_quoted(i + 1);
    if matches!(clause.at(i), "star" | "pin" | "highlight" | "prioritise" | "prioritize" | "flag") && i + 1 < clause.end
    {
        let (end, priority) = attributes::closing_priority(clause, i + 1).unwrap_or((clause.end, Priority::High));
        let sure = grammar::has_task(clause, i + 1..clause.end)
            || end < clause.end
            || matches!(clause.at(i), "prioritise" | "prioritize");
        return (entry && sure).then_some((CommandAction::Update(UpdateKind::Priority(priority), i + 1, end), 0.84));
    }
    if !matches!(
        clause.at(i),
        "put" | "give" | "set" | "turn" | "treat" | "consider" | "make" | "add" | "rank" | "assign" | "escalate"
    ) {
        return None;
    }
    // "set the priority of file taxes to low" names a field.
    let field = i + 1 + usize::from(vocabulary::is_article(clause.at(i + 1)));
    if clause
        .phrase(field, lexicon::create_task::FIELDS)
        .is_some_and(|n| matches!(clause.at(field + n), "of" | "for" | "on"))
    {
        return None;
    }
    // "put high priority on the visa form"
    if let Some((priority, n)) = attributes::priority_at(clause, i + 1).filter(|(_, n)| *n > 1)
        && matches!(clause.at(i + 1 + n), "on" | "to" | "for")
        && grammar::is_definite(clause, i + 2 + n)
    {
        return Some((CommandAction::Update(UpdateKind::Priority(priority), i + 2 + n, clause.end), 0.84));
    }
    let (at, priority) = attributes::closing_priority(clause, i + 2).or_else(|| {
        let at = clause
            .end
            .checked_sub(1)
            .filter(|at| *at > i + 2 && matches!(clause.before(*at), "to" | "as" | "at" | "into"))?;
        Some((at, attributes::priority_level(clause.at(at))?))
    })?;
    let mut end = at;
    while end > i + 2 && matches!(clause.at(end - 1), "at" | "the" | "to" | "as" | "into" | "a" | "in" | "with") {
        end -= 1;
    }
    let led = end < at || matches!(clause.at(i), "give" | "turn");
    let new = matches!(clause.at(i + 1), "a" | "an" | "new" | "me") || clause.at(i) == "add";
    (entry && led && !new).then_some((CommandAction::Update(UpdateKind::Priority(priority), i + 1, end), 0.86))
}

/// Recognises "take the deadline off the blog post", "clear the date on task 3" (0.86), "make the fence undated" (0.8).
/// The first forms need an article and a field such as "deadline", "date" or "time". "from", "off", "on" or a similar
/// word must follow. The task follows and ends before a comma. "take the time off …" needs a word for a task. "undated"
/// or "dateless" must end the clause. Returns `None` otherwise.
fn recognise_cleared_date(clause: &Clause, i: usize) -> Guess {
    if clause.at(i) == "make" && matches!(clause.before(clause.end), "undated" | "dateless") {
        return Some((CommandAction::Update(UpdateKind::Clear(ClearableField::Due), i + 1, clause.end - 1), 0.8));
    }
    let from = i + clause.phrase(i, lexicon::update_task::CLEAR_VERBS)?;
    let at = from + usize::from(vocabulary::is_article(clause.at(from)));
    let after = at + clause.phrase(at, lexicon::update_task::DATE_FIELDS)?;
    let lead = clause.phrase(after, lexicon::grammar::FROM_TASK)?;
    let end = clause.find_phrase(after, lexicon::grammar::COMMA).map_or(clause.end, |(at, _)| at);
    let own = at > from
        && after + lead < end
        && !(clause.at(i) == "take" && clause.at(at) == "time" && !grammar::has_task(clause, after..end));
    own.then_some((CommandAction::Update(UpdateKind::Clear(ClearableField::Due), after + lead, end), 0.86))
}

/// Recognises "put in the notes of buy paint that …", "attach a comment to the invoice task saying …" (0.82). The text
/// of the note precedes the place or is quoted. Or it follows "that", "saying", a colon, a dash or a comma. Also
/// recognises "write in the haircut task that …", "note on the boiler task: …" (0.8). This form needs a definite
/// singular task directly before "that", "saying", a colon or a dash. The verb must not be "add". Returns `None` for a
/// note that is a new task ("make a note to call Bob", "a note for myself"), and for other verbs.
fn recognise_note(clause: &Clause, i: usize) -> Guess {
    if !lexicon::update_task::NOTE_VERBS.contains(clause.at(i)) {
        return None;
    }
    let stated = |from: usize| clause.find_phrase(from + 1, lexicon::update_task::NOTE_SIGNS);
    if let Some((at, n)) = clause.find_phrase(i + 1, lexicon::update_task::NOTE_PLACES).filter(|(at, _)| *at <= i + 10)
    {
        let lead = clause.phrase(at, lexicon::update_task::NOTE_PLACES).is_some()
            && matches!(clause.before(at + n), "to" | "on" | "for" | "in");
        let fits = grammar::is_definite(clause, at + n) || at > i + 1 || !lead;
        // "make a note to call Bob" and "add a note for myself" create tasks.
        let new = lead
            && (!grammar::has_task(clause, at + n..clause.end) && stated(at + n).is_none()
                || matches!(clause.at(at + n), "self" | "myself" | "me"));
        let text = stated(at + n).is_some() || clause.words.is_quoted(i + 1) || at > i + 2;
        return (fits && !new && text).then_some((CommandAction::Update(UpdateKind::Note, at + n, clause.end), 0.82));
    }
    let (at, n) = clause.find_phrase(i + 1, lexicon::update_task::NOTE_LINKS).filter(|(at, _)| *at == i + 1)?;
    let noun = clause
        .nouns_in(at + n..clause.end.min(at + 7))
        .find(|noun| !noun.plural && noun.noun == vocabulary::Noun::Task)?;
    let text = clause.phrase(noun.end, lexicon::update_task::NOTE_TEXT_LEADS);
    (text.is_some() && grammar::is_definite(clause, at + n) && clause.at(i) != "add")
        .then_some((CommandAction::Update(UpdateKind::Note, at + n, clause.end), 0.8))
}

/// Recognises "set the audit task to Friday noon", "put the appraisal task on Tuesday", "set the rent task to repeat
/// monthly" (0.82). The verb is "set", "put", "have", "let" or "schedule". Requires a definite singular task or
/// reminder within seven tokens, without "to", "for", "on" or "about" before it. "to", "for", "on", "at" or "due" and a
/// date or a number below 25 must follow. The last date must end the clause, or "instead", "not" or a comma follows it.
/// "set the reminder for Friday" and "set the task to Friday" have no name and do not match.
fn recognise_new_date(clause: &Clause, i: usize) -> Guess {
    if !matches!(clause.at(i), "set" | "put" | "have" | "let" | "schedule") || !grammar::is_definite(clause, i + 1) {
        return None;
    }
    let entry = clause
        .nouns_in(i + 1..clause.end.min(i + 8))
        .find(|noun| noun.noun != vocabulary::Noun::List && !noun.plural)
        .filter(|noun| !(i + 1..noun.at).any(|k| matches!(clause.at(k), "to" | "for" | "on" | "about")))?;
    let end = entry.end + usize::from(crate::numbers::parse_digits(clause.at(entry.end)).is_some());
    let lead = clause.phrase(end, lexicon::update_task::SET_TO)?;
    let pointed = grammar::pronoun_length(clause, i + 1).is_some();
    let value = end + lead;
    let when = clause.date_at(value).is_some()
        || clause.date_at(end).is_some()
        || clause.date_at(value + 1).is_some()
        || crate::numbers::parse_digits(clause.at(value)).is_some_and(|n| n < 25);
    let task = entry.noun == vocabulary::Noun::Task;
    // "set the reminder for Friday" can mean a new or an existing reminder.
    let named = entry.at > i + 2;
    let closed = clause.dates.last().is_some_and(|found| {
        clause.is_exhausted(found.tokens.end..clause.end)
            || clause.phrase(found.tokens.end, lexicon::update_task::VALUE_TAILS).is_some()
    }) || clause.dates.is_empty();
    (when && closed && (task || named) && !pointed)
        .then_some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.82))
}

/// Recognises "give the blog post a deadline of Dec 29" (0.84), with a definite task directly after "give", "assign" or
/// "grant". Also recognises "give me until Friday for the essay" and "put a deadline of Sunday on the fence" (0.6).
/// Here the phrase follows the verb, possibly after "me". "on", "for" or "to" and a definite task must follow the date.
/// Returns `None` without a date or for other verbs.
fn recognise_given_deadline(clause: &Clause, i: usize) -> Guess {
    if !matches!(clause.at(i), "give" | "put" | "set" | "assign" | "grant" | "allow") {
        return None;
    }
    let (at, n) = clause.find_phrase(i + 1, lexicon::update_task::GIVE_DEADLINE)?;
    let date = clause.dates.iter().find(|found| found.tokens.start >= at || found.tokens.contains(&(at + n)))?;
    if at > i + 1 && grammar::is_definite(clause, i + 1) && matches!(clause.at(i), "give" | "assign" | "grant") {
        return Some((CommandAction::Update(UpdateKind::Replace(at), i + 1, clause.end), 0.84));
    }
    let end = date.tokens.end;
    let lead = clause.phrase(end, lexicon::grammar::TO_TASK)?;
    let open = at == i + 1 || matches!(clause.at(i + 1), "me" | "us");
    (open && grammar::is_definite(clause, end + lead))
        .then_some((CommandAction::Update(UpdateKind::Any, end + lead, clause.end), 0.6))
}

/// Recognises a new title: "turn 'bread' into 'rye bread'", "replace buy nappies with buy wipes", "swap cheddar for
/// gouda on the list" (0.8). Requires a quote directly after the verb, an activity on both sides, or a word for a task.
/// With the latter, the old title must be definite, or the word must follow "into", "with" or "for". Returns `None`
/// without a new title, and for other domains.
fn recognise_replacement(clause: &Clause, i: usize) -> Guess {
    let joint = match clause.at(i) {
        "turn" | "make" | "change" => lexicon::update_task::INTO,
        "replace" | "substitute" => lexicon::update_task::REPLACED_WITH,
        "swap" | "exchange" | "switch" => lexicon::update_task::REPLACED_FOR,
        _ => return None,
    };
    let (at, n) = clause.find_phrase(i + 2, joint)?;
    let quoted = clause.words.is_quoted(i + 1);
    let doing = super::is_activity(clause, i + 1) && super::is_activity(clause, at + n);
    let listed = clause.has_noun() && (grammar::is_definite(clause, i + 1) || clause.noun_in(at..clause.end).is_some());
    let fits = (quoted || doing || listed) && at + n < clause.end && !clause.is_other_domain();
    fits.then_some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.8))
}

/// Recognises "put task 2 back to open", "set the report back to pending", "get the gym task back on the list" (0.86).
/// The state must end the clause or precede a comma. "back on the list" needs "put", "bring" or "get". A word for a
/// task is not required. Returns `None` otherwise.
fn recognise_reopening(clause: &Clause, i: usize) -> Guess {
    if !matches!(
        clause.at(i),
        "put" | "set" | "change" | "move" | "switch" | "mark" | "bring" | "make" | "turn" | "get" | "flip"
    ) {
        return None;
    }
    let (at, _) = clause
        .find_phrase(i + 2, lexicon::update_task::BACK_TO_OPEN)
        .filter(|(at, n)| clause.is_exhausted(at + n..clause.end) || clause.at(at + n) == ",")?;
    let listed = clause.at(at + 1) == "on" && !matches!(clause.at(i), "put" | "bring" | "get");
    (!listed).then_some((CommandAction::Update(UpdateKind::Reopen, i + 1, at), 0.86))
}

/// Recognises "change the status of the report to done", "put the rent down as paid" as a completion (0.86). The end, a
/// date, a mark or a closing remark must follow the state. "done" without "to" or "as" needs "call", "consider",
/// "declare", "make" or "count". The task must be definite, follow "the status of", or begin with a word that is no
/// article. After "make", the last form does not match. Returns `None` for questions without "you" and for other
/// domains.
fn recognise_status(clause: &Clause, i: usize) -> Guess {
    if !lexicon::update_task::STATUS_VERBS.contains(clause.at(i)) {
        return None;
    }
    let (at, n) = clause
        .find_phrase(i + 2, lexicon::complete_task::TO_DONE)
        .filter(|(at, n)| complete_task_statement::closes_statement(clause, at + n))?;
    let bare = n == 1;
    let marked = matches!(clause.at(i), "call" | "consider" | "declare" | "make" | "count");
    if bare && !marked || clause.is_question && !clause.has(lexicon::grammar::YOU) || clause.is_other_domain() {
        return None;
    }
    let of = clause.phrase(i + 1, lexicon::update_task::STATUS_FIELD).unwrap_or(0);
    let from = i + 1 + of;
    let fits = grammar::is_definite(clause, from)
        || of > 0
        || clause.words.is_word(from) && !vocabulary::is_article(clause.at(from)) && clause.at(i) != "make";
    (fits && from < at).then_some((CommandAction::Complete(from, at), 0.86))
}
