//! Decides what a clause asks for, from its verb and what the verb is about.
//!
//! The first command in the clause governs: what comes after "remind me to" is a title, whatever verbs stand in it.

use crate::attributes;
use crate::clause::Clause;
use crate::create::Form;
use crate::lexicon::{self, Noun, Verb};
use crate::phrases::{Phrases, phrases};
use crate::reading::Field;
use crate::scope;
use crate::update::Change;

/// What is asked, and the token its object begins at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    Undo,
    Create(Form, usize),
    List(usize),
    Complete(usize, usize),
    Delete(usize, usize),
    Update(Change, usize),
    /// A reminder for a task that exists.
    Remind(usize),
}

/// An act and how sure it is.
pub(crate) type Guess = Option<(Act, f64)>;

pub(crate) fn decide(clause: &Clause) -> Guess {
    if is_undo(clause) {
        return Some((Act::Undo, 0.97));
    }
    at(clause, clause.start).or_else(|| question(clause)).or_else(|| later(clause)).or_else(|| noun_first(clause))
}

fn is_undo(clause: &Clause) -> bool {
    const UNDO: Phrases = phrases!(
        "undo | undo that | undo it | undo this | undo the last change | undo my last change | \
         undo the last action | undo last change | undo the last one | undo last | undo my last action | \
         take that back | take it back | revert that | revert it | revert | revert the last change | \
         revert my last change | revert last change | roll that back | roll back | rollback | roll it back | \
         put it back | bring it back | restore it | reverse that | reverse the last change | \
         i didn't mean that | i did not mean that | go back | undo what you just did | undo what i just did | \
         undo the deletion | undo delete"
    );
    clause.phrase(clause.start, UNDO).is_some_and(|n| clause.start + n == clause.end)
}

/// The command that begins at `i`.
fn at(clause: &Clause, i: usize) -> Guess {
    if clause.words.is_quoted(i) {
        return None;
    }
    phrases(clause, i).or_else(|| done(clause, i)).or_else(|| by_verb(clause, i))
}

/// Phrases that are a command as a whole.
fn phrases(clause: &Clause, i: usize) -> Guess {
    const REMEMBER: Phrases = phrases!(
        "remember to | don't let me forget to | don't let me forget about | don't let me forget | \
         dont let me forget to | dont let me forget | do not let me forget to | do not let me forget | \
         don't forget to | dont forget to | do not forget to | i must remember to | i should remember to | \
         i can't forget to | i cannot forget to | help me remember to | help me remember | \
         remember that i need to | remember that i have to | make a note to | make a note that | \
         make a note of | make a note | take a note to | note to self to | note to self | note that i need to | \
         make sure i don't forget to | make sure i remember to | make sure i | me remember to | \
         keep in mind to | remember i need to | remember i have to"
    );
    if let Some(n) = clause.phrase(i, REMEMBER) {
        let nested = verb_at(clause, i + n) == Some(Verb::Remind) && clause.at(i + n + 1) == "me";
        return if nested { at(clause, i + n) } else { Some((Act::Create(Form::Rest, i + n), 0.92)) };
    }
    const GONE: Phrases = phrases!(
        "get rid of | get rid off | do away with | i no longer need to | i no longer need a | i no longer need | \
         no longer need | i don't need to be reminded | i dont need to be reminded | \
         i do not need to be reminded | no need to remind me | don't remind me | dont remind me | \
         do not remind me | stop reminding me | i don't need | i dont need | i do not need | i don't want | \
         forget about | forget"
    );
    if let Some(n) = clause.phrase(i, GONE) {
        let sure = clause.has_noun()
            || clause.at(i + n - 1) == "me"
            || clause.at(i + n - 1) == "reminded"
            || clause.at(i) == "get";
        let body = i
            + n
            + clause
                .phrase(i + n, phrases!("to be reminded | to | about | of | a | the"))
                .filter(|_| clause.at(i) != "get")
                .unwrap_or(0);
        return (sure && !scope::is_foreign(clause)).then_some((Act::Delete(body, clause.end), 0.85));
    }
    let labels = phrases!(
        "todo : | to-do : | to do : | task : | reminder : | todo - | task - | new task | new todo | new to-do | \
         new to do | new reminder | todo | to-do"
    );
    if let Some(n) = clause.phrase(i, labels) {
        let label = n > 1
            || clause.words.is_word(i + 1)
                && lexicon::noun(clause.words, i + 1).is_none()
                && clause.date_at(i + 1).is_none()
                && !is_list_word(clause.at(i + 1));
        if label {
            return Some((Act::Create(Form::Rest, i + n), 0.93));
        }
    }
    None
}

