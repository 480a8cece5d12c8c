//! Finds the time expressions of a text for display: position, value and grain.
//!
//! Splits the text like the command parser does, so both interpret the same expressions.

use std::ops::Range;

use jiff::Zoned;
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::clause::Clause;
use crate::dates::DateMatch;
use crate::parsed::DayOrTime;
use crate::tokens::TokenizedText;
use crate::{bullets, split};

/// A date, a time, a time span or a repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeExpression {
    /// The position in the text, in bytes.
    pub span: Range<usize>,
    /// The original text, with its leading prepositions.
    pub text: String,
    /// The start. `None` for a repetition without a first date.
    pub start: Option<DayOrTime>,
    /// The exclusive end of a time span.
    pub end: Option<DayOrTime>,
    /// The due date of a task with this expression: the start, or the last day of a span that has begun.
    pub due: Option<DayOrTime>,
    pub grain: Grain,
    /// An RRULE, if the expression repeats.
    pub recurrence: Option<String>,
}

/// The precision of a point in time.
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
    /// Returns the name of the grain in JSON, which is the variant in lower case: "second", "minute", "hour".
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

impl Serialize for TimeExpression {
    /// Writes the fields `start_byte`, `end_byte`, `text`, `start`, `end`, `due_date`, `grain` and `recurrence`. Absent
    /// values are `null`. A day is `2025-12-22`, a time `2025-12-22T15:00:00`. Fails only if the serializer fails.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shape = serializer.serialize_struct("Expression", 8)?;
        shape.serialize_field("start_byte", &self.span.start)?;
        shape.serialize_field("end_byte", &self.span.end)?;
        shape.serialize_field("text", &self.text)?;
        shape.serialize_field("start", &self.start.map(format_time))?;
        shape.serialize_field("end", &self.end.map(format_time))?;
        shape.serialize_field("due_date", &self.due.map(format_time))?;
        shape.serialize_field("grain", self.grain.as_str())?;
        shape.serialize_field("recurrence", &self.recurrence)?;
        shape.end()
    }
}

fn format_time(when: DayOrTime) -> String {
    match when {
        DayOrTime::Day(date) => date.to_string(),
        DayOrTime::Time(at) => at.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
    }
}

/// Returns the expressions of a text in order. They never overlap. A list with a heading is searched item by item, any
/// other text clause by clause. Dates in courtesies and in headings, and dates that are part of a name, are left out.
pub(crate) fn find_expressions(words: &TokenizedText, now: &Zoned) -> Vec<TimeExpression> {
    let stretches = match bullets::parse_items(words) {
        Some((_, items)) => items,
        None => split::split_clauses(words),
    };
    stretches.into_iter().flat_map(|range| find_in_range(words, range, now)).collect()
}

/// Returns the expressions of one clause in order. Two that bound a time span ("Monday to Friday") become one, see
/// [`join_range`].
fn find_in_range(words: &TokenizedText, range: Range<usize>, now: &Zoned) -> Vec<TimeExpression> {
    let clause = Clause::new(words, range, now);
    let mut found = clause.dates.iter().peekable();
    let mut expressions = Vec::new();
    while let Some(first) = found.next() {
        let joined = found.peek().and_then(|second| join_range(words, first, second, now));
        expressions.push(joined.unwrap_or_else(|| single_expression(words, first, now)));
        if expressions.last().is_some_and(|last| last.span.end > words.span(first.tokens.clone()).end) {
            found.next();
        }
    }
    expressions
}

/// Returns the expression of one date. The start is the beginning of its time span, or else its due date. The end is
/// exclusive. A single day and a point in time have no end. A repetition without a first date has neither.
fn single_expression(words: &TokenizedText, found: &DateMatch, now: &Zoned) -> TimeExpression {
    let due = found.resolve(now);
    let interval = found.interval(now);
    TimeExpression {
        span: words.span(found.tokens.clone()),
        text: words.text(found.tokens.clone()).to_owned(),
        start: interval.map(|(start, _)| start).or(due),
        end: interval.map(|(_, end)| end),
        due,
        grain: found.grain(now),
        recurrence: found.rrule(),
    }
}

/// Joins two expressions that bound a time span: "Monday to Friday", "between Monday and 5 January". "to", a dash,
/// "until" or "through" must stand between them or begin the second one. "and" counts only after "between". Returns
/// `None` otherwise, or if they form no valid time span. The end is exclusive: the second time, or the day after the
/// last day. The due date is the start, the grain is the finer one, and repetitions form no time span.
fn join_range(words: &TokenizedText, first: &DateMatch, second: &DateMatch, now: &Zoned) -> Option<TimeExpression> {
    let gap = first.tokens.end..second.tokens.start;
    let links = |i: usize| matches!(words.at(i), "to" | "-" | "–" | "until" | "till" | "til" | "through" | "thru");
    let between = words.at(first.tokens.start) == "between" && words.at(gap.start) == "and";
    let linked = match gap.len() {
        0 => links(second.tokens.start),
        1 => links(gap.start) || between,
        _ => false,
    };
    let (start, end) = first.interval_to(second, now).filter(|_| linked)?;
    let tokens = first.tokens.start..second.tokens.end;
    let one = single_expression(words, first, now);
    Some(TimeExpression {
        span: words.span(tokens.clone()),
        text: words.text(tokens).to_owned(),
        start: Some(start),
        end: Some(end),
        due: Some(start),
        grain: one.grain.min(second.grain(now)),
        recurrence: None,
    })
}
