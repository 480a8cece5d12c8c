//! Recognises create_task by its verb: "remind me to call mum", "add milk", "put bread on my list", "create a task to
//! call mum", "set a reminder for Friday".

use super::{CommandAction, Guess, update_task, update_task_statement};
use crate::clause::{Clause, NounMention};
use crate::create::CreatePhrasing;
use crate::dates::RepeatFrequency;
use crate::lexicon;
use crate::scope;
use crate::update::{UpdateKind, tags};
use crate::vocabulary::{self, Noun};

/// Recognises "remind me to …", "ping me at 5", "remind Bob about …". The result may also be a listing ("remind me of
/// my tasks"), an update ("… instead of Friday") or a reminder for an existing task. Returns `None` for a comparison,
/// and for "alert", "ping" and similar verbs that are no request for a reminder.
pub(super) fn recognise_remind(clause: &Clause, i: usize) -> Guess {
    let who = clause.at(i + 1);
    let no_person = matches!(who, "to" | "about" | "of" | "that" | "i");
    let me = matches!(who, "me" | "us" | "be" | "myself" | "em" | "mee" | "mr") || no_person;
    if is_comparison(clause, i) {
        return None;
    }
    let body = i + if me && !no_person { 2 } else { 1 };
    let calls = matches!(clause.at(i), "alert" | "notify" | "ping" | "nudge");
    let nags = lexicon::create_task::PESTER_VERBS.contains(clause.at(i));
    if nags && !me || (nags || calls) && !can_be_alert(clause, i, me) {
        return None;
    }
    if asks_for_list(clause, body) {
        return is_own(clause, body).then_some((CommandAction::List(body), 0.8));
    }
    if clause.has(lexicon::grammar::INSTEAD) || rejects_date(clause) {
        return Some((CommandAction::Update(UpdateKind::Instead, body, clause.end), 0.85));
    }
    if is_for_existing_task(clause, body) {
        return Some((CommandAction::Remind(body), 0.9));
    }
    Some(if me {
        (CommandAction::Create(CreatePhrasing::Remind, body), 0.97)
    } else {
        (CommandAction::Create(CreatePhrasing::RemindOther, body), 0.85)
    })
}

/// Returns true for a comparison or a memory: "you remind me of my uncle", "she always used to remind me". `i` is the
/// position of "remind". A request before it ("can you") excludes most of them.
fn is_comparison(clause: &Clause, i: usize) -> bool {
    let asked = (clause.outer_start..i).any(|k| {
        matches!(
            clause.words.at(k),
            "can" | "could" | "will" | "would" | "please" | "should" | "must" | "need" | "want" | "if"
        )
    });
    let before = clause.words.before(i);
    let who = matches!(before, "you" | "he" | "she" | "they" | "always") && !asked;
    let like = who && clause.at(i + 2) == "of";
    like || clause.has(lexicon::create_task::COMPARISON_WORDS)
        && (matches!(before, "to" | "always" | "never" | "you") && !asked)
        || matches!(before, "always" | "constantly")
}

/// Returns true if the question after `body` concerns the user: "remind me of my appointments", not "remind me of the
/// capital of Peru".
fn is_own(clause: &Clause, body: usize) -> bool {
    let own = clause.find_phrase(body, lexicon::create_task::OWN_WORDS);
    own.is_some() || clause.has_noun()
}

/// Returns true if an alert is a reminder: "alert me at 5", "alert Bob an hour before …". Not "alert me if it rains".
/// `me` is true if the alert is for the user; then "to", "about" and similar words suffice instead of a time.
fn can_be_alert(clause: &Clause, i: usize, me: bool) -> bool {
    let timed = !clause.dates.is_empty() || clause.has(lexicon::create_task::AHEAD);
    let about = me && matches!(clause.at(i + 2), "to" | "about" | "that" | "when" | "of" | "for");
    (timed || about) && !clause.has(lexicon::create_task::IF) && !scope::is_warning(clause)
}

