//! Recognises update_task by its verb: "change the title of …", "move the dentist to Friday", "postpone the call",
//! "make it urgent", "set the priority of …".
//!
//! The rules take the position `i` of the verb. They return the action with its confidence, or `None` if they do not
//! match. A *word for a task* is a noun for a task, a reminder or a list.

use model::task::Priority;

use super::{CommandAction, Guess, no_request};
use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::scope;
use crate::update::UpdateKind;
use crate::vocabulary::{self, Noun, Verb};

/// Recognises a verb of changing or moving at `i`. The confidence is 0.95 with a word for a task. Otherwise there are
/// two kinds of evidence. The first is "to", "by", "until", "for", "with" or "from". The second is a date, or "it",
/// "that", "this" or a quote after the verb, or a distance with a verb of moving. Both yield 0.85, one of them 0.65. A
/// field ("the due date") or a verb such as "postpone" alone also yields 0.65. A verb that is the whole clause
/// ("reschedule") refers to the task in context (0.55). Verbs of moving change the due date, other verbs any field.
/// "prioritize …" sets high priority (0.85). "update me" with a word for tasks is a listing (0.7).
///
/// Returns `None` without such evidence and for objects such as files. Other domains match only for a field ("the time
/// of …") and a postponement ([`is_postponement`]). "switch to …" and similar changes ([`is_other_change`]) need a word
/// for a task. Errands ("I need to fix …", "replace for …") do not match.
pub(super) fn recognise(clause: &Clause, i: usize, verb: Verb) -> Guess {
    let noun = clause.has_noun();
    let next = clause.at(i + 1);
    let field = clause.phrase(i + 1, lexicon::update_task::FIELDS_OF);
    if i + 1 >= clause.end && lexicon::update_task::BARE_VERBS.contains(clause.at(i)) {
        return (clause.end - clause.start == 1)
            .then_some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.55));
    }
    if clause.is_other_domain() && field.is_none() && !is_postponement(clause, i, verb)
        || !noun && is_other_change(clause, i)
        || scope::is_other_thing(clause, i + 1)
    {
        return None;
    }
    if matches!(clause.at(i), "prioritize" | "prioritise") {
        return Some((CommandAction::Update(UpdateKind::Priority(Priority::High), i + 1, clause.end), 0.85));
    }
    if clause.at(i) == "update" && next == "me" {
        return noun.then_some((CommandAction::List(i + 2), 0.7));
    }
    let errand = matches!(clause.at(i), "revise" | "fix" | "replace" | "correct") && !noun;
    if errand && (no_request::is_need(clause, i) || next == "for") {
        return None;
    }
    let known = matches!(next, "it" | "that" | "this") || clause.words.is_quoted(i + 1);
    let to = clause.has(lexicon::update_task::VALUE_LEADS);
    let moved = verb == Verb::Move && clause.has(lexicon::update_task::DISTANCES);
    let confidence = match (noun, !clause.dates.is_empty() || known || moved, to) {
        (true, _, _) => 0.95,
        (_, true, true) => 0.85,
        (_, true, false) | (_, false, true) => 0.65,
        _ if clause.phrase(i + 1, lexicon::update_task::NAMED_FIELDS).is_some() => 0.65,
        _ if lexicon::update_task::LATER_VERBS.contains(clause.at(i)) => 0.65,
        _ => return None,
    };
    let change = if verb == Verb::Move { UpdateKind::Due } else { UpdateKind::Any };
    let body = i + 1 + usize::from(matches!(next, "back" | "up"));
    Some((CommandAction::Update(change, body, clause.end), confidence))
}

/// Returns true for a new value at the end of the clause, in any domain. A verb of moving needs a date with "to",
/// "until", "till" or "by": "reschedule call bank to Wednesday". Any verb accepts a priority after "to" or "as".
/// Returns false for objects such as alarms, flights, money and lights. `i` is the position of the verb.
fn is_postponement(clause: &Clause, i: usize, verb: Verb) -> bool {
    let later = lexicon::update_task::MOVE_VERBS.contains(clause.at(i));
    let date = clause.dates.last().is_some_and(|found| {
        let start = found.tokens.start;
        clause.is_exhausted(found.tokens.end..clause.end)
            && (matches!(clause.before(start), "to" | "until" | "till" | "by")
                || matches!(clause.at(start), "to" | "until" | "till" | "by"))
    });
    let ranked =
        attributes::closing_priority(clause, i + 1).is_some_and(|(at, _)| matches!(clause.before(at), "to" | "as"));
    let other = clause.has(lexicon::update_task::MOVED_OTHER_OBJECTS);
    !other && (later && verb == Verb::Move && date || ranked)
}

/// Returns true for verbs and objects that mean another change unless a task is named. "switch", "swap", "convert",
/// "fix", "correct" and "replace" count except before a quote. So do "your", "the way", "the topic" and similar
/// objects. "to" directly after the verb and fewer than two tokens after it also count. After "postpone" and similar
/// verbs, one token suffices.
fn is_other_change(clause: &Clause, i: usize) -> bool {
    let verb = lexicon::update_task::SWITCH_VERBS.contains(clause.at(i));
    let later = lexicon::update_task::LATER_VERBS.contains(clause.at(i));
    let is_incomplete = clause.at(i + 1) == "to" || i + 2 >= clause.end && !(later && i + 1 < clause.end);
    let is_other_object = clause.phrase(i + 1, lexicon::update_task::OTHER_OBJECTS).is_some();
    verb && !clause.words.is_quoted(i + 1) || is_incomplete || is_other_object
}

