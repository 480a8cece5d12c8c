//! Recognises list_tasks in questions without a word for tasks: "what's left for today?", "am I behind on anything?".
//!
//! The question must be about something to do. Only a time, a tag or a position in the list may follow. "What's left of
//! the budget?" and "what do I need for lasagna?" do not match. The `asks_…` functions return the confidence, or `None`
//! if the question at `i` does not match.

use super::{CommandAction, Guess, complete_task_past, grammar};
use crate::clause::Clause;
use crate::lexicon;
use crate::tag_phrases;

/// Recognises a question that begins at `i` as a listing. Checks the status, duties, one duty, "anything", completeness
/// and tags, in this order. Returns `None` for words of other domains and plans, unless the clause also has a word for
/// a task.
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    if clause.is_out_of_scope() {
        return None;
    }
    let found = asks_for_state(clause, i)
        .or_else(|| asks_for_duties(clause, i))
        .or_else(|| asks_for_duty(clause, i))
        .or_else(|| asks_for_anything(clause, i))
        .or_else(|| asks_if_caught_up(clause, i))
        .or_else(|| asks_for_tag(clause, i));
    found.map(|confidence| (CommandAction::List(i), confidence))
}

/// Matches questions by tag: "what's in the home category", "stuff with the label music", "tag: admin". "what",
/// "stuff", "the" or a similar word must be at `i`. A word or mark for a tag and the name of one must occur. "tag:" at
/// `i` needs no name check. Any words may follow the name. The confidence is 0.8.
fn asks_for_tag(clause: &Clause, i: usize) -> Option<f64> {
    clause.phrase(i, lexicon::list_tasks::TAGGED_ASKS).filter(|_| clause.has(lexicon::tags::SIGNS))?;
    let tag = |k: usize| {
        tag_phrases::closing_tag(clause, k, clause.end).is_some()
            || tag_phrases::names_start(clause, k, clause.end)
                .is_some_and(|name| name < clause.end && tag_phrases::is_tag_name(clause, name))
    };
    let first = lexicon::tags::NOUNS.contains(clause.at(i)) && matches!(clause.at(i + 1), ":" | "=");
    (first || (i + 1..clause.end).any(tag)).then_some(0.8)
}

/// Returns true if a question about tasks can end at `i`: at the end, before a time, or before a limiting word.
fn closes_question(clause: &Clause, i: usize) -> bool {
    i >= clause.end || clause.date_at(i).is_some() || clause.phrase(i, lexicon::list_tasks::QUESTION_TAILS).is_some()
}

/// Matches questions by status: "what's due", "what is left for today", "what's tagged work", "what is most pressing".
/// The question must end after the status, or a date or a limiting word must follow. "on", "for" or "in" may stand
/// between. After "tagged", "under" and "marked", any words may follow. "what's next", "what's up next", "what's
/// first", "what's the plan" and "what's ahead" must end or precede a date. The confidence is 0.88.
fn asks_for_state(clause: &Clause, i: usize) -> Option<f64> {
    let short = matches!(clause.at(i), "what's" | "whats" | "which" | "wat's" | "who's" | "what're");
    let long = matches!(clause.at(i), "what" | "which")
        && matches!(clause.at(i + 1), "is" | "are" | "else" | "ones" | "things" | "stuff");
    if !short && !long {
        return None;
    }
    let mut body = i + 1;
    while lexicon::list_tasks::STATE_FILLERS.contains(clause.at(body))
        && body < clause.end
        && clause.phrase(body, lexicon::list_tasks::STATES).is_none()
    {
        body += 1;
    }
    let n = clause.phrase(body, lexicon::list_tasks::STATES)?;
    let after = body + n;
    let for_day = clause.phrase(after, lexicon::list_tasks::STATE_LINKS);
    let closed = closes_question(clause, after) || for_day.is_some_and(|m| closes_question(clause, after + m));
    let vague = matches!(clause.at(body), "next" | "up" | "ahead" | "the" | "first")
        && after != clause.end
        && clause.date_at(after).is_none();
    let tagged = matches!(clause.at(body), "tagged" | "under" | "marked") && after < clause.end;
    (closed && !vague || tagged).then_some(0.88)
}

