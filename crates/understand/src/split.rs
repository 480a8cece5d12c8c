//! Cuts a message into the stretches that each hold one command.
//!
//! "Buy milk and eggs" is one title: an "and" divides only where another command plainly begins after it.

use std::ops::Range;

use crate::courtesy;
use crate::lexicon;
use crate::tokens::{Kind, Words};
use crate::vocabulary::{self, Verb};

pub(crate) fn clauses(words: &Words) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = after_number(words, 0);
    let mut i = start;
    while i < words.len() {
        match boundary(words, start, i) {
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

/// Where the next command begins, if one ends at `i`.
fn boundary(words: &Words, start: usize, i: usize) -> Option<usize> {
    if words.kind(i) == Some(Kind::Break) {
        return Some(after_number(words, i + 1));
    }
    if !words.is_one_of(i, lexicon::clauses::BOUNDARIES) {
        return None;
    }
    match words.at(i) {
        "." | "!" | "?" | ";" if ends_sentence(words, i) => {
            (!names_field(words, i + 1) && !says_more(words, start, i + 1)).then_some(i + 1)
        }
        "and" | "then" | "," | "also" | "plus" | "&" | "but" => {
            let next = after_links(words, i);
            if says_more(words, start, next) {
                return None;
            }
            if asks_next(words, start, next) || needs_more(words, start, next) {
                return Some(next);
            }
            if marks_on(words, start, i, next) {
                return Some(next);
            }
            joined_command(words, start, i, next).then_some(next)
        }
        _ => None,
    }
}

/// "details: …", "priority: high": more about the task before it.
fn names_field(words: &Words, i: usize) -> bool {
    words.phrase(i, lexicon::clauses::FIELD_LABELS).is_some()
}

/// "…, add a note that …", "… . Tag it with …": more about the new task before it.
fn says_more(words: &Words, start: usize, next: usize) -> bool {
    let at = courtesy::after(words, start, (start + 16).min(words.len()));
    let first = exact(words.at(at));
    let creates = !sets(words, at) && matches!(first, None | Some(Verb::Add | Verb::Make | Verb::Remind | Verb::Put));
    let Some(n) = words.phrase(next, lexicon::clauses::CONTINUATIONS) else {
        return creates && words.at(next) != "priority" && is_label(words, next);
    };
    // "add the tag home to the router", "add a note to the router".
    let far = if words.at(next + n - 1).starts_with("tag") { 4 } else { 1 };
    let elsewhere = |i: usize| words.at(next) == "add" && matches!(words.at(i), "to" | "on" | "for");
    creates && !(next + n..next + n + far).any(elsewhere)
}

/// "set the report to …", "make it …": nothing new is made.
fn sets(words: &Words, at: usize) -> bool {
    matches!(words.at(at), "set" | "make" | "put" | "give")
        && matches!(words.at(at + 1), "the" | "my" | "it" | "that" | "this")
}

/// "tag: christmas" after a comma.
fn is_label(words: &Words, i: usize) -> bool {
    words.at(i + 1) == ":" && names_field(words, i)
}

/// "I need to call the bank and I also have to renew my card": the need is said again.
fn needs_more(words: &Words, start: usize, next: usize) -> bool {
    words.phrase(next, lexicon::clauses::DUTIES).is_some()
        && (start..start + 3).any(|i| words.phrase(i, lexicon::clauses::DUTIES).is_some())
}

/// "…, what's next?", "… and what do I have left": a question after a command.
fn asks_next(words: &Words, start: usize, next: usize) -> bool {
    if words.phrase(next, lexicon::clauses::NEXT_QUESTIONS).is_none() {
        return false;
    }
    let first = exact(words.at(courtesy::after(words, start, (start + 16).min(words.len()))));
    let done = (start..next.min(start + 16)).any(|i| matches!(words.at(i), "done" | "finished" | "did" | "completed"));
    let command =
        matches!(first, Some(Verb::Add | Verb::Delete | Verb::Complete | Verb::Mark | Verb::Move | Verb::Change));
    done || command
}

/// "2. add eggs": where the command of a numbered line begins.
fn after_number(words: &Words, i: usize) -> usize {
    let number = !words.at(i).is_empty() && words.at(i).len() <= 2 && words.at(i).bytes().all(|b| b.is_ascii_digit());
    let numbered = number && matches!(words.at(i + 1), "." | ")") && exact(words.at(i + 2)).is_some();
    if numbered { i + 2 } else { i }
}

fn ends_sentence(words: &Words, i: usize) -> bool {
    let before = words.before(i);
    let short = lexicon::clauses::ABBREVIATIONS.contains(before);
    let dated = before.len() <= 4 && (before.bytes().all(|b| b.is_ascii_digit()) || is_short_date(before));
    let spaced = !words.touches_next(i);
    i + 1 < words.len() && spaced && !(words.at(i) == "." && (short || dated || before.len() == 1))
}

fn is_short_date(word: &str) -> bool {
    lexicon::clauses::SHORT_DATES.contains(word)
}

fn after_links(words: &Words, i: usize) -> usize {
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
    if matches!(words.at(next), "now" | "so" | "next" | "finally") && exact(words.at(next + 1)).is_some() {
        next += 1;
    }
    next
}

/// Whether a command begins at `next` that cannot be part of what the stretch before it says.
fn joined_command(words: &Words, start: usize, link: usize, next: usize) -> bool {
    let courtesy = courtesy::after(words, next, (next + 12).min(words.len()));
    let first = courtesy::after(words, start, (start + 16).min(words.len()));
    let word = words.at(courtesy);
    if is_preposition(words.at(first)) {
        return false;
    }
    let creates = matches!(exact(words.at(first)), Some(Verb::Add | Verb::Make | Verb::Remind | Verb::Put))
        && !sets(words, first);
    if level_moved(words, courtesy) && !creates {
        return true;
    }
    let Some(verb) = exact(word) else { return false };
    let then = (link..next).any(|i| words.at(i) == "then");
    let named = names_task(words, courtesy + 1);
    // "Add milk, delete bread": nothing opened a sentence that could go on with a verb.
    // Asked last of all, since it looks at every word so far.
    let plain =
        || exact(words.at(first)) == Some(Verb::Add) && !(first..link).any(|i| matches!(words.at(i), "to" | ":"));
    let asked = || courtesy > next || then || plain();
    if changes_more(words, first, courtesy) {
        return true;
    }
    match verb {
        Verb::Remind => matches!(words.at(courtesy + 1), "me" | "us") && first < next,
        // "update the shopping reminder and add eggs": what is added is the change.
        Verb::Add if exact(words.at(first)) == Some(Verb::Change) && !then => {
            (first..link).any(|i| matches!(words.at(i), "to" | "with" | "as"))
        }
        Verb::Add => word == "add" && words.at(courtesy + 1) != "it" && words.at(courtesy + 1) != "that",
        Verb::Make => {
            named && asked()
                || named && matches!(word, "create" | "set") && !creates
                || word == "create" && (named || then)
        }
        Verb::Show => {
            let asks = matches!(words.at(courtesy + 1), "me" | "everything" | "all" | "what" | "what's" | "whats");
            matches!(word, "show" | "list" | "display") && (asks || named)
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

/// "… lower the priority of the blog post".
fn level_moved(words: &Words, at: usize) -> bool {
    words.phrase(at, lexicon::clauses::PRIORITY_CHANGES).is_some()
}

/// "… and make it urgent" after a change, "… and make the tax return high priority" after anything.
fn changes_more(words: &Words, first: usize, at: usize) -> bool {
    let it = matches!(words.at(at + 1), "it" | "that" | "this");
    let set = matches!(words.at(first), "make" | "set" | "mark")
        && matches!(words.at(first + 1), "it" | "the" | "my" | "that");
    let changing = set || matches!(exact(words.at(first)), Some(Verb::Change | Verb::Move | Verb::Rename | Verb::Tag));
    if changing && it && matches!(words.at(at), "make" | "put" | "set" | "mark" | "call" | "rename" | "tag" | "move") {
        return true;
    }
    let level = |i: usize| matches!(words.at(i), "urgent" | "priority" | "important" | "prio");
    words.at(at) == "make" && matches!(words.at(at + 1), "the" | "my") && (at + 2..at + 9).any(level)
}

/// "mark the first as done and the second as urgent": the verb is said once.
fn marks_on(words: &Words, start: usize, link: usize, next: usize) -> bool {
    let first = courtesy::after(words, start, (start + 16).min(words.len()));
    let as_in = |range: Range<usize>| range.into_iter().any(|i| words.at(i) == "as");
    let end = (next..next + 8).find(|i| matches!(words.at(*i), "and" | "," | "")).unwrap_or(next + 8);
    let verb = exact(words.at(next)).is_some() || words.at(next) == "then";
    words.at(first) == "mark" && !verb && as_in(next..end) && as_in(first..link)
}

/// "On my list, add …": what stands before is no command.
fn is_preposition(word: &str) -> bool {
    matches!(
        word,
        "on" | "in" | "to" | "from" | "for" | "when" | "if" | "as" | "since" | "because" | "instead" | "rather"
    )
}

fn exact(word: &str) -> Option<Verb> {
    vocabulary::verb(word).filter(|_| word.len() > 2)
}

fn names_task(words: &Words, from: usize) -> bool {
    (from..from + 7)
        .take_while(|i| words.is_word(*i) && words.at(*i) != "and")
        .any(|i| vocabulary::noun(words, i).is_some())
}

fn marks_done(words: &Words, from: usize) -> bool {
    (from..from + 12).any(|i| matches!(words.at(i), "done" | "complete" | "completed" | "finished"))
}
