//! `adjutant export`, `import` and `erase`: the data of one user.

use std::path::{Path, PathBuf};

use api::data::ImportSummary;

use super::backup::save;
use crate::cli::GlobalOptions;
use crate::client::{Client, open_file};
use crate::output;

/// Writes the data of the user to `file`, by default to standard output. Fails if the request fails or the file cannot
/// be written.
pub(crate) async fn export(client: &Client, file: Option<PathBuf>) -> anyhow::Result<()> {
    save(client, "/api/data", &file.unwrap_or_else(|| PathBuf::from("-"))).await
}

/// Adds the data in `file`, or in standard input for `-`, to the data of the user. Prints one note each with the number
/// of added and skipped tasks and conversations, or with `--json` the response of the server. Fails if the file cannot
/// be opened or the server rejects it.
pub(crate) async fn import(global: &GlobalOptions, file: &Path) -> anyhow::Result<()> {
    let document = open_file(if file == Path::new("-") { Path::new("/dev/stdin") } else { file }).await?;
    let answer = Client::connect(global).await?.upload("/api/data", document).await?;
    answer.show(|imported: ImportSummary| {
        for (name, count) in [("tasks", imported.tasks), ("conversations", imported.conversations)] {
            output::note(&format!("{name}: {} added, {} already present", count.added, count.skipped));
        }
        Ok(())
    })
}

/// Deletes all data of the user after a confirmation. Fails without a confirmation or if the request fails.
pub(crate) async fn erase(global: &GlobalOptions) -> anyhow::Result<()> {
    let question = "Delete all your tasks and conversations? This cannot be undone.";
    output::confirm(question, global.yes)?;
    Client::connect(global).await?.delete("/api/data").await?;
    output::note("all your data was deleted");
    Ok(())
}
