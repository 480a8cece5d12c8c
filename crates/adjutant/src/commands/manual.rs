//! `adjutant completions` and `adjutant man`, generated from the definition of the command line.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::output;

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "adjutant", &mut script);
    output::print(&script)
}

/// Prints the manual page of `adjutant`. With `dir`, writes the pages of all commands to that directory instead, which
/// is created if needed, and prints a note. Fails if a page or the directory cannot be written.
pub(crate) fn man(dir: Option<&Path>) -> anyhow::Result<()> {
    if let Some(dir) = dir {
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir))?;
        output::note(&format!("wrote the manual pages to {}", dir.display()));
        return Ok(());
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).context("failed to write the manual page")?;
    output::print(&page)
}
