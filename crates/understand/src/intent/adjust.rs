//! Verbs that change one thing of a task: "put off … until …", "bump the priority of …", "take the deadline off …",
//! "write in the notes of …".

use model::task::Priority;

use super::{Act, Guess, change, shape};
use crate::attributes;
use crate::clause::Clause;
use crate::dates::Found;
use crate::lexicon;
use crate::phrases::{Phrases, phrases};
use crate::reading::Field;
use crate::update::Change;

/// The first words of all that is read here, so that other clauses are not looked at eleven times.
const FIRST: Phrases = phrases!(
    "put | push | set | bring | pull | carry | roll | hold | drag | kick | bump | move | shift | slide | leave | \
     keep | save | park | wait | putting | pushing | delay | raise | increase | up | boost | crank | elevate | \
     turn | upgrade | higher | lower | decrease | drop | reduce | downgrade | cut | star | pin | highlight | \
     prioritise | prioritize | flag | give | treat | consider | make | add | rank | take | lift | clear | remove | \
     strip | delete | erase | cancel | get | scrap | unset | wipe | write | note | jot | attach | include | \
     mention | specify | append | record | have | let | schedule | assign | grant | allow | change | replace | \
     substitute | swap | exchange | switch | mark | flip | update | log | register | escalate | count | list | \
     report | declare | call"
);

pub(super) fn read(clause: &Clause, i: usize) -> Guess {
    clause.phrase(i, FIRST)?;
    put_off(clause, i)
        .or_else(|| priority(clause, i))
        .or_else(|| level(clause, i))
        .or_else(|| undated(clause, i))
        .or_else(|| note(clause, i))
        .or_else(|| set_to(clause, i))
        .or_else(|| given(clause, i))
        .or_else(|| turned(clause, i))
        .or_else(|| reopened(clause, i))
        .or_else(|| status(clause, i))
}

/// Whether a date or a distance stands behind `i`.
fn dated(clause: &Clause, i: usize) -> bool {
    let ends = |found: &Found| found.tokens.end > i;
    clause.dates.iter().any(ends) || clause.seek(i, change::DISTANCES).is_some()
}

/// "put off the laundry until Tuesday", "put the laundry off until Tuesday", "pull the release forward to Monday",
/// "roll my open tasks over to Monday", "hold off on the roast until seven".
fn put_off(clause: &Clause, i: usize) -> Guess {
    const JOINED: Phrases = phrases!(
        "put off | put back | push back | push out | push off | hold off on | hold off | hold off with | set back | \
         carry over | roll over | bring forward | pull forward | wait with | pull in | move up | move back | \
         move out | move forward | put forward | putting off | pushing back | bump back | drag out | leave | kick | \
         delay | slide"
    );
    const VERBS: Phrases = phrases!(
        "put | push | set | bring | pull | carry | roll | hold | drag | kick | bump | move | shift | slide | leave | \
         keep | save | park"
    );
    const PARTS: Phrases = phrases!("off | back | forward | over | out | on | ahead | up | for | until | till");
    if clause.at(i) == "pull" && clause.at(i + 1) == "up" {
        return None;
    }
    let apart = || {
        let (at, n) = clause.seek(i + 2, PARTS)?;
        let led =
            clause.phrase(at + n, phrases!("until | till | to | by | for | a | an | one | two | another")).is_some()
                || clause.date_at(at + n).is_some()
                || at + n >= clause.end;
        let weak = matches!(clause.at(i), "keep" | "save" | "leave" | "park" | "put" | "set");
        let until = matches!(clause.at(at), "until" | "till")
            || matches!(clause.at(at), "for") && matches!(clause.at(i), "save" | "leave" | "park");
        let on = matches!(clause.at(at), "on" | "up" | "for" | "until" | "till" | "out") && weak && !until;
        let fits = VERBS.contains(clause.at(i)) && !on && (led || until) && shape::is_definite(clause, i + 1);
        // "put the laundry off" and "bring the party forward" need no date, the others do.
        let plain = matches!((clause.at(i), clause.at(at)), ("put", "off") | ("bring", "forward"));
        (fits && (plain || dated(clause, at))).then_some(i + 1)
    };
    let from = clause
        .phrase(i, JOINED)
        .filter(|n| {
            shape::is_definite(clause, i + n)
                && dated(clause, i + n)
                && clause.seek(i + n, phrases!("until | till | to | by | for | into")).is_some()
        })
        .map(|n| i + n)
        .or_else(apart)?;
    let list = clause.has(phrases!("on the list | on my list | on my to"));
    (!clause.is_elsewhere() && !list).then_some((Act::Update(Change::Due, from, clause.end), 0.82))
}

