//! Splits a message into clauses with one command each.
//!
//! "Buy milk and eggs" is one title. An "and" separates clauses only if another command clearly begins after it. In the
//! rules, `start` is the start of the current clause, and `next` the token after the links.

use std::ops::Range;

use crate::courtesy;
use crate::lexicon;
use crate::tokens::{TokenKind, TokenizedText};
use crate::vocabulary::{self, Verb};

/// Returns the token ranges of the clauses in order, at least one. Line breaks, sentence marks, and links before a new
/// command ("and then") separate clauses. They are excluded, as are numbers of lines before a command verb. A mark at
/// the end of the text stays in the last clause. Empty clauses are omitted, but a text without any clause yields one
/// empty range.
pub(crate) fn split_clauses(words: &TokenizedText) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = skip_number(words, 0);
    let mut i = start;
    while i < words.len() {
        match next_command_start(words, start, i) {
            Some(next) => {
                if i > start {
                    ranges.push(start..i);
                }
                start = next;
                i = next.max(i + 1);
            }
            None => i += 1,
        }
    }
    if start < words.len() || ranges.is_empty() {
        ranges.push(start..words.len());
    }
    ranges
}

/// Returns the start of the next command if the current one, which begins at `start`, ends at `i`. A line break always
/// ends it. A mark that ends a sentence ([`ends_sentence`]) ends it, unless a field label or a description of the new
/// task follows. A link ("and", a comma, "but") ends it before a question, a repeated need or a new command. It also
/// ends it before a second object of "mark … as …". Before a description of the new task ("… and tag it …") it does
/// not. Returns `None` if the clause continues.
fn next_command_start(words: &TokenizedText, start: usize, i: usize) -> Option<usize> {
    if words.kind(i) == Some(TokenKind::Break) {
        return Some(skip_number(words, i + 1));
    }
    if !words.is_one_of(i, lexicon::clauses::BOUNDARIES) {
        return None;
    }
    match words.at(i) {
        "." | "!" | "?" | ";" if ends_sentence(words, i) => {
            (!names_field(words, i + 1) && !describes_previous(words, start, i + 1)).then_some(i + 1)
        }
        "and" | "then" | "," | "also" | "plus" | "&" | "but" => {
            let next = skip_links(words, i);
            if describes_previous(words, start, next) {
                return None;
            }
            if asks_question(words, start, next) || repeats_need(words, start, next) {
                return Some(next);
            }
            if continues_mark(words, start, i, next) {
                return Some(next);
            }
            starts_command(words, start, i, next).then_some(next)
        }
        _ => None,
    }
}

/// Returns true if the words at `i` name a field of the previous task: "details: …", "priority: high".
fn names_field(words: &TokenizedText, i: usize) -> bool {
    words.phrase(i, lexicon::clauses::FIELD_LABELS).is_some()
}

/// Returns true if the words at `next` describe the new task of the clause at `start`: "…, add a note that …", "… . Tag
/// it with …", "tag: home". That clause begins with a verb of adding, making, putting or reminding, or with no command
/// verb. False if it changes an existing task ("make it …", "set the …"). False for "add a note to …" and "add the tag
/// home to …", which name another task. "priority:" does not count.
fn describes_previous(words: &TokenizedText, start: usize, next: usize) -> bool {
    let at = courtesy::skip_opening(words, start, (start + 16).min(words.len()));
    let first = command_verb(words.at(at));
    let creates =
        !changes_existing(words, at) && matches!(first, None | Some(Verb::Add | Verb::Make | Verb::Remind | Verb::Put));
    let Some(n) = words.phrase(next, lexicon::clauses::CONTINUATIONS) else {
        return creates && words.at(next) != "priority" && is_label(words, next);
    };
    // "add the tag home to the router" and "add a note to the router" name another task.
    let far = if words.at(next + n - 1).starts_with("tag") { 4 } else { 1 };
    let names_other_task = |i: usize| words.at(next) == "add" && matches!(words.at(i), "to" | "on" | "for");
    creates && !(next + n..next + n + far).any(names_other_task)
}

