//! `adjutant completions` and `adjutant man`, made from the command line's own description.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::output;

pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "adjutant", &mut script);
    output::put(&script)
}

/// The page on standard output, or that of every command in a directory.
pub(crate) fn man(dir: Option<&Path>) -> anyhow::Result<()> {
    if let Some(dir) = dir {
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir))?;
        output::note(&format!("wrote the pages to {}", dir.display()));
        return Ok(());
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).context("failed to write the manual page")?;
    output::put(&page)
}