/// "bump up the priority on the visa to high", "raise its priority", "lower the importance of the shed task".
fn priority(clause: &Clause, i: usize) -> Guess {
    const UP: Phrases = phrases!(
        "bump up | bump | raise | increase | up | boost | crank up | elevate | turn up | move up | upgrade | higher"
    );
    const DOWN: Phrases =
        phrases!("lower | decrease | drop | reduce | bump down | turn down | downgrade | cut | move down");
    const FIELD: Phrases = phrases!(
        "the priority of | the priority on | the priority for | the priority from | the priority | \
         the importance of | the importance for | the urgency of | priority of | priority on | priority for | \
         its priority | its importance | its urgency | priority"
    );
    let (verb, raised) = match (clause.phrase(i, DOWN), clause.phrase(i, UP)) {
        (Some(n), _) => (n, Priority::Low),
        (_, Some(n)) => (n, Priority::High),
        _ => return None,
    };
    let field = clause.phrase(i + verb, FIELD)?;
    let from = i + verb + field;
    let told = attributes::closing_priority(clause, from).or_else(|| {
        let (at, n) = clause.seek(from, phrases!("to"))?;
        Some((at, attributes::level(clause.at(at + n))?))
    });
    let (end, priority) = told.unwrap_or((clause.end, raised));
    let end = if end > from && clause.at(end - 1) == "to" { end - 1 } else { end };
    let about = if from >= end { i + verb..i + verb } else { from..end };
    Some((Act::Update(Change::Priority(priority), about.start, about.end), 0.88))
}

/// "flag the contract as important", "star the visa task", "put the report at the top priority", "give it high
/// priority".
fn level(clause: &Clause, i: usize) -> Guess {
    let entry = shape::names_entry(clause, i + 1..clause.end)
        || shape::is_definite(clause, i + 1)
        || clause.words.is_quoted(i + 1);
    if matches!(clause.at(i), "star" | "pin" | "highlight" | "prioritise" | "prioritize" | "flag") && i + 1 < clause.end
    {
        let (end, priority) = attributes::closing_priority(clause, i + 1).unwrap_or((clause.end, Priority::High));
        let sure = shape::has_task(clause, i + 1..clause.end)
            || end < clause.end
            || matches!(clause.at(i), "prioritise" | "prioritize");
        return (entry && sure).then_some((Act::Update(Change::Priority(priority), i + 1, end), 0.84));
    }
    if !matches!(
        clause.at(i),
        "put" | "give" | "set" | "turn" | "treat" | "consider" | "make" | "add" | "rank" | "assign" | "escalate"
    ) {
        return None;
    }
    // "put high priority on the visa form"
    if let Some((priority, n)) = attributes::priority_at(clause, i + 1).filter(|(_, n)| *n > 1)
        && matches!(clause.at(i + 1 + n), "on" | "to" | "for")
        && shape::is_definite(clause, i + 2 + n)
    {
        return Some((Act::Update(Change::Priority(priority), i + 2 + n, clause.end), 0.84));
    }
    let (at, priority) = attributes::closing_priority(clause, i + 2).or_else(|| {
        let at = clause
            .end
            .checked_sub(1)
            .filter(|at| *at > i + 2 && matches!(clause.before(*at), "to" | "as" | "at" | "into"))?;
        Some((at, attributes::level(clause.at(at))?))
    })?;
    let mut end = at;
    while end > i + 2 && matches!(clause.at(end - 1), "at" | "the" | "to" | "as" | "into" | "a" | "in" | "with") {
        end -= 1;
    }
    let led = end < at || matches!(clause.at(i), "give" | "turn");
    let new = matches!(clause.at(i + 1), "a" | "an" | "new" | "me") || clause.at(i) == "add";
    (entry && led && !new).then_some((Act::Update(Change::Priority(priority), i + 1, end), 0.86))
}

/// "take the deadline off the blog post", "clear the date on task 3", "make the fence undated".
fn undated(clause: &Clause, i: usize) -> Guess {
    const VERBS: Phrases = phrases!(
        "take | lift | clear | drop | remove | strip | delete | erase | cancel | get rid of | scrap | unset | wipe"
    );
    const FIELDS: Phrases = phrases!("deadline | due date | date | due time | time | schedule");
    if clause.at(i) == "make" && matches!(clause.before(clause.end), "undated" | "dateless") {
        return Some((Act::Update(Change::Clear(Field::Due), i + 1, clause.end - 1), 0.8));
    }
    let from = i + clause.phrase(i, VERBS)?;
    let at = from + usize::from(lexicon::is_article(clause.at(from)));
    let after = at + clause.phrase(at, FIELDS)?;
    let lead = clause.phrase(after, phrases!("off of | off | from | on | of | for"))?;
    let end = clause.seek(after, phrases!(",")).map_or(clause.end, |(at, _)| at);
    let own = at > from
        && after + lead < end
        && !(clause.at(i) == "take" && clause.at(at) == "time" && !shape::has_task(clause, after..end));
    own.then_some((Act::Update(Change::Clear(Field::Due), after + lead, end), 0.86))
}

