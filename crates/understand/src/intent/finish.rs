//! Verbs that end a task: deleting it, completing it, and saying that it is done.

use model::task::Priority;

use super::{Act, Guess, mood, shape, state};
use crate::attributes;
use crate::clause::Clause;
use crate::lexicon;
use crate::phrases::{Phrases, phrases};
use crate::reading::Field;
use crate::scope;
use crate::update::{Change, tags};

pub(super) fn delete(clause: &Clause, i: usize) -> Guess {
    // "cancel" alone calls off what was asked, not a task.
    if clause.at(i) == "cancel" && i + 1 >= clause.end {
        return None;
    }
    let errand = clause.at(i) == "kill" || clause.at(i) == "drop" && clause.at(i + 1) == "off";
    if errand && !clause.has_noun() {
        return None;
    }
    if tags::spoken(clause, i + 1, tags::FROM).is_some() {
        return Some((Act::Update(Change::Untag, i + 1, clause.end), 0.9));
    }
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        let end = (after..clause.end).find(|k| clause.at(*k).ends_with("'s")).map_or(clause.end, |k| k + 1);
        return Some((Act::Update(Change::Clear(field), after, end), 0.9));
    }
    if let Some(n) = clause.phrase(i + 1, phrases!("the priority of | the priority from | the priority | its priority"))
    {
        return Some((Act::Update(Change::Priority(Priority::Medium), i + 1 + n, clause.end), 0.8));
    }
    if matches!(clause.at(i), "stop" | "undo" | "silence" | "void") {
        let reminding = clause.has_noun() || clause.has(phrases!("reminding | remind | alerting"));
        return reminding.then_some((Act::Delete(i + 1, clause.end), 0.8));
    }
    const RATHER: Phrases = phrases!(
        "replace it with | and replace with | reschedule it | and reschedule | change it to | and change to | \
         and change it | and set it for | and reset for | and reset it | move it to"
    );
    if clause.has_noun()
        && let Some((at, _)) = clause.seek(i + 1, RATHER)
    {
        return Some((Act::Update(Change::Replace(at), i + 1, clause.end), 0.7));
    }
    if clause.is_elsewhere() && !is_remind(clause, i + 1) || scope::is_media(clause) || scope::is_thing(clause, i + 1) {
        return None;
    }
    if clause.has(phrases!("notifications for | all notifications | push notifications")) {
        return None;
    }
    // "empty the bin tonight", "drop the forms off on Tuesday": something to do.
    let chore = phrases!("empty | drop | clear | scrub | wipe | purge | kill | trash").contains(clause.at(i));
    if chore
        && !clause.has_noun()
        && !clause.dates.is_empty()
        && !shape::names_entry(clause, i + 1..clause.end)
        && !matches!(clause.at(i + 1), "everything" | "all")
    {
        return None;
    }
    let plain = matches!(clause.at(i), "delete" | "remove" | "erase");
    let confidence = match (clause.has_noun(), plain) {
        (true, _) => 0.96,
        (_, true) => 0.82,
        _ => 0.7,
    };
    Some((Act::Delete(i + 1, clause.end), confidence))
}

/// "cancel remind for …".
fn is_remind(clause: &Clause, i: usize) -> bool {
    clause.at(i + usize::from(lexicon::is_article(clause.at(i)))) == "remind"
}

/// "the due date from …": the field to empty and where the task is named.
fn cleared_field(clause: &Clause, i: usize) -> Option<(Field, usize)> {
    let owned = (i..clause.end.min(i + 6)).find(|k| clause.at(*k).ends_with("'s"));
    let i = i + clause
        .phrase(i, phrases!("all of | all"))
        .filter(|_| clause.has(phrases!("tags | labels | notes")))
        .unwrap_or(0);
    let article = usize::from(lexicon::is_article(clause.at(i)) || clause.at(i) == "its");
    let at = owned.map_or(i + article, |k| k + 1);
    let fields = [
        (Field::Due, phrases!("due date | deadline | due time | date of | date on | date from | date off")),
        (Field::Description, phrases!("description | notes | note | details")),
        (Field::Recurrence, phrases!("recurrence | repetition | repeat")),
        (Field::Tags, phrases!("tags | tag | labels")),
    ];
    let (field, n) = fields.iter().find_map(|(field, names)| clause.phrase(at, *names).map(|n| (*field, n)))?;
    // "remove its due date", "remove the due date": of the task in hand.
    if at + n == clause.end && article + usize::from(owned.is_some()) > 0 && !matches!(clause.at(at), "note" | "tag") {
        return Some((field, owned.map_or(clause.end, |_| i)));
    }
    let n = if clause.at(at) == "date" { 1 } else { n };
    let (of, m) = clause.seek(at + n, phrases!("from | of | for | on | off")).filter(|(of, _)| *of <= at + n + 1)?;
    Some((field, of + m))
}

