//! Parses a whole text as a date, a time or a repetition, and nothing else: "tomorrow 9am", "every friday at 5pm", "fri".
//!
//! Used for values of options, for fields and for answers to a question. A text with any other word does not match, so
//! that a caller can reject it or parse it as a sentence.

use jiff::Zoned;
use jiff::civil::Time;

use crate::courtesy;
use crate::dates::{self, DateMatch, DateScan};
use crate::expression::Grain;
use crate::lexicon;
use crate::parsed::DayOrTime;
use crate::parser::UtteranceParser;
use crate::tokens::TokenizedText;

/// The value of a text that contains only a date, a time or a repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// The first day or time, in the zone of the current time. `None` for a repetition without a first day ("weekly").
    pub due: Option<DayOrTime>,
    /// The exclusive end of a time span: "3-4pm", "next week".
    pub end: Option<DayOrTime>,
    /// The RRULE of a repetition.
    pub recurrence: Option<String>,
    /// The time of day, if the text contains a clock time and no day and no repetition: "at 7:30".
    pub time_of_day: Option<Time>,
    /// True if the text contains a clock time without am, pm or a part of the day, and not on the 24-hour clock. The
    /// value of `due` is then the usual choice ("at 7:30" is the next of both).
    pub is_half_open: bool,
    /// The precision of `due`.
    pub grain: Grain,
}

/// Returns the value of a text that consists of a date, a time, a repetition or a combination of them.
///
/// Marks and "please" may remain at the ends. Returns `None` if another word is left over, if the text contains two
/// different dates, or if it contains none. Corrections are not applied.
pub fn parse_when(text: &str, now: &Zoned, settings: UtteranceParser) -> Option<When> {
    let words = settings.tokenize(text);
    let end = trim_please(&words);
    let scan = DateScan { words: &words, start: 0, end, now };
    let mut found = dates::find(scan).into_iter();
    let mut first = found.next().filter(|first| is_free(&words, 0, first.tokens.start))?;
    for next in found {
        if !is_free(&words, first.tokens.end, next.tokens.start) || !first.parts.merge(&next.parts) {
            return None;
        }
        first.tokens.end = next.tokens.end;
    }
    if !is_free(&words, first.tokens.end, end) {
        return None;
    }
    let when = to_when(&first, now);
    (when.due.is_some() || when.recurrence.is_some()).then_some(when)
}

/// Returns the value of one expression.
fn to_when(found: &DateMatch, now: &Zoned) -> When {
    When {
        due: found.resolve(now),
        end: found.interval(now).map(|(_, end)| end),
        recurrence: found.rrule(),
        time_of_day: found.time_of_day(now),
        is_half_open: found.parts.is_half_open(),
        grain: found.grain(now),
    }
}

/// Returns the number of tokens without a last "please" or "thanks".
fn trim_please(words: &TokenizedText) -> usize {
    let mut end = words.len();
    while end > 0 && (!words.is_word(end - 1) && !words.is_quoted(end - 1) || is_courtesy(words, end - 1)) {
        end -= 1;
    }
    end
}

fn is_courtesy(words: &TokenizedText, i: usize) -> bool {
    courtesy::is_please(words.at(i)) || words.is_one_of(i, lexicon::dates::COURTESIES)
}

/// Returns true if the range contains only marks and courtesies. Quoted passages are words here.
fn is_free(words: &TokenizedText, from: usize, to: usize) -> bool {
    (from..to).all(|i| !words.is_word(i) && !words.is_quoted(i) || is_courtesy(words, i))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-03-11T09:30:00Z[UTC]";

    fn parse(text: &str) -> Option<When> {
        parse_when(text, &NOW.parse().unwrap(), UtteranceParser::default())
    }

    fn due(text: &str) -> Option<String> {
        parse(text)?.due.map(|due| match due {
            DayOrTime::Day(date) => date.to_string(),
            DayOrTime::Time(at) => at.strftime("%Y-%m-%dT%H:%M").to_string(),
        })
    }

    #[test]
    fn whole_texts_are_parsed() {
        for (text, expected) in [
            ("tomorrow 9am", "2026-03-12T09:00"),
            ("9am tomorrow", "2026-03-12T09:00"),
            ("in 2 hours", "2026-03-11T11:30"),
            ("fri", "2026-03-13"),
            ("Friday, please", "2026-03-13"),
            ("every friday at 5pm", "2026-03-13T17:00"),
            ("2026-05-01", "2026-05-01"),
            ("at 7:30", "2026-03-11T19:30"),
            ("end of month", "2026-03-31"),
        ] {
            assert_eq!(due(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_words_are_rejected() {
        for text in ["", "please", "buy milk tomorrow", "tomorrow morning run", "friday or 5 march", "milk", "\"fri\""]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn repetitions_and_times_are_told_apart() {
        let weekly = parse("weekly").unwrap();
        assert_eq!((weekly.due, weekly.recurrence.as_deref()), (None, Some("FREQ=WEEKLY")));
        let half = parse("7:30").unwrap();
        assert!(half.is_half_open && half.time_of_day.is_some());
        let evening = parse("7:30pm").unwrap();
        assert!(!evening.is_half_open && evening.time_of_day.is_some());
        assert_eq!(parse("tomorrow at 7:30").unwrap().time_of_day, None);
    }
}