/// "put in the notes of buy paint that …", "attach a comment to the invoice task saying …", "write in the haircut task
/// that …", "note on the boiler task: …".
fn note(clause: &Clause, i: usize) -> Guess {
    const VERBS: Phrases = phrases!(
        "put | write | note | add | jot | attach | include | mention | specify | leave | append | make | record"
    );
    const INTO: Phrases = phrases!(
        "in the notes of | in the notes for | in the note of | in the description of | in the details of | \
         to the notes of | to the notes for | to the description of | to the description for | to the details of | \
         on the notes of | a note to | a comment to | a note on | a comment on | a note in | a note for | \
         a description to | details to | in the comments of | notes to | comment to"
    );
    if !VERBS.contains(clause.at(i)) {
        return None;
    }
    let told = |from: usize| clause.seek(from + 1, phrases!(": | saying | that | to say | - | ,"));
    if let Some((at, n)) = clause.seek(i + 1, INTO).filter(|(at, _)| *at <= i + 10) {
        let lead = clause.phrase(at, INTO).is_some() && matches!(clause.before(at + n), "to" | "on" | "for" | "in");
        let fits = shape::is_definite(clause, at + n) || at > i + 1 || !lead;
        // "make a note to call Bob", "add a note for myself": something new.
        let new = lead
            && (!shape::has_task(clause, at + n..clause.end) && told(at + n).is_none()
                || matches!(clause.at(at + n), "self" | "myself" | "me"));
        let text = told(at + n).is_some() || clause.words.is_quoted(i + 1) || at > i + 2;
        return (fits && !new && text).then_some((Act::Update(Change::Note, at + n, clause.end), 0.82));
    }
    let (at, n) = clause.seek(i + 1, phrases!("in | on | to")).filter(|(at, _)| *at == i + 1)?;
    let noun = clause
        .nouns_in(at + n..clause.end.min(at + 7))
        .find(|noun| !noun.plural && noun.noun == lexicon::Noun::Task)?;
    let text = clause.phrase(noun.end, phrases!("that | : | - | saying"));
    (text.is_some() && shape::is_definite(clause, at + n) && clause.at(i) != "add")
        .then_some((Act::Update(Change::Note, at + n, clause.end), 0.8))
}

/// "set the audit task to Friday noon", "put the appraisal task on Tuesday", "set the rent task to repeat monthly".
fn set_to(clause: &Clause, i: usize) -> Guess {
    if !matches!(clause.at(i), "set" | "put" | "have" | "let" | "schedule") || !shape::is_definite(clause, i + 1) {
        return None;
    }
    let entry = clause
        .nouns_in(i + 1..clause.end.min(i + 8))
        .find(|noun| noun.noun != lexicon::Noun::List && !noun.plural)
        .filter(|noun| !(i + 1..noun.at).any(|k| matches!(clause.at(k), "to" | "for" | "on" | "about")))?;
    let end = entry.end + usize::from(crate::numbers::figures(clause.at(entry.end)).is_some());
    let lead = clause.phrase(
        end,
        phrases!("to repeat | to recur | to go off | to | for | on | at | down for | be due | due | back"),
    )?;
    let pointed = shape::pointer(clause, i + 1).is_some();
    let value = end + lead;
    let when = clause.date_at(value).is_some()
        || clause.date_at(end).is_some()
        || clause.date_at(value + 1).is_some()
        || crate::numbers::figures(clause.at(value)).is_some_and(|n| n < 25);
    let task = entry.noun == lexicon::Noun::Task;
    // "set the reminder for Friday": a new one as well as an old one.
    let named = entry.at > i + 2;
    let closed = clause.dates.last().is_some_and(|found| {
        clause.is_spent(found.tokens.end..clause.end)
            || clause.phrase(found.tokens.end, phrases!("instead | rather than | , | not | as well")).is_some()
    }) || clause.dates.is_empty();
    (when && closed && (task || named) && !pointed).then_some((Act::Update(Change::Any, i + 1, clause.end), 0.82))
}

