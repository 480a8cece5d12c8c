//! What people see: data on standard output, complaints on standard error, tables and colour on a terminal only.

use std::io::{self, IsTerminal, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, ContentArrangement, Table};

use crate::exit::{Code, Exit};

/// A line of data. A reader that went away (`| head`) is no failure.
pub(crate) fn say(line: &str) -> anyhow::Result<()> {
    put(format!("{line}\n").as_bytes())
}

/// Data as it is.
pub(crate) fn put(bytes: &[u8]) -> anyhow::Result<()> {
    if try_put(bytes)? { Ok(()) } else { std::process::exit(0) }
}

/// Data as it is; whether somebody still reads it.
pub(crate) fn try_put(bytes: &[u8]) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    Ok(!has_gone(written)?)
}

/// What somebody else said beside the data, as it is.
pub(crate) fn put_err(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

/// Whether nobody reads standard output any more.
pub(crate) fn has_gone(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        written => written.map(|()| false),
    }
}

/// A remark that is not data.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Something that goes on, for whoever watches.
pub(crate) fn aside(text: &str) {
    let dim = io::stderr().is_terminal() && colours();
    let _ = if dim { writeln!(io::stderr(), "\x1b[2m· {text}\x1b[0m") } else { writeln!(io::stderr(), "· {text}") };
}

pub(crate) fn complain(message: &str) {
    let red = io::stderr().is_terminal() && colours();
    let _ = if red {
        writeln!(io::stderr(), "\x1b[31merror:\x1b[0m {message}")
    } else {
        writeln!(io::stderr(), "error: {message}")
    };
}

/// Aligned columns with a heading on a terminal, tab-separated values elsewhere.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        let lines: Vec<_> = rows.iter().map(|row| row.join("\t")).collect();
        return if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) };
    }
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let bold = colours();
    table.set_header(heading.iter().map(|name| {
        let cell = Cell::new(name);
        if bold { cell.add_attribute(Attribute::Bold) } else { cell }
    }));
    table.add_rows(rows);
    say(&table.to_string())
}

fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Asks on a terminal; elsewhere nobody is there to ask, and only `--yes` will do.
pub(crate) fn confirm(question: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Exit::new(Code::ConfirmationNeeded, format!("{question} Confirm with --yes.")).into());
    }
    let mut err = io::stderr();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Exit::new(Code::ConfirmationNeeded, "nothing was changed").into()),
    }
}
