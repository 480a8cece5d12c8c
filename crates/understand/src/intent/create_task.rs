//! Recognises create_task by its verb: "remind me to call mum", "add milk", "put bread on my list", "create a task to
//! call mum", "set a reminder for Friday".

use super::{Act, Guess, update_task, update_task_statement};
use crate::clause::{Clause, Named};
use crate::create::Form;
use crate::dates::Frequency;
use crate::lexicon;
use crate::scope;
use crate::update::{Change, tags};
use crate::vocabulary::{self, Noun};

/// "remind me to …", "ping me at 5", "remind Bob about …".
pub(super) fn recognise_remind(clause: &Clause, i: usize) -> Guess {
    let who = clause.at(i + 1);
    let nobody = matches!(who, "to" | "about" | "of" | "that" | "i");
    let me = matches!(who, "me" | "us" | "be" | "myself" | "em" | "mee" | "mr") || nobody;
    if is_likeness(clause, i) {
        return None;
    }
    let body = i + if me && !nobody { 2 } else { 1 };
    let calls = matches!(clause.at(i), "alert" | "notify" | "ping" | "nudge");
    let nags = lexicon::create_task::NAGS.contains(clause.at(i));
    if nags && !me || (nags || calls) && !can_be_alert(clause, i, me) {
        return None;
    }
    if asks_back(clause, body) {
        return is_own(clause, body).then_some((Act::List(body), 0.8));
    }
    if clause.has(lexicon::grammar::INSTEAD) || not_then(clause) {
        return Some((Act::Update(Change::Instead, body, clause.end), 0.85));
    }
    if for_existing(clause, body) {
        return Some((Act::Remind(body), 0.9));
    }
    Some(if me { (Act::Create(Form::Remind, body), 0.97) } else { (Act::Create(Form::RemindOther, body), 0.85) })
}

/// "you remind me of my uncle", "she always used to remind me": a remark about somebody.
fn is_likeness(clause: &Clause, i: usize) -> bool {
    let asked = (clause.opening..i).any(|k| {
        matches!(
            clause.words.at(k),
            "can" | "could" | "will" | "would" | "please" | "should" | "must" | "need" | "want" | "if"
        )
    });
    let before = clause.words.before(i);
    let who = matches!(before, "you" | "he" | "she" | "they" | "always") && !asked;
    let like = who && clause.at(i + 2) == "of";
    like || clause.has(lexicon::create_task::LIKENESS)
        && (matches!(before, "to" | "always" | "never" | "you") && !asked)
        || matches!(before, "always" | "constantly")
}

/// Whether what is asked back is one's own: "remind me what I have to do", not "what the capital of Peru is".
fn is_own(clause: &Clause, body: usize) -> bool {
    let own = clause.seek(body, lexicon::create_task::OWN_WORDS);
    own.is_some() || clause.has_noun()
}

/// "alert me at 5", "alert Bob an hour before …"; not "alert me if it rains".
fn can_be_alert(clause: &Clause, i: usize, me: bool) -> bool {
    let timed = !clause.dates.is_empty() || clause.has(lexicon::create_task::AHEAD);
    let about = me && matches!(clause.at(i + 2), "to" | "about" | "that" | "when" | "of" | "for");
    (timed || about) && !clause.has(lexicon::create_task::IF) && !scope::is_warning(clause)
}

/// "remind me what I have to do", "remind me of all my tasks for tonight": asks for the list.
fn asks_back(clause: &Clause, body: usize) -> bool {
    let small = |k: usize| vocabulary::is_article(clause.at(k)) || matches!(clause.at(k), "all" | "upcoming" | "next");
    let tasks = matches!(clause.at(body), "of" | "about")
        && clause.noun_in(body + 1..clause.end).is_some_and(|noun| noun.plural && (body + 1..noun.at).all(small));
    tasks || clause.phrase(body, lexicon::create_task::ASKS_BACK).is_some()
}

/// "tomorrow night, not tonight".
fn not_then(clause: &Clause) -> bool {
    clause.dates.iter().any(|found| {
        let start = found.tokens.start;
        clause.before(start) == "not" && start > clause.start + 4
    })
}

