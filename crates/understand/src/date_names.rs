//! Recognises dates and repetitions that are part of a name: "the weekly report", "saturday match", "Black Friday".
//!
//! A frequency or a day counts as a date only where the grammar makes it one: "every week", "on saturday", "weekly" at
//! the end. Where both are possible, it is a name.

use std::ops::Range;

use crate::dates::{self, DateMatch};
use crate::lexicon;
use crate::tokens::TokenizedText;
use crate::vocabulary::{self, Noun, Verb};

/// Returns true if a date is part of a name. `clause` are the tokens of the clause without courtesies.
pub(crate) fn is_part_of_name(words: &TokenizedText, clause: Range<usize>, found: &DateMatch) -> bool {
    is_called(words, found) || is_capitalised_name(words, clause.clone(), found) || is_modifier(words, clause, found)
}

/// Returns true for a single "April", "May", "June" or "August" after "call", "with" and similar words. Also true for a
/// single word in "day" after "black", "cyber", "palm" and similar words.
fn is_called(words: &TokenizedText, found: &DateMatch) -> bool {
    let before = words.before(found.tokens.start);
    found.tokens.len() == 1
        && match words.at(found.tokens.start) {
            "april" | "may" | "june" | "august" => {
                matches!(before, "call" | "meet" | "ask" | "email" | "text" | "tell" | "phone" | "message" | "with")
            }
            day if day.ends_with("day") => {
                matches!(before, "black" | "cyber" | "taco" | "giving" | "palm" | "ash" | "fat" | "bowl" | "casual")
            }
            _ => false,
        }
}

/// Returns true for "watch Saturday Night Live". All words of such a date (except a first "the") are capitalised, as is
/// the word after it; words in capitals only are not. A lower-case word of the clause, other than "me" and "us",
/// precedes it. A function word after the date does not count.
fn is_capitalised_name(words: &TokenizedText, clause: Range<usize>, found: &DateMatch) -> bool {
    let tokens = found.tokens.clone();
    let capital = |i: usize| {
        let mut letters = words.text(i..i + 1).chars();
        letters.next().is_some_and(char::is_uppercase) && letters.next().is_some_and(char::is_lowercase)
    };
    let small = |i: usize| words.text(i..i + 1).starts_with(char::is_lowercase);
    let goes_on = words.is_word(tokens.end) && tokens.end < clause.end && capital(tokens.end);
    let plain =
        tokens.start > clause.start && small(tokens.start - 1) && !matches!(words.before(tokens.start), "me" | "us");
    let named = tokens.start + usize::from(words.at(tokens.start) == "the")..tokens.end;
    goes_on
        && plain
        && !named.is_empty()
        && named.into_iter().all(capital)
        && !dates::is_function_word(words.at(tokens.end))
}

/// The kind of a date of one word that can describe a noun.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DateModifier {
    /// "weekly", "annual"
    Frequency,
    /// "saturday"
    Day,
    /// "9am"
    Clock,
}

/// Returns true for "the weekly report", "annual leave", "saturday match", "write up 9am standup notes": one word,
/// possibly after "the", directly before a noun. Function words, numbers, marks, priorities and words for a task are no
/// such nouns. After "the" or "a", every other word is one. Otherwise:
///
/// - A frequency also describes no word in "ing" with an object, and no errand ("weekly buy milk").
/// - A day describes no activity with an object ("friday call mom") and no word in "ing" with an object. It is a date
///   at the start of the clause and after "me", "us" and words that end a part of the sentence.
/// - A clock time describes only a noun after other words of a title, or a document ("9am standup notes").
fn is_modifier(words: &TokenizedText, clause: Range<usize>, found: &DateMatch) -> bool {
    let head = found.tokens.end;
    let at = head - 1;
    let preposition =
        usize::from(found.tokens.len() > 1 && matches!(words.at(found.tokens.start), "of" | "for" | "about" | "from"));
    let led = words.at(found.tokens.start + preposition) == "the";
    if found.tokens.start + preposition + usize::from(led) != at || head >= clause.end {
        return false;
    }
    let Some(kind) = modifier_kind(words, at, found) else { return false };
    if !words.is_word(head) || !is_noun_like(words, head) || describes_reminder(words, head..clause.end) {
        return false;
    }
    let before = if at > clause.start { words.before(at) } else { "" };
    if preposition == 1 && kind == DateModifier::Clock {
        return false;
    }
    if led || vocabulary::is_article(before) {
        return kind != DateModifier::Clock || head + 1 < clause.end;
    }
    let object = head + 1 < clause.end && words.is_word(head + 1) && is_noun_like(words, head + 1);
    let gerund = words.at(head).ends_with("ing") && object;
    let errand = object && words.phrase(head, lexicon::create_task::ERRANDS).is_some();
    let doing = errand || object && words.phrase(head, lexicon::create_task::ACTIVITIES).is_some();
    let opens = at == clause.start || matches!(before, "me" | "us" | "due" | "it" | "them" | "that" | "this" | "");
    match kind {
        DateModifier::Frequency => !gerund && !errand,
        DateModifier::Day => !gerund && !doing && !opens && !ends_part(words, at - 1),
        DateModifier::Clock => {
            let in_title = !opens && vocabulary::verb(before).is_none() && !ends_part(words, at - 1);
            !doing && (in_title && object || (head..clause.end).any(|i| is_document(words.at(i))) && !opens)
        }
    }
}

