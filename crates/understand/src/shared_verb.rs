//! Parses commands that share one verb: "move the gym to Tuesday and the dentist to Wednesday", "remind me to call Tom
//! at 3 and to email Sue at 4", "tag the invoice as finance and the slides as work".
//!
//! Both sides must be complete. "move the desk and the lamp to Friday" is one change of two tasks.

use std::ops::Range;

use crate::attributes;
use crate::clause::Clause;
use crate::command::{self, CommandDraft};
use crate::create::{self, CreatePhrasing};
use crate::intent;
use crate::lexicon;
use crate::parsed::{Intent, ParsedCommand};
use crate::tokens::TokenizedText;
use crate::update::{self, UpdateKind};

/// The largest number of links in a clause. A longer text is not a sequence of short commands.
const MAX_LINKS: usize = 12;

/// Returns the commands of a range that share the verb of `first`, or `None` if `first` is the only one. `first` is the
/// command of the whole range. Only new tasks, updates and lists without a missing slot are split. The range must have
/// 1 to [`MAX_LINKS`] links ("and", commas, "as"). Each part must be complete and have the same intent; otherwise
/// returns `None`. The parts after the first have the confidence of `first` and no probability of the model.
pub(crate) fn parse(
    words: &TokenizedText,
    range: Range<usize>,
    first: &ParsedCommand,
    now: &jiff::Zoned,
) -> Option<Vec<CommandDraft>> {
    // Most ranges are one command. Do not parse them, or long texts, a second time.
    let links =
        range.clone().filter(|i| words.is_one_of(*i, lexicon::clauses::OBJECT_LINKS)).take(MAX_LINKS + 1).count();
    let kind = matches!(
        first.intent,
        Intent::CreateTask | Intent::UpdateTask | Intent::UpdateReminder | Intent::ListTasks | Intent::ListReminders
    );
    if !(1..=MAX_LINKS).contains(&links) || !kind || first.missing.is_some() {
        return None;
    }
    let whole = Clause::new(words, range.clone(), now);
    let cuts = find_separators(&whole, first);
    let mut drafts = vec![command::parse(&mut Clause::new(words, range.start..cuts.first()?.start, now))];
    for (n, cut) in cuts.iter().enumerate() {
        let end = cuts.get(n + 1).map_or(range.end, |next| next.start);
        drafts.push(CommandDraft::from_rules(parse_without_verb(&mut Clause::new(words, cut.end..end, now), first)?));
    }
    let same = |draft: &CommandDraft| {
        draft.command.intent.as_str() == first.intent.as_str() && draft.command.missing.is_none()
    };
    drafts.iter().all(same).then_some(drafts)
}

/// Returns the tokens of each link that separates two commands, in order. Links within dates do not count. Each link is
/// judged by the words since the previous separator and up to the next link, see [`separates_commands`]. Empty if there
/// is none.
fn find_separators(clause: &Clause, first: &ParsedCommand) -> Vec<Range<usize>> {
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut i = clause.start + 1;
    let mut from = clause.start;
    while i < clause.end {
        let Some(n) = clause.phrase(i, lexicon::clauses::OBJECT_SEPARATORS).filter(|_| clause.date_at(i).is_none())
        else {
            i += 1;
            continue;
        };
        let end = (i + n..clause.end)
            .find(|k| clause.phrase(*k, lexicon::clauses::OBJECT_SEPARATORS).is_some())
            .unwrap_or(clause.end);
        if separates_commands(clause, first, from..i, i + n..end) {
            cuts.push(i..i + n);
            from = i + n;
        }
        i += n;
    }
    cuts
}

/// Returns true if both sides of a link are commands of the same kind as `first`. `before` begins after the previous
/// separator, and `after` ends at the next link. A new task needs "another one to" and similar words after the link. Or
/// it needs an activity or "to …" with a date, and a date at the end of `before`, or anywhere in it for "to …". An
/// update needs "the", "my", "task", "number" or "#" after the link. Both sides must have the kind of change of
/// `first`: a date with "to" or "until", a priority, or "as", "with" or "under" for tags. A list needs "everything" or
/// "all my" after the link, or "the" or "my" there and a noun on both sides. At least two tokens must follow then.
/// Always false for other intents.
fn separates_commands(clause: &Clause, first: &ParsedCommand, before: Range<usize>, after: Range<usize>) -> bool {
    let dated = |side: &Range<usize>| clause.dates.iter().any(|found| side.contains(&found.tokens.start));
    let definite = matches!(clause.at(after.start), "the" | "my" | "task" | "number" | "#");
    match first.intent {
        Intent::CreateTask => {
            let another = clause.phrase(after.start, lexicon::clauses::ANOTHER_TASK).is_some();
            let to = usize::from(clause.at(after.start) == "to");
            let doing = (to == 1 || intent::is_activity(clause, after.start)) && after.len() > 1 + to;
            let closed = clause.dates.iter().any(|found| found.tokens.end == before.end);
            another || doing && dated(&after) && (closed || to == 1 && dated(&before))
        }
        Intent::UpdateTask | Intent::UpdateReminder if definite => {
            let to = |side: &Range<usize>| {
                dated(side) && side.clone().any(|i| matches!(clause.at(i), "to" | "until" | "till"))
            };
            let level = |side: &Range<usize>| side.clone().any(|i| attributes::priority_at(clause, i).is_some());
            let label = |side: &Range<usize>| side.clone().any(|i| matches!(clause.at(i), "as" | "with" | "under"));
            first.when.is_some() && to(&before) && to(&after)
                || first.priority.is_some() && level(&before) && level(&after)
                || !first.tags.is_empty() && label(&before) && label(&after)
        }
        Intent::ListTasks | Intent::ListReminders => {
            let all = clause.phrase(after.start, lexicon::clauses::UNDIVIDED_OPENERS).is_some();
            let kind = matches!(clause.at(after.start), "the" | "my") && clause.noun_in(after.clone()).is_some();
            after.len() > 1 && (all || kind && clause.noun_in(before).is_some())
        }
        _ => false,
    }
}

/// Parses a side without a verb as a command of the kind and the confidence of `first`. A new task takes the words as
/// its title, without "another one to". An update sets a priority if `first` does and a priority ends the side. Else it
/// sets tags if `first` does, else the due date. A list takes the words as its filter. Returns `None` if the clause is
/// empty.
fn parse_without_verb(clause: &mut Clause, first: &ParsedCommand) -> Option<ParsedCommand> {
    let start = clause.start;
    let end = clause.end;
    if start >= end {
        return None;
    }
    Some(match first.intent {
        Intent::CreateTask => {
            let another = clause.phrase(start, lexicon::clauses::ANOTHER_TASK).unwrap_or(0);
            create::parse(clause, start + another, CreatePhrasing::Rest, first.confidence)
        }
        Intent::UpdateTask | Intent::UpdateReminder => {
            let level = attributes::closing_priority(clause, start + 1).filter(|_| first.priority.is_some());
            let change = match level {
                Some((_, priority)) => UpdateKind::Priority(priority),
                None if !first.tags.is_empty() => UpdateKind::Tags,
                None => UpdateKind::Due,
            };
            update::parse(clause, start..end, change, first.confidence)
        }
        _ => command::parse_listing(clause, first.confidence),
    })
}
