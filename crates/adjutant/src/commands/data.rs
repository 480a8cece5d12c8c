//! `adjutant export`, `import` and `erase`: one user's data.

use std::path::{Path, PathBuf};

use api::data::Imported;

use super::backup::save;
use crate::cli::Global;
use crate::client::{Client, open};
use crate::output;

pub(crate) async fn export(client: &Client, file: Option<PathBuf>) -> anyhow::Result<()> {
    save(client, "/api/data", &file.unwrap_or_else(|| PathBuf::from("-"))).await
}

pub(crate) async fn import(global: &Global, file: &Path) -> anyhow::Result<()> {
    let document = open(if file == Path::new("-") { Path::new("/dev/stdin") } else { file }).await?;
    let answer = Client::connect(global).await?.upload("/api/data", document).await?;
    answer.show(|imported: Imported| {
        for (name, count) in [("tasks", imported.tasks), ("conversations", imported.conversations)] {
            output::note(&format!("{name}: {} added, {} already there", count.added, count.skipped));
        }
        Ok(())
    })
}

pub(crate) async fn erase(global: &Global) -> anyhow::Result<()> {
    let question = "Delete all your tasks and conversations? This cannot be undone.";
    output::confirm(question, global.yes)?;
    Client::connect(global).await?.delete("/api/data").await?;
    output::note("everything is deleted");
    Ok(())
}
