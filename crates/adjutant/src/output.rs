//! Terminal output: data on standard output, notes and errors on standard error. Tables and colours on a terminal only.

use std::io::{self, IsTerminal, Write};

use std::sync::atomic::{AtomicBool, Ordering};

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};

use crate::exit::{ExitError, ExitStatus};

/// True if this process has written to standard output.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Records that standard output contains something that this module has not printed.
pub(crate) fn mark_printed() {
    HAS_PRINTED.store(true, Ordering::Relaxed);
}

/// Returns true if standard output contains something already.
pub(crate) fn has_printed() -> bool {
    HAS_PRINTED.load(Ordering::Relaxed)
}

/// Prints a line of data. Ends the process successfully if the reader has closed the pipe (`| head`).
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    print(format!("{line}\n").as_bytes())
}

/// Prints data unchanged. Ends the process successfully if the reader has closed the pipe.
pub(crate) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    if try_print(bytes)? { Ok(()) } else { std::process::exit(0) }
}

/// Prints data unchanged. Returns false if the reader has closed the pipe.
pub(crate) fn try_print(bytes: &[u8]) -> anyhow::Result<bool> {
    mark_printed();
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    Ok(!is_closed(written)?)
}

/// Prints bytes unchanged to standard error.
pub(crate) fn print_stderr(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

/// Returns true if the reader has closed the pipe. Fails on any other error.
pub(crate) fn is_closed(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        written => written.map(|()| false),
    }
}

/// Prints a note to standard error.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a progress message to standard error, dimmed on a terminal.
pub(crate) fn progress(text: &str) {
    let dim = io::stderr().is_terminal() && use_colours();
    let _ = if dim { writeln!(io::stderr(), "\x1b[2m· {text}\x1b[0m") } else { writeln!(io::stderr(), "· {text}") };
}

/// Prints the start of a progress message to standard error. [`end_progress`] ends the line.
pub(crate) fn begin_progress(text: &str) {
    let start = if use_colours() { "\x1b[2m" } else { "" };
    let _ = write!(io::stderr(), "{start}· {text}");
}

/// Ends the line of a progress message, with a detail if there is one.
pub(crate) fn end_progress(detail: Option<&str>) {
    let end = if use_colours() { "\x1b[0m" } else { "" };
    let detail = detail.map(|detail| format!(" {detail}")).unwrap_or_default();
    let _ = writeln!(io::stderr(), "{detail}{end}");
}

/// Prints `error:` and the message to standard error. `error:` is red on a terminal, unless `NO_COLOR` is set and not
/// empty. Failures to write are ignored.
pub(crate) fn print_error(message: &str) {
    let red = io::stderr().is_terminal() && use_colours();
    let _ = if red {
        writeln!(io::stderr(), "\x1b[31merror:\x1b[0m {message}")
    } else {
        writeln!(io::stderr(), "error: {message}")
    };
}

/// Prints aligned columns with a heading on a terminal, also without rows. Otherwise prints tab-separated values
/// without a heading, and nothing without rows. Tabs and line breaks in values are not escaped. Ends the process
/// successfully if the reader has closed the pipe. Fails if standard output cannot be written.
pub(crate) fn print_table(heading: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    print_marked_table(heading, rows, |_, _| false)
}

/// Prints a table like [`print_table`]. Cells for which `is_marked` returns true, by row and column, are red on a terminal
/// with colours.
pub(crate) fn print_marked_table(
    heading: &[&str],
    rows: &[Vec<String>],
    is_marked: impl Fn(usize, usize) -> bool,
) -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        let lines: Vec<_> = rows.iter().map(|row| row.join("\t")).collect();
        return if lines.is_empty() { Ok(()) } else { print_line(&lines.join("\n")) };
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let bold = use_colours();
    table.set_header(heading.iter().map(|name| {
        let cell = Cell::new(name);
        if bold { cell.add_attribute(Attribute::Bold) } else { cell }
    }));
    for (row, cells) in rows.iter().enumerate() {
        table.add_row(cells.iter().enumerate().map(|(column, text)| {
            let cell = Cell::new(text);
            if bold && is_marked(row, column) { cell.fg(Color::Red) } else { cell }
        }));
    }
    print_line(&table.to_string())
}

/// Returns false if `NO_COLOR` is set and not empty.
fn use_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Asks `question` on standard error and reads one line, unless `yes` is set. Fails with
/// [`ExitStatus::ConfirmationNeeded`] for any reply but "y" or "yes" in any case, and without asking if standard input
/// is not a terminal. Also fails if the terminal cannot be read or written.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(ExitError::new(ExitStatus::ConfirmationNeeded, format!("{question} Confirm with --yes.")).into());
    }
    let mut err = io::stderr();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(ExitError::new(ExitStatus::ConfirmationNeeded, "not confirmed; nothing was changed").into()),
    }
}