fn is_list_word(word: &str) -> bool {
    matches!(word, "list" | "lists" | "for" | "please")
}

fn verb_at(clause: &Clause, i: usize) -> Option<Verb> {
    if i < clause.end { lexicon::verb(clause.at(i)) } else { None }
}

fn by_verb(clause: &Clause, i: usize) -> Guess {
    let verb = verb_at(clause, i)?;
    let foreign = scope::is_foreign(clause);
    let noun = clause.has_noun();
    match verb {
        Verb::Remind => remind(clause, i),
        Verb::Add => add(clause, i, foreign),
        Verb::Put => put(clause, i),
        Verb::Make => make(clause, i),
        Verb::Show => show(clause, i),
        Verb::Delete => delete(clause, i, foreign),
        Verb::Take => take_off(clause, i),
        Verb::Complete => complete(clause, i, foreign),
        Verb::Mark => mark(clause, i),
        Verb::Change | Verb::Move => change(clause, i, verb, foreign),
        Verb::Rename => (!foreign || noun).then_some((Act::Update(Change::Title, i + 1), 0.93)),
        Verb::Tag => (!foreign || noun).then_some((Act::Update(Change::Tags, i + 1), 0.9)),
        Verb::Reopen => (!foreign || noun).then_some((Act::Update(Change::Reopen, i + 1), 0.9)),
    }
}

fn remind(clause: &Clause, i: usize) -> Guess {
    let who = clause.at(i + 1);
    if matches!(clause.at(i), "alert" | "notify") && !matches!(who, "me" | "us") {
        return None;
    }
    if matches!(clause.at(i), "alert" | "notify") && (clause.has(phrases!("if")) || scope::is_foreign(clause)) {
        return None;
    }
    let me = matches!(who, "me" | "us" | "be" | "my" | "em" | "mee");
    let body = i + if me && who != "my" { 2 } else { 1 };
    if matches!(clause.at(body), "what" | "which" | "how" | "who")
        || clause
            .phrase(
                body,
                phrases!(
                    "of what | of all | of my reminders | of my tasks | about my reminders | of the things | of everything"
                ),
            )
            .is_some()
        || clause.at(body) == "when" && !matches!(clause.at(body + 1), "it" | "it's" | "i" | "its" | "we" | "the")
    {
        return Some((Act::List(body), 0.8));
    }
    if clause.has(phrases!("instead of | rather than | instead")) {
        return Some((Act::Update(Change::Instead, body), 0.85));
    }
    if for_existing(clause, body) {
        return Some((Act::Remind(body), 0.9));
    }
    Some((Act::Create(Form::Remind, if me { body } else { after_person(clause, body) }), if me { 0.97 } else { 0.85 }))
}

/// "remind Nathan on Friday to feed …": the task begins after "to", "about" or "that".
fn after_person(clause: &Clause, body: usize) -> usize {
    clause.seek(body, phrases!("to | about | that | of")).map_or(body, |(at, _)| at)
}