/// Returns true if a word for a reminder ends the noun phrase that begins the range: in "my weekly yoga reminder", the
/// repetition is that of the reminder.
fn describes_reminder(words: &TokenizedText, range: Range<usize>) -> bool {
    let reminder = |i: usize| vocabulary::noun(words, i).is_some_and(|(noun, ..)| noun == Noun::Reminder);
    let ends = |i: &usize| !words.is_word(*i) || dates::is_function_word(words.at(*i));
    range.take(6).find(|i| reminder(*i) || ends(i)).is_some_and(reminder)
}

/// Returns the kind of the word at `at`, the last token of the date, or `None` if it is no modifier.
fn modifier_kind(words: &TokenizedText, at: usize, found: &DateMatch) -> Option<DateModifier> {
    if found.parts.repeat.is_some() {
        return matches!(
            words.at(at),
            "daily"
                | "weekly"
                | "monthly"
                | "yearly"
                | "annual"
                | "quarterly"
                | "biweekly"
                | "bi-weekly"
                | "nightly"
                | "hourly"
                | "fortnightly"
                | "weeknightly"
        )
        .then_some(DateModifier::Frequency);
    }
    if found.parts.is_clock_only() {
        return words.at(at).starts_with(|c: char| c.is_ascii_digit()).then_some(DateModifier::Clock);
    }
    matches!(words.at(at), "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday")
        .then_some(DateModifier::Day)
}

/// Returns true if the word at `i` can be a noun that a date describes.
fn is_noun_like(words: &TokenizedText, i: usize) -> bool {
    let word = words.at(i);
    let number = word.starts_with(|c: char| c.is_ascii_digit());
    !number
        && !dates::is_function_word(word)
        && !ends_description(word)
        && !vocabulary::is_article(word)
        && vocabulary::noun(words, i).is_none()
        && vocabulary::verb(word).is_none_or(|verb| matches!(verb, Verb::Change | Verb::Make | Verb::Move | Verb::Show))
}

/// Returns true for words that continue a sentence after a date.
fn ends_description(word: &str) -> bool {
    lexicon::dates::DESCRIPTION_STOPS.contains(word)
        || matches!(
            word,
            "already"
                | "again"
                | "too"
                | "either"
                | "only"
                | "ok"
                | "okay"
                | "at"
                | "by"
                | "from"
                | "until"
                | "till"
                | "before"
                | "after"
                | "because"
                | "since"
                | "so"
                | "if"
                | "when"
                | "while"
                | "then"
                | "or"
                | "but"
                | "also"
                | "is"
                | "are"
                | "was"
                | "instead"
                | "though"
                | "please"
                | "pls"
                | "plz"
                | "thanks"
                | "thx"
                | "cheers"
                | "asap"
                | "urgent"
                | "urgently"
                | "priority"
                | "important"
                | "high"
                | "low"
                | "top"
                | "tagged"
                | "every"
                | "each"
                | "once"
                | "twice"
                | "around"
                | "about"
                | "starting"
                | "ending"
                | "beginning"
                | "not"
                | "no"
                | "i"
                | "we"
                | "you"
                | "he"
                | "she"
                | "they"
                | "it"
                | "them"
                | "that"
                | "which"
                | "as"
                | "of"
                | "off"
                | "back"
                | "noon"
                | "midnight"
                | "morning"
                | "afternoon"
                | "evening"
                | "night"
                | "monday"
                | "tuesday"
                | "wednesday"
                | "thursday"
                | "friday"
                | "saturday"
                | "sunday"
                | "today"
                | "tomorrow"
                | "tonight"
                | "next"
                | "this"
                | "last"
                | "first"
                | "week"
                | "month"
                | "year"
                | "one"
                | "ones"
                | "thing"
                | "things"
                | "stuff"
                | "would"
                | "will"
                | "can"
                | "could"
                | "should"
                | "due"
                | "using"
                | "through"
                | "thru"
                | "during"
                | "early"
                | "late"
                | "sharp"
                | "ish"
                | "onwards"
                | "forever"
        )
}

/// Returns true if the word at `i` cannot precede a name without an article: a pronoun, or a word such as "done".
fn ends_part(words: &TokenizedText, i: usize) -> bool {
    !words.is_word(i)
        || words.is_quoted(i)
        || matches!(words.at(i), "reminder" | "reminders" | "alert" | "task" | "tasks" | "todo" | "everything" | "all")
}

/// Returns true for documents about an event: "9am standup notes".
fn is_document(word: &str) -> bool {
    matches!(word, "notes" | "agenda" | "minutes" | "slides" | "report" | "summary" | "recap" | "deck" | "recording")
}