/// Recognises "set the priority of …", "set the due date …", "set X to high priority", "set X's date", "set x priority
/// to 5" (0.9). Applies only to "set", "make", "give" and "put". Fields are priority, due date, deadline, description,
/// title and status. The field directly follows, follows a "'s" within five tokens, or precedes "to", "as", "=" or ":"
/// within seven. The last form excludes words for a reminder. Without a field, "to" or "as" and a priority must end the
/// clause. Returns `None` otherwise.
pub(super) fn recognise_set_field(clause: &Clause, i: usize) -> Guess {
    if !matches!(clause.at(i), "set" | "make" | "give" | "put") {
        return None;
    }
    let at = i + 1 + usize::from(vocabulary::is_article(clause.at(i + 1)));
    let possessive = (i + 1..clause.end.min(i + 6))
        .any(|k| clause.at(k).ends_with("'s") && clause.phrase(k + 1, lexicon::create_task::FIELDS).is_some());
    let valued = clause.find_phrase(i + 2, lexicon::create_task::FIELD_VALUES).is_some_and(|(to, n)| {
        let level = attributes::priority_level(clause.at(to + n)).is_some() && to + n + 1 == clause.end;
        level
            || attributes::priority_at(clause, to + n)
                .is_some_and(|(_, len)| clause.is_exhausted(to + n + len..clause.end))
    });
    // "set x priority to 5"
    let assigned = (i + 2..clause.end.min(i + 8)).any(|k| {
        clause
            .phrase(k, lexicon::create_task::FIELDS)
            .is_some_and(|n| matches!(clause.at(k + n), "to" | "as" | "=" | ":"))
    });
    let reminder = clause.nouns_in(i..clause.end).any(|noun| noun.noun == Noun::Reminder);
    let field =
        clause.phrase(at, lexicon::create_task::FIELDS).is_some() || possessive || valued || assigned && !reminder;
    field.then_some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.9))
}

/// Recognises "make it due tomorrow", "make the report weekly", "put it on Friday" (0.75). The verb is "make" or "set",
/// or "put" before "it", "that" or "this". The last date must end the clause, or a distance with "earlier" or "sooner"
/// at the end. The object begins with "it", "that", "this", "the", "my" or a quote. Any other object needs "due" before
/// the date, or "make", no article and a repetition within four tokens. Returns `None` if the clause contains a word
/// for a task, another domain or a plan.
pub(super) fn recognise_made_due(clause: &Clause, i: usize) -> Guess {
    let object = matches!(clause.at(i + 1), "it" | "that" | "the" | "my" | "this") || clause.words.is_quoted(i + 1);
    let dated = clause.dates.last().is_some_and(|found| found.tokens.end == clause.end && found.tokens.start > i + 1);
    let ranked = clause.dates.last().is_some_and(|found| {
        let link = matches!(clause.at(found.tokens.end), "and" | "," | "&");
        link && attributes::priority_at(clause, found.tokens.end + 1)
            .is_some_and(|(_, n)| clause.is_exhausted(found.tokens.end + 1 + n..clause.end))
    });
    let dated = dated || ranked;
    let moved =
        clause.has(lexicon::update_task::DISTANCES) && matches!(clause.before(clause.end), "earlier" | "sooner");
    let dated = dated || moved;
    let it = matches!(clause.at(i + 1), "it" | "that" | "this");
    let verb = matches!(clause.at(i), "make" | "set") || clause.at(i) == "put" && it;
    let due = clause.dates.last().is_some_and(|found| {
        let repeats = found.parts.repeat.is_some() && clause.at(i) == "make" && clause.words.is_word(i + 1);
        clause.at(found.tokens.start) == "due"
            || repeats && !vocabulary::is_article(clause.at(i + 1)) && found.tokens.start <= i + 4
    });
    let object = object || due;
    (verb && object && dated && !clause.has_noun() && !clause.is_out_of_scope())
        .then_some((CommandAction::Update(UpdateKind::Due, i + 1, clause.end), 0.75))
}

/// Recognises "make it two milks instead of one" (0.7): "make it" or "make that", at least two more tokens, and
/// "instead" or "rather than". Returns `None` if the clause contains a word for a task, another domain or a plan.
pub(super) fn recognise_made_other(clause: &Clause, i: usize) -> Guess {
    let it = clause.at(i) == "make" && matches!(clause.at(i + 1), "it" | "that");
    let is_replacement = clause.has(lexicon::grammar::INSTEAD) && !clause.has_noun() && !clause.is_out_of_scope();
    (it && is_replacement && i + 3 < clause.end)
        .then_some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.7))
}

/// Recognises "make the report urgent", "make it high priority". The priority must end the clause. "make a …" does not
/// match.
pub(super) fn recognise_made_urgent(clause: &Clause, i: usize) -> Guess {
    if clause.at(i) != "make" || matches!(clause.at(i + 1), "a" | "an" | "new" | "") {
        return None;
    }
    let (_, priority) = attributes::closing_priority(clause, i + 2)?;
    Some((CommandAction::Update(UpdateKind::Priority(priority), i + 1, clause.end), 0.9))
}
