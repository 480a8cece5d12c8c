//! Parses tag changes of an existing task: adds some, removes some. Unnamed tags stay.
//!
//! `range` are the tokens after the verb: the task and the new value. `command` receives the change. Consumed tokens
//! are no part of a name or a title. "A noun for a task" is a word such as "task", "reminder" or "list".

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::parsed::{ClearableField, ParsedCommand, TagOperation};
use crate::phrases::Phrases;
use crate::vocabulary;

/// Returns the position of the word that leads to the task: "the work tag to …", "the label home from …", "#work off
/// …". "tag" or "label" must occur within six tokens from `from`, or a "#" at `from` or after an article. One of
/// `leads` must follow within five tokens. Returns `None` otherwise, and if no tag is named before it or no token
/// follows it. Also `None` if "with", "as", "for" or "in" precedes it.
pub(crate) fn task_lead(clause: &Clause, from: usize, leads: Phrases) -> Option<usize> {
    let word = |i: &usize| matches!(clause.at(*i), "tag" | "tags" | "label" | "labels");
    let article = from + usize::from(vocabulary::is_article(clause.at(from)));
    let hash = clause.at(article) == "#" && clause.words.is_adjacent_to_next(article);
    let tag = (from..clause.end.min(from + 6)).find(word).or(hash.then_some(article + 1))?;
    let near = |i: &usize| clause.phrase(*i, leads).is_some();
    let lead = (tag + 1..clause.end.min(tag + 6)).find(near)?;
    let has_names = !tag_names(clause, from..lead).is_empty();
    let task = lead + clause.phrase(lead, leads).unwrap_or(0) < clause.end;
    let straight = !(from..lead).any(|i| matches!(clause.at(i), "with" | "as" | "for" | "in"));
    (has_names && task && straight).then_some(lead)
}

/// Parses tags that are added to the existing ones. They stay empty if none are named. Returns the range that names the
/// task. Tries in this order:
/// - "add the tag work to the report", unless the clause begins with "tag" or "label".
/// - "tag it work", "tag it as work": the pronoun names the task.
/// - "tag the report with work" (also "as", ":" and "under"), then "tag the report #work".
/// - "tag the milk task shopping", "label the passport one travel": up to three tokens after a singular noun for a task
///   or "one", with a name before it.
pub(super) fn parse(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    command.tag_operation = TagOperation::Add;
    let verb = clause.at(clause.start);
    let start = range.start - usize::from(matches!(clause.before(range.start), "tag" | "tags" | "label"));
    if !matches!(verb, "tag" | "label")
        && let Some(lead) = task_lead(clause, start, lexicon::tags::ONTO)
    {
        command.tags = tag_names(clause, start..lead);
        return lead + 1..range.end;
    }
    if matches!(clause.at(range.start), "it" | "that" | "this") && clause.words.is_word(range.start + 1) {
        let start = range.start + 1;
        command.tags = tag_names(clause, start + clause.phrase(start, lexicon::tags::AS).unwrap_or(0)..range.end);
        return range.start..start;
    }
    if let Some((at, n)) = clause.find_phrase(range.start, lexicon::tags::VALUE_LEADS) {
        command.tags = tag_names(clause, at + n..range.end);
        return range.start..at;
    }
    let hash = range.clone().find(|i| clause.at(*i) == "#");
    // "tag the milk task shopping", "label the passport one travel".
    let noun = range.clone().find(|i| clause.at(*i) == "one").map(|i| i + 1);
    let noun = noun.or_else(|| clause.noun_in(range.clone()).filter(|noun| !noun.plural).map(|noun| noun.end));
    let named = noun.filter(|end| *end < range.end && *end > range.start + 2 && range.end - *end <= 3);
    let hash = hash.or(named).unwrap_or(range.end);
    command.tags = tag_names(clause, hash..range.end);
    range.start..hash
}

/// Parses "the work tag from the report". Removes only the named tags. Returns the range after "from" or a similar
/// word, which names the task. If the words do not name both a tag and a task, see [`task_lead`], clears all tags and
/// returns the whole range.
pub(super) fn parse_removal(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    let Some(lead) = task_lead(clause, range.start, lexicon::grammar::FROM_TASK) else {
        command.cleared_fields.push(ClearableField::Tags);
        return range;
    };
    command.tag_operation = TagOperation::Remove;
    command.tags = tag_names(clause, range.start..lead);
    lead + clause.phrase(lead, lexicon::grammar::FROM_TASK).unwrap_or(1)..range.end
}

/// Returns the tag names in a range: "work and home", "#work", "the tags 'a' and 'b'". Every word is a name, except for
/// filler words. Only a quoted name can have several words. Skips marks. Empty if there are none.
pub(super) fn tag_names(clause: &Clause, range: Range<usize>) -> Vec<String> {
    let of =
        |i: usize| if clause.words.is_quoted(i) { clause.words.quoted_text(i) } else { clause.words.text(i..i + 1) };
    let counts = |i: &usize| {
        clause.words.is_quoted(*i) || clause.words.is_word(*i) && !lexicon::tags::NAME_FILLERS.contains(clause.at(*i))
    };
    range.filter(counts).map(|i| of(i).to_owned()).collect()
}