/// Matches questions about duties: "what do I have to do today", "what needs doing", "what have I got on tomorrow". The
/// duty begins at most seven tokens after `i`. The question must end after it, or a date or a limiting word must
/// follow. An open duty ("do I still need to …") accepts any word. "at" and "for" may also follow a duty that begins at
/// most nine tokens before the end. Returns `None` for more than 16 tokens, and with "pay", "money", "budget" or
/// "calories". The confidence is 0.85.
fn asks_for_duties(clause: &Clause, i: usize) -> Option<f64> {
    let duty = |at: usize| {
        clause.phrase(at, lexicon::list_tasks::DUTIES).is_some_and(|n| {
            let open = matches!(
                clause.before(at + n),
                "to" | "planned" | "forget" | "the" | "forgotten" | "remember" | "plan"
            );
            closes_question(clause, at + n)
                || open && clause.words.is_word(at + n)
                || clause.phrase(at + n, lexicon::list_tasks::DUTY_TAILS).is_some() && clause.end - at <= 9
        })
    };
    let found = (i..clause.end.min(i + 8)).any(duty);
    let other = clause.has(lexicon::list_tasks::OTHER_TOPICS);
    (found && !other && clause.end - i <= 16).then_some(0.85)
}

/// Matches questions about one duty: "when am I supposed to call the notary", "who was I meant to invite", "when do I
/// need to pay the council tax". The phrase begins at most four tokens after the question word at `i`, and words follow
/// it. With "do I have to" and "do I need to", only "when" with "the" or "my" matches. "how" does not match. "I got a
/// …" ("when have I got a call") needs "due" or "to do". The confidence is 0.7.
fn asks_for_duty(clause: &Clause, i: usize) -> Option<f64> {
    if !lexicon::list_tasks::QUESTION_WORDS.contains(clause.at(i)) {
        return None;
    }
    let (at, n) = clause.find_phrase(i + 1, lexicon::list_tasks::SUPPOSED).filter(|(at, _)| *at <= i + 4)?;
    let now = clause.words.phrase(at, lexicon::list_tasks::DO_I_HAVE_TO).is_some();
    let own = (at + n..clause.end).any(|k| matches!(clause.at(k), "the" | "my")) && clause.at(i) == "when";
    let essay = clause.at(at) == "i" && clause.at(at + 1) == "got";
    let fits =
        if now { own } else { clause.at(i) != "how" && (!essay || clause.has(lexicon::list_tasks::DUE_OR_TO_DO)) };
    (fits && at + n < clause.end).then_some(0.7)
}

/// Matches questions with "anything": "anything due?", "do I have anything about the dentist", "got anything for me
/// today". A date or a word such as "due", "left", "about" or "for" must follow, possibly after "else" or "still". "did
/// I miss anything" and similar questions need nothing more. "something" and "nothing" need a question mark, and do not
/// match before "to", "on", "for" or "with". Other domains ("anything to eat") do not match. The confidence is 0.8.
fn asks_for_anything(clause: &Clause, i: usize) -> Option<f64> {
    let n = clause.phrase(i, lexicon::list_tasks::ANYTHING)?;
    let whole = clause.phrase(i, lexicon::list_tasks::MISSED).is_some();
    let after = i + n + usize::from(matches!(clause.at(i + n), "still" | "else" | "really" | "that's" | "big"));
    let fits =
        clause.phrase(after, lexicon::list_tasks::ANYTHING_TAILS).is_some() || clause.date_at(after).is_some() || whole;
    let vague = matches!(clause.at(i), "nothing" | "something" | "got") && !clause.is_question && clause.at(i) != "got"
        || matches!(clause.at(after), "to" | "on" | "for" | "with") && matches!(clause.at(i), "something" | "nothing")
        || clause.phrase(after, lexicon::list_tasks::ANYTHING_OTHER_DOMAINS).is_some();
    (fits && !vague).then_some(0.8)
}

