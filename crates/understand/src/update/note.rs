//! Parses notes on an existing task: "add a note to the report: ask Bob". They are appended to the description.
//!
//! `range` are the tokens after the verb: the task and the new value. `command` receives the change. Consumed tokens
//! are no part of a name or a title. "A noun for a task" is a word such as "task", "reminder" or "list".

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::parsed::ParsedCommand;

/// Returns the start of the task after "add a note to", "add a comment to" and similar phrases at `i`. "write on",
/// "note for" and similar phrases need a noun for a task in the clause. Returns `None` for other words, for "note to
/// self", and if the task is empty or no divider ([`find_divider`]) follows it. The text after the divider is not
/// checked.
pub(crate) fn task_start(clause: &Clause, i: usize) -> Option<usize> {
    if clause.at(i + 2) == "self" {
        return None;
    }
    let explicit = clause.phrase(i, lexicon::notes::ADD_A_NOTE);
    let vague = clause.phrase(i, lexicon::notes::WRITE_ON).filter(|_| clause.has_noun());
    let start = i + explicit.or(vague)?;
    find_divider(clause, start..clause.end).filter(|(at, _)| *at > start && *at < clause.end).map(|_| start)
}

/// Returns the position and the length of the divider between the task and the note. It is the first colon, else the
/// first "that" or a similar phrase, else the last quoted passage. The length is 0 for a quoted passage, because it is
/// the note itself. Returns `None` if there is none.
fn find_divider(clause: &Clause, range: Range<usize>) -> Option<(usize, usize)> {
    let colon = range.clone().find(|i| clause.at(*i) == ":").map(|at| (at, 1));
    let text_lead = || range.clone().find_map(|i| Some((i, clause.phrase(i, lexicon::notes::TEXT_LEADS)?)));
    colon.or_else(text_lead).or_else(|| range.clone().rev().find(|i| clause.words.is_quoted(*i)).map(|at| (at, 0)))
}

/// Parses the note and sets it as an addition to the description. The note is the text after the divider, see
/// [`find_divider`], or the content of the quoted passage. Sets nothing if it is empty. Returns the range before the
/// divider, which names the task. Without a divider after the first token, it returns the whole range and changes
/// nothing.
pub(super) fn parse(clause: &mut Clause, range: Range<usize>, command: &mut ParsedCommand) -> Range<usize> {
    let Some((at, n)) = find_divider(clause, range.start + 1..range.end) else { return range };
    let text = match n {
        0 => clause.words.quoted_text(at),
        _ => clause.words.text(at + n..range.end),
    };
    command.description = Some(text.to_owned()).filter(|text| !text.is_empty());
    command.appends_description = command.description.is_some();
    range.start..at
}