/// "about the milk task", "every 30 minutes about …, 3 times".
fn for_existing(clause: &Clause, body: usize) -> bool {
    let Some((at, n)) = clause.seek(body, lexicon::create_task::ABOUT) else { return false };
    let before_to = clause.seek(body, lexicon::grammar::TO).is_none_or(|(to, _)| to > at);
    let named = clause.nouns_in(at + n..clause.end).any(|noun| noun.noun == Noun::Task && !noun.plural);
    let placed = clause.phrase(at + n, lexicon::create_task::PLACES);
    let placed = placed.is_some_and(|len| {
        let after = at + n + len + usize::from(matches!(clause.at(at + n), "number" | "#"));
        after >= clause.end || clause.date_at(after).is_some() || !clause.words.is_word(after)
    });
    let repeats = |minutely: bool| {
        let fits = |frequency| !minutely || frequency == Frequency::Minutely;
        clause.dates.iter().any(|found| found.parts.repeat.as_ref().is_some_and(|repeat| fits(repeat.frequency)))
    };
    let it = clause.phrase(at + n, lexicon::create_task::POINTERS).is_some_and(|len| {
        let after = at + n + len;
        after == clause.end || clause.date_at(after).is_some()
    });
    before_to
        && (named || it || placed || repeats(true) || clause.has(lexicon::create_task::MULTIPLIED) && repeats(false))
}

pub(super) fn recognise_add(clause: &Clause, i: usize) -> Guess {
    if let Some(guess) = update_task_statement::recognise_more_time(clause, i) {
        return Some(guess);
    }
    let after = i + 1 + usize::from(vocabulary::is_article(clause.at(i + 1)));
    let to = clause.has(lexicon::grammar::TO_TASK);
    let list =
        |lead: usize| clause.noun_in(lead..clause.end).is_some_and(|noun| noun.noun == Noun::List || noun.plural);
    if tags::spoken(clause, i + 1, lexicon::tags::ONTO).is_some_and(|lead| !list(lead)) {
        return Some((Act::Update(Change::Tags, i + 1, clause.end), 0.88));
    }
    if matches!(clause.at(after), "deadline" | "due") && to {
        return Some((Act::Update(Change::Any, i + 1, clause.end), 0.85));
    }
    if matches!(clause.at(after), "note" | "notes" | "comment" | "details" | "description" | "info")
        && matches!(clause.at(after + 1), "to" | "on" | "for")
        && clause.at(after + 2) != "self"
    {
        return Some((Act::Update(Change::Note, after + 2, clause.end), 0.85));
    }
    if let Some(noun) = reminder_for_task(clause, i) {
        return Some((Act::Remind(noun), 0.86));
    }
    if after + 1 >= clause.end && matches!(clause.at(after), "tag" | "label" | "tags") {
        return Some((Act::Update(Change::Tags, after + 1, clause.end), 0.8));
    }
    if to_reminder(clause, i).is_some() {
        return Some((Act::Update(Change::Addition, i + 1, clause.end), 0.7));
    }
    // "add 45 and 78": a sum.
    let sum = crate::numbers::figures(clause.at(i + 1)).is_some()
        && matches!(clause.at(i + 2), "and" | "to" | "plus")
        && crate::numbers::figures(clause.at(i + 3)).is_some();
    if sum || scope::is_elsewhere(clause, i + 1) || scope::is_thing(clause, i + 1) {
        return None;
    }
    Some((Act::Create(Form::Add, i + 1), if clause.has_noun() { 0.96 } else { 0.88 }))
}