/// Matches questions about completeness: "am I all caught up", "is everything done for today", "is that all for today".
/// The question must end, or a date or a limiting word must follow. "is that all", "is that it", "am I late" and "is
/// there more" need a date. The confidence is 0.72.
fn asks_if_caught_up(clause: &Clause, i: usize) -> Option<f64> {
    let n = clause.phrase(i, lexicon::list_tasks::CAUGHT_UP)?;
    let after = i + n + clause.phrase(i + n, lexicon::list_tasks::CAUGHT_UP_WITH).unwrap_or(0);
    let vague = clause.phrase(i, lexicon::list_tasks::IS_THAT_ALL).is_some();
    ((closes_question(clause, after) || closes_question(clause, i + n)) && (!vague || clause.date_at(after).is_some()))
        .then_some(0.72)
}

/// Returns true if entries are named without a word for a task from `i` on: "the overdue ones", "things due on
/// Saturday", "stuff to do", "everything tagged garden", "overdue?". Fillers ("the", "all"), limits ("overdue") and
/// dates may come first. If a limit is among them, they may fill the rest or precede a word that can end a question
/// ("now", "please"). After a limit, a word for things ("ones", "stuff") needs such a word, a date or the end after it.
/// Without a limit too, "due", "to do", "tagged" or a similar word after it suffices. So does a date or a tag, except
/// for "one", "work", "anything" and "what".
pub(super) fn names_entries(clause: &Clause, i: usize) -> bool {
    let mut at = i;
    let mut limited = false;
    while at < clause.end {
        if let Some(n) = clause.phrase(at, lexicon::list_tasks::ENTRY_FILLERS) {
            at += n;
        } else if let Some(n) = clause.phrase(at, lexicon::list_tasks::LIMITS) {
            limited = true;
            at += n;
        } else if let Some(found) = clause.date_at(at).filter(|found| found.tokens.start == at) {
            at = found.tokens.end;
        } else {
            break;
        }
    }
    if at >= clause.end || clause.at(at) == "?" {
        return limited && clause.end > i;
    }
    let Some(n) = clause.phrase(at, lexicon::list_tasks::THINGS) else {
        return limited && (closes_question(clause, at) && clause.at(at) != "and" && clause.at(at) != "but");
    };
    let after = at + n;
    let rest = clause.phrase(after, lexicon::list_tasks::ENTRY_LINKS).unwrap_or(0);
    let dated = clause.date_at(after + rest).is_some() && after + rest < clause.end;
    let marked = clause.phrase(after, lexicon::list_tasks::AFTER_ENTRIES).is_some();
    let tag = clause.at(after) == "#" || clause.at(after + rest) == "#";
    limited && closes_question(clause, after)
        || marked
        || (dated || tag) && !matches!(clause.at(at), "one" | "work" | "anything" | "what")
}

/// Recognises a noun phrase that names entries (0.66): "the overdue ones", "what about the urgent ones". See
/// [`names_entries`]. "filter by …" needs no further evidence (0.75). A pronoun or a word for "finished" alone does not
/// match. Up to two tokens that begin with "done", "urgent", "due" or a similar state match only as a question. Returns
/// `None` for other domains and plans.
pub(super) fn recognise_fragment(clause: &Clause) -> Guess {
    let i = clause.start + clause.phrase(clause.start, lexicon::list_tasks::FRAGMENT_LEADS).unwrap_or(0);
    if clause.phrase(clause.start, lexicon::list_tasks::FRAGMENTS).is_some() && i < clause.end {
        return Some((CommandAction::List(i), 0.75));
    }
    let state = complete_task_past::finished_length(clause, i).is_some() || grammar::is_pronoun(clause.at(i));
    let done =
        matches!(clause.at(i), "done" | "finished" | "completed" | "due" | "urgent" | "important" | "late" | "other")
            && !clause.is_question
            && clause.end - i <= 2;
    let alone = state && clause.end - i < 2;
    (!alone && !done && !clause.is_out_of_scope() && names_entries(clause, i)).then_some((CommandAction::List(i), 0.66))
}
