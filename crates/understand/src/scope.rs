//! Words of other domains (weather, music, money, travel, messages …). A sentence with such a word is not about tasks,
//! unless it also contains a word for a task.

use crate::clause::Clause;
use crate::lexicon;
use crate::vocabulary::{self, Noun};

/// Returns true if the object at `i` cannot be a task: "this song", "alarm for 7", "milk to my cart". It begins with
/// media, messages or alarms within three tokens, after articles and "new". Without an article or "new", a connective
/// ("for", "at"), a mark or the end must follow, so "email Bob" is a task. Or a place such as "playlist" or "cart" is
/// one of the four tokens after the last "to", "on" or "in" of the clause. "to" after "listen", "reply" and similar
/// verbs does not count there. False if the clause contains a noun for a task.
pub(crate) fn is_other_object(clause: &Clause, i: usize) -> bool {
    if clause.has_noun() {
        return false;
    }
    let is_phrasal = |k: usize| matches!(clause.before(k), "listen" | "reply" | "respond" | "subscribe" | "go");
    let preposition =
        (i + 1..clause.end).rev().find(|k| matches!(clause.at(*k), "to" | "on" | "in" | "into") && !is_phrasal(*k));
    let placed = preposition.is_some_and(|to| {
        (to + 1..clause.end.min(to + 5)).any(|k| lexicon::scope::MEDIA_PLACES.contains(clause.at(k)))
    });
    let start = (i..clause.end.min(i + 3))
        .find(|k| !vocabulary::is_article(clause.at(*k)) && clause.at(*k) != "new")
        .unwrap_or(clause.end);
    // "email" before a name is an activity: "email Bob".
    let ends = |at: usize| start > i || !clause.words.is_word(at) || at >= clause.end || is_connective(clause.at(at));
    placed || clause.phrase(start, lexicon::scope::MEDIA).is_some_and(|n| ends(start + n))
}

fn is_connective(word: &str) -> bool {
    matches!(word, "for" | "to" | "at" | "on" | "called" | "named" | "by" | "from" | "in")
}

/// Returns true if the object at `i` belongs to a computer, a shop or a phone: "the photo", "my cart", "this file". The
/// object ends before a mark, a preposition, "and", "so", "please" or a date. It has at most two tokens, or four if it
/// begins with an article, and its last word decides. A quoted object and a clause with a noun for a task do not count.
/// A place at the end ("to my cart", "in the folder") counts even next to such a noun. It needs "to", "from", "in",
/// "as" or "into" and an article. False if the text assumes tasks.
pub(crate) fn is_other_thing(clause: &Clause, i: usize) -> bool {
    if clause.words.assume_tasks {
        return false;
    }
    let joint = |k: &usize| {
        !clause.words.is_word(*k)
            || matches!(
                clause.at(*k),
                "to" | "from" | "with" | "for" | "on" | "in" | "as" | "off" | "into" | "and" | "at" | "so" | "please"
            )
            || clause.date_at(*k).is_some()
    };
    let end = (i..clause.end).find(joint).unwrap_or(clause.end);
    let head = clause.at(end.saturating_sub(1));
    let named = end > i
        && end - i <= 4
        && lexicon::scope::OTHER_THINGS.contains(head)
        && !clause.words.is_quoted(i)
        && !clause.has_noun();
    let verbless = end == i || vocabulary::is_article(clause.at(i)) || end - i <= 2;
    let preposition = (end..clause.end).rev().find(|k| matches!(clause.at(*k), "to" | "from" | "in" | "as" | "into"));
    let placed = preposition.is_some_and(|at| {
        let own = vocabulary::is_article(clause.at(at + 1));
        own && (at + 2..clause.end.min(at + 6)).any(|k| {
            clause.phrase(k, lexicon::scope::OTHER_PLACES).is_some_and(|n| clause.is_exhausted(k + n..clause.end))
        })
    });
    named && verbless || placed
}

