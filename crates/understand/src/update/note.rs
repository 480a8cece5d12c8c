//! Notes on an existing task: "add a note to the report: ask Bob". They are added to the description it has.

use std::ops::Range;

use crate::clause::Clause;
use crate::phrases::{Phrases, phrases};
use crate::reading::Command;

/// "add a note to", "leave a comment on", "put in the notes of": where the task is named.
pub(crate) fn head(clause: &Clause, i: usize) -> Option<usize> {
    const HEADS: Phrases = phrases!(
        "add a note to | add a note on | add a note for | add a note in | add note to | add notes to | \
         add to the description of | add to the notes of | add to the notes for | add to the notes on | \
         add a comment to | add a comment on | add details to | add info to | add the note to | \
         append to the description of | attach a note to | attach a comment to | attach a note on | \
         leave a note on | leave a note for | leave a note in | leave a comment on | put in the notes of | \
         put in the notes for | put a note on | put a note in | make a note on | make a note in"
    );
    // Without a word for a task these may speak of anything.
    const VAGUE: Phrases = phrases!("write in | write on | note on | note for | notes for | notes on | note in");
    if clause.at(i + 2) == "self" {
        return None;
    }
    let sure = clause.phrase(i, HEADS);
    let vague = clause.phrase(i, VAGUE).filter(|_| clause.has_noun());
    let start = i + sure.or(vague)?;
    divider(clause, start..clause.end).filter(|(at, _)| *at > start && *at < clause.end).map(|_| start)
}

/// What divides the task from the note, and its length.
fn divider(clause: &Clause, range: Range<usize>) -> Option<(usize, usize)> {
    const SAYING: Phrases = phrases!("saying that | saying | that says | to say | that | which says");
    let colon = range.clone().find(|i| clause.at(*i) == ":").map(|at| (at, 1));
    let said = || range.clone().find_map(|i| Some((i, clause.phrase(i, SAYING)?)));
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
