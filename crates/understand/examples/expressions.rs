//! Prints the dates, times and repetitions in every line of stdin; the first argument is the time it is said at.

use std::io::{self, BufRead, BufWriter, Write};

fn main() -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let now = std::env::args().nth(1).unwrap_or_else(|| "2025-12-21T12:00:00Z[UTC]".to_owned());
    let Ok(now) = now.parse() else { return Err(io::Error::other("not a time with a zone")) };
    for line in io::stdin().lock().lines() {
        let line = line?;
        let found = understand::expressions(&line, &now);
        serde_json::to_writer(&mut out, &serde_json::json!({ "text": line, "expressions": found }))?;
        writeln!(out)?;
    }
    Ok(())
}