/// "give the blog post a deadline of Dec 29", "give me another week on the essay", "put a deadline of Sunday on the
/// fence".
fn given(clause: &Clause, i: usize) -> Guess {
    const DEADLINE: Phrases = phrases!(
        "a deadline of | a due date of | a deadline on | a deadline for | a new deadline of | a new due date of | \
         until | till | a new date | a time of"
    );
    if !matches!(clause.at(i), "give" | "put" | "set" | "assign" | "grant" | "allow") {
        return None;
    }
    let (at, n) = clause.seek(i + 1, DEADLINE)?;
    let date = clause.dates.iter().find(|found| found.tokens.start >= at || found.tokens.contains(&(at + n)))?;
    if at > i + 1 && shape::is_definite(clause, i + 1) && matches!(clause.at(i), "give" | "assign" | "grant") {
        return Some((Act::Update(Change::Replace(at), i + 1, clause.end), 0.84));
    }
    let end = date.tokens.end;
    let lead = clause.phrase(end, phrases!("on | for | to"))?;
    let open = at == i + 1 || matches!(clause.at(i + 1), "me" | "us");
    (open && shape::is_definite(clause, end + lead)).then_some((Act::Update(Change::Any, end + lead, clause.end), 0.6))
}

/// "turn 'bread' into 'rye bread'", "replace buy nappies with buy wipes", "swap cheddar for gouda on the list".
fn turned(clause: &Clause, i: usize) -> Guess {
    let joint = match clause.at(i) {
        "turn" | "make" | "change" => phrases!("into"),
        "replace" | "substitute" => phrases!("with | by"),
        "swap" | "exchange" | "switch" => phrases!("for | with"),
        _ => return None,
    };
    let (at, n) = clause.seek(i + 2, joint)?;
    let quoted = clause.words.is_quoted(i + 1);
    let doing = super::is_doing(clause, i + 1) && super::is_doing(clause, at + n);
    let listed = clause.has_noun() && (shape::is_definite(clause, i + 1) || clause.noun_in(at..clause.end).is_some());
    let fits = (quoted || doing || listed) && at + n < clause.end && !clause.is_elsewhere();
    fits.then_some((Act::Update(Change::Any, i + 1, clause.end), 0.8))
}

/// "put task 2 back to open", "set the report back to pending", "bring the gym task back".
fn reopened(clause: &Clause, i: usize) -> Guess {
    const BACK: Phrases = phrases!(
        "back to pending | back to open | back to not done | back to undone | back to to do | back to todo | \
         back to incomplete | to pending | to open | to not done | to undone | to incomplete | as pending | \
         as open | as not done | as undone | as incomplete | back on the list | back on my list | back as pending | \
         back as open | back to unfinished | as unfinished"
    );
    if !matches!(
        clause.at(i),
        "put" | "set" | "change" | "move" | "switch" | "mark" | "bring" | "make" | "turn" | "get" | "flip"
    ) {
        return None;
    }
    let (at, _) =
        clause.seek(i + 2, BACK).filter(|(at, n)| clause.is_spent(at + n..clause.end) || clause.at(at + n) == ",")?;
    let listed = clause.at(at + 1) == "on" && !matches!(clause.at(i), "put" | "bring" | "get");
    (!listed).then_some((Act::Update(Change::Reopen, i + 1, at), 0.86))
}

/// "change the status of the report to done".
fn status(clause: &Clause, i: usize) -> Guess {
    if !matches!(
        clause.at(i),
        "change"
            | "set"
            | "update"
            | "switch"
            | "put"
            | "move"
            | "log"
            | "register"
            | "record"
            | "note"
            | "count"
            | "list"
            | "report"
            | "declare"
            | "call"
            | "consider"
            | "make"
    ) {
        return None;
    }
    const DONE: Phrases = phrases!(
        "to done | as done | to complete | to completed | as complete | as completed | to finished | as finished | \
         down as done | down as finished | down as complete | done | finished | complete | completed | as taken | \
         as paid | as sent | as sorted"
    );
    let (at, n) = clause.seek(i + 2, DONE).filter(|(at, n)| super::state::closes(clause, at + n))?;
    let bare = n == 1;
    let marked = matches!(clause.at(i), "call" | "consider" | "declare" | "make" | "count");
    if bare && !marked || clause.asked && !clause.has(phrases!("you")) || clause.is_elsewhere() {
        return None;
    }
    let of = clause
        .phrase(i + 1, phrases!("the status of | status of | the status on | the status for | the state of"))
        .unwrap_or(0);
    let from = i + 1 + of;
    let fits = shape::is_definite(clause, from)
        || of > 0
        || clause.words.is_word(from) && !lexicon::is_article(clause.at(from)) && clause.at(i) != "make";
    (fits && from < at).then_some((Act::Complete(from, at), 0.86))
}