/// Returns true if the verb changes an existing task: "set the report to …", "make it …".
fn changes_existing(words: &TokenizedText, at: usize) -> bool {
    matches!(words.at(at), "set" | "make" | "put" | "give")
        && matches!(words.at(at + 1), "the" | "my" | "it" | "that" | "this")
}

/// Matches a field label after a comma: "tag: christmas".
fn is_label(words: &TokenizedText, i: usize) -> bool {
    words.at(i + 1) == ":" && names_field(words, i)
}

/// Returns true if the words at `next` repeat the need of the clause at `start`: "I need to call the bank and I also
/// have to renew my card". Both must be phrases such as "I have to", the first within three tokens of `start`.
fn repeats_need(words: &TokenizedText, start: usize, next: usize) -> bool {
    words.phrase(next, lexicon::clauses::DUTIES).is_some()
        && (start..start + 3).any(|i| words.phrase(i, lexicon::clauses::DUTIES).is_some())
}

/// Returns true if "what's next", "what do I have" or a similar question begins at `next`, after a command or a report
/// at `start`. The command adds, deletes, completes, marks, moves or changes. The report has "done", "finished", "did"
/// or "completed" within 16 tokens.
fn asks_question(words: &TokenizedText, start: usize, next: usize) -> bool {
    if words.phrase(next, lexicon::clauses::NEXT_QUESTIONS).is_none() {
        return false;
    }
    let first = command_verb(words.at(courtesy::skip_opening(words, start, (start + 16).min(words.len()))));
    let done = (start..next.min(start + 16)).any(|i| matches!(words.at(i), "done" | "finished" | "did" | "completed"));
    let command =
        matches!(first, Some(Verb::Add | Verb::Delete | Verb::Complete | Verb::Mark | Verb::Move | Verb::Change));
    done || command
}

/// Skips the number of a numbered line before a command verb: "2. add eggs". Returns `i` for other lines.
fn skip_number(words: &TokenizedText, i: usize) -> usize {
    let number = !words.at(i).is_empty() && words.at(i).len() <= 2 && words.at(i).bytes().all(|b| b.is_ascii_digit());
    let numbered = number && matches!(words.at(i + 1), "." | ")") && command_verb(words.at(i + 2)).is_some();
    if numbered { i + 2 } else { i }
}

/// Returns true if the mark at `i` ends a sentence. White space and another token must follow. A full stop does not end
/// one after an abbreviation ("Dr.") or a short date ("Dec."). Nor does it after a number of up to four digits, a
/// single letter or a quoted passage. Other marks do.
fn ends_sentence(words: &TokenizedText, i: usize) -> bool {
    let before = words.before(i);
    let short = lexicon::clauses::ABBREVIATIONS.contains(before);
    let dated = before.len() <= 4 && (before.bytes().all(|b| b.is_ascii_digit()) || is_short_date(before));
    let spaced = !words.is_adjacent_to_next(i);
    i + 1 < words.len() && spaced && !(words.at(i) == "." && (short || dated || before.len() == 1))
}

/// Returns true for short names of months and days: "dec", "tue".
fn is_short_date(word: &str) -> bool {
    lexicon::clauses::SHORT_DATES.contains(word)
}

/// Returns the position after up to four links at `i`: ", and then". Links are "and", "then", "also", "plus", "&",
/// "but", "that", a comma, and "after" before "that". A "now", "so", "next" or "finally" before a command verb is
/// skipped, too.
fn skip_links(words: &TokenizedText, i: usize) -> usize {
    let mut next = i;
    while next < i + 4
        && matches!(words.at(next), "and" | "then" | "," | "also" | "plus" | "&" | "but" | "after" | "that")
    {
        if words.at(next) == "after" && words.at(next + 1) != "that" {
            break;
        }
        next += 1;
    }
    // ", now add …"
    if matches!(words.at(next), "now" | "so" | "next" | "finally") && command_verb(words.at(next + 1)).is_some() {
        next += 1;
    }
    next
}