/// Returns true if "remind me" asks for the list: "remind me of all my tasks for tonight". `body` is the position after
/// "remind me".
fn asks_for_list(clause: &Clause, body: usize) -> bool {
    let small = |k: usize| vocabulary::is_article(clause.at(k)) || matches!(clause.at(k), "all" | "upcoming" | "next");
    let tasks = matches!(clause.at(body), "of" | "about")
        && clause.noun_in(body + 1..clause.end).is_some_and(|noun| noun.plural && (body + 1..noun.at).all(small));
    tasks || clause.phrase(body, lexicon::create_task::LIST_QUESTIONS).is_some()
}

/// Returns true if a date after the first words is rejected: "tomorrow night, not tonight".
fn rejects_date(clause: &Clause) -> bool {
    clause.dates.iter().any(|found| {
        let start = found.tokens.start;
        clause.before(start) == "not" && start > clause.start + 4
    })
}

/// Returns true if the reminder is for an existing task: "about the milk task", "about number 2", "about it", "every 30
/// minutes about …", "… about …, 3 times". "about" must come before any "to". `body` is the position after "remind me".
fn is_for_existing_task(clause: &Clause, body: usize) -> bool {
    let Some((at, n)) = clause.find_phrase(body, lexicon::create_task::ABOUT) else { return false };
    let before_to = clause.find_phrase(body, lexicon::grammar::TO).is_none_or(|(to, _)| to > at);
    let named = clause.nouns_in(at + n..clause.end).any(|noun| noun.noun == Noun::Task && !noun.plural);
    let placed = clause.phrase(at + n, lexicon::create_task::PLACES);
    let placed = placed.is_some_and(|len| {
        let after = at + n + len + usize::from(matches!(clause.at(at + n), "number" | "#"));
        after >= clause.end || clause.date_at(after).is_some() || !clause.words.is_word(after)
    });
    let repeats = |minutely: bool| {
        let fits = |frequency| !minutely || frequency == RepeatFrequency::Minutely;
        clause.dates.iter().any(|found| found.parts.repeat.as_ref().is_some_and(|repeat| fits(repeat.frequency)))
    };
    let it = clause.phrase(at + n, lexicon::create_task::POINTERS).is_some_and(|len| {
        let after = at + n + len;
        after == clause.end || clause.date_at(after).is_some()
    });
    before_to
        && (named || it || placed || repeats(true) || clause.has(lexicon::create_task::MULTIPLIED) && repeats(false))
}

/// Recognises "add …" and similar verbs. The object decides between a new task, a tag, a note, a due date, more time
/// and a reminder for an existing task. Returns `None` for a sum ("add 45 and 78") and for objects of other domains.
pub(super) fn recognise_add(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = update_task_statement::recognise_more_time(clause, i) {
        return Some(guess);
    }
    let after = i + 1 + usize::from(vocabulary::is_article(clause.at(i + 1)));
    let to = clause.has(lexicon::grammar::TO_TASK);
    let list =
        |lead: usize| clause.noun_in(lead..clause.end).is_some_and(|noun| noun.noun == Noun::List || noun.plural);
    if tags::task_lead(clause, i + 1, lexicon::tags::ONTO).is_some_and(|lead| !list(lead)) {
        return Some((CommandAction::Update(UpdateKind::Tags, i + 1, clause.end), 0.88));
    }
    if matches!(clause.at(after), "deadline" | "due") && to {
        return Some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.85));
    }
    if matches!(clause.at(after), "note" | "notes" | "comment" | "details" | "description" | "info")
        && matches!(clause.at(after + 1), "to" | "on" | "for")
        && clause.at(after + 2) != "self"
    {
        return Some((CommandAction::Update(UpdateKind::Note, after + 2, clause.end), 0.85));
    }
    if let Some(noun) = reminder_for_task(clause, i) {
        return Some((CommandAction::Remind(noun), 0.86));
    }
    if after + 1 >= clause.end && matches!(clause.at(after), "tag" | "label" | "tags") {
        return Some((CommandAction::Update(UpdateKind::Tags, after + 1, clause.end), 0.8));
    }
    if added_reminder_start(clause, i).is_some() {
        return Some((CommandAction::Update(UpdateKind::Addition, i + 1, clause.end), 0.7));
    }
    // "add 45 and 78" is a sum.
    let sum = crate::numbers::parse_digits(clause.at(i + 1)).is_some()
        && matches!(clause.at(i + 2), "and" | "to" | "plus")
        && crate::numbers::parse_digits(clause.at(i + 3)).is_some();
    if sum || scope::is_other_object(clause, i + 1) || scope::is_other_thing(clause, i + 1) {
        return None;
    }
    Some((CommandAction::Create(CreatePhrasing::Add, i + 1), if clause.has_noun() { 0.96 } else { 0.88 }))
}