/// "add … to the chores reminder" changes that reminder: where its name begins.
pub(crate) fn to_reminder(clause: &Clause, i: usize) -> Option<usize> {
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

/// "a reminder to the visa task for Monday", "a reminder on the laundry task": where the name of the task begins.
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

pub(super) fn recognise_put(clause: &Clause, i: usize) -> Guess {
    if tags::spoken(clause, i + 1, lexicon::tags::ONTO).is_some() {
        return Some((Act::Update(Change::Tags, i + 1, clause.end), 0.88));
    }
    if let Some(noun) = reminder_for_task(clause, i) {
        return Some((Act::Remind(noun), 0.86));
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
        let form = if reminder { Form::Make } else { Form::Add };
        return Some((Act::Create(form, i + 1 + usize::from(clause.at(i + 1) == "down")), 0.93));
    }
    // "put 'defrost the turkey' lexicon::create_task::WRITE_DOWN for the 23rd", "pop eggs lexicon::create_task::WRITE_DOWN for Friday".
    let low = clause
        .seek(i + 2, lexicon::create_task::DOWN_FOR)
        .filter(|(at, n)| clause.date_at(at + n).is_some() || clause.date_at(at + n - 1).is_some());
    if let Some((at, _)) = low.filter(|_| !clause.is_elsewhere() && !clause.has(lexicon::grammar::INSTEAD)) {
        let definite = matches!(clause.at(i + 1), "the" | "my" | "that" | "it");
        return (!definite && at > i + 1).then_some((Act::Create(Form::Add, i + 1), 0.7));
    }
    Some((Act::Create(Form::Rest, i + clause.phrase(i, lexicon::create_task::WRITE_DOWN)?), 0.75))
}

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

/// "create dentist appointment": said outright, so it is a task whatever its title is about.
fn recognise_create(clause: &Clause, i: usize) -> Guess {
    let named = clause.at(i) == "create" && i + 1 < clause.end && !clause.has_noun();
    (named && !scope::is_elsewhere(clause, i + 1)).then_some((Act::Create(Form::Add, i + 1), 0.8))
}

/// "set a reminder …", "I need a task for …", "give me my list": what is made, or wanted of what there is.
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
        return Some((Act::Remind(from), 0.88));
    }
    if about_task(clause, noun.end) {
        return Some((Act::Remind(noun.end), 0.88));
    }
    let definite = matches!(clause.at(i + 1), "my" | "the" | "that" | "this") && verb == "make";
    let moved = verb == "set"
        && matches!(clause.at(i + 1), "my" | "the" | "that")
        && clause.has(lexicon::grammar::TO)
        && clause.at(noun.end) != "to"
        && clause.has(lexicon::create_task::FROM);
    if clause.has(lexicon::grammar::INSTEAD) || definite || moved {
        let change = if clause.has(lexicon::grammar::INSTEAD) { Change::Instead } else { Change::Any };
        return Some((Act::Update(change, i + 1, clause.end), 0.7));
    }
    Some((Act::Create(Form::Make, i + 1), 0.94))
}

/// "I want the gym reminder earlier", "I need that task ticked off", "give me my reminders": of tasks there are.
fn recognise_wanted_state(clause: &Clause, i: usize, noun: Named) -> Guess {
    let verb = clause.at(i);
    if matches!(verb, "need" | "want") && !noun.plural {
        if noun.noun != Noun::List && clause.seek(noun.end, lexicon::create_task::CHANGE_WORDS).is_some() {
            return Some((Act::Update(Change::Any, i + 1, clause.end), 0.7));
        }
        if let Some((at, _)) = clause.seek(noun.end, lexicon::create_task::DONE_WORDS) {
            return Some((Act::Complete(i + 1, at), 0.7));
        }
    }
    let asked = matches!(verb, "give" | "send" | "need" | "want") && !scope::is_media(clause);
    asked.then_some((Act::List(i + 1), 0.75))
}

/// "give me a reminder", "I need a reminder to …" ask for a new one, "give me my reminders" for those that exist.
fn asks_for_new(clause: &Clause, i: usize, noun: Named) -> bool {
    let told = matches!(clause.at(noun.end), "to" | "that" | "about")
        || clause.date_at(noun.at.saturating_sub(1)).is_some_and(|found| found.parts.repeat.is_some());
    let definite = (i + 1..noun.at).any(|k| matches!(clause.at(k), "my" | "all" | "the" | "any" | "these" | "details"));
    let article = (i + 1..noun.at).any(|k| matches!(clause.at(k), "a" | "an" | "another" | "new"));
    noun.noun != Noun::List && (!noun.plural && article || told && !definite)
}

/// "create a list", "make sure my list is clear".
fn recognise_cleared_list(clause: &Clause, i: usize, noun: Named) -> Guess {
    if !matches!(clause.at(i), "create" | "make" | "set" | "start" | "new") {
        return None;
    }
    let cleared = clause.has(lexicon::create_task::CLEARED);
    Some(if cleared { (Act::Delete(noun.at, clause.end), 0.7) } else { (Act::Create(Form::Make, i + 1), 0.75) })
}

/// "set a reminder for the dentist task …".
fn about_task(clause: &Clause, after: usize) -> bool {
    let task = |noun: Named| noun.noun == Noun::Task && !noun.plural && matches!(clause.at(noun.at), "task" | "todo");
    matches!(clause.at(after), "for" | "about" | "on") && clause.nouns_in(after + 1..clause.end).any(task)
}

/// "schedule the dentist for Thursday": with a date, what is scheduled is a task.
fn recognise_scheduled(clause: &Clause, i: usize) -> Guess {
    let verb = clause.at(i) == "schedule" || clause.phrase(i, lexicon::create_task::SET_UP_A).is_some();
    let body = i + clause.phrase(i, lexicon::create_task::SCHEDULE_A).unwrap_or(1);
    (verb && !clause.dates.is_empty() && !clause.is_elsewhere() && body < clause.end)
        .then_some((Act::Create(Form::Rest, body), 0.6))
}
