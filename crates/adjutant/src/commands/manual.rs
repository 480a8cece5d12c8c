//! `adjutant completions` and `adjutant man`, made from the command line's own description.

use anyhow::Context;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::output;

pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "adjutant", &mut script);
    output::put(&script)
}

pub(crate) fn man() -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).context("failed to write the manual page")?;
    output::put(&page)
}
