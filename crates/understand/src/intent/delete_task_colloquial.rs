//! Recognises delete_task in colloquial commands and statements: "get rid of the gym task", "I don't need to call mum
//! anymore", "off the list with the milk", "the party is off".
//!
//! Most of these verbs have other meanings ("cut the cake", "lose weight"). They count only next to a word for a task,
//! an entry or a list. An *entry* is "one", "the second", "number 3" and similar words. A *definite* object begins with
//! "the", "my", "it", a quote, a number, a name or a word for a task. The rules take the start `i` of the words. They
//! return the action with its confidence, or `None` if they do not match.

use super::{CommandAction, Guess, grammar, verb_at};
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::{Noun, Verb};

/// Returns the number of tokens of any verb of deleting at `i`, colloquial ("get rid of") or plain ("delete"). "take"
/// and "get" count only before a pronoun and "off", "away" or "out". Returns `None` for other words.
pub(super) fn verb_length(clause: &Clause, i: usize) -> Option<usize> {
    let n = clause
        .phrase(i, lexicon::delete_task::COLLOQUIAL)
        .or_else(|| (verb_at(clause, i) == Some(Verb::Delete)).then_some(1));
    n.or_else(|| (clause.at(i) == "take" || clause.at(i) == "get").then_some(1).filter(|_| is_off_verb(clause, i + 1)))
}

/// Returns true for a pronoun and "off", "away" or "out" at `i`: "it off", "them off the list".
fn is_off_verb(clause: &Clause, i: usize) -> bool {
    grammar::pronoun_length(clause, i).is_some_and(|n| matches!(clause.at(i + n), "off" | "away" | "out"))
}

/// The confidence of a deletion that only news about the event implies: "the gym is off".
pub(crate) const NEWS_CONFIDENCE: f64 = 0.62;

/// Recognises a colloquial command or statement at `i`.
pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    recognise_to_trash(clause, i)
        .or_else(|| recognise_verb(clause, i))
        .or_else(|| recognise_off_list(clause, i))
        .or_else(|| recognise_unneeded(clause, i))
        .or_else(|| recognise_no_reminder(clause, i))
        .or_else(|| recognise_may_go(clause, i))
}

/// Recognises "move the report to the trash", "throw the gym in the bin" (0.85). The place must end the clause.
fn recognise_to_trash(clause: &Clause, i: usize) -> Guess {
    if !matches!(clause.at(i), "move" | "put" | "throw" | "send" | "chuck" | "toss" | "drag" | "drop") {
        return None;
    }
    let place = clause.end.checked_sub(1).filter(|k| matches!(clause.at(*k), "trash" | "bin" | "wastebasket"))?;
    let at = place - usize::from(clause.before(place) == "the");
    let lead = at.checked_sub(1).filter(|k| *k > i + 1 && matches!(clause.at(*k), "to" | "in" | "into"))?;
    (!clause.is_question).then_some((CommandAction::Delete(i + 1, lead), 0.86))
}