/// "about the milk task", "every 30 minutes about …, 3 times".
fn for_existing(clause: &Clause, body: usize) -> bool {
    let Some((at, n)) = clause.seek(body, phrases!("about | of | for")) else { return false };
    let before_to = clause.seek(body, phrases!("to")).is_none_or(|(to, _)| to > at);
    let named = (at + n..clause.end)
        .any(|k| lexicon::noun(clause.words, k).is_some_and(|(noun, _, plural)| noun == Noun::Task && !plural));
    let short = clause.dates.iter().any(|found| {
        found.parts.repeat.as_ref().is_some_and(|r| matches!(r.frequency, crate::dates::Frequency::Minutely))
    });
    let times = clause.has(phrases!("times")) && clause.dates.iter().any(|found| found.parts.repeat.is_some());
    before_to && (named || short || times)
}

fn add(clause: &Clause, i: usize, foreign: bool) -> Guess {
    let after = i + 1 + usize::from(lexicon::is_article(clause.at(i + 1)));
    if matches!(clause.at(after), "tag" | "tags" | "label") && clause.has(phrases!("to | on")) {
        return Some((Act::Update(Change::Tags, after + 1), 0.9));
    }
    if matches!(clause.at(after), "description" | "deadline" | "due") && clause.has(phrases!("to | for")) {
        return Some((Act::Update(Change::Any, i + 1), 0.85));
    }
    if to_reminder(clause, i) {
        return Some((Act::Update(Change::Any, i + 1), 0.7));
    }
    if foreign && !clause.has_noun() {
        return None;
    }
    Some((Act::Create(Form::Add, i + 1), if clause.has_noun() { 0.96 } else { 0.88 }))
}

/// "add … to the chores reminder" changes that reminder.
fn to_reminder(clause: &Clause, i: usize) -> bool {
    let Some((at, _)) =
        (i + 2..clause.end).rev().find_map(|k| clause.phrase(k, phrases!("to my | to the | to our")).map(|n| (k, n)))
    else {
        return false;
    };
    let noun = (at + 2..clause.end).find_map(|k| lexicon::noun(clause.words, k).map(|found| (k, found)));
    let reminder_first = (i + 1..at).any(|k| lexicon::noun(clause.words, k).is_some());
    noun.is_some_and(|(k, (noun, _, plural))| noun == Noun::Reminder && !plural && k > at + 2 && k < at + 6)
        && !reminder_first
}

fn put(clause: &Clause, i: usize) -> Guess {
    let on_list = clause.has_noun() && (clause.has(phrases!("on | in | to | onto | into")) || clause.at(i) == "note");
    if on_list && clause.at(i + 1) != "that" {
        let reminder = (i + 1..clause.end.min(i + 5)).any(|k| {
            lexicon::noun(clause.words, k).is_some_and(|(noun, _, _)| noun != Noun::List)
                && !matches!(clause.words.before(k), "of" | "my")
        });
        return Some((
            Act::Create(if reminder { Form::Make } else { Form::Add }, i + 1 + usize::from(clause.at(i + 1) == "down")),
            0.93,
        ));
    }
    let down = clause.phrase(
        i,
        phrases!(
            "write down that i need to | write down to | write down | jot down to | jot down | put down to | \
             put down | note down to | note down"
        ),
    )?;
    Some((Act::Create(Form::Rest, i + down), 0.75))
}