pub(super) fn take_off(clause: &Clause, i: usize) -> Guess {
    if tags::spoken(clause, i + 1, tags::FROM).is_some() {
        return Some((Act::Update(Change::Untag, i + 1, clause.end), 0.9));
    }
    if let Some((field, after)) = cleared_field(clause, i + 1) {
        return Some((Act::Update(Change::Clear(field), after, clause.end), 0.88));
    }
    let (off, _) = clause.seek(i + 1, phrases!("off | out of | from | out | of"))?;
    let last = clause.at(off) == "off" && off + 1 >= clause.end;
    (clause.has_noun() || last).then_some((Act::Delete(i + 1, clause.end), 0.9))
}

/// "close out the form", "wrap up the budget task", "resolve the test task", "put a tick next to the bread".
pub(super) fn wrap_up(clause: &Clause, i: usize) -> Guess {
    const TICK: Phrases = phrases!(
        "put a tick next to | check the box next to | tick the box next to | check the box for | \
         put a tick against | put a tick by | put a check next to | put a check mark next to | \
         put a checkmark next to | put a line through | draw a line through | put a cross through | draw a line under"
    );
    const SURE: Phrases =
        phrases!("close out | close off | tick off | check off | cross off | mark off | sign off on | polish off");
    const VERBS: Phrases = phrases!(
        "close out | close off | close | wrap up | resolve | finalise | finalize | sign off | knock out | \
         file away | finish off | finish up | archive | conclude"
    );
    if let Some(n) =
        clause.phrase(i, TICK).or_else(|| clause.phrase(i, SURE).filter(|n| shape::is_definite(clause, i + n)))
    {
        return (i + n < clause.end && !clause.asked).then_some((Act::Complete(i + n, clause.end), 0.86));
    }
    let n = clause.phrase(i, VERBS)?;
    let end = clause.seek(i + n, phrases!(",")).map_or(clause.end, |(at, _)| at);
    let entry = shape::has_task(clause, i + n..end) || clause.at(end.saturating_sub(1)) == "one";
    (entry && !clause.asked && clause.dates.is_empty() && !clause.is_foreign())
        .then_some((Act::Complete(i + n, end), 0.82))
}

pub(super) fn complete(clause: &Clause, i: usize) -> Guess {
    let noun = clause.has_noun();
    if clause.is_elsewhere() || clause.at(i) == "close" && !noun || scope::is_thing(clause, i + 1) {
        return None;
    }
    if mood::is_wish(clause, i) && !noun && i + 1 < clause.end {
        return Some((Act::Create(crate::create::Form::Rest, i), 0.7));
    }
    let urgent = (i + 1..clause.end).any(|k| attributes::priority_at(clause, k).is_some());
    if clause.at(i) == "finish" && !noun && (!clause.dates.is_empty() || urgent) {
        return Some((Act::Create(crate::create::Form::Rest, i), 0.6));
    }
    Some((Act::Complete(i + 1, clause.end), if noun { 0.94 } else { 0.82 }))
}

pub(super) fn mark(clause: &Clause, i: usize) -> Guess {
    const NOT: Phrases = phrases!(
        "as not done | as not complete | as not completed | as incomplete | as pending | as undone | as open | \
         as unfinished | as to do | as todo | as not finished | not done | incomplete | pending | undone"
    );
    let is_mark = matches!(clause.at(i), "mark" | "flag");
    if is_mark && clause.seek(i + 1, NOT).is_some() {
        return Some((Act::Update(Change::Reopen, i + 1, clause.end), 0.9));
    }
    if is_mark && let Some((_, priority)) = attributes::closing_priority(clause, i + 1) {
        return Some((Act::Update(Change::Priority(priority), i + 1, clause.end), 0.9));
    }
    if clause.at(i + 1) == "off" || clause.at(i + 1) == "out" && clause.at(i) != "check" {
        return Some((Act::Complete(i + 2, clause.end), 0.93));
    }
    if shape::pointer(clause, i + 1).is_some_and(|n| clause.at(i + 1 + n) == "out" && i + 2 + n == clause.end) {
        return Some((Act::Complete(i + 1, clause.end - 1), 0.85));
    }
    if let Some(guess) = marked_done(clause, i) {
        return Some(guess);
    }
    match clause.at(i) {
        "mark"
            if clause
                .dates
                .last()
                .is_some_and(|found| found.parts.repeat.is_some() && found.tokens.end == clause.end) =>
        {
            Some((Act::Update(Change::Any, i + 1, clause.end), 0.75))
        }
        "scratch" if !clause.is_foreign() && i + 1 < clause.end => Some((Act::Delete(i + 1, clause.end), 0.7)),
        "tick" if !clause.is_foreign() && i + 1 < clause.end => Some((Act::Complete(i + 1, clause.end), 0.75)),
        "mark" if clause.has_noun() => Some((Act::Complete(i + 1, clause.end), 0.7)),
        "check" if clause.has_noun() => Some((Act::List(i + 1), 0.85)),
        _ => None,
    }
}