/// Recognises "ditch the juggling task", "bin the ebay one", "rm 3". The object ends before a comma, "because", "since"
/// or "before". Most verbs need a word for a task or an entry (0.85). "bin", "scrap", "forget" and similar verbs accept
/// any definite object without a date (0.66). "rm", "del" and misspellings accept anything, "forget" also a word in
/// "ing". "cut", "end", "skip", "lose" and similar verbs always need a definite object. Returns `None` for plain verbs
/// of deleting, questions, fields of a task, other domains, plans, and "forget it".
fn recognise_verb(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::delete_task::COLLOQUIAL)?;
    let from = i + n;
    if verb_at(clause, i).is_some_and(|verb| verb == Verb::Delete) || from >= clause.end || clause.is_question {
        return None;
    }
    let until = clause.find_phrase(from, lexicon::delete_task::OBJECT_STOPS).map_or(clause.end, |(at, _)| at);
    let entry = grammar::names_entry(clause, from..until);
    let short = matches!(clause.at(i), "rm" | "del" | "rmv" | "delet");
    let definite = clause.phrase(i, lexicon::delete_task::COLLOQUIAL_ANY).is_some()
        && grammar::is_definite(clause, from)
        && clause.dates.is_empty();
    // "forget it" and "forget that" cancel the dialog and name no task.
    let vague = matches!(clause.at(i), "forget" | "never" | "nevermind" | "nvm" | "call")
        && (grammar::pronoun_length(clause, from).is_some_and(|n| from + n >= until)
            || matches!(clause.at(from), "me" | "you"));
    let gerund = matches!(clause.at(i), "forget") && clause.at(from).ends_with("ing");
    let fits = entry || short || definite || gerund;
    let reworded = matches!(clause.at(i), "cut" | "end" | "pull" | "skip" | "lose" | "leave" | "quit" | "drop")
        && !grammar::is_definite(clause, from);
    if !fits || vague || reworded || clause.is_out_of_scope() || is_field(clause, from) {
        return None;
    }
    Some((CommandAction::Delete(from, until), if entry { 0.85 } else { 0.66 }))
}

/// Returns true if one of the five tokens from `i` on is a field of a task, such as its date.
fn is_field(clause: &Clause, i: usize) -> bool {
    (i..clause.end.min(i + 5)).any(|k| lexicon::delete_task::FIELDS.contains(clause.at(k)))
}

/// Recognises three forms. "off the list with the spinach" needs a word for a task (0.8). "milk off the list" must end
/// the clause (0.7). Its title has one to six words without verbs and pronouns, and it is no question. "get that off my
/// list", "cut the vinegar from my tasks" need a list or a plural within five tokens after "off" (0.82). Between them,
/// "to", "and" and "for" are not allowed, and words of other domains exclude it.
fn recognise_off_list(clause: &Clause, i: usize) -> Guess {
    if let Some(n) = clause.phrase(i, lexicon::delete_task::OFF_THE_LIST_WITH).filter(|_| clause.has_noun()) {
        return Some((CommandAction::Delete(i + n, clause.end), 0.8));
    }
    let tail = clause
        .find_phrase(i + 1, lexicon::delete_task::OFF_THE_LIST)
        .filter(|(at, n)| at + n == clause.end && *at <= i + 6);
    let plain = |k: usize| {
        clause.words.is_word(k) && !grammar::is_pronoun(clause.at(k)) && !lexicon::grammar::VERBS.contains(clause.at(k))
    };
    if let Some((at, _)) = tail.filter(|(at, _)| verb_at(clause, i).is_none() && (i..*at).all(plain)) {
        let from = i + clause.phrase(i, lexicon::delete_task::COLLOQUIAL).unwrap_or(0);
        return (from < at && !clause.is_question).then_some((CommandAction::Delete(from, at), 0.7));
    }
    if !lexicon::delete_task::OFF_VERBS.contains(clause.at(i)) {
        return None;
    }
    let (at, n) = clause.find_phrase(i + 2, lexicon::delete_task::OFF)?;
    let noun =
        clause.noun_in(at + n..clause.end.min(at + n + 5)).filter(|noun| noun.noun == Noun::List || noun.plural)?;
    let straight = !(at + n..noun.at).any(|k| matches!(clause.at(k), "to" | "and" | "for"));
    (straight && !clause.is_other_domain()).then_some((CommandAction::Delete(i + 1, clause.end), 0.82))
}