/// Returns the start of the reminder that is changed: "add … to the chores reminder". Returns `None` if a noun precedes
/// "to", or if "reminders" has no name.
pub(crate) fn added_reminder_start(clause: &Clause, i: usize) -> Option<usize> {
    let leads = |k: &usize| {
        let near = clause.nouns_in(k + 1..clause.end.min(k + 8)).find(|noun| noun.noun == Noun::Reminder);
        near.is_some_and(|noun| {
            let leads_on =
                |m: usize| matches!(clause.at(m), "for" | "about") || clause.at(m) == "to" && clause.at(m + 1) != "do";
            let straight = !(k + 1..noun.at).any(leads_on) && clause.at(k + 1) != "do";
            let named = (k + 1..noun.at).any(|m| !vocabulary::is_article(clause.at(m)) && clause.date_at(m).is_none());
            straight && (!noun.plural || named)
        })
    };
    let to = (i + 2..clause.end).find(|k| matches!(clause.at(*k), "to" | "in" | "on") && leads(k))?;
    clause.noun_in(i..to).is_none().then_some(to + 1)
}

/// Returns the start of the name of the task: "a reminder to the visa task for Monday", "a reminder on the laundry
/// task". Returns `None` unless a definite singular task follows directly.
pub(super) fn reminder_for_task(clause: &Clause, i: usize) -> Option<usize> {
    let noun =
        clause.noun_in(i + 1..clause.end.min(i + 5)).filter(|noun| noun.noun == Noun::Reminder && !noun.plural)?;
    let lead = clause.phrase(noun.end, lexicon::create_task::REMINDER_FOR)?;
    let from = noun.end + lead;
    let definite = matches!(clause.at(from), "the" | "my" | "that" | "this") || clause.noun_at(from).is_some();
    let task = clause.nouns_in(from..clause.end.min(from + 8)).find(|noun| noun.noun == Noun::Task && !noun.plural)?;
    let straight = !(from..task.at).any(|k| matches!(clause.at(k), "to" | "for" | "about"));
    (definite && straight && matches!(clause.at(task.at), "task" | "todo" | "to-do" | "item")).then_some(from)
}

