//! `adjutant understand`: shows how the language engine parses utterances, as text or as JSON.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use model::clock::Clock;
use model::conversation::MAX_CHAT_INPUT_CHARS;
use serde::Deserialize;
use serde_json::json;
use understand::{DayOrTime, Intent, ParsedCommand, ParsedUtterance, TimeExpression, UtteranceParser};

use crate::cli::GlobalOptions;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

/// Longer lines are truncated.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Parses `text` and prints its commands and then its time expressions, or with `--json` the parsed utterance. Without
/// `text`, or with `-`, parses one utterance per line of standard input, as in [`process_lines`]. `now` is the time to
/// which dates are relative, by default the current time.
///
/// Fails if the configuration, `now` or an utterance is invalid, and if standard input is a terminal that would have to
/// be read without `--json`.
pub(crate) fn run(global: &GlobalOptions, now: Option<&str>, text: Option<&str>) -> anyhow::Result<()> {
    let settings = super::load_config(global, None)?.server;
    let zone = settings.time_zone;
    let parser = UtteranceParser { date_order: settings.numeric_dates };
    let now = match now {
        Some(text) => {
            parse_now(text, &zone).map_err(|message| ExitError::new(ExitStatus::Usage, format!("--now: {message}")))?
        }
        None => Clock::system().now().to_zoned(zone.clone()),
    };
    match text.filter(|text| *text != "-") {
        Some(text) => {
            let utterance = parse(parser, text, &now).map_err(|message| ExitError::new(ExitStatus::Usage, message))?;
            if global.json {
                output::print_line(&serde_json::to_string(&utterance)?)
            } else {
                let dates: String = parser.find_expressions(text, &now).iter().map(format_date).collect();
                output::print((format_utterance(&utterance) + &dates).as_bytes())
            }
        }
        None if io::stdin().is_terminal() && !global.json => {
            Err(ExitError::new(ExitStatus::Usage, "no input: give a TEXT, or one utterance per line on standard input")
                .into())
        }
        None => process_lines(global.json, parser, now, zone),
    }
}

/// A line in JSON instead of a plain utterance.
#[derive(Deserialize)]
struct InputLine<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    now: Option<Cow<'a, str>>,
}

/// Parses each line of standard input, also a blank one, and prints one result each, in order. With `json`, a result is
/// one line. Otherwise it is the commands, without time expressions, and a blank line. The result of an invalid line is
/// its error with its number. `default` is the time for lines without `now`, and `zone` the time zone for times without
/// one.
///
/// Flushes when no more input is available. Succeeds at once if the reader closes the pipe. Fails at the end with a
/// usage error if a line was invalid, and if the input or output fails.
fn process_lines(json: bool, parser: UtteranceParser, default: Zoned, zone: TimeZone) -> anyhow::Result<()> {
    let mut times = ReferenceTimes { default, zone, last: None };
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    output::mark_printed();
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut line = Vec::new();
    let mut number = 0;
    let mut invalid = 0;
    while next_line(&mut input, &mut line)? {
        number += 1;
        let utterance = parse_line(parser, &line, &mut times);
        invalid += usize::from(utterance.is_err());
        let written = match (utterance, json) {
            (Ok(utterance), true) => serde_json::to_writer(&mut out, &utterance).map_err(io::Error::from),
            (Ok(utterance), false) => out.write_all(format_utterance(&utterance).as_bytes()),
            (Err(message), true) => {
                let error = json!({"error": {"code": "validation", "message": format!("line {number}: {message}")}});
                serde_json::to_writer(&mut out, &error).map_err(io::Error::from)
            }
            (Err(message), false) => write!(out, "line {number}: {message}"),
        };
        // Flush if no more input is buffered: the sender may wait for this result.
        let flushed = written
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| if input.buffer().is_empty() { out.flush() } else { Ok(()) });
        if output::is_closed(flushed)? {
            return Ok(());
        }
    }
    if output::is_closed(out.flush())? || invalid == 0 {
        return Ok(());
    }
    Err(ExitError::new(ExitStatus::Usage, format!("{invalid} of {number} lines are not valid")).into())
}

/// Replaces `line` with the next line without its `\n` and `\r`, truncated to [`MAX_LINE_BYTES`]. The rest of a longer
/// line is skipped. Returns false at the end of the input. Fails if the input cannot be read.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if io::Read::take(&mut *input, MAX_LINE_BYTES as u64).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(true)
}

/// Parses a line: an utterance, or an [`InputLine`] if it starts with `{`. Invalid UTF-8 in an utterance is replaced.
/// Fails with a message if the object or its time is invalid, or if the text is too long.
fn parse_line(parser: UtteranceParser, line: &[u8], times: &mut ReferenceTimes) -> Result<ParsedUtterance, String> {
    if !line.starts_with(b"{") {
        return parse(parser, &String::from_utf8_lossy(line), &times.default);
    }
    let line: InputLine = serde_json::from_slice(line).map_err(|error| {
        format!("a line that starts with {{ must be a JSON object with `text` and optionally `now`: {error}")
    })?;
    let now = times.at(line.now.as_deref())?;
    parse(parser, &line.text, now)
}