/// Returns true if a command begins at `next` that cannot belong to the clause before it. That clause begins at
/// `start`, and the links are `link..next`. False after a preposition or "if", "when" or "because" at `start`. A
/// changed priority ("lower the priority …") counts unless that clause creates a task. So does a further change of the
/// same task ([`continues_change`]). Otherwise a command verb must follow, possibly after a courtesy:
///
/// - "remind" needs "me". "add" needs another object than "it" and "that"; its synonyms do not count. After a change
///   without "then", all of these verbs need only "to", "with" or "as" in that clause.
/// - "show" and "list" need "me", "all", "what" or a word for a task. "mark" needs "done" and another object than "it",
///   or "then". "tick" needs "off". Such a word also suffices for both.
/// - "put" and "clear" need a word for a task. "take", "stop" and "drop" never count.
/// - "rename", "reopen" and "tag" count unless that clause creates a task or "it" follows.
/// - Verbs of deleting, completing, changing and moving count, the last three before "it", "to" and "for" only with
///   "then" or a word for a task. After a new task they need a word for a task, a courtesy, "then", or a plain "add …"
///   in that clause.
/// - "create" needs a word for a task or "then". Other verbs of making need such a word and a courtesy, "then" or a
///   plain "add …". "set" needs only the word unless that clause creates a task.
fn starts_command(words: &TokenizedText, start: usize, link: usize, next: usize) -> bool {
    let courtesy = courtesy::skip_opening(words, next, (next + 12).min(words.len()));
    let first = courtesy::skip_opening(words, start, (start + 16).min(words.len()));
    let word = words.at(courtesy);
    if is_preposition(words.at(first)) {
        return false;
    }
    let creates = matches!(command_verb(words.at(first)), Some(Verb::Add | Verb::Make | Verb::Remind | Verb::Put))
        && !changes_existing(words, first);
    if changes_priority(words, courtesy) && !creates {
        return true;
    }
    let Some(verb) = command_verb(word) else { return false };
    // In "mark groceries and trash as done", "trash" is a name.
    if matches!(words.at(courtesy + 1), "as" | "done" | "is" | "are") {
        return false;
    }
    let then = (link..next).any(|i| words.at(i) == "then");
    let named = names_task(words, courtesy + 1);
    // "Add milk, delete bread": no open phrase could continue with a verb. Evaluated last, because it inspects all
    // words so far.
    let plain = || {
        command_verb(words.at(first)) == Some(Verb::Add) && !(first..link).any(|i| matches!(words.at(i), "to" | ":"))
    };
    let asked = || courtesy > next || then || plain();
    if continues_change(words, first, courtesy) {
        return true;
    }
    match verb {
        Verb::Remind => matches!(words.at(courtesy + 1), "me" | "us") && first < next,
        // In "update the shopping reminder and add eggs", the addition is the change.
        Verb::Add if command_verb(words.at(first)) == Some(Verb::Change) && !then => {
            (first..link).any(|i| matches!(words.at(i), "to" | "with" | "as"))
        }
        Verb::Add => word == "add" && words.at(courtesy + 1) != "it" && words.at(courtesy + 1) != "that",
        Verb::Make => {
            named && asked()
                || named && matches!(word, "create" | "set") && !creates
                || word == "create" && (named || then)
        }
        Verb::Show => {
            let is_request =
                matches!(words.at(courtesy + 1), "me" | "everything" | "all" | "what" | "what's" | "whats");
            matches!(word, "show" | "list" | "display") && (is_request || named)
        }
        Verb::Mark => {
            word == "mark" && marks_done(words, courtesy + 1) && (then || words.at(courtesy + 1) != "it")
                || named
                || matches!(word, "tick" | "check" | "cross") && words.at(courtesy + 1) == "off"
        }
        Verb::Delete => {
            word != "stop" && word != "clear" && word != "drop" && (!creates || named || asked())
                || word == "clear" && named
        }
        Verb::Complete | Verb::Change | Verb::Move => {
            let same = matches!(words.at(courtesy + 1), "it" | "to" | "for");
            named || (then || !same) && (!creates || asked())
        }
        Verb::Rename | Verb::Reopen | Verb::Tag => !creates && words.at(courtesy + 1) != "it",
        Verb::Put => named && words.at(courtesy + 1) != "it",
        Verb::Take => false,
    }
}