/// Recognises "put … on the list", "put … down for Friday", "write down …" and similar verbs. The result may also be a
/// tag, a due date or a reminder for an existing task. Returns `None` for other uses of the verbs.
pub(super) fn recognise_put(clause: &Clause, i: usize) -> Guess {
    if tags::task_lead(clause, i + 1, lexicon::tags::ONTO).is_some() {
        return Some((CommandAction::Update(UpdateKind::Tags, i + 1, clause.end), 0.88));
    }
    if let Some(noun) = reminder_for_task(clause, i) {
        return Some((CommandAction::Remind(noun), 0.86));
    }
    if clause.at(i) == "put"
        && let Some(guess) = update_task::recognise_made_due(clause, i)
    {
        return Some(guess);
    }
    let on_list = clause.has_noun() && (clause.has(lexicon::create_task::PUT_ON) || clause.at(i) == "note");
    if on_list && clause.at(i + 1) != "that" {
        let near = clause.noun_in(i + 1..clause.end.min(i + 5));
        let reminder =
            near.is_some_and(|noun| noun.noun != Noun::List && !matches!(clause.before(noun.at), "of" | "my"));
        let phrasing = if reminder { CreatePhrasing::Make } else { CreatePhrasing::Add };
        return Some((CommandAction::Create(phrasing, i + 1 + usize::from(clause.at(i + 1) == "down")), 0.93));
    }
    // "put 'defrost the turkey' down for the 23rd", "pop eggs down for Friday".
    let low = clause
        .find_phrase(i + 2, lexicon::create_task::DOWN_FOR)
        .filter(|(at, n)| clause.date_at(at + n).is_some() || clause.date_at(at + n - 1).is_some());
    if let Some((at, _)) = low.filter(|_| !clause.is_other_domain() && !clause.has(lexicon::grammar::INSTEAD)) {
        let definite = matches!(clause.at(i + 1), "the" | "my" | "that" | "it");
        return (!definite && at > i + 1).then_some((CommandAction::Create(CreatePhrasing::Add, i + 1), 0.7));
    }
    Some((CommandAction::Create(CreatePhrasing::Rest, i + clause.phrase(i, lexicon::create_task::WRITE_DOWN)?), 0.75))
}

/// Recognises "make …", "set …", "create …", "give …", "need …" and similar verbs. Checks changes of an existing task
/// first, then a new task. "have you …" does not match, "do" matches only before "remind".
pub(super) fn recognise_make(clause: &Clause, i: usize) -> Guess {
    if clause.phrase(i, lexicon::create_task::HAVE_YOU).is_some() {
        return None;
    }
    if clause.phrase(i, lexicon::create_task::NEW_FIELD).is_some() {
        return update_task_statement::recognise_new_value(clause, i);
    }
    if clause.at(i) == "do" {
        return (clause.at(i + 1) == "remind").then(|| recognise_remind(clause, i + 1))?;
    }
    update_task::recognise_set_field(clause, i)
        .or_else(|| update_task::recognise_made_urgent(clause, i))
        .or_else(|| update_task::recognise_made_due(clause, i))
        .or_else(|| update_task::recognise_made_other(clause, i))
        .or_else(|| recognise_noun(clause, i))
        .or_else(|| recognise_scheduled(clause, i))
        .or_else(|| recognise_create(clause, i))
}

/// Recognises an explicit create in any domain: "create dentist appointment". Applies only to the verb "create" without
/// a word for a task.
fn recognise_create(clause: &Clause, i: usize) -> Guess {
    let named = clause.at(i) == "create" && i + 1 < clause.end && !clause.has_noun();
    (named && !scope::is_other_object(clause, i + 1))
        .then_some((CommandAction::Create(CreatePhrasing::Add, i + 1), 0.8))
}

/// Recognises a noun that is created or requested: "set a reminder …", "I need a task for …", "give me my list". The
/// result is an update if the noun is definite after "make", is moved ("set my alarm from 5 to 6"), or "instead"
/// occurs. Returns `None` if no word for a task follows.
fn recognise_noun(clause: &Clause, i: usize) -> Guess {
    let noun = clause.noun_in(i + 1..clause.end)?;
    let verb = clause.at(i);
    if matches!(verb, "have" | "need" | "want" | "give" | "send" | "get") && !asks_for_new(clause, i, noun) {
        return recognise_wanted_state(clause, i, noun);
    }
    if noun.noun == Noun::List {
        return recognise_cleared_list(clause, i, noun);
    }
    if let Some(from) = reminder_for_task(clause, i) {
        return Some((CommandAction::Remind(from), 0.88));
    }
    if is_about_task(clause, noun.end) {
        return Some((CommandAction::Remind(noun.end), 0.88));
    }
    let definite = matches!(clause.at(i + 1), "my" | "the" | "that" | "this") && verb == "make";
    let moved = verb == "set"
        && matches!(clause.at(i + 1), "my" | "the" | "that")
        && clause.has(lexicon::grammar::TO)
        && clause.at(noun.end) != "to"
        && clause.has(lexicon::create_task::FROM);
    if clause.has(lexicon::grammar::INSTEAD) || definite || moved {
        let change = if clause.has(lexicon::grammar::INSTEAD) { UpdateKind::Instead } else { UpdateKind::Any };
        return Some((CommandAction::Update(change, i + 1, clause.end), 0.7));
    }
    Some((CommandAction::Create(CreatePhrasing::Make, i + 1), 0.94))
}