fn make(clause: &Clause, i: usize) -> Guess {
    if let Some(change) = set_field(clause, i) {
        return Some((Act::Update(change, i + 1), 0.9));
    }
    if let Some(guess) = made_urgent(clause, i) {
        return Some(guess);
    }
    if matches!(clause.at(i), "do") {
        return None;
    }
    let noun = (i + 1..clause.end)
        .find_map(|k| lexicon::noun(clause.words, k).map(|(noun, len, plural)| (k, noun, len, plural)));
    let (k, noun, len, plural) = noun?;
    if matches!(clause.at(i), "give" | "send" | "do" | "want" | "need")
        && (plural || noun == Noun::List)
        && matches!(clause.at(i), "give" | "send")
    {
        return Some((Act::List(i + 1), 0.8));
    }
    if noun == Noun::List && !matches!(clause.at(i), "create" | "make" | "set" | "start" | "new" | "need") {
        return None;
    }
    if noun == Noun::List {
        let sure = clause.has(phrases!("clear | cleared | empty"));
        return if sure {
            Some((Act::Delete(k, clause.end), 0.7))
        } else {
            Some((Act::Create(Form::Make, i + 1), 0.75))
        };
    }
    if about_task(clause, k + len) {
        return Some((Act::Remind(k + len), 0.88));
    }
    if clause.has(phrases!("instead of | rather than")) {
        return Some((Act::Update(Change::Instead, i + 1), 0.7));
    }
    Some((Act::Create(Form::Make, i + 1), 0.94))
}

/// "set a reminder for the dentist task …".
fn about_task(clause: &Clause, after: usize) -> bool {
    matches!(clause.at(after), "for" | "about" | "on")
        && (after + 1..clause.end).any(|k| {
            lexicon::noun(clause.words, k).is_some_and(|(noun, _, plural)| noun == Noun::Task && !plural)
                && clause.at(k).starts_with("t")
                && clause.at(k) != "to"
        })
}

/// "set the priority of …", "set the due date …", "set X to high priority".
fn set_field(clause: &Clause, i: usize) -> Option<Change> {
    if !matches!(clause.at(i), "set" | "make" | "give" | "put") {
        return None;
    }
    let at = i + 1 + usize::from(lexicon::is_article(clause.at(i + 1)));
    if clause.phrase(at, phrases!("priority | due date | deadline | description | title | status")).is_some() {
        return Some(Change::Any);
    }
    let possessive = (i + 1..clause.end.min(i + 6)).any(|k| {
        clause.at(k).ends_with("'s")
            && clause.phrase(k + 1, phrases!("priority | due date | deadline | description | title")).is_some()
    });
    if possessive {
        return Some(Change::Any);
    }
    let (to, n) = clause.seek(i + 2, phrases!("to | as"))?;
    let (_, len) = attributes::priority_at(clause, to + n)?;
    clause.is_spent(to + n + len..clause.end).then_some(Change::Any)
}

/// "make the report urgent", "make it high priority".
fn made_urgent(clause: &Clause, i: usize) -> Guess {
    if clause.at(i) != "make" || matches!(clause.at(i + 1), "a" | "an" | "") {
        return None;
    }
    let (k, priority) = (i + 2..clause.end).find_map(|k| {
        attributes::priority_at(clause, k).filter(|(_, n)| clause.is_spent(k + n..clause.end)).map(|(p, _)| (k, p))
    })?;
    let new = matches!(clause.at(i + 1), "new");
    (!new && k > i + 1).then_some((Act::Update(Change::Priority(priority), i + 1), 0.9))
}

fn show(clause: &Clause, i: usize) -> Guess {
    let body = i + 1 + usize::from(matches!(clause.at(i + 1), "me" | "us" | "up" | "out"));
    if clause.at(i) == "get" && reminder_wanted(clause, i) {
        return Some((Act::Create(Form::Make, i + 1), 0.8));
    }
    if clause.at(i) == "get" && clause.at(i + 1) == "rid" {
        return None;
    }
    if clause.has_noun() {
        return (!scope::is_media(clause)).then_some((Act::List(body), 0.95));
    }
    let told = clause.at(i) == "tell" || clause.at(i) == "know" || clause.at(i) == "see";
    if told && let Some(guess) = asks_for_tasks(clause, body) {
        return Some(guess);
    }
    let everything = matches!(clause.at(i), "show" | "list" | "display" | "see" | "view")
        && (clause.is_spent(body..clause.end) && matches!(clause.at(i), "show" | "list")
            || clause
                .phrase(
                    body,
                    phrases!(
                        "everything | all | them all | all of them | all of it | what's pending | what is pending | what's due | \
                         what's overdue | my day | what i have | what i need | completed | pending | overdue | what's left | \
                         what is left | my priorities"
                    ),
                )
                .is_some_and(|n| body + n <= clause.end));
    let dated = matches!(clause.at(i), "show" | "list")
        && clause.date_at(body).is_some_and(|found| found.tokens.start == body && found.tokens.end == clause.end);
    ((everything || dated) && !scope::is_foreign(clause)).then_some((Act::List(body), 0.8))
}

