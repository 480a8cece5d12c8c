//! `adjutant export`, `import` and `erase`: one user's data.

use std::path::{Path, PathBuf};

use reqwest::Method;

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
    if global.json {
        return output::say(&answer.text());
    }
    let imported = answer.json()?;
    for things in ["tasks", "conversations"] {
        let added = &imported[things]["added"];
        let skipped = &imported[things]["skipped"];
        output::note(&format!("{things}: {added} added, {skipped} already there"));
    }
    Ok(())
}

pub(crate) async fn erase(global: &Global) -> anyhow::Result<()> {
    let question = "Delete all your tasks and conversations? This cannot be undone.";
    output::confirm(question, global.yes)?;
    Client::connect(global).await?.send(Method::DELETE, "/api/data", None).await?;
    output::note("everything is deleted");
    Ok(())
}
