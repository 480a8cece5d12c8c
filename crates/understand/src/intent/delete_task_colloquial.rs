//! Recognises delete_task in colloquial commands and statements: "get rid of the gym task", "I don't need to call mum
//! anymore", "off the list with the milk", "the party is off".
//!
//! Most of these verbs mean something else by themselves ("cut the cake", "lose weight"): they count only where a word
//! for a task, an entry of the list or the list itself stands beside them.

use super::{Act, Guess, grammar, verb_at};
use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::{Noun, Verb};

/// How many tokens a verb of deleting takes at `i`, whichever it is.
pub(super) fn verb_length(clause: &Clause, i: usize) -> Option<usize> {
    let n = clause
        .phrase(i, lexicon::delete_task::COLLOQUIAL)
        .or_else(|| (verb_at(clause, i) == Some(Verb::Delete)).then_some(1));
    n.or_else(|| (clause.at(i) == "take" || clause.at(i) == "get").then_some(1).filter(|_| is_off_verb(clause, i + 1)))
}

/// "it off", "them off the list".
fn is_off_verb(clause: &Clause, i: usize) -> bool {
    grammar::pointer(clause, i).is_some_and(|n| matches!(clause.at(i + n), "off" | "away" | "out"))
}

pub(super) fn recognise(clause: &Clause, i: usize) -> Guess {
    recognise_verb(clause, i)
        .or_else(|| recognise_off_list(clause, i))
        .or_else(|| recognise_unneeded(clause, i))
        .or_else(|| recognise_no_reminder(clause, i))
        .or_else(|| recognise_may_go(clause, i))
}

/// "ditch the juggling task", "bin the ebay one", "rm 3".
fn recognise_verb(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::delete_task::COLLOQUIAL)?;
    let from = i + n;
    if verb_at(clause, i).is_some_and(|verb| verb == Verb::Delete) || from >= clause.end || clause.asked {
        return None;
    }
    let until = clause.seek(from, lexicon::delete_task::OBJECT_STOPS).map_or(clause.end, |(at, _)| at);
    let entry = grammar::names_entry(clause, from..until);
    let short = matches!(clause.at(i), "rm" | "del" | "rmv" | "delet");
    let definite = clause.phrase(i, lexicon::delete_task::COLLOQUIAL_ANY).is_some()
        && grammar::is_definite(clause, from)
        && clause.dates.is_empty();
    // "forget it", "forget that" take back what was said last and name nothing.
    let vague = matches!(clause.at(i), "forget" | "never" | "nevermind" | "nvm" | "call")
        && (grammar::pointer(clause, from).is_some_and(|n| from + n >= until)
            || matches!(clause.at(from), "me" | "you"));
    let gerund = matches!(clause.at(i), "forget") && clause.at(from).ends_with("ing");
    let fits = entry || short || definite || gerund;
    let reworded = matches!(clause.at(i), "cut" | "end" | "pull" | "skip" | "lose" | "leave" | "quit" | "drop")
        && !grammar::is_definite(clause, from);
    if !fits || vague || reworded || clause.is_foreign() || is_field(clause, from) {
        return None;
    }
    Some((Act::Delete(from, until), if entry { 0.85 } else { 0.66 }))
}

/// A field of a task goes, not the task.
fn is_field(clause: &Clause, i: usize) -> bool {
    (i..clause.end.min(i + 5)).any(|k| lexicon::delete_task::FIELDS.contains(clause.at(k)))
}

/// "get that off my list", "cut the vinegar from my list", "off the list with the spinach", "from my tasks take out …".
fn recognise_off_list(clause: &Clause, i: usize) -> Guess {
    if let Some(n) = clause.phrase(i, lexicon::delete_task::OFF_THE_LIST_WITH).filter(|_| clause.has_noun()) {
        return Some((Act::Delete(i + n, clause.end), 0.8));
    }
    let tail =
        clause.seek(i + 1, lexicon::delete_task::OFF_THE_LIST).filter(|(at, n)| at + n == clause.end && *at <= i + 6);
    let plain = |k: usize| {
        clause.words.is_word(k) && !grammar::is_pronoun(clause.at(k)) && !lexicon::grammar::VERBS.contains(clause.at(k))
    };
    if let Some((at, _)) = tail.filter(|(at, _)| verb_at(clause, i).is_none() && (i..*at).all(plain)) {
        let from = i + clause.phrase(i, lexicon::delete_task::COLLOQUIAL).unwrap_or(0);
        return (from < at && !clause.asked).then_some((Act::Delete(from, at), 0.7));
    }
    if !lexicon::delete_task::OFF_VERBS.contains(clause.at(i)) {
        return None;
    }
    let (at, n) = clause.seek(i + 2, lexicon::delete_task::OFF)?;
    let noun =
        clause.noun_in(at + n..clause.end.min(at + n + 5)).filter(|noun| noun.noun == Noun::List || noun.plural)?;
    let straight = !(at + n..noun.at).any(|k| matches!(clause.at(k), "to" | "and" | "for"));
    (straight && !clause.is_elsewhere()).then_some((Act::Delete(i + 1, clause.end), 0.82))
}