/// "get a reminder", "I need a reminder".
fn reminder_wanted(clause: &Clause, i: usize) -> bool {
    let article = matches!(clause.at(i + 1), "a" | "an") || clause.phrase(i + 1, phrases!("me a | us a")).is_some();
    article && clause.has_noun()
}

fn delete(clause: &Clause, i: usize, foreign: bool) -> Guess {
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        return Some((Act::Update(Change::Clear(field), after), 0.9));
    }
    if matches!(clause.at(i), "stop" | "undo" | "silence" | "void") {
        let reminding = clause.has_noun() || clause.has(phrases!("reminding | remind | alerting"));
        return reminding.then_some((Act::Delete(i + 1, clause.end), 0.8));
    }
    if clause.has(phrases!(
        "replace it with | reschedule it | and replace with | change it to | and reschedule | and set it for | \
         move it to"
    )) && clause.has_noun()
    {
        return Some((Act::Update(Change::Any, i + 1), 0.7));
    }
    let noun = clause.has_noun();
    if foreign && !noun || scope::is_media(clause) {
        return None;
    }
    let sure = noun || matches!(clause.at(i), "delete" | "remove" | "erase");
    Some((
        Act::Delete(i + 1, clause.end),
        if noun {
            0.96
        } else if sure {
            0.82
        } else {
            0.7
        },
    ))
}

/// "the due date from …": the field to empty and where the task is named.
fn cleared_field(clause: &Clause, i: usize) -> Option<(Field, usize)> {
    let at = i + usize::from(lexicon::is_article(clause.at(i)));
    let fields = [
        (Field::Due, phrases!("due date | deadline | due time | date")),
        (Field::Description, phrases!("description | notes | note | details")),
        (Field::Recurrence, phrases!("recurrence | repetition | repeat")),
        (Field::Tags, phrases!("tags | tag | labels")),
    ];
    let (field, n) = fields.iter().find_map(|(field, names)| clause.phrase(at, *names).map(|n| (*field, n)))?;
    let (of, m) = clause.seek(at + n, phrases!("from | of | for | on | off")).filter(|(of, _)| *of <= at + n + 1)?;
    Some((field, of + m))
}

fn take_off(clause: &Clause, i: usize) -> Guess {
    let off = clause.seek(i + 1, phrases!("off | out of | from | out | of"))?;
    (clause.has_noun() || clause.phrase(off.0, phrases!("off")).is_some() && off.0 + 1 >= clause.end)
        .then_some((Act::Delete(i + 1, clause.end), 0.9))
}

fn complete(clause: &Clause, i: usize, foreign: bool) -> Guess {
    if foreign && !clause.has_noun() || clause.at(i) == "close" && !clause.has_noun() {
        return None;
    }
    let planned = clause.at(i) == "finish"
        && !clause.has_noun()
        && (!clause.dates.is_empty() || (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some()));
    if planned {
        return Some((Act::Create(Form::Rest, i), 0.6));
    }
    Some((Act::Complete(i + 1, clause.end), if clause.has_noun() { 0.94 } else { 0.82 }))
}

/// The place of "done" and its like after "mark …".
fn done_word(clause: &Clause, from: usize) -> Option<usize> {
    (from..clause.end)
        .find(|k| matches!(clause.at(*k), "done" | "complete" | "completed" | "finished" | "finish" | "off"))
}

