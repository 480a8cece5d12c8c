//! Reads a part of a message as values of a task: dates, times, repetitions, priorities and tags. "the 4th, high
//! priority" has two values and no other words (TRUST-3).

mod phrases;

use std::ops::Range;

use jiff::civil::{Time, time};
use understand::{DayOrTime, Intent, ParsedCommand, TagOperation};

pub(super) use phrases::correct_spelling;
use phrases::{BARE_PRIORITIES, CLEARS, GLUE, PRIORITIES, STATING, TIME_DROPS};

use super::framing;
use crate::TurnRequest;

/// The values of a text, and its other words.
#[derive(Clone, Debug)]
pub(super) struct Fragment {
    /// An update without a target.
    pub(super) command: ParsedCommand,
    /// The words that are neither values nor glue such as "make it".
    pub(super) rest: String,
    /// The text has a verb such as "make" or "set", or says what something is.
    pub(super) states: bool,
    /// The text after "not", "rather than" or "instead of".
    pub(super) negated: Option<String>,
    /// A number without a unit, such as the 4 of "actually 4".
    pub(super) number: Option<i8>,
    /// The time of day is to be removed, the day stays.
    pub(super) drops_time: bool,
}

impl Fragment {
    /// Returns true if there is at least one value.
    pub(super) fn has_values(&self) -> bool {
        let command = &self.command;
        command.when.is_some()
            || command.shift.is_some()
            || command.recurrence.is_some()
            || command.priority.is_some()
            || !command.tags.is_empty()
            || !command.cleared_fields.is_empty()
            || self.number.is_some()
            || self.drops_time
    }

    /// Returns true if the text consists of values only.
    pub(super) fn is_pure(&self) -> bool {
        self.has_values() && self.rest.is_empty()
    }
}

struct FragmentWord<'t> {
    text: &'t str,
    lower: String,
    span: Range<usize>,
    used: bool,
}

/// Reads the values of a text. Dates are relative to the time of the request.
pub(super) fn read(text: &str, request: &TurnRequest) -> Fragment {
    let text = correct_spelling(text);
    let (text, negated) = split_negation(&text);
    let mut fragment = Fragment {
        command: ParsedCommand::new(Intent::UpdateTask, 0.9),
        rest: String::new(),
        states: false,
        negated,
        number: None,
        drops_time: false,
    };
    let mut words = split_words(&text);
    fragment.states = words.iter().any(|word| STATING.contains(&word.lower.as_str()));
    read_phrases(&mut words, &mut fragment);
    read_tags(&mut words, &mut fragment);
    read_dates(&text, &mut words, &mut fragment, request);
    read_bare_words(&mut words, &mut fragment);
    let rest = words.iter().filter(|word| !word.used && !GLUE.contains(&word.lower.as_str()));
    fragment.rest = rest.map(|word| word.text).collect::<Vec<_>>().join(" ");
    fragment
}

/// Separates "not X", "rather than X" and "instead of X" from a text.
fn split_negation(text: &str) -> (String, Option<String>) {
    let lower = text.to_lowercase();
    if lower.len() != text.len() {
        return (text.to_owned(), None);
    }
    for marker in ["instead of ", "rather than ", "not "] {
        let Some(at) = lower.match_indices(marker).map(|(at, _)| at).find(|at| *at == 0 || lower[..*at].ends_with(' '))
        else {
            continue;
        };
        let after = &text[at + marker.len()..];
        let is_priority = marker == "not "
            && ["that ", "so ", "urgent", "important", "repeat"]
                .iter()
                .any(|word| after.to_lowercase().starts_with(word));
        if is_priority {
            continue;
        }
        let end = after.find([',', ';', '!']).unwrap_or(after.len());
        let before = framing::trim(&text[..at]);
        let behind = framing::trim(&after[end..]);
        return (format!("{before} {behind}").trim().to_owned(), Some(framing::trim(&after[..end]).to_owned()));
    }
    (text.to_owned(), None)
}

fn split_words(text: &str) -> Vec<FragmentWord<'_>> {
    let mut words = Vec::new();
    let mut start = 0;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = framing::trim(part).trim_matches(['"', '(', ')']);
        if !word.is_empty() {
            let at = start + part.find(word).unwrap_or_default();
            let lower = word.to_lowercase().replace('’', "'");
            words.push(FragmentWord { text: word, lower, span: at..at + word.len(), used: false });
        }
        start += part.len();
    }
    words
}

