//! Notes on an existing task: "add a note to the report: ask Bob". They are added to the description it has.

use std::ops::Range;

use crate::clause::Clause;
use crate::lexicon;
use crate::reading::Command;

/// "add a note to", "leave a comment on", "put in the notes of": where the task is named.
pub(crate) fn head(clause: &Clause, i: usize) -> Option<usize> {
    if clause.at(i + 2) == "self" {
        return None;
    }
    let sure = clause.phrase(i, lexicon::notes::ADD_A_NOTE);
    let vague = clause.phrase(i, lexicon::notes::WRITE_ON).filter(|_| clause.has_noun());
    let start = i + sure.or(vague)?;
    divider(clause, start..clause.end).filter(|(at, _)| *at > start && *at < clause.end).map(|_| start)
}

/// What divides the task from the note, and its length.
fn divider(clause: &Clause, range: Range<usize>) -> Option<(usize, usize)> {
    let colon = range.clone().find(|i| clause.at(*i) == ":").map(|at| (at, 1));
    let said = || range.clone().find_map(|i| Some((i, clause.phrase(i, lexicon::notes::TEXT_LEADS)?)));
    colon.or_else(said).or_else(|| range.clone().rev().find(|i| clause.words.is_quoted(*i)).map(|at| (at, 0)))
}

pub(super) fn read(clause: &mut Clause, range: Range<usize>, command: &mut Command) -> Range<usize> {
    let Some((at, n)) = divider(clause, range.start + 1..range.end) else { return range };
    let text = match n {
        0 => clause.words.inside(at),
        _ => clause.words.text(at + n..range.end),
    };
    command.description = Some(text.to_owned()).filter(|text| !text.is_empty());
    command.adds = command.description.is_some();
    range.start..at
}