fn mark(clause: &Clause, i: usize) -> Guess {
    const NOT: Phrases = phrases!(
        "as not done | as not complete | as not completed | as incomplete | as pending | as undone | as open | \
         as unfinished | as to do | as todo | not done | incomplete | as not finished | pending | undone"
    );
    if clause.at(i) == "mark"
        && let Some((_, _)) = clause.seek(i + 1, NOT)
    {
        return Some((Act::Update(Change::Reopen, i + 1), 0.9));
    }
    let urgent = (i + 1..clause.end).find_map(|k| {
        attributes::priority_at(clause, k).filter(|(_, n)| clause.is_spent(k + n..clause.end)).map(|(p, _)| p)
    });
    if clause.at(i) == "mark"
        && let Some(priority) = urgent
    {
        return Some((Act::Update(Change::Priority(priority), i + 1), 0.9));
    }
    if matches!(clause.at(i + 1), "off" | "out") {
        return Some((Act::Complete(i + 2, clause.end), 0.93));
    }
    if let Some(k) = done_word(clause, i + 1).filter(|k| clause.at(i) != "check" || clause.at(*k) == "off") {
        let end = if matches!(clause.words.before(k), "as" | "is" | "to") { k - 1 } else { k };
        let on_list = clause.at(k) == "off" && k + 1 < clause.end;
        if clause.at(i) != "mark" && clause.at(k) != "off" {
            return None;
        }
        return Some((Act::Complete(i + 1, if on_list { clause.end } else { end }), 0.94));
    }
    if matches!(clause.at(i), "mark" | "tick") && clause.has_noun() {
        return Some((Act::Complete(i + 1, clause.end), 0.7));
    }
    if clause.at(i) == "check" && clause.has_noun() {
        return Some((Act::List(i + 1), 0.85));
    }
    None
}

/// "I finished …", "done with …", "… is done", "the first and third are done".
fn done(clause: &Clause, i: usize) -> Guess {
    const DONE: Phrases = phrases!(
        "i have already finished | i've already finished | i already finished | i already completed | \
         i already did | i just finished | i just completed | i just did | i have finished with | \
         i have finished | i've finished | i have completed | i've completed | i have done | i've done | \
         i finished with | i finished | i completed | i did | i'm done with | im done with | i am done with | \
         i'm finished with | i am finished with | we finished | we completed | all done with | done with | \
         finished with | finished | completed | already finished | already completed | already did | \
         already done | already complete | done :"
    );
    if let Some(n) = clause.phrase(i, DONE) {
        let question = clause.at(clause.end) == "?"
            || clause.at(i) == "i" && clause.at(i + 1) == "did" && clause.at(i + 2) == "not";
        let listing = matches!(clause.at(i), "completed" | "finished")
            && lexicon::noun(clause.words, i + n).is_some_and(|(_, _, plural)| plural);
        let foreign = scope::is_foreign(clause) && !clause.has_noun();
        return (!question && !listing && !foreign && i + n < clause.end)
            .then(|| (Act::Complete(i + n, done_end(clause, i + n)), 0.85));
    }
    const ENDS: Phrases = phrases!(
        "is done | are done | is complete | are complete | is completed | are completed | is finished | \
         are finished | was done | has been done | have been done | has been completed | have been completed | \
         is already done | done"
    );
    if phrases!(
        "what | what's | which | is | are | when | how | show | list | who | if | mark | get | has | have | \
         why | where | i | add | check"
    )
    .contains(clause.at(i))
    {
        return None;
    }
    let (at, n) = clause.seek(i + 1, ENDS).filter(|(at, n)| at + n == clause.end)?;
    let short = clause.at(at) == "done" && (at - i > 4 || verb_at(clause, i).is_some());
    debug_assert!(n > 0);
    (!short && !scope::is_foreign(clause)).then_some((Act::Complete(i, at), 0.8))
}

