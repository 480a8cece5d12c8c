//! Recognises create_task by its verb: "remind me to call mum", "add milk", "put bread on my list", "create a task to
//! call mum", "set a reminder for Friday".
//!
//! The rules take the position `i` of the verb. They return the action with its confidence, or `None` if they do not
//! match. A *word for a task* is a noun for a task, a reminder or a list.

use super::{CommandAction, Guess, update_task, update_task_statement};
use crate::clause::{Clause, NounMention};
use crate::create::CreatePhrasing;
use crate::dates::RepeatFrequency;
use crate::lexicon;
use crate::scope;
use crate::update::{UpdateKind, tags};
use crate::vocabulary::{self, Noun};

/// Recognises "remind me to …", "ping me at 5", "remind to …" (create, 0.97) and "remind Bob about …" (create, 0.85).
/// "remind me of my tasks" is a listing (0.8); "remind me of the capital of Peru" yields `None`. "instead" or a
/// rejected date ("…, not tonight") makes an update (0.85). "about the milk task" makes a reminder for an existing task
/// (0.9). Returns `None` for a comparison ("you remind me of …"). "alert", "ping", "bug" and similar verbs must be a
/// reminder, see [`can_be_alert`]. "bug", "nag" and similar verbs also need "me" or "us".
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
/// position of "remind". "you", "he", "she", "they" or "always" before it needs "of" after "remind me". A word such as
/// "used to" anywhere counts after "to", "never", "always" and "you". A request before it ("can you", "please")
/// excludes both. Directly after "always" or "constantly" it is always a comparison.
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
/// capital of Peru". Requires "I", "my", "due", "today" or a similar word after `body`, or a word for a task in the
/// clause.
fn is_own(clause: &Clause, body: usize) -> bool {
    let own = clause.find_phrase(body, lexicon::create_task::OWN_WORDS);
    own.is_some() || clause.has_noun()
}

/// Returns true if an alert is a reminder: "alert me at 5", "alert Bob an hour before …". Requires a date, "before",
/// "ahead" or "prior". `me` is true if the alert is for the user. Then "to", "about", "that", "when", "of" or "for"
/// after "me" suffices. Returns false with "if" ("alert me if it rains") and for public warnings (weather, traffic,
/// news).
fn can_be_alert(clause: &Clause, i: usize, me: bool) -> bool {
    let timed = !clause.dates.is_empty() || clause.has(lexicon::create_task::AHEAD);
    let about = me && matches!(clause.at(i + 2), "to" | "about" | "that" | "when" | "of" | "for");
    (timed || about) && !clause.has(lexicon::create_task::IF) && !scope::is_warning(clause)
}

/// Returns true if "remind me" asks for the list: "remind me of all my tasks for tonight". `body` is the position after
/// "remind me". After "of" or "about", only articles, "all", "upcoming" and "next" may precede the plural noun. A
/// question word at `body` ("what", "how", "when is") also counts.
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

/// Returns true if the reminder is for an existing task. `body` is the position after "remind me". Requires "about",
/// "of", "for" or "before", and no earlier "to". A singular task ("the milk task"), a position ("number 2") or a
/// pronoun must follow. A position or pronoun must end the clause or precede a date; a position may also precede a
/// mark. A repetition in minutes ("every 30 minutes about …"), or any repetition with "times", also counts.
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

/// Recognises "add …" and similar verbs. More time ("add a day to the audit"), a tag ("add the tag work to …"), a due
/// date ("add a deadline to …") and a note ("add a note to …") update a task (0.62 for time, else 0.85 to 0.88). So
/// does "add … to the chores reminder" (0.7). A tag for a list or several tasks does not. "add a reminder to the visa
/// task" is a reminder for an existing task (0.86). "add a tag" alone updates the task in context (0.8). Everything
/// else is a new task: 0.96 with a word for a task, else 0.88. Returns `None` for a sum ("add 45 and 78"), and for
/// objects of other domains ("this song", "the photo").
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

