//! Reads utterances from stdin, one for each line (plain, or `{"text", "now"}`), and prints the parsed commands as
//! JSON.
//!
//! Used with a scorer. The command of the product is `adjutant understand`.

use std::io::{self, BufRead, BufWriter, Write};

use jiff::Zoned;
use jiff::tz::TimeZone;

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let standard = instant("2025-12-21T12:00:00Z").unwrap_or_default();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (text, now) = match serde_json::from_str::<serde_json::Value>(&line) {
            Ok(value) if line.starts_with('{') => {
                let now = value["now"].as_str().and_then(instant);
                (value["text"].as_str().unwrap_or_default().to_owned(), now.unwrap_or_else(|| standard.clone()))
            }
            _ => (line, standard.clone()),
        };
        serde_json::to_writer(&mut out, &understand::parse(&text, &now))?;
        writeln!(out)?;
    }
    Ok(())
}

/// Returns the local time of the text. An offset only selects the zone.
fn instant(text: &str) -> Option<Zoned> {
    if let Ok(at) = text.parse::<jiff::civil::DateTime>() {
        return at.to_zoned(TimeZone::UTC).ok();
    }
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    let offset = pieces.to_numeric_offset().map_or(TimeZone::UTC, TimeZone::fixed);
    let at = pieces.date().to_datetime(pieces.time()?);
    at.to_zoned(offset).ok()
}