/// Recognises "I don't need to call the plumber anymore", "no need to book the van any more", "we don't have to … after
/// all" (0.78). The object ends before "anymore". An activity, a word in "ing" or a definite object needs "anymore",
/// "after all" or "no longer". "remind me" in the phrase and a reminder ("I don't need the gym reminder") need neither.
/// "no use for …" needs a word for a task or "anymore". Without these the clause is only a remark. "not …" always needs
/// "anymore". So do "I don't need to know", "… that" and similar objects. Returns `None` for questions. Words of other
/// domains and plans exclude it, except with "remind me" or "no longer".
fn recognise_unneeded(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::delete_task::UNNEEDED)?;
    let from = i + n;
    let is_reminder = matches!(clause.before(from), "me" | "reminding" | "keep") && n > 2;
    let longer = (i..from).any(|k| clause.at(k) == "longer");
    let over = clause
        .find_phrase(from, lexicon::grammar::ANY_MORE)
        .filter(|(at, m)| at + m == clause.end || !clause.words.is_word(at + m));
    let doing =
        super::is_activity(clause, from) || clause.at(from).ends_with("ing") || grammar::is_definite(clause, from);
    let fits = is_reminder
        || over.is_some_and(|(at, _)| clause.at(at) != "now") && doing
        || longer && doing && !matches!(clause.at(i + 1), "not")
        || clause.nouns_in(from..clause.end).any(|noun| noun.noun == Noun::Reminder) && clause.before(from) != "to"
        || clause.before(from) == "for" && (clause.has_noun() || over.is_some());
    let weak = matches!(clause.at(i), "not") && over.is_none();
    let is_other = clause.phrase(from, lexicon::delete_task::NOT_TASKS).is_some() && over.is_none();
    if !fits || weak || is_other || clause.is_question || clause.is_out_of_scope() && !is_reminder && !longer {
        return None;
    }
    let lead = clause.phrase(from, lexicon::delete_task::UNNEEDED_LINKS).unwrap_or(0);
    let end = over.map_or(clause.end, |(at, _)| at);
    (from + lead < end).then_some((CommandAction::Delete(from + lead, end), 0.78))
}

/// Recognises "don't bother reminding me of the parade", "I no longer want to be reminded about the gym" (0.8). The
/// negation begins at most three tokens after `i`, and "remind me" at most six tokens after it. "forget", "miss", "so",
/// "and", "let", "you" and marks must not stand between. "to", "of", "about", "that" or "for" and a task must follow.
/// Returns `None` for questions. Other domains match.
fn recognise_no_reminder(clause: &Clause, i: usize) -> Guess {
    let (not, _) = clause.find_phrase(i, lexicon::delete_task::NEGATIONS).filter(|(at, _)| *at <= i + 3)?;
    let (at, n) = clause.find_phrase(not, lexicon::delete_task::REMINDED).filter(|(at, _)| *at <= not + 6)?;
    let straight = (not..at)
        .all(|k| clause.words.is_word(k) && !matches!(clause.at(k), "forget" | "miss" | "so" | "and" | "let" | "you"));
    let about = clause.phrase(at + n, lexicon::grammar::OF_TASK)?;
    let from = at + n + about;
    (straight && from < clause.end && !clause.is_question).then_some((CommandAction::Delete(from, clause.end), 0.8))
}

/// Recognises "the gym reminder can go", "both reminders should be dropped", "this one isn't needed": 0.8 with a word
/// for a task or an entry, else 0.66. News about an event ("the party is off", "can go") counts only with a word for a
/// task, an entry or "from the list". The subject must be definite, "everything" or "any", with up to nine tokens. The
/// clause must end after the phrase, or "anymore", "now", a comma or a similar word must directly follow. Returns
/// `None` for other domains, and for questions except after "can" and "could".
fn recognise_may_go(clause: &Clause, i: usize) -> Guess {
    if i != clause.start && !grammar::is_definite(clause, i) {
        return None;
    }
    let Removal { at, end, is_news } = find_removal(clause, i + 1)?;
    let tail = clause.is_exhausted(end..clause.end) || clause.phrase(end, lexicon::delete_task::GO_TAILS).is_some();
    let entry = grammar::names_entry(clause, i..at);
    let subject = grammar::is_definite(clause, i) || matches!(clause.at(i), "everything" | "any");
    let listed = clause.phrase(end, lexicon::delete_task::FROM_THE_LIST).is_some();
    let asked = clause.is_question && !matches!(clause.words.before(i), "could" | "can");
    // "the gym is off" ends the sentence and names the task by "the" or "my".
    let off = clause.at(at) == "is"
        && clause.at(at + 1) == "off"
        && clause.is_exhausted(end..clause.end)
        && matches!(clause.at(i), "the" | "my")
        && at <= i + 5
        && !clause.is_out_of_scope();
    if off && !entry {
        return (!clause.is_question).then_some((CommandAction::Delete(i, at), NEWS_CONFIDENCE));
    }
    let fits = tail && subject && (entry || listed || !is_news) && at <= i + 9 && !asked && !clause.is_other_domain();
    fits.then_some((CommandAction::Delete(i, at), if entry { 0.8 } else { 0.66 }))
}