/// Recognises requests about existing tasks: "I want the gym reminder earlier" (update), "I need that task ticked off"
/// (completion), "give me my reminders" (listing). `i` is the position of the verb.
fn recognise_wanted_state(clause: &Clause, i: usize, noun: NounMention) -> Guess {
    let verb = clause.at(i);
    if matches!(verb, "need" | "want") && !noun.plural {
        if noun.noun != Noun::List && clause.find_phrase(noun.end, lexicon::create_task::CHANGE_WORDS).is_some() {
            return Some((CommandAction::Update(UpdateKind::Any, i + 1, clause.end), 0.7));
        }
        if let Some((at, _)) = clause.find_phrase(noun.end, lexicon::create_task::DONE_WORDS) {
            return Some((CommandAction::Complete(i + 1, at), 0.7));
        }
    }
    let asked = matches!(verb, "give" | "send" | "need" | "want") && !scope::is_other_list(clause);
    asked.then_some((CommandAction::List(i + 1), 0.75))
}

/// Returns true for "give me a reminder" and "I need a reminder to …". Returns false for "give me my reminders" and for
/// lists.
fn asks_for_new(clause: &Clause, i: usize, noun: NounMention) -> bool {
    let has_title = matches!(clause.at(noun.end), "to" | "that" | "about")
        || clause.date_at(noun.at.saturating_sub(1)).is_some_and(|found| found.parts.repeat.is_some());
    let definite = (i + 1..noun.at).any(|k| matches!(clause.at(k), "my" | "all" | "the" | "any" | "these" | "details"));
    let article = (i + 1..noun.at).any(|k| matches!(clause.at(k), "a" | "an" | "another" | "new"));
    noun.noun != Noun::List && (!noun.plural && article || has_title && !definite)
}

/// Recognises "create a list" and "make sure my list is clear" (deletion). Returns `None` for verbs that do not create.
fn recognise_cleared_list(clause: &Clause, i: usize, noun: NounMention) -> Guess {
    if !matches!(clause.at(i), "create" | "make" | "set" | "start" | "new") {
        return None;
    }
    let cleared = clause.has(lexicon::create_task::CLEARED);
    Some(if cleared {
        (CommandAction::Delete(noun.at, clause.end), 0.7)
    } else {
        (CommandAction::Create(CreatePhrasing::Make, i + 1), 0.75)
    })
}

/// Returns true for "… for the dentist task" at `after`, the position after a noun.
fn is_about_task(clause: &Clause, after: usize) -> bool {
    let task =
        |noun: NounMention| noun.noun == Noun::Task && !noun.plural && matches!(clause.at(noun.at), "task" | "todo");
    matches!(clause.at(after), "for" | "about" | "on") && clause.nouns_in(after + 1..clause.end).any(task)
}

/// Recognises "schedule the dentist for Thursday", "set up a …". Requires a date and no word of another domain.
fn recognise_scheduled(clause: &Clause, i: usize) -> Guess {
    let verb = clause.at(i) == "schedule" || clause.phrase(i, lexicon::create_task::SET_UP_A).is_some();
    let body = i + clause.phrase(i, lexicon::create_task::SCHEDULE_A).unwrap_or(1);
    (verb && !clause.dates.is_empty() && !clause.is_other_domain() && body < clause.end)
        .then_some((CommandAction::Create(CreatePhrasing::Rest, body), 0.6))
}