/// Returns the position after "to", "in" or "on" before the reminder that is changed: "add … to the chores reminder".
/// `i` is the position of "add". The reminder is within seven tokens, without "for", "about" or another "to" before it.
/// "reminders" needs a name before it. Returns `None` if a word for a task precedes the "to".
pub(crate) fn added_reminder_start(clause: &Clause, i: usize) -> Option<usize> {
    let leads = |k: &usize| {
        let nouns = || clause.nouns_in(k + 1..clause.end.min(k + 8));
        let near = nouns().find(|noun| noun.noun == Noun::Reminder);
        let near = near.or_else(|| nouns().filter(|noun| noun.noun == Noun::Task).last());
        let own = |noun: &NounMention| {
            noun.noun == Noun::Reminder || !noun.plural && matches!(clause.at(k + 1), "the" | "my")
        };
        near.filter(own).is_some_and(|noun| {
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
/// task". A singular reminder must begin within four tokens after `i`. "to", "on", "for", "onto" or "about" must follow
/// it, then "the", "my", "that", "this" or a word for a task. "task", "todo", "to-do" or "item" must follow within
/// eight tokens, without "to", "for" or "about" before it. Returns `None` otherwise.
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

/// Recognises "put … on the list" (0.93), "put … down for Friday" (0.7), "write down …" (0.75) and similar verbs. "put
/// the tag work on …" updates tags (0.88), "put a reminder on the visa task" is a reminder for it (0.86), and "put it
/// on Friday" sets the due date. "on the list" needs a word for a task in the clause and "on", "in", "to" or "down".
/// "note" needs only the word, and "put that …" does not match. "down for Friday" needs a date, an indefinite object
/// and no "instead"; words of other domains exclude it. Returns `None` for other uses.
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
    // "put 'call Bob' on there", "put milk on there"
    let there = (i + 2..clause.end).any(|k| clause.at(k) == "there" && matches!(clause.before(k), "on" | "in"));
    let quoted = clause.words.is_quoted(i + 1);
    if (there || quoted) && !matches!(clause.at(i + 1), "that" | "it" | "this" | "them") && !clause.is_question {
        return Some((CommandAction::Create(CreatePhrasing::Add, i + 1), 0.9));
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

/// Recognises "make …", "set …", "create …", "give …", "need …" and similar verbs. Changes of an existing task are
/// checked first: a field, a priority, a due date, a replacement. Then a word for a task, "schedule …" with a date, and
/// "create …". "new deadline …" at `i` can only be a stated new value. "do" matches only before "remind". "have you",
/// "do you", "have I" and "have we" return `None`.
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

/// Recognises an explicit create in any domain: "create dentist appointment". Applies only to the verb "create" with an
/// object and without a word for a task. Returns `None` for media, messages and alarms ("create playlist").
fn recognise_create(clause: &Clause, i: usize) -> Guess {
    let named = clause.at(i) == "create" && i + 1 < clause.end && !clause.has_noun();
    (named && !scope::is_other_object(clause, i + 1))
        .then_some((CommandAction::Create(CreatePhrasing::Add, i + 1), 0.8))
}

/// Recognises a word for a task after the verb at `i`: "set a reminder …", "I need a task for …" (create, 0.94).
/// "have", "need", "want", "give", "send" and "get" create only if they ask for a new one; else see
/// [`recognise_wanted_state`]. For lists, see [`recognise_cleared_list`]. "a reminder for the visa task" is a reminder
/// for an existing task (0.88). It is an update (0.7) with "instead", for "make" before "the", "my", "that" or "this",
/// and for "set my alert from 5 to 6". Returns `None` if no word for a task follows.
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
    // "set all my overdue tasks to today"
    let all = noun.plural && matches!(clause.at(i + 1), "all" | "every") && matches!(verb, "set" | "make");
    if all && clause.dates.iter().any(|found| found.tokens.end == clause.end && found.tokens.start >= noun.end) {
        return Some((CommandAction::Update(UpdateKind::Due, i + 1, clause.end), 0.86));
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

/// Recognises requests about existing tasks. "I want the gym reminder earlier" is an update (0.7): "need" or "want", a
/// singular task or reminder, and a word such as "later" or "moved". "I need that task ticked off" is a completion
/// (0.7). Everything else after "give", "send", "need" and "want" is a listing (0.75): "give me my reminders". `i` is
/// the position of the verb, `noun` the first word for a task. Returns `None` for "have" and "get", and for lists of
/// other domains, unless it is an update or completion.
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

/// Returns true for "give me a reminder" and "I need reminders to …". A singular needs "a", "an", "another" or "new"
/// before it. Otherwise "to", "that" or "about" must follow the noun, or a repetition must precede it ("daily
/// reminder"). In that case, "my", "the", "all" or "any" must not precede it. Returns false for lists. `i` is the
/// position of the verb.
fn asks_for_new(clause: &Clause, i: usize, noun: NounMention) -> bool {
    let has_title = matches!(clause.at(noun.end), "to" | "that" | "about")
        || clause.date_at(noun.at.saturating_sub(1)).is_some_and(|found| found.parts.repeat.is_some());
    let definite = (i + 1..noun.at).any(|k| matches!(clause.at(k), "my" | "all" | "the" | "any" | "these" | "details"));
    let article = (i + 1..noun.at).any(|k| matches!(clause.at(k), "a" | "an" | "another" | "new"));
    noun.noun != Noun::List && (!noun.plural && article || has_title && !definite)
}

/// Recognises "create a list" (create, 0.75) and "make sure my list is clear" (deletion, 0.7). Returns `None` unless
/// the verb at `i` is "create", "make", "set", "start" or "new". "clear", "cleared" or "empty" anywhere makes it a
/// deletion. `noun` is the list.
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

/// Returns true for "… for the dentist task". "for", "about" or "on" must be at `after`, the position after a noun.
/// "task" or "todo" must follow anywhere.
fn is_about_task(clause: &Clause, after: usize) -> bool {
    let task =
        |noun: NounMention| noun.noun == Noun::Task && !noun.plural && matches!(clause.at(noun.at), "task" | "todo");
    matches!(clause.at(after), "for" | "about" | "on") && clause.nouns_in(after + 1..clause.end).any(task)
}

/// Recognises "schedule the dentist for Thursday", "set up a call on Friday". Requires a date anywhere in the clause,
/// an object, and no word of another domain. Plans such as meetings count.
fn recognise_scheduled(clause: &Clause, i: usize) -> Guess {
    let verb = clause.at(i) == "schedule" || clause.phrase(i, lexicon::create_task::SET_UP_A).is_some();
    let body = i + clause.phrase(i, lexicon::create_task::SCHEDULE_A).unwrap_or(1);
    (verb && !clause.dates.is_empty() && !clause.is_other_domain() && body < clause.end)
        .then_some((CommandAction::Create(CreatePhrasing::Rest, body), 0.6))
}