/// "I don't need to call the plumber anymore", "no need to book the van any more", "we don't have to … after all".
fn recognise_unneeded(clause: &Clause, i: usize) -> Guess {
    let n = clause.phrase(i, lexicon::delete_task::UNNEEDED)?;
    let from = i + n;
    let told = matches!(clause.before(from), "me" | "reminding" | "keep") && n > 2;
    let longer = (i..from).any(|k| clause.at(k) == "longer");
    let over = clause
        .seek(from, lexicon::grammar::ANY_MORE)
        .filter(|(at, m)| at + m == clause.end || !clause.words.is_word(at + m));
    let doing = super::is_doing(clause, from) || clause.at(from).ends_with("ing") || grammar::is_definite(clause, from);
    let fits = told
        || over.is_some_and(|(at, _)| clause.at(at) != "now") && doing
        || longer && doing && !matches!(clause.at(i + 1), "not")
        || clause.nouns_in(from..clause.end).any(|noun| noun.noun == Noun::Reminder) && clause.before(from) != "to"
        || clause.before(from) == "for" && (clause.has_noun() || over.is_some());
    let weak = matches!(clause.at(i), "not") && over.is_none();
    let knows = clause.phrase(from, lexicon::delete_task::NOT_TASKS).is_some() && over.is_none();
    if !fits || weak || knows || clause.asked || clause.is_foreign() && !told && !longer {
        return None;
    }
    let lead = clause.phrase(from, lexicon::delete_task::UNNEEDED_LINKS).unwrap_or(0);
    let end = over.map_or(clause.end, |(at, _)| at);
    (from + lead < end).then_some((Act::Delete(from + lead, end), 0.78))
}

/// "don't bother reminding me of the parade", "I no longer want to be reminded about the gym".
fn recognise_no_reminder(clause: &Clause, i: usize) -> Guess {
    let (not, _) = clause.seek(i, lexicon::delete_task::NEGATIONS).filter(|(at, _)| *at <= i + 3)?;
    let (at, n) = clause.seek(not, lexicon::delete_task::REMINDED).filter(|(at, _)| *at <= not + 6)?;
    let straight = (not..at)
        .all(|k| clause.words.is_word(k) && !matches!(clause.at(k), "forget" | "miss" | "so" | "and" | "let" | "you"));
    let about = clause.phrase(at + n, lexicon::grammar::OF_TASK)?;
    let from = at + n + about;
    (straight && from < clause.end && !clause.asked).then_some((Act::Delete(from, clause.end), 0.8))
}

/// "the gym reminder can go", "both reminders should be dropped", "this one isn't needed".
fn recognise_may_go(clause: &Clause, i: usize) -> Guess {
    if i != clause.start && !grammar::is_definite(clause, i) {
        return None;
    }
    let Gone { at, end, news } = gone(clause, i + 1)?;
    let tail = clause.is_spent(end..clause.end) || clause.phrase(end, lexicon::delete_task::GO_TAILS).is_some();
    let entry = grammar::names_entry(clause, i..at);
    let subject = grammar::is_definite(clause, i) || matches!(clause.at(i), "everything" | "any");
    let listed = clause.phrase(end, lexicon::delete_task::FROM_THE_LIST).is_some();
    let asked = clause.asked && !matches!(clause.words.before(i), "could" | "can");
    let fits = tail && subject && (entry || listed || !news) && at <= i + 9 && !asked && !clause.is_elsewhere();
    fits.then_some((Act::Delete(i, at), if entry { 0.8 } else { 0.66 }))
}

/// Words that say that something may go.
struct Gone {
    at: usize,
    end: usize,
    /// Whether they may be news of the thing itself, such as "the party is off", and not speak of its task.
    news: bool,
}

fn gone(clause: &Clause, from: usize) -> Option<Gone> {
    if let Some((at, n)) = grammar::passive(clause, from, lexicon::delete_task::PARTICIPLES) {
        // "should be deleted" is a wish, "was cancelled" is news, "was deleted" is neither.
        let past = lexicon::delete_task::AUXILIARIES.contains(clause.at(at)) && clause.at(at + 1) != "to";
        if !past || matches!(clause.before(at + n), "cancelled" | "canceled") {
            return Some(Gone { at, end: at + n, news: past });
        }
    }
    let news = clause.seek(from, lexicon::delete_task::GONE_NEWS);
    let (at, n) =
        [news, clause.seek(from, lexicon::delete_task::GONE)].into_iter().flatten().min_by_key(|(at, _)| *at)?;
    let news = news.is_some_and(|(first, _)| first == at);
    Some(Gone { at, end: at + n, news })
}

pub(super) fn recognise_get_rid_of(clause: &Clause, i: usize) -> Guess {
    let n = clause
        .phrase(i, lexicon::delete_task::GET_RID_OF)
        .filter(|_| !clause.has(lexicon::delete_task::NOTIFICATIONS_FOR))?;
    let last = clause.at(i + n - 1);
    let reminder = clause.nouns_in(i..clause.end).any(|noun| noun.noun != Noun::List || clause.at(i) == "get");
    let off = matches!(clause.at(i), "turn" | "shut" | "switch" | "no" | "take" | "throw" | "toss" | "clean" | "hold");
    let sure =
        if off { reminder } else { clause.has_noun() || matches!(last, "me" | "reminded") || clause.at(i) == "get" };
    let lead = clause.phrase(i + n, lexicon::delete_task::GONE_LINKS).unwrap_or(0);
    let told = matches!(last, "me" | "reminded") && (clause.words.is_word(i + n) || clause.words.is_quoted(i + n));
    let sure = sure && (told || !matches!(last, "me" | "reminded"));
    (sure && (told || !clause.is_foreign())).then_some((Act::Delete(i + n + lead, clause.end), 0.85))
}