/// Parses an utterance. Fails if it has more than [`MAX_CHAT_INPUT_CHARS`] characters.
fn parse(parser: UtteranceParser, text: &str, now: &Zoned) -> Result<ParsedUtterance, String> {
    let is_too_long = text.len() > MAX_CHAT_INPUT_CHARS && text.chars().count() > MAX_CHAT_INPUT_CHARS;
    if is_too_long {
        return Err(format!("the text is longer than {MAX_CHAT_INPUT_CHARS} characters"));
    }
    Ok(parser.parse(text, now))
}

/// The times that lines refer to. Caches the last one, because most lines have the same.
struct ReferenceTimes {
    default: Zoned,
    zone: TimeZone,
    last: Option<(String, Zoned)>,
}

impl ReferenceTimes {
    /// Returns the time for a line, or the default if the line has none. Fails if the text is not a time.
    fn at(&mut self, text: Option<&str>) -> Result<&Zoned, String> {
        let Some(text) = text else { return Ok(&self.default) };
        if self.last.as_ref().is_none_or(|(known, _)| known != text) {
            let now = parse_now(text, &self.zone).map_err(|message| format!("now: {message}"))?;
            self.last = Some((text.to_owned(), now));
        }
        Ok(self.last.as_ref().map_or(&self.default, |(_, now)| now))
    }
}

/// Parses a time with a time zone or an offset; without both, the time is in `zone`. A date without a time is midnight.
/// The result is in the time zone or at the offset of the text. Fails if the text is not a time.
fn parse_now(text: &str, zone: &TimeZone) -> Result<Zoned, String> {
    let invalid = || format!("{text:?} is not a time such as 2025-12-21T12:00:00Z");
    let pieces = Pieces::parse(text).map_err(|_| invalid())?;
    if pieces.time_zone_annotation().is_some() {
        return text.parse().map_err(|_| invalid());
    }
    let zone = pieces.to_numeric_offset().map_or_else(|| zone.clone(), TimeZone::fixed);
    let at = DateTime::from_parts(pieces.date(), pieces.time().unwrap_or_default());
    at.to_zoned(zone).map_err(|_| invalid())
}

/// Formats the commands of an utterance: a heading each, then one slot per line.
fn format_utterance(utterance: &ParsedUtterance) -> String {
    utterance.commands.iter().map(format_command).collect()
}

/// Formats a command: its intent and confidence, then one line for each slot that is not empty. A list command has its
/// dates in the filter, not as due date. The last line is the question for a missing slot.
fn format_command(command: &ParsedCommand) -> String {
    let mut lines = format!("{} ({:.2})\n", command.effective_intent().as_str(), command.confidence);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push_str(&format!("  {name:<12}{value}\n"));
        }
    };
    let list = command.intent == Intent::ListTasks;
    line("task", command.target_text().map(Cow::into_owned));
    line("title", command.title.clone());
    line("description", command.description.clone());
    line("due", command.when.filter(|_| !list).map(due));
    line("recurrence", command.recurrence.clone());
    line("priority", command.priority.map(|priority| priority.as_str().to_owned()));
    line("tags", Some(command.tags.join(", ")));
    line("status", command.status.map(|status| status.as_str().to_owned()));
    line("clear", Some(command.cleared_fields.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", ")));
    line("every", command.repeat_interval_minutes.map(|minutes| format!("{minutes} minutes")));
    line("times", command.repeat_count.map(|count| count.to_string()));
    line("filter", Some(command.filter_summary().join(", ")));
    line("question", command.missing.map(|missing| missing.question()));
    lines
}

/// Formats a time expression: a line with its text, then one line each for start, end and recurrence, if present, and
/// for the precision.
fn format_date(date: &TimeExpression) -> String {
    let mut lines = format!("date '{}'\n", date.text);
    let until = date.end.map(|end| format!("until {}", due(end)));
    let parts = [date.start.map(due), until, date.recurrence.clone()];
    lines.extend(parts.into_iter().flatten().map(|part| format!("  {part}\n")));
    lines.push_str(&format!("  precision {}\n", date.grain.as_str()));
    lines
}

/// Formats a due date with its weekday.
fn due(when: DayOrTime) -> String {
    match when {
        DayOrTime::Day(date) => date.strftime("%Y-%m-%d (%A)").to_string(),
        DayOrTime::Time(at) => at.strftime("%Y-%m-%d %H:%M (%A)").to_string(),
    }
}
