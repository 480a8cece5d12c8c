//! What the grammar of dates finds in a text, for showing: where it stands, what it means and how finely.
//!
//! Looks at the same stretches as a reading does, so that what is shown is what was understood.

use std::ops::Range;

use jiff::Zoned;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::clause::Clause;
use crate::dates::Found;
use crate::reading::When;
use crate::tokens::Words;
use crate::{bullets, split};

/// A date, a time, a stretch of time or a repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Where it stands in the text, in bytes.
    pub span: Range<usize>,
    /// As it was written, with the words that lead to it.
    pub text: String,
    /// When it begins; `None` for a repetition that does not say.
    pub start: Option<When>,
    /// The first day or moment after a stretch of time.
    pub end: Option<When>,
    /// When a task with it is due: the beginning, or for a stretch that has begun its last day.
    pub due: Option<When>,
    pub grain: Grain,
    /// An RRULE, if it repeats.
    pub recurrence: Option<String>,
}

/// How finely a point in time is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Grain {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shape = serializer.serialize_struct("Expression", 8)?;
        shape.serialize_field("start_byte", &self.span.start)?;
        shape.serialize_field("end_byte", &self.span.end)?;
        shape.serialize_field("text", &self.text)?;
        shape.serialize_field("start", &self.start.map(told))?;
        shape.serialize_field("end", &self.end.map(told))?;
        shape.serialize_field("due_date", &self.due.map(told))?;
        shape.serialize_field("grain", self.grain.as_str())?;
        shape.serialize_field("recurrence", &self.recurrence)?;
        shape.end()
    }
}

fn told(when: When) -> String {
    match when {
        When::Day(date) => date.to_string(),
        When::Time(at) => at.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
    }
}

pub(crate) fn find(words: &Words, now: &Zoned) -> Vec<Expression> {
    let stretches = match bullets::items(words) {
        Some((_, items)) => items,
        None => split::clauses(words),
    };
    stretches.into_iter().flat_map(|range| in_stretch(words, range, now)).collect()
}

fn in_stretch(words: &Words, range: Range<usize>, now: &Zoned) -> Vec<Expression> {
    let clause = Clause::new(words, range, now);
    let mut found = clause.dates.iter().peekable();
    let mut expressions = Vec::new();
    while let Some(first) = found.next() {
        let joined = found.peek().and_then(|second| joined(words, first, second, now));
        expressions.push(joined.unwrap_or_else(|| single(words, first, now)));
        if expressions.last().is_some_and(|last| last.span.end > words.span(first.tokens.clone()).end) {
            found.next();
        }
    }
    expressions
}

fn single(words: &Words, found: &Found, now: &Zoned) -> Expression {
    let due = found.when(now);
    let interval = found.interval(now);
    Expression {
        span: words.span(found.tokens.clone()),
        text: words.text(found.tokens.clone()).to_owned(),
        start: interval.map(|(start, _)| start).or(due),
        end: interval.map(|(_, end)| end),
        due,
        grain: found.grain(now),
        recurrence: found.rule(),
    }
}

/// "Monday to Friday": two expressions that bound a stretch of time.
fn joined(words: &Words, first: &Found, second: &Found, now: &Zoned) -> Option<Expression> {
    let gap = first.tokens.end..second.tokens.start;
    let links = |i: usize| matches!(words.at(i), "to" | "-" | "–" | "until" | "till" | "til" | "through" | "thru");
    let between = words.at(first.tokens.start) == "between" && words.at(gap.start) == "and";
    let linked = match gap.len() {
        0 => links(second.tokens.start),
        1 => links(gap.start) || between,
        _ => false,
    };
    let (start, end) = first.to(second, now).filter(|_| linked)?;
    let tokens = first.tokens.start..second.tokens.end;
    let one = single(words, first, now);
    Some(Expression {
        span: words.span(tokens.clone()),
        text: words.text(tokens).to_owned(),
        start: Some(start),
        end: Some(end),
        due: Some(start),
        grain: one.grain.min(second.grain(now)),
        recurrence: None,
    })
}