/// "I finished the report, so cross that off" names the report before the comma.
fn done_end(clause: &Clause, from: usize) -> usize {
    clause.seek(from, phrases!(",")).map_or(clause.end, |(at, _)| at)
}

fn change(clause: &Clause, i: usize, verb: Verb, foreign: bool) -> Guess {
    let noun = clause.has_noun();
    if foreign && !noun {
        return None;
    }
    let prioritise = matches!(clause.at(i), "prioritize" | "prioritise");
    if prioritise {
        return Some((Act::Update(Change::Priority(model::task::Priority::High), i + 1), 0.85));
    }
    let kind = if verb == Verb::Move { Change::Due } else { Change::Any };
    let dated = !clause.dates.is_empty();
    let known = matches!(clause.at(i + 1), "it" | "that" | "this") || clause.words.is_quoted(i + 1);
    let to = clause.has(phrases!("to | by | until | till | for | with | from"));
    let confidence = match (noun, dated || known, to) {
        (true, _, _) => 0.95,
        (_, true, true) => 0.85,
        (_, true, false) | (_, false, true) => 0.65,
        _ => return None,
    };
    Some((Act::Update(kind, i + 1 + usize::from(matches!(clause.at(i + 1), "back" | "up"))), confidence))
}

/// Questions about one's tasks.
fn question(clause: &Clause) -> Guess {
    let i = clause.start;
    const ASKS: Phrases = phrases!(
        "what | what's | whats | which | when | when's | whens | where | who | how | do | does | did | am | is | \
         are | have | has | any | anything | will | should | whose | was | were | why | wheres | where's | \
         what're | hows | how's | i'd | wat | if"
    );
    if !ASKS.contains(clause.at(i)) {
        return None;
    }
    if clause.has_noun() || clause.has(phrases!("remind | reminded | reminding")) {
        return (!scope::is_media(clause)).then_some((Act::List(i), 0.93));
    }
    asks_for_tasks(clause, i)
}

/// "what do I have to do today", "what's due", "do I have anything about the dentist".
fn asks_for_tasks(clause: &Clause, i: usize) -> Guess {
    const DUTIES: Phrases = phrases!(
        "i have to do | i need to do | i have to get done | i need to get done | to get done | \
         i supposed to do | i going to do | i should do | i must do | should i do | must i do | \
         have i got to do | left to do | i gotta do | i got to do | i have left | i have planned | \
         do i have today | do i have tomorrow | do i have due | do i have going on today | do i have on for | \
         i meant to do | needs to be done | needs doing | needs to get done | i wanted to keep in mind | \
         have i completed | have i finished | have i done | did i finish | did i complete | did i get done | \
         i forgetting | on my plate | on my agenda | on my schedule for today | next for me | is pending | \
         's pending | is overdue | is due | are due | is left | to do today | to do tomorrow | to do this week | \
         to do next"
    );
    if let Some((at, _)) = clause.seek(i, DUTIES)
        && !scope::is_foreign(clause)
        && at <= i + 6
    {
        let short = clause.end - i <= 14;
        return short.then_some((Act::List(i), 0.85));
    }
    let first = clause.at(i);
    let next = clause.at(i + 1);
    let whats = matches!(first, "what's" | "whats") || first == "what" && matches!(next, "is" | "are");
    let body = i + if matches!(first, "what's" | "whats") { 1 } else { 2 };
    let state = clause.phrase(
        body,
        phrases!(
            "pending | overdue | due | left | outstanding | next | done | completed | open | urgent | important | \
             still pending | still open | still left | not done | up next | up"
        ),
    );
    if whats && let Some(n) = state {
        let at_end = clause.is_spent(body + n..clause.end)
            || clause.date_at(body + n).is_some()
            || matches!(clause.at(body + n), "on" | "for" | "soon");
        let next_alone = clause.at(body) != "next" && clause.at(body) != "up" || body + n == clause.end;
        return (at_end && next_alone && !scope::is_foreign(clause)).then_some((Act::List(body), 0.88));
    }
    let anything = clause.phrase(
        i,
        phrases!("do i have anything | have i got anything | is there anything | anything | do i have something | any"),
    );
    if let Some(n) = anything {
        let about = matches!(
            clause.at(i + n),
            "about" | "due" | "pending" | "left" | "for" | "on" | "overdue" | "urgent" | "to" | "with" | "related"
        ) || clause.date_at(i + n).is_some();
        return (about && first != "any" && !scope::is_foreign(clause)).then_some((Act::List(i), 0.82));
    }
    None
}