/// Returns true if the clause is source code or a query. Any "<" suffices. "++" needs ";", "(", "\[", a brace or
/// "where". "=" needs one of these and no "->". Both braces also suffice.
pub(crate) fn is_code(clause: &Clause) -> bool {
    if !clause.has(lexicon::scope::CODE_SIGNS) {
        return false;
    }
    let assigns = clause.has(lexicon::scope::CODE_ASSIGNMENT);
    let marks = clause.has(lexicon::scope::CODE_PUNCTUATION) || clause.words.at(clause.end) == ";";
    clause.has(lexicon::scope::CODE_OPERATORS) && marks
        || assigns && marks && !clause.has(lexicon::scope::CODE_ARROW)
        || clause.has(lexicon::scope::CODE_OPEN_BRACE) && clause.has(lexicon::scope::CODE_CLOSE_BRACE)
}

/// Returns true if the word belongs to another domain or names a plan.
pub(crate) fn is_out_of_scope_word(word: &str) -> bool {
    lexicon::scope::OTHER_DOMAINS.contains(word) || lexicon::scope::PLANS.contains(word)
}

/// Returns true if a "list" in the clause contains songs or names.
pub(crate) fn is_other_list(clause: &Clause) -> bool {
    clause.has(lexicon::scope::OTHER_LISTS)
}

/// Returns true if the clause asks to buy the items of a list. False if its first noun is a reminder.
pub(crate) fn is_purchase(clause: &Clause) -> bool {
    clause.has(lexicon::scope::ORDERS)
        && clause.noun_in(clause.start..clause.end).is_some_and(|noun| noun.noun != Noun::Reminder)
}

/// Returns true if an "alert" in the clause is a public warning and not a reminder.
pub(crate) fn is_warning(clause: &Clause) -> bool {
    clause.has(lexicon::scope::WARNING_TOPICS)
}

/// Returns true for a list of something else than tasks: "make me a list of the top ten songs", "get me a list of
/// restaurants". The clause begins with a verb of making or getting within three tokens before "a list of". Words for a
/// task, "my" and "I" after it name the own list.
pub(crate) fn is_list_of_others(clause: &Clause) -> bool {
    if clause.words.assume_tasks {
        return false;
    }
    let Some(list) =
        clause.noun_in(clause.start..clause.end.min(clause.start + 6)).filter(|noun| noun.noun == Noun::List)
    else {
        return false;
    };
    let asked = matches!(
        clause.at(clause.start),
        "make"
            | "get"
            | "give"
            | "create"
            | "find"
            | "write"
            | "need"
            | "want"
            | "generate"
            | "show"
            | "send"
            | "compile"
            | "build"
            | "list"
            | "have"
            | "start"
            | "a"
            | "provide"
            | "i"
    );
    let article = matches!(clause.before(list.at), "a" | "new" | "another" | "me") || clause.at(clause.start) == "list";
    let own = (list.end..clause.end).any(|i| {
        matches!(
            clause.at(i),
            "my" | "i"
                | "i'm"
                | "i've"
                | "our"
                | "we"
                | "due"
                | "overdue"
                | "everything"
                | "all"
                | "stuff"
                | "chores"
                | "errands"
                | "pending"
                | "done"
                | "completed"
        )
    }) || clause.nouns_in(list.end..clause.end).any(|noun| noun.noun != Noun::List)
        || (list.end..clause.end).any(|i| clause.at(i) == "things" && clause.at(i + 1) == "to");
    asked && article && clause.at(list.end) == "of" && list.end + 1 < clause.end && !own
}

/// Returns true if the clause begins like a statement about people or the weather: "we're out of milk", "it's raining".
pub(crate) fn is_statement_about_people(clause: &Clause) -> bool {
    matches!(
        clause.words.at(clause.outer_start),
        "we're" | "i'm" | "he's" | "she's" | "they're" | "it's" | "there's" | "you're" | "he" | "she" | "they"
    ) && !(clause.outer_start..clause.end).any(|i| {
        matches!(
            clause.words.at(i),
            "need"
                | "needs"
                | "must"
                | "have"
                | "has"
                | "essential"
                | "important"
                | "supposed"
                | "due"
                | "meant"
                | "going"
        )
    })
}