/// Returns the position of a phrase among the unused words.
fn find_phrase(words: &[FragmentWord<'_>], phrase: &str) -> Option<Range<usize>> {
    let parts: Vec<&str> = phrase.split(' ').collect();
    let matches =
        |window: &[FragmentWord<'_>]| window.iter().zip(&parts).all(|(word, part)| !word.used && word.lower == *part);
    words.windows(parts.len()).position(matches).map(|at| at..at + parts.len())
}

fn use_words(words: &mut [FragmentWord<'_>], range: Range<usize>) {
    words[range].iter_mut().for_each(|word| word.used = true);
}

fn read_phrases(words: &mut [FragmentWord<'_>], fragment: &mut Fragment) {
    for (phrase, field) in CLEARS {
        if let Some(range) = find_phrase(words, phrase) {
            use_words(words, range);
            if !fragment.command.cleared_fields.contains(field) {
                fragment.command.cleared_fields.push(*field);
            }
        }
    }
    for phrase in TIME_DROPS {
        if let Some(range) = find_phrase(words, phrase) {
            use_words(words, range);
            fragment.drops_time = true;
        }
    }
    let mut phrases: Vec<_> = PRIORITIES.iter().collect();
    phrases.sort_by_key(|(phrase, _)| std::cmp::Reverse(phrase.len()));
    for (phrase, priority) in phrases {
        if let Some(range) = find_phrase(words, phrase) {
            let names_time =
                words.get(range.end).is_some_and(|word| matches!(word.lower.as_str(), "until" | "till" | "til"));
            use_words(words, range);
            if names_time {
                continue;
            }
            fragment.command.priority.get_or_insert(*priority);
        }
    }
}

/// Reads "#work", "tag it work", "drop the work tag".
fn read_tags(words: &mut [FragmentWord<'_>], fragment: &mut Fragment) {
    let mut added = Vec::new();
    let mut removed = Vec::new();
    for word in words.iter_mut() {
        let Some(name) = word.text.strip_prefix('#') else { continue };
        if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
            added.push(name.to_owned());
            word.used = true;
        }
    }
    for at in 0..words.len() {
        read_tag_at(words, at, &mut added, &mut removed);
    }
    if !added.is_empty() {
        fragment.command.tags = added;
        fragment.command.tag_operation = TagOperation::Add;
    } else if !removed.is_empty() {
        fragment.command.tags = removed;
        fragment.command.tag_operation = TagOperation::Remove;
    }
}

/// Reads the tag that a word such as "tag" or "remove" at this position introduces.
fn read_tag_at(words: &mut [FragmentWord<'_>], at: usize, added: &mut Vec<String>, removed: &mut Vec<String>) {
    let is = |words: &[FragmentWord<'_>], at: usize, known: &[&str]| {
        words.get(at).is_some_and(|word| known.contains(&word.lower.as_str()))
    };
    if is(words, at, &["tag", "label"])
        && is(words, at + 1, &["it", "that", "this", "them", "those", "both"])
        && at + 2 < words.len()
        && added.is_empty()
    {
        let start = at + 2 + usize::from(is(words, at + 2, &["as", "with"]));
        if let Some(word) = words.get_mut(start).filter(|word| !word.used) {
            added.push(word.text.to_owned());
            word.used = true;
        }
    }
    if is(words, at, &["tag", "label"]) && !added.is_empty() {
        words[at].used = true;
    }
    // "with the tag school"
    if is(words, at, &["tag", "label"])
        && added.is_empty()
        && at > 0
        && is(words, at - 1, &["the", "a"])
        && at + 2 == words.len()
    {
        added.push(words[at + 1].text.to_owned());
        use_words(words, at..at + 2);
    }
    // "tag that one work"
    if is(words, at, &["tag", "label"])
        && added.is_empty()
        && is(words, at + 1, &["that", "this"])
        && is(words, at + 2, &["one"])
        && at + 4 == words.len()
    {
        added.push(words[at + 3].text.to_owned());
        use_words(words, at..at + 4);
    }
    // "tag the litter one pets"
    if is(words, at, &["tag", "label"])
        && added.is_empty()
        && let Some(one) = (at + 1..words.len()).find(|i| is(words, *i, &["one", "as", "with"]))
        && one > at + 1
        && one + 2 == words.len()
    {
        added.push(words[one + 1].text.to_owned());
        use_words(words, one..one + 2);
    }
    let removes = is(words, at, &["drop", "remove", "delete", "lose", "scrap", "without", "ditch", "no"]);
    if removes {
        let start = at + 1 + usize::from(is(words, at + 1, &["the", "that"]));
        if is(words, start + 1, &["tag", "label"]) && !is(words, start, &["the"]) {
            removed.push(words[start].text.trim_start_matches('#').to_owned());
            added.retain(|tag| !removed.contains(tag));
            use_words(words, at..start + 2);
        }
    }
}

/// Reads dates, times, repetitions and shifts ("a week earlier") by the language engine.
fn read_dates(text: &str, words: &mut [FragmentWord<'_>], fragment: &mut Fragment, request: &TurnRequest) {
    let parser = request.parser;
    let shift_words = ["earlier", "later", "sooner", "back", "forward"];
    if let Some(at) = words.iter().position(|word| shift_words.contains(&word.lower.as_str())) {
        let reading = parser.parse(&format!("move it {text}"), &request.now).commands.into_iter().next();
        let direct = parser.parse(text, &request.now).commands.into_iter().next();
        let reading = [reading, direct].into_iter().flatten().find(|command| command.shift.is_some());
        if let Some(command) = reading {
            fragment.command.shift = command.shift;
            let units = ["minute", "min", "hour", "day", "week", "month", "year", "fortnight"];
            let is_amount = |word: &FragmentWord<'_>| {
                let lower = word.lower.trim_end_matches('s');
                units.contains(&lower)
                    || number(&word.lower).is_some()
                    || matches!(word.lower.as_str(), "half" | "couple" | "few" | "another" | "bit")
            };
            words[at].used = true;
            words.iter_mut().filter(|word| is_amount(word)).for_each(|word| word.used = true);
            return;
        }
    }
    let unused: String = mask(text, words);
    let expressions = parser.find_expressions(&unused, &request.now);
    if expressions.is_empty() {
        return;
    }
    let mut texts = Vec::new();
    for found in &expressions {
        let covered =
            words.iter_mut().filter(|word| word.span.start < found.span.end && word.span.end > found.span.start);
        covered.for_each(|word| word.used = true);
        texts.push(framing::trim(&unused[found.span.clone()]).to_owned());
    }
    let joined = texts.join(" ");
    if let Some(time) = part_of_day(&joined) {
        fragment.command.time_of_day = Some(time);
        fragment.command.when = Some(DayOrTime::Time(request.now.date().to_datetime(time)));
        return;
    }
    let is_repetition = expressions.iter().any(|found| found.recurrence.is_some());
    let first = if is_repetition { format!("make it {joined}") } else { format!("change it to {joined}") };
    for template in [first, format!("set it to {joined}"), format!("move it to {joined}")] {
        let Some(command) = parser.parse(&template, &request.now).commands.into_iter().next() else { continue };
        if command.intent == Intent::UpdateTask && (command.when.is_some() || command.recurrence.is_some()) {
            fragment.command.when = command.when;
            fragment.command.time_of_day = command.time_of_day;
            fragment.command.recurrence = command.recurrence;
            return;
        }
    }
    // The engine reads the expression alone.
    let found = &expressions[0];
    fragment.command.when = found.due.or(found.start);
    fragment.command.recurrence = expressions.iter().find_map(|found| found.recurrence.clone());
}

/// Returns the time of a text that names a part of the day and nothing else: "in the morning". The day stays the same
/// then.
pub(super) fn part_of_day(text: &str) -> Option<Time> {
    const PARTS: [(&str, Time); 10] = [
        ("morning", time(9, 0, 0, 0)),
        ("noon", time(12, 0, 0, 0)),
        ("noonish", time(12, 0, 0, 0)),
        ("midday", time(12, 0, 0, 0)),
        ("lunchtime", time(12, 0, 0, 0)),
        ("lunch", time(12, 0, 0, 0)),
        ("afternoon", time(15, 0, 0, 0)),
        ("evening", time(18, 0, 0, 0)),
        ("night", time(20, 0, 0, 0)),
        ("midnight", time(0, 0, 0, 0)),
    ];
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split_whitespace()
        .filter(|word| !matches!(*word, "in" | "the" | "at" | "around" | "by" | "to"))
        .collect();
    match words.as_slice() {
        [part] => PARTS.iter().find(|(name, _)| name == part).map(|(_, time)| *time),
        _ => None,
    }
}

/// Replaces the used words by spaces, so that positions stay.
fn mask(text: &str, words: &[FragmentWord<'_>]) -> String {
    let mut masked = text.as_bytes().to_vec();
    for word in words.iter().filter(|word| word.used) {
        masked[word.span.clone()].fill(b' ');
    }
    String::from_utf8(masked).unwrap_or_default()
}

/// Reads a priority or a number that stands alone: "just normal", "actually 4".
fn read_bare_words(words: &mut [FragmentWord<'_>], fragment: &mut Fragment) {
    let mut others: Vec<usize> =
        (0..words.len()).filter(|at| !words[*at].used && !GLUE.contains(&words[*at].lower.as_str())).collect();
    let is_negated = words.iter().any(|word| word.used && matches!(word.lower.as_str(), "not" | "no"));
    if (fragment.command.priority.is_none() || is_negated)
        && let Some(at) = others.iter().position(|at| BARE_PRIORITIES.iter().any(|(word, _)| *word == words[*at].lower))
        && others.len() == 1
    {
        let word = others.remove(at);
        let found = BARE_PRIORITIES.iter().find(|(known, _)| *known == words[word].lower);
        fragment.command.priority = found.map(|(_, priority)| *priority);
        words[word].used = true;
    }
    if let [only] = others.as_slice()
        && fragment.command.when.is_none()
        && fragment.command.shift.is_none()
        && let Some(n) = number(&words[*only].lower)
    {
        fragment.number = Some(n);
        words[*only].used = true;
    }
}

/// Returns a small number in digits or words.
pub(super) fn number(word: &str) -> Option<i8> {
    const WORDS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let spelled = WORDS.iter().position(|known| *known == word).filter(|n| *n > 1).and_then(|n| i8::try_from(n).ok());
    word.parse::<i8>().ok().filter(|n| (0..=60).contains(n)).or(spelled)
}

/// Returns true if a text states the half of the day of its time: "8pm", "8 in the evening", "20:00", "noon".
pub(super) fn states_half_of_day(text: &str) -> bool {
    const WORDS: [&str; 17] = [
        "morning",
        "afternoon",
        "evening",
        "night",
        "tonight",
        "noon",
        "midday",
        "midnight",
        "lunch",
        "lunchtime",
        "am",
        "pm",
        "a.m",
        "p.m",
        "breakfast",
        "dinner",
        "o'clock",
    ];
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| c.is_whitespace() || c == ',').map(|word| word.trim_matches(['.', '?', '!']));
    words.any(|word| {
        let suffix =
            word.strip_suffix("am").or(word.strip_suffix("pm")).or(word.strip_suffix('a')).or(word.strip_suffix('p'));
        let has_suffix = suffix.is_some_and(|rest| rest.ends_with(|c: char| c.is_ascii_digit()));
        let hour = word.split([':', '.', 'h']).next().and_then(|hour| hour.parse::<u8>().ok());
        let is_24_hours = word.contains([':', 'h']) && hour.is_some_and(|hour| hour == 0 || hour > 12)
            || word.starts_with('0') && word.contains(':');
        (WORDS.contains(&word) && word != "o'clock") || word.ends_with("noonish") || has_suffix || is_24_hours
    })
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use model::User;
    use understand::UtteranceParser;

    use super::*;

    fn fragment(text: &str) -> Fragment {
        let user = User::local(TimeZone::UTC);
        let now = "2026-11-18T09:00:00Z".parse().unwrap();
        read(text, &TurnRequest::new(text.to_owned(), &user, UtteranceParser::default(), now))
    }

    #[test]
    fn values_are_read_without_other_words() {
        // TRUST-3
        for text in [
            "saturday",
            "at 3pm",
            "every two weeks",
            "#shopping",
            "high priority",
            "half past three",
            "first of april",
            "without a date",
            "no rush though",
            "make it 7:30",
            "tag it travel",
            "monday, 5pm",
            "a week earlier",
            "it shouldnt repeat any more",
            "drop the work tag",
            "actually 4",
            "just the day is fine",
        ] {
            let read = fragment(text);
            assert!(read.is_pure(), "{text}: {read:?}");
        }
        for text in ["hang the fairy lights", "the vet one is urgent", "buy milk on saturday", "what's due on friday"] {
            assert!(!fragment(text).is_pure(), "{text}");
        }
        assert_eq!(fragment("6pm, not 5").negated.as_deref(), Some("5"));
        assert_eq!(fragment("not #car, #house").negated.as_deref(), Some("#car"));
    }

    #[test]
    fn the_half_of_the_day_is_recognized() {
        assert!(
            ["8pm", "8 in the evening", "20:00", "noon", "09:30", "11 am"].iter().all(|text| states_half_of_day(text))
        );
        assert!(["8", "7:15", "half past six", "friday at 9"].iter().all(|text| !states_half_of_day(text)));
    }
}