/// A command after a preamble: "I'm tired, so please delete …", "on my list, add …".
fn later(clause: &Clause) -> Guess {
    for i in clause.start + 1..clause.end {
        let before = clause.words.before(i);
        let opens = phrases!(
            ", | so | and | please | you | to | : | - | list | lists | then | just | kindly | — | – | but | also | \
             me | i"
        )
        .contains(before)
            || lexicon::is_please(before);
        if !opens && !matches!(clause.at(i), "remind" | "remember") {
            continue;
        }
        let from = lexicon::after_courtesy(clause.words, i, clause.end);
        let Some((act, confidence)) = at(clause, from) else { continue };
        let strong = matches!(
            verb_at(clause, from),
            Some(
                Verb::Remind
                    | Verb::Delete
                    | Verb::Add
                    | Verb::Change
                    | Verb::Move
                    | Verb::Mark
                    | Verb::Make
                    | Verb::Show
                    | Verb::Put
                    | Verb::Take
                    | Verb::Complete
                    | Verb::Rename
            )
        );
        let sure = clause.has_noun() || verb_at(clause, from) == Some(Verb::Remind) && clause.at(from + 1) == "me";
        if strong && sure {
            return Some((act, confidence - 0.08));
        }
    }
    None
}

/// A clause without a verb: "my tasks", "reminders for tomorrow", "daily reminder to …", "the reminder for … is cancelled".
fn noun_first(clause: &Clause) -> Guess {
    if let Some(guess) = passive(clause) {
        return Some(guess);
    }
    if !clause.has_noun() || scope::is_media(clause) {
        return None;
    }
    let (k, noun, len, plural) = (clause.start..clause.end)
        .find_map(|k| lexicon::noun(clause.words, k).map(|(noun, len, plural)| (k, noun, len, plural)))?;
    let wanted = clause.has(phrases!(
        "i need a | i need an | i want a | i'd like a | i would like a | need a | like a | want a | about a | \
         needs a | needs | i need"
    ));
    let singular = !plural && noun != Noun::List;
    if wanted && singular
        || singular && matches!(clause.at(k + len), "to" | "for" | "about" | "that" | ":") && k < clause.start + 4
    {
        return Some((Act::Create(Form::Make, clause.start), 0.75));
    }
    if singular && clause.is_spent(k + len..clause.end) && clause.at(clause.start) != "my" {
        return Some((Act::Create(Form::Make, clause.start), 0.55));
    }
    let short = clause.end - clause.start <= 10;
    short.then_some((Act::List(clause.start), 0.7))
}

/// "The reminder for the party needs to be cancelled."
fn passive(clause: &Clause) -> Guess {
    if !clause.has_noun() {
        return None;
    }
    if clause.has(phrases!(
        "deleted | canceled | cancelled | removed | erased | cleared | taken off | no longer needed | gone"
    )) {
        return Some((Act::Delete(clause.start, clause.end), 0.75));
    }
    if clause.has(phrases!(
        "changed | moved | updated | rescheduled | pushed | postponed | instead of | instead | rather than | \
         switched | modified"
    )) {
        return Some((Act::Update(Change::Any, clause.start), 0.75));
    }
    None
}