/// Matches "… lower the priority of the blog post".
fn changes_priority(words: &TokenizedText, at: usize) -> bool {
    words.phrase(at, lexicon::clauses::PRIORITY_CHANGES).is_some()
}

/// Returns true for "… and make it urgent" after a change, and "… and make the tax return high priority" after any
/// command. `first` is the verb of the clause before, `at` the verb after the links. The first form needs "it", "that"
/// or "this" after "make", "set", "move", "tag" or a similar verb. The second needs "make the" or "make my", and
/// "urgent", "priority" or "important" within seven words.
fn continues_change(words: &TokenizedText, first: usize, at: usize) -> bool {
    let it = matches!(words.at(at + 1), "it" | "that" | "this");
    let set = matches!(words.at(first), "make" | "set" | "mark")
        && matches!(words.at(first + 1), "it" | "the" | "my" | "that");
    let changing =
        set || matches!(command_verb(words.at(first)), Some(Verb::Change | Verb::Move | Verb::Rename | Verb::Tag));
    if changing && it && matches!(words.at(at), "make" | "put" | "set" | "mark" | "call" | "rename" | "tag" | "move") {
        return true;
    }
    let level = |i: usize| matches!(words.at(i), "urgent" | "priority" | "important" | "prio");
    words.at(at) == "make" && matches!(words.at(at + 1), "the" | "my") && (at + 2..at + 9).any(level)
}

/// Returns true for clauses that share the verb "mark": "mark the first as done and the second as urgent". `start` is
/// the start of the clause, and the links are `link..next`. Both sides must contain "as", the second within eight
/// tokens and before the next link. False if a command verb follows the links.
fn continues_mark(words: &TokenizedText, start: usize, link: usize, next: usize) -> bool {
    let first = courtesy::skip_opening(words, start, (start + 16).min(words.len()));
    let as_in = |range: Range<usize>| range.into_iter().any(|i| words.at(i) == "as");
    let end = (next..next + 8).find(|i| matches!(words.at(*i), "and" | "," | "")).unwrap_or(next + 8);
    let verb = command_verb(words.at(next)).is_some() || words.at(next) == "then";
    words.at(first) == "mark" && !verb && as_in(next..end) && as_in(first..link)
}

/// Returns true for words by which a clause opens with a condition or a place and is no command. Examples are "On my
/// list, add …", "if", "when", "because" and "instead".
fn is_preposition(word: &str) -> bool {
    matches!(
        word,
        "on" | "in" | "to" | "from" | "for" | "when" | "if" | "as" | "since" | "because" | "instead" | "rather"
    )
}

/// Returns the kind of a command verb of at least three letters.
fn command_verb(word: &str) -> Option<Verb> {
    vocabulary::verb(word).filter(|_| word.len() > 2)
}

/// Returns true if one of the next seven words is a noun for a task, a reminder or a list. Stops at "and" and at marks.
fn names_task(words: &TokenizedText, from: usize) -> bool {
    (from..from + 7)
        .take_while(|i| words.is_word(*i) && words.at(*i) != "and")
        .any(|i| vocabulary::noun(words, i).is_some())
}

/// Returns true if one of the next twelve words is "done" or a similar word.
fn marks_done(words: &TokenizedText, from: usize) -> bool {
    (from..from + 12).any(|i| matches!(words.at(i), "done" | "complete" | "completed" | "finished"))
}