/// A phrase that means that something can be removed.
struct Removal {
    /// The first token of the phrase.
    at: usize,
    /// The position after the phrase.
    end: usize,
    /// True if the phrase may describe the event and not its task: "the party is off".
    is_news: bool,
}

/// Returns the first phrase at or after `from` that means that something can be removed. A passive ("should be
/// deleted") takes precedence over "isn't needed", "can go" and "is off". "was cancelled", "is off" and "can go" are
/// news about the event. "was deleted" reports a fact and does not count. Returns `None` if there is no such phrase.
fn find_removal(clause: &Clause, from: usize) -> Option<Removal> {
    if let Some((at, n)) = grammar::find_passive(clause, from, lexicon::delete_task::PARTICIPLES) {
        // "should be deleted" is a request, "was cancelled" describes the event, "was deleted" is neither.
        let past = lexicon::delete_task::AUXILIARIES.contains(clause.at(at)) && clause.at(at + 1) != "to";
        if !past || matches!(clause.before(at + n), "cancelled" | "canceled") {
            return Some(Removal { at, end: at + n, is_news: past });
        }
    }
    let is_news = clause.find_phrase(from, lexicon::delete_task::CANCELLATION_STATEMENTS);
    let (at, n) = [is_news, clause.find_phrase(from, lexicon::delete_task::REMOVAL_STATEMENTS)]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)?;
    let is_news = is_news.is_some_and(|(first, _)| first == at);
    Some(Removal { at, end: at + n, is_news })
}

/// Recognises "get rid of …", "no more …", "stop reminding me …", "I don't need …" (0.85). "get" and phrases with
/// "remind me" need no word for a task; the latter need an object. "turn off", "no …" (also "no need to remind me"),
/// "throw out", "take away" and similar phrases need a task or a reminder; a list does not count. All other phrases
/// need a word for a task. Returns `None` for other domains and plans unless it is "remind me", and with "notifications
/// for". Questions match.
pub(super) fn recognise_get_rid_of(clause: &Clause, i: usize) -> Guess {
    let n = clause
        .phrase(i, lexicon::delete_task::GET_RID_OF)
        .filter(|_| !clause.has(lexicon::delete_task::NOTIFICATIONS_FOR))?;
    let last = clause.at(i + n - 1);
    let reminder = clause.nouns_in(i..clause.end).any(|noun| noun.noun != Noun::List || clause.at(i) == "get");
    let off = matches!(clause.at(i), "turn" | "shut" | "switch" | "no" | "take" | "throw" | "toss" | "clean" | "hold");
    let sure =
        if off { reminder } else { clause.has_noun() || matches!(last, "me" | "reminded") || clause.at(i) == "get" };
    let lead = clause.phrase(i + n, lexicon::delete_task::REMOVAL_LINKS).unwrap_or(0);
    let is_reminder =
        matches!(last, "me" | "reminded") && (clause.words.is_word(i + n) || clause.words.is_quoted(i + n));
    let sure = sure && (is_reminder || !matches!(last, "me" | "reminded"));
    (sure && (is_reminder || !clause.is_out_of_scope()))
        .then_some((CommandAction::Delete(i + n + lead, clause.end), 0.85))
}
