//! `adjutant understand`: what the offline engine reads in an utterance, for people and for programs.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};

use jiff::Zoned;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;
use model::clock::Clock;
use model::conversation::MAX_INPUT;
use serde::Deserialize;
use serde_json::json;
use understand::{Command, Expression, Intent, Reader, Reading, When};

use crate::cli::Global;
use crate::exit::{Code, Exit};
use crate::output;

const MAX_LINE: usize = 1 << 20;

pub(crate) fn run(global: &Global, now: Option<&str>, text: Option<&str>) -> anyhow::Result<()> {
    let settings = super::load(global, None)?.server;
    let zone = settings.time_zone;
    let reader = Reader { numeric: settings.numeric_dates };
    let now = match now {
        Some(text) => parse_now(text, &zone).map_err(|message| Exit::new(Code::Usage, format!("--now: {message}")))?,
        None => Clock::system().now().to_zoned(zone.clone()),
    };
    match text.filter(|text| *text != "-") {
        Some(text) => {
            let reading = read(reader, text, &now).map_err(|message| Exit::new(Code::Usage, message))?;
            if global.json {
                output::say(&serde_json::to_string(&reading)?)
            } else {
                let dates: String = reader.expressions(text, &now).iter().map(tell_date).collect();
                output::put((tell(&reading) + &dates).as_bytes())
            }
        }
        None if io::stdin().is_terminal() && !global.json => {
            Err(Exit::new(Code::Usage, "nothing to read: give a TEXT, or one utterance a line on standard input")
                .into())
        }
        None => lines(global.json, reader, now, zone),
    }
}

/// What a line may be instead of a plain utterance.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    now: Option<Cow<'a, str>>,
}

/// One answer for each line, in order: one that cannot be read is answered with what is wrong with it.
fn lines(json: bool, reader: Reader, standard: Zoned, zone: TimeZone) -> anyhow::Result<()> {
    let mut times = Times { standard, zone, last: None };
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut line = Vec::new();
    let mut number = 0;
    let mut refused = 0;
    while next_line(&mut input, &mut line)? {
        number += 1;
        let reading = of_line(reader, &line, &mut times);
        refused += usize::from(reading.is_err());
        let written = match (reading, json) {
            (Ok(reading), true) => serde_json::to_writer(&mut out, &reading).map_err(io::Error::from),
            (Ok(reading), false) => out.write_all(tell(&reading).as_bytes()),
            (Err(message), true) => {
                let error = json!({"error": {"code": "validation", "message": format!("line {number}: {message}")}});
                serde_json::to_writer(&mut out, &error).map_err(io::Error::from)
            }
            (Err(message), false) => write!(out, "line {number}: {message}"),
        };
        // Whoever sends one line and waits for its answer gets it.
        let flushed = written
            .and_then(|()| out.write_all(b"\n"))
            .and_then(|()| if input.buffer().is_empty() { out.flush() } else { Ok(()) });
        if output::has_gone(flushed)? {
            return Ok(());
        }
    }
    if output::has_gone(out.flush())? || refused == 0 {
        return Ok(());
    }
    Err(Exit::new(Code::Usage, format!("{refused} of {number} lines could not be read")).into())
}

/// Reads a line without its end; what is beyond any sensible length is not kept.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if io::Read::take(&mut *input, MAX_LINE as u64).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.len() == MAX_LINE && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Ok(true)
}

fn of_line(reader: Reader, line: &[u8], times: &mut Times) -> Result<Reading, String> {
    if !line.starts_with(b"{") {
        return read(reader, &String::from_utf8_lossy(line), &times.standard);
    }
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        format!("a line that starts with {{ is a JSON object with `text` and perhaps `now`: {error}")
    })?;
    let now = times.at(line.now.as_deref())?;
    read(reader, &line.text, now)
}

fn read(reader: Reader, text: &str, now: &Zoned) -> Result<Reading, String> {
    let long = text.len() > MAX_INPUT && text.chars().count() > MAX_INPUT;
    if long {
        return Err(format!("the text is longer than {MAX_INPUT} characters"));
    }
    Ok(reader.read(text, now))
}

/// The times that lines name; most name the same one again.
struct Times {
    standard: Zoned,
    zone: TimeZone,
    last: Option<(String, Zoned)>,
}

impl Times {
    fn at(&mut self, text: Option<&str>) -> Result<&Zoned, String> {
        let Some(text) = text else { return Ok(&self.standard) };
        if self.last.as_ref().is_none_or(|(known, _)| known != text) {
            let now = parse_now(text, &self.zone).map_err(|message| format!("now: {message}"))?;
            self.last = Some((text.to_owned(), now));
        }
        Ok(self.last.as_ref().map_or(&self.standard, |(_, now)| now))
    }
}

/// A time with its zone, with an offset (whose wall clock counts), or of the wall clock of `zone`.
fn parse_now(text: &str, zone: &TimeZone) -> Result<Zoned, String> {
    let wrong = || format!("{text:?} is no time such as 2025-12-21T12:00:00Z");
    let pieces = Pieces::parse(text).map_err(|_| wrong())?;
    if pieces.time_zone_annotation().is_some() {
        return text.parse().map_err(|_| wrong());
    }
    let zone = pieces.to_numeric_offset().map_or_else(|| zone.clone(), TimeZone::fixed);
    let at = DateTime::from_parts(pieces.date(), pieces.time().unwrap_or_default());
    at.to_zoned(zone).map_err(|_| wrong())
}

/// A reading for people: a heading for each command, and what it holds, one thing a line.
fn tell(reading: &Reading) -> String {
    reading.commands.iter().map(tell_command).collect()
}

fn tell_command(command: &Command) -> String {
    let mut told = format!("{} ({:.2})\n", command.asks().as_str(), command.confidence);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            told.push_str(&format!("  {name:<12}{value}\n"));
        }
    };
    let list = command.intent == Intent::ListTasks;
    line("task", command.reference().map(Cow::into_owned));
    line("title", command.title.clone());
    line("description", command.description.clone());
    line("due", command.when.filter(|_| !list).map(due));
    line("recurrence", command.recurrence.clone());
    line("priority", command.priority.map(|priority| priority.as_str().to_owned()));
    line("tags", Some(command.tags.join(", ")));
    line("status", command.status.map(|status| status.as_str().to_owned()));
    line("clear", Some(command.clear.iter().map(|field| field.as_str()).collect::<Vec<_>>().join(", ")));
    line("every", command.repeat_interval_minutes.map(|minutes| format!("{minutes} minutes")));
    line("times", command.repeat_count.map(|count| count.to_string()));
    line("filter", Some(command.filter_words().join(", ")));
    line("question", command.missing.map(|missing| missing.question()));
    told
}

/// A date that was found: its words, when it is, how long it lasts, how finely it is told and how it repeats.
fn tell_date(date: &Expression) -> String {
    let mut told = format!("date '{}'\n", date.text);
    let until = date.end.map(|end| format!("until {}", due(end)));
    let said = [date.start.map(due), until, date.recurrence.clone()];
    told.extend(said.into_iter().flatten().map(|said| format!("  {said}\n")));
    told.push_str(&format!("  to the {}\n", date.grain.as_str()));
    told
}

/// With the weekday, which people check first.
fn due(when: When) -> String {
    match when {
        When::Day(date) => date.strftime("%Y-%m-%d (%A)").to_string(),
        When::Time(at) => at.strftime("%Y-%m-%d %H:%M (%A)").to_string(),
    }
}
