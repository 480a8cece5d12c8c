//! Parses every line of stdin ten times and prints the number of utterances per second on one core.

use std::io::{self, BufRead, Write};
use std::time::Instant;

fn main() -> io::Result<()> {
    let lines: Vec<String> = io::stdin().lock().lines().collect::<Result<_, _>>()?;
    let Ok(now) = "2025-12-21T12:00:00Z[UTC]".parse() else { return Ok(()) };
    let start = Instant::now();
    let mut commands = 0;
    for _ in 0..10 {
        commands += lines.iter().map(|line| understand::parse(line, &now).commands.len()).sum::<usize>();
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = lines.len() as f64 * 10.0 / seconds;
    writeln!(io::stdout(), "{rate:.0} utterances a second, {commands} commands")
}