/// "mark … as done", "cross … off the list".
fn marked_done(clause: &Clause, i: usize) -> Guess {
    let done = phrases!("done | complete | completed | finished | finish | off");
    let k = (i + 1..clause.end).find(|k| done.contains(clause.at(*k)))?;
    let off = clause.at(k) == "off";
    if !off && clause.at(i) != "mark" {
        return None;
    }
    if clause.at(i + 1) == "as" && !off {
        return Some((Act::Complete(k + 1, clause.end), 0.9));
    }
    let end = if matches!(clause.before(k), "as" | "is" | "to") { k - 1 } else { k };
    Some((Act::Complete(i + 1, if off && k + 1 < clause.end { clause.end } else { end }), 0.94))
}

/// "I finished …", "done with …", "… is done", "the first and third are done".
pub(super) fn done(clause: &Clause, i: usize) -> Guess {
    const DONE: Phrases = phrases!(
        "i have already finished | i've already finished | i already finished | i already completed | \
         i already did | i just finished | i just completed | i just did | i have finished with | i have finished | \
         i've finished | i have completed | i've completed | i have done | i've done | i finished with | \
         i finished | i completed | i did | i'm done with | im done with | i am done with | i'm finished with | \
         i am finished with | we finished | we completed | all done with | all finished with | we're done with | \
         we are done with | all sorted with | task finished : | done with | finished with | finished | completed | \
         finshed | complted | finised | i have finish | i finish | i've finish | task done - | task done : | \
         task complete : | done - | done – | done — | finished - | finished : | completed : | i finally finished | \
         i've finally finished | finally finished | finally done with | just now completed | just completed | \
         just finished | knocked out | already finished | already completed | already did | already done | \
         already complete | done :"
    );
    if let Some(guess) = state::alone(clause, i) {
        return Some(guess);
    }
    if let Some(n) = clause.phrase(i, DONE) {
        let listing = matches!(clause.at(i), "completed" | "finished")
            && clause.noun_in(i + n..clause.end.min(i + n + 3)).is_some_and(|noun| noun.plural)
            && !shape::is_definite(clause, i + n)
            || matches!(clause.at(i), "completed" | "finished")
                && clause.noun_at(i + n).is_some_and(|noun| noun.plural);
        let asked = clause.has(phrases!("remind me | be reminded | it was")) || clause.words.at(clause.end) == "?";
        let tired = clause.before(i + n) == "with"
            && matches!(clause.at(i), "i'm" | "im" | "i" | "i've")
            && !is_finished_thing(clause, i + n);
        let fits = !listing && !asked && !tired && !clause.is_foreign() && i + n < clause.end;
        let end = clause.seek(i + n, phrases!(",")).map_or(clause.end, |(at, _)| at);
        let fits = fits && clause.at(i + n) != "not";
        return fits.then_some((Act::Complete(i + n, end), 0.85));
    }
    let number = clause.at(i + 1) == "#" || crate::numbers::figures(clause.at(i + 1)).is_some();
    if clause.at(i) == "done" && number {
        return Some((Act::Complete(i + 1, clause.end), 0.8));
    }
    state::deed(clause, i).or_else(|| state::read(clause, i))
}

/// "I'm done with the dishes", "with packing"; not "with men", "with this conversation".
fn is_finished_thing(clause: &Clause, i: usize) -> bool {
    let talk = phrases!(
        "you | this | life | people | men | women | him | her | them | conversation | chat | everything | it all | \
         today | that"
    );
    let own = shape::is_definite(clause, i) || clause.at(i).ends_with("ing") || clause.end - i == 1;
    own && (!talk.contains(clause.at(i)) || clause.has_noun())
        && !clause.has(phrases!("conversation | relationship | chat"))
}
